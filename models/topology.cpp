// SPDX-License-Identifier: Apache-2.0
#include "models/topology.hpp"

#include "input/error.hpp"
#include "models/switches.hpp"
#include "models/topologies/kinds.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

namespace iocast {

namespace {
using Link = Topology::Link;

/// Bandwidths of the platform, 0 where there is no limit.
double or_unlimited(double bandwidth)
{
  return bandwidth > 0 ? bandwidth : std::numeric_limits<double>::infinity();
}

/// All ends around one switch; what crosses it shares a backbone, where the platform has one.
class Star final : public Topology {
public:
  Star(const NetworkSpec& spec, const NetworkEnds& ends)
      : spec_(spec), ends_(ends), count_(ends.count()), bandwidths_(spec.bandwidths(ends))
  {
  }
  Link links() const override { return 2 * count_ + (spec_.backbone_bandwidth > 0 ? 1 : 0); }
  bool is_star() const override { return true; }
  double capacity(Link link) const override
  {
    return or_unlimited(link < 2 * count_ ? bandwidth_of(link / 2) : spec_.backbone_bandwidth);
  }
  std::string name(Link link) const override
  {
    return link == 2 * count_ ? "backbone" : fmt::format("{} {}", ends_.name(link / 2), link % 2 == 0 ? "out" : "in");
  }
  Wire wire(Link link) const override
  {
    if (link == 2 * count_)
      return {count_, count_};
    return link % 2 == 0 ? Wire{link / 2, count_} : Wire{count_, link / 2};
  }
  Route route(uint32_t from, uint32_t to, uint32_t) const override
  {
    Route route;
    if (bandwidth_of(from) > 0)
      route.push_back({out_of(from)});
    if (spec_.backbone_bandwidth > 0)
      route.push_back({2 * count_});
    if (bandwidth_of(to) > 0)
      route.push_back({into(to)});
    return route;
  }
  double latency(uint32_t, uint32_t, uint32_t) const override { return spec_.latency; }
  nlohmann::ordered_json describe() const override { return {}; }

private:
  double bandwidth_of(uint32_t end) const
  {
    return end < ends_.nodes ? spec_.node_bandwidth : bandwidths_[end - ends_.nodes];
  }

  NetworkSpec spec_;
  NetworkEnds ends_;
  uint32_t count_;
  std::vector<double> bandwidths_;
};

} // namespace

std::string NetworkEnds::name(uint32_t end) const
{
  for (const auto& group : servers)
    if (end >= group.first && end < group.first + group.count)
      return fmt::format("{} {}", group.name, end - group.first);
  return fmt::format("node {}", end);
}

NetworkEnds ends_of(const Platform& platform, uint32_t nodes)
{
  constexpr uint64_t most = 1 << 24;
  NetworkEnds ends;
  ends.nodes             = nodes;
  uint64_t count         = nodes;
  const auto add_servers = [&](uint32_t station) {
    if (std::any_of(ends.servers.begin(), ends.servers.end(), [&](const auto& one) { return one.station == station; }))
      return;
    const auto& spec = platform.stations[station];
    ends.servers.push_back({station, spec.name, static_cast<uint32_t>(count), spec.count});
    count += spec.count;
  };
  platform.for_each_step([&](const Step& step, const BufferSpec* buffer) {
    if (step.kind != Step::Kind::transfer || !platform.ways[step.way].network)
      return;
    add_servers(step.target);
    if (buffer != nullptr && buffer->station >= 0)
      add_servers(static_cast<uint32_t>(buffer->station));
  });
  if (platform.network.routers >= 0)
    add_servers(static_cast<uint32_t>(platform.network.routers));
  if (count > most)
    throw InputError(fmt::format("The network of '{}' has {} ends, client nodes and servers; it may have {}.",
                                 platform.file, count, most));
  return ends;
}

std::vector<double> NetworkSpec::bandwidths(const NetworkEnds& ends) const
{
  std::vector<double> all;
  for (const auto& group : ends.servers) {
    const auto place =
        std::find_if(places.begin(), places.end(), [&](const auto& one) { return one.station == group.station; });
    all.insert(all.end(), group.count,
               place != places.end() && place->bandwidth > 0 ? place->bandwidth : server_bandwidth);
  }
  return all;
}

std::vector<TopologyKind>& topology_kinds()
{
  static std::vector<TopologyKind> kinds{fat_tree_kind(), islands_kind(), dragonfly_kind(), torus_kind()};
  return kinds;
}

std::unique_ptr<Topology> make_topology(const NetworkSpec& spec, const NetworkEnds& ends)
{
  auto topology = spec.plan ? spec.plan->make(spec, ends) : std::make_unique<Star>(spec, ends);
  return spec.routers < 0 ? std::move(topology) : behind_routers(std::move(topology), spec, ends);
}

nlohmann::ordered_json describe_network(const Platform& platform, uint32_t nodes)
{
  constexpr uint32_t shown = 1000;
  const auto& spec         = platform.network;
  if (!spec.plan)
    return {};
  const uint32_t all = spec.plan->nodes(spec, ends_of(platform, 0));
  const auto ends    = ends_of(platform, nodes > 0 ? nodes : all > 0 ? all : shown);
  return make_topology(spec, ends)->describe();
}

} // namespace iocast
