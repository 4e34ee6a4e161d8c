// SPDX-License-Identifier: Apache-2.0
//
// Routes against a search of the graph that their links are.
#include "input/error.hpp"
#include "models/topology.hpp"
#include "tests/unit/sharpness.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <queue>
#include <set>
#include <unistd.h>

namespace iocast {
namespace {

struct Net {
  NetworkEnds ends;
  std::unique_ptr<Topology> topology;
};

Net net_of(const std::string& network, uint32_t nodes, uint32_t servers)
{
  const auto file = std::filesystem::temp_directory_path() / fmt::format("iocast-topology-{}.yaml", getpid());
  std::ofstream(file) << fmt::format("schema_version: 1\nstations: {{s: {{count: {}, spread: object}}}}\n"
                                     "network: {{latency: 1us, node_bandwidth: 1GB/s, server_bandwidth: 2GB/s, {}}}\n"
                                     "operations: {{pwrite: [{{transfer: write, station: s}}]}}\n",
                                     servers, network);
  const auto platform = open_platform(file.string());
  std::filesystem::remove(file);
  Net net{ends_of(platform, nodes), nullptr};
  net.topology = make_topology(platform.network, net.ends);
  return net;
}

/// Least cost from each vertex to one, where `cost` is that of a link.
std::vector<double> costs_to(const Topology& topology, uint32_t to, const std::function<double(Topology::Link)>& cost)
{
  uint32_t vertices = 0;
  std::vector<std::vector<std::pair<uint32_t, double>>> arriving;
  for (Topology::Link link = 0; link < topology.links(); ++link) {
    const auto [a, b] = topology.wire(link);
    vertices          = std::max({vertices, a + 1, b + 1});
    arriving.resize(vertices);
    arriving[b].emplace_back(a, cost(link));
  }
  std::vector<double> best(vertices, std::numeric_limits<double>::infinity());
  std::priority_queue<std::pair<double, uint32_t>> queue;
  queue.emplace(-(best[to] = 0), to);
  while (!queue.empty()) {
    const auto [far, at] = queue.top();
    queue.pop();
    if (-far > best[at])
      continue;
    for (const auto& [from, more] : arriving[at])
      if (-far + more < best[from])
        queue.emplace(-(best[from] = -far + more), from);
  }
  return best;
}

/// Between groups a link costs as much as any number within one: a minimal route of a dragonfly crosses once.
double cost_of(const Topology& topology, Topology::Link link)
{
  return topology.name(link).starts_with("groups") ? 100 : 1;
}

struct Case {
  const char* name;
  const char* network;
  uint32_t nodes;
  uint32_t servers;
  bool is_exact = true; ///< routes are the shortest; with parallel links of groups, the next ones to it
};

const std::vector<Case> cases{
    {"star", "topology: star", 9, 3},
    {"two levels", "topology: fat-tree, leaf: {nodes: 4, uplinks: 2, bandwidth: 1GB/s}", 24, 5},
    {"hashed", "topology: fat-tree, leaf: {nodes: 4, uplinks: 3, bandwidth: 1GB/s}, routing: hashed", 21, 5},
    {"three levels",
     "topology: fat-tree, leaf: {nodes: 3, uplinks: 2, bandwidth: 1GB/s}, pod: {leaves: 3, uplinks: 2, bandwidth: "
     "2GB/s}, servers: {s: {leaf: 2}}",
     30, 5},
    {"islands",
     "topology: islands, leaf: {nodes: 3, uplinks: 3, bandwidth: 1GB/s}, island: {leaves: 2, uplinks: 2, bandwidth: "
     "2GB/s}",
     22, 4},
    {"among",
     "topology: fat-tree, leaf: {nodes: 4, uplinks: 2, count: 5, bandwidth: 1GB/s}, servers: {s: {leaf: 2, "
     "among: nodes}}",
     18, 7},
    {"dragonfly",
     "topology: dragonfly, groups: {routers: 4, nodes: 2, local: 1GB/s}, global: {links: 1, bandwidth: "
     "1GB/s}",
     38, 5},
    {"parallel links",
     "topology: dragonfly, groups: {routers: 4, nodes: 2, local: 1GB/s}, global: {links: 3, "
     "bandwidth: 1GB/s}, servers: {s: {router: 1}}",
     32, 5, false},
    {"one group",
     "topology: dragonfly, groups: {routers: 6, nodes: 2, count: 1, local: 1GB/s}, servers: {s: {router: "
     "1, among: nodes}}",
     12, 4},
    {"torus", "topology: torus, torus: {dimensions: [4, 3, 2], bandwidth: 1GB/s}", 20, 3},
    {"torus among",
     "topology: torus, torus: {dimensions: [5, 4], nodes: 2, bandwidth: 1GB/s}, servers: {s: {router: 1, "
     "among: nodes}}",
     33, 3},
};

class Routes : public testing::TestWithParam<Case> {};

TEST_P(Routes, Connect)
{
  const auto net       = net_of(GetParam().network, GetParam().nodes, GetParam().servers);
  const auto& topology = *net.topology;
  const uint32_t count = net.ends.count();
  ASSERT_EQ(count, GetParam().nodes + GetParam().servers);
  for (uint32_t to = 0; to < count; ++to) {
    const auto best = costs_to(topology, to, [&](auto link) { return cost_of(topology, link); });
    for (uint32_t from = 0; from < count; ++from) {
      if (from == to)
        continue;
      uint32_t at = from;
      double cost = 0;
      std::set<Topology::Link> passed;
      for (const auto& pass : topology.route(from, to, 0)) {
        ASSERT_TRUE(passed.insert(pass.link).second) << "a link twice";
        const auto [a, b] = topology.wire(pass.link);
        ASSERT_EQ(a, at) << topology.name(pass.link) << " from " << from << " to " << to;
        at = b;
        cost += cost_of(topology, pass.link);
      }
      ASSERT_EQ(at, to);
      if (GetParam().is_exact)
        ASSERT_EQ(cost, best[from]) << from << " to " << to;
      else
        ASSERT_TRUE(cost >= best[from] && cost <= best[from] + 2) << from << " to " << to;
    }
  }
}

TEST_P(Routes, HaveNamesOfTheirOwn)
{
  const auto net = net_of(GetParam().network, GetParam().nodes, GetParam().servers);
  std::set<std::string> names;
  for (Topology::Link link = 0; link < net.topology->links(); ++link)
    if (const auto [a, b] = net.topology->wire(link); a != b)
      EXPECT_TRUE(names.insert(net.topology->name(link)).second) << net.topology->name(link);
}

INSTANTIATE_TEST_SUITE_P(Topologies, Routes, testing::ValuesIn(cases), [](const auto& info) {
  std::string name = info.param.name;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
});

/// Of routes between all nodes: the most on a link that has this in its name, and the mean.
std::pair<double, double> loads(const Net& net, const std::string& part)
{
  std::vector<double> on(net.topology->links());
  for (uint32_t from = 0; from < net.ends.nodes; ++from)
    for (uint32_t to = 0; to < net.ends.nodes; ++to)
      if (from != to)
        for (const auto& pass : net.topology->route(from, to, 0))
          ++on[pass.link];
  double most  = 0;
  double sum   = 0;
  double count = 0;
  for (Topology::Link link = 0; link < on.size(); ++link)
    if (on[link] > 0 && net.topology->name(link).find(part) != std::string::npos) {
      most = std::max(most, on[link]);
      sum += on[link];
      ++count;
    }
  return {most, sum / count};
}

TEST(Routes, FromAllToAllLoadLinksEvenly)
{
  const auto even = [](const char* network, uint32_t nodes, const char* part, double most) {
    const auto [highest, mean] = loads(net_of(network, nodes, 1), part);
    EXPECT_GT(mean, 0) << network;
    EXPECT_LE(highest, most * mean) << network << ": " << part;
  };
  const char* tree = "topology: fat-tree, leaf: {nodes: 4, uplinks: 2, bandwidth: 1GB/s}";
  even(tree, 32, " up", 1.0 + 1e-12);
  even(tree, 32, " down", 1.0 + 1e-12);
  even("topology: fat-tree, leaf: {nodes: 4, uplinks: 2, bandwidth: 1GB/s}, routing: hashed", 64, " up", 1.3);
  const char* three =
      "topology: fat-tree, leaf: {nodes: 4, uplinks: 4, bandwidth: 1GB/s}, pod: {leaves: 4, uplinks: 4, "
      "bandwidth: 1GB/s}";
  even(three, 64, "leaf", 1.0 + 1e-12);
  even(three, 64, "pod", 1.0 + 1e-12);
  even("topology: dragonfly, groups: {routers: 4, nodes: 2, local: 1GB/s}, global: {links: 1, bandwidth: 1GB/s}", 40,
       "groups", 1.0 + 1e-12);
  for (const char* part : {"dimension 0", "dimension 1", "dimension 2"})
    even("topology: torus, torus: {dimensions: [4, 5, 4], bandwidth: 1GB/s}, servers: {s: {router: 1, among: nodes}}",
         80, part, 1.0 + 1e-12);
}

TEST(Routes, OfADragonflyLeadOverAThirdGroup)
{
  const auto net       = net_of("topology: dragonfly, groups: {routers: 3, nodes: 2, local: 1GB/s}, global: {links: 2, "
                                      "bandwidth: 1GB/s}, minimal: 0.3",
                                24, 1);
  const auto& topology = *net.topology;
  std::set<uint32_t> ways;
  double minimal      = 0;
  constexpr int flows = 20000;
  for (int number = 0; number < flows; ++number) {
    const uint32_t way = topology.way(0, 23, static_cast<uint64_t>(number));
    ways.insert(way);
    minimal += way == 0 ? 1 : 0;
    uint32_t at    = 0;
    double between = 0;
    for (const auto& pass : topology.route(0, 23, way)) {
      ASSERT_EQ(topology.wire(pass.link).from, at);
      at = topology.wire(pass.link).to;
      between += cost_of(topology, pass.link) == 100 ? 1 : 0;
    }
    ASSERT_EQ(at, 23U);
    ASSERT_EQ(between, way == 0 ? 1 : 2);
  }
  EXPECT_EQ(ways.size(), 4U) << "minimal, and over each group but the two";
  expect_within("minimal flows", minimal / flows, 0.3, 4.5, std::sqrt(0.3 * 0.7 / flows));
  EXPECT_EQ(topology.way(0, 1, 7), 0U) << "within a group";
}

} // namespace
} // namespace iocast
