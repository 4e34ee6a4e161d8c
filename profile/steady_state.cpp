// SPDX-License-Identifier: Apache-2.0
#include "profile/steady_state.hpp"

#include "profile/batch_means.hpp"
#include "profile/confidence.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace iocast {

namespace {
constexpr size_t bins_per_batch = 5;
constexpr size_t fewest_batches = 10;
/// Numbers of groups that intervals are made from. Few long ones see what comes and goes slowly, many short ones tell
/// dependence from chance.
constexpr size_t group_counts[]  = {8, 16, 32};
constexpr size_t groups_of_trend = 16;
/// A phase's share beyond which its cut-off beginning may be load that came and went, for all that is known.
constexpr double longest_warm_up = 0.25;

/// All kinds together.
Timeline timeline_of(const PhaseRecorder& recorder)
{
  Timeline all;
  for (size_t k = 0; k < op_count; ++k)
    if (const auto kind = static_cast<OpKind>(k); recorder.has(kind) && recorder.of_kind(kind).whole.count() > 0)
      all.merge(recorder.of_kind(kind).timeline);
  return all;
}

/// Rates of `groups` groups of batches; of the batches themselves where there are fewer than two a group.
std::vector<double> grouped(const std::vector<double>& rates, size_t groups)
{
  if (rates.size() < 2 * groups)
    return rates;
  const Grouping grouping(0, rates.size(), groups);
  std::vector<double> result(groups);
  for (size_t i = grouping.first; i < rates.size(); ++i)
    result[grouping.group_of(i)] += rates[i] / static_cast<double>(grouping.each);
  return result;
}

/// Half the width of the interval of the mean rate: the widest of those by different numbers of groups.
double half_width_of(const std::vector<double>& rates)
{
  double widest = 0;
  for (const size_t groups : group_counts)
    widest = std::max(widest, batch_means(grouped(rates, groups)).safe_half_width());
  return widest;
}

/// Whether a line through the rates changes by more than a twentieth of their mean from end to end, and not by chance
/// (one in a thousand).
bool has_trend(const std::vector<double>& rates)
{
  const auto n        = static_cast<double>(rates.size());
  const double middle = (n - 1) / 2;
  double mean = 0, product = 0, squares = 0;
  for (const double rate : rates)
    mean += rate / n;
  for (size_t i = 0; i < rates.size(); ++i) {
    product += (static_cast<double>(i) - middle) * (rates[i] - mean);
    squares += (rates[i] - mean) * (rates[i] - mean);
  }
  const double spread   = n * (n * n - 1) / 12; // sum of squares of the places
  const double slope    = product / spread;
  const double residual = std::max(0.0, squares - slope * product) / (n - 2);
  return std::abs(slope) * n > 0.05 * mean &&
         std::abs(slope) > t_quantile(n - 2, 0.9995) * std::sqrt(residual / spread);
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

double shortest_working(const std::vector<double>& rank_seconds)
{
  double shortest = 0;
  for (const double seconds : rank_seconds)
    if (seconds > 0 && (shortest == 0 || seconds < shortest))
      shortest = seconds;
  return shortest;
}

std::optional<SteadyState> steady_state(const PhaseRecorder& recorder, const std::vector<double>& rank_seconds)
{
  const double first_end    = shortest_working(rank_seconds);
  const Timeline timeline   = timeline_of(recorder);
  const double bin_seconds  = static_cast<double>(timeline.width_ns()) * 1e-9;
  const double batch_length = bin_seconds * bins_per_batch;
  const auto batches        = static_cast<size_t>(std::min(first_end, Timeline::bins * bin_seconds) / batch_length);
  if (batches < fewest_batches)
    return std::nullopt;
  std::vector<uint64_t> counts(batches);
  for (size_t i = 0; i < batches * bins_per_batch; ++i)
    counts[i / bins_per_batch] += timeline.data()[i].count;

  const size_t cut = warm_up({counts.begin(), counts.end()});
  SteadyState result;
  result.begin_seconds = static_cast<double>(cut) * batch_length;
  result.end_seconds   = static_cast<double>(batches) * batch_length;
  result.operations    = std::accumulate(counts.begin() + static_cast<std::ptrdiff_t>(cut), counts.end(), uint64_t{0});
  if (result.operations == 0)
    return std::nullopt;
  std::vector<double> all;
  for (const uint64_t count : counts)
    all.push_back(static_cast<double>(count) / batch_length);
  const std::vector<double> rates(all.begin() + static_cast<std::ptrdiff_t>(cut), all.end());
  // Of groups, not of batches: work that comes and goes by the second looks like a trend to short ones.
  if (has_trend(grouped(rates, groups_of_trend)))
    return std::nullopt;
  result.rate            = static_cast<double>(result.operations) / (result.end_seconds - result.begin_seconds);
  result.rate_half_width = half_width_of(rates);
  if (static_cast<double>(cut) > longest_warm_up * static_cast<double>(batches))
    result.rate_half_width = std::max(result.rate_half_width, half_width_of(all));
  return result;
}

} // namespace iocast
