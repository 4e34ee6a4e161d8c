// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "input/normal.hpp"
#include "input/yaml.hpp"
#include "workload/random.hpp"

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace iocast {

/// A distribution of service times or delays in seconds, drawn by its inverse distribution function.
class Law {
public:
  virtual ~Law() = default;
  /// The value at probability u, 0 < u < 1, in the least time: it may come from a table. For a mixture, u first chooses
  /// the part; the result still has the right distribution for uniform u.
  virtual double at(double u) const = 0;
  virtual double mean() const       = 0;
  virtual double variance() const   = 0;
  virtual std::string kind() const  = 0;
  /// Smallest x with P(value <= x) >= p, exactly.
  virtual double quantile(double p) const { return at(p); }
  /// P(value <= x), to within the law's table.
  virtual double cumulative(double x) const;
};

using LawPointer = std::shared_ptr<const Law>;

LawPointer constant_law(double seconds);
LawPointer exponential_law(double mean_seconds);
/// `sigma` is the standard deviation of the logarithm.
LawPointer lognormal_law(double mean_seconds, double sigma);
/// Straight lines between the logarithms of `values` at `probabilities`, which rise from 0 to 1.
LawPointer empirical_law(std::vector<double> probabilities, std::vector<double> values);
LawPointer mixture_law(std::vector<std::pair<double, LawPointer>> weighted);
/// max(0, scale * x + shift)
LawPointer moved_law(LawPointer law, double scale, double shift);

/// Reads a law as docs/platforms.md has it. @throws InputError with file and line
LawPointer read_law(const YamlNode& yaml);

/// {"law", "mean", "variance", "quantiles"}: 1001 values at (i + 0.5) / 1001; without them when `quantiles` is false.
nlohmann::ordered_json law_to_json(const Law& law, bool quantiles);

/// A thousand and one, in the middles of as many equal shares.
std::vector<double> quantiles_of(const Law& law);

/// The kinds of law, with one line each, for `describe`.
struct LawKind {
  std::string name;
  std::string meaning;
};
const std::vector<LawKind>& law_kinds();

} // namespace iocast
