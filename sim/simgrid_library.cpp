// SPDX-License-Identifier: Apache-2.0
#include "sim/simgrid_library.hpp"

#include "input/error.hpp"
#include "input/own_library.hpp"

#include <fmt/format.h>
#include <xbt/base.h> // for the next

#include <simgrid/version.h>

namespace iocast {

namespace {
const SimGridLibrary& load()
{
  try {
    return *static_cast<const SimGridLibrary*>(own_library::symbol_of("simgrid", "iocast_simgrid"));
  } catch (const RunError& error) {
    throw InputError(fmt::format("SimGrid can't be loaded, which this simulation needs: {}. To have it, {}.",
                                 error.what(), own_library::how_to_have_them));
  }
}

std::shared_ptr<const TopologyPlan> read(const YamlNode& network, const NetworkSpec&)
{
  return simgrid_library().read_topology(network);
}
} // namespace

const SimGridLibrary& simgrid_library()
{
  static const SimGridLibrary& library = load();
  return library;
}

std::string simgrid_version()
{
  return fmt::format("{}.{}{}", SIMGRID_VERSION_MAJOR, SIMGRID_VERSION_MINOR,
                     SIMGRID_VERSION_PATCH > 0 ? fmt::format(".{}", SIMGRID_VERSION_PATCH) : "");
}

TopologyKind simgrid_kind()
{
  return {"simgrid",
          "hosts, links and routes of a platform of SimGrid",
          {{"simgrid", "its XML file, beside the platform's; it has all bandwidths and latencies"},
           {"hosts", "nodes: names of the hosts that are client nodes, with {} in place of their number from 0; and so "
                     "by name of each station that bytes go to"}},
          "",
          read,
          true};
}

} // namespace iocast
