// SPDX-License-Identifier: Apache-2.0
#include "profile/confidence.hpp"

#include <cmath>

namespace iocast {

MeanInterval mean_interval(const std::vector<double>& values)
{
  const auto n = static_cast<double>(values.size());
  MeanInterval result;
  for (const double value : values)
    result.mean += value / n;
  double squares = 0;
  for (const double value : values)
    squares += (value - result.mean) * (value - result.mean);
  result.half_width = t_quantile(n - 1, 0.975) * std::sqrt(squares / (n - 1) / n);
  return result;
}

} // namespace iocast
