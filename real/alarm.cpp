// SPDX-License-Identifier: Apache-2.0
#include "real/alarm.hpp"

namespace iocast {

Alarm::Alarm(const Cluster& cluster) : cluster_(cluster)
{
  MPI_Comm_dup(cluster.comm(), &comm_);
  const auto rank = static_cast<int64_t>(cluster.rank());
  if (rank > 0)
    neighbours_[neighbour_count_++] = static_cast<int>((rank - 1) / 2);
  for (const int64_t child : {2 * rank + 1, 2 * rank + 2})
    if (child < static_cast<int64_t>(cluster.size()))
      neighbours_[neighbour_count_++] = static_cast<int>(child);
  listen();
}

Alarm::~Alarm()
{
  if (word_ != MPI_REQUEST_NULL) {
    MPI_Cancel(&word_);
    MPI_Wait(&word_, MPI_STATUS_IGNORE);
  }
  MPI_Comm_free(&comm_);
}

void Alarm::listen()
{
  if (received_ < neighbour_count_)
    MPI_Irecv(nullptr, 0, MPI_BYTE, MPI_ANY_SOURCE, 0, comm_, &word_);
}

void Alarm::raise()
{
  raised_.store(true, std::memory_order_relaxed);
  if (std::this_thread::get_id() == own_)
    pass_on();
}

void Alarm::pass_on()
{
  if (on_)
    return;
  on_ = true;
  for (int i = 0; i < neighbour_count_; ++i)
    MPI_Isend(nullptr, 0, MPI_BYTE, neighbours_[i], 0, comm_, &passed_on_[i]);
}

bool Alarm::heard()
{
  if (std::this_thread::get_id() != own_)
    return raised_.load(std::memory_order_relaxed);
  if (raised_.load(std::memory_order_relaxed))
    pass_on();
  int came = 0;
  if (word_ != MPI_REQUEST_NULL)
    MPI_Test(&word_, &came, MPI_STATUS_IGNORE);
  if (came) {
    ++received_;
    raise();
    listen();
  }
  return on_;
}

void Alarm::finish()
{
  cluster_.rendezvous([this] { heard(); });
  int on = raised_.load(std::memory_order_relaxed);
  MPI_Allreduce(MPI_IN_PLACE, &on, 1, MPI_INT, MPI_MAX, cluster_.comm());
  if (!on)
    return;
  // Every rank has informed its neighbours by now, or does so here, and so each hears from all of its own.
  raise();
  for (; word_ != MPI_REQUEST_NULL; listen()) {
    MPI_Wait(&word_, MPI_STATUS_IGNORE);
    ++received_;
  }
  MPI_Waitall(neighbour_count_, passed_on_.data(), MPI_STATUSES_IGNORE);
}

} // namespace iocast
