// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "profile/histogram.hpp"
#include "workload/op.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace iocast {

/// One timed operation, in nanoseconds since the start of its phase.
struct TimedOp {
  static constexpr int64_t not_intended = INT64_MIN;

  int64_t start_ns = 0;
  int64_t end_ns   = 0;
  std::array<int64_t, max_parts> part_ns{}; ///< durations of parts_of(kind), in order
  int64_t intended_ns = not_intended;       ///< when it was meant to start, in an open loop (arrivals.hpp)
};

/// A slow operation, kept whole.
struct SlowOp {
  int64_t ns;
  int64_t start_ns;
  uint64_t dataset;
  uint64_t object;
  uint32_t rank;
  OpKind kind;
};

/// The longest first: a total order, so that the same operations are kept whatever order they came in.
bool is_slower(const SlowOp& a, const SlowOp& b);

/// Operations by the time they ended: how many, their sum and their maximum. A fixed number of bins; when a phase
/// outgrows them, neighbours are merged and the width doubles, so memory does not grow with the run.
class Timeline {
public:
  static constexpr size_t bins            = 512;
  static constexpr int64_t first_width_ns = 15'625'000;

  struct Bin {
    uint64_t count = 0;
    double sum_ns  = 0;
    int64_t max_ns = 0;
  };

  void record(int64_t end_ns, int64_t ns)
  {
    if (end_ns >= limit_ns_) [[unlikely]]
      widen_to(end_ns);
    // A multiplication: a division takes as long as the rest. Below the limit the product is below the number of bins
    // in floating point, too.
    Bin& bin = bins_[static_cast<size_t>(static_cast<double>(end_ns) * bins_per_ns_)];
    ++bin.count;
    bin.sum_ns += static_cast<double>(ns);
    bin.max_ns = std::max(bin.max_ns, ns);
  }
  /// Doubles the width until `end_ns` falls into a bin.
  void widen_to(int64_t end_ns);
  void set_width(int64_t width_ns);
  void merge(const Timeline& other);

  int64_t width_ns() const { return width_ns_; }
  std::array<Bin, bins>& data() { return bins_; }
  const std::array<Bin, bins>& data() const { return bins_; }

private:
  int64_t width_ns_   = first_width_ns;
  double bins_per_ns_ = 1.0 / first_width_ns;
  int64_t limit_ns_   = static_cast<int64_t>(bins) * first_width_ns;
  std::array<Bin, bins> bins_{};
};

/// Everything that one phase leaves behind about its operations. Memory is constant in their number.
class PhaseRecorder {
public:
  static constexpr size_t slow_kept = 200;

  struct OfKind {
    Histogram whole;
    std::array<Histogram, max_parts> parts;
    std::unique_ptr<Histogram> response; ///< from the intended start to the end; none in a closed loop
    Timeline timeline;
    uint64_t bytes  = 0; ///< of content, of the operations that succeeded
    uint64_t errors = 0;

    Histogram& response_histogram()
    {
      if (!response) [[unlikely]]
        response = std::make_unique<Histogram>();
      return *response;
    }
  };

  void record(const Op& op, uint32_t rank, const TimedOp& timed)
  {
    OfKind& of         = of_kind(op.kind);
    const size_t parts = parts_of(op.kind).size();
    for (size_t i = 0; i < parts; ++i)
      of.parts[i].record(timed.part_ns[i]);
    record_whole(op, rank, timed);
  }
  /// Without its parts, each of which was recorded when it ended.
  void record_whole(const Op& op, uint32_t rank, const TimedOp& timed)
  {
    OfKind& of       = of_kind(op.kind);
    const int64_t ns = timed.end_ns - timed.start_ns;
    of.whole.record(ns);
    of.timeline.record(timed.end_ns, ns);
    of.bytes += op.bytes();
    if (timed.intended_ns != TimedOp::not_intended)
      of.response_histogram().record(timed.end_ns - timed.intended_ns);
    if (ns > slow_threshold_ns_) [[unlikely]]
      keep_slow({ns, timed.start_ns, op.dataset, op.object, rank, op.kind});
  }
  void record_part(OpKind kind, size_t part, int64_t ns) { of_kind(kind).parts[part].record(ns); }
  /// Operations like `op`, of one call each, one right after the other: the first began at `ns[0]`, each of the rest
  /// when the one before it ended. These are moments of a clock that showed `start_ns` when the phase began.
  void record_stretch(const Op& op, uint32_t rank, int64_t start_ns, std::span<const int64_t> ns)
  {
    OfKind& of = of_kind(op.kind);
    of.bytes += op.bytes() * (ns.size() - 1);
    for (size_t i = 1; i < ns.size(); ++i) {
      const int64_t took = ns[i] - ns[i - 1];
      of.whole.record(took);
      of.timeline.record(ns[i] - start_ns, took);
      if (took > slow_threshold_ns_) [[unlikely]]
        keep_slow({took, ns[i - 1] - start_ns, op.dataset, op.object, rank, op.kind});
    }
  }
  /// A failed operation never enters the latencies.
  void record_error(OpKind kind) { ++of_kind(kind).errors; }

  bool has(OpKind kind) const { return kinds_[static_cast<size_t>(kind)] != nullptr; }
  OfKind& of_kind(OpKind kind)
  {
    auto& slot = kinds_[static_cast<size_t>(kind)];
    if (!slot) [[unlikely]]
      slot = std::make_unique<OfKind>();
    return *slot;
  }
  const OfKind& of_kind(OpKind kind) const { return *kinds_[static_cast<size_t>(kind)]; }

  uint64_t operations() const;
  uint64_t errors() const;
  /// Sum over all operations of the time inside them.
  double responding_seconds() const;
  std::vector<SlowOp>& slow() { return slow_; }
  const std::vector<SlowOp>& slow() const { return slow_; }
  /// Longest first, at most `slow_kept`.
  void trim_slow();

private:
  void keep_slow(const SlowOp& op);

  std::array<std::unique_ptr<OfKind>, op_count> kinds_;
  std::vector<SlowOp> slow_;
  int64_t slow_threshold_ns_ = 0;
};

} // namespace iocast
