// SPDX-License-Identifier: Apache-2.0
#include "sim/progress.hpp"

#include <cstdio>
#include <fmt/format.h>
#include <unistd.h>

namespace iocast {

SimulationProgress::SimulationProgress(const Pattern& pattern) : terminal_(isatty(STDERR_FILENO) == 1)
{
  for (const auto& [kind, count] : pattern.footprint().operations)
    total_ += count;
  next_ = started_ + std::chrono::seconds(terminal_ ? 1 : 30);
}

void SimulationProgress::update(uint64_t requests, double simulated_seconds)
{
  const auto now = Clock::now();
  if (now < next_)
    return;
  next_                = now + (terminal_ ? std::chrono::milliseconds(500) : std::chrono::seconds(30));
  const double elapsed = std::chrono::duration<double>(now - started_).count();
  const double share   = total_ ? static_cast<double>(requests) / static_cast<double>(total_) : 1;
  fmt::print(stderr, "{}simulating: {:5.1f} %  {:.2f} M requests/s  simulated {:.1f} s  {:.0f} s left{}",
             terminal_ ? "\r" : "", 100 * share, static_cast<double>(requests) / elapsed * 1e-6, simulated_seconds,
             share > 0 ? elapsed * (1 - share) / share : 0, terminal_ ? "\033[K" : "\n");
  std::fflush(stderr);
  shown_ = true;
}

void SimulationProgress::end()
{
  if (shown_ && terminal_)
    fmt::print(stderr, "\r\033[K");
}

} // namespace iocast
