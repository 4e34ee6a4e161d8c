// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cassert>
#include <cstdint>

namespace iocast {

/// The time integral of a number that goes up and down by ones: of busy servers it is their busy time, of the requests
/// at a station the time that these spend there (Little 1961). Exact whatever begins before a phase and ends after it.
class Integral {
public:
  void up(double now)
  {
    sum_ -= now;
    ++count_;
  }
  void down(double now)
  {
    assert(count_ > 0);
    sum_ += now;
    --count_;
  }
  /// Someone is there for this many seconds, which are over at the next call of at().
  void add(double seconds) { sum_ += seconds; }
  /// From time 0 on, which no up() or down() comes before, until `now`, which none is behind.
  double at(double now) const { return sum_ + static_cast<double>(count_) * now; }
  int64_t count() const { return count_; }

private:
  double sum_    = 0; ///< ends less begins
  int64_t count_ = 0;
};

/// How much of a station is in use. Rates, utilisation and mean queue lengths follow from it by division alone.
struct Occupancy {
  Integral busy;    ///< servers that are held
  Integral present; ///< requests, from asking to leaving, each part of a striped one counted
  Integral others; ///< of these, those of others' work, drains, refills and fetches, which may stay from phase to phase
};

} // namespace iocast
