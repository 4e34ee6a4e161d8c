// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "input/units.hpp"
#include "input/yaml.hpp"

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace iocast {

/// A parameter, declared once: command line, YAML, checks, run.json and `describe` all come from this.
/// One whose name has a dot, such as "MEMBER.PARAMETER", stands for any number of settings of such names, which are
/// kept as texts.
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
  /// Sets every key of a YAML map, the keys of a map within it as "outer.inner"; errors carry file and line. Where
  /// `may_declare`, a map with `default` and `meaning` (and, if the default doesn't show it, `unit`) declares a
  /// parameter of the file's own instead.
  void set_all(const YamlNode& map, bool may_declare = false, const std::string& prefix = "");
  /// Whether it was set, to its default or to another value.
  bool is_set(const std::string& name) const { return set_.contains(name); }
  /// The part of a workload file that its pattern reads itself, see PatternEntry::section.
  void set_section(const YamlNode& section) { section_ = section; }
  const YamlNode& section() const { return *section_; }

  double number(const std::string& name) const;
  uint64_t count(const std::string& name) const { return static_cast<uint64_t>(number(name)); }
  bool flag(const std::string& name) const { return number(name) != 0; }
  const std::string& text(const std::string& name) const;

  const std::vector<Parameter>& declared() const { return declared_; }
  /// The settings with a dot in their name, in the order in which they were first made.
  const std::vector<std::pair<std::string, std::string>>& nested() const { return nested_; }

  /// Numbers in SI units, texts as they are.
  nlohmann::ordered_json to_json() const;

private:
  const Parameter& declared(const std::string& name) const;
  void declare(const std::string& name, const YamlNode& declaration);

  std::vector<Parameter> declared_;
  std::set<std::string> set_;
  std::map<std::string, double> numbers_;
  std::map<std::string, std::string> texts_;
  std::optional<YamlNode> section_;
  std::vector<std::pair<std::string, std::string>> nested_;
};

bool is_nested(const std::string& name);

nlohmann::ordered_json describe(const std::vector<Parameter>& declared);

} // namespace iocast
