// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/system.hpp"
#include "sim/simgrid_compat.hpp"

#include <limits>
#include <unordered_map>
#include <vector>

namespace iocast {

/// Client nodes and servers around one switch, as a SimGrid star zone; large transfers are flows that share its links
/// fairly.
///
///   node 0 --- node link --+                    +-- server link --- station instance 0
///   node 1 --- node link --+-- (backbone link) -+-- server link --- station instance 1
///
/// Hosts are made only for the stations that transfers go to. Beyond `most_hosts` nodes, neighbours share one host (a
/// host takes 2.4 kB): its link is as wide as theirs together, and each flow gets no more than its node's own link has.
/// Only flows of one node that run in the same direction at the same time could then get more than their link has
/// together; crowded() counts them.
class Network {
public:
  static constexpr uint32_t most_hosts = 1 << 17;

  /// @param hosts most hosts for client nodes
  /// @param most_updates of flows, beyond which start() throws a RunError: each flow that begins or ends has SimGrid
  /// share the links anew among all that are in progress
  Network(simgrid_compat::s4u::Engine& engine, const Platform& platform, const Placement& placement,
          uint32_t hosts = most_hosts, double most_updates = std::numeric_limits<double>::infinity());
  void connect(System& system);

  void start(const Transfer& transfer);
  /// Flows that began beside another one of the same node and direction, at a host that several nodes share.
  uint64_t crowded() const { return crowded_; }
  /// Bytes of all flows that began, and of those that ended.
  double begun_bytes() const { return begun_bytes_; }
  double ended_bytes() const { return ended_bytes_; }
  bool is_idle() const { return flows_.empty(); }

private:
  void finished(const simgrid_compat::s4u::Comm& comm);
  /// Of flows between nodes and servers at a shared host: by node and direction.
  uint32_t& flows_of(uint32_t node, bool to_server) { return busy_links_[2 * size_t{node} + to_server]; }

  System* system_          = nullptr;
  double node_bandwidth_   = 0; ///< bytes a second; 0: unlimited
  uint32_t nodes_per_host_ = 1;
  uint64_t crowded_        = 0;
  double most_updates_;
  double updates_     = 0;
  double begun_bytes_ = 0;
  double ended_bytes_ = 0;
  std::vector<uint32_t> busy_links_; ///< flows in progress; empty where each node has a host
  std::vector<simgrid_compat::s4u::Host*> nodes_;
  std::vector<std::vector<simgrid_compat::s4u::Host*>> servers_; ///< by station, by instance
  struct Flow {
    simgrid_compat::s4u::CommPtr comm;
    JobId job;
    double bytes;
    uint32_t node; ///< UINT32_MAX: between servers
    bool to_server;
  };
  std::unordered_map<const simgrid_compat::s4u::Comm*, Flow> flows_;
  simgrid_compat::s4u::CommPtr ended_; ///< the last; SimGrid 4 goes on with it after the callback
};

/// True when the platform moves data in steps that can become flows for objects of this size.
bool needs_network(const Platform& platform, const Pattern& pattern);

} // namespace iocast
