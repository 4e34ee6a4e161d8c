// SPDX-License-Identifier: Apache-2.0
//
// Dragonflies (Kim, Dally, Scott and Abts, ISCA 2008).
#include "models/switches.hpp"
#include "models/topologies/kinds.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace iocast {

namespace {

struct DragonflyShape {
  uint32_t count          = 0; ///< groups that have nodes; 0: as many as these need
  uint32_t routers        = 0; ///< of a group
  uint32_t nodes          = 0; ///< of a router
  double local            = 0; ///< bandwidth of a link between two routers of a group
  uint32_t links          = 0; ///< between each pair of groups
  double global_bandwidth = 0;
  double minimal          = 1; ///< share of flows on minimal routes
};

/// Groups of routers. Each two routers of a group have a link, and each two groups have `links`, dealt to their routers
/// in turn. A minimal route has at most a local, a global and a local link; others lead over a third group (Valiant,
/// SIAM J. Computing 11, 1982).
class Dragonfly final : public Switches {
public:
  Dragonfly(const DragonflyShape& shape, const NetworkSpec& spec, const NetworkEnds& ends, const Places& places)
      : Switches(spec, ends, places)
      , shape_(shape)
      , groups_(places_.switches() / shape.routers)
      , first_global_(groups_ * shape.routers * shape.routers)
  {
    links_between_ = first_global_ + groups_ * groups_ * shape.links;
  }

  uint32_t groups() const { return groups_; }
  bool has_one_way() const override { return shape_.minimal >= 1 || groups_ < 3; }
  /// The third group + 1.
  uint32_t way(uint32_t from, uint32_t to, uint64_t number) const override
  {
    const uint32_t a = group_of(from);
    const uint32_t b = group_of(to);
    if (has_one_way() || a == b)
      return 0;
    const uint64_t bits = hash_of(from, to, number + 1);
    if (static_cast<double>(bits >> 11) * 0x1p-53 < shape_.minimal)
      return 0;
    auto third = static_cast<uint32_t>(hash_of(bits, number) % (groups_ - 2));
    third += third >= std::min(a, b) ? 1 : 0;
    third += third >= std::max(a, b) ? 1 : 0;
    return third + 1;
  }
  nlohmann::ordered_json describe() const override
  {
    const double groups    = std::ceil(places_.node_switches() / static_cast<double>(shape_.routers));
    const auto cut         = [](double parts) { return std::floor(parts / 2) * std::ceil(parts / 2); };
    const double bisection = groups > 1           ? cut(groups) * shape_.links * shape_.global_bandwidth
                             : shape_.routers > 1 ? cut(shape_.routers) * shape_.local
                                                  : of_nodes(ends_.nodes / 2.0);
    auto json              = described("dragonfly", bisection);
    add_level(json, "router", places_.switches(), {shape_.nodes, "nodes"}, {shape_.routers - 1, shape_.local},
              shape_.nodes);
    add_level(json, "group", groups_, {shape_.routers, "routers"},
              {(groups_ - 1) * shape_.links, shape_.global_bandwidth},
              static_cast<double>(shape_.nodes) * shape_.routers);
    return json;
  }
  /// The minimal one, and one over each third group.
  uint32_t ways(uint32_t, uint32_t) const override { return groups_ + 1; }

protected:
  void go(Route& route, uint32_t from, uint32_t to, uint32_t way) const override
  {
    const uint32_t there = places_.switch_of(to);
    uint32_t here        = places_.switch_of(from);
    if (way > 0 && way - 1 != here / shape_.routers && way - 1 != there / shape_.routers)
      here = cross(route, here, way - 1, from, to);
    if (here / shape_.routers != there / shape_.routers)
      here = cross(route, here, there / shape_.routers, from, to);
    local(route, here, there);
  }
  double capacity_between(Link link) const override
  {
    return link < first_global_ ? shape_.local : shape_.global_bandwidth;
  }
  std::string name_between(Link link) const override
  {
    if (link < first_global_) {
      const auto [from, to] = wire_between(link);
      const uint32_t a      = from % shape_.routers;
      const uint32_t b      = to % shape_.routers;
      return fmt::format("group {} routers {} and {} {}", from / shape_.routers, std::min(a, b), std::max(a, b),
                         a < b ? "up" : "down");
    }
    const uint32_t pair = (link - first_global_) / shape_.links;
    const uint32_t a    = pair / groups_;
    const uint32_t b    = pair % groups_;
    return fmt::format("groups {} and {} link {} {}", std::min(a, b), std::max(a, b),
                       (link - first_global_) % shape_.links, a < b ? "up" : "down");
  }
  Wire wire_between(Link link) const override
  {
    if (link < first_global_) {
      const uint32_t from = link / shape_.routers;
      return {from, from / shape_.routers * shape_.routers + link % shape_.routers};
    }
    const uint32_t pair  = (link - first_global_) / shape_.links;
    const uint32_t which = (link - first_global_) % shape_.links;
    return {port(pair / groups_, pair % groups_, which), port(pair % groups_, pair / groups_, which)};
  }

private:
  uint32_t group_of(uint32_t end) const { return places_.switch_of(end) / shape_.routers; }
  /// Router of group a that has a link to group b.
  uint32_t port(uint32_t a, uint32_t b, uint32_t which) const
  {
    const uint32_t other = b < a ? b : b - 1; // a has none to itself
    return a * shape_.routers + static_cast<uint32_t>((uint64_t{other} * shape_.links + which) % shape_.routers);
  }
  /// To another group; of the parallel links, by both ends. @returns the router where that arrives
  uint32_t cross(Route& route, uint32_t here, uint32_t group, uint32_t from, uint32_t to) const
  {
    const uint32_t a = here / shape_.routers;
    const auto which = static_cast<uint32_t>(hash_of(from, to) % shape_.links);
    local(route, here, port(a, group, which));
    add(route, first_global_ + (a * groups_ + group) * shape_.links + which);
    return port(group, a, which);
  }
  void local(Route& route, uint32_t here, uint32_t there) const
  {
    if (here != there)
      add(route, here * shape_.routers + there % shape_.routers);
  }

