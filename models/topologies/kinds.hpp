// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/topology.hpp"

namespace iocast {

// One of each file beside this one.
TopologyKind fat_tree_kind();
TopologyKind islands_kind();
TopologyKind dragonfly_kind();
TopologyKind torus_kind();

} // namespace iocast
