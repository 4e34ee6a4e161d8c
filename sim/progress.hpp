// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "workload/pattern.hpp"

#include <chrono>
#include <cstdint>

namespace iocast {

/// How far a long simulation is: one live line on a terminal, a line every 30 s elsewhere.
class SimulationProgress {
public:
  explicit SimulationProgress(const Pattern& pattern);
  void update(uint64_t requests, double simulated_seconds);
  void end();

private:
  using Clock     = std::chrono::steady_clock;
  uint64_t total_ = 0;
  bool terminal_;
  bool shown_                = false;
  Clock::time_point started_ = Clock::now();
  Clock::time_point next_;
};

} // namespace iocast
