// SPDX-License-Identifier: Apache-2.0
//
// Pools of objects made in advance, whose course can be computed by hand.
#include "tests/unit/small_system.hpp"

#include <fmt/format.h>

namespace iocast {
namespace {

struct Pool {
  uint64_t taken  = 0;
  uint64_t made   = 0;
  uint64_t left   = 0;
  uint64_t lowest = 0;
  uint64_t waited = 0;
  double wait     = 0;
};
struct Made {
  double seconds = 0; ///< of the creates
  Pool pool;
  Histogram create;
  StationSums stations;
};

/// Each rank makes `objects`; a create takes 1 ms at a server of its own, and then one of the pool.
Made make(const std::string& pool, uint32_t objects, const Placement& placement = {1, 1},
          const std::string& stations = "mds: {servers: 100}, oss: {servers: 100}",
          const std::string& create   = "{station: mds, demand: 1ms}, {take: p}")
{
  const auto file = std::filesystem::temp_directory_path() / ("iocast-pool-" + std::to_string(getpid()) + ".yaml");
  std::ofstream(file) << "schema_version: 1\nstations: {" << stations << "}\npools: {p: {" << pool
                      << "}}\noperations: {mkdir: [], create: {open: [" << create << "]}}\n";
  const auto platform = open_platform(file.string());
  std::filesystem::remove(file);
  const auto pattern = open_workload("md-workbench", {"phases=precreate", "datasets=1",
                                                      fmt::format("objects={}", objects), "iterations=1"})
                           .make(placement);
  Made made;
  System system(platform, *pattern, placement, {}, [&](const FinishedPhase& phase) {
    const auto& did = phase.mechanisms.at("pools").at("p");
    const Pool of{did["taken"], did["made"], did["left"], did["lowest"], did["waited"], did["wait"]};
    made = {phase.end - phase.start, of, phase.recorder.of_kind(OpKind::create).whole, phase.stations};
  });
  system.start();
  system.run();
  EXPECT_TRUE(system.finished());
  EXPECT_EQ(made.pool.taken, uint64_t{objects} * placement.ranks);
  return made;
}

TEST(Pool, BelowTheRateOfItsRefillsNobodyWaits)
{
  // 1000 creates a second, 2000 objects: the making of ten begins when ten are left, and four more are taken meanwhile.
  const auto made = make("per: system, size: 20, batch: 10, refill: [{station: oss, demand: 4500us}]", 1000);
  EXPECT_NEAR(made.seconds, 1.0, 1e-9);
  EXPECT_EQ(made.pool.waited, 0U);
  EXPECT_EQ(made.pool.lowest, 6U);
  // From the tenth create on every tenth one asks for a batch; that of the last one is still being made.
  EXPECT_EQ(made.pool.made, 990U);
}

TEST(Pool, AboveItCreatesGoAtTheRateOfTheRefills)
{
  // Ten objects every 50 ms, from the tenth create on, which is at 10 ms: the last ten of 1000 are taken when 98
  // batches are there.
  const auto made = make("per: system, size: 20, batch: 10, refill: [{station: oss, demand: 50ms}]", 1000);
  EXPECT_NEAR(made.seconds, 0.010 + 98 * 0.050 + 9 * 0.001, 1e-9);
  EXPECT_EQ(made.pool.lowest, 0U);
  EXPECT_EQ(made.pool.waited, 98U); // one of each batch; the first 20 were there
  EXPECT_NEAR(static_cast<double>(made.create.max_ns()), 0.042e9, 0.001e9); // the 50 ms of a batch less nine creates
  // Twice as many at a time make twice as many.
  const auto twice = make("per: system, size: 40, batch: 10, at_once: 2, refill: [{station: oss, demand: 50ms}]", 4000);
  EXPECT_NEAR(4000 / twice.seconds, 400, 4);
}

TEST(Pool, ManyThatWaitAreServedAsTheyCame)
{
  // All ten ask at 1 ms; four are there, then two every 10 ms from then on.
  const auto made = make("per: system, size: 4, batch: 2, refill: [{delay: 10ms}]", 1, {10, 10});
  EXPECT_NEAR(made.seconds, 0.031, 1e-9);
  EXPECT_EQ(made.pool.waited, 6U);
  EXPECT_NEAR(made.pool.wait, 2 * (0.010 + 0.020 + 0.030), 1e-9);
}

TEST(Pool, RefillsBeginAtTheLowWaterMark)
{
  const std::string keys = "per: system, size: 100, low: 20, batch: 10, refill: [{station: oss, demand: 100us}]";
  EXPECT_EQ(make(keys, 79).pool.made, 0U);
  // When 20 are left, batch after batch until no further one fits. A create that comes between makes no difference to
  // that.
  const auto made = make(keys, 82);
  EXPECT_EQ(made.pool.lowest, 20U);
  EXPECT_EQ(made.pool.made, 80U);
  EXPECT_EQ(made.pool.left, 98U);
}

TEST(Pool, EachServerHasItsOwn)
{
  // Objects in turn at four servers; each makes its own batches, by itself.
  const auto made = make("station: oss, size: 10, batch: 10, refill: [{station: oss, demand: 9ms}]", 400, {1, 1},
                         "mds: {servers: 100}, oss: {count: 4, spread: round-robin}");
  // A server's ten last for 40 creates; those who come next wait for 9 ms less the creates at the other servers.
  EXPECT_EQ(made.pool.made, 360U);
  EXPECT_EQ(made.pool.left, 0U);
  EXPECT_EQ(made.stations[1][static_cast<size_t>(draining)].visits, 36U);
  EXPECT_NEAR(made.stations[1][static_cast<size_t>(draining)].wait, 0, 1e-9);
}

TEST(Pool, ABatchThatIsLostInAFailureIsMadeAgain)
{
  // The making of the first batch begins at 10 ms and is lost at 20 ms; it begins anew at 120 ms, all the others follow
  // it without a pause.
  const auto file = std::string("mds: {servers: 100}, oss: {}}\nfailures: {f: {station: oss, at: 20ms, length: 100ms}");
  const auto made =
      make("station: oss, size: 20, batch: 10, refill: [{station: oss, demand: 50ms}]", 1000, {1, 1}, file);
  EXPECT_NEAR(made.seconds, 0.120 + 98 * 0.050 + 9 * 0.001, 1e-9);
}

TEST(Pool, WhoWaitsKeepsItsThreads)
{
  // A server with two threads, which are held by those that wait for objects.
  const auto made = make("per: system, size: 4, batch: 2, refill: [{delay: 10ms}]", 1, {10, 10},
                         "mds: {servers: 100}}\nlimits: {threads: {slots: 2, per: system}",
                         "{limit: threads, steps: [{station: mds, demand: 1ms}, {take: p}]}");
  // Pairs take theirs at 1 ms and 2 ms; the first batch, begun at 1 ms, is for the third pair, and so on: at 11, 21 and
  // 31 ms.
  EXPECT_NEAR(made.seconds, 0.031, 1e-9);
  EXPECT_EQ(made.pool.waited, 6U);
}

TEST(Pool, ARefillCompetesWithRequests)
{
  // The only server is taken by the creates for 1 ms each and by batches for 10 ms: ten creates cost 20 ms.
  const auto made = make("per: system, size: 20, batch: 10, refill: [{station: mds, demand: 10ms}]", 1000, {1, 1},
                         "mds: {servers: 1}");
  EXPECT_NEAR(made.seconds, 1000 * 1e-3 + 98 * 10e-3, 11e-3);
}

} // namespace
} // namespace iocast
