// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "input/portable.hpp"
#include <cmath>
#include <cstdint>

namespace iocast {

/// Of the law, in workloads: the first of all objects has all but 1 in 1,000 of the draws then.
constexpr double largest_exponent = 10;

/// Zipf's law of popularity: rank k of n, from 0, is drawn with a probability proportional to (k + 1)^-s. By rejection
/// from an integrable hat (Hormann & Derflinger, "Rejection-inversion to generate variates from monotone discrete
/// distributions", ACM TOMACS 6 (1996), 169-184), so that it needs no table and a little more than one draw.
class Zipf {
public:
  /// @param n from 1 on
  /// @param s from 0 (all alike) on
  Zipf(uint64_t n, double s) : n_(static_cast<double>(n)), s_(s)
  {
    low_   = integral(1.5) - 1;
    range_ = integral(n_ + 0.5) - low_;
    slack_ = 2 - inverse(integral(2.5) - portable::pow(2.0, -s_));
  }

  /// @param uniform gives the i-th number of this draw, in (0, 1)
  template <class Uniform> uint64_t operator()(Uniform uniform) const
  {
    for (uint32_t i = 0;; ++i) {
      const double u = low_ + uniform(i) * range_;
      const double x = inverse(u);
      const double k = std::fmin(std::fmax(std::floor(x + 0.5), 1), n_);
      if (k - x <= slack_ || u >= integral(k + 0.5) - portable::pow(k, -s_))
        return static_cast<uint64_t>(k) - 1;
    }
  }

private:
  /// Of x^-s, up to a constant; and its inverse.
  double integral(double x) const
  {
    const double log = portable::log(x);
    const double t   = (1 - s_) * log;
    return std::abs(t) > 1e-8 ? log * portable::expm1(t) / t : log * (1 + t / 2);
  }
  double inverse(double y) const
  {
    const double t = std::fmax((1 - s_) * y, -1);
    return portable::exp(std::abs(t) > 1e-8 ? y * portable::log1p(t) / t : y * (1 - t / 2));
  }

  double n_;
  double s_;
  double low_   = 0;
  double range_ = 0;
  double slack_ = 0; ///< below it every draw is accepted
};

} // namespace iocast
