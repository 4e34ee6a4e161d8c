// SPDX-License-Identifier: Apache-2.0
#include "sim/simgrid/calendar_model.hpp"

#include "sim/simgrid/compat.hpp"

#include <algorithm>
#include <limits>

namespace iocast {

CalendarModel::CalendarModel(System& system, Network* network, SimulationProgress& progress)
    : simgrid::kernel::resource::Model("iocast-calendar"), system_(system), network_(network), progress_(progress)
{
}

double CalendarModel::next_occurring_event(double horizon_delta)
{
  const double now     = simgrid::s4u::Engine::get_clock();
  const double horizon = horizon_delta < 0 ? std::numeric_limits<double>::infinity() : now + horizon_delta;
  constexpr uint64_t events_between_reports = 1 << 20;
  while (!system_.run(horizon, events_between_reports))
    progress_.update(system_.requests(), system_.now());
  if (!system_.new_transfers().empty())
    return std::max(0.0, system_.now() - now);
  return -1; // nothing that SimGrid must know
}

void CalendarModel::update_actions_state(double now, double)
{
  // Transfers that begin now, not those that a shorter step of SimGrid's has yet to reach.
  if (system_.new_transfers().empty() || system_.now() > now + 1e-12)
    return;
  for (const auto& transfer : system_.new_transfers())
    network_->start(transfer);
  system_.new_transfers().clear();
}

} // namespace iocast
