// SPDX-License-Identifier: Apache-2.0
//
// Buffers whose course can be computed by hand.
#include "input/error.hpp"
#include "models/system.hpp"
#include "workload/workload.hpp"

#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

namespace iocast {
namespace {

constexpr double mib       = 1 << 20;
constexpr double copy_time = 1.0 / 1024; ///< seconds that a MiB takes into memory
constexpr double out_time  = 1.0 / 100;  ///< and out of it

struct Drained {
  double seconds = 0; ///< of the phase
  BufferSums buffer;
  Histogram write, fsync;
  StationSums stations;
};

/// Each rank writes `blocks` blocks to a file of its own. Memory takes a GiB a second; `buffers` and `stations` are of
/// the platform.
Drained write(const std::string& buffers, int blocks, const Placement& placement,
              const std::vector<std::string>& settings = {}, const std::string& stations = "disk: {servers: 1}",
              const std::string& flush = "[{flush: b}]")
{
  const auto file = std::filesystem::temp_directory_path() / ("iocast-buffer-" + std::to_string(getpid()) + ".yaml");
  std::ofstream(file)
      << "schema_version: 1\nstations:\n  memory: {per: node, servers: 64}\n  " << stations << "\nbuffers:\n"
      << buffers << "\noperations:\n  mkdir: []\n  open: []\n  close: []\n  unlink: []\n  rmdir: []\n  create: {}\n"
      << "  pwrite: [{station: memory, demand: 0s, bandwidth: 1GiB/s}, {buffer: b}]\n  fsync: " << flush << "\n";
  const auto platform = open_platform(file.string());
  std::filesystem::remove(file);
  std::vector<std::string> all{"block_size=1MiB", "sharing=process", "run=write", "phases=benchmark", "fsync=never"};
  all.insert(all.end(), settings.begin(), settings.end());
  if (blocks > 0)
    all.push_back(fmt::format("per_process={}MiB", blocks));
  const auto pattern = open_workload("application", all).make(placement);
  Drained outcome;
  System system(platform, *pattern, placement, {}, [&](const FinishedPhase& phase) {
    outcome.seconds  = phase.end - phase.start;
    outcome.buffer   = phase.buffers[0];
    outcome.stations = phase.stations;
    if (phase.recorder.has(OpKind::pwrite))
      outcome.write = phase.recorder.of_kind(OpKind::pwrite).whole;
    if (phase.recorder.has(OpKind::fsync))
      outcome.fsync = phase.recorder.of_kind(OpKind::fsync).whole;
  });
  system.start();
  system.run();
  EXPECT_TRUE(system.finished());
  EXPECT_EQ(outcome.buffer.entered, outcome.buffer.drained + outcome.buffer.held);
  return outcome;
}

constexpr const char* to_disk = "drain: [{station: disk, demand: 0s, bandwidth: 100MiB/s}]";

std::string buffer(const std::string& keys)
{
  return fmt::format("  b: {{{}, {}}}", keys, to_disk);
}

TEST(Buffer, WhatHasRoomIsWrittenAtTheSpeedOfMemory)
{
  const auto outcome = write(buffer("capacity: 1GiB, unit: 1MiB"), 64, {1, 1});
  EXPECT_NEAR(outcome.seconds, 64 * copy_time, 1e-9);
  EXPECT_EQ(outcome.buffer.stopped, 0U);
  EXPECT_EQ(outcome.buffer.entered, 64 * static_cast<uint64_t>(mib));
  EXPECT_EQ(outcome.buffer.drained, 6 * static_cast<uint64_t>(mib)); // in 63 copies, each a tenth of a drain
}

TEST(Buffer, BeyondItsCapacityWritesGoAtTheRateOfTheDrain)
{
  // The last block enters when all but four are out; the disk has worked since the first one came.
  const auto outcome = write(buffer("capacity: 4MiB, unit: 1MiB"), 200, {1, 1});
  EXPECT_NEAR(outcome.seconds, copy_time + (200 - 4) * out_time, 1e-9);
  EXPECT_EQ(outcome.buffer.peak, 4 * static_cast<uint64_t>(mib));
  EXPECT_NEAR(outcome.buffer.wait, outcome.seconds - 200 * copy_time, 1e-9);
}

TEST(Buffer, SoManyPiecesDrainAtATime)
{
  const auto outcome = write(buffer("capacity: 4MiB, unit: 1MiB, at_once: 4"), 200, {1, 1}, {}, "disk: {servers: 4}");
  EXPECT_NEAR(outcome.seconds, 200 / 4 * out_time, 200 * copy_time);
  EXPECT_NEAR(write(buffer("capacity: 4MiB, unit: 1MiB, at_once: 4"), 200, {1, 1}).seconds,
              copy_time + (200 - 4) * out_time, 1e-9); // at one server
}

TEST(Buffer, FsyncWaitsForWhatIsLeft)
{
  for (const char* of : {"all", "object", "everywhere"})
    for (const char* capacity : {"1GiB", "4MiB", "1MiB"}) {
      const auto outcome = write(buffer(fmt::format("capacity: {}, unit: 1MiB", capacity)), 50, {1, 1}, {"fsync=end"},
                                 "disk: {servers: 1}", fmt::format("[{{flush: b, of: {}}}]", of));
      EXPECT_NEAR(outcome.seconds, copy_time + 50 * out_time, 1e-9) << of << " " << capacity;
      EXPECT_EQ(outcome.buffer.held, 0U);
    }
  const auto outcome = write(buffer("capacity: 1GiB, unit: 1MiB"), 50, {1, 1}, {"fsync=end"});
  EXPECT_NEAR(outcome.fsync.max_ns() * 1e-9, copy_time + 50 * out_time - 50 * copy_time, 1e-6);
}

TEST(Buffer, NodesHaveTheirOwn)
{
  const double alone = write(buffer("capacity: 4MiB, unit: 1MiB"), 50, {1, 1}).seconds;
  EXPECT_NEAR(write(buffer("capacity: 4MiB, unit: 1MiB"), 50, {2, 1}, {}, "disk: {servers: 2}").seconds, alone, 1e-9);
  EXPECT_NEAR(write(buffer("per: system, capacity: 4MiB, unit: 1MiB"), 50, {2, 1}, {}, "disk: {servers: 2}").seconds,
              copy_time + (100 - 4) * out_time, 1e-9);
}

TEST(Buffer, SmallWritesDrainTogether)
{
  const std::vector<std::string> small{"block_size=1KiB", "per_process=1000KiB", "fsync=end"};
  const auto drained = [&](const std::string& keys) {
    return write(fmt::format("  b: {{{}, drain: [{{station: disk, demand: 10ms}}]}}", keys), 0, {1, 1}, small);
  };
  const auto lingering = drained("capacity: 1GiB, unit: 1MiB, linger: 10s");
  EXPECT_EQ(lingering.buffer.pieces, 1U);
  EXPECT_NEAR(lingering.seconds, 1000 * copy_time / 1024 + 10e-3, 1e-9);
  // Without, the first goes by itself, and the next piece is what came meanwhile.
  EXPECT_EQ(drained("capacity: 1GiB, unit: 1MiB").buffer.pieces, 2U);
  EXPECT_EQ(drained("capacity: 1GiB").buffer.pieces, 1000U);
  EXPECT_EQ(drained("capacity: 1GiB, unit: 100KiB, linger: 10s").buffer.pieces, 10U);
}

TEST(Buffer, WhatLingersLeavesInTime)
{
  // Half a unit, then nothing: it drains by itself after the linger, while the rank thinks.
  const auto outcome = write(buffer("capacity: 1GiB, unit: 2MiB, linger: 100ms"), 1, {1, 1}, {"think=1s", "fsync=end"});
  EXPECT_EQ(outcome.buffer.pieces, 1U);
  EXPECT_EQ(outcome.fsync.max_ns(), 0);
}

TEST(Buffer, ALargeWriteEntersAsRoomIsMade)
{
  // 64 MiB in one write: the last unit is in when all but four are out.
  const auto outcome = write(buffer("capacity: 4MiB, unit: 1MiB"), 64, {1, 1}, {"block_size=64MiB"});
  EXPECT_NEAR(outcome.seconds, 64 * copy_time + (64 - 4) * out_time, 1e-9);
}

TEST(Buffer, WritesThatWereStoppedGoOnAtTheLowerMark)
{
  // Four enter; then each time two must be out before two more enter.
  const auto outcome = write(buffer("capacity: 4MiB, unit: 1MiB, resume: 0.5"), 24, {1, 1});
  EXPECT_EQ(outcome.buffer.stopped, 10U);
  EXPECT_NEAR(outcome.seconds, copy_time + 20 * out_time + copy_time,
              1e-9); // the 23rd block enters then, and the 24th after its copy
}

TEST(Buffer, RanksWaitInTurn)
{
  // Two ranks of a node: nobody's write waits for more than its turn, and all is done when one's would be.
  const auto outcome = write(buffer("capacity: 1MiB, unit: 1MiB"), 20, {2, 2});
  EXPECT_NEAR(outcome.seconds, copy_time + 39 * out_time, 1e-9);
  EXPECT_NEAR(outcome.write.max_ns() * 1e-9, 2 * out_time, 1e-4);
}

TEST(Buffer, AServersBufferIsBeforeItsDevice)
{
  // A file of each of 8 ranks, on 4 servers: each drains by itself what it has.
  const auto outcome = write("  b: {station: disk, capacity: 1MiB, unit: 1MiB, drain: [{station: disk, demand: 10ms}]}",
                             20, {8, 8}, {"fsync=end"}, "disk: {count: 4, spread: object}");
  EXPECT_EQ(outcome.buffer.pieces, 160U);
  EXPECT_EQ(outcome.stations[1][static_cast<size_t>(draining)].visits, 160U);
  EXPECT_EQ(outcome.stations[1][static_cast<size_t>(draining)].wait, 0); // one at a time
  EXPECT_GE(outcome.seconds, 160 / 4 * 10e-3);
}

TEST(Buffer, OneDrainsIntoTheNext)
{
  // Two MiB of the server's and one of the node's: the last block enters the node's when all but three are out of the
  // server's.
  const auto outcome = write(fmt::format("  s: {{per: system, capacity: 2MiB, unit: 1MiB, {}}}\n"
                                         "  b: {{capacity: 1MiB, unit: 1MiB, drain: [{{delay: 1ms}}, {{buffer: s}}]}}",
                                         to_disk),
                             50, {1, 1});
  // phase.buffers[0] is the server's.
  EXPECT_NEAR(outcome.seconds, copy_time + 1e-3 + (50 - 3) * out_time, 1e-9);
}

TEST(Buffer, TransfersAndLimitsServeADrain)
{
  const auto outcome = write(
      "  b: {capacity: 1MiB, unit: 1MiB, at_once: 1, drain: [{limit: l, steps: [{transfer: write, station: disk}]}]}\n"
      "limits: {l: {slots: 1, per: node}}\nnetwork: {latency: 1ms, node_bandwidth: 100MiB/s}",
      50, {2, 1});
  EXPECT_NEAR(outcome.seconds, copy_time + 49 * (out_time + 1e-3), 1e-9);
}

TEST(Buffer, ADrainThatNeedsWhatWaitersHoldIsRefused)
{
  EXPECT_THROW(write("  b: {capacity: 1MiB, drain: [{limit: l, steps: [{station: disk, demand: 1ms}]}]}\nlimits: {l: "
                     "{slots: 1, per: node}}",
                     1, {1, 1}, {}, "disk: {servers: 1}", "[{limit: l, steps: [{flush: b}]}]"),
               InputError);
}

// ---- an instance by itself
// --------------------------------------------------------------------------------------------

struct Alone {
  BufferSpec spec;
  BufferSums sums;
  DirtyObjects objects;
  std::vector<uint32_t> instances;
  std::vector<JobId> freed;

