// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "input/normal.hpp"

#include <vector>

namespace iocast {

/// A mean and half the width of its two-sided 95 % confidence interval.
struct MeanInterval {
  double mean       = 0;
  double half_width = 0;
};

/// Of at least two independent values that are about normal, by Student's t.
MeanInterval mean_interval(const std::vector<double>& values);

} // namespace iocast
