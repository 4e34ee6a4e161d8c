// SPDX-License-Identifier: Apache-2.0
#include "real/manifest.hpp"

#include "input/error.hpp"
#include "real/nothing_there.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace iocast {

namespace {
constexpr int most_nested = 64; ///< levels of brackets: a mix in a mix has a few

uint64_t count_of(const Footprint& footprint, OpKind wanted)
{
  uint64_t total = 0;
  for (const auto& [kind, count] : footprint.operations)
    total += kind == wanted ? count : 0;
  return total;
}

std::string plain(const nlohmann::ordered_json& value)
{
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// The settings that differ: "datasets = 4 (requested: 3), objects = 10 (requested: 20)".
std::string differences(const nlohmann::ordered_json& stored, const nlohmann::ordered_json& requested)
{
  std::string text;
  auto add = [&](const std::string& key, const std::string& there, const std::string& here) {
    text += fmt::format("{}{} = {} (requested: {})", text.empty() ? "" : ", ", key, there, here);
  };
  for (const auto& [key, value] : stored.items())
    if (!requested.contains(key))
      add(key, plain(value), "nothing");
    else if (requested[key] != value)
      add(key, plain(value), plain(requested[key]));
  for (const auto& [key, value] : requested.items())
    if (!stored.contains(key))
      add(key, "nothing", plain(value));
  return text;
}

/// What a command for the data set needs beside the requested settings: ", and --set objects=20"; "" where it has them.
std::string settings_of(const Manifest& found, const PatternEntry& entry, const Pattern& pattern)
{
  if (found.pattern != entry.name)
    return fmt::format(", and --workload {}", found.pattern);
  const auto requested = pattern.data_set();
  std::string text;
  for (const auto& [name, value] : found.data_set.items())
    if (value.is_primitive() && (!requested.contains(name) || requested[name] != value))
      text += fmt::format(" --set {}={}", name, plain(value));
  return text.empty() ? "" : ", and" + text;
}
} // namespace

Manifest Manifest::parse(const std::string& text, const std::string& place)
{
  const std::string what = fmt::format("{} holds an iocast.manifest.json that can't be used:", place);
  try {
    const auto json = nlohmann::ordered_json::parse(text, [&](int depth, auto, auto&) {
      if (depth > most_nested)
        throw InputError(fmt::format("{} it has more than {} levels of brackets.", what, most_nested));
      return true;
    });
    if (const auto version = json.at("schema_version").get_ref<const int64_t&>(); version != 1)
      throw InputError(fmt::format("{} its schema version is {}, this program knows 1.", what, version));
    const auto state = json.at("state").get<std::string>();
    if (state != "ready" && state != "in progress")
      throw InputError(fmt::format("{} its state is '{}', neither 'ready' nor 'in progress'.", what, state));
    return {json.at("pattern"),
            json.at("data_set"),
            json.at("position"),
            json.at("seed").get_ref<const uint64_t&>(),
            state == "ready",
            json.at("phase"),
            json.value("verifiable", false),
            json.value("made_place", false)};
  } catch (const nlohmann::json::exception& error) {
    throw InputError(fmt::format("{} {}.", what, error.what()));
  }
}

std::string Manifest::text() const
{
  const nlohmann::ordered_json json{{"schema_version", 1},
                                    {"pattern", pattern},
                                    {"data_set", data_set},
                                    {"position", position},
                                    {"seed", seed},
                                    {"state", ready ? "ready" : "in progress"},
                                    {"phase", phase},
                                    {"verifiable", verifiable},
                                    {"made_place", made_place}};
  return json.dump(1) + "\n";
}

bool makes_data_set(const Footprint& footprint)
{
  return count_of(footprint, OpKind::mkdir) > 0;
}

bool removes_data_set(const Footprint& footprint)
{
  return count_of(footprint, OpKind::rmdir) > 0;
}

bool only_removes(const Footprint& footprint)
{
  for (const auto& [kind, count] : footprint.operations)
    if (count > 0 && kind != OpKind::unlink && kind != OpKind::rmdir && kind != OpKind::think)
      return false;
  return removes_data_set(footprint);
}

void check_manifest(const std::optional<Manifest>& found, bool place_is_empty, const std::string& place,
                    const PatternEntry& entry, const Pattern& pattern, bool sweeps)
{
  const auto footprint  = pattern.footprint();
  const bool has_phases = std::any_of(entry.parameters.begin(), entry.parameters.end(),
                                      [](const Parameter& parameter) { return parameter.name == "phases"; });
  if (!found) {
    if (!place_is_empty)
      throw InputError(fmt::format("{} is not empty and has no iocast.manifest.json; nothing in it is touched. Name an "
                                   "empty one.",
                                   place));
    if (sweeps)
      throw NothingThere(fmt::format("{} is empty; there is nothing to sweep.", place));
    if (!makes_data_set(footprint))
      throw InputError(
          fmt::format("{} holds no data set; make one with --set phases={}.", place, pattern.making_phases()));
    return;
  }
  const auto its_settings = settings_of(*found, entry, pattern);
  if (!sweeps && !found->ready && !only_removes(footprint))
    throw InputError(fmt::format("{} holds the data of a run that is in its phase '{}' or did not finish it; if none "
                                 "is running there, remove them with "
                                 "--sweep{}{}.",
                                 place, found->phase, has_phases ? " or --set phases=" + pattern.removing_phases() : "",
                                 its_settings));
  if (!sweeps && makes_data_set(footprint))
    throw InputError(
        fmt::format("{} holds a data set already; {}remove it with --sweep{}{}.", place,
                    has_phases ? fmt::format("leave {} out of the phases to use it, or ", pattern.making_phases()) : "",
                    has_phases ? " or --set phases=" + pattern.removing_phases() : "", its_settings));
  if (found->pattern != entry.name)
    throw InputError(
        fmt::format("{} holds a data set of the pattern '{}', not of '{}'.", place, found->pattern, entry.name));
  if (const auto differing = differences(found->data_set, pattern.data_set()); !differing.empty())
    throw InputError(
        fmt::format("{} holds a data set with {}; ask for what it has, or name another place.", place, differing));
}

namespace {
bool is_set(const std::string& name, const std::vector<std::string>& set)
{
  return std::any_of(set.begin(), set.end(), [&name](const auto& setting) { return setting.starts_with(name + "="); });
}

/// Of a data set, and of those of a mix's members.
void add_seeds(const nlohmann::ordered_json& data_set, const std::string& prefix, const std::vector<std::string>& set,
               std::vector<std::string>& result)
{
  if (!data_set.is_object())
    return;
  if (const auto seed = data_set.find("seed");
      seed != data_set.end() && seed->is_number_unsigned() && !is_set(prefix + "seed", set))
    result.push_back(fmt::format("{}seed={}", prefix, seed->get<uint64_t>()));
  for (const auto& [name, value] : data_set.items())
    if (value.is_object() && value.contains("data_set"))
      add_seeds(value["data_set"], prefix + name + ".", set, result);
}
} // namespace

std::vector<std::string> seeds_to_go_on(const Manifest& found, const PatternEntry& entry,
                                        const std::vector<std::string>& set)
{
  std::vector<std::string> result;
  if (found.pattern == entry.name)
    add_seeds(found.data_set, "", set, result);
  return result;
}

std::vector<std::string> settings_to_go_on(const Manifest& found, const std::string& place,
                                           const Parameters& parameters, const std::vector<std::string>& set)
{
  const auto requested = parameters.to_json();
  std::vector<std::string> result;
  for (const auto& [name, value] : found.position.items()) {
    if (!is_set(name, set))
      result.push_back(fmt::format("{}={}", name, plain(value)));
    else if (requested.at(name) != value)
      throw InputError(
          fmt::format("{} holds a data set that stands at {} = {}, but {} = {} is requested; leave {} out to "
                      "go on there.",
                      place, name, plain(value), name, plain(requested.at(name)), name));
  }
  return result;
}

} // namespace iocast
