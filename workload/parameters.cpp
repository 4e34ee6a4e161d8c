// SPDX-License-Identifier: Apache-2.0
#include "workload/parameters.hpp"

#include "input/error.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace iocast {

Parameters::Parameters(const std::vector<Parameter>& declared) : declared_(declared)
{
  for (const auto& parameter : declared_)
    if (!is_nested(parameter.name))
      set(parameter.name, parameter.fallback);
  set_.clear();
}

bool is_nested(const std::string& name)
{
  return name.find('.') != std::string::npos;
}

const Parameter& Parameters::declared(const std::string& name) const
{
  std::vector<std::string> names;
  for (const auto& parameter : declared_) {
    if (parameter.name == name || (is_nested(parameter.name) && is_nested(name)))
      return parameter;
    names.push_back(parameter.name);
  }
  throw InputError(fmt::format("There is no parameter '{}'. {}", name, allowed_sentence(name, names)));
}

void Parameters::set(const std::string& name, const std::string& value)
{
  const Parameter& parameter = declared(name);
  set_.insert(name);
  if (is_nested(name)) {
    for (auto& [known, text] : nested_)
      if (known == name) {
        text = value;
        return;
      }
    nested_.emplace_back(name, value);
    return;
  }
  if (parameter.unit == Unit::text) {
    texts_[name] = value;
    return;
  }
  double number = 0;
  try {
    number = parse_quantity(value, parameter.unit);
  } catch (const InputError& error) {
    throw InputError(fmt::format("The parameter '{}' can't be set: {}.", name, error.what()));
  }
  if (!(number >= parameter.low && number <= parameter.high))
    throw InputError(fmt::format("The parameter '{}' can't be {}; it lies between {} and {}.", name, value,
                                 format_quantity(parameter.low, parameter.unit),
                                 format_quantity(parameter.high, parameter.unit)));
  numbers_[name] = number;
}

namespace {
/// A list is written with commas on the command line.
std::string joined(const YamlNode& value)
{
  if (!value.is_sequence())
    return value.text();
  std::string text;
  for (const auto& item : value.items())
    text += (text.empty() ? "" : ",") + item.text();
  return text;
}
} // namespace

void Parameters::set_all(const YamlNode& map, bool may_declare, const std::string& prefix)
{
  for (const auto& [key, value] : map.entries()) {
    const std::string name = prefix + key;
    if (value.is_map()) {
      if (may_declare)
        declare(name, value);
      else
        set_all(value, false, name + ".");
      continue;
    }
    try {
      set(name, joined(value));
    } catch (const InputError& error) {
      throw InputError(fmt::format("{}: {}", value.where(), error.what()));
    }
  }
}

void Parameters::declare(const std::string& name, const YamlNode& declaration)
{
  static const std::vector<std::pair<std::string, Unit>> units{{"count", Unit::count}, {"factor", Unit::factor},
                                                               {"bytes", Unit::bytes}, {"seconds", Unit::seconds},
                                                               {"flag", Unit::flag},   {"text", Unit::text}};
  declaration.allow_only({"default", "meaning", "unit"});
  for (const auto& other : declared_)
    if (other.name == name)
      declaration.fail(fmt::format("the parameter '{}' is there already; give it a value, not a declaration", name));
  if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos)
    declaration.fail(fmt::format("'{}' is no name for a parameter; use small letters, digits and '_'", name));
  const std::string fallback = joined(declaration["default"]);
  const Unit guessed =
      declaration["default"].is_sequence() ? Unit::text : unit_of(fallback); // a list may be of several numbers
  Parameter parameter{name, guessed, fallback, declaration["meaning"].text()};
  if (const auto unit = declaration.find("unit")) {
    std::vector<std::string> names;
    const auto wanted = unit->text();
    for (const auto& [known, meant] : units) {
      if (known == wanted)
        parameter.unit = meant;
      names.push_back(known);
    }
    if (std::find(names.begin(), names.end(), wanted) == names.end())
      unit->fail(fmt::format("there is no unit '{}'. {}", wanted, allowed_sentence(wanted, names)));
  }
  declared_.push_back(parameter);
  try {
    set(name, fallback);
    set_.erase(name);
  } catch (const InputError& error) {
    declaration.fail(error.what());
  }
}

double Parameters::number(const std::string& name) const
{
  return numbers_.at(name);
}

const std::string& Parameters::text(const std::string& name) const
{
  return texts_.at(name);
}

nlohmann::ordered_json Parameters::to_json() const
{
  nlohmann::ordered_json json;
  for (const auto& parameter : declared_) {
    if (is_nested(parameter.name))
      continue;
    if (parameter.unit == Unit::text)
      json[parameter.name] = text(parameter.name);
    else if (parameter.unit == Unit::flag)
      json[parameter.name] = flag(parameter.name);
    else if (parameter.unit == Unit::count || parameter.unit == Unit::bytes)
      json[parameter.name] = static_cast<int64_t>(number(parameter.name)); // -1 may stand for "none"
    else
      json[parameter.name] = number(parameter.name);
  }
  for (const auto& [name, text] : nested_)
    json[name] = text;
  return json;
}

nlohmann::ordered_json describe(const std::vector<Parameter>& declared)
{
  auto json = nlohmann::ordered_json::array();
  for (const auto& parameter : declared)
    json.push_back({{"name", parameter.name},
                    {"unit", unit_name(parameter.unit)},
                    {"default", parameter.fallback},
                    {"meaning", parameter.meaning}});
  return json;
}

} // namespace iocast
