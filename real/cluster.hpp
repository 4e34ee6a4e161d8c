// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "workload/pattern.hpp"

#include <cstdint>
#include <functional>
#include <mpi.h>
#include <string>
#include <vector>

namespace iocast {

/// The ranks of this run and the nodes they live on.
class Cluster {
public:
  Cluster();
  ~Cluster();
  Cluster(const Cluster&)            = delete;
  Cluster& operator=(const Cluster&) = delete;

  uint32_t rank() const { return static_cast<uint32_t>(rank_); }
  uint32_t size() const { return static_cast<uint32_t>(size_); }
  bool is_first() const { return rank_ == 0; }
  bool is_first_of_node() const { return node_rank_ == 0; }
  MPI_Comm comm() const { return comm_; }
  /// The ranks of this node.
  MPI_Comm node_comm() const { return node_; }

  const Placement& placement() const { return placement_; }
  uint32_t nodes() const { return nodes_; }
  /// Whether rank r lives on node r / ranks_per_node, as patterns assume.
  bool in_blocks() const { return in_blocks_; }
  /// Whether rank r lives on node r mod nodes, where that is not in blocks as well.
  bool in_turn() const { return in_turn_; }
  const std::string& host() const { return host_; }
  /// The hosts in the order of their first ranks; only rank 0 knows.
  const std::vector<std::string>& hosts() const { return hosts_; }
  /// CPUs that this job may use on the node, whatever single ranks are bound to.
  uint32_t cpus_per_node() const { return cpus_per_node_; }
  /// The CPUs that each rank of the first node is bound to, "0-3,8"; only rank 0 knows.
  const std::vector<std::string>& bindings() const { return bindings_; }
  /// A sentence when the ranks of the first node share fewer CPUs than they could have; "" otherwise, and on other
  /// ranks.
  const std::string& crowded_warning() const { return crowded_; }

  /// Waits for all ranks, asleep: ranks that are still measuring get the CPU. Calls `meanwhile` between naps.
  void rendezvous(const std::function<void()>& meanwhile = {}) const;

private:
  void find_hosts();
  void find_bindings();
  uint32_t count_cpus() const;

  MPI_Comm comm_  = MPI_COMM_NULL;
  MPI_Comm node_  = MPI_COMM_NULL;
  int rank_       = 0;
  int size_       = 1;
  int node_rank_  = 0;
  int node_size_  = 1;
  uint32_t nodes_ = 1;
  bool in_blocks_ = true;
  bool in_turn_   = false;
  Placement placement_;
  std::string host_;
  std::vector<std::string> hosts_;
  std::vector<std::string> bindings_;
  std::string crowded_;
  uint32_t cpus_per_node_ = 1;
  int64_t longest_nap_ns_ = 1'000'000;
};

} // namespace iocast
