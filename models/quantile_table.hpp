// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace iocast {

/// A quantile function as straight lines between its exact values at fixed probabilities, which lie the closer the
/// farther out they are: 128 in each halving of the distance to 0 or to 1, down to 2^-33, the least that a 32-bit draw
/// gives. A lognormal with sigma below 1 is met to within 1e-4 of its value, for two neighbouring loads instead of an
/// inverse normal and an exp.
class QuantileTable {
public:
  /// `quantile(v, upper)` is the value at probability v, or at 1 - v when `upper`, for 2^-33 <= v <= 1/2.
  template <class Quantile> explicit QuantileTable(Quantile quantile)
  {
    for (const bool upper : {false, true})
      for (size_t i = 0; i <= cells; ++i)
        values_[upper].push_back(quantile(std::bit_cast<double>((first_cell + i) << cell_shift), upper));
  }

  /// False when u lies beyond the table, as it may for a u that is no draw.
  static bool covers(double u) { return u >= least && 1 - u >= least; }
  double at(double u) const
  {
    const bool upper = u > 0.5;
    const auto bits  = std::bit_cast<uint64_t>(upper ? 1 - u : u);
    const auto cell  = (bits >> cell_shift) - first_cell;
    const double t   = static_cast<double>(bits & ((1ULL << cell_shift) - 1)) * (1.0 / (1ULL << cell_shift));
    const auto& in   = values_[upper];
    return in[cell] + t * (in[cell + 1] - in[cell]);
  }

private:
  static constexpr int cell_shift      = 52 - 7; ///< a double's mantissa has 52 bits
  static constexpr double least        = 0x1p-33;
  static constexpr uint64_t first_cell = std::bit_cast<uint64_t>(least) >> cell_shift;
  static constexpr size_t cells        = (std::bit_cast<uint64_t>(0.5) >> cell_shift) - first_cell + 1;

  std::vector<double> values_[2];
};

} // namespace iocast
