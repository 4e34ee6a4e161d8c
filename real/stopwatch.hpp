// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "profile/recorder.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>

namespace iocast {

/// Nanoseconds of the monotonic clock: it never jumps, and reading it makes no system call.
inline int64_t now_ns()
{
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

/// Sleeps to a moment of now_ns(). It may return early, when a signal comes.
inline void sleep_until(int64_t moment_ns)
{
  const timespec t{moment_ns / 1'000'000'000, moment_ns % 1'000'000'000};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr);
}

/// Times one operation and its parts. The end of a part is the start of the next: one reading serves both.
class Stopwatch {
public:
  void start()
  {
    laps_  = 0;
    at_[0] = now_ns();
  }
  /// Ends a part; a compound operation calls it after each of its calls, at most `max_parts` times.
  void lap() { at_[++laps_] = now_ns(); }

  size_t laps() const { return laps_; }
  int64_t started_ns() const { return at_[0]; }
  int64_t ended_ns() const { return at_[laps_]; }
  int64_t part_ns(size_t part) const { return at_[part + 1] - at_[part]; }

private:
  std::array<int64_t, max_parts + 1> at_{};
  size_t laps_ = 0;
};

} // namespace iocast
