// SPDX-License-Identifier: Apache-2.0
#include "models/platform.hpp"

#include "input/error.hpp"
#include "models/platform_reader.hpp"
#include "workload/workload.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

namespace fs = std::filesystem;

namespace iocast {

namespace {

std::vector<std::string> platform_names()
{
  std::vector<std::string> names;
  for (const auto& entry : platforms())
    names.push_back(entry.name);
  return names;
}

/// The file of a platform that was named in `from` (a directory), or by a user (empty).
std::string platform_file(const std::string& name_or_file, const fs::path& from)
{
  if (name_or_file.ends_with(".yaml") || name_or_file.ends_with(".yml"))
    return fs::path(name_or_file).is_absolute() || from.empty() ? name_or_file : (from / name_or_file).string();
  const fs::path file = fs::path(data_directory("platforms")) / (name_or_file + ".yaml");
  std::error_code ignored; // of a name that is too long for a file
  if (fs::exists(file, ignored))
    return file.string();
  throw InputError(
      fmt::format("There is no platform '{}'. {}", name_or_file, allowed_sentence(name_or_file, platform_names())));
}

YamlNode load_with_base(const std::string& file, std::vector<std::string> chain, Platform& platform)
{
  platform.read.emplace_back(file, text_of(file));
  auto yaml        = YamlNode::parse(platform.read.back().second, file);
  const auto canon = fs::weakly_canonical(file).string();
  if (std::find(chain.begin(), chain.end(), canon) != chain.end())
    yaml.fail("this platform extends itself");
  chain.push_back(canon);
  const auto version = yaml["schema_version"];
  if (version.quantity(Unit::count) != 1)
    version.fail(fmt::format("schema version {} is unknown; this program reads version 1", version.text()));
  const auto base = yaml.find("extends");
  if (!base)
    return yaml;
  std::string base_file;
  try {
    base_file = platform_file(base->text(), fs::path(file).parent_path());
  } catch (const InputError& error) {
    base->fail(error.what());
  }
  return yaml.over(load_with_base(base_file, chain, platform), "law");
}

/// As a run asks for it, at all stations that objects are striped over.
YamlNode with_stripes(const YamlNode& yaml, uint32_t stripe_count)
{
  std::string stations;
  for (const auto& [name, station] : yaml["stations"].entries())
    if (station.text_or("spread", "") == "stripe" && station.text_or("allocation", "") != "by-stripe")
      stations += fmt::format("{}\"{}\": {{stripe_count: {}}}", stations.empty() ? "" : ", ", name, stripe_count);
  if (stations.empty())
    throw InputError(
        fmt::format("No station of '{}' has objects striped over some of its instances in turn (spread: stripe), so "
                    "that a stripe count means nothing there.",
                    yaml.file()));
  return YamlNode::parse("stations: {" + stations + "}", "--stripe-count").over(yaml, "law");
}

} // namespace

bool PlatformReader::is_of_catalogue(const std::string& file)
{
  return fs::path(file).parent_path() == fs::path(data_directory("platforms"));
}

Platform open_platform(const std::string& name_or_file, std::optional<uint32_t> stripe_count)
{
  Platform platform;
  platform.file = platform_file(name_or_file, {});
  platform.name = fs::path(platform.file).stem().string();
  auto yaml     = load_with_base(platform.file, {}, platform);
  if (stripe_count)
    yaml = with_stripes(yaml, *stripe_count);
  PlatformReader(yaml, platform).read();
  return platform;
}

std::vector<PlatformEntry> platforms()
{
  std::vector<PlatformEntry> entries;
  for (const auto& file : fs::directory_iterator(data_directory("platforms")))
    if (file.path().extension() == ".yaml") {
      const auto yaml = YamlNode::load(file.path().string());
      entries.push_back({file.path().stem().string(), yaml.text_or("description", ""), yaml.text_or("extends", ""),
                         yaml.text_or("source", ""), file.path().string()});
    }
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return entries;
}

} // namespace iocast
