// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/system.hpp"
#include "sim/simgrid_compat.hpp"

#include <unordered_map>
#include <vector>

namespace iocast {

/// Client nodes and servers around one switch, as a SimGrid star zone; large transfers are flows that share its links fairly.
///
///   node 0 --- node link --+                    +-- server link --- station instance 0
///   node 1 --- node link --+-- (backbone link) -+-- server link --- station instance 1
///
/// Hosts are made only for the stations that transfers go to. Beyond `most_hosts` nodes, neighbours share one host whose link
/// is as wide as theirs together, because SimGrid's cost grows with the links and flows in play.
class Network {
public:
  static constexpr uint32_t most_hosts = 1024;

  Network(simgrid_compat::s4u::Engine& engine, const Platform& platform, const Placement& placement);
  void connect(System& system);

  void start(const Transfer& transfer);

private:
  void finished(const simgrid_compat::s4u::Comm& comm);

  System* system_ = nullptr;
  uint32_t nodes_per_host_ = 1;
  std::vector<simgrid_compat::s4u::Host*> nodes_;
  std::vector<std::vector<simgrid_compat::s4u::Host*>> servers_; ///< by station, by instance
  struct Flow {
    simgrid_compat::s4u::CommPtr comm;
    JobId job;
  };
  std::unordered_map<const simgrid_compat::s4u::Comm*, Flow> flows_;
  simgrid_compat::s4u::CommPtr ended_; ///< the last; SimGrid 4 goes on with it after the callback
};

/// True when the platform moves data in steps that can become flows for objects of this size.
bool needs_network(const Platform& platform, const Pattern& pattern);

} // namespace iocast
