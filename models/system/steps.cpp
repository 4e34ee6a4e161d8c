// SPDX-License-Identifier: Apache-2.0
//
// Steps of common work, as training has them: ranks hand over what they have read, and wait where they are too far
// ahead.
#include "models/system.hpp"

#include <algorithm>

namespace iocast {

void System::make_steps()
{
  for (uint32_t rank = 0; rank < placement_.ranks; ++rank) {
    const uint32_t group = pattern_.group_of(rank);
    steps_.resize(std::max<size_t>(steps_.size(), group + size_t{1}));
    ++steps_[group].size;
  }
}

/// The rank's operation hands over steps. False when the rank waits for one to begin.
bool System::pace(JobId id)
{
  const Op op  = clients_[id].op;
  Steps& steps = steps_[pattern_.group_of(id)];
  for (uint64_t step = op.object + 1 - op.count; step <= op.object; ++step) {
    const uint64_t known = steps.times.count();
    if (step - known == steps.missing.size())
      steps.missing.push_back(steps.size);
    if (--steps.missing[step - known] > 0)
      continue;
    steps.missing.pop_front();
    steps.times.ready(to_ns(now_ - phase_start_), op.size);
    std::erase_if(steps.waiting, [&](const Steps::Waiting& one) {
      if (one.step > step)
        return false;
      await_step(one.id, begin_of(steps, one.step), one.since);
      return true;
    });
  }
  if (op.offset == StepTimes::no_step || (steps.times.is_known(op.offset) && begin_of(steps, op.offset) <= now_)) {
    trace(id, now_, now_);
    clients_[id].since = now_;
    return true;
  }
  think_actual_ -= now_; // until it goes on
  ++thinking_;
  if (steps.times.is_known(op.offset))
    await_step(id, begin_of(steps, op.offset), now_);
  else
    steps.waiting.push_back({op.offset, id, now_});
  return false;
}

/// The rank, which has waited since then, goes on when the step begins.
void System::await_step(JobId id, double begin, double since)
{
  const double end = std::max(begin, now_) + platform_.think_overshoot;
  think_asked_ += end - since;
  trace(id, since, end);
  push(end, EventKind::wake, id);
}

} // namespace iocast
