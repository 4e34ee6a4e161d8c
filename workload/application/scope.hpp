// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "input/yaml.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace iocast {

/// A number with its dimension: bytes^b seconds^s.
struct Quantity {
  double value = 0;
  int bytes    = 0;
  int seconds  = 0;
};

/// What the $names in a workload's definition stand for. A number may be written as an expression: numbers with units,
/// $names, + - * / and brackets, such as `$per_process / $block_size` or `4 * ($ranks - 1)`; bytes and seconds are
/// checked. A text may hold
/// $names that are replaced.
class Scope {
public:
  /// A name that stands for what is written here; it is a number too, when it looks like one.
  void set(const std::string& name, const std::string& text);
  void set(const std::string& name, double value, Unit unit);

  /// The number that a node says, in SI units. @throws InputError with file and line: syntax, unknown names (with the
  /// nearest match), dimensions that don't fit, a fraction where a whole number is needed, a value outside [low, high]
  double number(const YamlNode& node, Unit wanted, double low, double high) const;
  uint64_t whole(const YamlNode& node, Unit wanted, double low = 0, double high = 9e15) const
  {
    return static_cast<uint64_t>(number(node, wanted, low, high));
  }
  std::string text(const YamlNode& node) const;
  /// A list, or a text with commas.
  std::vector<std::string> list(const YamlNode& node) const;
  /// The place of a text in a list of allowed ones. @throws InputError with the nearest match
  size_t choice(const YamlNode& node, const std::vector<std::string>& allowed) const;

private:
  struct Variable {
    std::string text;
    bool is_number = false;
    Quantity number;
  };
  class Reader;
  const Variable& variable(const std::string& name) const;
  static Quantity quantity(double value, Unit unit);

  std::map<std::string, Variable> variables_;
};

} // namespace iocast
