// SPDX-License-Identifier: Apache-2.0
#include "input/normal.hpp"
#include "input/portable.hpp"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

namespace iocast {
namespace {

/// How far a value is from the exact one, in units of the last place of the exact one.
double units(double value, long double exact)
{
  const auto near        = static_cast<double>(exact);
  const long double unit = std::nextafter(std::abs(near), std::numeric_limits<double>::infinity()) -
                           static_cast<long double>(std::abs(near));
  return static_cast<double>(std::abs(value - exact) / unit);
}

TEST(Portable, FunctionsAreExactToOneUnitOfTheLastPlace)
{
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponent(-300, 300), any(-700, 700), near(-1, 1);
  double worst_exp = 0, worst_expm1 = 0, worst_log = 0, worst_log1p = 0;
  for (int i = 0; i < 20000; ++i) {
    const double x = any(random), small = near(random) * std::pow(10, -i % 12),
                 positive = std::pow(10, exponent(random));
    worst_exp             = std::max(worst_exp, units(portable::exp(x), std::exp(static_cast<long double>(x))));
    for (const double y : {x, small})
      worst_expm1 = std::max(worst_expm1, units(portable::expm1(y), std::expm1(static_cast<long double>(y))));
    for (const double y : {positive, 1 + small})
      worst_log = std::max(worst_log, units(portable::log(y), std::log(static_cast<long double>(y))));
    for (const double y : {positive, small})
      worst_log1p = std::max(worst_log1p, units(portable::log1p(y), std::log1p(static_cast<long double>(y))));
    const double y    = near(random);
    const double most = 2 * std::abs(y * std::log(positive)) + 2;
    EXPECT_LT(
        units(portable::pow(positive, y), std::pow(static_cast<long double>(positive), static_cast<long double>(y))),
        most);
  }
  EXPECT_LT(worst_exp, 1);
  EXPECT_LT(worst_expm1, 1.5);
  EXPECT_LT(worst_log, 1);
  EXPECT_LT(worst_log1p, 1.5);
}

TEST(Portable, EndsOfTheNumbersAreThoseOfTheMathematics)
{
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(portable::exp(-infinite), 0);
  EXPECT_EQ(portable::exp(infinite), infinite);
  EXPECT_EQ(portable::exp(0), 1);
  EXPECT_EQ(portable::expm1(-infinite), -1);
  EXPECT_EQ(portable::expm1(0), 0);
  EXPECT_EQ(portable::log(0), -infinite);
  EXPECT_EQ(portable::log(infinite), infinite);
  EXPECT_EQ(portable::log(1), 0);
  EXPECT_TRUE(std::isnan(portable::log(-1)));
  EXPECT_TRUE(std::isnan(portable::exp(std::nan(""))));
  EXPECT_EQ(portable::log1p(0), 0);
  EXPECT_EQ(portable::log1p(-1), -infinite);
  EXPECT_EQ(portable::pow(3, 0), 1);
  EXPECT_DOUBLE_EQ(portable::pow(8, 1.0 / 3), 2);
  EXPECT_DOUBLE_EQ(portable::exp(-745), std::exp(-745.0)); // a subnormal number
}

TEST(Portable, QuantilesOfTheNormalDistributionAreThoseOfItsTables)
{
  const boost::math::normal normal;
  for (double u = 1e-300; u < 1; u = u < 1e-3 ? u * 7 : u + 1e-3)
    EXPECT_NEAR(normal_quantile(u) / quantile(normal, u), 1, u == 0.5 ? 2 : 4e-15) << u;
  EXPECT_EQ(normal_quantile(0.5), 0);
  EXPECT_NEAR(t_quantile(9, 0.975), 2.2621571628, 1e-6);
}

} // namespace
} // namespace iocast
