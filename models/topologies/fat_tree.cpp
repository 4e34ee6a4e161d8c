// SPDX-License-Identifier: Apache-2.0
//
// Fat trees of two and three levels (Leiserson, IEEE Trans. Computers C-34, 1985), and islands: three levels whose
// pods have few links up.
#include "models/switches.hpp"
#include "models/topologies/kinds.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <string_view>

namespace iocast {

namespace {

struct TreeShape {
  const char* kind;
  uint32_t nodes       = 0; ///< of a leaf
  uint32_t count       = 0; ///< leaves that have nodes; 0: as many as these need
  uint32_t uplinks     = 0; ///< of a leaf, each to a spine switch of its pod
  double bandwidth     = 0; ///< of an uplink
  uint32_t pod_leaves  = 0; ///< 0: all leaves are below the same spines
  uint32_t pod_uplinks = 0; ///< of all spines of a pod together
  double pod_bandwidth = 0;
  bool hashed          = false;
};

bool is_islands(const TreeShape& shape)
{
  return std::string_view(shape.kind) == "islands";
}

/// Leaf switches, pods of them below spine switches of their own, and cores; two levels when there is one pod. Uplink u
/// of a pod is at its spine u % spines, and leads to core u.
class FatTree final : public Switches {
public:
  FatTree(const TreeShape& shape, const NetworkSpec& spec, const NetworkEnds& ends, const Places& places)
      : Switches(spec, ends, places)
      , shape_(shape)
      , leaves_(places_.switches())
      , pod_leaves_(shape.pod_leaves > 0 ? shape.pod_leaves : std::max(leaves_, 1U))
      , pods_((leaves_ + pod_leaves_ - 1) / pod_leaves_)
      , first_core_(2 * leaves_ * shape.uplinks)
  {
    links_between_ = first_core_ + (pods_ > 1 ? 2 * pods_ * shape.pod_uplinks : 0);
  }

