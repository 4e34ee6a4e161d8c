// SPDX-License-Identifier: Apache-2.0
//
// Max-min sharing against answers worked out by hand and against progressive filling written for itself.
#include "models/flows.hpp"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <random>

namespace iocast {
namespace {

using Link = FlowNetwork::Link;
using Pass = FlowNetwork::Pass;

struct Flow {
  double begin;
  double bytes;
  double end; ///< as it must be
  std::vector<Pass> route;
};

uint64_t key_of(const std::vector<Pass>& route)
{
  uint64_t key = 0;
  for (const auto& pass : route)
    key = (key * 64 + pass.link + 1) * 16 + static_cast<uint64_t>(4 * pass.weight);
  return key;
}

std::vector<double> ends_of(FlowNetwork& net, const std::vector<Flow>& flows)
{
  std::vector<double> ends(flows.size(), -1);
  std::vector<FlowNetwork::Ended> ended;
  size_t begun = 0;
  while (begun < flows.size() || !net.empty()) {
    const double next = net.next_time();
    net.check(1e-12);
    if (begun < flows.size() && flows[begun].begin <= next) {
      const auto& flow = flows[begun];
      net.start(
          key_of(flow.route), [&] { return std::span<const Pass>(flow.route); }, static_cast<uint32_t>(begun),
          flow.bytes, flow.begin);
      ++begun;
      continue;
    }
    ended.clear();
    net.end(next, ended);
    for (const auto& flow : ended)
      ends[flow.flow] = next;
  }
  return ends;
}

struct Case {
  const char* name;
  std::vector<double> links;
  std::vector<Flow> flows;
  std::vector<double> rates{};  ///< numbered after the links
  std::vector<double> shares{}; ///< of the first link's capacity, with 1, 2, ... flows
};

std::vector<Case> cases()
{
  const std::vector<Flow> thousand(1000, {0, 10, 1000, {{0}}});
  return {
      {"two at once", {10}, {{0, 10, 2, {{0}}}, {0, 10, 2, {{0}}}}},
      {"one later", {10}, {{0, 10, 1.5, {{0}}}, {.5, 10, 2, {{0}}}}},
      {"parking lot", {10, 10}, {{0, 10, 2, {{0}, {1}}}, {0, 10, 2, {{0}}}, {0, 10, 2, {{1}}}}},
      {"unequal links", {10, 4}, {{0, 8, 4, {{0}, {1}}}, {0, 8, 1, {{0}}}, {0, 8, 4, {{1}}}}},
      {"a rate", {10}, {{0, 8, 4, {{0}, {1}}}, {0, 8, 1, {{0}}}}, {2}},
      {"star, servers limit", {5, 5, 3, 3}, {{0, 6, 4, {{0}, {2}}}, {0, 6, 2, {{0}, {3}}}, {0, 6, 4, {{1}, {2}}}}},
      {"a client limits too", {4, 4, 3, 3}, {{0, 6, 4, {{0}, {2}}}, {0, 6, 2.4, {{0}, {3}}}, {0, 6, 4, {{1}, {2}}}}},
      {"two slow a disk down", {10}, {{0, 8, 1.4, {{0}}}, {0, 4, 1, {{0}}}}, {}, {1, .8}},
      {"a bundle of 1000", {10}, thousand},
      {"ties",
       {3, 10, 4},
       {{0, 3, 3, {{1}, {0}, {2}}}, {0, 3, 3, {{1}, {0}, {2}}}, {0, 3, 3, {{1}, {0}, {2}}}, {0, 3, 3, {{2}}}}},
      {"chain of three levels",
       {1, 2, 4},
       {{0, 1, 2, {{0}, {1}}}, {0, 1, 2, {{0}}}, {0, 1.5, 1, {{1}, {2}}}, {0, 2.5, 1, {{2}}}}},
      {"departures in turn", {12}, {{0, 4, 1, {{0}}}, {0, 8, 1 + 8. / 12, {{0}}}, {0, 8, 1 + 8. / 12, {{0}}}}},
      // Writes take twice what reads take of the device: rates x with 2 x + x = 12.
      {"weights", {12}, {{0, 4, 1, {{0, 2}}}, {0, 12, 1 + 8. / 12, {{0}}}}},
      {"a weight where another link limits", {12, 3}, {{0, 3, 1, {{0, 2}, {1}}}, {0, 6, 1, {{0}}}}},
  };
}

TEST(Flows, EndWhenWorkedOutByHand)
{
  for (const uint64_t most_looks : {UINT64_MAX, uint64_t{0}}) // also filled from nothing each time
    for (const auto& one : cases()) {
      FlowNetwork net;
      for (const double capacity : one.links)
        net.add_link(capacity);
      for (const double rate : one.rates)
        net.add_rate(rate);
      if (!one.shares.empty())
        net.degrade(0, one.shares);
      net.fall_back_after(most_looks);
      const auto ends = ends_of(net, one.flows);
      for (size_t i = 0; i < ends.size(); ++i)
        EXPECT_NEAR(ends[i], one.flows[i].end, 1e-12 * one.flows[i].end) << one.name << ", flow " << i;
      EXPECT_EQ(net.cost().fallbacks > 0, most_looks == 0) << one.name;
    }
}

/// What random flows run on, numbers of links as they are made.
struct RandomNetwork {
  std::vector<double> capacity;
  std::vector<bool> is_rate;
  std::vector<std::vector<Pass>> routes;

