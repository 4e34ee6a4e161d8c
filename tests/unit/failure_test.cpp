// SPDX-License-Identifier: Apache-2.0
//
// Failures in small closed systems, computed by hand. Operations take 1 ms of service; the first failure is half a
// millisecond after a beginning.
#include "input/error.hpp"
#include "models/failure.hpp"
#include "small_system.hpp"
#include "tests/unit/sharpness.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace iocast {
namespace {

using small::Outcome;
using small::run;
using small::stat_then_read;

std::string with(const std::string& stations, const std::string& failures, const std::string& rest = stat_then_read)
{
  return fmt::format("stations: {{s: {{{}}}}}\nfailures: {{{}}}\n{}", stations, failures, rest);
}

double lost(const Outcome& outcome)
{
  double seconds = 0;
  for (const auto& sums : outcome.stations[0])
    seconds += sums.lost;
  return seconds;
}

uint64_t replays(const Outcome& outcome)
{
  uint64_t count = 0;
  for (const auto& sums : outcome.stations[0])
    count += sums.replays;
  return count;
}

/// All parts of the time at the station are the whole.
void expect_no_time_missing(const Outcome& outcome, double service)
{
  double rest = 0;
  for (const auto& sums : outcome.stations[0])
    rest += sums.total - sums.wait - sums.lock_wait - sums.stall - sums.lost;
  EXPECT_NEAR(rest, service, 1e-9);
}

TEST(Failure, OneClientWaitsForRecoveryAndAsksAgain)
{
  const auto outcome = run(with("servers: 1", "f: {station: s, at: 10500us, length: 5ms}"), 1, 100);
  EXPECT_NEAR(outcome.seconds, 0.2055, 1e-9);
  EXPECT_EQ(std::max(outcome.latency[static_cast<size_t>(OpKind::stat)].max_ns(),
                     outcome.latency[static_cast<size_t>(OpKind::read)].max_ns()),
            6'500'000);
  EXPECT_EQ(replays(outcome), 1u);
  EXPECT_NEAR(lost(outcome), 0.0055, 1e-12);
  expect_no_time_missing(outcome, 0.2);
}

TEST(Failure, AClientNoticesAfterItsTimeout)
{
  EXPECT_NEAR(run(with("servers: 1", "f: {station: s, at: 10500us, length: 5ms, timeout: 20ms}"), 1, 100).seconds,
              0.2205, 1e-9);
}

TEST(Failure, NothingIsServedMeanwhileAndNothingIsLostForGood)
{
  // Four ranks and one server: 800 services one after the other, half of one in vain, 50 ms without any.
  const auto outcome = run(with("servers: 1", "f: {station: s, at: 100500us, length: 50ms}"), 4, 100);
  EXPECT_NEAR(outcome.seconds, 0.8505, 1e-9);
  EXPECT_EQ(outcome.latency[static_cast<size_t>(OpKind::stat)].count() +
                outcome.latency[static_cast<size_t>(OpKind::read)].count(),
            800u);
  EXPECT_EQ(replays(outcome), 4u);
  expect_no_time_missing(outcome, 0.8);
}

TEST(Failure, WhoComesMeanwhileIsLostToo)
{
  // A rank that thinks as long as its last operation took: it comes at 12 ms, finds nobody, asks again at 32, and
  // thinks 21 ms after that answer.
  const auto outcome =
      run(with("servers: 1", "f: {station: s, at: 11500us, length: 5ms, timeout: 20ms}"), 1, 50, "waiting_factor=1");
  EXPECT_EQ(replays(outcome), 1u);
  EXPECT_NEAR(lost(outcome), 0.020, 1e-12);
  EXPECT_NEAR(outcome.seconds, 0.100 + 0.099 + 0.020 + 0.020, 1e-9);
}

TEST(Failure, ItsPairServesForIt)
{
  // One of the two instances has the only rank's requests: it fails for ever, and the other one takes over after 3 ms.
  std::vector<double> seconds;
  for (const int failing : {0, 1})
    seconds.push_back(
        run(with("count: 2",
                 fmt::format("f: {{station: s, instance: {}, at: 10500us, length: 1000s, to: {}, takeover: 3ms}}",
                             failing, 1 - failing)),
            1, 100)
            .seconds);
  std::sort(seconds.begin(), seconds.end());
  EXPECT_NEAR(seconds[0], 0.2, 1e-9);
  EXPECT_NEAR(seconds[1], 0.2035, 1e-9);
}

TEST(Failure, ThePairHasTheWorkOfTwo)
{
  // Objects have the two instances in turn. Of 16 ranks each serves 8 at a time; then one serves 16.
  const std::string spread = "count: 2, servers: 8, spread: round-robin";
  const auto both          = run(with(spread, ""), 16, 100);
  const auto one           = run(with(spread, "f: {station: s, instance: 0, at: 0s, length: 1000s, to: 1}"), 16, 100);
  EXPECT_NEAR(one.seconds, 0.4, 1e-9); // 3200 services by 8 servers
  EXPECT_LT(both.seconds, 0.4 - 0.05);
}

TEST(Failure, ItIsBackAndServesAgain)
{
  // Both fail over to each other in turn for 50 ms: whoever serves, 200 services of one rank follow each other.
  const auto outcome = run(with("count: 2", "a: {station: s, instance: 0, at: 20500us, length: 50ms, to: 1}, b: "
                                            "{station: s, instance: 1, at: 100500us, length: 50ms, to: 0}"),
                           1, 100);
  EXPECT_NEAR(outcome.seconds, 0.2 + static_cast<double>(replays(outcome)) * 0.0005, 1e-9);
  EXPECT_EQ(replays(outcome), 1u);
}

TEST(Failure, ItHappensEverySoOften)
{
  // 10 services, half of one lost, back at 15.5; 95 services, a quarter of one lost at 110.75, back at 115.75; the last
  // 95.
  const auto outcome = run(with("servers: 1", "f: {station: s, at: 10500us, every: 100250us, length: 5ms}"), 1, 100);
  EXPECT_NEAR(outcome.seconds, 0.21075, 1e-9);
  EXPECT_EQ(replays(outcome), 2u);
}

TEST(Failure, SharedServersLoseAll)
{
  EXPECT_NEAR(run(with("servers: 1, discipline: ps", "f: {station: s, at: 10500us, length: 5ms}"), 2, 100).seconds,
              0.4055, 1e-9);
  EXPECT_NEAR(run(with("servers: 2, contention: 0.5", "f: {station: s, at: 12250us, length: 5ms}"), 2, 100).seconds,
              0.3 + 0.005 + 0.00025, 1e-9);
}

TEST(Failure, LocksGoWithTheServer)
{
  const std::string locked = "locks: {l: {per: system}}\noperations:\n  stat: [{station: s, demand: 1ms, lock: l}]\n  "
                             "read: {open: [{station: s, demand: 1ms, lock: l}]}\n";
  const auto outcome       = run(with("servers: 4", "f: {station: s, at: 10500us, length: 5ms}", locked), 4, 100);
  EXPECT_NEAR(outcome.seconds, 0.8055, 1e-9);
  EXPECT_EQ(replays(outcome), 4u);
  expect_no_time_missing(outcome, 0.8);
  // With a second instance the lock passes to those who wait there: work goes on, one at a time.
  const auto other = run(with("count: 2, servers: 8, spread: round-robin",
                              "f: {station: s, instance: 0, at: 10500us, length: 5ms, timeout: 3ms}", locked),
                         8, 100);
  EXPECT_GE(other.seconds, 1.6 - 1e-9);
  EXPECT_LE(other.seconds, 1.6055 + 1e-9);
  EXPECT_EQ(other.latency[static_cast<size_t>(OpKind::stat)].count(), 800u);
  expect_no_time_missing(other, 1.6);
}

TEST(Failure, LimitsStayHeld)
{
  const std::string limited = "limits: {l: {slots: 1, per: node}}\noperations:\n  stat: [{limit: l, steps: [{station: "
                              "s, demand: 1ms}]}]\n  read: {open: [{limit: l, steps: [{station: s, demand: 1ms}]}]}\n";
  const auto outcome        = run(with("servers: 4", "f: {station: s, at: 10500us, length: 5ms}", limited), 4, 100);
  EXPECT_NEAR(outcome.seconds, 0.8055, 1e-9);
  EXPECT_EQ(replays(outcome), 1u); // the others wait for the slot, not for the server
}

TEST(Failure, AStripeIsAskedAgainByItself)
{
  const std::string striped = "operations:\n  stat: [{station: s, demand: 1ms, stripes: 2}]\n  read: {open: [{station: "
                              "s, demand: 1ms, stripes: 2}]}\n";
  const auto outcome = run(with("count: 2", "f: {station: s, instance: 0, at: 10500us, length: 5ms}", striped), 1, 100);
  EXPECT_NEAR(outcome.seconds, 0.2055, 1e-9);
  EXPECT_EQ(replays(outcome), 1u);
}

TEST(Failure, TransfersBeginLater)
{
  const std::string moved = "network: {latency: 1ms}\noperations:\n  stat: []\n  read: {open: [], read: [{transfer: "
                            "read, station: s}], close: []}\n";
  // The one that is on its way arrives at 11 ms; the next begins at 15.5.
  const auto outcome = run(with("servers: 1", "f: {station: s, at: 10500us, length: 5ms}", moved), 1, 100);
  EXPECT_NEAR(outcome.seconds, 0.1045, 1e-9);
  EXPECT_NEAR(lost(outcome), 0.0045, 1e-12);
}

TEST(Failure, WorkOfOthersComesThroughToo)
{
  const std::string others =
      "background: {others: {station: s, rate: 500/s, demand: {law: exponential, mean: 1ms}}}\n" +
      std::string(stat_then_read);
  const auto once =
      run(with("servers: 1, crowding: 0.1",
               "f: {station: s, at: 10500us, every: 30ms, length: 5ms, sigma: 0.5, timeout: 2ms}", others),
          3, 100);
  const auto again =
      run(with("servers: 1, crowding: 0.1",
               "f: {station: s, at: 10500us, every: 30ms, length: 5ms, sigma: 0.5, timeout: 2ms}", others),
          3, 100);
  EXPECT_EQ(once.seconds, again.seconds);
  EXPECT_GT(replays(once), 20u);
  EXPECT_GT(once.stations[0][0].replays, 0u); // of others
  EXPECT_EQ(once.latency[static_cast<size_t>(OpKind::stat)].count(), 300u);
}

TEST(Failure, LengthsHaveTheirMean)
{
  FailureSpec spec{{"f"}, 0, 0, 3, 100, 2, 0.5, {}, 0, 0};
  FailureClock clock(spec, 7, 0);
  double sum = 0;
  for (int k = 0; k < 10000; ++k) {
    EXPECT_EQ(clock.next(), 3 + 100.0 * k);
    sum += clock.happen();
  }
  expect_within("mean length in seconds", sum / 10000, 2, 4, 2 * std::sqrt((std::exp(0.25) - 1) / 10000));
  spec.every = 0;
  FailureClock once(spec, 7, 0);
  once.happen();
  EXPECT_EQ(once.next(), std::numeric_limits<double>::infinity());
}

TEST(Outages, SayWhoServesAndWhen)
{
  Outages outages;
  outages.resize(3);
  EXPECT_EQ(outages.serving(0, 0), 0u);
  outages.begin({{"a"}, 0, 0, 10, 0, 100, 0, 1, 30, 5}, 10, 100); // away from 10 to 110, instance 1 takes over at 40
  EXPECT_EQ(outages.serving(0, 10), std::nullopt);
  EXPECT_EQ(outages.sent_again_at(0, 0, 10), 40);
  EXPECT_EQ(outages.sent_again_at(0, 0, 37), 42); // it notices 5 s later
  EXPECT_EQ(outages.serving(0, 40), 1u);
  EXPECT_EQ(outages.serving(0, 110), 0u);
  outages.begin({{"b"}, 0, 1, 50, 0, 20, 0, 0, 1, 0}, 50, 20); // the pair away from 50 to 70; its own pair is away
  EXPECT_EQ(outages.serving(0, 50), std::nullopt);
  EXPECT_EQ(outages.serving(1, 60), std::nullopt);
  EXPECT_EQ(outages.sent_again_at(0, 1, 50), 70); // the pair is back before itself
  EXPECT_EQ(outages.sent_again_at(1, 1, 50), 70);
  outages.begin({{"c"}, 0, 2, 60, 0, 9, 0, {}, 0, 100}, 60, 9);
  EXPECT_EQ(outages.sent_again_at(2, 2, 60), 160);
}

TEST(JobQueue, LetsOneGoFromAnywhere)
{
  Links links(5, nobody);
  JobQueue queue;
  for (JobId job = 0; job < 5; ++job)
    queue.push_back(links, job);
  for (const JobId job : {0, 4, 2})
    EXPECT_TRUE(queue.remove(links, job));
  EXPECT_FALSE(queue.remove(links, 2));
  queue.push_back(links, 0);
  for (const JobId job : {1, 3, 0})
    EXPECT_EQ(queue.pop_front(links), job);
  EXPECT_TRUE(queue.empty());
}

TEST(Failure, RequestThatIsAlwaysLostEndsTheRun)
{
  const std::string longer = "operations:\n"
                             "  stat: [{station: s, demand: {law: exponential, mean: 10s}}]\n"
                             "  read: {open: [], read: [], close: []}\n";
  try {
    run(with("servers: 1", "f: {station: s, at: 1ms, length: 1ms, every: 60ms}", longer), 1, 1);
    ADD_FAILURE() << "it ended";
  } catch (const RunError& error) {
    EXPECT_NE(std::string(error.what()).find("lost 1000 times"), std::string::npos) << error.what();
  }
}

TEST(Failure, IsRefusedWhereItMakesNoSense)
{
  const auto refused = [](const std::string& stations, const std::string& failures, const std::string& words) {
    try {
      run(with(stations, failures), 1, 1);
      ADD_FAILURE() << failures << " was taken";
    } catch (const InputError& error) {
      const std::string sentence = error.what();
      EXPECT_NE(sentence.find(words), std::string::npos) << sentence;
      EXPECT_NE(sentence.find(".yaml:3"), std::string::npos) << sentence;
      EXPECT_EQ(sentence.back(), '.') << sentence;
    }
  };
  const std::string four = "count: 4";
  refused(four, "f: {station: t, instance: 0, at: 1s, length: 1s}", "Did you mean 's'");
  refused(four, "f: {station: s, instance: 4, at: 1s, length: 1s}", "instances 0 to 3, not 4");
  refused(four, "f: {station: s, at: 1s, length: 1s}", "instance");
  refused("servers: 1", "f: {station: s, instance: 1, at: 1s, length: 1s}", "one instance, which is number 0");
  refused(four, "f: {station: s, instance: 1, at: 1s, length: 0s}", "0s");
  refused(four, "f: {station: s, instance: 1, length: 1s}", "at");
  refused(four, "f: {station: s, instance: 1, at: 1s, length: 1s, to: 1}", "its own requests");
  refused(four, "f: {station: s, instance: 1, at: 1s, length: 1s, to: 7}", "instances 0 to 3, not 7");
  refused(four, "f: {station: s, instance: 1, at: 1s, length: 1s, to: 2, takeover: 1s}", "back after 1s");
  refused(four, "f: {station: s, instance: 1, at: 1s, length: 1s, takeover: 1s}", "no effect without 'to'");
  refused(four, "f: {station: s, instance: 1, at: 1s, length: 2s, every: 1s}", "would never end");
  refused(four, "f: {station: s, instance: 1, at: 1s, length: 2s, timeout: -1s}", "-1s");
  refused(four, "f: {station: s, instance: 1, at: 1s, length: 2s, tiemout: 1s}", "Did you mean 'timeout'");
  refused(four, "f: {station: s, instance: 1, at: 1s, length: 1s}, g: {station: s, instance: 1, at: 5s, length: 1s}",
          "fails in 'f' already");
  refused("servers: 1", "f: {station: s, at: 1s, length: 500us, every: 1ms}", "is up for 0.0005 s");
  refused("discipline: timeslice", "f: {station: s, at: 1s, length: 1s}", "slices time");
  refused("per: node", "f: {station: s, at: 1s, length: 1s}", "client nodes");
}

} // namespace
} // namespace iocast
