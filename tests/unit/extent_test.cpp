// SPDX-License-Identifier: Apache-2.0
//
// Locks on ranges of objects: who waits for whom and who keeps what, by hand, and systems whose rate or number of
// hand-overs is known.
#include "models/extent.hpp"
#include "tests/unit/small_system.hpp"
#include "workload/random.hpp"

#include <fmt/format.h>
#include <set>

namespace iocast::ranges {
namespace {

using KeptRanges       = std::vector<std::pair<uint32_t, Units>>;
constexpr uint64_t all = UINT64_MAX;

/// One object, with units of one byte; each job is of the node of its number divided by ten.
struct Object {
  LockSpec spec;
  ExtentCutter cutter{1, nullptr};
  ExtentLock lock{};
  ExtentSums sums{};

  bool take(JobId job, std::vector<Units> requested, bool shared = false)
  {
    return lock.acquire(job, job / 10, shared, std::move(requested), cutter, spec, sums);
  }
  /// Who has its ranges as this job gives its own back.
  std::vector<JobId> give(JobId job)
  {
    std::vector<JobId> freed;
    lock.drop(job);
    lock.grant(cutter, spec, sums, freed);
    EXPECT_TRUE(lock.adds_up());
    EXPECT_EQ(sums.ranges, lock.ranges());
    return freed;
  }
  /// True when it had to be called back.
  bool use(JobId job, Units requested, bool shared = false)
  {
    EXPECT_TRUE(take(job, {requested}, shared));
    const bool called = lock.called_back(job) > 0;
    EXPECT_TRUE(give(job).empty());
    return called;
  }
};

TEST(OverlapIndex, FindsWhatALookAtEachRangeFinds)
{
  OverlapIndex index;
  std::vector<Units> ranges;
  const auto drawn = [](uint64_t counter, uint64_t most) {
    return random_words(1, Stream::background, 0, counter)[0] % most;
  };
  for (uint64_t i = 0; i < 300; ++i) {
    const uint64_t begin  = drawn(4 * i, 5000);
    const uint64_t length = i % 50 == 0 ? all - begin : 1 + drawn(4 * i + 1, uint64_t{1} << drawn(4 * i + 2, 12));
    ranges.push_back({begin, begin + length});
    index.add(ranges.back(), i);
  }
  for (uint64_t i = 0; i < 300; i += 3)
    index.remove(ranges[i], i);
  for (uint64_t i = 0; i < 300; ++i) {
    std::set<uint64_t> expected;
    std::set<uint64_t> found;
    uint64_t above = all;
    uint64_t below = 0;
    uint64_t next  = all;
    uint64_t last  = 0;
    for (uint64_t k = 0; k < 300; ++k)
      if (k % 3 != 0) {
        if (ranges[k].overlaps(ranges[i]))
          expected.insert(k);
        if (ranges[k].begin >= ranges[i].end)
          above = std::min(above, ranges[k].begin);
        if (ranges[k].end <= ranges[i].begin)
          below = std::max(below, ranges[k].end);
      }
    index.overlapping(ranges[i], [&](uint64_t number) { found.insert(number); });
    EXPECT_EQ(found, expected);
    index.above(ranges[i].end, [&](uint64_t, uint64_t begin) { return next = std::min(next, begin), true; });
    EXPECT_EQ(next, above);
    index.below(ranges[i].begin, [&](uint64_t, uint64_t end) { return last = end, true; });
    EXPECT_EQ(last, below);
  }
}

TEST(ExtentLock, GrowsAsFarAsNobodyContests)
{
  Object object;
  EXPECT_FALSE(object.use(10, {100, 110}));
  EXPECT_EQ(object.lock.kept(), (KeptRanges{{1, {0, all}}}));
  // Upwards to the range that the called-back holder had requested; it keeps the rest.
  EXPECT_TRUE(object.use(20, {50, 60}));
  EXPECT_EQ(object.lock.kept(), (KeptRanges{{1, {0, 50}}, {1, {100, all}}, {2, {50, 100}}}));
  // Its requests below don't limit the range.
  EXPECT_TRUE(object.use(30, {200, 210}));
  EXPECT_EQ(object.lock.kept(), (KeptRanges{{1, {0, 50}}, {1, {100, 200}}, {2, {50, 100}}, {3, {200, all}}}));
  EXPECT_FALSE(object.use(10, {150, 200}));
  EXPECT_FALSE(object.use(20, {60, 100}));
  // What one keeps and what is beside it becomes one range.
  EXPECT_TRUE(object.use(10, {40, 70}));
  EXPECT_EQ(object.lock.kept(), (KeptRanges{{1, {0, 200}}, {3, {200, all}}}));
}

TEST(ExtentLock, GrowsNoFurtherThanItMay)
{
  Object object;
  object.spec.extent = 1;
  object.spec.grow   = 5;
  EXPECT_FALSE(object.use(10, {100, 110}));
  EXPECT_FALSE(object.use(20, {120, 130}));
  EXPECT_FALSE(object.use(30, {2, 3}));
  EXPECT_EQ(object.lock.kept(), (KeptRanges{{1, {95, 115}}, {2, {115, 135}}, {3, {0, 8}}}));
  object.spec.grow = 0;
  EXPECT_TRUE(object.use(20, {100, 101}));
  EXPECT_EQ(object.lock.kept(),
            (KeptRanges{{1, {95, 100}}, {1, {101, 115}}, {2, {100, 101}}, {2, {115, 135}}, {3, {0, 8}}}));
}

TEST(ExtentLock, ReadersShareAndAWriterCallsThemBack)
{
  Object object;
  EXPECT_FALSE(object.use(10, {0, 10}, true));
  EXPECT_FALSE(object.use(20, {0, 10}, true));
  EXPECT_FALSE(object.use(10, {500, 510}, true));
  EXPECT_EQ(object.lock.kept(), (KeptRanges{{1, {0, all}}, {2, {0, all}}}));
  // The first reader gives up everything from there on, as the begin is all that it had requested; the writer's own
  // share is its own no longer.
  EXPECT_TRUE(object.use(20, {30, 40}));
  EXPECT_EQ(object.lock.kept(), (KeptRanges{{1, {0, 30}}, {2, {30, all}}, {2, {0, all}}}));
  EXPECT_FALSE(object.use(20, {100, 110}, true));
  EXPECT_FALSE(object.use(10, {20, 30}, true));
  EXPECT_TRUE(object.use(30, {100, 110}, true)); // calls the writer back, not the readers
  EXPECT_EQ(object.lock.kept(), (KeptRanges{{1, {0, 30}}, {2, {30, 100}}, {2, {0, all}}, {3, {100, all}}}));
}

TEST(ExtentLock, WhoConflictsWaitsInTurn)
{
  Object object;
  EXPECT_TRUE(object.take(10, {{0, 10}}));
  EXPECT_FALSE(object.take(20, {{50, 60}})); // all is granted to the first while it uses it
  EXPECT_TRUE(object.take(11, {{10, 20}}));  // the same node's lock will do
  EXPECT_FALSE(object.take(12, {{15, 25}})); // but its own accesses don't overlap
  EXPECT_FALSE(object.take(30, {{55, 56}, {70, 80}}));
  EXPECT_FALSE(object.take(13, {{75, 76}}));
  EXPECT_EQ(object.give(11), (std::vector<JobId>{12}));
  EXPECT_TRUE(object.give(12).empty());
  EXPECT_EQ(object.give(10), (std::vector<JobId>{20})); // the others' turn is not now
  EXPECT_EQ(object.lock.kept(),
            (KeptRanges{{1, {0, 50}}, {1, {70, all}}, {2, {50, 70}}})); // grown up to what is waited for
  EXPECT_EQ(object.give(20), (std::vector<JobId>{30}));
  EXPECT_EQ(object.lock.called_back(30), 2U);
  EXPECT_EQ(object.give(30), (std::vector<JobId>{13}));
  EXPECT_TRUE(object.give(13).empty());
  EXPECT_EQ(object.lock.requests(), 0U);
}

TEST(ExtentLock, DisjointSegmentsCostOneHandOverForEachNodeButTheFirst)
{
  // Whatever the order in which they come and go on.
  constexpr uint64_t nodes = 50;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Object object;
    std::vector<uint64_t> next(nodes);
    uint32_t called = 0;
    for (uint64_t step = 0; step < 100 * nodes; ++step) {
      const auto node   = static_cast<uint32_t>(random_words(seed, Stream::service, 0, step)[0] % nodes);
      const uint64_t at = node * 1000 + next[node]++ % 1000;
      called += object.use(node * 10, {at, at + 1});
    }
    EXPECT_EQ(called, nodes - 1) << seed;
  }
}

TEST(ExtentLock, AgreesWithABookOfEveryUnit)
{
  // Nobody contests a unit but by asking: grow nothing, and write down for each unit who keeps it.
  Object object;
  object.spec.grow   = 0;
  object.spec.extent = 1;
  std::array<std::vector<uint32_t>, 64> readers{};
  std::array<int, 64> writer{};
  writer.fill(-1);
  for (uint64_t step = 0; step < 5000; ++step) {
    const auto words  = random_words(7, Stream::service, 1, step);
    const auto node   = words[0] % 4;
    const uint64_t at = words[1] % 60;
    const Units requested{at, at + 1 + words[2] % 4};
    const bool shared = words[3] % 2 == 0;
    bool expected     = false;
    bool mine         = true; // all of it is this node's own
    for (uint64_t unit = requested.begin; unit < requested.end; ++unit)
      mine = mine && writer[unit] == static_cast<int>(node);
    for (uint64_t unit = requested.begin; unit < requested.end; ++unit) {
      expected = expected || (writer[unit] >= 0 && writer[unit] != static_cast<int>(node));
      if (writer[unit] != static_cast<int>(node) && writer[unit] >= 0)
        writer[unit] = -1;
      if (!shared) {
        for (const uint32_t reader : readers[unit])
          expected = expected || reader != node;
        std::erase_if(readers[unit], [&](uint32_t reader) { return reader != node; });
        writer[unit] = static_cast<int>(node);
      } else if (std::find(readers[unit].begin(), readers[unit].end(), node) == readers[unit].end() && !mine) {
        readers[unit].push_back(node);
      }
    }
    ASSERT_EQ(object.use(node * 10, requested, shared), expected) << step;
  }
}

TEST(ExtentLock, NobodyIsPassedAndAllHaveTheirTurn)
{
  // Forty jobs of five nodes come and go at random, with up to three ranges each. Who has its ranges is compared with
  // who came before it.
  struct Asking {
    std::vector<Units> units;
    bool shared   = false;
    bool has      = false;
    uint64_t came = 0;
  };
  const auto meet = [](const Asking& a, const Asking& b) {
    if (a.shared && b.shared)
      return false;
    for (const auto& one : a.units)
      for (const auto& other : b.units)
        if (one.overlaps(other))
          return true;
    return false;
  };
  for (uint64_t seed = 0; seed < 10; ++seed) {
    Object object;
    std::map<JobId, Asking> jobs;
    uint64_t turns = 0;
    uint64_t came  = 0;
    for (uint64_t step = 0; step < 3000 || !jobs.empty(); ++step) {
      const auto words = random_words(seed, Stream::service, 2, step);
      const JobId id   = words[0] % 50;
      if (const auto at = jobs.find(id); at == jobs.end()) {
        if (step >= 3000)
          continue;
        Asking asking{{}, words[1] % 2 == 0, false, came++};
        uint64_t unit = words[2] % 50;
        for (uint32_t count = 0; count <= words[3] % 3; ++count, unit += 7)
          asking.units.push_back({unit, unit + 1 + words[3] / 4 % 5});
        asking.has = object.take(id, asking.units, asking.shared);
        jobs[id]   = asking;
      } else if (at->second.has) {
        jobs.erase(at);
        ++turns;
        for (const JobId next : object.give(id))
          jobs[next].has = true;
      }
      for (const auto& [one, asking] : jobs)
        for (const auto& [other, earlier] : jobs) {
          if (earlier.came < asking.came && asking.has && meet(asking, earlier))
            FAIL() << one << " has what " << other << " had requested before, in step " << step;
        }
      ASSERT_LT(step, 100000U);
    }
    EXPECT_EQ(turns, came);
    EXPECT_EQ(object.lock.requests(), 0U);
  }
}

TEST(ExtentLock, KeepsNoMoreRangesThanItMay)
{
  constexpr uint64_t most = 1024;
  Object object;
  object.lock        = ExtentLock(most);
  object.spec.grow   = 0;
  object.spec.extent = 1;
  for (uint64_t at = 0; at < 3 * most; ++at)
    object.use(static_cast<JobId>(at % 7 * 10), {2 * at, 2 * at + 1});
  EXPECT_LE(object.lock.ranges(), most);
  EXPECT_EQ(object.lock.ranges() + object.sums.forgotten, 3 * most);
  EXPECT_GE(object.lock.ranges(), most / 2 - 1);
  constexpr uint64_t last = 6 * most - 2;
  EXPECT_TRUE(object.use(10, {last, last + 1}) || object.use(20, {last, last + 1}));
  EXPECT_FALSE(object.use(60, {0, 1})); // forgotten
}

TEST(ExtentCutter, UnitsOfAnObjectAndOfServers)
{
  Op op(OpKind::pwrite, 0, 0, 100, 4000);
  EXPECT_EQ(ExtentCutter(4096, nullptr).cut(op), (std::vector<Units>{{0, 2}}));
  op.count  = 3;
  op.stride = 10000;
  EXPECT_EQ(ExtentCutter(4096, nullptr).cut(op), (std::vector<Units>{{0, 2}, {3, 4}, {5, 6}}));
  EXPECT_EQ(ExtentCutter(4096, nullptr).cut(Op(OpKind::stat, 0, 0)), (std::vector<Units>{{0, all}}));
  StationSpec station;
  station.stripe_size       = 100;
  station.stripe_count      = 3;
  constexpr uint64_t server = uint64_t{1} << 44;
  // Bytes 150 to 950: stripes 1 to 9, of which server 0 has 3, 6 and half of 9, server 1 the second half of 1, 4 and 7,
  // server 2 2, 5 and 8.
  EXPECT_EQ(ExtentCutter(10, &station).cut(Op(OpKind::pwrite, 0, 0, 800, 150)),
            (std::vector<Units>{{10, 35}, {server + 5, server + 30}, {2 * server, 2 * server + 30}}));
  EXPECT_EQ(ExtentCutter(100, &station).cut(Op(OpKind::pwrite, 0, 0, 1, 250)),
            (std::vector<Units>{{2 * server, 2 * server + 1}}));
  EXPECT_EQ(ExtentCutter(10, &station).cut(Op(OpKind::stat, 0, 0)),
            (std::vector<Units>{{0, server - 1}, {server, 2 * server - 1}, {2 * server, 3 * server - 1}}));
}

// ---- in systems
// -------------------------------------------------------------------------------------------------------

struct Written {
  double seconds = 0;
  ExtentSums sums;
  StationSums stations;
};

/// A phase of the workload of `nodes` nodes with one rank each; each write takes 1 ms with the lock, which is handed
/// over in 10 ms.
Written run(const std::string& lock, const std::string& workload, const std::string& phase, uint32_t nodes,
            std::vector<std::string> settings, const std::string& visit = "lock: l", const std::string& more = "")
{
  const auto file = std::filesystem::temp_directory_path() / ("iocast-extent-" + std::to_string(getpid()) + ".yaml");
  std::ofstream(file)
      << "schema_version: 1\nstations: {s: {servers: 1000}, d: {count: 4, spread: stripe, stripe_size: 1MiB}}\n"
      << "locks: {l: {per: object, hand_over: 10ms, " << lock << "}}\n"
      << more
      << "operations: {create: {open: []}, append: {open: []}, read: {open: []}, readdir: [], unlink: [], stat: [], "
         "open: [], fsync: [], close: [],\n"
      << "  pwrite: [{station: s, demand: 1ms, " << visit
      << "}], pread: [{station: s, demand: 1ms, lock_mode: shared, lock: l}]}\n";
  const auto platform = open_platform(file.string());
  std::filesystem::remove(file);
  const Placement placement{nodes, 1};
  const auto pattern = open_workload(workload, settings).make(placement);
  Written outcome;
  ExtentSums before;
  System system(platform, *pattern, placement, {}, [&](const FinishedPhase& finished) {
    const ExtentSums sums = finished.extents.empty() ? ExtentSums{} : finished.extents.at(0);
    if (pattern->phases()[finished.number].name == phase)
      outcome = {
          finished.end - finished.start,
          {sums.taken - before.taken, sums.kept - before.kept, sums.called_back - before.called_back, sums.ranges},
          finished.stations};
    before = sums;
  });
  system.start();
  system.run();
  EXPECT_TRUE(system.finished());
  return outcome;
}

const std::vector<std::string> four_blocks{"objects=1", "accesses=40", "blocks=1", "access_size=1MiB"};

TEST(ExtentLock, NodesThatAlternateOnOneUnitGoAtTheRateOfHandOvers)
{
  // The four blocks of each access lie in one unit: 1 / (hand-over + service), but that the last of an access is the
  // first of the next one.
  const auto one = run("extent: 1GiB", "probe", "write-shared", 4, four_blocks);
  EXPECT_NEAR(one.seconds, 4 * 40 * 0.001 + 3 * 40 * 0.010, 1e-9);
  // In units of their own each node's access conflicts with none, once none is granted more than it requested.
  const auto own = run("extent: 1MiB, grow: 0B", "probe", "write-shared", 4, four_blocks);
  EXPECT_NEAR(own.seconds, 40 * 0.001, 1e-9);
  EXPECT_EQ(own.sums.called_back, 0U);
}

std::vector<std::string> blocks_of(uint32_t blocks)
{
  return {"tests=write", "block_size=1MiB", fmt::format("per_process={}MiB", blocks)};
}

TEST(ExtentLock, StridedWritesAreHandedOverEachTime)
{
  // Of two nodes each writes what the other one's lock has grown over.
  const auto two = run("extent: 4KiB", "pio-simple-strided", "write", 2, blocks_of(100));
  EXPECT_EQ(two.sums.taken, 200U);
  EXPECT_EQ(two.sums.called_back, 199U);
  EXPECT_NEAR(two.seconds, 0.001 + 199 * 0.011, 1e-9);
  // Of more, those who wait are served together when the one whose lock has no end is done: all but that one.
  const auto four = run("extent: 4KiB", "pio-simple-strided", "write", 4, blocks_of(99));
  EXPECT_EQ(four.sums.called_back, 4 * 99 - 1U);
  EXPECT_NEAR(four.seconds, 0.001 + (4 * 99 - 1 + 1) / 3 * 0.011, 1e-9);
  // In one unit each waits for the one before.
  const auto coarse = run("extent: 1GiB", "pio-simple-strided", "write", 4, blocks_of(100));
  EXPECT_EQ(coarse.sums.called_back, 4 * 100 - 1U);
  EXPECT_NEAR(coarse.seconds, 0.001 + (4 * 100 - 1) * 0.011, 1e-9);
}

TEST(ExtentLock, SegmentsAreHandedOverOnce)
{
  for (const uint32_t nodes : {2U, 7U, 32U}) {
    const auto seen = run("extent: 4KiB", "pio-sequential", "write", nodes, blocks_of(64));
    EXPECT_EQ(seen.sums.called_back, nodes - 1);
    EXPECT_EQ(seen.sums.kept, nodes * 64U - nodes);
    EXPECT_EQ(seen.sums.ranges, nodes);
    // All wait for the first write, which has all of the file, and then take it from there together.
    EXPECT_NEAR(seen.seconds, 0.001 + 0.010 + 64 * 0.001, 1e-9);
  }
}

TEST(ExtentLock, EachServerHandsItsPartOver)
{
  // Blocks of 4 MiB lie at all four servers, each of which the other node had the lock of.
  const auto seen = run("extent: 4KiB, station: d", "pio-simple-strided", "write", 2,
                        {"tests=write", "block_size=4MiB", "per_process=40MiB"});
  EXPECT_EQ(seen.sums.taken, 4 * 20U);
  EXPECT_EQ(seen.sums.called_back, 4 * 19U);
  EXPECT_NEAR(seen.seconds, 0.001 + 19 * 0.041, 1e-9);
  // A block of one stripe needs one server's; two nodes have two servers each and never meet.
  const auto apart = run("extent: 4KiB, station: d", "pio-simple-strided", "write", 2, blocks_of(10));
  EXPECT_EQ(apart.sums.called_back, 0U);
  EXPECT_NEAR(apart.seconds, 10 * 0.001, 1e-9);
}

TEST(ExtentLock, WhoCallsBackGoesThroughStepsOfItsOwn)
{
  const auto seen = run("extent: 4KiB", "pio-simple-strided", "write", 2, blocks_of(100),
                        "lock: l, recall: [{station: d, demand: 5ms}]");
  uint64_t visits = 0;
  for (const auto& kind : seen.stations.at(1))
    visits += kind.visits;
  EXPECT_EQ(visits, seen.sums.called_back);
  EXPECT_EQ(seen.sums.called_back, 199U);
  // So does who calls a whole object's lock back.
  const auto object =
      run("", "pio-simple-strided", "write", 2, blocks_of(100), "lock: l, recall: [{station: d, demand: 5ms}]");
  EXPECT_EQ(object.stations.at(1)[static_cast<size_t>(OpKind::pwrite)].visits, 199U);
  // The lock is free meanwhile: a node's next access comes 5 ms later, and has been waited for by nobody.
  EXPECT_NEAR(seen.seconds, 0.001 + 199 * 0.016, 199 * 0.005);
}

TEST(ExtentLock, AreAsIfNeverRequestedInAFailure)
{
  // The only server is away from 20 ms on for 100 ms: the request in service is sent again, and its node has the lock
  // by then.
  const auto seen = run("extent: 4KiB", "pio-simple-strided", "write", 2, blocks_of(100), "lock: l",
                        "failures: {f: {station: s, at: 20ms, length: 100ms}}\n");
  EXPECT_EQ(seen.sums.taken, 200 + 1U); // the other one waited for it
  EXPECT_NEAR(seen.seconds, 0.001 + 199 * 0.011 + 0.100, 0.020);
}

} // namespace
} // namespace iocast::ranges
