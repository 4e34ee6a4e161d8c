// SPDX-License-Identifier: Apache-2.0
#include "profile/precision.hpp"

#include "input/error.hpp"
#include "profile/batch_means.hpp"
#include "profile/steady_state.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

namespace iocast {

namespace {
constexpr size_t batches_at_first = 64;
constexpr size_t most_batches     = 128; ///< then neighbours become one
constexpr size_t between_looks    = 16;
constexpr size_t groups_wanted    = 16;
constexpr double periods_wanted   = 10;
constexpr double least_beyond     = 20; ///< operations of a group that are beyond a quantile

PrecisionTarget parse_target(const std::string& text)
{
  const auto refuse = [&](const std::string& why) {
    return InputError(fmt::format("'{}' of --until is no target: {}. Write a quantity and how exactly it is wanted, "
                                  "such as q99:5%, rate:1% or create.q95:3%.",
                                  text, why));
  };
  const auto colon = text.rfind(':');
  if (colon == std::string::npos || !text.ends_with('%'))
    throw refuse("it has no precision in percent");
  PrecisionTarget target;
  target.name       = text.substr(0, colon);
  double percent    = 0;
  const char* end   = text.data() + text.size() - 1;
  const auto parsed = std::from_chars(text.data() + colon + 1, end, percent);
  if (parsed.ec != std::errc() || parsed.ptr != end || !(percent > 0 && percent <= 50))
    throw refuse("the precision is a number of percent above 0 and up to 50");
  target.relative = percent / 100;
  auto quantity   = target.name;
  if (const auto dot = quantity.find('.'); dot != std::string::npos) {
    const auto op = quantity.substr(0, dot);
    quantity      = quantity.substr(dot + 1);
    std::vector<std::string> names;
    for (size_t kind = 1; kind < op_count; ++kind) {
      names.emplace_back(op_names[kind]);
      if (names.back() == op)
        target.kind = static_cast<OpKind>(kind);
    }
    if (target.kind == OpKind::phase)
      throw InputError(
          fmt::format("There is no operation '{}' as in '{}' of --until. {}", op, text, allowed_sentence(op, names)));
  }
  if (quantity == "rate" && target.kind == OpKind::phase)
    return target;
  if (quantity == "mean") {
    target.quantity = PrecisionTarget::Quantity::mean;
    return target;
  }
  if (quantity.size() < 3 || quantity.size() > 6 || quantity[0] != 'q' ||
      quantity.find_first_not_of("0123456789", 1) != std::string::npos)
    throw refuse("the quantities are rate (of all operations), mean and quantiles such as q50, q99 and q999");
  target.quantity = PrecisionTarget::Quantity::quantile;
  target.quantile = std::stod("0." + quantity.substr(1));
  if (target.quantile <= 0)
    throw refuse("q00 is no quantile");
  return target;
}
} // namespace

std::vector<PrecisionTarget> parse_precision(const std::string& text)
{
  std::vector<PrecisionTarget> targets;
  for (size_t from = 0; from <= text.size();) {
    const auto to = std::min(text.find(',', from), text.size());
    targets.push_back(parse_target(text.substr(from, to - from)));
    from = to + 1;
  }
  return targets;
}

void PrecisionWatch::Batch::merge(const Batch& later)
{
  for (size_t k = 0; k < op_count; ++k) {
    of_kind[k] += later.of_kind[k];
    sum_ns[k] += later.sum_ns[k];
    if (!later.counts[k])
      continue;
    if (!counts[k])
      counts[k] = std::make_unique<Counts>();
    for (size_t i = 0; i < buckets; ++i)
      (*counts[k])[i] += (*later.counts[k])[i];
  }
  operations += later.operations;
  end = later.end;
}

double PrecisionWatch::Batch::mean_ns() const
{
  return operations ? std::accumulate(sum_ns.begin(), sum_ns.end(), 0.0) / static_cast<double>(operations) : 0;
}

double PrecisionWatch::Batch::quantile_ns(size_t kind, double q) const
{
  if (!counts[kind])
    return 0;
  const double wanted = q * static_cast<double>(of_kind[kind]);
  double before       = 0;
  for (size_t i = 0; i < buckets; ++i) {
    const auto here = static_cast<double>((*counts[kind])[i]);
    if (here > 0 && before + here >= wanted) {
      const double low  = Histogram::middle_ns(i * coarse);
      const double high = Histogram::middle_ns(std::min(i * coarse + coarse, Histogram::size - 1));
      return low + (high - low) * (wanted - before) / here;
    }
    before += here;
  }
  return 0;
}

PrecisionWatch::PrecisionWatch(std::vector<PrecisionTarget> targets, uint32_t ranks, double longest_period_seconds)
    // Each rank acts in each batch: the ranks' common start is then warm-up, and gone after a few of them.
    : targets_(std::move(targets))
    , batch_operations_(std::max<uint64_t>(1024, ranks))
    , longest_period_(longest_period_seconds)
{
}

void PrecisionWatch::begin(double now)
{
  begun_ = now;
  batches_.clear();
  batches_.emplace_back();
}

bool PrecisionWatch::close(double now)
{
  batches_.back().end = now;
  const size_t closed = batches_.size();
  const bool looks    = closed >= batches_at_first && closed % between_looks == 0;
  if (looks && achieved().met)
    return true;
  if (closed == most_batches) {
    for (size_t i = 0; i < closed / 2; ++i) {
      batches_[2 * i].merge(batches_[2 * i + 1]);
      if (i > 0)
        batches_[i] = std::move(batches_[2 * i]);
    }
    batches_.resize(closed / 2);
    batch_operations_ *= 2;
  }
  batches_.emplace_back();
  return false;
}

PrecisionWatch::Achieved PrecisionWatch::achieved() const
{
  Achieved result;
  const size_t closed = batches_.size() - (batches_.empty() || batches_.back().operations == batch_operations_ ? 0 : 1);
  if (closed < 2 * groups_wanted)
    return result;
  std::vector<double> means;
  for (size_t i = 0; i < closed; ++i)
    means.push_back(batches_[i].mean_ns());
  // The groups are of equal length: what does not fill them goes with the warm-up.
  const Grouping grouping(warm_up(means), closed, groups_wanted);
  const size_t cut       = grouping.first;
  double since           = cut > 0 ? batches_[cut - 1].end : begun_;
  result.warm_up_seconds = since - begun_;
  std::vector<Batch> groups(groups_wanted);
  std::vector<double> seconds;
  for (size_t i = cut; i < closed; ++i)
    groups[grouping.group_of(i)].merge(batches_[i]);
  for (const auto& group : groups) {
    seconds.push_back(group.end - since);
    since = group.end;
    result.operations += group.operations;
  }
  result.met = batches_[closed - 1].end - begun_ - result.warm_up_seconds >= periods_wanted * longest_period_;
  for (const auto& target : targets_) {
    if (target.quantity == PrecisionTarget::Quantity::rate) {
      result.estimates.push_back(estimate(groups, seconds, target, 0));
      continue;
    }
    for (size_t kind = 1; kind < op_count; ++kind)
      if (target.kind == static_cast<OpKind>(kind) ||
          (target.kind == OpKind::phase && groups.front().of_kind[kind] > 0))
        result.estimates.push_back(estimate(groups, seconds, target, kind));
  }
  for (const auto& one : result.estimates)
    result.met = result.met && one.met;
  return result;
}

PrecisionWatch::Estimate PrecisionWatch::estimate(const std::vector<Batch>& groups, const std::vector<double>& seconds,
                                                  const PrecisionTarget& target, size_t kind) const
{
  using enum PrecisionTarget::Quantity;
  Estimate result;
  const bool of_each = target.kind == OpKind::phase && target.quantity != rate;
  result.name        = of_each ? fmt::format("{}.{}", op_names[kind], target.name) : target.name;
  result.requested   = target.relative;
  Batch all;
  double whole = 0;
  std::vector<double> values;
  bool enough         = true;
  const auto value_of = [&](const Batch& batch, double length) {
    switch (target.quantity) {
      case rate:
        return static_cast<double>(batch.operations) / length;
      case mean:
        return batch.of_kind[kind] ? batch.sum_ns[kind] / static_cast<double>(batch.of_kind[kind]) * 1e-9 : 0;
      case quantile:
        return batch.quantile_ns(kind, target.quantile) * 1e-9;
    }
    return 0.0;
  };
  for (size_t i = 0; i < groups.size(); ++i) {
    values.push_back(value_of(groups[i], seconds[i]));
    const double beyond = static_cast<double>(groups[i].of_kind[kind]) * std::min(target.quantile, 1 - target.quantile);
    enough              = enough && (target.quantity == rate || groups[i].of_kind[kind] > 0) &&
             (target.quantity != quantile || beyond >= least_beyond);
    all.merge(groups[i]);
    whole += seconds[i];
  }
  const auto interval = batch_means(values);
  result.value        = value_of(all, whole);
  result.half_width   = interval.half_width;
  result.met          = enough && interval.safe_half_width() <= target.relative * result.value;
  return result;
}

} // namespace iocast
