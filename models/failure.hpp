// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/platform.hpp"
#include "models/stall.hpp"
#include "workload/random.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

namespace iocast {

/// When an instance fails, and how long it is away each time.
class FailureClock {
public:
  FailureClock(const FailureSpec& spec, uint64_t seed, uint32_t number)
      : at_(spec.at), every_(spec.every), length_(spec.length), sigma_(spec.sigma), seed_(seed), number_(number)
  {
  }

  /// Of the next failure; infinity when there is none.
  double next() const
  {
    return times_ == 0  ? at_
           : every_ > 0 ? at_ + static_cast<double>(times_) * every_
                        : std::numeric_limits<double>::infinity();
  }
  /// The next failure happens: how long the instance is away. A failure that outlasts the interval delays the next,
  /// which follows at once, so that length / every of all time is lost whatever sigma is.
  double happen()
  {
    const double begin = next();
    double length      = draw();
    while (every_ > 0 && next() <= begin + length)
      length += draw();
    return length;
  }

private:
  double draw() { return absence_length(length_, sigma_, random_words(seed_, Stream::failure, number_, times_++)); }

  double at_;
  double every_;
  double length_;
  double sigma_;
  uint64_t seed_;
  uint32_t number_;
  uint64_t times_ = 0;
};

/// Which instances of a station are away, and who serves their requests meanwhile.
class Outages {
public:
  void resize(uint32_t instances)
  {
    any_ = true;
    of_.resize(instances);
  }
  /// The station has instances that fail.
  bool any() const { return any_; }

  void begin(const FailureSpec& spec, double now, double length)
  {
    of_[spec.instance] = {now + length, spec.to ? now + spec.takeover : never, spec.to.value_or(0), spec.timeout};
  }

  /// The instance that serves a request for `home` now, if there is one: itself, or its pair while it is away.
  std::optional<uint32_t> serving(uint32_t home, double now) const
  {
    const Outage& outage = of_[home];
    if (now >= outage.back_at)
      return home;
    if (now >= outage.takeover_at && now >= of_[outage.pair].back_at)
      return outage.pair;
    return std::nullopt;
  }

  /// When a request for `home` that the instance `lost_by` loses now is sent again: as soon as its client has noticed
  /// and an instance serves. By then that one may be away too, and it is lost once more.
  double sent_again_at(uint32_t home, uint32_t lost_by, double now) const
  {
    const Outage& outage = of_[home];
    const double by_pair = std::max(outage.takeover_at, of_[outage.pair].back_at);
    const double served  = std::max(now, std::min(outage.back_at, by_pair));
    return std::max(now + of_[lost_by].timeout, served);
  }

private:
  static constexpr double never = std::numeric_limits<double>::infinity();
  struct Outage {
    double back_at     = 0;
    double takeover_at = never;
    uint32_t pair      = 0;
    double timeout     = 0;
  };
  bool any_ = false;       ///< read at each visit
  std::vector<Outage> of_; ///< the latest of each instance
};

/// What is to be known of a job besides in a system that fails.
struct Exposed {
  double due    = -1; ///< time of the event that its visit waits for
  uint32_t kind = 0;  ///< of that event
  uint32_t home = 0;  ///< the instance that it asks, whoever serves it
  double work   = 0;  ///< what it asks for, however many ask at the same time
  uint32_t lost = 0;  ///< times that this visit was

  /// A visit that is lost more often never ends: it begins anew with the same service each time.
  static constexpr uint32_t most_lost = 1000;

  /// False for an event of a service that was lost since.
  bool takes(double time, uint32_t event_kind)
  {
    if (time != due || event_kind != kind)
      return false;
    due = -1;
    return true;
  }
};

} // namespace iocast
