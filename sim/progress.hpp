// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "workload/pattern.hpp"

#include <chrono>
#include <cstdint>

namespace iocast {

/// Simulations of this process, which runs for another program, write their progress to this file descriptor from now
/// on, and not to standard error: twice a second a line {"share": 0.34, "seconds_left": 12.5}.
void report_progress_to(int descriptor);

/// How far a long simulation is: one live line on a terminal, a line every 30 s elsewhere.
class SimulationProgress {
public:
  explicit SimulationProgress(const Pattern& pattern);
  void update(uint64_t requests, double simulated_seconds);
  void end();

private:
  using Clock = std::chrono::steady_clock;
  std::chrono::milliseconds interval() const;

  uint64_t total_ = 0;
  bool terminal_;
  bool shown_                = false;
  double last_share_         = 0; ///< at the update before
  Clock::time_point started_ = Clock::now();
  Clock::time_point next_;
};

} // namespace iocast
