// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "workload/pattern.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>

namespace iocast {

/// What the ranks of a placement ask for in each phase, counted in their operations; nothing is carried out.
///
/// Of all ranks when they have at most `most` operations together; else of some, the first and the last and others
/// drawn evenly between them, each of which stands for its neighbours. Time limits end nothing.
///
/// Gives `whole` (whether all ranks were counted), `expected`, `bytes_written` and `bytes_read` (operations by kind
/// and bytes as the pattern foresees them), and `phases`, repeats of one name together. Of each its `name`, `repeats`,
/// `most_seconds`, `workers` (ranks that do anything), `worker_nodes`, `operations`, `bytes` and `blocks` by kind, and
/// where all were counted the numbers of `datasets` and `objects` that they use. `together`: ranks act jointly.
/// `pauses`: they think as their stream has it, or come in an open loop, or otherwise than the workload's parameters
/// have it. `unlike`: one worker has less than half as many of a kind as another. @throws InputError as check_size()
/// does
nlohmann::ordered_json count_operations(const Pattern& pattern, const Placement& placement, uint64_t most);

} // namespace iocast