  explicit RandomNetwork(uint64_t seed)
  {
    std::mt19937_64 rng(seed);
    const auto any  = [&](size_t n) { return static_cast<size_t>(rng() % n); };
    const bool ties = any(2) == 0; // few distinct capacities
    const size_t n  = 1 + any(seed % 3 == 0 ? 6 : 40);
    for (size_t i = 0; i < n; ++i) {
      capacity.push_back(ties ? 1.0 + static_cast<double>(any(3)) : 0.1 + static_cast<double>(any(1000)) / 100);
      is_rate.push_back(any(8) == 0);
    }
    for (size_t keys = 1 + any(60); keys > 0; --keys) {
      std::vector<Link> links(n);
      std::iota(links.begin(), links.end(), 0U);
      std::shuffle(links.begin(), links.end(), rng);
      links.resize(1 + any(std::min<size_t>(n, 7)));
      auto& route = routes.emplace_back();
      for (const Link link : links)
        route.push_back({link, any(4) == 0 ? 0.5 + static_cast<double>(any(8)) / 4 : 1});
    }
  }

  void make(FlowNetwork& net) const
  {
    for (size_t i = 0; i < capacity.size(); ++i)
      is_rate[i] ? net.add_rate(capacity[i]) : net.add_link(capacity[i]);
  }

