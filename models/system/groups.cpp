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
  std::vector<JobId> ranks;
  for (const auto& [id, before] : std::exchange(group.waiting, {})) {
    clients_[id].since = now_;
    begun(id);
    ranks.push_back(id);
  }
  if (is_two_phase(ranks))
    exchange(ranks, aggregate(ranks));
  else
    for (const JobId id : ranks)
      push(now_, EventKind::resume, id);
}

/// Whether aggregators access for all: in one collective access of several ranks to one object.
bool System::is_two_phase(const std::vector<JobId>& ranks) const
{
  const Op& first = clients_[ranks.front()].op;
  return platform_.collective.aggregators > 0 && ranks.size() > 1 && is_access(first.kind) &&
         std::all_of(ranks.begin(), ranks.end(), [&](JobId id) {
           const Op& op = clients_[id].op;
           return (op.flags & collective) && op.kind == first.kind && op.dataset == first.dataset &&
                  op.object == first.object && op.bytes() > 0;
         });
}

/// A node of a collective access.
struct System::ExchangingNode {
  uint32_t number      = 0;
  uint32_t aggregators = 0;
  double has           = 0; ///< bytes of its ranks
  double accesses      = 0; ///< share of all bytes that its aggregators access
};

/// Two-phase I/O (Thakur, Gropp & Lusk, Frontiers 1999): the units of the file that the ranks access go to aggregators
/// by turns, always the same ones, as ROMIO's driver for Lustre has it, so that none needs another's locks. Each
/// accesses its units at once; a unit with gaps is accessed without them. The others have nothing left to do.
std::vector<System::ExchangingNode> System::aggregate(const std::vector<JobId>& ranks)
{
  std::vector<ExchangingNode> nodes;
  std::unordered_map<uint32_t, size_t> place;
  std::vector<JobId> aggregators;
  uint64_t begin = UINT64_MAX;
  uint64_t end   = 0;
  uint64_t bytes = 0;
  for (const JobId id : ranks) {
    const Op& op              = clients_[id].op;
    const auto [found, fresh] = place.try_emplace(jobs_[id].owner, nodes.size());
    if (fresh)
      nodes.push_back({jobs_[id].owner});
    ExchangingNode& node = nodes[found->second];
    begin                = std::min(begin, op.offset);
    end                  = std::max(end, op.offset + (op.count - 1) * op.stride + op.size);
    bytes += op.bytes();
    node.has += static_cast<double>(op.bytes());
    if (node.aggregators < platform_.collective.aggregators) {
      ++node.aggregators;
      aggregators.push_back(id);
    }
    own_ops_[id] = op;
    jobs_[id].at = static_cast<uint16_t>(platform_.routes[static_cast<size_t>(op.kind)].steps.size() - 1);
  }
  const uint64_t unit_size = platform_.collective.unit;
  const uint64_t first     = begin / unit_size;
  const uint64_t last      = (end - 1) / unit_size;
  uint64_t all             = aggregators.size();
  while (platform_.collective.servers % all > 0)
    --all;
  bytes              = std::min(bytes, end - begin); // what several ranks have is accessed once
  const double share = static_cast<double>(bytes) / static_cast<double>(end - begin);
  for (uint64_t unit = first; unit <= std::min(last, first + all - 1); ++unit) {
    const uint64_t from  = std::max(begin, unit * unit_size);
    const uint64_t count = (last - unit) / all + 1;
    uint64_t range       = count * unit_size - (from - unit * unit_size);
    if (unit + (count - 1) * all == last)
      range -= (last + 1) * unit_size - end;
    const JobId id = aggregators[unit % all];
    Op& op         = clients_[id].op;
    op.offset      = count > 1 ? unit * unit_size : from; // no block reaches into the next unit
    op.count       = static_cast<uint32_t>(count);
    op.stride      = count > 1 ? all * unit_size : 0;
    op.size        = static_cast<uint64_t>(share * static_cast<double>(range) / static_cast<double>(count));
    jobs_[id].at   = 0;
    nodes[place.at(jobs_[id].owner)].accesses += share * static_cast<double>(range) / static_cast<double>(bytes);
  }
  return nodes;
}

/// Each node sends each other aggregator's its share of its bytes, as flows; where these would be too many, it sends as
/// much in all to some of them, each node to others. The ranks go on when all have what they need.
void System::exchange(const std::vector<JobId>& ranks, const std::vector<ExchangingNode>& nodes)
{
  constexpr size_t most_flows = 1 << 12;
  std::vector<const ExchangingNode*> into;
  for (const auto& node : nodes)
    if (node.accesses > 0)
      into.push_back(&node);
  const size_t most_peers = std::max<size_t>(most_flows / nodes.size(), 1);
  const JobId all         = new_job();
  auto& exchange          = exchanges_[all];
  exchange                = {1, ranks};
  double latency          = 0;
  size_t aggregating      = 0; // nodes before this one that do
  for (size_t from = 0; from < nodes.size(); ++from) {
    const ExchangingNode& node = nodes[from];
    const bool aggregates      = node.accesses > 0;
    const size_t first         = aggregates ? ++aggregating : from;
    const size_t others        = into.size() - (aggregates ? 1 : 0);
    const size_t peers         = std::min(most_peers, others);
    for (size_t peer = 0; peer < peers; ++peer) {
      const auto& to     = *into[(first + peer * others / peers) % into.size()];
      const double share = peers == others ? to.accesses : (1 - node.accesses) / static_cast<double>(peers);
      const double bytes = node.has * share;
      if (bytes == 0)
        continue;
      const JobId part       = fork(all, to.number);
      jobs_[part].parts_done = 1; // it is on its way
      ++exchange.parts;
      const Transfer transfer{part, node.number, UINT32_MAX, to.number, bytes, true, platform_.collective.way};
      if (fabric_)
        begin_flow(transfer);
      else
        latency = platform_.network.latency;
    }
  }
  push(now_ + latency, EventKind::resume, fork(all, 0));
}

/// False unless the part is of an exchange.
bool System::end_exchange(JobId part)
{
  const auto found = exchanges_.find(jobs_[part].owner);
  if (found == exchanges_.end())
    return false;
  join_part(part);
  if (--found->second.parts > 0)
    return true;
  for (const JobId id : found->second.ranks)
    push(now_, EventKind::resume, id);
  free_jobs_.push_back(found->first);
  exchanges_.erase(found);
  return true;
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
  if (const auto own = own_ops_.find(id); own != own_ops_.end()) {
    clients_[id].op = own->second;
    own_ops_.erase(own);
  }
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
