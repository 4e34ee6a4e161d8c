// SPDX-License-Identifier: Apache-2.0
//
// Tori: routers in a grid of any number of dimensions whose rows are rings.
#include "models/switches.hpp"
#include "models/topologies/kinds.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

namespace iocast {

namespace {

struct TorusShape {
  std::vector<uint32_t> dimensions;
  uint32_t nodes   = 1; ///< of a router
  double bandwidth = 0;
  uint32_t routers() const { return std::accumulate(dimensions.begin(), dimensions.end(), 1U, std::multiplies<>()); }
};

/// Routes go along one dimension after the other, each the shorter way round; where both are as long, routers with an
/// even coordinate send up and the others down.
class Torus final : public Switches {
public:
  Torus(const TorusShape& shape, const NetworkSpec& spec, const NetworkEnds& ends, const Places& places)
      : Switches(spec, ends, places), shape_(shape)
  {
    links_between_ = 2 * shape.routers() * static_cast<uint32_t>(shape.dimensions.size());
  }
  nlohmann::ordered_json describe() const override
  {
    const uint32_t largest = *std::max_element(shape_.dimensions.begin(), shape_.dimensions.end());
    const double cut       = largest > 2 ? 2 : largest - 1; // a ring is cut twice
    auto json              = described("torus", largest > 1 ? cut * (shape_.routers() / largest) * shape_.bandwidth
                                                            : of_nodes(ends_.nodes / 2.0));
    const auto links       = std::accumulate(shape_.dimensions.begin(), shape_.dimensions.end(), 0U,
                                             [](uint32_t sum, uint32_t one) { return sum + std::min(one - 1, 2U); });
    add_level(json, "router", shape_.routers(), {shape_.nodes, "nodes"}, {links, shape_.bandwidth}, shape_.nodes);
    return json;
  }

protected:
  void go(Route& route, uint32_t from, uint32_t to, uint32_t) const override
  {
    uint32_t here        = places_.switch_of(from);
    const uint32_t there = places_.switch_of(to);
    uint32_t stride      = 1;
    for (uint32_t dimension = 0; dimension < shape_.dimensions.size(); ++dimension) {
      const uint32_t size = shape_.dimensions[dimension];
      uint32_t at         = here / stride % size;
      const uint32_t goal = there / stride % size;
      const uint32_t up   = (goal + size - at) % size;
      const bool is_up    = 2 * up < size || (2 * up == size && at % 2 == 0);
      for (; at != goal; at = here / stride % size) {
        add(route, 2 * (here * static_cast<uint32_t>(shape_.dimensions.size()) + dimension) + (is_up ? 0 : 1));
        here = neighbour(here, stride, size, is_up);
      }
      stride *= size;
    }
  }
  double capacity_between(Link) const override { return shape_.bandwidth; }
  std::string name_between(Link link) const override
  {
    const auto dimensions    = static_cast<uint32_t>(shape_.dimensions.size());
    const uint32_t dimension = link / 2 % dimensions;
    const auto [from, to]    = wire_between(link);
    const bool is_up         = link % 2 == 0; // the cable is that of the router where going up begins
    return fmt::format("router {} dimension {} {}", is_up ? from : to, dimension, is_up ? "up" : "down");
  }
  Wire wire_between(Link link) const override
  {
    const auto dimensions = static_cast<uint32_t>(shape_.dimensions.size());
    const uint32_t from   = link / 2 / dimensions;
    uint32_t stride       = 1;
    for (uint32_t dimension = 0; dimension < link / 2 % dimensions; ++dimension)
      stride *= shape_.dimensions[dimension];
    return {from, neighbour(from, stride, shape_.dimensions[link / 2 % dimensions], link % 2 == 0)};
  }

private:
  static uint32_t neighbour(uint32_t router, uint32_t stride, uint32_t size, bool up)
  {
    const uint32_t at = router / stride % size;
    return router - at * stride + (at + (up ? 1 : size - 1)) % size * stride;
  }

  TorusShape shape_;
};

class TorusPlan final : public TopologyPlan {
public:
  TorusPlan(const YamlNode& network, const TorusShape& shape) : TopologyPlan(network), shape_(shape) {}
  std::unique_ptr<Topology> make(const NetworkSpec& spec, const NetworkEnds& ends) const override
  {
    const uint32_t own = Places::of_servers(spec, ends, shape_.nodes);
    if (own >= shape_.routers())
      yaml_["torus"].fail(fmt::format("the servers alone need {} routers, and the torus has {}; nothing is left for "
                                      "client nodes",
                                      own, shape_.routers()));
    return std::make_unique<Torus>(shape_, spec, ends,
                                   Places(spec, ends, shape_.nodes, shape_.routers() - own, 1, yaml_, "torus"));
  }
  uint32_t nodes(const NetworkSpec& spec, const NetworkEnds& ends) const override
  {
    const uint32_t own = Places::of_servers(spec, ends, shape_.nodes);
    return own < shape_.routers() ? (shape_.routers() - own) * shape_.nodes : 1;
  }
  nlohmann::ordered_json to_json() const override
  {
    return {{"topology", "torus"},
            {"torus", {{"dimensions", shape_.dimensions}, {"nodes", shape_.nodes}, {"bandwidth", shape_.bandwidth}}}};
  }

private:
  TorusShape shape_;
};

std::shared_ptr<const TopologyPlan> read_torus(const YamlNode& network, const NetworkSpec&)
{
  TorusShape shape;
  const auto torus      = network["torus"];
  const auto dimensions = torus["dimensions"];
  uint64_t routers      = 1;
  uint32_t hops         = 2;
  for (const auto& one : dimensions.items()) {
    shape.dimensions.push_back(static_cast<uint32_t>(one.quantity(Unit::count, 1, 1e6)));
    routers *= shape.dimensions.back();
    hops += shape.dimensions.back() / 2;
    if (routers > 1'000'000)
      dimensions.fail("a torus has at most 1,000,000 routers");
  }
  if (shape.dimensions.empty())
    dimensions.fail("a torus has a dimension or more, such as [12, 12, 16]");
  if (hops > Topology::most_hops)
    dimensions.fail(fmt::format("the longest route has {} links; it may have {}", hops, Topology::most_hops));
  shape.nodes     = torus.has("nodes") ? count_of(torus, "nodes") : 1;
  shape.bandwidth = bandwidth_of(torus, "bandwidth");
  torus.finish();
  return std::make_shared<TorusPlan>(network, shape);
}
} // namespace

TopologyKind torus_kind()
{
  return {
      "torus",
      "routers in a grid whose rows are rings",
      {{"torus", "dimensions, such as [12, 12, 16]; nodes: client nodes of a router, default 1; bandwidth of a link "
                 "in one direction"}},
      "router",
      read_torus};
}

} // namespace iocast
