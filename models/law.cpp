// SPDX-License-Identifier: Apache-2.0
#include "models/law.hpp"

#include "input/error.hpp"
#include "input/portable.hpp"
#include "models/quantile_table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <optional>

namespace iocast {

double Law::cumulative(double x) const
{
  double low  = 0;
  double high = 1;
  for (int i = 0; i < 50; ++i) {
    const double middle                  = (low + high) / 2;
    (quantile(middle) <= x ? low : high) = middle;
  }
  return low;
}

namespace {

class Constant final : public Law {
public:
  explicit Constant(double value) : value_(value) {}
  double at(double) const override { return value_; }
  double mean() const override { return value_; }
  double variance() const override { return 0; }
  std::string kind() const override { return "constant"; }
  double cumulative(double x) const override { return x >= value_ ? 1 : 0; }

private:
  double value_;
};

class Exponential final : public Law {
public:
  explicit Exponential(double mean)
      : mean_(mean)
      , table_([mean](double v, bool upper) { return -mean * (upper ? portable::log(v) : portable::log1p(-v)); })
  {
  }
  double at(double u) const override { return QuantileTable::covers(u) ? table_.at(u) : quantile(u); }
  double mean() const override { return mean_; }
  double variance() const override { return mean_ * mean_; }
  std::string kind() const override { return "exponential"; }
  double quantile(double p) const override { return -mean_ * portable::log1p(-p); }

private:
  double mean_;
  QuantileTable table_;
};

class Lognormal final : public Law {
public:
  Lognormal(double mean, double sigma) : mean_(mean), sigma_(sigma), mu_(portable::log(mean) - sigma * sigma / 2) {}
  double at(double u) const override
  {
    if (!QuantileTable::covers(u)) [[unlikely]]
      return quantile(u);
    if (!table_) [[unlikely]] // a platform has more laws than a run draws from
      table_.emplace(
          [this, next = normals().begin()](double, bool) mutable { return portable::exp(mu_ + sigma_ * *next++); });
    return table_->at(u);
  }
  double mean() const override { return mean_; }
  double variance() const override { return mean_ * mean_ * portable::expm1(sigma_ * sigma_); }
  std::string kind() const override { return "lognormal"; }
  double quantile(double p) const override { return portable::exp(mu_ + sigma_ * normal_quantile(p)); }

private:
  /// Standard normal quantiles in the order in which a table asks; once, as there may be many lognormals.
  static const std::vector<double>& normals()
  {
    static const std::vector<double> values = [] {
      std::vector<double> collected;
      [[maybe_unused]] const QuantileTable visited([&collected](double v, bool upper) {
        collected.push_back(upper ? -normal_quantile(v) : normal_quantile(v));
        return 0.0;
      });
      return collected;
    }();
    return values;
  }

