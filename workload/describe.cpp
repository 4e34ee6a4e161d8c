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

std::optional<nlohmann::ordered_json> describe_workload(const std::string& name)
{
  nlohmann::ordered_json json{{"name", name}};
  const PatternEntry* pattern = nullptr;
  for (const auto& entry : catalogue())
    if (entry.name == name) {
      const auto workload = open_workload(name, {});
      pattern             = workload.pattern;
      json["kind"]        = "workload";
      json["summary"]     = entry.description;
      json["pattern"]     = pattern->name;
      json["values"]      = workload.parameters.to_json();
    }
  for (const auto& entry : patterns())
    if (!pattern && entry.name == name) {
      pattern         = &entry;
      json["kind"]    = "pattern";
      json["summary"] = entry.summary;
    }
  if (!pattern)
    return std::nullopt;
  json["source"]     = pattern->source;
  json["parameters"] = describe(pattern->parameters);
  return json;
}

void print_list(const std::string& what, const std::vector<Listed>& entries, bool json)
{
  if (json) {
    nlohmann::ordered_json out{{what, nlohmann::ordered_json::array()}};
    for (const auto& entry : entries)
      out[what].push_back({{"name", entry.name}, {"summary", entry.summary}});
    fmt::print("{}\n", out.dump(1));
    return;
  }
  size_t width = 0;
  for (const auto& entry : entries)
    width = std::max(width, entry.name.size());
  for (const auto& entry : entries)
    fmt::print("{:<{}}  {}\n", entry.name, width, entry.summary);
}

namespace {
std::string plain(const nlohmann::ordered_json& value)
{
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// Keys and values with indentation; lists of maps (parameters, keys) as one line each.
void print_node(const nlohmann::ordered_json& node, int indent)
{
  for (const auto& [key, value] : node.items()) {
    const std::string margin(static_cast<size_t>(indent), ' ');
    if (value.is_object()) {
      fmt::print("{}{}:\n", margin, key);
      print_node(value, indent + 2);
    } else if (value.is_array() && !value.empty() && value.front().is_object() && value.front().contains("meaning")) {
      fmt::print("{}{}:\n", margin, key);
      for (const auto& item : value)
        fmt::print("{}  {:<16} {:<34} {}\n", margin, item.value("name", ""),
                   item.contains("unit") ? fmt::format("{}, default {}", item.value("unit", ""), item.value("default", "")) : "",
                   item.value("meaning", ""));
    } else if (value.is_array() && !value.empty() && value.front().is_object()) {
      fmt::print("{}{}:\n", margin, key);
      for (const auto& item : value) {
        fmt::print("{}  -\n", margin);
        print_node(item, indent + 4);
      }
    } else {
      fmt::print("{}{}: {}\n", margin, key, plain(value));
    }
  }
}
} // namespace

void print_description(const nlohmann::ordered_json& description, bool json)
{
  if (json)
    fmt::print("{}\n", description.dump(1));
  else
    print_node(description, 0);
}

} // namespace iocast
