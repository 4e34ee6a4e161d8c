// SPDX-License-Identifier: Apache-2.0
//
// Locks that a visit holds for a part of its service. Those on ranges of objects are in extents.cpp.
#include "models/system.hpp"

namespace iocast {

void System::take_lock(JobId id)
{
  const Step& step = step_of(id);
  Job& job         = jobs_[id];
  if (step.lock >= 0 && step.lock_share > 0) {
    job.locked   = true;
    job.recalled = false;
    if (!acquire_lock(id, step))
      return;
  }
  serve(id);
}

/// False when the job waits for it.
bool System::acquire_lock(JobId id, const Step& step)
{
  if (ExtentLocks* extents = extents_of(step))
    return take_extents(id, step, *extents);
  return locks_.acquire(links_, lock_key(id, step.lock), id);
}

/// The lock comes from whoever keeps it.
double System::hand_over(JobId id, const Step& step)
{
  const uint64_t key   = lock_key(id, step.lock);
  ExtentLocks* extents = extents_of(step);
  const uint32_t times = extents ? extents->objects[key].called_back(id) : keepers_.take(key, jobs_[id].owner, step.lock_shared);
  if (times == 0)
    return 0;
  const double seconds = times * draw(id, *platform_.locks[static_cast<size_t>(step.lock)].hand_over);
  jobs_[id].recalled   = true;
  sums_of(id).lock_wait += seconds;
  jobs_[id].since += seconds;
  return seconds;
}

/// A lock that is held for part of a service goes with the server. Were it kept, those who come later and get the server would
/// wait for the lock, and the one who holds the lock for the server.
void System::give_up_locks(const std::vector<JobId>& lost)
{
  std::vector<JobId> holders;
  for (const JobId id : lost)
    if (jobs_[id].locked && !locks_.leave(links_, lock_key(id, step_of(id).lock), id))
      holders.push_back(id);
  for (const JobId id : holders) {
    jobs_[id].locked = false;
    if (const JobId next = locks_.release(links_, lock_key(id, step_of(id).lock)); next != nobody)
      serve(next);
  }
}

uint64_t System::lock_key(JobId id, int32_t lock) const
{
  const uint64_t which = static_cast<uint64_t>(lock) << 56;
  switch (platform_.locks[static_cast<size_t>(lock)].per) {
    case Per::system:
      return which;
    case Per::node:
      return which | jobs_[id].owner;
    case Per::object:
      return which | (mix(mix(op_of(id).dataset) ^ op_of(id).object) >> 8);
    default:
      return which | op_of(id).dataset;
  }
}

} // namespace iocast
