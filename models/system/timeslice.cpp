// SPDX-License-Identifier: Apache-2.0
//
// A visit to a timeslice station: round robin, but a job that needs no wait keeps its server from visit to visit.
#include "models/system.hpp"

#include <algorithm>

namespace iocast {

void System::enter_timeslice(JobId id)
{
  const uint32_t target = step_of(id).target;
  Station& station      = stations_[target];
  Job& job              = jobs_[id];
  const JobId core      = slices_[id].core;
  if (core != nobody && core != station.first_instance + job.instance)
    leave_core(id);
  job.in_timeslice = true;
  job.since        = now_;
  if (slices_[id].core == nobody) {
    StationInstance& instance = station.instances[job.instance];
    if (instance.busy < station.spec.servers)
      ++instance.busy;
    else if (!station.spec.wakeup_preempts || starves(instance, station.spec.quantum) || !preempt(station, job.instance)) {
      slices_[id].end = now_;
      instance.waiting.push_back(id);
      return;
    }
    take_core(id, station, job.instance);
  }
  run_slice(id);
}

/// The server is counted as busy already.
void System::take_core(JobId id, Station& station, uint32_t instance)
{
  slices_[id].core = station.first_instance + instance;
  slices_[id].end  = now_ + station.spec.quantum;
  station.running[instance].jobs.push_back(id);
}

void System::give_up_core(JobId id, Station& station, uint32_t instance)
{
  slices_[id].core = nobody;
  auto& running    = station.running[instance].jobs;
  *std::find(running.begin(), running.end(), id) = running.back();
  running.pop_back();
}

/// Someone has waited so long that a fair scheduler lets nobody pass any more. While a job waits, its slice's end says since when.
bool System::starves(const StationInstance& instance, double quantum) const
{
  return !instance.waiting.empty() && now_ - slices_[instance.waiting.front()].end > quantum;
}

/// Takes a server from a job that is at work; that one waits at the head of the queue and goes on where it was.
bool System::preempt(Station& station, uint32_t number)
{
  Running& running = station.running[number];
  for (size_t tries = 0; tries < running.jobs.size(); ++tries) {
    const JobId victim = running.jobs[running.next_victim++ % running.jobs.size()];
    Slice& slice       = slices_[victim];
    if (!jobs_[victim].in_timeslice || slice.stretch_end <= now_)
      continue; // between two visits, or done at this very moment
    jobs_[victim].demand += (slice.stretch_end - now_) * slice.pace;
    slice.stretch_end = -1;
    slice.end         = now_;
    give_up_core(victim, station, number);
    station.instances[number].waiting.push_front(victim);
    return true;
  }
  return false;
}

/// The job holds a server; it works until it is done or its slice is over.
void System::run_slice(JobId id)
{
  Station& station          = stations_[step_of(id).target];
  const uint32_t number     = jobs_[id].instance;
  StationInstance& instance = station.instances[number];
  if (slices_[id].end <= now_) {
    if (!instance.waiting.empty()) {
      give_up_core(id, station, number);
      const JobId next = instance.waiting.pop_front();
      slices_[id].end  = now_;
      instance.waiting.push_back(id);
      take_core(next, station, number);
      id = next;
    } else {
      slices_[id].end = now_ + station.spec.quantum;
    }
  }
  Job& job           = jobs_[id];
  Slice& slice       = slices_[id];
  const double speed = station.speeds.empty() ? 1 : station.speeds[instance.busy];
  const double need  = job.demand / speed;
  const double worked = std::min(need, slice.end - now_);
  job.demand          = worked == need ? 0 : job.demand - worked * speed;
  slice.pace          = static_cast<float>(speed);
  slice.stretch_end   = now_ + worked;
  push(slice.stretch_end, EventKind::slice_over, id);
}

void System::slice_over(JobId id)
{
  if (slices_[id].stretch_end != now_)
    return; // it was preempted since
  if (jobs_[id].demand > 0) {
    run_slice(id);
    return;
  }
  jobs_[id].in_timeslice = false;
  end_visit(id);
  // Unless it went straight on to its next visit, it has left the server.
  if (slices_[id].core != nobody && !jobs_[id].in_timeslice)
    leave_core(id);
}

void System::leave_core(JobId id)
{
  Station& station          = station_of_instance(slices_[id].core);
  const uint32_t number     = slices_[id].core - station.first_instance;
  StationInstance& instance = station.instances[number];
  give_up_core(id, station, number);
  const JobId next = instance.waiting.pop_front();
  if (next == nobody) {
    --instance.busy;
    return;
  }
  take_core(next, station, number);
  run_slice(next);
}

} // namespace iocast