  nlohmann::ordered_json describe() const override
  {
    const auto leaves      = static_cast<double>(places_.node_switches());
    const double leaf_up   = shape_.uplinks * shape_.bandwidth;
    const auto halves_of   = [](double parts) { return std::max(std::floor(parts / 2), parts > 1 ? 1.0 : 0.0); };
    double bisection       = leaves > 1 ? halves_of(leaves) * leaf_up : of_nodes(ends_.nodes / 2.0);
    const double node_pods = std::ceil(leaves / pod_leaves_);
    const double pod_up    = shape_.pod_uplinks * shape_.pod_bandwidth;
    if (node_pods > 1)
      bisection = std::min(bisection, halves_of(node_pods) * pod_up);
    auto json = described(shape_.kind, bisection);
    add_level(json, "leaf", leaves_, {shape_.nodes, "nodes"}, {shape_.uplinks, shape_.bandwidth}, shape_.nodes);
    if (pods_ > 1) {
      const char* pod = is_islands(shape_) ? "island" : "pod";
      add_level(json, pod, pods_, {pod_leaves_, "leaves"}, {shape_.pod_uplinks, shape_.pod_bandwidth},
                shape_.nodes * static_cast<double>(pod_leaves_));
      add_level(json, "core", shape_.pod_uplinks, {pods_, pod}, {}, 0);
    } else {
      add_level(json, "spine", shape_.uplinks, {leaves_, "leaves"}, {}, 0);
    }
    return json;
  }
  /// One over each uplink.
  uint32_t ways(uint32_t from, uint32_t to) const override
  {
    const uint32_t a = places_.switch_of(from);
    const uint32_t b = places_.switch_of(to);
    return a == b ? 1 : a / pod_leaves_ == b / pod_leaves_ ? shape_.uplinks : shape_.pod_uplinks;
  }

protected:
  void go(Route& route, uint32_t from, uint32_t to, uint32_t way) const override
  {
    const uint32_t a = places_.switch_of(from);
    const uint32_t b = places_.switch_of(to);
    if (a == b)
      return;
    // d-mod-k: all that goes to one end comes down one way; or by both ends, as tables of hashes do.
    const uint32_t choice = way + (shape_.hashed ? static_cast<uint32_t>(hash_of(from, to) >> 32)
                                                 : (to < ends_.nodes ? to : to - ends_.nodes));
    const uint32_t spines = shape_.uplinks;
    const uint32_t p      = a / pod_leaves_;
    const uint32_t q      = b / pod_leaves_;
    const uint32_t up     = p == q ? choice : choice % shape_.pod_uplinks;
    const uint32_t spine  = up % spines;
    add(route, 2 * (a * spines + spine));
    if (p != q) {
      add(route, first_core_ + 2 * (p * shape_.pod_uplinks + up));
      add(route, first_core_ + 2 * (q * shape_.pod_uplinks + up) + 1);
    }
    add(route, 2 * (b * spines + spine) + 1);
  }
  double capacity_between(Link link) const override
  {
    return link < first_core_ ? shape_.bandwidth : shape_.pod_bandwidth;
  }
  std::string name_between(Link link) const override
  {
    const bool core    = link >= first_core_;
    const uint32_t at  = (core ? link - first_core_ : link) / 2;
    const uint32_t per = core ? shape_.pod_uplinks : shape_.uplinks;
    return fmt::format("{} {} uplink {} {}", core ? "pod" : "leaf", at / per, at % per, link % 2 == 0 ? "up" : "down");
  }
  Wire wire_between(Link link) const override
  {
    const bool down       = link % 2 == 1;
    const uint32_t spines = shape_.uplinks;
    uint32_t below        = 0;
    uint32_t above        = 0;
    if (link < first_core_) {
      below = link / 2 / spines;
      above = leaves_ + below / pod_leaves_ * spines + link / 2 % spines;
    } else {
      const uint32_t at = (link - first_core_) / 2;
      const uint32_t up = at % shape_.pod_uplinks;
      below             = leaves_ + at / shape_.pod_uplinks * spines + up % spines;
      above             = leaves_ + pods_ * spines + up;
    }
    return down ? Wire{above, below} : Wire{below, above};
  }

private:
  TreeShape shape_;
  uint32_t leaves_, pod_leaves_, pods_;
  Link first_core_;
};

class TreePlan final : public TopologyPlan {
public:
  TreePlan(const YamlNode& network, const TreeShape& shape) : TopologyPlan(network), shape_(shape) {}
  std::unique_ptr<Topology> make(const NetworkSpec& spec, const NetworkEnds& ends) const override
  {
    const Places places(spec, ends, shape_.nodes, shape_.count, std::max(shape_.pod_leaves, 1U), yaml_, "leaf");
    const double leaves = places.switches();
    const double pods   = shape_.pod_leaves > 0 ? std::ceil(leaves / shape_.pod_leaves) : 1;
    refuse_many(yaml_["leaf"], 2 * leaves * shape_.uplinks + 2 * pods * shape_.pod_uplinks, "links between switches");
    return std::make_unique<FatTree>(shape_, spec, ends, places);
  }
  uint32_t nodes(const NetworkSpec&, const NetworkEnds&) const override { return shape_.count * shape_.nodes; }
  nlohmann::ordered_json to_json() const override
  {
    nlohmann::ordered_json json{{"topology", shape_.kind}};
    json["leaf"] = {{"nodes", shape_.nodes}, {"uplinks", shape_.uplinks}, {"bandwidth", shape_.bandwidth}};
    if (shape_.count > 0)
      json["leaf"]["count"] = shape_.count;
    const bool islands = is_islands(shape_);
    if (shape_.pod_leaves > 0)
      json[islands ? "island" : "pod"] = {
          {"leaves", shape_.pod_leaves},
          {"uplinks", islands ? shape_.pod_uplinks : shape_.pod_uplinks / shape_.uplinks},
          {"bandwidth", shape_.pod_bandwidth}};
    json["routing"] = shape_.hashed ? "hashed" : "destination";
    return json;
  }

private:
  TreeShape shape_;
};

TreeShape read_leaves(const YamlNode& network, const char* kind)
{
  TreeShape shape{kind};
  const auto leaf = network["leaf"];
  shape.nodes     = count_of(leaf, "nodes");
  shape.uplinks   = count_of(leaf, "uplinks");
  shape.bandwidth = bandwidth_of(leaf, "bandwidth");
  shape.count     = leaf.has("count") ? count_of(leaf, "count") : 0;
  refuse_many(leaf["nodes"], double{1} * shape.count * shape.nodes, "client nodes");
  leaf.finish();
  const auto routing = network.text_or("routing", "destination");
  if (routing != "destination" && routing != "hashed")
    network["routing"].fail(fmt::format("routing is by 'destination' or 'hashed', not '{}'", routing));
  shape.hashed = routing == "hashed";
  return shape;
}

void read_pods(const YamlNode& network, const char* key, TreeShape& shape, uint32_t spines)
{
  const auto pod       = network[key];
  shape.pod_leaves     = count_of(pod, "leaves");
  const double uplinks = count_of(pod, "uplinks");
  refuse_many(pod["uplinks"], uplinks * spines, "links of a pod");
  shape.pod_uplinks   = static_cast<uint32_t>(uplinks) * spines;
  shape.pod_bandwidth = bandwidth_of(pod, "bandwidth");
  pod.finish();
}

std::shared_ptr<const TopologyPlan> read_fat_tree(const YamlNode& network, const NetworkSpec&)
{
  auto shape = read_leaves(network, "fat-tree");
  if (network.has("pod"))
    read_pods(network, "pod", shape, shape.uplinks);
  return std::make_shared<TreePlan>(network, shape);
}

std::shared_ptr<const TopologyPlan> read_islands(const YamlNode& network, const NetworkSpec&)
{
  auto shape = read_leaves(network, "islands");
  read_pods(network, "island", shape, 1);
  return std::make_shared<TreePlan>(network, shape);
}

const std::vector<std::pair<std::string, std::string>> leaf_keys{
    {"leaf", "nodes: client nodes of a leaf switch; uplinks: its links to spine switches, one to each; bandwidth of an "
             "uplink; count: leaf switches that have nodes, default as many as the run's nodes need"},
    {"routing", "destination (default, d-mod-k): the way up is chosen by the end it leads to; hashed: by both ends"}};

std::vector<std::pair<std::string, std::string>> keys_with(const char* key, const char* meaning)
{
  auto keys = leaf_keys;
  keys.insert(keys.begin() + 1, {key, meaning});
  return keys;
}
} // namespace

TopologyKind fat_tree_kind()
{
  return {"fat-tree", "leaf and spine switches; with pods, three levels",
          keys_with("pod", "leaves below the same spine switches; uplinks: links of each of these spines to cores; "
                           "bandwidth of such a link; default: one pod, two levels"),
          "leaf", read_fat_tree};
}

TopologyKind islands_kind()
{
  return {"islands", "three levels, few links between islands of leaf switches",
          keys_with("island", "leaves of an island; uplinks: links of the whole island; bandwidth of such a link"),
          "leaf", read_islands};
}

} // namespace iocast
