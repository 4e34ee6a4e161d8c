// SPDX-License-Identifier: Apache-2.0
//
// A visit to a station: the request arrives, waits for a server, is stalled, is served, and leaves.
#include "input/portable.hpp"
#include "models/system.hpp"

#include <algorithm>
#include <cmath>

namespace iocast {

/// The service that a visit asks for, seconds at speed 1.
double System::work_of(JobId id, const Step& step)
{
  double work = draw(id, step) / stations_[step.target].spec.rating;
  if (has_op(id)) {
    if (step.times != Times::once)
      work *= static_cast<double>(step.times == Times::entry ? clients_[id].op.size : clients_[id].op.count);
    if (step.bandwidth > 0)
      work += static_cast<double>(op_of(id).bytes()) / step.stripes / step.bandwidth;
    if (stations_[step.target].spec.per == Per::node)
      work *= platform_.slow.at(jobs_[id].owner, static_cast<uint32_t>(step.target)) *
              (node_speed_.empty() ? 1 : node_speed_[jobs_[id].owner]) * (is_client(id) ? wake_slowdown_ : 1);
  }
  return work;
}

void System::begin_visit(JobId id, const Step& step)
{
  if (step.stripes != 1) {
    split_visit(id, step);
    return;
  }
  if (has_op(id))
    jobs_[id].instance = instance_for(id, stations_[step.target].spec);
  arrive(id, step, work_of(id, step));
}

/// The job has come to its instance of the station and asks for so much work, seconds at speed 1.
void System::arrive(JobId id, const Step& step, double work)
{
  Station& station = stations_[step.target];
  Job& job         = jobs_[id];
  job.work         = work;
  job.requested    = now_;
  job.since        = now_;
  station.occupancy.present.up(now_);
  if (job.beside)
    station.occupancy.others.up(now_);
  if (station.outages.any()) [[unlikely]] {
    exposed_[id].home = job.instance;
    exposed_[id].work = work;
    exposed_[id].lost = 0;
    if (!find_server(id, step))
      return;
  }
  enter(id, step);
}

/// The job stands before the instance that will serve it.
void System::enter(JobId id, const Step& step)
{
  Station& station = stations_[step.target];
  Job& job         = jobs_[id];
  if (station.spec.crowding > 0)
    job.work *= 1 + station.spec.crowding *
                        portable::log1p(static_cast<double>(station.waiting(job.instance)) / station.spec.servers);
  job.demand = job.work;
  job.since  = now_;
  switch (station.spec.discipline) {
    case Discipline::timeslice:
      if (const double end = end_of_stall(job, step.target); end > now_)
        await(end, EventKind::stall_over, id);
      else
        enter_timeslice(id);
      break;
    case Discipline::ps:
      begin_service(id);
      break;
    case Discipline::fcfs:
      if (station.seize(links_, id, job)) {
        station.occupancy.busy.up(now_);
        begin_service(id);
      }
      break;
  }
}

double System::end_of_stall(const Job& job, uint32_t station)
{
  double end = now_;
  for (const uint32_t stall : stalls_at_[station])
    if (platform_.stalls[stall].operations[static_cast<size_t>(job.kind)])
      end = std::max(end, stalls_[stall].end_of_window(now_));
  return end;
}

/// The job has a server.
void System::begin_service(JobId id)
{
  const Step& step = step_of(id);
  Job& job         = jobs_[id];
  book<&VisitSums::wait>(id);
  if (stations_[step.target].outages.any()) [[unlikely]]
    stations_[step.target].running[job.instance].push_back(id);
  if (!stalls_at_[step.target].empty()) {
    for (const uint32_t stall : stalls_at_[step.target])
      if (platform_.stalls[stall].operations[static_cast<size_t>(job.kind)])
        stalls_[stall].changed();
    if (const double end = end_of_stall(job, step.target); end > now_) {
      await(end, EventKind::stall_over, id);
      return;
    }
  }
  take_lock(id);
}

/// The job has all it needs for its next stretch of service: what it does with the lock, or all the rest.
void System::serve(JobId id)
{
  const Step& step = step_of(id);
  Station& station = stations_[step.target];
  Job& job         = jobs_[id];
  double stretch   = job.demand;
  if (job.locked) {
    book<&VisitSums::lock_wait>(id);
    stretch = job.work * step.lock_share;
  }
  job.demand -= stretch;
  if (job.locked && platform_.locks[static_cast<size_t>(step.lock)].hand_over)
    stretch += hand_over(id, step);
  if (station.varies()) {
    station.shared[job.instance].add(id, stretch, now_, station.speeds);
    if (station.spec.discipline == Discipline::ps && station.shared[job.instance].size() <= station.spec.servers)
      station.occupancy.busy.up(now_);
    schedule_departure(station, job.instance);
  } else {
    await(now_ + stretch, EventKind::served, id);
  }
}

void System::served(JobId id)
{
  Job& job = jobs_[id];
  if (job.locked) {
    job.locked = false;
    if (ExtentLocks* extents = extents_of(step_of(id)))
      give_back_extents(id, step_of(id), *extents);
    else if (shared_locks_[static_cast<size_t>(step_of(id).lock)])
      give_up_shared(id);
    else if (const JobId next = locks_.release(links_, lock_key(id, step_of(id).lock)); next != nobody)
      serve(next);
    if (job.demand > 0) {
      serve(id);
      return;
    }
  }
  end_visit(id);
}

void System::end_visit(JobId id)
{
  const Step& step = step_of(id);
  Station& station = stations_[step.target];
  Job& job         = jobs_[id];
  VisitSums& sums  = sums_of(id);
  ++sums.visits;
  sums.total += now_ - in_phase(job, job.requested);
  station.occupancy.present.down(now_);
  if (job.beside)
    station.occupancy.others.down(now_);
  if (station.outages.any()) [[unlikely]]
    std::erase(station.running[job.instance], id);
  if (station.spec.discipline == Discipline::fcfs) {
    if (const JobId next = station.release(links_, job.instance); next != nobody) {
      if (!station.lines.empty())
        if (const JobId soon = station.lines[job.instance].ahead(3); soon != nobody)
          prefetch(soon);
      begin_service(next);
    } else {
      station.occupancy.busy.down(now_);
    }
  } else if (station.spec.discipline == Discipline::ps) {
    sums.wait += std::max(0.0, now_ - in_phase(job, job.since) - job.work);
  }
  const JobId whole = has_op(id) ? id : job.owner;
  if (whole == nobody) {
    free_jobs_.push_back(id);
    return;
  }
  if (whole != id && !join_part(id))
    return;
  ++jobs_[whole].at;
  advance(whole);
}

/// A visit of others' work that may end after the phase.
void System::visit_ahead(Station& station, double begin, double work)
{
  station.occupancy.others.add(work);
  if (visits_ahead_.size() >= 1024)
    std::erase_if(visits_ahead_, [this](const VisitAhead& visit) { return visit.end <= now_; });
  visits_ahead_.push_back({static_cast<uint32_t>(&station - stations_.data()), begin, begin + work});
}

/// The visit goes on at that time, unless it is lost before.
void System::await(double time, EventKind kind, JobId id)
{
  if (!exposed_.empty()) [[unlikely]] {
    exposed_[id].due  = time;
    exposed_[id].kind = static_cast<uint32_t>(kind);
  }
  push(time, kind, id);
}

void System::schedule_departure(Station& station, uint32_t instance)
{
  SharedServers& servers = station.shared[instance];
  if (servers.empty()) {
    servers.scheduled = -1;
    return;
  }
  const double time = servers.next_departure(now_, station.speeds);
  if (time == servers.scheduled)
    return;
  servers.scheduled = time;
  push(time, EventKind::shared_departure, station.first_instance + instance);
}

void System::shared_departure(uint32_t instance_number)
{
  Station& station        = station_of_instance(instance_number);
  const uint32_t instance = instance_number - station.first_instance;
  SharedServers& servers  = station.shared[instance];
  if (servers.empty() || servers.scheduled != now_)
    return; // arrivals or departures since have moved it
  const JobId id    = servers.pop(now_, station.speeds);
  servers.scheduled = -1;
  if (station.spec.discipline == Discipline::ps && servers.size() < station.spec.servers)
    station.occupancy.busy.down(now_);
  schedule_departure(station, instance);
  served(id);
}

} // namespace iocast
