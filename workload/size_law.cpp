// SPDX-License-Identifier: Apache-2.0
#include "workload/size_law.hpp"

#include "input/error.hpp"
#include "input/normal.hpp"
#include "input/portable.hpp"
#include "input/units.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <sstream>

namespace iocast {

namespace {
constexpr int cells     = 4096;
constexpr double margin = 16.0 / cells; ///< beyond it the curve bends too much for straight lines
} // namespace

SizeLaw SizeLaw::lognormal(double median, double sigma, double most)
{
  SizeLaw law;
  law.median_ = median;
  law.sigma_  = sigma;
  law.most_   = most;
  for (int i = 0; i <= cells; ++i)
    law.logarithms_.push_back(portable::log(median) +
                              sigma * normal_quantile(std::clamp(static_cast<double>(i) / cells, 1e-12, 1 - 1e-12)));
  return law;
}

SizeLaw SizeLaw::table(const std::string& text)
{
  SizeLaw law;
  std::istringstream list(text);
  for (std::string item; std::getline(list, item, ',');) {
    item.erase(0, item.find_first_not_of(' '));
    const auto colon = item.find(':');
    if (colon == std::string::npos)
      throw InputError(
          fmt::format("'{}' is no point of a table of sizes; write PROBABILITY:SIZE, such as 0.5:4KiB.", item));
    double probability = 0;
    double size        = 0;
    try {
      probability = parse_quantity(item.substr(0, colon), Unit::factor);
      size        = parse_quantity(item.substr(item.find_first_not_of(' ', colon + 1)), Unit::bytes);
    } catch (const InputError& error) {
      throw InputError(fmt::format("The table of sizes can't be read: {}.", error.what()));
    }
    if (!law.probabilities_.empty() &&
        (probability <= law.probabilities_.back() || portable::log1p(size) < law.logarithms_.back()))
      throw InputError(fmt::format(
          "The table of sizes '{}' does not rise at '{}': its probabilities rise from 0 to 1, and its sizes with them.",
          text, item));
    law.probabilities_.push_back(probability);
    law.logarithms_.push_back(portable::log1p(size));
  }
  if (law.probabilities_.size() < 2 || law.probabilities_.front() != 0 || law.probabilities_.back() != 1)
    throw InputError(fmt::format(
        "The table of sizes '{}' does not go from probability 0 to 1; write 0:SMALLEST,...,1:LARGEST.", text));
  return law;
}

uint64_t SizeLaw::at(double u) const
{
  if (median_ > 0) {
    if (u < margin || u > 1 - margin)
      return static_cast<uint64_t>(std::llround(std::min(median_ * portable::exp(sigma_ * normal_quantile(u)), most_)));
    const double place = u * cells;
    const auto cell    = static_cast<size_t>(place);
    const double log =
        logarithms_[cell] + (place - static_cast<double>(cell)) * (logarithms_[cell + 1] - logarithms_[cell]);
    return static_cast<uint64_t>(std::llround(std::min(portable::exp(log), most_)));
  }
  const auto above = std::upper_bound(probabilities_.begin() + 1, probabilities_.end() - 1, u) - probabilities_.begin();
  const double share = (u - probabilities_[above - 1]) / (probabilities_[above] - probabilities_[above - 1]);
  return static_cast<uint64_t>(
      std::llround(portable::expm1(logarithms_[above - 1] + share * (logarithms_[above] - logarithms_[above - 1]))));
}

uint64_t SizeLaw::largest() const
{
  return static_cast<uint64_t>(std::llround(median_ > 0 ? most_ : portable::expm1(logarithms_.back())));
}

} // namespace iocast
