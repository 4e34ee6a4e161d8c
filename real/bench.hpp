// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "real/cluster.hpp"
#include "real/options.hpp"

namespace iocast {

/// Runs a workload from all ranks; what is to be printed on stdout is printed by rank 0.
/// @returns the exit code, the same on all ranks
/// @throws AgreedFailure on all ranks
int run_bench(const Options& options, const Cluster& cluster);

} // namespace iocast
