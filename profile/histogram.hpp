// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace iocast {

/// A latency histogram with HdrHistogram's bucket layout: integer nanoseconds from 1 ns to a day, three significant
/// digits (each bucket at most 0.1 % wide). Longer values are counted in the last bucket, and how many they are; mean,
/// minimum and maximum are of the values themselves. Counts are kept of the buckets between the shortest and the
/// longest value, 311 KB if these are a nanosecond and a day, a little more while that is found out; recording is one
/// increment, merging is exact. G. Tene, HdrHistogram; the V2 encoding is the one that its tools read.
class Histogram {
public:
  static constexpr int64_t highest_ns       = 86'400'000'000'000;
  static constexpr int significant_digits   = 3;
  static constexpr int sub_bucket_bits      = 11; ///< 2048 >= 2 x 10^3
  static constexpr int64_t sub_bucket_count = int64_t{1} << sub_bucket_bits;
  static constexpr int64_t half_count       = sub_bucket_count / 2;
  static constexpr int bucket_count = 64 - std::countl_zero(static_cast<uint64_t>(highest_ns)) - sub_bucket_bits + 1;
  static constexpr size_t size      = (bucket_count + 1) * half_count;

  void record(int64_t ns)
  {
    ns        = ns < 0 ? 0 : ns;
    size_t at = bucket_of(ns) - first_;
    if (at >= counts_.size()) [[unlikely]] {
      cover(bucket_of(ns));
      at = bucket_of(ns) - first_;
    }
    beyond_ += ns > highest_ns;
    ++counts_[at];
    ++total_;
    sum_ns_ += static_cast<double>(ns);
    if (ns > max_ns_)
      max_ns_ = ns;
    if (ns < min_ns_)
      min_ns_ = ns;
  }

  static size_t index_of(int64_t ns)
  {
    const int bucket = 64 - std::countl_zero(static_cast<uint64_t>(ns) | (sub_bucket_count - 1)) - sub_bucket_bits;
    return static_cast<size_t>((static_cast<int64_t>(bucket + 1) << (sub_bucket_bits - 1)) +
                               ((ns >> bucket) - half_count));
  }
  /// The same, of values that may lie beyond the last.
  static size_t bucket_of(int64_t ns) { return index_of(ns > highest_ns ? highest_ns : ns); }
  /// The middle of the bucket's range of values.
  static double middle_ns(size_t index);

  uint64_t count() const { return total_; }
  double mean_ns() const { return total_ ? sum_ns_ / static_cast<double>(total_) : 0; }
  double sum_ns() const { return sum_ns_; }
  int64_t max_ns() const { return max_ns_; }
  int64_t min_ns() const { return total_ ? min_ns_ : 0; }
  /// How many values are above highest_ns.
  uint64_t beyond() const { return beyond_; }
  /// The value below or at which the share q of all values lies, to the bucket's width; 0 when empty.
  double quantile_ns(double q) const;

  /// Half-open range of indices that may be non-zero.
  std::pair<size_t, size_t> used() const;
  uint64_t count_at(size_t index) const { return index - first_ < counts_.size() ? counts_[index - first_] : 0; }
  /// The counts of these indices, to set; half open.
  std::span<uint64_t> counts(size_t first, size_t last);
  /// Makes room for all values, so that recording asks for no memory.
  void make_room() { counts(0, size); }
  /// Beside counts that are set.
  void set_totals(uint64_t total, double sum_ns, int64_t min_ns, int64_t max_ns, uint64_t beyond = 0);
  void merge(const Histogram& other);

  /// Base64 of HdrHistogram's compressed V2 encoding ("HISTFAAA...").
  std::string encode() const;

private:
  /// Makes room for a value there, and for its neighbours.
  void cover(size_t index);

  std::vector<uint64_t> counts_; ///< of indices from `first_` on
  size_t first_    = 0;
  uint64_t total_  = 0;
  double sum_ns_   = 0;
  int64_t max_ns_  = 0;
  int64_t min_ns_  = INT64_MAX;
  uint64_t beyond_ = 0;
};

} // namespace iocast
