// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace iocast {

/// When a rank asks for its next operation. Closed loop: after each answer it thinks `waiting_factor` times as long as the
/// answer took (the T of Kunkel & Markomanolis 2018, section 3), so that it is inside an operation 1/(1+T) of its time.
struct Arrivals {
  double waiting_factor = 0;

  double think_seconds(double response_seconds) const { return waiting_factor * response_seconds; }
};

} // namespace iocast
