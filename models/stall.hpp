// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "input/portable.hpp"
#include "models/law.hpp"
#include "models/platform.hpp"
#include "workload/random.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace iocast {

/// How long an absence lasts: lognormal about its mean `length`; `sigma` is the standard deviation of its logarithm.
inline double absence_length(double length, double sigma, const std::array<uint32_t, 4>& words)
{
  return sigma > 0 ? length * portable::exp(sigma * normal_quantile(to_uniform(words[0])) - sigma * sigma / 2) : length;
}

/// When a stall's windows lie: one begins in every period, at the period's (randomly shifted) start, each with its own
/// length. One that outlasts its period delays the next, so that the share of time stalled is length / every whatever
/// sigma is. The mean length grows with the operations since the last window began: length + per_change * max(0, n -
/// absorbed).
class StallClock {
public:
  StallClock(const StallSpec& spec, uint64_t seed, uint32_t number)
      : every_(spec.every)
      , length_(spec.length)
      , sigma_(spec.sigma)
      , per_change_(spec.per_change)
      , absorbed_(spec.absorbed)
      , seed_(seed)
      , number_(number)
      , shift_(to_uniform(random_words(seed, Stream::stall, number, 0)[0]) * spec.every)
  {
  }

  /// The end of the window that `now` lies in, or `now` itself outside of all windows.
  double end_of_window(double now)
  {
    if (now < begin_) [[unlikely]] {
      begin_ = end_ = start_of_all;
      next_         = start_of(windows_ = 0);
    }
    while (next_ <= std::max(now, end_))
      begin_window(now);
    return std::max(now, end_);
  }

  /// One of the operations begins that the next window has to do with.
  void changed() { ++changes_; }

private:
  static constexpr double start_of_all = -std::numeric_limits<double>::infinity();

  /// Windows that are looked at where nobody came for long. Those before could matter only by a delay that lasts for so
  /// many periods, each of which has room for the mean window.
  static constexpr uint64_t most_looked_at = 256;

  double start_of(uint64_t window) const { return static_cast<double>(window) * every_ - shift_; }

  [[gnu::noinline]] void begin_window(double now)
  {
    if (next_ > end_) {
      if (const double missed = (now - next_) / every_ - most_looked_at; missed >= 1 && changes_ == 0)
        next_ = start_of(windows_ += static_cast<uint64_t>(missed));
      begin_ = end_ = next_;
    }
    const double mean = length_ + per_change_ * std::max(0.0, changes_ - absorbed_);
    end_ += absence_length(mean, sigma_, random_words(seed_, Stream::stall, number_, ++windows_));
    next_    = start_of(windows_);
    changes_ = 0;
  }

  double every_;
  double length_;
  double sigma_;
  double per_change_;
  double absorbed_;
  uint64_t seed_;
  uint32_t number_;
  double shift_;
  uint64_t windows_ = 0;            ///< begun so far
  double next_      = -shift_;      ///< start of the next one
  double changes_   = 0;            ///< operations since the latest began
  double begin_     = start_of_all; ///< of the latest, with those that it delays
  double end_       = start_of_all;
};

} // namespace iocast
