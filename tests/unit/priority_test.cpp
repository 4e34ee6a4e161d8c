// SPDX-License-Identifier: Apache-2.0
//
// Classes of work that are served before others, in systems whose course can be computed by hand.
#include "small_system.hpp"
#include "tests/unit/sharpness.hpp"

#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace iocast {
namespace {

using small::all_ms;
using small::Outcome;
using small::run;
using small::Sums;

/// Each rank stats an object (1 ms) and then reads it (2 ms), at one server.
Outcome stat_and_read(const std::string& station, uint32_t ranks, uint64_t iterations, const std::string& rest = "")
{
  return run(fmt::format("stations: {{s: {{{}}}}}\n{}operations:\n  stat: [{{station: s, demand: 1ms}}]\n  read: "
                         "{{open: [{{station: s, demand: 2ms}}]}}\n",
                         station, rest),
             ranks, iterations);
}

std::pair<int64_t, int64_t> slowest_ms(const Outcome& outcome)
{
  const auto of = [&](OpKind kind) { return outcome.latency[static_cast<size_t>(kind)].max_ns() / 1'000'000; };
  return {of(OpKind::stat), of(OpKind::read)};
}

using Whole = std::pair<int64_t, int64_t>;

TEST(Priority, OrdersThoseWhoWait)
{
  // As they come: stats of ranks 0, 1, 2 end at 1, 2, 3 ms and their reads at 5, 7, 9.
  const auto equal = stat_and_read("", 3, 1);
  EXPECT_EQ(slowest_ms(equal), Whole(3, 6));
  EXPECT_EQ(all_ms(equal), Sums(6, 4 + 5 + 6));
  // Reads first. Stats of 0 and 1 end at 1 and 2 ms: when the first one ends, nobody who reads has come yet. Reads of 0
  // and 1 end at 4 and 6 ms, the stat of 2 at 7 and its read at 9.
  for (const char* order :
       {"[read]", "[read, stat]", "[read, rest]", "[[read, create], [stat, wake]]", "[drain, read]"}) {
    const auto reads = stat_and_read(fmt::format("priority: {}", order), 3, 1);
    EXPECT_EQ(slowest_ms(reads), Whole(7, 4)) << order;
    EXPECT_EQ(all_ms(reads), Sums(1 + 2 + 7, 3 + 4 + 2)) << order;
    EXPECT_NEAR(reads.seconds, 9e-3, 1e-12);
  }
  // Stats first, which is how they come anyhow; and classes that nobody here is in.
  for (const char* order :
       {"[stat]", "[rest, read]", "[[rest], [read]]", "[[stat, read]]", "[create, [unlink, drain], background]"})
    EXPECT_EQ(all_ms(stat_and_read(fmt::format("priority: {}", order), 3, 1)), all_ms(equal)) << order;
}

TEST(Priority, NobodyLosesAServerAndNoServerRests)
{
  // Whatever the order, 4 ranks have 400 ms of stats and 800 ms of reads, on two servers that never rest until the very
  // end.
  for (const char* order : {"[stat]", "[read]", "[[stat, read]]"})
    EXPECT_NEAR(stat_and_read(fmt::format("servers: 2, priority: {}", order), 4, 100).seconds, 0.6, 2e-3) << order;
  // With a server each there is no order to keep.
  EXPECT_EQ(slowest_ms(stat_and_read("servers: 4, priority: [read]", 4, 100)), Whole(1, 2));
}

TEST(Priority, WorksWithServersThatSlowEachOtherDown)
{
  // As by hand above, at half the speed.
  const auto reads = stat_and_read("speeds: [0.5], priority: [read]", 3, 1);
  EXPECT_EQ(all_ms(reads), Sums(2 * (1 + 2 + 7), 2 * (3 + 4 + 2)));
}

TEST(Priority, ThoseWhoWaitAreLostWithTheirServer)
{
  // 800 services one after the other, 1.2 s together; part of one in vain, 50 ms without any; all four are sent again.
  const auto outcome =
      stat_and_read("priority: [read]", 4, 100, "failures: {f: {station: s, at: 100500us, length: 50ms}}\n");
  EXPECT_NEAR(outcome.seconds, 1.2 + 0.05, 2e-3);
  uint64_t replays = 0;
  uint64_t count   = 0;
  for (const auto& sums : outcome.stations[0])
    replays += sums.replays;
  for (const auto& latency : outcome.latency)
    count += latency.count();
  EXPECT_EQ(replays, 4u);
  EXPECT_EQ(count, 800u);
}

/// Two ranks make 100 objects each (1 ms at the disk), whose bytes drain one by one (1 ms there as well): time until
/// the last is made.
double seconds_of_making(const std::string& station, const std::string& background = "")
{
  const auto file = std::filesystem::temp_directory_path() / ("iocast-priority-" + std::to_string(getpid()) + ".yaml");
  std::ofstream(file)
      << "schema_version: 1\nstations: {disk: {" << station << "}}\n"
      << background
      << "buffers: {b: {per: system, capacity: 1GiB, drain: [{station: disk, demand: 1ms}]}}\n"
         "operations:\n  mkdir: []\n  create: {open: [{station: disk, demand: 1ms}], write: [{buffer: b}]}\n";
  const auto platform = open_platform(file.string());
  std::filesystem::remove(file);
  const Placement placement{2, 2};
  const auto pattern =
      open_workload("md-workbench", {"datasets=1", "objects=100", "iterations=1", "phases=precreate"}).make(placement);
  double seconds = 0;
  System system(platform, *pattern, placement, {},
                [&](const FinishedPhase& phase) { seconds = phase.end - phase.start; });
  system.start();
  system.run();
  EXPECT_TRUE(system.finished());
  return seconds;
}

TEST(Priority, DrainsComeBeforeOrAfterTheRest)
{
  EXPECT_NEAR(seconds_of_making("priority: [rest, drain]"), 0.200, 2e-3); // none drains while someone waits
  EXPECT_NEAR(seconds_of_making(""), 0.300, 3e-3);                        // a drain for two that are made, in turn
  EXPECT_NEAR(seconds_of_making("priority: [drain]"), 0.400,
              4e-3); // a drain for each, but while the last one of them was served
  EXPECT_EQ(seconds_of_making("priority: [[drain, create]]"), seconds_of_making(""));
}

TEST(Priority, WorkOfOthersHasItsPlaceToo)
{
  // Others ask for half of the disk's time, at random: in front they have it, and behind those who never leave the
  // queue empty none of it.
  const std::string others = "background: {o: {station: disk, rate: 500/s, demand: 1ms}}\n";
  EXPECT_NEAR(seconds_of_making("priority: [create, drain, background]", others), 0.200, 2e-3);
  EXPECT_NEAR(seconds_of_making("priority: [create, background, drain]", others), 0.200, 2e-3);
  // 0.2 s of work, stretched by busy periods: x / (1 - load), variance rate E[S^2] x / (1 - load)^3. Five deviations: a
  // false alarm of 6e-7.
  const double stretched = seconds_of_making("priority: [background, create, drain]", others);
  expect_within("seconds behind others", stretched, 0.2 / 0.5, 5, std::sqrt(500 * 1e-6 * 0.2 / 0.125));
}

TEST(ClassQueues, KeepTheOrderWithinAClass)
{
  ClassQueues queues(3);
  std::array<std::deque<JobId>, 3> reference;
  for (uint64_t step = 0; step < 20'000; ++step) {
    const auto words = random_words(5, Stream::service, 3, step);
    if (words[0] % 2) {
      const size_t of = words[1] % 3;
      queues.push_back(static_cast<JobId>(step), of);
      reference[of].push_back(static_cast<JobId>(step));
    } else {
      const auto first =
          std::find_if(reference.begin(), reference.end(), [](const auto& waiting) { return !waiting.empty(); });
      EXPECT_EQ(queues.pop_front(), first == reference.end() ? nobody : first->front());
      if (first != reference.end())
        first->pop_front();
    }
    ASSERT_EQ(queues.length(), reference[0].size() + reference[1].size() + reference[2].size());
  }
}

TEST(Priority, WhatMakesNoSenseIsRefused)
{
  const auto refused = [](const std::string& station, const std::string& why) {
    small::expect_refused(fmt::format("stations:\n  s: {{{}}}\n{}", station, small::stat_then_read), why);
  };
  refused("priority: [stats]", ".yaml:3: in stations.s.priority[0], there is no work 'stats'. Did you mean 'stat'?");
  refused("priority: [stat, [create, drains]]", "Did you mean 'drain'?");
  refused("priority: [phase]", "there is no work 'phase'");
  refused("priority: [stat, [create, stat]]", "'stat' has its priority already");
  refused("priority: [rest, stat, rest]", "'rest' has its priority already");
  refused("priority: [stat, []]", "a class of work names what is in it");
  refused("priority: stat", "a list is expected");
  refused("priority: [stat], discipline: ps", "only where requests are served first come, first served");
  refused("priority: [stat], discipline: timeslice", "only where requests are served first come, first served");
}

} // namespace
} // namespace iocast
