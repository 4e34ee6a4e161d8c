// SPDX-License-Identifier: Apache-2.0
#include "profile/histogram.hpp"

#include <algorithm>
#include <cmath>
#include <span>

namespace iocast {

double Histogram::middle_ns(size_t index)
{
  const auto at  = static_cast<int64_t>(index);
  int64_t bucket = (at >> (sub_bucket_bits - 1)) - 1;
  int64_t sub    = (at & (half_count - 1)) + half_count;
  if (bucket < 0) {
    sub -= half_count;
    bucket = 0;
  }
  const auto width = static_cast<double>(int64_t{1} << bucket);
  return static_cast<double>(sub << bucket) + (width - 1) / 2;
}

double Histogram::quantile_ns(double q) const
{
  if (total_ == 0)
    return 0;
  const auto rank          = std::max<uint64_t>(1, static_cast<uint64_t>(std::ceil(q * static_cast<double>(total_))));
  uint64_t seen            = 0;
  const auto [first, last] = used();
  for (size_t i = first; i < last; ++i) {
    seen += count_at(i);
    if (seen >= rank)
      return std::clamp(middle_ns(i), static_cast<double>(min_ns_), static_cast<double>(max_ns_));
  }
  return static_cast<double>(max_ns_);
}

std::pair<size_t, size_t> Histogram::used() const
{
  return total_ == 0 ? std::pair<size_t, size_t>{0, 0} : std::pair{bucket_of(min_ns_), bucket_of(max_ns_) + 1};
}

void Histogram::cover(size_t index)
{
  // Whole halves of buckets: a distribution has values in a few of them.
  const size_t from = index / half_count * half_count;
  const size_t to   = from + half_count;
  if (counts_.empty()) {
    first_ = from;
    counts_.resize(half_count);
  } else if (from < first_) {
    counts_.insert(counts_.begin(), first_ - from, 0);
    first_ = from;
  } else if (to > first_ + counts_.size())
    counts_.resize(to - first_);
}

std::span<uint64_t> Histogram::counts(size_t first, size_t last)
{
  if (first == last)
    return {};
  cover(first);
  cover(last - 1);
  return std::span(counts_).subspan(first - first_, last - first);
}

void Histogram::set_totals(uint64_t total, double sum_ns, int64_t min_ns, int64_t max_ns, uint64_t beyond)
{
  beyond_ = beyond;
  total_  = total;
  sum_ns_ = sum_ns;
  min_ns_ = min_ns;
  max_ns_ = max_ns;
}

void Histogram::merge(const Histogram& other)
{
  const auto [first, last] = other.used();
  for (size_t i = first; auto& count : counts(first, last))
    count += other.count_at(i++);
  set_totals(total_ + other.total_, sum_ns_ + other.sum_ns_, std::min(min_ns_, other.min_ns_),
             std::max(max_ns_, other.max_ns_), beyond_ + other.beyond_);
}

} // namespace iocast
