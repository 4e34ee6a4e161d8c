// SPDX-License-Identifier: Apache-2.0
//
// Locks that a visit holds for a part of its service. Those on ranges of objects are in extents.cpp.
#include "models/system.hpp"

#include <algorithm>
#include <utility>

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
  if (step.lock_shared)
    return locks_.acquire_shared(links_, key, id);
  if (!locks_.acquire(links_, key, id))
    return false;
  if (!held_ahead_[static_cast<size_t>(step.lock)])
    return true;
  const double end = keepers_[key].held_until;
  if (end > now_)
    await(end, EventKind::lock_free, id);
  return end <= now_;
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

/// Locks of one holder that are only held at stations where nobody waits. Who finds one free goes on to the end of its
/// visit without an event; who comes meanwhile waits for that moment.
void System::find_locks_held_ahead()
{
  for (size_t lock = 0; lock < platform_.locks.size(); ++lock)
    held_ahead_.push_back(platform_.locks[lock].hand_over && !shared_locks_[lock] && extent_of_[lock] < 0);
  platform_.for_each_step([&](const Step& step, const BufferSpec*) {
    if (step.kind == Step::Kind::visit && step.lock >= 0 && (!stations_[step.target].never_waits || step.stripes != 1))
      held_ahead_[static_cast<size_t>(step.lock)] = false;
  });
}

/// A visit with a lock that nothing can hold up: when it ends. Negative: it goes from event to event.
double System::hold_lock_ahead(JobId id, const Step& step)
{
  if (!held_ahead_[static_cast<size_t>(step.lock)] || !is_client(id))
    return -1;
  const uint64_t key   = lock_key(id, step.lock);
  LockKeepers& keepers = keepers_[key];
  if (keepers.held_until > now_ || locks_.is_held(key))
    return -1;
  const double work   = work_of(id, step);
  const double locked = work * step.lock_share;
  jobs_[id].recalled  = false;
  keepers.held_until  = now_ + (locked + hand_over(id, step, keepers));
  return keepers.held_until + (work - locked);
}

/// The lock comes from whoever keeps it: seconds until it is there.
double System::hand_over(JobId id, const Step& step)
{
  const uint64_t key = lock_key(id, step.lock);
  if (ExtentLocks* extents = extents_of(step)) {
    const uint32_t times = extents->objects[key].called_back(id);
    return times > 0 ? wait_for_lock(id, call_back(id, step, times)) : 0;
  }
  return hand_over(id, step, keepers_[key]);
}

double System::hand_over(JobId id, const Step& step, LockKeepers& keepers)
{
  const uint32_t node = jobs_[id].owner;
  if (const auto& spec = platform_.locks[static_cast<size_t>(step.lock)]; spec.hot > 0 && is_hot(keepers, spec.hot))
    return keepers.has(node) ? 0 : wait_for_lock(id, draw(id, *spec.message));
  if (keepers.take(node, step.lock_shared)) {
    const double seconds = call_back(id, step, 1);
    if (step.lock_shared)
      keepers.there_at = now_ + seconds;
    return wait_for_lock(id, seconds);
  }
  return step.lock_shared ? wait_for_lock(id, std::max(0.0, keepers.there_at - now_)) : 0;
}

/// `times` nodes give it up, one after the other.
double System::call_back(JobId id, const Step& step, uint32_t times)
{
  jobs_[id].recalled = true;
  return times * draw(id, *platform_.locks[static_cast<size_t>(step.lock)].hand_over);
}

/// Whether the lock was used within the last `hot` seconds; now it is used again.
bool System::is_hot(LockKeepers& keepers, double hot) const
{
  return now_ - std::exchange(keepers.used_at, now_) < hot;
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
