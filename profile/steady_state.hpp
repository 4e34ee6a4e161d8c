// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "profile/recorder.hpp"

#include <optional>
#include <vector>

namespace iocast {

/// The part of a phase between its ramps, in seconds since the start of the phase.
struct SteadyState {
  double begin_seconds = 0; ///< the warm-up is over
  double end_seconds   = 0; ///< the first rank has done all it had to do, or the phase ends
  uint64_t operations  = 0; ///< answered in between, of all kinds
  double rate          = 0; ///< of these, a second
  /// Of its 95 % confidence interval, by batch means; wider where these depend on each other. Where more than a quarter
  /// of the phase was cut off, it is at least that of the whole phase.
  double rate_half_width = 0;
};

/// Where the rate of a phase is steady, from its time line. The ramp-down begins with the end of the first rank that
/// had operations, see shortest_working(); the warm-up ends where MSER-5 cuts it off: the batches of five bins that are
/// left have the smallest variance of their mean (White, "An effective truncation heuristic for bias reduction in
/// simulation output", Simulation 69 (1997) 323-334). At most half is cut off (White, Cobb & Spratt, "A comparison of
/// five steady-state truncation heuristics", WSC 2000).
/// @return nothing when the phase is too short (fewer than ten batches before its ramp-down), or when what is left
/// still has a trend
std::optional<SteadyState> steady_state(const PhaseRecorder& recorder, const std::vector<double>& rank_seconds);

/// The time of the first rank to end among those that had operations in the phase, whose time is above 0; 0 without
/// any.
double shortest_working(const std::vector<double>& rank_seconds);

/// How many of the first values are warm-up, by the same rule: those without which the variance of the others' mean is
/// smallest, at most half.
size_t warm_up(const std::vector<double>& batch_values);

} // namespace iocast
