// SPDX-License-Identifier: Apache-2.0
//
// Requests in several parts at the same time: fork and join.
#include "models/system.hpp"

#include <algorithm>

namespace iocast {

/// A visit's parts: as many as the step says, at neighbouring instances, or those that the access lies in.
void System::split_visit(JobId id, const Step& step)
{
  const StationSpec& spec = stations_[step.target].spec;
  const uint32_t first    = instance_for(id, spec);
  if (step.stripes == Step::spanned) {
    const auto& parts  = stripes_.cut(op_of(id), spec);
    const auto work_of = [&](const StripePart& part) {
      const double each = draw(id, step) / spec.rating;
      return (step.times == Times::block ? each * part.blocks : each) +
             (step.bandwidth > 0 ? static_cast<double>(part.bytes) / step.bandwidth : 0);
    };
    if (parts.size() == 1) {
      jobs_[id].instance = first;
      arrive(id, step, work_of(parts.front()));
      return;
    }
    jobs_[id].instance = static_cast<uint32_t>(parts.size());
    for (const auto& part : parts) {
      const double work = work_of(part);
      arrive(fork(id, neighbour(spec, first, parts.front(), part)), step, work);
    }
    return;
  }
  jobs_[id].instance = step.stripes;
  for (uint32_t stripe = 0; stripe < step.stripes; ++stripe) {
    const double work = work_of(id, step);
    arrive(fork(id, (first + stripe) % spec.count), step, work);
  }
}

/// Where a part lies, `first` being where the first one does.
uint32_t System::neighbour(const StationSpec& spec, uint32_t first, const StripePart& first_part,
                           const StripePart& part)
{
  return (first + spec.count + part.turn - first_part.turn) % spec.count;
}

/// A part of what the job does in its present step; they join in join_part().
JobId System::fork(JobId id, uint32_t instance)
{
  const JobId part     = new_job();
  jobs_[part].kind     = jobs_[id].kind;
  jobs_[part].at       = jobs_[id].at;
  jobs_[part].beside   = jobs_[id].beside;
  jobs_[part].owner    = id;
  jobs_[part].instance = instance;
  ++parts_;
  return part;
}

/// A part has ended. False while others of the same request go on.
bool System::join_part(JobId part)
{
  const JobId whole = jobs_[part].owner;
  free_jobs_.push_back(part);
  --parts_;
  return --jobs_[whole].instance == 0;
}

void System::split_transfer(JobId id, const Step& step)
{
  const StationSpec& spec = platform_.stations[step.target];
  const uint32_t first    = instance_for(id, spec);
  const auto& parts       = stripes_.cut(op_of(id), spec);
  jobs_[id].instance      = static_cast<uint32_t>(parts.size());
  for (const auto& part : parts) {
    const JobId job = fork(id, neighbour(spec, first, parts.front(), part));
    jobs_[job].work = static_cast<double>(part.bytes);
    begin_part(job);
  }
}

/// A part of a transfer begins, if there is someone at its other end.
void System::begin_part(JobId part)
{
  const JobId whole = jobs_[part].owner;
  const Step& step  = step_of(part);
  uint32_t instance = jobs_[part].instance;
  if (stations_[step.target].outages.any() && !find_end(part, step, instance))
    return;
  Job& job                = jobs_[part];
  job.parts_done          = 1; // it is on its way
  const Transfer transfer = transfer_of(part, whole, step, instance, job.work);
  if (!fabric_ || fabric_->is_nothing(step.way, transfer.bytes))
    push(now_ + alone(transfer), EventKind::resume, part);
  else
    begin_flow(transfer);
}

/// A part of a transfer has arrived, or is to begin now that someone is there again.
void System::resume_part(JobId part)
{
  if (jobs_[part].parts_done == 0) {
    begin_part(part);
    return;
  }
  const JobId whole = jobs_[part].owner;
  if (join_part(part)) {
    jobs_[whole].at = static_cast<uint16_t>(jobs_[whole].at + step_of(whole).jump);
    advance(whole);
  }
}

} // namespace iocast
