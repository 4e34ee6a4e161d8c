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
  if (part - placement_.ranks < shard_of_.size())
    shard_of_[part - placement_.ranks] = nobody;
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

/// Where the access has bytes, one part each; those of a train of a station with redundancy with their shards.
void System::split_transfer(JobId id, const Step& step)
{
  const StationSpec& spec = platform_.stations[step.target];
  const uint32_t first    = instance_for(id, spec);
  if (step.stripes != Step::spanned) {
    forked_.push_back(fork(id, first));
    jobs_[forked_.back()].work = static_cast<double>(op_of(id).bytes());
  } else {
    const auto& parts = stripes_.cut(op_of(id), spec);
    for (const auto& part : parts) {
      forked_.push_back(fork(id, neighbour(spec, first, parts.front(), part)));
      jobs_[forked_.back()].work = static_cast<double>(part.bytes);
    }
  }
  if (step.shard_way >= 0)
    fork_shards(id, step);
  begin_parts(id);
}

/// Bytes of redundancy move beside each other; false where there are none.
bool System::split_shards(JobId id, const Step& step)
{
  fork_shards(id, step);
  if (forked_.empty())
    return false;
  begin_parts(id);
  return true;
}

/// Of each part of the access: each instance that has a shard of it writes that one, as long as the stripes that the
/// part touches; the first ones are read, that have the data.
void System::fork_shards(JobId id, const Step& step)
{
  const StationSpec& spec = platform_.stations[step.target];
  const uint32_t first    = instance_for(id, spec);
  const auto fork_all     = [&](uint32_t owner, const StripePart& part) {
    const uint64_t bytes = (step.mends ? part.partly : part.whole) / spec.redundancy.data;
    if (bytes == 0)
      return;
    for (uint32_t shard = spec.disk.exists() ? 0 : 1;
         shard < (step.to_server ? spec.redundancy.shards : spec.redundancy.data); ++shard) {
      const JobId job = fork(id, (owner + shard) % spec.count);
      shard_of_.resize(std::max<size_t>(shard_of_.size(), job - placement_.ranks + size_t{1}), nobody);
      shard_of_[job - placement_.ranks] = owner;
      jobs_[job].work                   = static_cast<double>(bytes);
      forked_.push_back(job);
    }
  };
  if (step.stripes != Step::spanned) {
    fork_all(first, StripeCutter::in_one(op_of(id), spec));
    return;
  }
  const auto& parts = stripes_.cut(op_of(id), spec);
  for (const auto& part : parts)
    fork_all(neighbour(spec, first, parts.front(), part), part);
}

void System::begin_parts(JobId id)
{
  jobs_[id].instance = static_cast<uint32_t>(forked_.size());
  for (const JobId part : forked_)
    begin_part(part);
  forked_.clear();
}

/// A part of a transfer begins, if there is someone at its other end.
void System::begin_part(JobId part)
{
  const JobId whole = jobs_[part].owner;
  const Step& step  = step_of(part);
  uint32_t instance = jobs_[part].instance;
  if (stations_[step.target].outages.any() && !find_end(part, step, instance))
    return;
  Job& job          = jobs_[part];
  job.parts_done    = 1; // it is on its way
  Transfer transfer = transfer_of(part, whole, step, instance, job.work);
  if (is_shard(part))
    send_shard(transfer, step, shard_of_[part - placement_.ranks]);
  if (!fabric_ || fabric_->is_nothing(transfer.way, transfer.bytes))
    push(now_ + alone(transfer), EventKind::resume, part);
  else if (is_shard(part) && passes(transfer, now_))
    push(now_ + fabric_->alone(transfer), EventKind::resume, part);
  else
    begin_flow(transfer);
}

/// Between the instance that has the object and one of the shard; at the disk of the former, where that is the same.
void System::send_shard(Transfer& transfer, const Step& step, uint32_t owner) const
{
  transfer.from_station  = step.target;
  transfer.from_instance = owner;
  transfer.way           = owner == transfer.instance ? step.own_way : static_cast<uint16_t>(step.shard_way);
}

/// A part of a transfer has arrived, or is to begin now that someone is there again.
void System::resume_part(JobId part)
{
  if (!exchanges_.empty() && end_exchange(part)) [[unlikely]]
    return;
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
