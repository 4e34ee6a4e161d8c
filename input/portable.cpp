// SPDX-License-Identifier: Apache-2.0
#include "input/portable.hpp"

#include <array>
#include <cmath>
#include <limits>

namespace iocast::portable {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
/// The logarithm of 2 in two parts: multiples of the first are exact, as its last 21 bits are 0.
constexpr double log2_high = 0x1.62e42feep-1;
constexpr double log2_low  = 0x1.a39ef35793c76p-33;

/// 1/2!, 1/3!, ...: of the series of exp, as far as they change a double.
constexpr auto reciprocals = [] {
  std::array<double, 13> found{};
  double factorial = 1;
  for (int n = 2; n < 15; ++n)
    found[static_cast<size_t>(n) - 2] = 1 / (factorial *= n);
  return found;
}();

/// x = halvings * log 2 + rest, with |rest| at most log 2 / 2; and exp(rest) - 1.
struct Reduced {
  int halvings;
  double expm1_of_rest;
};

Reduced reduced(double x)
{
  const double n    = std::floor(x / (log2_high + log2_low) + 0.5);
  const double high = x - n * log2_high;
  const double low  = n * log2_low;
  const double rest = high - low;
  const double cut  = (high - rest) - low; // of `rest` by rounding
  double sum        = 0;
  for (size_t i = reciprocals.size(); i-- > 0;)
    sum = sum * rest + reciprocals[i];
  return {static_cast<int>(n), rest + (rest * rest * sum + (cut + cut * rest))};
}

} // namespace

double exp(double x)
{
  if (!(std::abs(x) < 800))
    return x > 0 ? infinite : x < 0 ? 0 : x;
  const auto [halvings, more] = reduced(x);
  return std::ldexp(1 + more, halvings);
}

double expm1(double x)
{
  if (!(std::abs(x) < 700))
    return x < 0 ? -1 : exp(x);
  const auto [halvings, more] = reduced(x);
  if (halvings == 0)
    return more;
  const double power = std::ldexp(1, halvings);
  return halvings < 0 || halvings > 53 ? power * more + (power - 1) : power * (more + (1 - 1 / power));
}

double log(double x)
{
  if (!(x > 0 && x < infinite))
    return x > 0 ? x : x == 0 ? -infinite : std::numeric_limits<double>::quiet_NaN();
  int halvings    = 0;
  double fraction = std::frexp(x, &halvings);
  if (fraction < 0x1.6a09e667f3bcdp-1) { // the root of 1/2
    fraction *= 2;
    --halvings;
  }
  // log(1 + f) = f - f²/2 + s (f²/2 + 2 s² / 3 + 2 s⁴ / 5 + ...) with s = f / (2 + f)
  const double f      = fraction - 1;
  const double s      = f / (2 + f);
  const double square = s * s;
  double sum          = 0;
  for (int k = 23; k > 1; k -= 2)
    sum = sum * square + 2.0 / k;
  const double half = f * f / 2;
  const double low  = s * (half + square * sum) + halvings * log2_low;
  return halvings * log2_high - ((half - low) - f);
}

double log1p(double x)
{
  const double sum = 1 + x;
  if (sum <= 0 || sum == infinite)
    return log(sum);
  return log(sum) + (x - (sum - 1)) / sum; // with what the sum was rounded by
}

double pow(double x, double y)
{
  return y == 0 ? 1 : exp(y * log(x));
}

} // namespace iocast::portable
