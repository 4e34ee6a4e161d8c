// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <string>

namespace iocast {

/// Keeps the smallest error that the running test detects with a probability of 90 % (tests/sharpness.py has the
/// table).
inline void record_sharpness(const std::string& what, double smallest)
{
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const char* file = std::getenv("IOCAST_SHARPNESS");
  if (!test || !file)
    return;
  if (std::FILE* out = std::fopen(file, "a")) {
    fmt::print(out, "{{\"test\": \"{}.{}\", \"what\": \"{}\", \"smallest\": {:.6g}, \"unit\": \"\"}}\n",
               test->test_suite_name(), test->name(), what, smallest);
    std::fclose(out);
  }
}

/// Expects a mean within `sigmas` standard errors of its expected value, and `slack` for a known resolution.
inline void expect_within(const std::string& what, double mean, double expected, double sigmas, double standard_error,
                          double slack = 0)
{
  const double allowed = sigmas * standard_error + slack;
  EXPECT_NEAR(mean, expected, allowed) << what;
  record_sharpness(what, allowed + 1.2816 * standard_error);
}

/// Expects as many successes of `tries` as a share has but for a false alarm. Records the largest share that is
/// detected as too small.
inline void expect_at_least(const std::string& what, int successes, int tries, double share, double false_alarm)
{
  using boost::math::binomial;
  const double least = std::floor(boost::math::quantile(binomial(tries, share), false_alarm));
  EXPECT_GE(successes, least) << what;
  double low = 0, high = share; // the chance of fewer than `least` falls with the share
  for (int step = 0; step < 50; ++step) {
    const double middle                                          = (low + high) / 2;
    (cdf(binomial(tries, middle), least - 1) > 0.9 ? low : high) = middle;
  }
  record_sharpness(what, low);
}

} // namespace iocast
