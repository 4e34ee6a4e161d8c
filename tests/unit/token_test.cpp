// SPDX-License-Identifier: Apache-2.0
//
// Tokens that move between nodes, whose course can be computed by hand.
#include "tests/unit/small_system.hpp"

#include <fmt/format.h>

namespace iocast::small {
namespace {

/// Each rank makes `uses` stats and as many reads; each takes 1 ms with the token.
Outcome use(const std::string& token, uint64_t uses, const Placement& placement, const std::string& stations = "")
{
  const std::string with = "[{token: t, steps: [{station: s, demand: 1ms}]}]";
  return run(fmt::format("stations: {{s: {{servers: 100}}{}}}\ntokens: {{t: {{{}}}}}\noperations:\n  stat: {}\n  read: "
                         "{{open: [], read: {}, close: []}}\n",
                         stations, token, with, with),
             placement, uses);
}

TEST(Token, MovesFromNodeToNode)
{
  // Two nodes use it by turns: for 1 ms, and it takes 2 ms to the other one. The last one of 2 x 10 uses ends at 58 ms.
  const std::string move = "per: system, move: [{delay: 2ms}]";
  EXPECT_NEAR(use(move, 5, {2, 1}).seconds, 20 * 0.001 + 19 * 0.002, 1e-9);
  // All ranks of a node use it together, so that more of them take no longer.
  EXPECT_NEAR(use(move, 5, {6, 3}).seconds, 20 * 0.001 + 19 * 0.002, 1e-9);
  // A node by itself keeps it.
  EXPECT_NEAR(use(move, 5, {3, 3}).seconds, 10 * 0.001, 1e-9);
}

TEST(Token, AMoveIsWorkOfServers)
{
  const std::string manager = ", manager: {}";
  const auto moves  = [](const Outcome& outcome) { return outcome.stations[1][static_cast<size_t>(draining)].visits; };
  const auto shared = use("per: system, move: [{station: manager, demand: 2ms}]", 5, {2, 1}, manager);
  EXPECT_NEAR(shared.seconds, 20 * 0.001 + 19 * 0.002, 1e-9);
  EXPECT_EQ(moves(shared), 19U);
  // Each rank has objects of its own, whose tokens stay.
  const auto own = use("per: object, move: [{station: manager, demand: 2ms}]", 5, {2, 1}, manager);
  EXPECT_NEAR(own.seconds, 0.010, 1e-9);
  EXPECT_EQ(moves(own), 0U);
}

TEST(Token, AMoveIsWorkOfTheNodeThatGivesItUp)
{
  // The second node's processor is three times as slow: 10 moves from the first one, 9 from the second one.
  const std::string slow = ", cpu: {per: node}}\nclients: {slow_nodes: {share: 0.5, factor: 3}";
  EXPECT_NEAR(use("per: system, move: [{station: cpu, demand: 2ms}]", 5, {2, 1}, slow).seconds,
              20 * 0.001 + 10 * 0.002 + 9 * 0.006, 1e-9);
}

TEST(Token, WhatMakesNoSenseIsRefused)
{
  const auto refused = [](const std::string& token, const std::string& stat, const std::string& why) {
    expect_refused("stations: {s: {}}\nlimits: {l: {slots: 1, per: system}}\ntokens: {t: {" + token +
                       "}}\noperations: {stat: [" + stat + "], read: {}}\n",
                   why);
  };
  const std::string used = "{token: t, steps: [{limit: l, steps: []}]}";
  refused("per: node, move: [{delay: 1ms}]", used, "'node' can't own this");
  refused("move: []", used, "no step");
  refused("per: system", used, "'move' is missing");
  refused("move: [{delay: 1ms}]", "{token: t}", "'steps' is missing");
  refused("move: [{delay: 1ms}]", "{token: t, steps: [" + used + "]}", "already in use here");
  refused("move: [{limit: l, steps: [{delay: 1ms}]}]", "{limit: l, steps: [" + used + "]}",
          "needs the limit 'l' to move");
  refused("move: [{token: t, steps: []}]", used, "only an operation has the step");
}

} // namespace
} // namespace iocast::small
