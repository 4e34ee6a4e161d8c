// SPDX-License-Identifier: Apache-2.0
#include "workload/describe.hpp"

#include "workload/workload.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace iocast {

std::vector<Listed> list_patterns()
{
  std::vector<Listed> entries;
  for (const auto& entry : patterns())
    entries.push_back({entry.name, entry.summary});
  return entries;
}

std::vector<Listed> list_workloads()
{
  std::vector<Listed> entries;
  for (const auto& entry : catalogue())
    entries.push_back({entry.name, entry.description});
  return entries;
}

namespace {
nlohmann::ordered_json describe_one(const Workload& workload, const std::string& summary)
{
  auto parameters = describe(workload.parameters.declared());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto& declared = workload.parameters.declared()[i];
    if (is_nested(declared.name))
      continue;
    parameters[i]["default"] = declared.unit == Unit::text
                                   ? workload.parameters.text(declared.name)
                                   : format_quantity(workload.parameters.number(declared.name), declared.unit);
  }
  for (const auto& [name, text] : workload.parameters.nested())
    parameters.push_back({{"name", name},
                          {"unit", unit_name(Unit::text)},
                          {"default", text},
                          {"meaning", "see " + workload.pattern->name}});
  return {{"kind", "workload"},
          {"name", workload.name},
          {"summary", summary.empty() ? workload.pattern->summary : summary},
          {"pattern", workload.pattern->name},
          {"source", workload.source},
          {"parameters", parameters},
          {"small", workload.small}};
}
} // namespace

std::optional<nlohmann::ordered_json> describe_workload(const std::string& name)
{
  if (name.ends_with(".yaml") || name.ends_with(".yml")) {
    const auto yaml = YamlNode::load(name);
    if (!yaml.has("pattern"))
      return std::nullopt; // a platform, perhaps
    return describe_one(open_workload(name, {}), yaml.text_or("description", ""));
  }
  for (const auto& entry : catalogue())
    if (entry.name == name)
      return describe_one(open_workload(name, {}), entry.description);
  for (const auto& entry : patterns())
    if (entry.name == name) {
      auto json    = describe_one(open_workload(name, {}), "");
      json["kind"] = "pattern";
      json.erase("pattern");
      return json;
    }
  return std::nullopt;
}

std::string list_text(const std::string& what, const std::vector<Listed>& entries, bool json)
{
  size_t width = 0;
  for (const auto& entry : entries)
    width = std::max(width, entry.name.size());
  std::string text;
  nlohmann::ordered_json listed{{what, nlohmann::ordered_json::array()}};
  for (const auto& entry : entries) {
    listed[what].push_back(
        {{"name", entry.name}, {"summary", entry.summary}, {"available", entry.needs.empty()}, {"needs", entry.needs}});
    if (entry.keeps_data)
      listed[what].back()["keeps_data"] = *entry.keeps_data;
    text += fmt::format("{:<{}}  {}\n", entry.name, width, entry.summary);
    if (!entry.needs.empty())
      text += fmt::format("{:<{}}  not available: {}\n", "", width, entry.needs);
  }
  return json ? listed.dump(1) + "\n" : text;
}

namespace {
std::string plain(const nlohmann::ordered_json& value)
{
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// One parameter or key: name, default, meaning, unit.
std::string parameter_line(const nlohmann::ordered_json& item, const std::string& margin, const std::string& prefix)
{
  const auto stated   = item.find("default");
  const bool in_range = stated != item.end() && (!stated->is_number() || *stated >= item.value("low", 0.0));
  const auto fallback = !in_range             ? ""
                        : stated->is_number() ? fmt::format("{:g}", stated->get<double>())
                                              : plain(*stated);
  const auto unit     = item.value("unit", "");
  return fmt::format("{}  {:<18} {:<16} {}{}\n", margin, prefix + item.value("name", ""), fallback,
                     item.value("meaning", ""), unit.empty() ? "" : " [" + unit + "]");
}

/// Keys and values with indentation.
std::string node_text(const nlohmann::ordered_json& node, size_t indent, const std::string& prefix)
{
  std::string text;
  const std::string margin(indent, ' ');
  for (const auto& [key, value] : node.items()) {
    if (value.is_object() && !value.empty()) {
      text += fmt::format("{}{}:\n", margin, key) + node_text(value, indent + 2, prefix);
    } else if (value.is_array() && !value.empty() && value.front().is_object()) {
      text += fmt::format("{}{}:\n", margin, key);
      for (const auto& item : value)
        text += item.contains("meaning") ? parameter_line(item, margin, prefix)
                                         : margin + "  -\n" + node_text(item, indent + 4, prefix);
    } else {
      text += fmt::format("{}{}: {}\n", margin, key, plain(value));
    }
  }
  return text;
}
} // namespace

std::string description_text(const nlohmann::ordered_json& description, bool json, const std::string& option_prefix)
{
  return json ? description.dump(1) + "\n" : node_text(description, 0, option_prefix);
}

} // namespace iocast
