// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace iocast {

/// The value that a standard normal variable stays below with probability `u`, above 0 and below 1. The same number on
/// every machine.
double normal_quantile(double u);

/// Likewise of Student's t with `freedom` degrees of freedom. Rounded to seven digits: it is computed with the
/// functions of the C library, which differ in their last digit.
double t_quantile(double freedom, double probability);

} // namespace iocast
