// SPDX-License-Identifier: Apache-2.0
#include "real/steps.hpp"

namespace iocast {

Steps::Steps(MPI_Comm group)
{
  MPI_Comm_dup(group, &comm_);
  MPI_Comm_dup(group, &ends_);
}

Steps::~Steps()
{
  MPI_Comm_free(&comm_);
  MPI_Comm_free(&ends_);
}

void Steps::hand_over(const Op& op, int64_t at_ns)
{
  for (uint32_t i = 0; i < op.count; ++i)
    post(at_ns, op.size);
}

void Steps::post(int64_t at_ns, uint64_t compute_ns)
{
  ++handed_;
  Pending& one = pending_.emplace_back(Pending{at_ns, 0, compute_ns, MPI_REQUEST_NULL});
  MPI_Iallreduce(&one.mine_ns, &one.latest_ns, 1, MPI_INT64_T, MPI_MAX, comm_, &one.request);
}

void Steps::listen()
{
  for (int done = 0; !pending_.empty(); pending_.pop_front()) {
    MPI_Test(&pending_.front().request, &done, MPI_STATUS_IGNORE);
    if (!done)
      return;
    times_.ready(pending_.front().latest_ns, pending_.front().compute_ns);
  }
}

void Steps::end_phase()
{
  uint64_t most = handed_;
  MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_UINT64_T, MPI_MAX, ends_);
  while (handed_ < most)
    post(0, 0);
  for (auto& one : pending_)
    MPI_Wait(&one.request, MPI_STATUS_IGNORE);
  pending_.clear();
}

} // namespace iocast
