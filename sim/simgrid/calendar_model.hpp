// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/system.hpp"
#include "sim/progress.hpp"
#include "sim/simgrid/network.hpp"

#include <simgrid/kernel/resource/Model.hpp>

namespace iocast {

/// The system's event calendar as a SimGrid model.
///
/// It declares itself non-idempotent, the hook that was made for ns-3: SimGrid then asks it last and tells it how far
/// everything else may go, so it works off all its own events up to there at full speed and returns earlier only when
/// it has transfers for SimGrid to time, or when all ranks have ended.
class CalendarModel : public simgrid::kernel::resource::Model {
public:
  /// @param network may be null when the system hands out no transfers
  CalendarModel(System& system, Network* network, SimulationProgress& progress);

  bool next_occurring_event_is_idempotent() override { return false; }
  /// @param horizon_delta seconds until the next event of all else, negative when there is none
  /// @return seconds until SimGrid must act, negative when there is nothing more to come
  double next_occurring_event(double horizon_delta) override;
  void update_actions_state(double now, double delta) override;

private:
  System& system_;
  Network* network_;
  SimulationProgress& progress_;
};

} // namespace iocast
