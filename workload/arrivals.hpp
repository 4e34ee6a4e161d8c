// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "workload/parameters.hpp"

#include <cstdint>
#include <vector>

namespace iocast {

/// When a rank asks for its next operation. Every workload has these parameters beside its own.
///
/// Closed loop: after each answer it thinks, `waiting_factor` times as long as the answer took (the T of Kunkel &
/// Markomanolis 2018, section 3), so that it is inside an operation 1/(1+T) of its time, and `think_time` in addition.
/// Open loop, when `rate` isn't 0: each rank means to start its operations at moments that don't depend on the answers.
/// It does one at a time: an operation whose moment comes too early starts when the one before has ended. From the
/// intended start to the answer is the response time, from the real start the service time (Schroeder, Wierman &
/// Harchol-Balter, "Open versus closed: a cautionary tale", NSDI 2006).
struct Arrivals {
  enum class Law : uint8_t { fixed, exponential };

  double waiting_factor = 0;
  double think_time     = 0; ///< seconds, a mean
  Law think             = Law::fixed;
  double rate           = 0; ///< operations a second of each rank
  Law gap               = Law::exponential;

  bool is_open() const { return rate > 0; }
  bool thinks() const { return waiting_factor > 0 || think_time > 0; }

  /// Seconds to think after operation `number` of the rank's stream, which took `response` seconds.
  double think_seconds(double response, uint64_t seed, uint32_t rank, uint64_t number) const;
  /// From the intended start of the operation before, or from the start of the phase when this is its `first`
  /// operation, to that of operation `number`. Ranks at a fixed rate begin their beat at a random place of it: they
  /// would otherwise all ask at once.
  int64_t gap_ns(uint64_t seed, uint32_t rank, uint64_t number, bool first) const;

  bool operator==(const Arrivals&) const = default;
};

/// Parameters of arrivals and of where ranks lie, which every workload has.
const std::vector<Parameter>& arrival_parameters();
/// @throws InputError when they contradict each other
Arrivals read_arrivals(const Parameters& given);
/// Whether rank r is to lie on node r mod nodes. @throws InputError for an unknown placement
bool lies_cyclically(const Parameters& given);

} // namespace iocast