  double mean_;
  double sigma_;
  double mu_;
  mutable std::optional<QuantileTable> table_; ///< made with the first draw
};

class Empirical final : public Law {
public:
  Empirical(std::vector<double> probabilities, const std::vector<double>& values)
      : probabilities_(std::move(probabilities))
  {
    for (const double value : values)
      logs_.push_back(portable::log(std::max(value, 1e-12)));
    size_t segment = 0;
    for (size_t cell = 0; cell < cells; ++cell) {
      while (probabilities_[segment + 1] <= static_cast<double>(cell) / cells && segment + 2 < probabilities_.size())
        ++segment;
      first_segment_[cell] = static_cast<uint32_t>(segment);
    }
    // Between (p0, a) and (p1, b) the value is a (b/a)^t: its mean is (b - a) / ln(b/a), of the square likewise.
    double square = 0;
    for (size_t i = 0; i + 1 < logs_.size(); ++i) {
      const double weight = probabilities_[i + 1] - probabilities_[i];
      auto moment         = [this, i](double power) {
        const double a = portable::exp(power * logs_[i]);
        const double b = portable::exp(power * logs_[i + 1]);
        return std::abs(b - a) < 1e-9 * a ? (a + b) / 2 : (b - a) / (power * (logs_[i + 1] - logs_[i]));
      };
      mean_ += weight * moment(1);
      square += weight * moment(2);
    }
    variance_ = std::max(0.0, square - mean_ * mean_);
  }
  double at(double u) const override
  {
    size_t i = first_segment_[static_cast<size_t>(u * cells)];
    while (u > probabilities_[i + 1] && i + 2 < probabilities_.size())
      ++i;
    const double width = probabilities_[i + 1] - probabilities_[i];
    const double t     = width > 0 ? (u - probabilities_[i]) / width : 1;
    return portable::exp(logs_[i] + t * (logs_[i + 1] - logs_[i]));
  }
  double mean() const override { return mean_; }
  double variance() const override { return variance_; }
  std::string kind() const override { return "empirical"; }

private:
  static constexpr size_t cells = 256;
  std::vector<double> probabilities_;
  std::vector<double> logs_;
  std::array<uint32_t, cells> first_segment_{};
  double mean_     = 0;
  double variance_ = 0;
};

class Mixture final : public Law {
public:
  explicit Mixture(std::vector<std::pair<double, LawPointer>> weighted) : parts_(std::move(weighted))
  {
    double total = 0;
    for (const auto& [weight, law] : parts_)
      total += weight;
    double square = 0;
    for (auto& [weight, law] : parts_) {
      weight /= total;
      mean_ += weight * law->mean();
      square += weight * (law->variance() + law->mean() * law->mean());
    }
    variance_ = std::max(0.0, square - mean_ * mean_);
  }
  double at(double u) const override
  {
    for (const auto& [weight, law] : parts_) {
      if (u < weight)
        return law->at(u / weight);
      u -= weight;
    }
    return parts_.back().second->at(0.5);
  }
  double mean() const override { return mean_; }
  double variance() const override { return variance_; }
  std::string kind() const override { return "mixture"; }
  double cumulative(double x) const override
  {
    double sum = 0;
    for (const auto& [weight, law] : parts_)
      sum += weight * law->cumulative(x);
    return sum;
  }
  double quantile(double p) const override
  {
    double low  = 0;
    double high = 1e-9;
    while (cumulative(high) < p && high < 1e9)
      high *= 2;
    for (int i = 0; i < 60; ++i) {
      const double middle                   = (low + high) / 2;
      (cumulative(middle) < p ? low : high) = middle;
    }
    return high;
  }

private:
  std::vector<std::pair<double, LawPointer>> parts_;
  double mean_     = 0;
  double variance_ = 0;
};

class Moved final : public Law {
public:
  Moved(LawPointer law, double scale, double shift) : law_(std::move(law)), scale_(scale), shift_(shift)
  {
    mean_     = scale * law_->mean() + shift;
    variance_ = scale * scale * law_->variance();
    if (shift < 0 && move(law_->quantile(1e-6)) <= 0) { // cut off at zero: no closed form
      constexpr int points = 20000;
      double sum           = 0;
      double square        = 0;
      for (int i = 0; i < points; ++i) {
        const double x = move(law_->quantile((i + 0.5) / points));
        sum += x;
        square += x * x;
      }
      mean_     = sum / points;
      variance_ = square / points - mean_ * mean_;
    }
  }
  double at(double u) const override { return move(law_->at(u)); }
  double mean() const override { return mean_; }
  double variance() const override { return variance_; }
  std::string kind() const override { return law_->kind(); }
  double quantile(double p) const override { return move(law_->quantile(p)); }
  double cumulative(double x) const override { return x < 0 ? 0 : law_->cumulative((x - shift_) / scale_); }

private:
  double move(double x) const { return std::max(0.0, scale_ * x + shift_); }
  LawPointer law_;
  double scale_;
  double shift_;
  double mean_;
  double variance_;
};

constexpr double longest = 1e6; // seconds; a longer single service is a slip of the pen

LawPointer read_empirical(const YamlNode& yaml)
{
  std::vector<double> probabilities;
  std::vector<double> values;
  for (const auto& item : yaml["probabilities"].items()) {
    const double p = item.quantity(Unit::factor, 0, 1);
    if (!probabilities.empty() && p < probabilities.back())
      item.fail("probabilities must not fall");
    probabilities.push_back(p);
  }
  for (const auto& item : yaml["values"].items()) {
    const double value = item.quantity(Unit::seconds, 0, longest);
    if (value == 0)
      item.fail("nothing that was measured takes no time; values are above 0, of 1ps at least: leave it out, or write "
                "the clock's resolution");
    if (!values.empty() && value < values.back())
      item.fail("values must not fall");
    values.push_back(value);
  }
  if (probabilities.size() != values.size() || values.size() < 2)
    yaml.fail(fmt::format("an empirical law needs as many values as probabilities, and at least two; it has {} and {}",
                          values.size(), probabilities.size()));
  if (probabilities.front() != 0 || probabilities.back() != 1)
    yaml["probabilities"].fail("probabilities must start at 0 and end at 1");
  return empirical_law(std::move(probabilities), std::move(values));
}
} // namespace

LawPointer constant_law(double seconds)
{
  return std::make_shared<Constant>(seconds);
}
LawPointer exponential_law(double mean_seconds)
{
  return std::make_shared<Exponential>(mean_seconds);
}
LawPointer lognormal_law(double mean_seconds, double sigma)
{
  if (mean_seconds <= 0)
    return constant_law(0);
  return std::make_shared<Lognormal>(mean_seconds, sigma);
}
LawPointer empirical_law(std::vector<double> probabilities, std::vector<double> values)
{
  return std::make_shared<Empirical>(std::move(probabilities), std::move(values));
}
LawPointer mixture_law(std::vector<std::pair<double, LawPointer>> weighted)
{
  return std::make_shared<Mixture>(std::move(weighted));
}
LawPointer moved_law(LawPointer law, double scale, double shift)
{
  if (scale == 1 && shift == 0)
    return law;
  return std::make_shared<Moved>(std::move(law), scale, shift);
}

const std::vector<LawKind>& law_kinds()
{
  static const std::vector<LawKind> kinds{{"constant", "always `value`"},
                                          {"exponential", "memoryless with this `mean`"},
                                          {"lognormal", "`mean`, and `sigma`, the standard deviation of the logarithm"},
                                          {"empirical", "measured `values` at `probabilities` from 0 to 1"},
                                          {"mixture", "`parts`, each a law with a `weight`"}};
  return kinds;
}

LawPointer read_law(const YamlNode& yaml)
{
  if (yaml.is_scalar())
    return constant_law(yaml.quantity(Unit::seconds, 0, longest));
  const auto kind = yaml["law"].text();
  auto mean       = [&yaml] { return yaml["mean"].quantity(Unit::seconds, 0, longest); };
  LawPointer law;
  if (kind == "constant") {
    law = constant_law(yaml["value"].quantity(Unit::seconds, 0, longest));
  } else if (kind == "exponential") {
    law = exponential_law(mean());
  } else if (kind == "lognormal") {
    law = lognormal_law(mean(), yaml["sigma"].quantity(Unit::factor, 0, 10));
  } else if (kind == "empirical") {
    law = read_empirical(yaml);
  } else if (kind == "mixture") {
    std::vector<std::pair<double, LawPointer>> parts;
    for (const auto& part : yaml["parts"].items()) {
      const double weight = part["weight"].quantity(Unit::factor, 0, 1e9);
      parts.emplace_back(weight, read_law(part));
    }
    if (parts.empty() || std::all_of(parts.begin(), parts.end(), [](const auto& part) { return part.first == 0; }))
      yaml.fail("a mixture needs parts with weights above zero");
    law = mixture_law(std::move(parts));
  } else {
    std::vector<std::string> names;
    for (const auto& known : law_kinds())
      names.push_back(known.name);
    yaml["law"].fail(fmt::format("the law '{}' is unknown. {}", kind, allowed_sentence(kind, names)));
  }
  const double scale = yaml.quantity_or("scale", Unit::factor, 1, 0, 1e6);
  const double shift = yaml.quantity_or("shift", Unit::seconds, 0, -longest, longest);
  yaml.finish();
  return moved_law(law, scale, shift);
}

std::vector<double> quantiles_of(const Law& law)
{
  std::vector<double> values(1001);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = law.quantile((static_cast<double>(i) + 0.5) / static_cast<double>(values.size()));
  return values;
}

nlohmann::ordered_json law_to_json(const Law& law, bool quantiles)
{
  nlohmann::ordered_json json{{"law", law.kind()}, {"mean", law.mean()}, {"variance", law.variance()}};
  if (quantiles)
    json["quantiles"] = quantiles_of(law);
  return json;
}

} // namespace iocast
