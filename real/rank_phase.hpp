// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "profile/recorder.hpp"
#include "real/agree.hpp"
#include "real/error_table.hpp"

#include <cstdint>
#include <optional>

namespace iocast {

/// What one rank brings home from a phase.
struct RankPhase {
  PhaseRecorder recorder;
  ErrorTable errors;
  double seconds              = 0; ///< from the start of the phase to this rank's last answer; 0: it had no operation
  double think_asked_seconds  = 0;
  double think_actual_seconds = 0;
  bool interrupted            = false; ///< by a signal, or because another rank can't go on
  bool cut                    = false; ///< its time was over
  uint64_t reached            = 0;     ///< see Pattern
  double first_step_seconds   = 0;     ///< from the start to the end of the first step, see StepTimes
  uint64_t swept              = 0;     ///< objects and datasets removed, see Sweeper
  std::optional<Failure> failure;
};

} // namespace iocast
