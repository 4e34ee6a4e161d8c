// SPDX-License-Identifier: Apache-2.0
#include "workload/workload.hpp"

#include "input/error.hpp"
#include "workload/random.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <map>

namespace fs = std::filesystem;

namespace iocast {

std::string data_directory(const std::string& name)
{
  std::vector<fs::path> places;
  if (const char* home = std::getenv("IOCAST_HOME"))
    places.emplace_back(home);
  std::error_code ignored;
  if (const auto program = fs::read_symlink("/proc/self/exe", ignored); !ignored)
    places.push_back(program.parent_path().parent_path() / "share" / "iocast");
  places.emplace_back(IOCAST_SOURCE_DIR);
  for (const auto& place : places)
    if (fs::is_directory(place / name, ignored))
      return (place / name).string();
  throw RunError(fmt::format(
      "The directory '{}' of iocast is nowhere to be found. It lies in its clone, and after cmake --install in "
      "share/iocast beside bin; set IOCAST_HOME to one of these.",
      name));
}

std::unique_ptr<Pattern> Workload::make(const Placement& placement) const
{
  auto made = pattern->make(parameters, placement);
  if (const size_t phases = made->phases().size(); phases > UINT16_MAX)
    throw InputError(fmt::format("The workload has {} phases, repeats counted; the most is {}. Lower its repeats.",
                                 phases, UINT16_MAX));
  made->set_arrivals(read_arrivals(parameters));
  return made;
}

bool Workload::is_cyclic() const
{
  return lies_cyclically(parameters);
}

nlohmann::ordered_json Workload::to_json() const
{
  nlohmann::ordered_json json{{"name", name}, {"pattern", pattern->name}, {"parameters", parameters.to_json()}};
  if (!is_cyclic()) // blocks are what runs without this parameter have
    json["parameters"].erase("placement");
  if (!pattern->section.empty())
    json[pattern->section] = parameters.section().to_json();
  return json;
}

namespace {
/// By name.
std::map<std::string, std::string> catalogue_files()
{
  std::map<std::string, std::string> files;
  for (const auto& file : fs::directory_iterator(data_directory("workload/catalogue")))
    if (file.path().extension() == ".yaml")
      files.emplace(file.path().stem().string(), file.path().string());
  return files;
}
} // namespace

std::vector<CatalogueEntry> catalogue()
{
  std::vector<CatalogueEntry> entries;
  for (const auto& [name, file] : catalogue_files())
    entries.push_back({name, YamlNode::load(file).text_or("description", ""), file});
  return entries;
}

namespace {
Workload read_workload(const std::string& name, const YamlNode& yaml)
{
  if (const double version = yaml["schema_version"].quantity(Unit::count); version != 1)
    yaml["schema_version"].fail(fmt::format("schema version {:.0f} is unknown; this program reads version 1", version));
  const auto pattern_name     = yaml["pattern"].text();
  const PatternEntry* pattern = nullptr;
  try {
    pattern = &pattern_named(pattern_name);
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", yaml["pattern"].where(), error.what()));
  }
  std::vector<std::string> keys{"schema_version", "description", "source", "pattern", "parameters", "small"};
  Workload workload{name, pattern, yaml.text_or("source", pattern->source), Parameters(pattern->parameters),
                    pattern->small};
  if (!pattern->section.empty()) {
    keys.push_back(pattern->section);
    workload.parameters.set_section(yaml[pattern->section]);
  }
  yaml.allow_only(keys);
  if (const auto given = yaml.find("parameters"))
    workload.parameters.set_all(*given, !pattern->section.empty());
  if (const auto given = yaml.find("small")) {
    workload.small.clear();
    for (const auto& settings : given->items())
      workload.small.push_back(settings.text());
  }
  return workload;
}
} // namespace

namespace {
/// A parameter is a floating-point number; larger seeds than it holds exactly are hashed.
uint64_t as_parameter(uint64_t seed)
{
  constexpr uint64_t most = 9'000'000'000'000'000;
  return seed <= most ? seed : mix(seed) % most;
}
} // namespace

Workload open_workload(const std::string& name_or_file, const std::vector<std::string>& settings, uint64_t seed)
{
  const bool is_file = name_or_file.ends_with(".yaml") || name_or_file.ends_with(".yml");
  auto workload      = [&]() -> Workload {
    if (is_file)
      return read_workload(fs::path(name_or_file).stem().string(), YamlNode::load(name_or_file));
    std::vector<std::string> names;
    const auto files = catalogue_files();
    if (const auto file = files.find(name_or_file); file != files.end())
      return read_workload(name_or_file, YamlNode::load(file->second));
    for (const auto& [name, file] : files)
      names.push_back(name);
    for (const auto& entry : patterns()) {
      if (entry.name == name_or_file)
        return entry.example.empty()
                        ? Workload{entry.name, &entry, entry.source, Parameters(entry.parameters), entry.small}
                        : read_workload(entry.name, YamlNode::parse(entry.example, entry.name));
      names.push_back(entry.name);
    }
    if (fs::exists(name_or_file))
      throw InputError(fmt::format("'{}' is {}, and no workload file; these end in .yaml.", name_or_file,
                                   fs::is_directory(name_or_file) ? "a directory" : "a file"));
    throw InputError(fmt::format("There is no workload '{}'. {}", name_or_file, allowed_sentence(name_or_file, names)));
  }();
  for (const auto& setting : settings) {
    const auto equals = setting.find('=');
    if (equals == std::string::npos)
      throw InputError(fmt::format("'{}' is no setting; write --set name=value.", setting));
    workload.parameters.set(setting.substr(0, equals), setting.substr(equals + 1));
  }
  const auto& known = workload.parameters.declared();
  if (std::any_of(known.begin(), known.end(), [](const auto& parameter) { return parameter.name == "seed"; }) &&
      !workload.parameters.is_set("seed"))
    workload.parameters.set("seed", std::to_string(as_parameter(seed)));
  return workload;
}

Placement make_placement(long long nodes, long long ranks_per_node, bool cyclic)
{
  if (nodes < 1 || ranks_per_node < 1)
    throw InputError(
        fmt::format("{} nodes with {} ranks each are no place to run; both are at least 1.", nodes, ranks_per_node));
  if (nodes > 4'000'000'000LL / ranks_per_node)
    throw InputError(fmt::format("{} nodes with {} ranks each are more than 4 billion ranks.", nodes, ranks_per_node));
  return {static_cast<uint32_t>(nodes * ranks_per_node), static_cast<uint32_t>(ranks_per_node), cyclic};
}

} // namespace iocast
