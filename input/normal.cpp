// SPDX-License-Identifier: Apache-2.0
#include "input/normal.hpp"

#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>

namespace iocast {

namespace {
using InDoubles = boost::math::policies::policy<boost::math::policies::promote_double<false>>;
}

double normal_quantile(double u)
{
  return -std::sqrt(2.0) * boost::math::erfc_inv(2 * u, InDoubles());
}

double t_quantile(double freedom, double probability)
{
  return boost::math::quantile(boost::math::students_t_distribution<double, InDoubles>(freedom), probability);
}

} // namespace iocast
