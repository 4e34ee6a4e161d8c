// SPDX-License-Identifier: Apache-2.0
//
// The loop over events: what each kind of event sets going, and when the simulation stops.
#include "models/system.hpp"

namespace iocast {

void System::start()
{
  for (uint32_t which = 0; which < platform_.background.size(); ++which)
    schedule_background(which);
  for (uint32_t which = 0; which < failures_.size(); ++which)
    push(failures_[which].next(), EventKind::failure, which);
  if (!stage_in())
    start_clients();
}

void System::start_clients()
{
  for (uint32_t rank = 0; rank < placement_.ranks; ++rank)
    start_op(rank);
}

bool System::run(double horizon, uint64_t most_events)
{
  const uint64_t stop = most_events == UINT64_MAX ? UINT64_MAX : events_ + most_events;
  while (!finished_ && (!calendar_.empty() || flowing_)) {
    if (flowing_) [[unlikely]]
      if (const double flow = next_flow(); flow < std::numeric_limits<double>::infinity()) {
        if (flow > horizon)
          return true;
        go_on_with_flows(flow);
        continue;
      }
    const double time = calendar_.next_time();
    if (time > horizon || (time > now_ && !new_transfers_.empty()))
      return true;
    if (events_ >= stop)
      return false;
    const auto event = calendar_.pop();
    look_ahead();
    now_ = event.time;
    ++events_;
    handle(event);
    for (size_t i = 0; i < granted_.size(); ++i) { // which may become more meanwhile
      const JobId job = granted_[i];
      ++jobs_[job].at;
      advance(job);
    }
    granted_.clear();
#ifndef NDEBUG
    check_stations();
#endif
    if (precise_ && !finished_) [[unlikely]] {
      think_actual_ += thinking_ * now_;
      end_phase();
      new_transfers_.clear();
      finished_ = true;
    }
  }
  return true;
}

void System::handle(const Calendar::Event& event)
{
  switch (static_cast<EventKind>(event.kind)) {
    case EventKind::wake:
      wake(event.who);
      break;
    case EventKind::resume:
      if (has_op(event.who))
        advance(event.who);
      else
        resume_part(event.who);
      break;
    case EventKind::served:
      if (!is_stale(event))
        served(event.who);
      break;
    case EventKind::slice_over:
      slice_over(event.who);
      break;
    case EventKind::shared_departure:
      shared_departure(event.who);
      break;
    case EventKind::stall_over:
      if (!is_stale(event))
        stall_over(event.who);
      break;
    case EventKind::background:
      background_arrival(event.who);
      break;
    case EventKind::lingered:
      lingered(event.who);
      break;
    case EventKind::failure: // numbers beyond the failures are jobs
      if (event.who < failures_.size())
        fail(event.who);
      else
        ask_again(event.who - static_cast<uint32_t>(failures_.size()));
      break;
    case EventKind::staged:
      staged();
      break;
    case EventKind::lock_free:
      serve(event.who);
      break;
  }
}

/// Apart from handle(), which every event passes.
[[gnu::noinline]] void System::stall_over(JobId id)
{
  book<&VisitSums::stall>(id);
  if (const double end = end_of_stall(jobs_[id], step_of(id).target); end > now_) // another one has begun meanwhile
    await(end, EventKind::stall_over, id);
  else if (platform_.stations[step_of(id).target].discipline == Discipline::timeslice)
    enter_timeslice(id);
  else
    take_lock(id);
}

/// Asks for the cache lines that the next events need: first for those that an event's number tells, some events later
/// for those that only these tell.
void System::look_ahead() const
{
  if (!looks_ahead_) {
    if (!calendar_.empty())
      prefetch(calendar_.top().who);
    return;
  }
  constexpr auto slice_over = static_cast<uint32_t>(EventKind::slice_over);
  calendar_.ahead(Calendar::most_near - 1, [&](const Calendar::Event& event) {
    if (event.kind != slice_over) {
      prefetch(event.who);
      return;
    }
    __builtin_prefetch(&cores_[event.who]);
    const Station& station = stations_[station_of_core(event.who)];
    __builtin_prefetch(&station.instances[station.instance_of_core(event.who)]);
  });
  calendar_.ahead(Calendar::most_near / 2, [&](const Calendar::Event& event) {
    const JobId job = event.kind == slice_over ? cores_[event.who].job : event.who;
    if (const Buffer* buffer = buffer_before(event))
      buffer->prefetch(op_of(job));
    if (!is_client(job))
      return;
    if (event.kind == slice_over)
      prefetch(job);
    const uint32_t node = placement_.node_of(job); // not from the job, which is still on its way
    for (const auto which : queues_of_nodes_)
      if (const JobId waiting = stations_[which].instances[node].waiting.front(); waiting != nobody) {
        __builtin_prefetch(&jobs_[waiting]);
        __builtin_prefetch(&links_[waiting]);
      }
  });
  if (!buffers_.empty())
    calendar_.ahead(1, [&](const Calendar::Event& event) {
      if (const Buffer* buffer = buffer_before(event))
        buffer->prefetch_contents();
    });
}

/// The buffer of a node that the event's job will fill, or is draining; or none.
const Buffer* System::buffer_before(const Calendar::Event& event) const
{
  const auto kind = static_cast<EventKind>(event.kind);
  if (buffers_.empty() || (kind != EventKind::resume && kind != EventKind::served) || !has_op(event.who))
    return nullptr;
  if (is_client(event.who)) {
    const Step& step = step_of(event.who);
    return step.kind == Step::Kind::enter && buffers_[step.target].spec->of_nodes()
               ? &buffers_[step.target].instances[jobs_[event.who].owner]
               : nullptr;
  }
  const Piece& piece = pieces_[event.who - placement_.ranks];
  return piece.buffer < buffers_.size() && buffers_[piece.buffer].spec->of_nodes()
             ? &buffers_[piece.buffer].instances[piece.instance]
             : nullptr;
}

/// Asks for the cache lines of a job that will be looked at soon; among a million clients they are cold.
void System::prefetch(JobId id) const
{
  if (placement_.ranks < few_clients || id >= jobs_.size())
    return;         // all of them fit in the processor's cache; or it is no job
  asm volatile(""); // else GCC takes this for a function without effects and drops the calls
  __builtin_prefetch(&jobs_[id]);
  __builtin_prefetch(&links_[id]);
  if (!is_client(id)) {
    if (id - placement_.ranks < pieces_.size()) {
      __builtin_prefetch(&pieces_[id - placement_.ranks]);
      __builtin_prefetch(reinterpret_cast<const char*>(&pieces_[id - placement_.ranks]) + 64);
    }
    return;
  }
  __builtin_prefetch(&clients_[id]);
  __builtin_prefetch(reinterpret_cast<const char*>(&clients_[id]) + 64);
  const uint32_t node = placement_.node_of(id); // not from the job, which is still on its way
  if (fabric_)
    fabric_->prefetch(node);
  for (const auto& limit : limits_)
    if (limit.size() > node)
      __builtin_prefetch(&limit[node]);
  for (const auto which : queues_of_nodes_)
    __builtin_prefetch(&stations_[which].instances[node]);
}

} // namespace iocast
