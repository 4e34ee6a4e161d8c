// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The functions of <cmath> that C libraries compute differently in their last digit, even on two processors of one
/// kind. These take nothing but sums, products, quotients and powers of two, so that a simulation gives the same
/// numbers on every machine and in a browser. Their error is below 1.5 units of the last place; of pow, below 2 |y
/// log x| + 2 of these.
namespace iocast::portable {

double exp(double x);
/// exp(x) - 1
double expm1(double x);
double log(double x);
/// log(1 + x)
double log1p(double x);
/// @param x not negative
double pow(double x, double y);

} // namespace iocast::portable
