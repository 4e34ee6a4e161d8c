// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/platform.hpp"
#include "profile/precision.hpp"
#include "profile/run_directory.hpp"
#include "workload/workload.hpp"

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

/// What the simulator itself took; not part of the run directory, which is the same on every machine.
struct SimulationCost {
  uint64_t requests       = 0;
  uint64_t events         = 0;
  double wall_seconds     = 0;
  uint64_t peak_rss_bytes = 0;
};

/// Simulates the whole workload on the platform and writes the run directory.
/// @return run.json's content @throws InputError, RunError
nlohmann::ordered_json simulate(const SimulationRequest& request, SimulationCost& cost);

} // namespace iocast
