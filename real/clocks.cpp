// SPDX-License-Identifier: Apache-2.0
#include "real/clocks.hpp"

#include "real/stopwatch.hpp"

#include <cmath>
#include <limits>

namespace iocast {

namespace {
constexpr int rounds = 12; ///< the first ones open connections
constexpr int tag    = 1;
} // namespace

Clocks::Clocks(const Cluster& cluster) : cluster_(cluster)
{
  if (cluster.nodes() > 1)
    MPI_Comm_split(cluster.comm(), cluster.is_first_of_node() ? 0 : MPI_UNDEFINED, static_cast<int>(cluster.rank()),
                   &leaders_);
}

Clocks::~Clocks()
{
  if (leaders_ != MPI_COMM_NULL)
    MPI_Comm_free(&leaders_);
}

void Clocks::compare()
{
  if (cluster_.nodes() == 1)
    return;
  struct {
    int64_t offset_ns      = 0;
    int64_t uncertainty_ns = 0;
  } mine;
  if (leaders_ != MPI_COMM_NULL) {
    if (cluster_.is_first()) {
      for (uint32_t node = 1; node < cluster_.nodes(); ++node)
        for (int round = 0; round < rounds; ++round) {
          MPI_Recv(nullptr, 0, MPI_BYTE, static_cast<int>(node), tag, leaders_, MPI_STATUS_IGNORE);
          const int64_t now = now_ns();
          MPI_Send(&now, 1, MPI_INT64_T, static_cast<int>(node), tag, leaders_);
        }
    } else {
      mine.uncertainty_ns = std::numeric_limits<int64_t>::max();
      for (int round = 0; round < rounds; ++round) {
        const int64_t began = now_ns();
        MPI_Send(nullptr, 0, MPI_BYTE, 0, tag, leaders_);
        int64_t there = 0;
        MPI_Recv(&there, 1, MPI_INT64_T, 0, tag, leaders_, MPI_STATUS_IGNORE);
        const int64_t half = (now_ns() - began + 1) / 2;
        if (half < mine.uncertainty_ns)
          mine = {began + half - there, half};
      }
    }
    const int64_t now = now_ns();
    double drift      = 0;
    if (compared_ns_ > 0)
      drift = std::abs(static_cast<double>(mine.offset_ns - offset_ns_)) / static_cast<double>(now - compared_ns_);
    compared_ns_ = now;
    MPI_Reduce(&mine.uncertainty_ns, &uncertainty_ns_, 1, MPI_INT64_T, MPI_MAX, 0, leaders_);
    MPI_Reduce(&drift, &drift_, 1, MPI_DOUBLE, MPI_MAX, 0, leaders_);
  }
  offset_ns_ = mine.offset_ns;
  MPI_Bcast(&offset_ns_, 1, MPI_INT64_T, 0, cluster_.node_comm());
}

int64_t Clocks::start_together(const std::function<void(int64_t)>& tell)
{
  // Asleep until the last rank has come; ranks leave this up to a nap apart, and where they share cores, a plain
  // barrier one after the other as each gets its turn: the first would have the system for itself. So all agree on a
  // moment a little ahead, and sleep until then. A rank that is late for it is late for its own clock too.
  constexpr int64_t lead_ns = 1'000'000, lead_between_nodes_ns = 5'000'000;
  cluster_.rendezvous();
  compare();
  // No rank is still on its way when the moment is chosen.
  MPI_Barrier(cluster_.comm());
  int64_t start_ns = now_ns() + (cluster_.nodes() > 1 ? lead_between_nodes_ns : lead_ns);
  MPI_Bcast(&start_ns, 1, MPI_INT64_T, 0, cluster_.comm());
  start_ns = here(start_ns);
  tell(start_ns);
  Ticks::align();
  sleep_until(start_ns);
  return start_ns;
}

} // namespace iocast
