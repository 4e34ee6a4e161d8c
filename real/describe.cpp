// SPDX-License-Identifier: Apache-2.0
#include "real/describe.hpp"

#include "input/error.hpp"
#include "input/units.hpp"
#include "profile/summary.hpp"
#include "real/source_state.hpp"
#include "workload/describe.hpp"

#include <fmt/format.h>

namespace iocast {

namespace {
using Json = nlohmann::ordered_json;

std::vector<Listed> listed(const std::string& what)
{
  if (what == "patterns")
    return list_patterns();
  if (what == "workloads")
    return list_workloads();
  if (what != "backends") {
    const std::vector<std::string> allowed{"patterns", "workloads", "backends"};
    throw InputError(fmt::format("--list can't be '{}'. {}", what, allowed_sentence(what, allowed)));
  }
  std::vector<Listed> entries;
  for (const auto& entry : backends())
    entries.push_back({entry.name, entry.summary, entry.unavailable, entry.keeps_data});
  return entries;
}

std::string described(const std::string& name, bool json)
{
  for (const auto& entry : backends())
    if (entry.name == name)
      return description_text({{"kind", "backend"},
                               {"name", entry.name},
                               {"summary", entry.summary},
                               {"available", entry.unavailable.empty()},
                               {"needs", entry.unavailable},
                               {"parameters", describe(entry.parameters)}},
                              json, "--" + name + ".");
  if (const auto workload = describe_workload(name))
    return description_text(*workload, json);
  std::vector<std::string> names;
  for (const char* what : {"backends", "workloads", "patterns"})
    for (const auto& entry : listed(what))
      names.push_back(entry.name);
  throw InputError(
      fmt::format("There is no pattern, workload or backend '{}'. {}", name, allowed_sentence(name, names)));
}
} // namespace

std::string information(const Options& options)
{
  if (options.help)
    return options.help_text;
  if (options.version)
    return options.json
               ? Json{{"name", "iocast-bench"}, {"version", IOCAST_VERSION}, {"git", source_state}}.dump(1) + "\n"
               : fmt::format("iocast-bench {} ({})\n", IOCAST_VERSION, source_state);
  return options.list.empty() ? described(options.describe, options.json)
                              : list_text(options.list, listed(options.list), options.json);
}

Json to_json(const Footprint& footprint)
{
  auto operations = Json::object();
  for (const auto& [kind, count] : footprint.operations)
    operations[std::string(name_of(kind))] = count;
  return {{"operations", operations},
          {"bytes_written", footprint.bytes_written},
          {"bytes_read", footprint.bytes_read},
          {"largest_size", footprint.largest_size},
          {"peak_objects", footprint.peak_objects},
          {"peak_bytes", footprint.peak_bytes}};
}

std::string dry_run_text(const Json& dry_run)
{
  const auto& footprint = dry_run["footprint"];
  std::string phases;
  bool limited = false;
  for (const auto& phase : dry_run["phases"]) {
    const auto seconds = phase["most_seconds"].get<double>();
    limited            = limited || seconds > 0;
    phases += fmt::format("{}{}{}", phases.empty() ? "" : ", ",
                          phase_title(phase["name"].get<std::string>(), phase["repeat"].get<uint64_t>()),
                          seconds > 0 ? fmt::format(" (at most {})", format_quantity(seconds, Unit::seconds)) : "");
  }
  std::string text = fmt::format(
      "{} on {} ranks ({} a node) would run: {}\n", dry_run["workload"]["name"].get<std::string>(),
      dry_run["placement"]["ranks"].get<uint64_t>(), dry_run["placement"]["ranks_per_node"].get<uint64_t>(), phases);
  for (const auto& [kind, count] : footprint["operations"].items())
    if (count != 0)
      text += fmt::format("  {:<8} {:>15}\n", kind, count.get<uint64_t>());
  auto size = [&](const char* key) { return format_size(footprint[key].get<double>()); };
  text += fmt::format("written {}, read {}; at most {} objects with {} at a time{}\n", size("bytes_written"),
                      size("bytes_read"), footprint["peak_objects"].get<uint64_t>(), size("peak_bytes"),
                      limited ? "; less where a time limit ends a phase" : "");
  return text;
}

} // namespace iocast
