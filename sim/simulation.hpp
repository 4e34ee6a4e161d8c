// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/coverage.hpp"
#include "models/finished_phase.hpp"
#include "models/platform.hpp"
#include "models/system.hpp"
#include "profile/precision.hpp"
#include "profile/run_directory.hpp"
#include "workload/workload.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace iocast {

struct SimulationRequest {
  Platform platform;
  Workload workload;
  Placement placement;
  uint64_t seed = 0;
  std::string label;
  std::string out;                 ///< run directory; empty: none
  std::string op_stream_directory; ///< empty: none
  std::vector<std::string> command;
  bool time_limits = true;  ///< phases end after Phase::most_seconds
  bool trace       = false; ///< keep every operation in ops.h5 of the run directory
  bool brief       = false; ///< the result has neither the platform nor a phase's lists (Detail::brief)
  std::vector<PrecisionTarget>
      until; ///< when all are met in the phase `until_phase`, the simulation is over; empty: it is whole
  std::string until_phase;
  bool simgrid_flows = false; ///< SimGrid times the flows, see Network
};

/// A whole workload on a platform, simulated step by step: what iocast-sim and the page's module run. It knows no
/// SimGrid.
class Simulation {
public:
  /// Keeps a reference to `request`. Checks everything before anything is made on disk. @throws InputError, RunError
  explicit Simulation(const SimulationRequest& request);

  /// Whether flows are handed out, for SimGrid to time: System::new_transfers().
  bool hands_out_flows() const { return hands_out_flows_; }
  const Pattern& pattern() const { return *pattern_; }
  System& system() { return *system_; }
  /// Every rank takes its first operation; once, before the system runs.
  void start() { system_->start(); }
  /// Closes the run directory when the system has run. @return run.json's content @throws RunError when it got stuck
  nlohmann::ordered_json end();

private:
  void watch_precision();
  void begin_directory();
  void add_phase(FinishedPhase phase);
  void note_bounds();

  const SimulationRequest& request_;
  bool hands_out_flows_;
  std::unique_ptr<Pattern> pattern_;
  Coverage coverage_;
  std::optional<PrecisionWatch> precision_;
  std::vector<BufferSums> buffers_; ///< these as they were at the end of the last phase
  std::vector<CacheSums> caches_;
  std::vector<ExtentSums> extents_;
  uint64_t short_trains_ = 0;
  std::optional<OpTrace> trace_;
  std::optional<System> system_;
  std::optional<RunDirectory> directory_;
};

} // namespace iocast
