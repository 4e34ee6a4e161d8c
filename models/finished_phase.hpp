// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/buffer.hpp"
#include "models/cache.hpp"
#include "models/extent.hpp"
#include "profile/recorder.hpp"

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace iocast {

/// What a station did for one kind of operation in one phase; times are sums in seconds.
struct VisitSums {
  uint64_t visits  = 0;
  double total     = 0; ///< from asking to leaving
  double wait      = 0; ///< for a server (processor sharing and timeslice: all beyond the demand)
  double lock_wait = 0;
  double stall     = 0;
  double lost      = 0; ///< in failures: time in vain, and until it was sent again
  uint64_t replays = 0; ///< requests that were lost and sent again, each time counted
};
/// What a station's servers and requests did from the phase's begin until the next one begins. Between the last answer
/// and then only others are there.
struct StationTimes {
  double busy    = 0; ///< seconds, of all servers together
  double present = 0; ///< seconds, of all requests together: waiting or in service
  double others  = 0; ///< of these, seconds of work of others, drains, refills and fetches
};

/// By station; index 0 (OpKind::phase) is work of others and waking up, the last one (`draining`) that of buffers.
using StationSums = std::vector<std::array<VisitSums, work_count>>;

/// What the links of the platform's network carried in one phase.
struct NetworkUse {
  struct Link {
    std::string name;
    double bytes;
    double busy; ///< share of the phase that it would take at what failures left of the link's bandwidth
  };
  /// The instance of a station that most bytes went to or came from.
  struct Share {
    std::string station;
    uint32_t instance;
    double share; ///< of the bytes of all instances
    uint32_t instances;
  };
  std::vector<Link> busiest; ///< at most three, busiest first
  std::vector<Share> shares; ///< of stations with several instances
  uint64_t flows        = 0; ///< that began since the start
  uint64_t short_trains = 0; ///< since the start: accesses of few requests for a window, see docs/platforms.md
  uint64_t fallbacks    = 0; ///< since the start: how often all rates were worked out from nothing
};

struct FinishedPhase {
  size_t number;
  double start;                     ///< simulated seconds
  double end;                       ///< last answer
  double closed;                    ///< the next phase begins
  std::vector<double> rank_seconds; ///< the listener's to take: there may be millions
  double think_asked;
  double think_actual;
  uint64_t cut_ranks; ///< that had not done all when the phase's time was over
  bool watched;       ///< by Options::precision
  const PhaseRecorder& recorder;
  const StationSums& stations;
  const std::vector<StationTimes>& times;      ///< by station
  const std::array<uint64_t, op_count>& bytes; ///< moved, by kind of operation
  const std::vector<BufferSums>& buffers;      ///< since the start, not of the phase
  const std::vector<CacheSums>& caches;        ///< likewise
  const std::vector<ExtentSums>& extents;      ///< likewise; of locks on ranges
  nlohmann::ordered_json mechanisms{};         ///< what they did in it, by section and name
  NetworkUse network{};                        ///< empty where no transfer could wait for a link
  double first_step_seconds = 0;               ///< from the start to the end of the first step, see StepTimes
};

} // namespace iocast
