// SPDX-License-Identifier: Apache-2.0
//
// Locks that readers share, in systems whose course can be computed by hand, and in some at random.
#include "small_system.hpp"
#include "workload/random.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace iocast {
namespace {

using small::all_ms;
using small::Outcome;
using small::run;
using small::Sums;

constexpr const char* writing = "exclusive";
constexpr const char* reading = "shared";

double waited_for_locks(const Outcome& outcome)
{
  double seconds = 0;
  for (const auto& station : outcome.stations)
    for (const auto& sums : station)
      seconds += sums.lock_wait;
  return seconds;
}

/// A server for everyone; stat and read hold one lock while they are served, in the mode that is given.
std::string locked(const std::string& lock, const std::string& stat, const std::string& stat_mode,
                   const std::string& read, const std::string& read_mode, const std::string& station = "servers: 100")
{
  return fmt::format("stations: {{s: {{{}}}, q: {{}}}}\nlocks: {{l: {{{}}}}}\noperations:\n"
                     "  stat: [{{station: s, demand: {}, lock: l, lock_mode: {}}}]\n  read: {{open: [{{station: s, "
                     "demand: {}, lock: l, lock_mode: {}}}]}}\n",
                     station, lock, stat, stat_mode, read, read_mode);
}

TEST(SharedLocks, MakeReadersWaitForNobody)
{
  const auto outcome = run(locked("per: system", "1ms", reading, "2ms", reading), 20, 100);
  EXPECT_NEAR(outcome.seconds, 0.3, 1e-9);
  EXPECT_EQ(waited_for_locks(outcome), 0);
}

TEST(SharedLocks, ReadersHoldItTogetherAndWritersAlone)
{
  // Three stats until 1 ms; then the reads, which write, one after the other until 3, 5 and 7 ms.
  const auto first = run(locked("per: system", "1ms", reading, "2ms", writing), 3, 1);
  EXPECT_NEAR(first.seconds, 7e-3, 1e-12);
  EXPECT_EQ(all_ms(first), Sums(3, 2 + 4 + 6));
  // Stats write until 1, 2 and 3 ms; ranks 0 and 1 wait for the last one to read, and all three read until 5 ms.
  const auto last = run(locked("per: system", "1ms", writing, "2ms", reading), 3, 1);
  EXPECT_NEAR(last.seconds, 5e-3, 1e-12);
  EXPECT_EQ(all_ms(last), Sums(1 + 2 + 3, 4 + 3 + 2));
}

TEST(SharedLocks, AWriterThatWaitsIsNotPassedByReaders)
{
  // Stats come every millisecond from 1 ms on and read for 2.5 ms; then each rank writes for 1 ms. Ranks 0, 1 and 2
  // read until 3.5, 4.5 and 5.5. Rank 0 wants to write at 3.5, so rank 3, which comes at 4, reads after it: rank 0
  // writes until 6.5, rank 3 reads until 9, ranks 1, 2 and 3 write until 10, 11, 12.
  const auto outcome =
      run("stations: {s: {servers: 100}, q: {}}\nlocks: {l: {per: system}}\noperations:\n"
          "  stat: [{station: q, demand: 1ms}, {station: s, demand: 2500us, lock: l, lock_mode: shared}]\n"
          "  read: {open: [{station: s, demand: 1ms, lock: l}]}\n",
          4, 1);
  EXPECT_NEAR(outcome.seconds, 12e-3, 1e-12);
  EXPECT_EQ(all_ms(outcome), Sums(3.5 + 4.5 + 5.5 + 9, 3 + 5.5 + 5.5 + 3));
}

TEST(SharedLocks, AreExclusiveWhereNobodyReads)
{
  // An operation that never comes shares the lock: the same as without it, to the last bit.
  const auto one =
      locked("per: object", "{law: exponential, mean: 1ms}", writing, "{law: lognormal, mean: 2ms, sigma: 1}", writing);
  for (const auto& body :
       {one, locked("per: system", "{law: exponential, mean: 1ms}", writing, "1ms", writing, "servers: 3")}) {
    const auto alone = run(body, 6, 200);
    const auto beside =
        run(body + "  append: {open: [{station: s, demand: 1ms, lock: l, lock_mode: shared}]}\n", 6, 200);
    EXPECT_EQ(alone.seconds, beside.seconds);
    EXPECT_EQ(all_ms(alone), all_ms(beside));
    EXPECT_EQ(waited_for_locks(alone), waited_for_locks(beside));
  }
}

TEST(SharedLocks, HeldAheadOfEventsAreHeldAsLong)
{
  // Where a lock is only held at stations of nodes without queues, whoever finds it free goes on without an event. A
  // route that nobody takes, with the lock at a station of the system, has all go from event to event.
  double events = 0, all_events = 0;
  for (const char* lock : {"per: system, hand_over: {law: exponential, mean: 3ms}",
                           "per: dataset, hand_over: 5ms, hot: 20ms, message: {law: exponential, mean: 1ms}",
                           "per: system, hand_over: 0us"})
    for (const char* share : {"", ", lock_share: 0.25"})
      for (const char* demand : {"{law: exponential, mean: 1ms}", "0us"}) {
        const auto body = fmt::format(
            "stations: {{s: {{per: node, servers: 100}}, q: {{}}}}\nlocks: {{l: {{{}}}}}\noperations:\n"
            "  stat: [{{station: s, demand: {}, lock: l{}}}, {{station: q, demand: {{law: exponential, mean: 1ms}}}}]\n"
            "  read: {{open: [{{station: s, demand: {{law: exponential, mean: 9ms}}}}, {{station: s, demand: 1ms, "
            "lock: "
            "l}}], read: [{{station: s, demand: 2ms}}]}}\n",
            lock, demand, share);
        const Placement nodes{12, 4};
        const auto ahead     = run(body, nodes, 300);
        const auto by_events = run(body + "  append: {open: [{station: q, demand: 1ms, lock: l}]}\n", nodes, 300);
        EXPECT_EQ(ahead.seconds, by_events.seconds) << body;
        EXPECT_EQ(all_ms(ahead), all_ms(by_events)) << body;
        EXPECT_NEAR(waited_for_locks(ahead), waited_for_locks(by_events), 1e-9) << body;
        events += static_cast<double>(ahead.events);
        all_events += static_cast<double>(by_events.events);
      }
  EXPECT_LT(events, 0.9 * all_events);
}

TEST(SharedLocks, HoldTheirShareOfTheService)
{
  // Half of each service is under the lock. Stats: 2 ms, together. Writes hold it from 2 to 3, 3 to 4 and 4 to 5 ms,
  // and end 1 ms later.
  const auto outcome = run("stations: {s: {servers: 100}}\nlocks: {l: {per: system}}\noperations:\n"
                           "  stat: [{station: s, demand: 2ms, lock: l, lock_share: 0.5, lock_mode: shared}]\n"
                           "  read: {open: [{station: s, demand: 2ms, lock: l, lock_share: 0.5}]}\n",
                           3, 1);
  EXPECT_NEAR(outcome.seconds, 6e-3, 1e-12);
  EXPECT_EQ(all_ms(outcome), Sums(6, 2 + 3 + 4));
}

TEST(SharedLocks, OfNodesAreCalledBackOnceForAllWhoRead)
{
  // A rank a node, and 10 ms to call back. Stats write: rank 0 until 1 ms, rank 1 from 11 to 12, rank 2 from 22 to 23.
  // Then all read: rank 0 calls the lock back until 33, and the others, who came meanwhile, have it then too.
  const Placement nodes{3, 1};
  const auto outcome = run(locked("per: system, hand_over: 10ms", "1ms", writing, "2ms", reading), nodes, 1);
  EXPECT_NEAR(outcome.seconds, 35e-3, 1e-12);
  EXPECT_EQ(all_ms(outcome), Sums(1 + 12 + 23, 34 + 23 + 12));
  // All keep it for reading, and read again at no cost.
  EXPECT_NEAR(run(locked("per: system, hand_over: 10ms", "1ms", reading, "2ms", reading), nodes, 100).seconds, 0.3,
              1e-9);
}

TEST(SharedLocks, GoOnWhenAWriterThatWaitedIsLost)
{
  // Stats come every millisecond from 1 ms on and read at b for 4.5 ms; then each rank writes at a for 1 ms. Rank 0
  // wants to write at 5.5, so rank 5, which comes at 6, waits behind it; when a fails at 6.25 and rank 0 is lost, rank
  // 5 reads with the others. All write when a is back, at 106.25.
  const auto outcome =
      run("stations: {a: {servers: 100}, b: {servers: 100}, q: {}}\nlocks: {l: {per: system}}\n"
          "failures: {f: {station: a, at: 6250us, length: 100ms}}\noperations:\n"
          "  stat: [{station: q, demand: 1ms}, {station: b, demand: 4500us, lock: l, lock_mode: shared}]\n"
          "  read: {open: [{station: a, demand: 1ms, lock: l}]}\n",
          6, 1);
  EXPECT_NEAR(outcome.seconds, 112.25e-3, 1e-12);
  EXPECT_EQ(all_ms(outcome), Sums(5.5 + 6.5 + 7.5 + 8.5 + 9.5 + 10.75, 5 * 101.75 + 101.5));
}

TEST(SharedLocks, PlatformsAtRandomComeToTheirEnd)
{
  // Whatever holds what, shares it, hands it over, loses it and is served before whom: all operations end, what was
  // taken is given back (a run that ends with something held is an error), and no time at a station is missing.
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    uint64_t draw    = 0;
    const auto below = [&](uint32_t bound) { return random_words(seed, Stream::service, 9, draw++)[0] % bound; };
    const auto mode  = [&] { return below(2) ? reading : writing; };
    static constexpr std::array<const char*, 4> owners{"system", "node", "dataset", "object"};
    const uint32_t owner = below(4);
    const bool keeps     = owner != 1 && below(2) > 0;
    const uint32_t count = 1 + below(3);
    std::string body =
        fmt::format("stations: {{s: {{count: {}, servers: {}, spread: round-robin{}{}}}}}\n", count, 1 + below(4),
                    below(3) ? "" : ", priority: [read]", below(3) ? "" : ", speeds: [1, 0.8]");
    body += fmt::format("locks: {{l: {{per: {}{}}}, m: {{per: object}}}}\n", owners[owner],
                        keeps ? ", hand_over: {law: exponential, mean: 1ms}" : "");
    if (below(2))
      body += fmt::format(
          "failures: {{f: {{station: s, instance: {}, at: 5500us, every: 30ms, length: 3ms, timeout: {}ms}}}}\n",
          below(count), below(4));
    body += fmt::format("operations:\n  stat: [{{station: s, demand: 1ms, lock: l, lock_share: {}, lock_mode: {}}}]\n",
                        0.25 * (1 + below(4)), mode());
    body += fmt::format(
        "  read: {{open: [{{station: s, demand: {{law: exponential, mean: 1ms}}, lock: l, lock_mode: {}}}], "
        "read: [{{station: s, demand: 500us, lock: {}, lock_mode: {}}}]}}\n",
        mode(), below(2) ? "l" : "m", mode());
    SCOPED_TRACE(body);
    const auto outcome = run(body, Placement{6, 1 + below(3)}, 30);
    EXPECT_EQ(outcome.latency[static_cast<size_t>(OpKind::stat)].count(), 6u * 30);
    EXPECT_EQ(outcome.latency[static_cast<size_t>(OpKind::read)].count(), 6u * 30);
    double responding = 0;
    for (const auto& latency : outcome.latency)
      responding += latency.sum_ns() * 1e-9;
    double inside = 0;
    double rest   = 0;
    for (const auto& sums : outcome.stations[0]) {
      inside += sums.total;
      rest += sums.wait + sums.lock_wait + sums.stall + sums.lost;
    }
    EXPECT_NEAR(inside, responding, 1e-6 * responding);
    EXPECT_GT(inside - rest, 6 * 30 * 1.5e-3); // what is left is service: the constant demands, and some of the others
  }
}

TEST(SharedLocks, AModeThatIsNoneIsRefused)
{
  small::expect_refused(locked("per: system", "1ms", "share", "1ms", writing),
                        "a lock is 'exclusive' or 'shared', not 'share'");
}

} // namespace
} // namespace iocast
