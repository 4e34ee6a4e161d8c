// SPDX-License-Identifier: Apache-2.0
#include "profile/steady_state.hpp"

#include "profile/confidence.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace iocast {

namespace {
constexpr size_t bins_per_batch = 5;
constexpr size_t fewest_batches = 10;

/// All kinds together.
Timeline timeline_of(const PhaseRecorder& recorder)
{
  Timeline all;
  for (size_t k = 0; k < op_count; ++k)
    if (const auto kind = static_cast<OpKind>(k); recorder.has(kind) && recorder.of_kind(kind).whole.count() > 0)
      all.merge(recorder.of_kind(kind).timeline);
  return all;
}

/// Whether a line through the counts changes by more than a twentieth of their mean from end to end, and not by chance (one in a thousand).
bool has_trend(const std::vector<uint64_t>& counts)
{
  const auto n        = static_cast<double>(counts.size());
  const double middle = (n - 1) / 2;
  double mean = 0, product = 0, squares = 0;
  for (const uint64_t count : counts)
    mean += static_cast<double>(count) / n;
  for (size_t i = 0; i < counts.size(); ++i) {
    product += (static_cast<double>(i) - middle) * (static_cast<double>(counts[i]) - mean);
    squares += (static_cast<double>(counts[i]) - mean) * (static_cast<double>(counts[i]) - mean);
  }
  const double spread   = n * (n * n - 1) / 12; // sum of squares of the places
  const double slope    = product / spread;
  const double residual = std::max(0.0, squares - slope * product) / (n - 2);
  return std::abs(slope) * n > 0.05 * mean && std::abs(slope) > t_quantile(n - 2, 0.9995) * std::sqrt(residual / spread);
}
} // namespace

size_t warm_up(const std::vector<double>& batch_values)
{
  // From the end backwards, so that each cut needs the sums of one more batch only.
  const size_t batches = batch_values.size();
  double sum = 0, squares = 0, least = std::numeric_limits<double>::infinity();
  size_t cut = 0;
  for (size_t kept = 1; kept <= batches; ++kept) {
    const double value = batch_values[batches - kept];
    sum += value;
    squares += value * value;
    const auto n          = static_cast<double>(kept);
    const double variance = std::max(0.0, squares - sum * sum / n) / (n * n); // of the mean
    // Few batches say little of a variance, and by chance may have the least.
    if (2 * kept >= batches && variance <= least) {
      least = variance;
      cut   = batches - kept;
    }
  }
  return cut;
}

std::optional<SteadyState> steady_state(const PhaseRecorder& recorder, const std::vector<double>& rank_seconds)
{
  if (rank_seconds.empty())
    return std::nullopt;
  const double first_end    = *std::min_element(rank_seconds.begin(), rank_seconds.end());
  const Timeline timeline   = timeline_of(recorder);
  const double bin_seconds  = static_cast<double>(timeline.width_ns()) * 1e-9;
  const double batch_length = bin_seconds * bins_per_batch;
  const auto batches        = static_cast<size_t>(std::min(std::max(first_end, 0.0), Timeline::bins * bin_seconds) / batch_length);
  if (batches < fewest_batches)
    return std::nullopt;
  std::vector<uint64_t> counts(batches);
  for (size_t i = 0; i < batches * bins_per_batch; ++i)
    counts[i / bins_per_batch] += timeline.data()[i].count;

  const size_t cut = warm_up({counts.begin(), counts.end()});
  if (has_trend({counts.begin() + static_cast<std::ptrdiff_t>(cut), counts.end()}))
    return std::nullopt;

  SteadyState result;
  result.begin_seconds = static_cast<double>(cut) * batch_length;
  result.end_seconds   = static_cast<double>(batches) * batch_length;
  std::vector<double> rates;
  for (size_t i = cut; i < batches; ++i) {
    result.operations += counts[i];
    rates.push_back(static_cast<double>(counts[i]) / batch_length);
  }
  const auto [mean, half_width] = mean_interval(rates);
  result.rate                   = mean;
  result.rate_half_width        = half_width;
  return result;
}

} // namespace iocast
