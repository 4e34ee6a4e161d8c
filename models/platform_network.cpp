// SPDX-License-Identifier: Apache-2.0
//
// Section `network` of a platform.
#include "models/platform_reader.hpp"
#include "models/topology.hpp"

namespace iocast {

void PlatformReader::read_network()
{
  const auto network = yaml_.find("network");
  if (!network)
    return;
  refuse_foreign_words(
      *network, {{"flow_threshold",
                  "'never_limited: SIZE' (16KiB by itself), or nothing: transfers of any size compete for the links"}});
  auto& spec            = platform_.network;
  spec.latency          = network->quantity_or("latency", Unit::seconds, 0, 0, 10);
  spec.node_bandwidth   = network->quantity_or("node_bandwidth", Unit::bandwidth, 0, 1, 1e15);
  spec.server_bandwidth = network->quantity_or("server_bandwidth", Unit::bandwidth, 0, 1, 1e15);
  spec.never_limited    = network->quantity_or("never_limited", Unit::bytes, 1 << 14, 1, 1e18);
  read_topology(*network);
  if (const auto routers = network->find("routers")) {
    spec.routers = static_cast<int32_t>(find_in(platform_.stations, *routers, "station"));
    if (platform_.stations[static_cast<size_t>(spec.routers)].per == Per::node)
      routers->fail(fmt::format("'{}' is of the client nodes; routers are instances of a station of the system",
                                routers->text()));
  }
  network->finish();
}

void PlatformReader::read_topology(const YamlNode& network)
{
  auto& spec         = platform_.network;
  const auto& kinds  = topology_kinds();
  const auto file    = network.find("simgrid");
  const auto name    = network.text_or("topology", file ? "simgrid" : "star");
  const auto* chosen = static_cast<const TopologyKind*>(nullptr);
  std::vector<std::string> names{"star"};
  for (const auto& kind : kinds) {
    names.push_back(kind.name);
    if (kind.name == name)
      chosen = &kind;
  }
  if (chosen == nullptr && name == "simgrid" && file)
    file->fail("this program reads no platforms of SimGrid; iocast-sim does");
  if (chosen == nullptr && name != "star")
    network["topology"].fail(fmt::format("the topology '{}' is unknown. {}", name, allowed_sentence(name, names)));
  for (const auto& kind : kinds)
    for (const auto& other : kind.keys)
      if (chosen == nullptr || std::none_of(chosen->keys.begin(), chosen->keys.end(),
                                            [&](const auto& own) { return own.first == other.first; }))
        refuse_idle(network, other.first.c_str(), "topology",
                    fmt::format("it is of the topology '{}', and this network is a '{}'", kind.name, name));
  read_places(network, name, chosen == nullptr ? "" : chosen->place);
  if (chosen == nullptr) {
    refuse_idle(network, "hop_latency", "topology", "a star has no links between switches");
    spec.backbone_bandwidth = network.quantity_or("backbone_bandwidth", Unit::bandwidth, 0, 1, 1e18);
    return;
  }
  refuse_idle(network, "backbone_bandwidth", "topology",
              fmt::format("only a star has a backbone; the topology '{}' has links of its own between switches", name));
  spec.hop_latency = network.quantity_or("hop_latency", Unit::seconds, 0, 0, 10);
  if (chosen->has_cards) {
    for (const char* key : {"latency", "hop_latency", "node_bandwidth", "server_bandwidth", "servers"})
      refuse_idle(network, key, chosen->keys.front().first.c_str(), "the links of that file have it");
    spec.latency = spec.hop_latency = spec.node_bandwidth = spec.server_bandwidth = 0;
    spec.places.clear();
  }
  spec.plan = chosen->read(network, spec);
}

/// @param place what `topology` calls a switch that ends are at; empty: it has none to choose from
void PlatformReader::read_places(const YamlNode& network, const std::string& topology, const std::string& place)
{
  const auto servers = network.find("servers");
  if (!servers)
    return;
  for (const auto& [name, yaml] : servers->entries()) {
    ServerPlace one;
    const auto names = names_of(platform_.stations);
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
      yaml.fail(fmt::format("there is no station '{}'. {}", name, allowed_sentence(name, names)));
    one.station = static_cast<uint32_t>(found - names.begin());
    for (const char* key : {"leaf", "router", "among"})
      if (const auto idle = yaml.find(key); idle && (place.empty() || (key != place && key != std::string("among")))) {
        const auto decided = network.find("topology");
        if (!decided || idle->file() == decided->file() || idle->file() == platform_.file)
          idle->fail(fmt::format("'{}' has no effect: {}", key,
                                 place.empty() ? fmt::format("all ends of a '{}' are at one switch", topology)
                                               : fmt::format("in a '{}' servers are at a {}", topology, place)));
      }
    one.bandwidth = yaml.quantity_or("bandwidth", Unit::bandwidth, 0, 1, 1e15);
    if (!place.empty()) {
      one.each = static_cast<uint32_t>(yaml.quantity_or(place, Unit::count, 0, 1, 1e6));
      if (const auto among = yaml.find("among")) {
        if (among->text() != "nodes")
          among->fail(fmt::format("servers are 'among: nodes' or, without that, at switches of their own; not among "
                                  "'{}'",
                                  among->text()));
        one.among_nodes = true;
      }
    }
    yaml.finish();
    platform_.network.places.push_back(one);
  }
}

void PlatformReader::check_places() const
{
  const auto ends = ends_of(platform_, 0);
  if (const auto routers = platform_.network.routers;
      routers >= 0 && std::all_of(ends.servers.begin(), ends.servers.end(),
                                  [&](const auto& one) { return one.station == static_cast<uint32_t>(routers); }))
    yaml_["network"]["routers"].fail(fmt::format(
        "'{}' routes nothing: bytes go from client nodes over routers to another station, and no transfer goes to one",
        platform_.stations[static_cast<size_t>(routers)].name));
  for (const auto& place : platform_.network.places) {
    const auto& name = platform_.stations[place.station].name;
    if (std::none_of(ends.servers.begin(), ends.servers.end(),
                     [&](const auto& one) { return one.station == place.station; })) {
      std::vector<std::string> names;
      for (const auto& one : ends.servers)
        names.push_back(one.name);
      yaml_["network"]["servers"][name].fail(
          fmt::format("no transfer goes to the station '{}', so that it has no place in the network. {}", name,
                      names.empty() ? "No station has one." : allowed_sentence(name, names)));
    }
  }
}

} // namespace iocast
