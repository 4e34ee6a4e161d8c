// SPDX-License-Identifier: Apache-2.0
//
// Failures: a server stops, and its requests are lost and sent again.
#include "input/error.hpp"
#include "models/system.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace iocast {

void System::make_failures()
{
  for (uint32_t i = 0; i < platform_.failures.size(); ++i) {
    const auto& failure = platform_.failures[i];
    failures_.emplace_back(failure, options_.seed, i);
    Station& station = stations_[failure.station];
    station.outages.resize(platform_.stations[failure.station].count);
    station.running.resize(station.instances.size());
    exposed_.resize(placement_.ranks);
  }
}

/// The instance stops serving. What it has in service and in its queue is lost, in this order.
void System::fail(uint32_t which)
{
  const FailureSpec& spec = platform_.failures[which];
  Station& station        = stations_[spec.station];
  station.outages.begin(spec, now_, failures_[which].happen());
  if (const double next = failures_[which].next(); next < std::numeric_limits<double>::infinity())
    push(next, EventKind::failure, which);
  std::vector<JobId> lost = std::exchange(station.running[spec.instance], {});
  station.lose_waiting(links_, spec.instance, lost);
  const size_t serving = station.spec.discipline == Discipline::ps
                             ? std::min<size_t>(station.shared[spec.instance].size(), station.spec.servers)
                             : station.instances[spec.instance].busy;
  for (size_t server = 0; server < serving; ++server)
    station.occupancy.busy.down(now_);
  station.instances[spec.instance].busy = 0;
  if (station.varies())
    station.shared[spec.instance].clear();
  for (auto& caches : caches_)
    if (caches.spec->station == static_cast<int32_t>(spec.station))
      lose_cache(caches, spec.instance);
  give_up_extents(lost);
  give_up_locks(lost);
  for (const JobId id : lost)
    lose(id, spec.instance);
}

/// The visit is to begin again, as if it had never been.
void System::lose(JobId id, uint32_t lost_by)
{
  Job& job           = jobs_[id];
  job.locked         = false;
  exposed_[id].due   = -1;
  const double again = stations_[step_of(id).target].outages.sent_again_at(exposed_[id].home, lost_by, now_);
  ++sums_of(id).replays;
  if (++exposed_[id].lost > Exposed::most_lost) {
    const auto& station = platform_.stations[step_of(id).target];
    throw RunError(fmt::format("A request of {:.4g} s to the station '{}' of '{}' was lost {} times and would never be "
                               "served: the station fails more often than that. Lengthen 'every' of its failures, or "
                               "shorten its service.",
                               exposed_[id].work, station.name, platform_.file, Exposed::most_lost));
  }
  push(again, EventKind::failure, static_cast<uint32_t>(failures_.size()) + id);
}

void System::ask_again(JobId id)
{
  const Step& step = step_of(id);
  book<&VisitSums::lost>(id);
  jobs_[id].work = exposed_[id].work;
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
  const double again = outages.sent_again_at(instance, instance, now_);
  VisitSums& sums    = sums_of(id);
  sums.total += again - now_;
  sums.lost += again - now_;
  ++sums.replays;
  push(again, EventKind::resume, id);
  return false;
}

} // namespace iocast
