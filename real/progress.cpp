// SPDX-License-Identifier: Apache-2.0
#include "real/progress.hpp"

#include "profile/summary.hpp"

#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <limits>
#include <unistd.h>

namespace iocast {

namespace {
constexpr int64_t live_ns = 500'000'000;
constexpr int64_t line_ns = 30'000'000'000;

std::string time_left(double seconds)
{
  if (seconds < 120)
    return fmt::format("{:.0f} s", seconds);
  if (seconds < 7200)
    return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

/// ", p50 21.3us, p99 412us, 3 errors"
std::string measured(const PhaseRecorder& recorder)
{
  Histogram all;
  for (size_t k = 0; k < op_count; ++k)
    if (const auto kind = static_cast<OpKind>(k); recorder.has(kind))
      all.merge(recorder.of_kind(kind).whole);
  std::string text;
  if (all.count() > 0)
    text = fmt::format(", p50 {}, p99 {}", duration_text(all.quantile_ns(0.5) * 1e-9),
                       duration_text(all.quantile_ns(0.99) * 1e-9));
  if (const uint64_t errors = recorder.errors(); errors > 0)
    text += fmt::format(", {} error{}", errors, errors == 1 ? "" : "s");
  return text;
}
} // namespace

Progress::Progress(const Footprint& footprint, uint32_t ranks, bool speaks)
    : total_(0), ranks_(ranks), speaks_(speaks), terminal_(isatty(STDERR_FILENO) != 0)
{
  for (const auto& [kind, count] : footprint.operations)
    total_ += count;
}

void Progress::begin_phase(const std::string& title, int64_t start_ns, const PhaseRecorder& recorder)
{
  title_        = title;
  recorder_     = &recorder;
  phase_ns_     = start_ns;
  before_phase_ = operations_;
  next_ns_      = speaks_ ? start_ns + (terminal_ ? live_ns : line_ns) : std::numeric_limits<int64_t>::max();
}

void Progress::show(int64_t now_ns)
{
  const auto total   = static_cast<double>(std::max<uint64_t>(1, total_));
  const double share = std::min(1.0, static_cast<double>(operations_) * ranks_ / total);
  const double rate =
      static_cast<double>(operations_ - before_phase_) * ranks_ / static_cast<double>(now_ns - phase_ns_) * 1e9;
  const double left = (1 - share) * total / rate;
  const auto line   = fmt::format("{}: {:.0f} % of the run done, {:.0f} operations/s{}, about {} left", title_,
                                  100 * share, rate, measured(*recorder_), time_left(left));
  if (terminal_)
    fmt::print(stderr, "\r{}\x1b[K", line);
  else
    fmt::print(stderr, "{}\n", line);
  std::fflush(stderr);
  shown_   = true;
  next_ns_ = now_ns + (terminal_ ? live_ns : line_ns);
}

void Progress::end_phase()
{
  if (shown_ && terminal_)
    fmt::print(stderr, "\r\x1b[K");
  shown_ = false;
}

} // namespace iocast
