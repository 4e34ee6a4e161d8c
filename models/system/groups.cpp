// SPDX-License-Identifier: Apache-2.0
//
// What ranks do together, and time limits: ranks of a group begin and end shared and collective operations at the same
// time, and nobody is left alone in one when a phase is cut.
#include "input/error.hpp"
#include "models/system.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace iocast {

void System::make_groups()
{
  for (uint32_t rank = 0; rank < placement_.ranks; ++rank) {
    const uint32_t group = pattern_.group_of(rank);
    groups_.resize(std::max<size_t>(groups_.size(), group + size_t{1}));
    ++groups_[group].size;
  }
}

/// The rank waits until all of its group are there to begin.
bool System::join(JobId id, const Cursor& before)
{
  Group& group = groups_[pattern_.group_of(id)];
  if (group.stopped && !was_cut(id)) {
    clients_[id].cursor = before;
    return cut(id);
  }
  group.waiting.emplace_back(id, before);
  gather(group);
  return false;
}

/// All that can still come are there: those who wait begin.
void System::gather(Group& group)
{
  if (group.waiting.empty() || group.waiting.size() + group.ended < group.size)
    return;
  if (group.ended > 0 && !group.stopped)
    throw RunError(fmt::format(
        "The pattern gives the ranks of group {} different numbers of shared and collective operations in one phase; "
        "this is an error of the pattern.",
        &group - groups_.data()));
  group.cuts_after = now_ >= deadline_ && !group.stopped;
  group.begun      = group.waiting.size();
  for (const auto& [id, before] : std::exchange(group.waiting, {})) {
    clients_[id].since = now_;
    begun(id);
    push(now_, EventKind::resume, id);
  }
}

void System::begun(JobId id)
{
  const Op& op = clients_[id].op;
  if (!op_streams_.empty() && !was_cut(id))
    op_streams_[id].write(op);
  if (open_.empty())
    return;
  auto& closes = open_[id].closes;
  if (op.kind == OpKind::open) {
    closes.emplace_back(OpKind::close, op.dataset, op.object);
    closes.back().flags = op.flags & shared;
  } else if (op.kind == OpKind::close) {
    std::erase_if(closes, [&](const Op& close) { return close.dataset == op.dataset && close.object == op.object; });
  }
}

/// False while others of the group are still at what they do together.
bool System::part(JobId id)
{
  Job& job = jobs_[id];
  if (!job.joined && together(id)) {
    Group& group = groups_[pattern_.group_of(id)];
    if (group.done.size() + 1 < group.begun) {
      group.done.push_back(id);
      return false;
    }
    for (const JobId other : std::exchange(group.done, {})) {
      jobs_[other].joined = true;
      push(now_, EventKind::resume, other);
    }
  }
  job.joined = false;
  return true;
}

/// The time of the phase is over for this rank: it closes what it has open, and goes to the end of the phase.
bool System::cut(JobId id)
{
  ++cut_ranks_;
  open_[id].cut = true;
  pattern_.cut(clients_[id].cursor);
  if (!groups_.empty()) {
    Group& group = groups_[pattern_.group_of(id)];
    if (!std::exchange(group.stopped, true))
      for (const auto& [other, before] : std::exchange(group.waiting, {})) {
        clients_[other].cursor = before;
        if (cut(other))
          advance(other);
      }
  }
  return pull_op(id);
}

} // namespace iocast
