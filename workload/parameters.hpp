// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "input/units.hpp"
#include "input/yaml.hpp"

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace iocast {

/// A parameter, declared once: command line, YAML, checks, run.json and `describe` all come from this.
struct Parameter {
  std::string name;
  Unit unit;
  std::string fallback; ///< the default, as a user would write it
  std::string meaning;
  double low  = 0;
  double high = 9e15;
};

/// Values for a list of declared parameters; what isn't set has its default.
class Parameters {
public:
  explicit Parameters(const std::vector<Parameter>& declared);

  /// @throws InputError: unknown name (with the nearest match), missing or wrong unit, out of range
  void set(const std::string& name, const std::string& value);
  /// Sets every key of a YAML map; errors carry file and line.
  void set_all(const YamlNode& map);

  double number(const std::string& name) const;
  uint64_t count(const std::string& name) const { return static_cast<uint64_t>(number(name)); }
  bool flag(const std::string& name) const { return number(name) != 0; }
  const std::string& text(const std::string& name) const;

  /// Numbers in SI units, texts as they are.
  nlohmann::ordered_json to_json() const;

private:
  const Parameter& declared(const std::string& name) const;

  std::vector<Parameter> declared_;
  std::map<std::string, double> numbers_;
  std::map<std::string, std::string> texts_;
};

nlohmann::ordered_json describe(const std::vector<Parameter>& declared);

} // namespace iocast
