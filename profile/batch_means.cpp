// SPDX-License-Identifier: Apache-2.0
#include "profile/batch_means.hpp"

#include "profile/confidence.hpp"

#include <cmath>

namespace iocast {

namespace {
/// Of the correlation of neighbours, times the root of the number of groups: n independent groups exceed it once in
/// twenty times.
constexpr double largest_by_chance = 1.6;
/// Of the interval when groups are dependent: that of a first-order autoregressive process with a correlation of 0.92.
constexpr double widening = 5;

double correlation_of_neighbours(const std::vector<double>& values, double mean)
{
  double product = 0, squares = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    squares += (values[i] - mean) * (values[i] - mean);
    if (i > 0)
      product += (values[i] - mean) * (values[i - 1] - mean);
  }
  return squares > 0 ? product / squares : 0;
}
} // namespace

double BatchMeans::safe_half_width() const
{
  return half_width * (are_dependent ? widening : 1);
}

BatchMeans batch_means(const std::vector<double>& groups)
{
  const auto [mean, half_width] = mean_interval(groups);
  return {mean, half_width,
          correlation_of_neighbours(groups, mean) > largest_by_chance / std::sqrt(static_cast<double>(groups.size()))};
}

} // namespace iocast
