// SPDX-License-Identifier: Apache-2.0
#include "models/serves.hpp"

#include "input/error.hpp"
#include "models/platform_reader.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

namespace iocast {

double ServesSpec::beyond(const Placement& placement) const
{
  if (measured || nodes == 0)
    return 0;
  return std::max(static_cast<double>(placement.nodes()) / nodes, static_cast<double>(placement.ranks) / ranks);
}

void ServesSpec::refuse_beyond(const Placement& placement) const
{
  if (const double factor = beyond(placement); factor > refused)
    throw InputError(
        fmt::format("{} nodes with {} ranks are {:.0f} times the largest of any published number of {} ({} nodes, {} "
                    "ranks): nothing tells whether it is like its model there. Allowed: {} times; or simulate it all "
                    "the same with --beyond.",
                    placement.nodes(), placement.ranks, factor, of, nodes, ranks, refused));
}

std::vector<std::string> ServesSpec::basis(const Placement& placement, const std::string& platform) const
{
  if (is_template())
    return {fmt::format("The platform '{}' is a template, no facts: its numbers are its author's, and no published or "
                        "measured number stands behind them.",
                        platform)};
  if (const double factor = beyond(placement); factor > far)
    return {fmt::format("{} nodes with {} ranks are {:.0f} times the largest of any published number of {}: how far "
                        "off it is there, nobody published.",
                        placement.nodes(), placement.ranks, factor, of)};
  return {};
}

nlohmann::ordered_json ServesSpec::to_json() const
{
  auto json = nlohmann::ordered_json::object();
  if (nodes > 0)
    json["facts"] = {{"nodes", nodes}, {"ranks", ranks}};
  for (size_t k = 0; k < op_count; ++k) {
    const std::string name(name_of(static_cast<OpKind>(k)));
    if (node_local[k])
      json["node_local"].push_back(name);
    if (most[k] > 0)
      json["bounds"][name]["rate"] = most[k];
    if (most_bytes[k] > 0)
      json["bounds"][name]["bytes"] = most_bytes[k];
  }
  return json;
}

void PlatformReader::read_serves()
{
  auto& serves      = platform_.serves;
  const auto fitted = yaml_.find("fitted");
  serves.measured   = fitted && !fitted->entries().empty();
  const auto yaml   = yaml_.find("serves");
  if (!yaml)
    return;
  if (const auto facts = yaml->find("facts")) {
    serves.nodes = static_cast<uint32_t>((*facts)["nodes"].quantity(Unit::count, 1, 1e9));
    serves.ranks = static_cast<uint32_t>((*facts)["ranks"].quantity(Unit::count, 1, 1e9));
    facts->finish();
    serves.of = std::filesystem::path(facts->file()).stem().string();
  }
  if (const auto local = yaml->find("node_local")) {
    if (local->is_sequence())
      for (const auto& operation : local->items())
        serves.node_local[static_cast<size_t>(read_op(operation))] = true;
    else if (local->text() == "all")
      serves.node_local.fill(true);
    else
      local->fail("operations that a node does by itself are a list of them, or 'all'");
  }
  if (const auto bounds = yaml->find("bounds"))
    for (const auto& [name, bound] : bounds->entries()) {
      const auto operation = op_named(name);
      if (!operation || *operation == OpKind::phase)
        bound.fail(unknown_op(name));
      const auto kind         = static_cast<size_t>(*operation);
      serves.most[kind]       = bound.quantity_or("rate", Unit::rate, 0, 1e-9, 1e15);
      serves.most_bytes[kind] = bound.quantity_or("bytes", Unit::bandwidth, 0, 1e-9, 1e18);
      serves.where[kind]      = bound.where();
      bound.finish();
    }
  yaml->finish();
}

} // namespace iocast
