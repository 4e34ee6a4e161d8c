// SPDX-License-Identifier: Apache-2.0
//
// What failures do to a system: requests that are lost and asked again.
#include "input/error.hpp"
#include "models/system.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace iocast {

/// The instance stops serving. What it has in service and in its queue is lost, in this order.
void System::fail(uint32_t which)
{
  const FailureSpec& spec = platform_.failures[which];
  Station& station        = stations_[spec.station];
  auto& instance          = station.instances[spec.instance];
  station.outages.begin(spec, now_, failures_[which].happen());
  if (const double next = failures_[which].next(); next < std::numeric_limits<double>::infinity())
    push(next, EventKind::failure, which);
  std::vector<JobId> lost = std::exchange(instance.running, {});
  while (!instance.waiting.empty())
    lost.push_back(instance.waiting.pop_front());
  instance.busy = 0;
  if (station.varies())
    station.shared[spec.instance].clear();
  for (auto& caches : caches_)
    if (caches.spec->station == static_cast<int32_t>(spec.station))
      caches.instances[spec.instance].clear();
  give_up_extents(lost);
  give_up_locks(lost);
  for (const JobId id : lost)
    lose(id, spec.instance);
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

/// The visit is to be asked again, as if it had never been.
void System::lose(JobId id, uint32_t lost_by)
{
  Job& job            = jobs_[id];
  job.locked          = false;
  exposed_[id].due    = -1;
  const double again  = stations_[step_of(id).target].outages.asked_again(exposed_[id].home, lost_by, now_);
  VisitSums& sums     = sums_of(id);
  sums.lost += again - job.since;
  ++sums.replays;
  push(again, EventKind::failure, static_cast<uint32_t>(failures_.size()) + id);
}

void System::ask_again(JobId id)
{
  const Step& step = step_of(id);
  jobs_[id].since  = now_;
  jobs_[id].work   = exposed_[id].work;
  if (find_server(id, step))
    enter(id, step);
}

/// False when nobody serves the request now; it is lost.
bool System::find_server(JobId id, const Step& step)
{
  const auto instance = stations_[step.target].outages.serving(exposed_[id].home, now_);
  if (instance)
    jobs_[id].instance = *instance;
  else
    lose(id, exposed_[id].home);
  return instance.has_value();
}

/// Of a transfer that begins: `instance` becomes who serves for it. False when nobody does, and it begins later.
bool System::find_end(JobId id, const Step& step, uint32_t& instance)
{
  const Outages& outages = stations_[step.target].outages;
  if (const auto serving = outages.serving(instance, now_)) {
    instance = *serving;
    return true;
  }
  const double again = outages.asked_again(instance, instance, now_);
  VisitSums& sums    = sums_of(id);
  sums.total += again - now_;
  sums.lost += again - now_;
  ++sums.replays;
  push(again, EventKind::resume, id);
  return false;
}

/// What was taken has been given back.
void System::check_nothing_is_held() const
{
  if (std::any_of(buffers_.begin(), buffers_.end(), [](const Buffers& buffers) { return buffers.sums.held > 0; }))
    return; // what still drains may hold them
  for (const auto& pools : pools_)
    if (std::any_of(pools.instances.begin(), pools.instances.end(), [](const Pool& pool) { return pool.is_making(); }))
      return; // and so may what is being made
  size_t held = locks_.held();
  for (const auto& extents : extents_)
    for (const auto& [key, object] : extents.objects)
      held += object.requests();
  size_t slots = 0;
  for (const auto& limits : limits_)
    for (const auto& limit : limits)
      slots += limit.used();
  if (slots > 0 || held > 0 || parts_ > 0)
    throw RunError(fmt::format("All clients of '{}' have ended, but {} slots of limits and {} locks are still held and {} parts of requests are under way; this is an error of the simulator.",
                               platform_.file, slots, held, parts_));
}

} // namespace iocast
