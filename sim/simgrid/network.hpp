// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/system.hpp"
#include "sim/simgrid/compat.hpp"

#include <unordered_map>
#include <vector>

namespace iocast {

/// SimGrid's flows, the reference that those of Fabric are compared with. It takes the square of the flows in progress,
/// and more. A star is a zone of its kind; any other topology is a table of its routes.
///
///   node 0 --- node link --+                    +-- server link --- station instance 0
///   node 1 --- node link --+-- (backbone link) -+-- server link --- station instance 1
class Network {
public:
  Network(simgrid_compat::s4u::Engine& engine, const Platform& platform, const Placement& placement);
  void connect(System& system);

  void start(const Transfer& transfer);
  /// Bytes of all flows that began, and of those that ended.
  double begun_bytes() const { return begun_bytes_; }
  double ended_bytes() const { return ended_bytes_; }
  bool is_idle() const { return flows_.empty(); }

private:
  void make_star(const NetworkSpec& spec);
  void make_routes(const Platform& platform, const Topology& topology);
  void finished(const simgrid_compat::s4u::Comm& comm);

  System* system_     = nullptr;
  double begun_bytes_ = 0;
  double ended_bytes_ = 0;
  NetworkEnds ends_;
  std::vector<uint32_t> first_server_;            ///< by station: its first end
  std::vector<simgrid_compat::s4u::Host*> hosts_; ///< by end
  struct Flow {
    simgrid_compat::s4u::CommPtr comm;
    JobId job;
    double bytes;
  };
  std::unordered_map<const simgrid_compat::s4u::Comm*, Flow> flows_;
  simgrid_compat::s4u::CommPtr ended_; ///< the last; SimGrid 4 goes on with it after the callback
};

} // namespace iocast