  explicit Alone(uint64_t capacity, uint64_t unit = 0)
  {
    spec.capacity = capacity;
    spec.unit     = unit;
    spec.resume   = capacity;
  }
};

TEST(Buffer, AFlushWaitsForNothingThatCameLater)
{
  Alone a(100);
  Buffer b(a.spec, 0, a.sums, &a.objects);
  EXPECT_TRUE(b.flush(9)); // empty
  EXPECT_TRUE(b.enter(0, {OpKind::pwrite, 0, 1, 10}, 0));
  EXPECT_TRUE(b.enter(1, {OpKind::pwrite, 0, 2, 10}, 0));
  EXPECT_FALSE(b.flush(7));
  EXPECT_FALSE(a.objects.wait(object_key({OpKind::fsync, 0, 2}), Flush::object, 0, 8, a.instances));
  EXPECT_TRUE(a.objects.wait(object_key({OpKind::fsync, 0, 3}), Flush::object, 0, 9, a.instances));
  EXPECT_TRUE(b.enter(2, {OpKind::pwrite, 0, 3, 10}, 0));
  const auto first = b.next(0);
  ASSERT_TRUE(first);
  EXPECT_FALSE(b.next(0)); // one at a time
  b.drained(first->as_write(), first->epoch, 1, a.freed);
  EXPECT_TRUE(a.freed.empty());
  const auto second = b.next(1);
  ASSERT_TRUE(second);
  b.drained(second->as_write(), second->epoch, 2, a.freed);
  EXPECT_EQ(a.freed, (std::vector<JobId>{7, 8}));
  EXPECT_EQ(b.held(), 10U);
  EXPECT_TRUE(b.adds_up());
}

/// Objects of the pieces that drain, in that order, until nothing is ready.
std::vector<uint64_t> order_of(Buffer& b, Alone& a)
{
  std::vector<uint64_t> objects;
  while (const auto piece = b.next(0)) {
    objects.push_back(piece->object);
    b.drained(piece->as_write(), piece->epoch, 0, a.freed);
  }
  return objects;
}

TEST(Buffer, ObjectsDrainInTurn)
{
  Alone a(100);
  a.spec.above = 60; // nothing drains before all is in
  Buffer b(a.spec, 0, a.sums, &a.objects);
  for (const uint64_t object : {1, 1, 1, 2, 3, 3})
    EXPECT_TRUE(b.enter(0, {OpKind::pwrite, 0, object, 10}, 0));
  b.hurry();
  EXPECT_EQ(order_of(b, a), (std::vector<uint64_t>{1, 2, 3, 1, 3, 1}));
  EXPECT_TRUE(b.adds_up());
}

TEST(Buffer, ObjectsOfOnePieceEachDrainAsTheyCame)
{
  Alone a(1000);
  a.spec.above = 900;
  Buffer b(a.spec, 0, a.sums, &a.objects);
  const std::vector<uint64_t> came{5, 3, 9, 1, 7};
  for (const uint64_t object : came)
    EXPECT_TRUE(b.enter(0, {OpKind::pwrite, 0, object, 10}, 0));
  b.hurry();
  EXPECT_EQ(order_of(b, a), came);
}

TEST(Buffer, WhatAFlushWaitsForDrainsBeforeWhatCameLater)
{
  Alone a(1000);
  a.spec.above = 900;
  Buffer b(a.spec, 0, a.sums, &a.objects);
  for (const uint64_t object : {1, 1, 1, 2})
    EXPECT_TRUE(b.enter(0, {OpKind::pwrite, 0, object, 10}, 0));
  EXPECT_FALSE(b.flush(7));
  for (const uint64_t object : {3, 1, 3})
    EXPECT_TRUE(b.enter(0, {OpKind::pwrite, 0, object, 10}, 0));
  EXPECT_EQ(order_of(b, a), (std::vector<uint64_t>{1, 2, 1, 1, 3, 1, 3}));
  EXPECT_EQ(a.freed, (std::vector<JobId>{7}));
}

TEST(Buffer, LargeWritesThatWaitForRoomEnterInTurn)
{
  Alone a(20, 10);
  Buffer b(a.spec, 0, a.sums, &a.objects);
  EXPECT_TRUE(b.enter(0, {OpKind::pwrite, 0, 1, 20}, 0));
  EXPECT_FALSE(b.enter(1, {OpKind::pwrite, 0, 2, 30}, 0));
  EXPECT_FALSE(b.enter(2, {OpKind::pwrite, 0, 3, 20}, 0));
  EXPECT_EQ(order_of(b, a), (std::vector<uint64_t>{1, 1, 2, 3, 2, 3, 2}));
  EXPECT_EQ(a.freed, (std::vector<JobId>{2, 1})); // the last unit of 2 came in behind that of 3
  EXPECT_TRUE(b.adds_up());
}

TEST(Buffer, ObjectsAreWaitedForWhereTheyAre)
{
  DirtyObjects objects;
  std::vector<uint32_t> instances;
  std::vector<JobId> freed;
  const auto wait = [&](Flush flush, uint32_t own, JobId job) {
    instances.clear();
    return objects.wait(5, flush, own, job, instances);
  };
  objects.add(5, 10, 1);
  EXPECT_TRUE(wait(Flush::elsewhere, 1, 9));
  objects.add(5, 10, 2);
  objects.add(5, 10, 2);
  EXPECT_TRUE(wait(Flush::object, 3, 9));
  EXPECT_FALSE(wait(Flush::elsewhere, 1, 1));
  EXPECT_EQ(instances, (std::vector<uint32_t>{2}));
  EXPECT_FALSE(wait(Flush::everywhere, 1, 2));
  EXPECT_EQ(instances, (std::vector<uint32_t>{1, 2}));
  EXPECT_FALSE(wait(Flush::object, 1, 3));
  EXPECT_EQ(instances, (std::vector<uint32_t>{1}));
  objects.remove(5, 10, 2, freed);
  EXPECT_TRUE(freed.empty());
  objects.remove(5, 10, 2, freed);
  EXPECT_EQ(freed, (std::vector<JobId>{1}));
  objects.remove(5, 10, 1, freed);
  EXPECT_EQ(freed, (std::vector<JobId>{1, 2, 3}));
  EXPECT_EQ(objects.size(), 0U);
}

TEST(Buffer, OnlyAdjacentBytesOfAnObjectGoTogether)
{
  Alone a(1000, 100);
  Buffer b(a.spec, 0, a.sums, &a.objects);
  a.spec.at_once = 10;
  a.spec.linger  = 5;
  b.enter(0, {OpKind::pwrite, 0, 1, 10, 90}, 0);  // ends a unit
  b.enter(0, {OpKind::pwrite, 0, 1, 30, 100}, 1); // begins one
  b.enter(0, {OpKind::pwrite, 0, 1, 30, 130}, 1); // joins it
  b.enter(0, {OpKind::pwrite, 0, 1, 30, 500}, 2); // is elsewhere, so that nothing will join that
  b.enter(0, {OpKind::append, 0, 2, 150}, 3);     // more than a unit
  b.enter(0, {OpKind::append, 0, 2, 40}, 3);      // joins the rest
  std::vector<std::pair<uint64_t, uint64_t>> pieces;
  const auto take = [&](double now) {
    while (const auto piece = b.next(now))
      pieces.emplace_back(piece->object, piece->size);
  };
  take(3);
  EXPECT_EQ(pieces, (std::vector<std::pair<uint64_t, uint64_t>>{{1, 10}, {2, 100}, {1, 60}}));
  EXPECT_EQ(b.due(), 7);
  take(7);
  EXPECT_EQ(b.due(), 8);
  take(8);
  EXPECT_EQ(pieces.size(), 5U);
  EXPECT_EQ(pieces.back(), (std::pair<uint64_t, uint64_t>{2, 90}));
}

TEST(Buffer, NobodyPassesAWriteThatWaits)
{
  Alone a(100);
  Buffer b(a.spec, 0, a.sums, &a.objects);
  EXPECT_TRUE(b.enter(0, {OpKind::pwrite, 0, 1, 60}, 0));
  EXPECT_FALSE(b.enter(1, {OpKind::pwrite, 0, 2, 60}, 0));
  EXPECT_FALSE(b.enter(2, {OpKind::pwrite, 0, 3, 10}, 0)); // there would be room
  EXPECT_TRUE(b.enter(3, {OpKind::pwrite, 0, 4, 0}, 0));   // of nothing
  const auto piece = b.next(0);
  ASSERT_TRUE(piece);
  b.drained(piece->as_write(), piece->epoch, 1, a.freed);
  EXPECT_EQ(a.freed, (std::vector<JobId>{1, 2}));
  EXPECT_EQ(a.sums.stopped, 2U);
  EXPECT_EQ(a.sums.wait, 2);
}

} // namespace
} // namespace iocast