  DragonflyShape shape_;
  uint32_t groups_;
  Link first_global_;
};

class DragonflyPlan final : public TopologyPlan {
public:
  DragonflyPlan(const YamlNode& network, const DragonflyShape& shape) : TopologyPlan(network), shape_(shape) {}
  std::unique_ptr<Topology> make(const NetworkSpec& spec, const NetworkEnds& ends) const override
  {
    const Places places(spec, ends, shape_.nodes, shape_.count * shape_.routers, shape_.routers, yaml_, "groups");
    const double groups = places.switches() / shape_.routers;
    refuse_many(yaml_["groups"], places.switches() * double{1} * shape_.routers + groups * groups * shape_.links,
                "links between routers");
    auto topology = std::make_unique<Dragonfly>(shape_, spec, ends, places);
    if (topology->groups() > 1 && shape_.links == 0)
      yaml_["groups"].fail(fmt::format("{} groups are needed and nothing links them; state network.global, such as "
                                       "{{links: 2, bandwidth: 25GB/s}} for each pair",
                                       topology->groups()));
    return topology;
  }
  uint32_t nodes(const NetworkSpec&, const NetworkEnds&) const override
  {
    return shape_.count * shape_.routers * shape_.nodes;
  }
  nlohmann::ordered_json to_json() const override
  {
    nlohmann::ordered_json json{{"topology", "dragonfly"}};
    json["groups"] = {{"routers", shape_.routers}, {"nodes", shape_.nodes}, {"local", shape_.local}};
    if (shape_.count > 0)
      json["groups"]["count"] = shape_.count;
    if (shape_.links > 0)
      json["global"] = {{"links", shape_.links}, {"bandwidth", shape_.global_bandwidth}};
    json["minimal"] = shape_.minimal;
    return json;
  }

private:
  DragonflyShape shape_;
};

std::shared_ptr<const TopologyPlan> read_dragonfly(const YamlNode& network, const NetworkSpec&)
{
  DragonflyShape shape;
  const auto groups = network["groups"];
  shape.routers     = count_of(groups, "routers");
  shape.nodes       = count_of(groups, "nodes");
  shape.local       = shape.routers > 1 || groups.has("local") ? bandwidth_of(groups, "local") : 0;
  shape.count       = groups.has("count") ? count_of(groups, "count") : 0;
  refuse_many(groups["routers"], double{1} * shape.routers * shape.routers, "links in a group");
  refuse_many(groups["nodes"], double{1} * std::max(shape.count, 1U) * shape.routers * shape.nodes, "client nodes");
  groups.finish();
  if (const auto global = network.find("global")) {
    shape.links            = count_of(*global, "links");
    shape.global_bandwidth = bandwidth_of(*global, "bandwidth");
    global->finish();
  }
  shape.minimal = network.quantity_or("minimal", Unit::factor, 1, 0, 1);
  return std::make_shared<DragonflyPlan>(network, shape);
}
} // namespace

TopologyKind dragonfly_kind()
{
  return {"dragonfly",
          "groups of routers, all linked in a group and all groups with each other",
          {{"groups", "routers of a group; nodes: client nodes of a router; local: bandwidth of a link between two "
                      "routers; count: groups that have nodes, default as many as the run's nodes need"},
           {"global", "links between each pair of groups; bandwidth of such a link"},
           {"minimal", "share of flows on minimal routes, default 1; the others go over a third group (Valiant)"}},
          "router",
          read_dragonfly};
}

} // namespace iocast
