// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace iocast {

/// The value that a standard normal variable stays below with probability `u`, above 0 and below 1. All in doubles: the
/// same number on every machine, whatever its long double is.
double normal_quantile(double u);

/// Likewise of Student's t with `freedom` degrees of freedom.
double t_quantile(double freedom, double probability);

} // namespace iocast
