// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "profile/op_trace.hpp"
#include "real/cluster.hpp"

namespace iocast {

/// Writes the operations of all ranks, each with as many clients, to one file. Every rank compresses its own; the
/// chunks go through rank 0 one by one, as they are to be stored. Rank 0 only needs `file` and `about`.
/// @throws AgreedFailure on all ranks
void gather_trace(const Cluster& cluster, const OpTrace& mine, const Pattern& pattern, const std::string& file,
                  const nlohmann::ordered_json& about);

} // namespace iocast
