// SPDX-License-Identifier: Apache-2.0
//
// What ranks do together, time limits, and steps by entry, block and stripe, in systems whose course can be computed by
// hand.
#include "input/error.hpp"
#include "models/system.hpp"
#include "workload/workload.hpp"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <unistd.h>

namespace iocast {
namespace {

struct Seen {
  double seconds = 0;
  uint64_t cut   = 0;
  double thought = 0;
  std::map<OpKind, Histogram> latency;
  std::vector<double> rank_seconds;
};

std::map<std::string, Seen> run(const std::string& stations, const std::string& routes, uint32_t ranks,
                                const std::vector<std::string>& settings, const std::string& name = "probe",
                                uint32_t nodes = 1)
{
  const auto file = std::filesystem::temp_directory_path() / ("iocast-joint-" + std::to_string(getpid()) + ".yaml");
  std::ofstream(file) << "schema_version: 1\nstations: {" << stations << "}\noperations:\n"
                      << "  create: {open: [], write: [], close: []}\n  append: {open: [], write: [], close: []}\n"
                      << "  read: {open: [], read: [], close: []}\n  unlink: []\n  stat: []\n"
                      << routes;
  const auto platform = open_platform(file.string());
  std::filesystem::remove(file);
  const auto workload = open_workload(name, settings);
  const Placement placement{ranks, ranks / nodes};
  const auto pattern = workload.make(placement);
  std::map<std::string, Seen> seen;
  System system(platform, *pattern, placement, {}, [&](const FinishedPhase& phase) {
    Seen& of        = seen[pattern->phases()[phase.number].name];
    of.seconds      = phase.end - phase.start;
    of.cut          = phase.cut_ranks;
    of.thought      = phase.think_actual;
    of.rank_seconds = phase.rank_seconds;
    for (size_t kind = 1; kind < op_count; ++kind)
      if (phase.recorder.has(static_cast<OpKind>(kind)))
        of.latency[static_cast<OpKind>(kind)] = phase.recorder.of_kind(static_cast<OpKind>(kind)).whole;
  });
  system.start();
  system.run();
  EXPECT_TRUE(system.finished());
  return seen;
}

const std::string free_opens = "  open: []\n  fsync: []\n  close: []\n  readdir: []\n";

TEST(Joint, CollectiveAccessesEndTogether)
{
  // One server, so that the ranks of a group leave it after 1, 2, 3 ms; all of them have had 3 ms in the end.
  const auto seen   = run("s: {servers: 1}",
                          free_opens + "  pwrite: [{station: s, demand: 1ms}]\n"
                                         "  pread: [{station: s, demand: 1ms}]\n",
                          3, {"objects=1", "accesses=10", "blocks=1"});
  const auto& joint = seen.at("write-shared").latency.at(OpKind::pwrite);
  EXPECT_EQ(joint.count(), 30U);
  EXPECT_EQ(joint.min_ns(), 3'000'000);
  EXPECT_EQ(joint.max_ns(), 3'000'000);
  EXPECT_NEAR(seen.at("write-shared").seconds, 0.030, 1e-9);
  // By themselves they take turns as well, but each sees its own end.
  EXPECT_EQ(seen.at("write").latency.at(OpKind::pwrite).min_ns(), 1'000'000);
}

TEST(Joint, GroupsDoNotWaitForEachOther)
{
  const std::string accesses = "  pwrite: [{delay: 1ms}]\n  pread: [{delay: 1ms}]\n";
  const auto seen = run("s: {}", free_opens + accesses, 5, {"objects=1", "accesses=4", "blocks=1", "sharing=2"});
  EXPECT_NEAR(seen.at("write-shared").seconds, 0.004, 1e-9);
  EXPECT_EQ(seen.at("read-shared").latency.at(OpKind::pread).count(), 20U);
}

TEST(TimeLimit, EndsAPhaseForAllRanksAndClosesWhatIsOpen)
{
  const std::string accesses = "  pwrite: [{delay: 3ms}]\n  pread: [{delay: 1ms}]\n";
  const auto seen = run("s: {}", "  open: []\n  fsync: []\n  close: [{delay: 2ms}]\n  readdir: []\n" + accesses, 4,
                        {"objects=1", "accesses=1000", "blocks=1", "most_seconds=10ms"});
  for (const char* name : {"write", "write-shared"}) {
    const auto& phase = seen.at(name);
    EXPECT_EQ(phase.cut, 4U);
    // Begun at 0, 3, 6 and 9 ms; the collective ones stop after the first that begins late.
    const uint64_t accesses_each = std::string(name) == "write" ? 4 : 5;
    EXPECT_EQ(phase.latency.at(OpKind::pwrite).count(), 4 * accesses_each) << name;
    EXPECT_EQ(phase.latency.at(OpKind::close).count(), 4U);
    EXPECT_EQ(phase.latency.count(OpKind::fsync), 0U);
    EXPECT_NEAR(phase.seconds, 0.003 * static_cast<double>(accesses_each) + 0.002, 1e-9);
  }
  EXPECT_EQ(seen.at("read").latency.at(OpKind::pread).count(), 16U);
  EXPECT_EQ(seen.at("read-shared").latency.at(OpKind::pread).count(), 20U);
}

TEST(TimeLimit, IsNotReachedByThoseWhoAreDone)
{
  const auto seen = run("s: {}", free_opens + "  pwrite: [{delay: 1ms}]\n  pread: []\n", 2,
                        {"objects=1", "accesses=3", "blocks=1", "most_seconds=1s"});
  EXPECT_EQ(seen.at("write").cut, 0U);
  EXPECT_EQ(seen.at("write").latency.at(OpKind::pwrite).count(), 8U);
}

TEST(Think, TakesItsTimeAndIsNoOperation)
{
  const auto seen = run("s: {}", free_opens + "  pwrite: [{delay: 1ms}]\n  pread: []\n", 2,
                        {"objects=1", "accesses=5", "blocks=1", "think=4ms"});
  // The strided access comes without one.
  EXPECT_NEAR(seen.at("write").seconds, 5 * 0.005 + 0.001, 1e-9);
  EXPECT_NEAR(seen.at("write").thought, 2 * 5 * 0.004, 1e-9);
  EXPECT_EQ(seen.at("write").latency.count(OpKind::think), 0U);
  const auto cut = run("s: {}", free_opens + "  pwrite: [{delay: 1ms}]\n  pread: []\n", 2,
                       {"objects=1", "accesses=5", "blocks=1", "think=1s", "most_seconds=100ms"});
  EXPECT_NEAR(cut.at("write").thought, 2 * 0.1, 1e-9);
  EXPECT_EQ(cut.at("write").cut, 2U);
}

TEST(Steps, DemandsByEntryAndByBlock)
{
  const auto seen = run("s: {servers: 4}",
                        "  open: []\n  fsync: []\n  close: []\n  readdir: [{station: s, demand: 1ms, per: entry}]\n"
                        "  pwrite: [{station: s, demand: 1ms, per: block, bandwidth: 1MB/s}]\n  pread: []\n",
                        1, {"objects=6", "accesses=1", "blocks=5", "access_size=1kB"});
  EXPECT_EQ(seen.at("look").latency.at(OpKind::readdir).max_ns(),
            7'000'000); // six small objects and the one that is accessed
  EXPECT_EQ(seen.at("write").latency.at(OpKind::pwrite).min_ns(), 2'000'000);  // 1 ms and 1 kB
  EXPECT_EQ(seen.at("write").latency.at(OpKind::pwrite).max_ns(), 10'000'000); // 5 of each
}

TEST(Steps, StripesOfAnObjectAreOnDifferentInstances)
{
  const auto seconds = [](const std::string& station, uint32_t ranks) {
    const auto seen = run("s: {count: 8, servers: 1, " + station + "}",
                          free_opens + "  pwrite: [{station: s, demand: 1ms}]\n  pread: []\n", ranks,
                          {"objects=1", "accesses=8", "blocks=1", "access_size=1MiB"});
    return seen.at("write-shared").seconds;
  };
  // The four ranks' blocks lie behind each other in one shared object.
  EXPECT_NEAR(seconds("spread: object", 4), 0.032, 1e-9);
  EXPECT_NEAR(seconds("spread: stripe", 4), 0.008, 1e-9);
  EXPECT_NEAR(seconds("spread: stripe, stripe_count: 2", 4), 0.016, 1e-9);
  EXPECT_NEAR(seconds("spread: stripe, stripe_size: 2MiB", 4), 0.016, 1e-9);
  EXPECT_NEAR(seconds("spread: stripe, stripe_size: 1GiB", 4), 0.032, 1e-9);
}

TEST(Steps, ObjectsOfADatasetHaveTheInstancesInTurn)
{
  // Each rank writes three records to a file of its own, all in one directory.
  const auto seconds = [](uint32_t ranks) {
    const auto seen = run("s: {count: 4, servers: 1, spread: round-robin}",
                          free_opens + "  pwrite: [{station: s, demand: 1ms}]\n  pread: []\n", ranks,
                          {"memory=1MiB", "arrays=3", "layout=own"}, "hpcs-checkpoint");
    return seen.at("checkpoint").seconds;
  };
  EXPECT_NEAR(seconds(4), 0.003, 1e-9);
  EXPECT_NEAR(seconds(8), 0.006, 1e-9);
  EXPECT_NEAR(seconds(9), 0.009, 1e-9);
}

TEST(Steps, ALockIsHandedOverBetweenNodes)
{
  const auto seen = [](uint32_t nodes) {
    return run("s: {servers: 4}",
               free_opens + "  pwrite: [{station: s, demand: 1ms, lock: l}]\n  pread: [{station: s, demand: 1ms, lock: "
                            "l, lock_mode: shared}]\n"
                            "locks: {l: {per: object, hand_over: 10ms}}\n",
               4, {"objects=1", "accesses=5", "blocks=1"}, "probe", nodes);
  };
  EXPECT_NEAR(seen(1).at("write-shared").seconds, 4 * 5 * 0.001, 1e-9);
  // Of four nodes each writes after another one; only the last of a collective access is the first in the next.
  EXPECT_NEAR(seen(4).at("write-shared").seconds, 4 * 5 * 0.001 + 3 * 5 * 0.010, 1e-9);
  EXPECT_NEAR(seen(4).at("write").seconds, 6 * 0.001, 1e-9); // objects of their own; the sixth access is a strided one
  // The first to read calls the last writer's lock back; then all keep it, and read together.
  EXPECT_NEAR(seen(4).at("read-shared").seconds, 5 * 0.001 + 0.010, 1e-9);
}

} // namespace
} // namespace iocast
