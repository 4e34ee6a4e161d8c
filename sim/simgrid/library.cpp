// SPDX-License-Identifier: Apache-2.0
#include "sim/simgrid_library.hpp"

#include "input/error.hpp"
#include "sim/simgrid/calendar_model.hpp"
#include "sim/simgrid/network.hpp"
#include "sim/simgrid/topology.hpp"

#include <fmt/format.h>

namespace iocast {

namespace {
void run_with_simgrid(Simulation& simulation, const SimulationRequest& request, SimulationProgress& progress)
{
  auto& engine = simgrid_engine();
  Network network(engine, request.platform, request.placement);
  network.connect(simulation.system());
  simulation.start();
  engine.add_model(std::make_shared<CalendarModel>(simulation.system(), &network, progress));
  engine.run();
  if (network.is_idle() && network.begun_bytes() != network.ended_bytes())
    throw RunError(fmt::format("Transfers of {} bytes began and of {} ended; this is an error of the simulator.",
                               network.begun_bytes(), network.ended_bytes()));
}
} // namespace

} // namespace iocast

extern "C" const iocast::SimGridLibrary iocast_simgrid{iocast::read_simgrid, iocast::run_with_simgrid};
