// SPDX-License-Identifier: Apache-2.0
#include "models/switches.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

namespace iocast {

namespace {
uint32_t divided_up(uint32_t count, uint32_t by)
{
  return static_cast<uint32_t>((uint64_t{count} + by - 1) / by);
}

const ServerPlace* place_of(const NetworkSpec& spec, uint32_t station)
{
  const auto found =
      std::find_if(spec.places.begin(), spec.places.end(), [&](const auto& one) { return one.station == station; });
  return found == spec.places.end() ? nullptr : &*found;
}

/// Servers at one switch.
uint32_t each_of(const ServerPlace* place, uint32_t nodes_each)
{
  return place != nullptr && place->each > 0 ? place->each : nodes_each;
}
} // namespace

uint32_t Places::of_servers(const NetworkSpec& spec, const NetworkEnds& ends, uint32_t each)
{
  uint32_t switches = 0;
  for (const auto& group : ends.servers)
    if (const auto* place = place_of(spec, group.station); place == nullptr || !place->among_nodes)
      switches += divided_up(group.count, each_of(place, each));
  return switches;
}

Places::Places(const NetworkSpec& spec, const NetworkEnds& ends, uint32_t each, uint32_t node_switches, uint32_t block,
               const YamlNode& network, const char* section)
    : nodes_(ends.nodes), each_(each)
{
  const uint32_t needed = divided_up(ends.nodes, each);
  if (node_switches > 0 && needed > node_switches)
    network[section].fail(fmt::format("there are {} places for client nodes, {} at each of {} switches; "
                                      "the run has {} client nodes",
                                      uint64_t{node_switches} * each, each, node_switches, ends.nodes));
  node_switches_ = node_switches > 0 ? node_switches : needed;
  switches_      = divided_up(node_switches_, block) * block;
  for (const auto& group : ends.servers) {
    const auto* place     = place_of(spec, group.station);
    const uint32_t at_one = each_of(place, each);
    const bool among      = place != nullptr && place->among_nodes;
    if (among && group.count > uint64_t{at_one} * node_switches_)
      network["servers"][group.name].fail(
          fmt::format("there are {} places for '{}' among the client nodes, {} at each of "
                      "{} switches; it has {} instances",
                      uint64_t{at_one} * node_switches_, group.name, at_one, node_switches_, group.count));
    groups_.push_back({group.first, group.count, at_one, switches_, among ? node_switches_ : 0});
    if (!among)
      switches_ += divided_up(group.count, at_one);
  }
  switches_ = divided_up(switches_, block) * block;
}

nlohmann::ordered_json Places::describe(const NetworkEnds& ends) const
{
  auto json = nlohmann::ordered_json::object();
  for (size_t i = 0; i < groups_.size(); ++i) {
    const auto& group = groups_[i];
    const uint32_t on = group.among > 0 ? std::min(group.among, group.count) : divided_up(group.count, group.each);
    json[ends.servers[i].name] = {{"count", group.count}, {"switches", on}, {"among_nodes", group.among > 0}};
  }
  return json;
}

Switches::Switches(const NetworkSpec& spec, const NetworkEnds& ends, Places places)
    : ends_(ends)
    , places_(std::move(places))
    , latency_(spec.latency)
    , hop_latency_(spec.hop_latency)
    , node_bandwidth_(spec.node_bandwidth)
    , bandwidths_(spec.bandwidths(ends))
{
}

double Switches::capacity(Link link) const
{
  const uint32_t end = link / 2;
  if (end >= ends_.count())
    return capacity_between(link - 2 * ends_.count());
  const double bandwidth = end < ends_.nodes ? node_bandwidth_ : bandwidths_[end - ends_.nodes];
  return bandwidth > 0 ? bandwidth : std::numeric_limits<double>::infinity();
}

std::string Switches::name(Link link) const
{
  if (link >= 2 * ends_.count()) {
    const auto [from, to] = wire(link);
    return from == to ? "" : name_between(link - 2 * ends_.count()); // none leads to where it comes from
  }
  return fmt::format("{} {}", ends_.name(link / 2), link % 2 == 0 ? "out" : "in");
}

Topology::Wire Switches::wire(Link link) const
{
  const uint32_t ends = ends_.count();
  if (link < 2 * ends) {
    const uint32_t at = ends + places_.switch_of(link / 2);
    return link % 2 == 0 ? Wire{link / 2, at} : Wire{at, link / 2};
  }
  const auto [from, to] = wire_between(link - 2 * ends);
  return {ends + from, ends + to};
}

double Switches::of_nodes(double nodes) const
{
  return node_bandwidth_ > 0 ? nodes * node_bandwidth_ : std::numeric_limits<double>::infinity();
}

nlohmann::ordered_json Switches::described(const char* kind, double bisection) const
{
  return {{"topology", kind},
          {"nodes", ends_.nodes},
          {"bisection", bisection},
          {"half", of_nodes(ends_.nodes / 2.0)},
          {"links", links()},
          {"levels", nlohmann::ordered_json::array()},
          {"servers", places_.describe(ends_)}};
}

void Switches::add_level(nlohmann::ordered_json& json, const char* level, uint32_t count, const Below& below,
                         const Up& up, double nodes) const
{
  nlohmann::ordered_json entry{{"level", level}, {"count", count}, {"each", below.count}, {"of", below.what}};
  if (up.links > 0) {
    entry.update({{"links", up.links}, {"bandwidth", up.bandwidth}});
    if (node_bandwidth_ > 0)
      entry["tapering"] = of_nodes(nodes) / (up.links * up.bandwidth);
  }
  json["levels"].push_back(entry);
}

uint32_t count_of(const YamlNode& yaml, const char* key, double least)
{
  return static_cast<uint32_t>(yaml[key].quantity(Unit::count, least, 1e6));
}

void refuse_many(const YamlNode& yaml, double number, const char* what)
{
  constexpr double most = 1e8;
  if (number > most)
    yaml.fail(fmt::format("these are {:.3g} {}; a network may have {:.0f}", number, what, most));
}

double bandwidth_of(const YamlNode& yaml, const char* key)
{
  return yaml[key].quantity(Unit::bandwidth, 1, 1e15);
}

} // namespace iocast
