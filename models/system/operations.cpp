// SPDX-License-Identifier: Apache-2.0
//
// An operation's life: a rank pulls it from the pattern, in an open loop waits for its moment, goes through its route,
// and thinks.
#include "input/error.hpp"
#include "models/system.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace iocast {

/// Takes the next operation of the client's stream; false when there is none to start now (a barrier, a wait, or the
/// end).
bool System::pull_op(JobId id)
{
  Client& client  = clients_[id];
  const bool over = was_cut(id);
  if (over && !open_[id].closes.empty()) {
    client.op = open_[id].closes.front();
    open_[id].closes.erase(open_[id].closes.begin());
    return begin_op(id, client.cursor);
  }
  if (now_ >= deadline_ && !over && may_be_cut(id)) [[unlikely]]
    return cut(id);
  const Cursor before = client.cursor;
  const bool more     = pattern_.next(client.cursor, client.op);
  if (!more || client.op.kind == OpKind::phase) {
    if (more && !op_streams_.empty())
      op_streams_[id].write(client.op);
    ended_ += !more;
    if (!groups_.empty()) {
      Group& group = groups_[pattern_.group_of(id)];
      ++group.ended;
      gather(group);
    }
    reach_barrier();
    return false;
  }
  if (over) [[unlikely]]
    throw RunError(fmt::format("The pattern goes on with {} after its phase was cut; this is an error of the pattern.",
                               name_of(client.op.kind)));
  return begin_op(id, before);
}

/// False when the operation has to wait, or is none that the platform sees.
bool System::begin_op(JobId id, const Cursor& before)
{
  if (!intents_.empty() && !keep_to_plan(id, before))
    return false;
  return start_pulled_op(id, before);
}

/// In an open loop: false when it is too early for the operation that was pulled.
bool System::keep_to_plan(JobId id, const Cursor& before)
{
  const Op& op             = clients_[id].op;
  Intent& intent           = intents_[id];
  const Arrivals& arrivals = pattern_.arrivals_of(id);
  if (op.kind == OpKind::think || !arrivals.is_open() || was_cut(id))
    return true;
  const bool first = std::exchange(intent.first, false);
  intent.ns += arrivals.gap_ns(options_.seed, id, jobs_[id].operations, first);
  intent.counts      = true;
  const double start = phase_start_ + static_cast<double>(intent.ns) * 1e-9;
  if (start <= now_)
    return true;
  if (start >= deadline_ && !first && may_be_cut(id)) { // it will not be started in this phase
    clients_[id].cursor = before;
    intent.counts       = false;
    intent.waits        = Intent::Waits::to_go_on;
    push(deadline_, EventKind::wake, id);
    return false;
  }
  intent.waits  = Intent::Waits::to_start;
  intent.before = before;
  push(start + platform_.think_overshoot, EventKind::wake, id);
  return false;
}

bool System::start_pulled_op(JobId id, const Cursor& before)
{
  Client& client = clients_[id];
  Job& job       = jobs_[id];
  job.kind       = client.op.kind;
  job.at         = 0;
  job.draws      = 0;
  job.parts_done = 0;
  if (job.kind > OpKind::rmdir) {
    if (together(id))
      return join(id, before);
    begun(id);
    if (job.kind == OpKind::think) {
      if (client.op.flags & paced)
        return pace(id) && pull_op(id);
      const double seconds = static_cast<double>(client.op.size) * 1e-9;
      if (!(client.op.flags & until)) {
        trace(id, now_, now_ + seconds);
        think(id, seconds);
        return false;
      }
      Intent& intent   = intents_[id];
      intent.ns        = static_cast<int64_t>(client.op.size);
      intent.counts    = true;
      const double end = phase_start_ + seconds;
      trace(id, now_, std::max(now_, end));
      if (end <= now_)
        return pull_op(id);
      intent.waits = Intent::Waits::to_go_on;
      push(std::min(end + platform_.think_overshoot, std::max(now_, deadline_)), EventKind::wake, id);
      return false;
    }
  } else if (!op_streams_.empty()) {
    op_streams_[id].write(client.op);
  }
  client.since       = now_;
  client.part_end_ns = to_ns(now_ - phase_start_);
  return true;
}

void System::start_op(JobId id)
{
  if (pull_op(id))
    advance(id);
}

/// The think time is over, or the moment of an operation has come; what waking up costs comes before the next operation
/// and is in nobody's response time.
void System::wake(JobId id)
{
  Job& job  = jobs_[id];
  job.kind  = OpKind::phase;
  job.at    = 0;
  job.draws = 0;
  if (platform_.routes[0].served || awake(id))
    advance(id);
}

/// False when there is no operation to start yet.
bool System::awake(JobId id)
{
  if (!intents_.empty() && intents_[id].waits != Intent::Waits::no)
    return std::exchange(intents_[id].waits, Intent::Waits::no) == Intent::Waits::to_start
               ? start_pulled_op(id, intents_[id].before)
               : pull_op(id);
  think_actual_ += now_;
  --thinking_;
  if (clients_[id].op.flags & paced)
    clients_[id].since = now_;
  return pull_op(id);
}

void System::think(JobId id, double seconds)
{
  const double end = std::max(now_, std::min(now_ + (seconds + platform_.think_overshoot), deadline_));
  think_asked_ += std::min(seconds, end - now_);
  think_actual_ -= now_; // until the next operation starts
  ++thinking_;
  push(end, EventKind::wake, id);
}

/// A part of its operation ends at that moment.
void System::end_part(JobId id, double end)
{
  Client& client       = clients_[id];
  const int64_t end_ns = to_ns(end - phase_start_);
  recorder_->record_part(client.op.kind, jobs_[id].parts_done++, end_ns - client.part_end_ns);
  client.part_end_ns = end_ns;
}

void System::finish_op(JobId id)
{
  Client& client = clients_[id];
  TimedOp timed{to_ns(client.since - phase_start_), to_ns(now_ - phase_start_)};
  if (!intents_.empty() && std::exchange(intents_[id].counts, false))
    timed.intended_ns = intents_[id].ns;
  recorder_->record_whole(client.op, id, timed);
  trace(id, client.since, now_);
  if (watch_ && watch_->add(client.op.kind, timed.end_ns - timed.start_ns, now_)) [[unlikely]]
    precise_ = true;
  if (sizes_) [[unlikely]]
    sizes_->note(client.op);
  client.since = now_;
  moved_[static_cast<size_t>(client.op.kind)] += client.op.bytes();
  ++jobs_[id].operations;
  ++requests_;
}

void System::trace(JobId id, double start, double end) const
{
  if (options_.trace)
    options_.trace->add(id, {clients_[id].op, to_ns(start), to_ns(end) - to_ns(start), 0});
}

} // namespace iocast
