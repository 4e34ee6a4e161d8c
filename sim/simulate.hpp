// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "sim/simulation.hpp"

namespace iocast {

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
