// SPDX-License-Identifier: Apache-2.0
//
// Small closed systems whose course can be computed by hand.
#include "input/error.hpp"
#include "small_system.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace iocast {
namespace {

using small::run;
using small::stat_then_read;

TEST(System, OneRankSeesItsDemandsOnly)
{
  const auto outcome = run(std::string("stations: {s: {servers: 1}}\n") + stat_then_read, 1, 100);
  EXPECT_NEAR(outcome.seconds, 0.2, 1e-9);
  EXPECT_EQ(outcome.latency[static_cast<size_t>(OpKind::stat)].max_ns(), 1'000'000);
}

TEST(System, AsManyServersAsRanksMakeNobodyWait)
{
  const auto outcome = run(std::string("stations: {s: {servers: 4}}\n") + stat_then_read, 4, 100);
  EXPECT_NEAR(outcome.seconds, 0.2, 1e-9);
  for (const auto& sums : outcome.stations[0])
    EXPECT_EQ(sums.wait, 0);
}

TEST(System, OneServerTakesOneAfterTheOther)
{
  const auto outcome = run(std::string("stations: {s: {servers: 1}}\n") + stat_then_read, 4, 100);
  EXPECT_NEAR(outcome.seconds, 0.8, 1e-9);
  EXPECT_EQ(outcome.latency[static_cast<size_t>(OpKind::read)].max_ns(), 4'000'000);
}

TEST(System, SpeedDividesService)
{
  EXPECT_NEAR(run(std::string("stations: {s: {servers: 1, speed: 2}}\n") + stat_then_read, 4, 100).seconds, 0.4, 1e-9);
}

TEST(System, ContentionSlowsAllBusyServers)
{
  // Two busy servers each run at 1 / (1 + 0.5).
  EXPECT_NEAR(run(std::string("stations: {s: {servers: 2, contention: 0.5}}\n") + stat_then_read, 2, 100).seconds, 0.3,
              1e-9);
}

TEST(System, ServersAreAsFastAsWasMeasured)
{
  const auto seconds = [](const std::string& station, uint32_t ranks) {
    return run(fmt::format("stations: {{s: {{{}}}}}\n{}", station, stat_then_read), ranks, 100).seconds;
  };
  for (const std::string discipline : {"fcfs", "ps", "timeslice"}) {
    const std::string table = "servers: 4, speeds: [1, 0.8, 0.5], discipline: " + discipline;
    EXPECT_NEAR(seconds(table, 1), 0.2, 1e-9);
    EXPECT_NEAR(seconds(table, 2), 0.2 / 0.8, 1e-9);
    EXPECT_NEAR(seconds(table, 4), 0.2 / 0.5, 1e-9); // beyond the table the last
  }
  EXPECT_NEAR(seconds("servers: 2, speeds: [1, 0.8, 0.5]", 4), 0.4 / 0.8,
              1e-9); // more than there are servers is never busy
  EXPECT_NEAR(seconds("servers: 2, speeds: [0.5]", 1), 0.4, 1e-9);
  EXPECT_NEAR(seconds("servers: 2, speeds: [0.5, 1], speed: 2", 2), 0.1, 1e-9);
}

TEST(System, ATableOfSpeedsThatSaysTooLittleOrTooMuchIsRefused)
{
  const auto refused = [](const std::string& station, const std::string& why) {
    small::expect_refused(fmt::format("stations: {{s: {{{}}}}}\n{}", station, stat_then_read), why);
  };
  refused("speeds: []", "at least that of one busy server");
  refused("speeds: [1, 0]", "0 is outside its range");
  refused("speeds: 1", "a list is expected");
  refused("speeds: [1, 0.9], contention: 0.1", "leave out contention");
  refused("speeds: [1, 0.9], coherency: 0.1", "leave out coherency");
  refused("speeds: [1, 0.9], sockets: {servers: 1, remote: 1}", "leave out sockets");
}

TEST(System, MemoryOnOtherSocketsMakesServicesLonger)
{
  const auto run_on = [](int servers) {
    return run(fmt::format("stations: {{s: {{servers: {}, sockets: {{servers: 2, remote: 1.5}}}}}}\n{}", servers,
                           stat_then_read),
               1, 100)
        .seconds;
  };
  EXPECT_NEAR(run_on(2), 0.2, 1e-9);
  EXPECT_NEAR(run_on(3), 0.2 * (1 + 1.5 / 2), 1e-9); // half of the memory is on the other one of two sockets
  EXPECT_NEAR(run_on(8), 0.2 * (1 + 1.5 * 3 / 4), 1e-9);
}

TEST(System, ProcessorSharingSharesEqually)
{
  const auto outcome = run(std::string("stations: {s: {servers: 1, discipline: ps}}\n") + stat_then_read, 3, 100);
  EXPECT_NEAR(outcome.seconds, 0.6, 1e-9);
  EXPECT_EQ(outcome.latency[static_cast<size_t>(OpKind::stat)].max_ns(), 3'000'000);
}

TEST(System, ALockSerialisesItsShare)
{
  const std::string locked = "stations: {s: {servers: 4}}\nlocks: {l: {per: system}}\noperations:\n"
                             "  stat: [{station: s, demand: 1ms, lock: l, lock_share: 1}]\n"
                             "  read: {open: [{station: s, demand: 1ms, lock: l, lock_share: 1}]}\n";
  EXPECT_NEAR(run(locked, 4, 100).seconds, 0.8, 1e-9);
}

TEST(System, ALimitHoldsBackTheRest)
{
  const std::string limited = "stations: {s: {servers: 4}}\nlimits: {l: {slots: 2, per: node}}\noperations:\n"
                              "  stat: [{limit: l, steps: [{station: s, demand: 1ms}]}]\n"
                              "  read: {open: [{limit: l, steps: [{station: s, demand: 1ms}]}]}\n";
  EXPECT_NEAR(run(limited, 4, 100).seconds, 0.4, 1e-9);
}

TEST(System, TimeSlicesAlternateAtTheQuantum)
{
  // Two ranks on one core with operations far shorter than the quantum: the one that waits sees exactly one quantum,
  // now and then.
  const auto outcome = run(
      std::string("stations: {s: {per: node, servers: 1, discipline: timeslice, quantum: 10500us}}\n") + stat_then_read,
      2, 100);
  EXPECT_NEAR(outcome.seconds, 0.4, 1e-9);
  const auto& stat = outcome.latency[static_cast<size_t>(OpKind::stat)];
  EXPECT_NEAR(stat.quantile_ns(0.5), 1e6, 1e3);
  EXPECT_LE(std::max(stat.max_ns(), outcome.latency[static_cast<size_t>(OpKind::read)].max_ns()), 11'500'001);
}

/// Rank 0 gives up the slots of two limits at one moment: of the inner one, for which rank 2 waits, and of the outer
/// one, for which rank 1 waits. Both then go to one server.
TEST(System, SlotsThatBecomeFreeTogetherAreTakenInTheOrderOfTheirRelease)
{
  const auto outcome = run("stations: {p: {}, s: {}}\nlimits: {a: {slots: 1}, b: {slots: 1}}\noperations:\n"
                           "  stat: [{station: p, demand: 1ms}, {limit: b, steps: [{station: s, demand: 600us}]}]\n"
                           "  read: {read: [{limit: a, steps: [{station: s, demand: 600us}, {delay: 700us}, "
                           "{limit: b, steps: [{delay: 10ms}]}]}]}\n",
                           3, 1);
  // Rank 0 gives up both at 12.9 ms, and rank 2 has the server until 13.5. Rank 1 reads from 2.8 ms to 24.8, rank 2
  // from 13.5 to 36.1.
  const auto [stats, reads] = small::all_ms(outcome);
  EXPECT_NEAR(stats, 1.6 + 2.8 + 13.5, 1e-5);
  EXPECT_NEAR(reads, 11.3 + 22.0 + 22.6, 1e-5);
}

TEST(System, WaitingFactorIsTheIdentity)
{
  const auto outcome = run(std::string("stations: {s: {servers: 1}}\n") + stat_then_read, 1, 100, "waiting_factor=3");
  // 200 operations of 1 ms with 199 thoughts of 3 ms between them.
  EXPECT_NEAR(outcome.seconds, 0.2 + 199 * 0.003, 1e-9);
}

/// Parts end where the next one begins, however long the operation is: they add up to the whole, one without steps
/// takes no time, and a microsecond is one.
TEST(System, PartsAddUpToTheirOperation)
{
  const auto outcome = run("stations: {s: {}}\noperations:\n  stat: [{delay: 1ms}]\n"
                           "  read: {open: [], read: [{station: s, demand: {law: exponential, mean: 3s}}], "
                           "close: [{delay: 1us}]}\n",
                           3, 50);
  const auto& parts  = outcome.parts_of_reads;
  EXPECT_EQ(parts[0].max_ns(), 0);
  EXPECT_GE(parts[2].min_ns(), 999);
  EXPECT_LE(parts[2].max_ns(), 1001);
  EXPECT_EQ(parts[0].sum_ns() + parts[1].sum_ns() + parts[2].sum_ns(),
            outcome.latency[static_cast<size_t>(OpKind::read)].sum_ns());
}

TEST(System, AStallHitsOnlyItsOperations)
{
  const std::string stalled =
      std::string(
          "stations: {s: {servers: 2}}\nstalls: {c: {station: s, every: 100ms, length: 20ms, operations: [read]}}\n") +
      stat_then_read;
  const auto outcome = run(stalled, 2, 500);
  EXPECT_EQ(outcome.latency[static_cast<size_t>(OpKind::stat)].max_ns(), 1'000'000);
  EXPECT_GT(outcome.latency[static_cast<size_t>(OpKind::read)].max_ns(), 10'000'000);
  EXPECT_LE(outcome.latency[static_cast<size_t>(OpKind::read)].max_ns(), 21'000'001);
}

TEST(System, LittlesLawHoldsAtTheStation)
{
  const std::string random = "stations: {s: {servers: 2}}\noperations:\n"
                             "  stat: [{station: s, demand: {law: exponential, mean: 1ms}}]\n"
                             "  read: {open: [{station: s, demand: {law: lognormal, mean: 2ms, sigma: 1}}]}\n";
  const auto outcome       = run(random, 5, 400);
  double inside            = 0;
  for (const auto& sums : outcome.stations[0])
    inside += sums.total;
  double responding = 0;
  for (const auto& latency : outcome.latency)
    responding += latency.sum_ns() * 1e-9;
  EXPECT_NEAR(inside, responding, 1e-6 * responding);
}

TEST(System, AnOperationWithoutRouteIsRefused)
{
  EXPECT_THROW(run("stations: {s: {servers: 1}}\noperations:\n  stat: [{station: s, demand: 1ms}]\n", 1, 1),
               InputError);
}

} // namespace
} // namespace iocast
