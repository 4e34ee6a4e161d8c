// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "profile/histogram.hpp"
#include "workload/op.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace iocast {

/// A quantity of a phase and how exactly it is wanted.
struct PrecisionTarget {
  enum class Quantity { rate, mean, quantile };

  std::string name;                  ///< "rate", "mean", "q99", "create.q99"; without an operation, of each by itself
  OpKind kind       = OpKind::phase; ///< phase: of each
  Quantity quantity = Quantity::rate;
  double quantile   = 0;
  double relative   = 0; ///< half the width of the 95 % confidence interval over the estimate, at most
};

/// "q99:5%", several separated by commas: "rate:1%,create.q95:3%". @throws InputError
std::vector<PrecisionTarget> parse_precision(const std::string& text);

/// Says when a phase of a simulation has run for long enough: all targets are met, after the warm-up. Batch means (Law
/// & Carson, "A sequential procedure for determining the length of a steady-state simulation", Operations Research 27
/// (1979) 1011-1025) and, of quantiles, batches' quantiles (Schmeiser, "Batch size effects in the analysis of
/// simulation output", Operations Research 30 (1982) 556-568): what was seen since the warm-up, by MSER-5 on the
/// batches' mean response, is cut into 16 groups, and Student's interval laid about their values. Groups that still
/// depend on each other, or hold too few operations beyond a quantile, are too short: the phase goes on.
class PrecisionWatch {
public:
  struct Estimate {
    std::string name; ///< with its operation
    double value      = 0;
    double half_width = 0;
    double requested  = 0; ///< half width over value
    bool met          = false;
  };
  struct Achieved {
    bool met               = false; ///< every estimate is
    double warm_up_seconds = 0;
    uint64_t operations    = 0;      ///< after it
    std::vector<Estimate> estimates; ///< empty: there were too few operations
  };

  /// Periodic events that are `longest_period` apart are to be seen ten times.
  PrecisionWatch(std::vector<PrecisionTarget> targets, uint32_t ranks, double longest_period_seconds = 0);

  void begin(double now);
  /// An operation that was answered `now`, after `ns`. @return whether the phase may end
  bool add(OpKind kind, int64_t ns, double now)
  {
    Batch& batch = batches_.back();
    batch.count(kind, ns);
    return batch.operations == batch_operations_ && close(now);
  }
  Achieved achieved() const;

private:
  /// Every eighth bucket of Histogram: 0.8 % wide, and a quantile lies within by interpolation.
  static constexpr size_t coarse  = 8;
  static constexpr size_t buckets = Histogram::size / coarse;
  using Counts                    = std::array<uint32_t, buckets>;

  struct Batch {
    std::array<std::unique_ptr<Counts>, op_count> counts;
    std::array<uint64_t, op_count> of_kind{};
    std::array<double, op_count> sum_ns{};
    uint64_t operations = 0;
    double end          = 0;

    void count(OpKind kind, int64_t ns)
    {
      const auto k = static_cast<size_t>(kind);
      if (!counts[k])
        counts[k] = std::make_unique<Counts>();
      ++(*counts[k])[Histogram::index_of(ns < 0                       ? 0
                                         : ns > Histogram::highest_ns ? Histogram::highest_ns
                                                                      : ns) /
                     coarse];
      ++of_kind[k];
      sum_ns[k] += static_cast<double>(ns);
      ++operations;
    }
    void merge(const Batch& later);
    double mean_ns() const;
    double quantile_ns(size_t kind, double q) const;
  };

  bool close(double now);
  Estimate estimate(const std::vector<Batch>& groups, const std::vector<double>& seconds, const PrecisionTarget& target,
                    size_t kind) const;

  std::vector<PrecisionTarget> targets_;
  uint64_t batch_operations_;
  double longest_period_;
  double begun_ = 0;
  std::vector<Batch> batches_; ///< the last one is open
};

} // namespace iocast
