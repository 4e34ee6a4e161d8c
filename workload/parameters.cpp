// SPDX-License-Identifier: Apache-2.0
#include "workload/parameters.hpp"

#include "input/error.hpp"

#include <fmt/format.h>

namespace iocast {

Parameters::Parameters(const std::vector<Parameter>& declared) : declared_(declared)
{
  for (const auto& parameter : declared_)
    set(parameter.name, parameter.fallback);
}

const Parameter& Parameters::declared(const std::string& name) const
{
  std::vector<std::string> names;
  for (const auto& parameter : declared_) {
    if (parameter.name == name)
      return parameter;
    names.push_back(parameter.name);
  }
  throw InputError(fmt::format("There is no parameter '{}'. {}", name, allowed_sentence(name, names)));
}

void Parameters::set(const std::string& name, const std::string& value)
{
  const Parameter& parameter = declared(name);
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
                                 format_quantity(parameter.low, parameter.unit), format_quantity(parameter.high, parameter.unit)));
  numbers_[name] = number;
}

void Parameters::set_all(const YamlNode& map)
{
  for (const auto& [name, value] : map.entries()) {
    std::string text;
    if (value.is_sequence()) { // a list is written with commas on the command line
      for (const auto& item : value.items())
        text += (text.empty() ? "" : ",") + item.text();
    } else {
      text = value.text();
    }
    try {
      set(name, text);
    } catch (const InputError& error) {
      throw InputError(fmt::format("{}: {}", value.where(), error.what()));
    }
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
    if (parameter.unit == Unit::text)
      json[parameter.name] = text(parameter.name);
    else if (parameter.unit == Unit::flag)
      json[parameter.name] = flag(parameter.name);
    else if (parameter.unit == Unit::count || parameter.unit == Unit::bytes)
      json[parameter.name] = count(parameter.name);
    else
      json[parameter.name] = number(parameter.name);
  }
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
