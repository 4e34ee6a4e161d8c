// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/topology.hpp"

namespace iocast {

// One of each file beside this one.
TopologyKind fat_tree_kind();
TopologyKind islands_kind();
TopologyKind dragonfly_kind();
TopologyKind torus_kind();

/// Of which an instance of this station is on all ways between nodes and other servers.
std::unique_ptr<Topology> behind_routers(std::unique_ptr<Topology> topology, const NetworkSpec& spec,
                                         const NetworkEnds& ends);

} // namespace iocast
