// SPDX-License-Identifier: Apache-2.0
//
// Transfers over the network: those that no link could hold up are delays, the others flows.
#include "models/system.hpp"

#include <algorithm>

namespace iocast {

/// Unless nothing moves bytes over links that have a bandwidth, or over some that differ: no transfer can then wait for
/// another.
void System::make_fabric(const Footprint& footprint)
{
  is_uniform_ = platform_.network.is_uniform();
  if ((footprint.largest_size > 0 || Fabric::has_overheads(platform_) || !is_uniform_ ||
       !platform_.link_failures.empty()) &&
      Fabric::limits(platform_))
    fabric_ = std::make_unique<Fabric>(platform_, placement_.nodes());
  flowing_ = fabric_ && !fabric_->is_idle();
}

/// Seconds of a transfer that meets no other.
double System::alone(const Transfer& transfer) const
{
  if (!fabric_)
    return platform_.ways[transfer.way].network ? platform_.network.latency : 0;
  return is_uniform_ ? fabric_->alone(transfer.way, transfer.bytes) : fabric_->alone(transfer);
}

/// @param id whose bytes they are, all or those of a part of `whole`
Transfer System::transfer_of(JobId id, JobId whole, const Step& step, uint32_t instance, double bytes) const
{
  Transfer transfer{id, jobs_[whole].owner, step.target, instance, bytes, step.to_server, step.way};
  if (jobs_[whole].piece)
    send_from_buffer(whole, transfer);
  return transfer;
}

/// Whether the transfer takes as long as it would alone, at this time.
bool System::passes(const Transfer& transfer, double time)
{
  return options_.hands_out_flows ? transfer.bytes < platform_.network.never_limited : fabric_->passes(transfer, time);
}

/// Seconds of a transfer of all bytes of a job's operation that takes as long as it would alone, at this time;
/// negative: it must be a flow, or several transfers. Apart from advance(), whose loop is to stay small.
[[gnu::noinline]] double System::pass(JobId id, const Step& step, double time)
{
  const Op& op            = op_of(id);
  const StationSpec& spec = platform_.stations[step.target];
  const auto bytes        = static_cast<double>(op.bytes());
  const bool is_nothing   = !fabric_ || fabric_->is_nothing(step.way, bytes);
  if (!is_nothing &&
      (bytes >= platform_.network.never_limited || (step.stripes == Step::spanned && spec.stripe_count > 1 &&
                                                    stripes_.cut(op, spec).size() > 1))) // to several servers
    return -1;
  const Transfer transfer = transfer_of(id, id, step, instance_for(id, spec), bytes);
  return is_nothing || passes(transfer, time) ? alone(transfer) : -1;
}

/// Whether the access is of several requests to one instance, at least, so that its steps are those of a train.
bool System::is_train(JobId id, const Step& step)
{
  const Op& op            = op_of(id);
  const StationSpec& spec = platform_.stations[step.target];
  if (op.bytes() <= spec.rpc.size || !fabric_)
    return false;
  if (step.stripes != Step::spanned)
    return true;
  const auto& parts = stripes_.cut(op, spec);
  return std::any_of(parts.begin(), parts.end(), [&](const auto& part) { return part.bytes > spec.rpc.size; });
}

bool System::begin_transfer(JobId id, const Step& step)
{
  uint32_t instance = instance_for(id, platform_.stations[step.target]);
  if (stations_[step.target].outages.any() && !find_end(id, step, instance)) [[unlikely]]
    return false;
  const Transfer transfer = transfer_of(id, id, step, instance, static_cast<double>(op_of(id).bytes()));
  if (!fabric_ || fabric_->is_nothing(step.way, transfer.bytes) ||
      (step.kind == Step::Kind::transfer && passes(transfer, now_)))
    push(now_ + alone(transfer), EventKind::resume, id);
  else
    begin_flow(transfer);
  return true;
}

void System::begin_flow(const Transfer& transfer)
{
  if (options_.hands_out_flows)
    new_transfers_.push_back(transfer);
  else
    fabric_->begin(transfer, now_);
  flowing_ = !options_.hands_out_flows;
}

void System::transfer_done(JobId job, double now)
{
  push(std::max(now, now_), EventKind::resume, job);
}

/// When a flow begins or ends, unless other events come first; infinity then.
[[gnu::noinline]] double System::next_flow()
{
  constexpr double never = std::numeric_limits<double>::infinity();
  const double event     = calendar_.empty() ? never : calendar_.next_time();
  if (event <= now_) // which may begin further flows
    return never;
  const double flow = fabric_->next_time();
  return flow < event ? flow : never;
}

[[gnu::noinline]] void System::go_on_with_flows(double flow)
{
  now_ = std::max(now_, flow);
  fabric_->go_on(now_, arrived_);
  for (const JobId job : arrived_)
    push(now_, EventKind::resume, job);
  arrived_.clear();
  flowing_ = !fabric_->is_idle();
}

} // namespace iocast
