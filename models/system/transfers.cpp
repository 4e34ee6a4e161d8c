// SPDX-License-Identifier: Apache-2.0
//
// Transfers over the network: large ones are handed out, the others are delays.
#include "models/system.hpp"

#include <algorithm>

namespace iocast {

bool System::is_flow(JobId id) const
{
  return options_.flows && static_cast<double>(op_of(id).bytes()) >= platform_.network.flow_threshold;
}

/// A transfer that is too small to compete for bandwidth.
double System::transfer_seconds(JobId id) const
{
  return platform_.network.latency + static_cast<double>(op_of(id).bytes()) / slowest_link_;
}

bool System::begin_transfer(JobId id, const Step& step)
{
  uint32_t instance = instance_for(id, platform_.stations[step.target]);
  if (stations_[step.target].outages.any()) [[unlikely]] {
    if (!find_end(id, step, instance))
      return false;
    if (!is_flow(id)) {
      push(now_ + transfer_seconds(id), EventKind::resume, id);
      return true;
    }
  }
  new_transfers_.push_back(
      {id, jobs_[id].owner, step.target, instance, static_cast<double>(op_of(id).bytes()), step.to_server});
  if (jobs_[id].piece)
    send_from_buffer(id, new_transfers_.back());
  return true;
}

void System::transfer_done(JobId job, double now)
{
  push(std::max(now, now_), EventKind::resume, job);
}

} // namespace iocast
