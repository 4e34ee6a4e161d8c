// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/topology.hpp"
#include "sim/simgrid/compat.hpp"

namespace iocast {

/// SimGrid's engine, of which a process has one; its links share as ours do, see topology.cpp.
simgrid_compat::s4u::Engine& simgrid_engine();

/// A network that has hosts of a platform of SimGrid.
class SimGridHosts {
public:
  virtual ~SimGridHosts()                                        = default;
  virtual simgrid_compat::s4u::Host* host_of(uint32_t end) const = 0;
};

/// `network: {simgrid: FILE.xml, hosts: {...}}`. @throws InputError
std::shared_ptr<const TopologyPlan> read_simgrid(const YamlNode& network);

} // namespace iocast