  /// Progressive filling: rates by route, `flows` of each.
  std::map<size_t, double> fill(std::map<size_t, int> flows) const
  {
    auto left = capacity;
    std::map<size_t, double> rates;
    while (!flows.empty()) {
      std::vector<double> weight(capacity.size());
      for (const auto& [route, count] : flows)
        for (const auto& pass : routes[route])
          weight[pass.link] += count * pass.weight;
      const auto share = [&](size_t link) {
        return weight[link] <= 0 ? 1e300 : is_rate[link] ? capacity[link] : left[link] / weight[link];
      };
      double least = 1e300;
      for (size_t link = 0; link < capacity.size(); ++link)
        least = std::min(least, share(link));
      std::vector<bool> full(capacity.size());
      for (size_t link = 0; link < capacity.size(); ++link)
        full[link] = share(link) <= least * (1 + 1e-13);
      std::erase_if(flows, [&](const auto& each) {
        const auto& route = routes[each.first];
        if (std::none_of(route.begin(), route.end(), [&](const Pass& pass) { return full[pass.link]; }))
          return false;
        rates[each.first] = least;
        for (const auto& pass : route)
          left[pass.link] -= least * each.second * pass.weight;
        return true;
      });
    }
    return rates;
  }
};

/// Starts, ends and withdraws random flows and changes capacities; at each event compares all rates, and at its end
/// each flow's bytes and each link's. Some that are withdrawn go on elsewhere.
void expect_max_min(uint64_t seed, uint64_t most_looks)
{
  RandomNetwork random(seed);
  FlowNetwork net;
  random.make(net);
  net.fall_back_after(most_looks);
  std::mt19937_64 rng(seed + 1);
  const auto any = [&](size_t n) { return static_cast<size_t>(rng() % n); };
  struct Progress {
    size_t route;
    double bytes;
    double got;
    double fastest = 0;

    /// Times have the resolution of a double, and some flows become fast.
    double tolerance(double now) const { return 1e-9 * bytes + 1e-14 * now * fastest; }
  };
  std::map<uint32_t, Progress> flows;
  std::map<size_t, int> count;
  std::vector<double> moved(random.capacity.size());
  std::vector<double> unresolved(random.capacity.size());
  std::vector<FlowNetwork::Ended> ended;
  double now         = 0;
  uint32_t number    = 0;
  const auto proceed = [&](double time) {
    for (auto& [id, flow] : flows) {
      const double rate = net.rate_of(flow.route);
      flow.got += rate * (time - now);
      flow.fastest = std::max(flow.fastest, rate);
    }
    now = time;
  };
  const auto start = [&](uint32_t id, double bytes) {
    const size_t route = any(random.routes.size());
    net.start(
        route, [&] { return std::span<const Pass>(random.routes[route]); }, id, bytes, now);
    flows[id] = {route, bytes, 0, 0};
    ++count[route];
  };
  const auto leave = [&](uint32_t id) {
    const auto& flow = flows.at(id);
    for (const auto& pass : random.routes[flow.route]) {
      moved[pass.link] += flow.got * pass.weight;
      unresolved[pass.link] += flow.tolerance(now) * pass.weight;
    }
    if (--count[flow.route] == 0)
      count.erase(flow.route);
    flows.erase(id);
  };
  for (int event = 0; event < 200; ++event) {
    const double next = net.next_time();
    if (const size_t link = any(random.capacity.size()); event % 10 == 9 && !random.is_rate[link]) {
      proceed(std::isfinite(next) ? now + (next - now) * static_cast<double>(any(3)) / 3 : now + 0.1);
      random.capacity[link] *= event % 20 == 9 ? 0.125 : 6;
      net.set_capacity(static_cast<Link>(link), random.capacity[link], now);
    } else if (event % 10 == 4 && !flows.empty()) {
      proceed(now + (next - now) * static_cast<double>(any(3)) / 3);
      const auto [id, flow] = *std::next(flows.begin(), static_cast<long>(any(flows.size())));
      const double left     = net.withdraw(flow.route, id, now);
      ASSERT_NEAR(left, flow.bytes - flow.got, flow.tolerance(now));
      leave(id);
      if (left > 0 && any(2) == 0)
        start(id, left);
    } else if (net.empty() || any(100) < 55) {
      proceed(std::isfinite(next) ? now + (next - now) * static_cast<double>(any(3)) / 3 : now + 0.1);
      for (size_t many = 1 + any(4); many > 0; --many)
        start(number++, 0.25 * static_cast<double>(1 + any(20)));
    } else {
      proceed(next);
      ended.clear();
      net.end(now, ended);
      ASSERT_FALSE(ended.empty());
      for (const auto& flow : ended) {
        const auto& one = flows.at(flow.flow);
        ASSERT_NEAR(one.got, one.bytes, one.tolerance(now));
        leave(flow.flow);
      }
    }
    net.next_time();
    ASSERT_NO_THROW(net.check(1e-9));
    for (const auto& [route, rate] : random.fill(count))
      ASSERT_NEAR(net.rate_of(route), rate, 1e-9 * rate) << "route " << route << " of network " << seed;
  }
  for (const auto& [id, flow] : flows)
    for (const auto& pass : random.routes[flow.route]) {
      moved[pass.link] += flow.got * pass.weight;
      unresolved[pass.link] += flow.tolerance(now) * pass.weight;
    }
  const auto integrals = net.moved(now);
  for (size_t link = 0; link < moved.size(); ++link)
    ASSERT_NEAR(integrals[link], moved[link], 1e-8 * moved[link] + 1e-9 + unresolved[link]);
}

TEST(Flows, HaveMaxMinRatesAfterEachEvent)
{
  for (uint64_t seed = 0; seed < 150; ++seed)
    ASSERT_NO_FATAL_FAILURE(expect_max_min(seed, UINT64_MAX));
}

TEST(Flows, HaveThemWhenSharesDoNotSettleEither)
{
  for (uint64_t seed = 0; seed < 40; ++seed)
    ASSERT_NO_FATAL_FAILURE(expect_max_min(seed, seed % 4));
}

/// Ends on the network, its links numbered anew and its flows begun in another order.
std::vector<double> ends_on(const RandomNetwork& random, bool backwards, double scale)
{
  const size_t n = random.capacity.size();
  FlowNetwork net;
  for (size_t i = 0; i < n; ++i) {
    const size_t from = backwards ? n - 1 - i : i;
    random.is_rate[from] ? net.add_rate(scale * random.capacity[from]) : net.add_link(scale * random.capacity[from]);
  }
  std::vector<std::vector<Pass>> routes = random.routes;
  if (backwards)
    for (auto& route : routes)
      for (auto& pass : route)
        pass.link = static_cast<Link>(n - 1 - pass.link);
  std::vector<uint32_t> order(4 * routes.size());
  std::iota(order.begin(), order.end(), 0U);
  if (backwards)
    std::reverse(order.begin(), order.end());
  for (const uint32_t flow : order)
    net.start(
        flow % routes.size(), [&] { return std::span<const Pass>(routes[flow % routes.size()]); }, flow,
        scale * (1 + flow % 7), 0);
  std::vector<double> ends(order.size());
  std::vector<FlowNetwork::Ended> ended;
  while (!net.empty()) {
    const double now = net.next_time();
    ended.clear();
    net.end(now, ended);
    for (const auto& flow : ended)
      ends[flow.flow] = now;
  }
  return ends;
}

TEST(Flows, DependOnNoOrderAndNoUnit)
{
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const RandomNetwork random(seed);
    const auto ends      = ends_on(random, false, 1);
    const auto backwards = ends_on(random, true, 1);
    for (size_t i = 0; i < ends.size(); ++i)
      EXPECT_NEAR(ends[i], backwards[i], 1e-9 * ends[i]);
    const auto scaled = ends_on(random, false, 1048576);
    for (size_t i = 0; i < ends.size(); ++i)
      EXPECT_NEAR(ends[i], scaled[i], 1e-9 * ends[i]);
  }
}

} // namespace
} // namespace iocast
