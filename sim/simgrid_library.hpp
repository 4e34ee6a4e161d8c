// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/topology.hpp"
#include "sim/progress.hpp"
#include "sim/simulation.hpp"

namespace iocast {

/// What few simulations need of SimGrid: sim/simgrid/, a library of its own (input/own_library.hpp). Linked with it,
/// iocast-sim took four times as long to start.
struct SimGridLibrary {
  /// `network: {simgrid: FILE.xml, hosts: {...}}`. @throws InputError
  std::shared_ptr<const TopologyPlan> (*read_topology)(const YamlNode& network);
  /// SimGrid times the flows, and the calendar is one of its models. @throws RunError
  void (*run)(Simulation& simulation, const SimulationRequest& request, SimulationProgress& progress);
};

/// Loads it, once. @throws InputError when it can't be loaded
const SimGridLibrary& simgrid_library();
/// Of the SimGrid that iocast-sim was built with; loads nothing.
std::string simgrid_version();
/// The topology of SimGrid's platform files.
TopologyKind simgrid_kind();

} // namespace iocast
