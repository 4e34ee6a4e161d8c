// SPDX-License-Identifier: Apache-2.0
#include "real/cluster.hpp"

#include "real/stopwatch.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

namespace iocast {

Cluster::Cluster()
{
  MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &size_);
  MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node_);
  MPI_Comm_rank(node_, &node_rank_);
  MPI_Comm_size(node_, &node_size_);

  std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
  int length = 0;
  MPI_Get_processor_name(name.data(), &length);
  host_.assign(name.data(), static_cast<size_t>(length));

  int largest = 0;
  MPI_Allreduce(&node_size_, &largest, 1, MPI_INT, MPI_MAX, comm_);
  placement_ = {size(), static_cast<uint32_t>(largest)};

  int leader = rank_;
  MPI_Bcast(&leader, 1, MPI_INT, 0, node_);
  const int here[2] = {leader % largest != 0 || rank_ - node_rank_ != leader, node_rank_ == 0};
  int everywhere[2];
  MPI_Allreduce(here, everywhere, 2, MPI_INT, MPI_SUM, comm_);
  in_blocks_    = everywhere[0] == 0;
  nodes_        = static_cast<uint32_t>(everywhere[1]);
  const int own = leader == rank_ % everywhere[1] && node_rank_ == rank_ / everywhere[1];
  int all       = 0;
  MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_MIN, comm_);
  in_turn_ = all == 1 && !in_blocks_;

  cpus_per_node_ = count_cpus();
  // With many ranks on a core, even a glance now and then adds up: keep its share of the core the same.
  longest_nap_ns_ *= std::max<int64_t>(1, node_size_ / cpus_per_node_);
  find_hosts();
  find_bindings();
}

Cluster::~Cluster()
{
  MPI_Comm_free(&node_);
  MPI_Comm_free(&comm_);
}

void Cluster::find_hosts()
{
  MPI_Comm leaders;
  MPI_Comm_split(comm_, node_rank_ == 0 ? 0 : MPI_UNDEFINED, rank_, &leaders);
  if (leaders == MPI_COMM_NULL)
    return;
  std::array<char, MPI_MAX_PROCESSOR_NAME> mine{};
  std::copy_n(host_.begin(), std::min(host_.size(), mine.size() - 1), mine.begin());
  std::vector<char> all(is_first() ? nodes_ * mine.size() : 0);
  MPI_Gather(mine.data(), mine.size(), MPI_CHAR, all.data(), mine.size(), MPI_CHAR, 0, leaders);
  for (size_t at = 0; at < all.size(); at += mine.size())
    hosts_.emplace_back(all.data() + at);
  MPI_Comm_free(&leaders);
}

void Cluster::find_bindings()
{
  cpu_set_t own;
  CPU_ZERO(&own);
  sched_getaffinity(0, sizeof own, &own);
  std::vector<cpu_set_t> all(node_rank_ == 0 ? static_cast<size_t>(node_size_) : 0);
  MPI_Gather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE, 0, node_);
  if (!is_first())
    return;
  cpu_set_t bound;
  CPU_ZERO(&bound);
  for (const auto& set : all) {
    std::string text;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &set))
        continue;
      const int from = cpu;
      while (cpu + 1 < CPU_SETSIZE && CPU_ISSET(cpu + 1, &set))
        ++cpu;
      text += fmt::format("{}{}", text.empty() ? "" : ",", from);
      if (cpu > from)
        text += fmt::format("-{}", cpu);
    }
    bindings_.push_back(text);
    CPU_OR(&bound, &bound, &set);
  }
  const auto have = static_cast<uint32_t>(CPU_COUNT(&bound));
  if (have < std::min<uint32_t>(static_cast<uint32_t>(node_size_), cpus_per_node_))
    crowded_ = fmt::format("The {} ranks of host '{}' are bound to {} of its {} CPUs, so that they wait for each other "
                           "and latencies contain that; start them with mpirun --bind-to none, or srun "
                           "--cpu-bind=none.",
                           node_size_, host_, have, cpus_per_node_);
}

uint32_t Cluster::count_cpus() const
{
  // The launcher binds ranks after it has started, so a rank's own mask may say one core; the launcher, which is its
  // parent, has the mask of the job. The kernel cuts a mask of everything down to the job's cpuset: batch systems start
  // ranks from a daemon that isn't confined to it.
  cpu_set_t own, parent, everything, allowed;
  CPU_ZERO(&own);
  CPU_ZERO(&parent);
  sched_getaffinity(0, sizeof own, &own);
  sched_getaffinity(getppid(), sizeof parent, &parent);
  allowed = own;
  for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    CPU_SET(cpu, &everything);
  if (sched_setaffinity(0, sizeof everything, &everything) == 0)
    sched_getaffinity(0, sizeof allowed, &allowed);
  sched_setaffinity(0, sizeof own, &own);
  CPU_OR(&own, &own, &parent);
  CPU_AND(&own, &own, &allowed);
  cpu_set_t all;
  MPI_Allreduce(&own, &all, sizeof own, MPI_BYTE, MPI_BOR, node_);
  auto cpus = static_cast<uint32_t>(CPU_COUNT(&all));
  MPI_Allreduce(MPI_IN_PLACE, &cpus, 1, MPI_UINT32_T, MPI_MIN, comm_);
  return std::max<uint32_t>(1, cpus);
}

void Cluster::rendezvous(const std::function<void()>& meanwhile) const
{
  MPI_Request all;
  MPI_Ibarrier(comm_, &all);
  int64_t nap_ns = 10'000;
  for (int done = 0; MPI_Test(&all, &done, MPI_STATUS_IGNORE), !done;) {
    sleep_until(now_ns() + nap_ns);
    nap_ns = std::min(2 * nap_ns, longest_nap_ns_);
    if (meanwhile)
      meanwhile();
  }
}

} // namespace iocast
