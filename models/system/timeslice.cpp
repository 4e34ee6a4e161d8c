// SPDX-License-Identifier: Apache-2.0
//
// A visit to a timeslice station: round robin, but a job that needs no wait keeps its server from visit to visit.
#include "models/system.hpp"

#include <algorithm>
#include <utility>

namespace iocast {

void System::enter_timeslice(JobId id)
{
  Job& job             = jobs_[id];
  Station& station     = stations_[step_of(id).target];
  const uint32_t mine  = parting_ != nobody && cores_[parting_].job == id ? parting_ : nobody;
  const uint32_t first = station.first_core + job.instance * station.spec.servers;
  job.in_timeslice     = true;
  job.since            = now_;
  if (mine >= first && mine < first + station.spec.servers) {
    run_slice(mine);
    return;
  }
  if (mine != nobody)
    leave_core(mine);
  StationInstance& instance = station.instances[job.instance];
  uint32_t core             = nobody;
  if (instance.busy < station.spec.servers) {
    ++instance.busy;
    station.occupancy.busy.up(now_);
    core = free_core(station, job.instance);
  } else if (station.spec.wakeup_preempts && !starves(station, job.instance)) {
    core = preempt(station, job.instance);
  }
  if (core == nobody) {
    station.wait(links_, job.instance, id);
    return;
  }
  take_core(id, core);
  run_slice(core);
}

uint32_t System::free_core(const Station& station, uint32_t instance) const
{
  uint32_t core = station.first_core + instance * station.spec.servers;
  while (cores_[core].job != nobody)
    ++core;
  return core;
}

/// It is counted as busy already.
void System::take_core(JobId id, uint32_t core)
{
  Job& job               = jobs_[id];
  cores_[core].job       = id;
  cores_[core].slice_end = now_ + (job.preempted ? job.work : stations_[station_of_core(core)].spec.quantum);
  job.preempted          = false;
  book<&VisitSums::wait>(id);
}

/// The job waits from now on, or has left the station.
void System::give_up_core(uint32_t core)
{
  const JobId id  = std::exchange(cores_[core].job, nobody);
  jobs_[id].since = now_;
}

/// Someone has waited so long that a fair scheduler lets nobody pass any more.
bool System::starves(const Station& station, uint32_t instance) const
{
  const JobId first = station.first_waiting(instance);
  return first != nobody && now_ - jobs_[first].since > station.spec.quantum;
}

/// Takes a server from a job that is at work; that one waits at the head of the queue and goes on where it was, with
/// the rest of its slice. Nobody's when all are between two visits, or done at this very moment.
uint32_t System::preempt(Station& station, uint32_t instance)
{
  const uint32_t first = station.first_core + instance * station.spec.servers;
  for (uint32_t tries = 0; tries < station.spec.servers; ++tries) {
    const uint32_t core = first + station.instances[instance].next_victim++ % station.spec.servers;
    Core& taken         = cores_[core];
    const JobId victim  = taken.job;
    if (victim == nobody || !jobs_[victim].in_timeslice || taken.stretch_end <= now_)
      continue;
    const double left = taken.stretch_end - now_;
    jobs_[victim].demand += left * taken.pace;
    end_stretch(core);
    jobs_[victim].work      = taken.slice_end - now_;
    jobs_[victim].preempted = true;
    give_up_core(core);
    station.wait_first(links_, instance, victim);
    return core;
  }
  return nobody;
}

/// What its job was slower than it would have been alone, it waited.
void System::end_stretch(uint32_t core)
{
  if (cores_[core].pace != 1)
    book<&VisitSums::wait>(cores_[core].job, 1 - cores_[core].pace);
}

/// Its job works until it is done or its slice is over.
void System::run_slice(uint32_t core)
{
  Station& station      = stations_[station_of_core(core)];
  const uint32_t number = station.instance_of_core(core);
  Core& held            = cores_[core];
  if (held.slice_end <= now_) {
    if (const JobId next = station.next_waiting(links_, number); next != nobody) {
      const JobId id = held.job;
      give_up_core(core);
      station.wait(links_, number, id);
      take_core(next, core);
    } else {
      held.slice_end = now_ + station.spec.quantum;
    }
  }
  Job& job            = jobs_[held.job];
  const double speed  = station.speeds.empty() ? 1 : station.speeds.of(station.instances[number].busy);
  const double need   = job.demand / speed;
  const double worked = std::min(need, held.slice_end - now_);
  job.demand          = worked == need ? 0 : job.demand - worked * speed;
  job.since           = now_;
  held.pace           = static_cast<float>(speed);
  held.stretch_end    = now_ + worked;
  if (held.event >
      held.stretch_end) { // else the one that comes before will see to it: each preemption would leave one behind
    held.event = held.stretch_end;
    push(held.event, EventKind::slice_over, core);
  }
}

/// The present stretch is over, unless its job was preempted since.
void System::slice_over(uint32_t core)
{
  Core& held = cores_[core];
  if (held.event == now_)
    held.event = Core::none;
  if (held.job == nobody || !jobs_[held.job].in_timeslice)
    return;
  if (held.stretch_end > now_) {
    if (held.event == Core::none) {
      held.event = held.stretch_end;
      push(held.event, EventKind::slice_over, core);
    }
    return;
  }
  end_stretch(core);
  const JobId id = held.job;
  if (jobs_[id].demand > 0) {
    run_slice(core);
    return;
  }
  jobs_[id].in_timeslice = false;
  parting_               = core;
  end_visit(id);
  parting_ = nobody;
  // Unless it went straight on to its next visit, it has left the server.
  if (held.job == id && !jobs_[id].in_timeslice)
    leave_core(core);
}

void System::leave_core(uint32_t core)
{
  give_up_core(core);
  Station& station      = stations_[station_of_core(core)];
  const uint32_t number = station.instance_of_core(core);
  const JobId next      = station.next_waiting(links_, number);
  if (next == nobody) {
    --station.instances[number].busy;
    station.occupancy.busy.down(now_);
    return;
  }
  take_core(next, core);
  run_slice(core);
}

/// Its number. There is seldom more than one that slices time.
size_t System::station_of_core(uint32_t core) const
{
  size_t which = 0;
  while (stations_[which].spec.discipline != Discipline::timeslice ||
         core - stations_[which].first_core >= stations_[which].instances.size() * stations_[which].spec.servers)
    ++which;
  return which;
}

} // namespace iocast
