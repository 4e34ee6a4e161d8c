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

/// Readings that cost a third of now_ns(): of the processor's time stamp counter, where the kernel itself keeps time by
/// it (only then does it run evenly and alike on all cores), else of the monotonic clock. Each thread that measures
/// converts them for itself.
class Ticks {
public:
  /// Looks what there is. @return whether it is the counter
  static bool begin();
  /// For another thread than that of begin(), once: it goes on from what was known then.
  static void begin_thread();
  /// Corrects the conversion by what both clocks say now. Readings from before are to be converted before; now and then
  /// is enough: between two calls the error grows by about a microsecond a second at first, and less once they have
  /// been compared for longer.
  static void align();

  static bool counts() { return counter_; }

  static int64_t now()
  {
#ifdef __x86_64__
    if (counter_) [[likely]]
      return static_cast<int64_t>(__builtin_ia32_rdtsc());
#endif
    return now_ns();
  }
  /// On the clock of now_ns().
  static int64_t to_ns(int64_t ticks)
  {
    const int64_t since = ticks - here_.ticks;
    return here_.ns + (counter_ ? static_cast<int64_t>(static_cast<double>(since) * here_.ns_per_tick) : since);
  }

  static int64_t from_ns(int64_t ns)
  {
    const int64_t since = ns - here_.ns;
    return here_.ticks + (counter_ ? static_cast<int64_t>(static_cast<double>(since) / here_.ns_per_tick) : since);
  }

private:
  /// Both clocks at their last comparison, and the rate.
  struct Conversion {
    int64_t ticks;
    int64_t ns;
    double ns_per_tick;
  };
  static inline bool counter_ = false;
  static inline thread_local Conversion here_{0, 0, 1};
};

/// Times one operation and its parts. The end of a part is the start of the next: one reading serves both.
class Stopwatch {
public:
  void start()
  {
    laps_  = 0;
    at_[0] = Ticks::now();
  }
  /// Ends a part; a compound operation calls it after each of its calls, at most `max_parts` times.
  void lap() { at_[++laps_] = Ticks::now(); }

  size_t laps() const { return laps_; }
  int64_t started_ns() const { return Ticks::to_ns(at_[0]); }
  int64_t ended_ns() const { return Ticks::to_ns(ended()); }
  /// In ticks.
  int64_t ended() const { return at_[laps_]; }
  /// The end of a part.
  int64_t lap_ns(size_t part) const { return Ticks::to_ns(at_[part + 1]); }

private:
  std::array<int64_t, max_parts + 1> at_{};
  size_t laps_ = 0;
};

} // namespace iocast
