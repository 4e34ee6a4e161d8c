// SPDX-License-Identifier: Apache-2.0
#include "profile/recorder.hpp"

#include <tuple>

namespace iocast {

bool is_slower(const SlowOp& a, const SlowOp& b)
{
  return std::tie(b.ns, a.start_ns, a.rank, a.object) < std::tie(a.ns, b.start_ns, b.rank, b.object);
}

void Timeline::widen_to(int64_t end_ns)
{
  while (end_ns >= limit_ns_) {
    for (size_t i = 0; i < bins; ++i) {
      Bin merged;
      if (2 * i + 1 < bins) {
        merged = bins_[2 * i];
        merged.count += bins_[2 * i + 1].count;
        merged.sum_ns += bins_[2 * i + 1].sum_ns;
        merged.max_ns = std::max(merged.max_ns, bins_[2 * i + 1].max_ns);
      }
      bins_[i] = merged;
    }
    width_ns_ *= 2;
    bins_per_ns_ /= 2;
    limit_ns_ *= 2;
  }
}

void Timeline::set_width(int64_t width_ns)
{
  while (width_ns_ < width_ns)
    widen_to(limit_ns_);
}

void Timeline::merge(const Timeline& other)
{
  Timeline copy = other;
  set_width(copy.width_ns_);
  copy.set_width(width_ns_);
  for (size_t i = 0; i < bins; ++i) {
    bins_[i].count += copy.bins_[i].count;
    bins_[i].sum_ns += copy.bins_[i].sum_ns;
    bins_[i].max_ns = std::max(bins_[i].max_ns, copy.bins_[i].max_ns);
  }
}

uint64_t PhaseRecorder::operations() const
{
  uint64_t total = 0;
  for (const auto& of : kinds_)
    total += of ? of->whole.count() : 0;
  return total;
}

uint64_t PhaseRecorder::errors() const
{
  uint64_t total = 0;
  for (const auto& of : kinds_)
    total += of ? of->errors : 0;
  return total;
}

double PhaseRecorder::responding_seconds() const
{
  double total = 0;
  for (const auto& of : kinds_)
    total += of ? of->whole.sum_ns() : 0;
  return total * 1e-9;
}

void PhaseRecorder::keep_slow(const SlowOp& op)
{
  slow_.push_back(op);
  if (slow_.size() >= 2 * slow_kept) {
    const auto last = slow_.begin() + slow_kept - 1;
    std::nth_element(slow_.begin(), last, slow_.end(), is_slower);
    slow_threshold_ns_ = last->ns;
    slow_.resize(slow_kept);
  }
}

void PhaseRecorder::trim_slow()
{
  std::sort(slow_.begin(), slow_.end(), is_slower);
  if (slow_.size() > slow_kept)
    slow_.resize(slow_kept);
}

} // namespace iocast
