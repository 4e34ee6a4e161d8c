// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <vector>

namespace iocast {

/// How the end of a series of batches is cut into groups of equal length; what does not fill them comes first and
/// belongs to none.
struct Grouping {
  size_t groups = 0;
  size_t each   = 0; ///< batches of a group
  size_t first  = 0; ///< batch of the first group

  Grouping(size_t from, size_t batches, size_t wanted)
      : groups(wanted), each((batches - from) / wanted), first(batches - each * wanted)
  {
  }
  size_t group_of(size_t batch) const { return (batch - first) / each; }
};

/// The mean of the groups of a series, and half the width of its 95 % confidence interval if they are independent.
struct BatchMeans {
  double mean       = 0;
  double half_width = 0;
  bool are_dependent =
      false; ///< neighbouring groups are correlated by more than chance: the groups are too short for `half_width`

  /// Half width with the dependence allowed for.
  double safe_half_width() const;
};

/// Batch means (Law & Carson, "A sequential procedure for determining the length of a steady-state simulation",
/// Operations Research 27 (1979) 1011-1025) of at least two groups: Student's interval about their values, and the
/// correlation of neighbours.
BatchMeans batch_means(const std::vector<double>& groups);

} // namespace iocast
