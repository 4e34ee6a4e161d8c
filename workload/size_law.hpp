// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace iocast {

/// A distribution of file sizes in whole bytes, drawn by its inverse distribution function.
class SizeLaw {
public:
  /// Lognormal with the given median and standard deviation of the logarithm, cut off at `most`.
  static SizeLaw lognormal(double median, double sigma, double most);
  /// "0:512B,0.5:4KiB,1:1GiB": probabilities from 0 to 1 and the sizes there, between them straight lines on the
  /// logarithm.
  /// @throws InputError
  static SizeLaw table(const std::string& text);

  /// The size at probability u, 0 < u < 1.
  uint64_t at(double u) const;
  uint64_t largest() const;

private:
  double median_ = 0; ///< 0: the table holds
  double sigma_  = 0;
  double most_   = 0;
  std::vector<double> probabilities_;
  std::vector<double>
      logarithms_; ///< of 1 + size, so that there may be empty files; of a lognormal law, of sizes at equal steps
};

} // namespace iocast
