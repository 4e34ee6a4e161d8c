// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "workload/op.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace iocast {

/// Steps of work that ranks of a group feed with data: training of a model on accelerators that wait for each other.
/// Step k begins when all ranks have read what they read for it and step k - 1 has ended, and computes for a fixed
/// time.
///
/// A think with OpFlag::paced hands over the `count` steps up to number `object`, each of `size` nanoseconds: this rank
/// has nothing left to read for them. Then the rank waits until step number `offset` begins; `no_step`: it goes on at
/// once. So readers are ahead of the computation by a bounded number of steps. Steps count from 0 in each phase, every
/// rank hands over each of them, in order.
class StepTimes {
public:
  static constexpr uint64_t no_step = UINT64_MAX;

  /// All ranks have read for the next step at `ready_ns`. Times are nanoseconds since the start of the phase.
  void ready(int64_t ready_ns, uint64_t compute_ns)
  {
    const int64_t begin_ns = begins_.empty() ? ready_ns : std::max(ready_ns, end_ns_);
    end_ns_                = begin_ns + static_cast<int64_t>(compute_ns);
    if (begins_.empty())
      first_end_ns_ = end_ns_;
    begins_.push_back(begin_ns);
  }
  uint64_t count() const { return begins_.size(); }
  bool is_known(uint64_t step) const { return step < begins_.size(); }
  int64_t begin_ns(uint64_t step) const { return begins_[step]; }
  /// When the first step ended; 0 without steps.
  int64_t first_end_ns() const { return first_end_ns_; }

private:
  std::vector<int64_t> begins_;
  int64_t end_ns_       = 0;
  int64_t first_end_ns_ = 0;
};

/// A think that hands over `count` steps up to `last` and waits for step `awaited`.
inline Op hand_over(uint64_t last, uint32_t count, uint64_t compute_ns, uint64_t awaited)
{
  Op op(OpKind::think, 0, last, compute_ns, awaited);
  op.count = count;
  op.flags = OpFlag::paced;
  return op;
}

} // namespace iocast
