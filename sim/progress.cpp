// SPDX-License-Identifier: Apache-2.0
#include "sim/progress.hpp"

#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <unistd.h>

namespace iocast {
namespace {

int for_a_program = -1; ///< file descriptor

}

void report_progress_to(int descriptor)
{
  for_a_program = descriptor;
}

SimulationProgress::SimulationProgress(const Pattern& pattern) : terminal_(isatty(STDERR_FILENO) == 1)
{
  for (const auto& [kind, count] : pattern.footprint().operations)
    total_ += count;
  next_ = started_ + interval();
}

std::chrono::milliseconds SimulationProgress::interval() const
{
  return std::chrono::milliseconds(terminal_ || for_a_program >= 0 ? 500 : 30000);
}

void SimulationProgress::update(uint64_t requests, double simulated_seconds)
{
  const auto now = Clock::now();
  if (now < next_)
    return;
  next_                = now + interval();
  const double elapsed = std::chrono::duration<double>(now - started_).count();
  const double share   = total_ ? std::min(1.0, static_cast<double>(requests) / static_cast<double>(total_)) : 1;
  const bool moves     = share > last_share_;
  const double left    = moves ? elapsed * (1 - share) / share : 0;
  last_share_          = share;
  if (for_a_program >= 0) {
    // While the share stands still nothing says when it ends.
    const auto line = fmt::format("{{\"share\": {:.4f}, \"seconds_left\": {}}}\n", share,
                                  moves ? fmt::format("{:.1f}", left) : "null");
    // In one piece; a program that is gone has ended this one too.
    [[maybe_unused]] const auto written = write(for_a_program, line.data(), line.size());
    return;
  }
  fmt::print(stderr, "{}simulating: {:5.1f} %  {:.2f} M requests/s  simulated {:.1f} s  {}{}", terminal_ ? "\r" : "",
             100 * share, static_cast<double>(requests) / elapsed * 1e-6, simulated_seconds,
             moves ? fmt::format("{:.0f} s left", left) : "stands still", terminal_ ? "\033[K" : "\n");
  std::fflush(stderr);
  shown_ = true;
}

void SimulationProgress::end()
{
  if (shown_ && terminal_)
    fmt::print(stderr, "\r\033[K");
}

} // namespace iocast
