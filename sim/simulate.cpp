// SPDX-License-Identifier: Apache-2.0
#include "sim/simulate.hpp"

#include "input/error.hpp"
#include "sim/progress.hpp"
#include "sim/simgrid_library.hpp"

#include <chrono>
#include <fmt/format.h>
#include <limits>
#include <sys/resource.h>

namespace iocast {

namespace {
/// SimGrid's flows know links of a network and nothing else.
void refuse_devices(const Platform& platform)
{
  for (const auto& station : platform.stations)
    if (station.disk.exists() || station.rpc.size > 0)
      throw InputError(fmt::format("SimGrid's flows (--flows simgrid) pass no {}, and the station '{}' of the platform "
                                   "'{}' has one; compare on a platform without, such as 'network'.",
                                   station.disk.exists() ? "disk" : "window of requests", station.name, platform.name));
}

void run_alone(Simulation& simulation, SimulationProgress& progress)
{
  constexpr uint64_t events_between_reports = 1 << 20;
  auto& system                              = simulation.system();
  simulation.start();
  while (!system.run(std::numeric_limits<double>::infinity(), events_between_reports))
    progress.update(system.requests(), system.now());
}
} // namespace

nlohmann::ordered_json simulate(const SimulationRequest& request, SimulationCost& cost)
{
  const auto started = std::chrono::steady_clock::now();
  if (request.simgrid_flows && Fabric::limits(request.platform))
    refuse_devices(request.platform);
  Simulation simulation(request);
  SimulationProgress progress(simulation.pattern());
  if (simulation.hands_out_flows())
    simgrid_library().run(simulation, request, progress);
  else
    run_alone(simulation, progress);
  progress.end();
  auto json         = simulation.end();
  cost.requests     = simulation.system().requests();
  cost.events       = simulation.system().events();
  cost.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  cost.peak_rss_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  return json;
}

} // namespace iocast
