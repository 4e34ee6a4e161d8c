// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "profile/run_directory.hpp"
#include "real/cluster.hpp"
#include "real/executor.hpp"

#include <span>

namespace iocast {

/// A phase of all ranks together; complete on rank 0 only, except for what says otherwise.
struct MergedPhase {
  PhaseRecorder recorder;
  ErrorTable errors;
  std::vector<double> rank_seconds;
  double think_asked_seconds  = 0;
  double think_actual_seconds = 0;
  uint64_t swept              = 0;
  bool interrupted            = false; ///< on some rank; every rank knows
  uint64_t cut_ranks          = 0;     ///< clients whose time was over; every rank knows
  uint64_t furthest           = 0;     ///< the largest Pattern::reached of a rank; every rank knows
};

/// Merges what the clients of all ranks bring home, on each rank equally many. Nothing grows with the number of
/// operations, and only rank_seconds with that of clients.
MergedPhase collect(const Cluster& cluster, std::span<RankPhase> mine);

} // namespace iocast
