// SPDX-License-Identifier: Apache-2.0
//
// Locks that a visit holds for a part of its service. Those on ranges of objects are in extents.cpp.
#include "models/system.hpp"

#include <algorithm>

namespace iocast {

void System::make_locks()
{
  shared_locks_.resize(platform_.locks.size());
  platform_.for_each_step([&](const Step& step, const BufferSpec*) {
    if (step.lock >= 0 && step.lock_shared)
      shared_locks_[static_cast<size_t>(step.lock)] = true;
  });
}

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
  const uint64_t key = lock_key(id, step.lock);
  return step.lock_shared ? locks_.acquire_shared(links_, key, id) : locks_.acquire(links_, key, id);
}

/// The job gives up a lock, which others may have shared.
void System::give_up_shared(JobId id)
{
  const uint64_t key = lock_key(id, step_of(id).lock);
  locks_.give_up(key);
  serve_admitted(key);
}

/// Those that can have the lock now are served.
void System::serve_admitted(uint64_t key)
{
  const auto shares = [this](JobId job) { return step_of(job).lock_shared; };
  for (JobId next = locks_.admit(links_, key, shares); next != nobody; next = locks_.admit(links_, key, shares))
    serve(next);
}

/// The lock comes from whoever keeps it.
double System::hand_over(JobId id, const Step& step)
{
  const uint64_t key   = lock_key(id, step.lock);
  ExtentLocks* extents = extents_of(step);
  if (const auto& spec = platform_.locks[static_cast<size_t>(step.lock)]; spec.hot > 0 && is_hot(key, spec.hot)) {
    if (keepers_.has(key, jobs_[id].owner))
      return 0;
    return wait_for_lock(id, draw(id, *spec.message));
  }
  const uint32_t times =
      extents ? extents->objects[key].called_back(id) : keepers_.take(key, jobs_[id].owner, step.lock_shared);
  const bool together = step.lock_shared && !extents;
  if (times == 0 && !together)
    return 0;
  double seconds = 0;
  if (times > 0) {
    seconds            = times * draw(id, *platform_.locks[static_cast<size_t>(step.lock)].hand_over);
    jobs_[id].recalled = true;
    if (together)
      keepers_.there_at(key) = now_ + seconds;
  } else {
    seconds = std::max(0.0, keepers_.there_at(key) - now_);
  }
  return wait_for_lock(id, seconds);
}

/// Whether the lock was used within the last `hot` seconds; now it is used again.
bool System::is_hot(uint64_t key, double hot)
{
  const auto [use, first] = used_at_.try_emplace(key, now_);
  const bool recently     = !first && now_ - use->second < hot;
  use->second             = now_;
  return recently;
}

double System::wait_for_lock(JobId id, double seconds)
{
  sums_of(id).lock_wait += seconds;
  jobs_[id].since += seconds;
  return seconds;
}

/// A lock that is held for part of a service goes with the server. Were it kept, those who come later and get the
/// server would wait for the lock, and the one who holds the lock for the server.
void System::give_up_locks(const std::vector<JobId>& lost)
{
  std::vector<JobId> holders;
  std::vector<uint64_t> left;
  for (const JobId id : lost)
    if (jobs_[id].locked) {
      const uint64_t key = lock_key(id, step_of(id).lock);
      if (locks_.leave(links_, key, id))
        left.push_back(key);
      else
        holders.push_back(id);
    }
  for (const JobId id : holders) {
    jobs_[id].locked = false;
    give_up_shared(id);
  }
  for (const uint64_t key : left) // readers who waited behind a writer that does not wait any longer
    serve_admitted(key);
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
