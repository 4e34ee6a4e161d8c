// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/law.hpp"
#include "models/platform.hpp"
#include "workload/random.hpp"

#include <cmath>

namespace iocast {

/// When a stall's windows lie: one in every period, from the period's (randomly shifted) start on, each with its own
/// length.
class StallClock {
public:
  StallClock(const StallSpec& spec, uint64_t seed, uint32_t number)
      : every_(spec.every)
      , seed_(seed)
      , number_(number)
      , sigma_(spec.sigma)
      , median_(spec.length * std::exp(-spec.sigma * spec.sigma / 2))
      , shift_(to_uniform(random_words(seed, Stream::stall, number, 0)[0]) * spec.every)
  {
  }

  /// The end of the window that `now` lies in, or `now` itself outside of all windows.
  double end_of_window(double now)
  {
    const double place = (now + shift_) / every_;
    const double k     = std::floor(place);
    if (k != window_) {
      const auto words = random_words(seed_, Stream::stall, number_, static_cast<uint64_t>(k) + 1);
      // A window can't outlive its period.
      const double length = std::min(median_ * std::exp(sigma_ * normal_quantile(to_uniform(words[0]))), every_);
      window_             = k;
      window_end_         = k * every_ - shift_ + length;
    }
    return std::max(now, window_end_);
  }

private:
  double every_;
  uint64_t seed_;
  uint32_t number_;
  double sigma_;
  double median_;
  double shift_;
  double window_     = -1;
  double window_end_ = 0;
};

} // namespace iocast
