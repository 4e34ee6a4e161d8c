// SPDX-License-Identifier: Apache-2.0
//
// postmark, operation-mix and mix as generators.
#include "input/error.hpp"
#include "tests/contract/streams.hpp"
#include "tests/unit/sharpness.hpp"
#include "workload/size_law.hpp"
#include "workload/workload.hpp"

#include <cmath>
#include <ctime>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sstream>

namespace iocast {
namespace {

using Settings = std::vector<std::string>;

TEST(PostMark, StreamOfOneRankByHand)
{
  // One file of exactly 3 bytes, read in blocks of 2, then nothing changes: bias_create = -1.
  const auto pattern = open_workload("postmark", {"number=1", "transactions=1", "size_low=3B", "size_high=3B",
                                                  "read=2B", "write=0B", "bias_read=10", "bias_create=-1"})
                           .make({2, 2});
  std::vector<Op> expected{{OpKind::phase, 0, 0},       {OpKind::mkdir, 1, 0}, {OpKind::create, 1, 0, 3},
                           {OpKind::phase, 0, 1},       {OpKind::open, 1, 0},  {OpKind::pread, 1, 0, 2, 0},
                           {OpKind::pread, 1, 0, 1, 2}, {OpKind::close, 1, 0}, {OpKind::phase, 0, 2},
                           {OpKind::unlink, 1, 0},      {OpKind::rmdir, 1, 0}};
  EXPECT_EQ(stream_of(*pattern, 1), expected);
}

TEST(PostMark, WithoutABiasSaysSo)
{
  EXPECT_EQ(open_workload("postmark", {"bias_create=-1"}).to_json()["parameters"]["bias_create"].dump(), "-1");
}

TEST(PostMark, WritesInBlocksAndDirectories)
{
  const auto pattern = open_workload("postmark", {"number=1", "transactions=0", "size_low=5B", "size_high=5B",
                                                  "write=4B", "subdirectories=2"})
                           .make({1, 1});
  const auto ops = stream_of(*pattern, 0);
  ASSERT_EQ(ops.size(), 1 + 3 + 4 + 1 + 1 + 1 + 3U);
  const uint64_t where = ops[4].dataset; // 1 or 2, by chance
  char name[64];
  EXPECT_EQ(std::string(name, pattern->name_dataset(where, name)), where == 1 ? "0/s0" : "0/s1");
  EXPECT_EQ(std::string(name, pattern->name_dataset(0, name)), "0");
  Op open(OpKind::open, where, 0);
  open.flags = for_writing | make_it;
  EXPECT_EQ(ops[4], open);
  EXPECT_EQ(ops[5], Op(OpKind::pwrite, where, 0, 4, 0));
  EXPECT_EQ(ops[6], Op(OpKind::pwrite, where, 0, 1, 4));
  EXPECT_EQ(ops[7], Op(OpKind::close, where, 0));
  EXPECT_EQ(ops.back(), Op(OpKind::rmdir, 0, 0));
}

TEST(PostMark, BiasesAreShares)
{
  const auto pattern = open_workload("postmark", {"number=500", "transactions=20000", "bias_read=7", "bias_create=5",
                                                  "read=0B", "write=0B"})
                           .make({1, 1});
  std::map<OpKind, double> counted;
  for (const auto& op : stream_of(*pattern, 0))
    ++counted[op.kind];
  // Binomial, 5 standard deviations: one false alarm in two million.
  expect_within("reads of 20000", counted[OpKind::read], 14000, 5, std::sqrt(20000 * 0.7 * 0.3));
  expect_within("creates of 20000", counted[OpKind::create], 500 + 10000, 5, std::sqrt(20000 * 0.25));
  EXPECT_EQ(counted[OpKind::unlink], counted[OpKind::create]);
}

TEST(PostMark, SizesAndAppendsStayBelowTheHighBound)
{
  const auto pattern = open_workload("postmark", {"number=20", "transactions=5000", "size_low=10B", "size_high=20B",
                                                  "read=0B", "write=0B"})
                           .make({1, 1});
  std::map<uint64_t, uint64_t> size_of;
  std::set<uint64_t> new_sizes;
  for (const auto& op : stream_of(*pattern, 0))
    if (op.kind == OpKind::create) {
      size_of[op.object] = op.size;
      new_sizes.insert(op.size);
    } else if (op.kind == OpKind::append) {
      EXPECT_GE(op.size, 1U);
      size_of[op.object] += op.size;
      EXPECT_LE(size_of[op.object], 20U);
    } else if (op.kind == OpKind::read) {
      EXPECT_EQ(op.size, size_of[op.object]);
    }
  EXPECT_EQ(*new_sizes.begin(), 10U);
  EXPECT_EQ(*new_sizes.rbegin(), 19U);
}

TEST(PostMark, EndsWhenItHasNoFiles)
{
  const auto pattern =
      open_workload("postmark", {"number=3", "transactions=100", "bias_create=0", "bias_read=-1"}).make({1, 1});
  expect_rules_kept(*pattern, 1);
  EXPECT_EQ(pattern->warnings().size(), 1U);
}

TEST(PoolPattern, StreamsKeepTheirPromises)
{
  for (const char* pattern : {"postmark", "operation-mix", "mix"})
    for (const auto& small : pattern_named(pattern).small)
      for (uint32_t ranks : {1U, 2U, 3U, 8U}) {
        Settings settings;
        std::istringstream words(small);
        for (std::string word; words >> word;)
          settings.push_back(word);
        SCOPED_TRACE(std::string(pattern) + " " + small + " on " + std::to_string(ranks));
        expect_rules_kept(*open_workload(pattern, settings).make({ranks, 2}), ranks);
      }
}

TEST(PoolPattern, ALaterRunFindsWhatAnEarlierOneLeft)
{
  for (const char* name : {"postmark", "operation-mix"}) {
    const Settings small = name == std::string("postmark")
                               ? Settings{"number=9", "transactions=25", "repeats=2", "subdirectories=2"}
                               : Settings{"files=9", "operations=25", "repeats=2", "directories=2"};
    auto run             = [&](const std::string& more, const std::string& start) {
      auto settings = small;
      settings.insert(settings.end(), {"phases=" + more, "start=" + start});
      auto ops = stream_of(*open_workload(name, settings).make({3, 3}), 1);
      std::erase_if(ops, [](const Op& op) { return op.kind == OpKind::phase; });
      return ops;
    };
    auto whole       = run("precreate,benchmark,cleanup", "0");
    auto apart       = run("precreate", "0");
    const auto used  = run("benchmark", "0");
    const auto again = run("benchmark", "50");
    EXPECT_EQ(open_workload(name, small).make({3, 3})->position_after(2)["start"], 50);
    EXPECT_EQ(whole.size(), apart.size() + used.size() + run("cleanup", "50").size());
    apart.insert(apart.end(), used.begin(), used.end());
    EXPECT_TRUE(std::equal(apart.begin(), apart.end(), whole.begin())) << name;
    EXPECT_NE(again, used) << name;
  }
  EXPECT_THROW(open_workload("postmark", {"start=5"}).make({1, 1}), InputError);
}

TEST(PoolPattern, SeedsAndRanksDiffer)
{
  auto ops = [](const std::string& seed, uint32_t rank) {
    auto stream = stream_of(*open_workload("operation-mix", {"files=10", "operations=50", seed}).make({2, 2}), rank);
    for (auto& op : stream)
      op.dataset = 0;
    return stream;
  };
  EXPECT_EQ(ops("seed=1", 0), ops("seed=1", 0));
  EXPECT_NE(ops("seed=1", 0), ops("seed=2", 0));
  EXPECT_NE(ops("seed=1", 0), ops("seed=1", 1));
}

TEST(PoolPattern, LargeFootprintsAreEstimates)
{
  const Settings settings{"files=100", "operations=1000"};
  const auto few         = open_workload("operation-mix", settings).make({1000, 10})->footprint();
  const auto hundredfold = open_workload("operation-mix", settings)
                               .make({100000, 10})
                               ->footprint(); // 1.2e8 steps, of which 4e6 are looked at
  for (size_t i = 0; i < few.operations.size(); ++i)
    EXPECT_NEAR(static_cast<double>(hundredfold.operations[i].second),
                100.0 * static_cast<double>(few.operations[i].second),
                0.01 * static_cast<double>(hundredfold.operations[i].second));
}

TEST(OperationMix, DrawsByWeights)
{
  const auto pattern = open_workload("operation-mix", {"files=1000", "operations=20000", "stat=5", "read=3", "append=1",
                                                       "create=0.5", "unlink=0.5", "phases=benchmark"})
                           .make({1, 1});
  std::map<OpKind, double> counted;
  for (const auto& op : stream_of(*pattern, 0))
    ++counted[op.kind];
  for (const auto& [kind, share] : std::map<OpKind, double>{{OpKind::stat, 0.5},
                                                            {OpKind::read, 0.3},
                                                            {OpKind::append, 0.1},
                                                            {OpKind::create, 0.05},
                                                            {OpKind::unlink, 0.05}})
    expect_within(std::string(name_of(kind)), counted[kind], 20000 * share, 5, std::sqrt(20000 * share * (1 - share)));
  EXPECT_THROW(open_workload("operation-mix", {"stat=0", "read=0", "append=0", "create=0", "unlink=0"}).make({1, 1}),
               InputError);
}

TEST(OperationMix, ThePoolStaysBetweenHalfAndTwice)
{
  for (const char* weight : {"create=100", "unlink=100"}) {
    const auto pattern =
        open_workload("operation-mix", {"files=10", "operations=2000", weight, "phases=precreate,benchmark"})
            .make({1, 1});
    int files = 0;
    for (const auto& op : stream_of(*pattern, 0)) {
      files += op.kind == OpKind::create ? 1 : op.kind == OpKind::unlink ? -1 : 0;
      EXPECT_LE(files, 20);
    }
    EXPECT_GE(files, 5);
  }
}

TEST(SizeLaw, IsWhatItSays)
{
  const auto lognormal = SizeLaw::lognormal(4096, 2, 1e6);
  EXPECT_EQ(lognormal.at(0.5), 4096U);
  EXPECT_NEAR(static_cast<double>(lognormal.at(0.8413447460685429)), 4096 * std::exp(2.0), 3); // one standard deviation
  EXPECT_EQ(lognormal.at(1 - 1e-10), 1'000'000U);
  const auto table = SizeLaw::table("0:0B,0.5:99B,1:9999B");
  EXPECT_EQ(table.at(1e-9), 0U);
  EXPECT_EQ(table.at(0.5), 99U);
  EXPECT_EQ(table.at(0.25), 9U); // sqrt(1 x 100) - 1
  EXPECT_EQ(table.at(0.75), 999U);
  for (const char* bad : {"0:1B", "0.1:1B,1:2B", "0:2B,1:1B", "0:1,1:2", "0:1B;1:2B"})
    EXPECT_THROW(SizeLaw::table(bad), InputError) << bad;
}

TEST(Arrivals, NoPatternHasParametersOfTheirNames)
{
  for (const auto& entry : patterns()) {
    std::set<std::string> names;
    for (const auto& parameter : entry.parameters)
      EXPECT_TRUE(names.insert(parameter.name).second) << entry.name << " " << parameter.name;
  }
}

TEST(Arrivals, GapsFollowTheirLaws)
{
  Arrivals arrivals;
  arrivals.rate = 200;
  double sum = 0, squares = 0;
  for (uint64_t i = 0; i < 20000; ++i) {
    const double gap = static_cast<double>(arrivals.gap_ns(1, 3, i, i == 0)) * 1e-9;
    sum += gap;
    squares += gap * gap;
  }
  // Mean and second moment of an exponential law, within 5 standard deviations.
  expect_within("mean gap in seconds", sum / 20000, 0.005, 5, 0.005 / std::sqrt(20000.0));
  const double second = 0.005 * 0.005;
  expect_within("second moment of gaps", squares / 20000, 2 * second, 5, std::sqrt(20.0 / 20000) * second);
  EXPECT_EQ(arrivals.gap_ns(1, 3, 7, false), arrivals.gap_ns(1, 3, 7, true));
  EXPECT_NE(arrivals.gap_ns(1, 3, 7, false), arrivals.gap_ns(1, 4, 7, false));
  arrivals.gap = Arrivals::Law::fixed;
  EXPECT_EQ(arrivals.gap_ns(1, 3, 7, false), 5'000'000);
  EXPECT_LT(arrivals.gap_ns(1, 3, 0, true), 5'000'000);
  arrivals                = {};
  arrivals.waiting_factor = 3;
  EXPECT_EQ(arrivals.think_seconds(0.5, 0, 0, 0), 1.5);
  arrivals.think_time = 0.25;
  EXPECT_EQ(arrivals.think_seconds(0.5, 0, 0, 0), 1.75);
}

TEST(Mix, SharesRanks)
{
  auto members = [](uint32_t ranks, const Settings& more) {
    Settings settings{"a.workload=md-workbench", "b.workload=postmark", "c.workload=operation-mix"};
    settings.insert(settings.end(), more.begin(), more.end());
    const auto set = open_workload("mix", settings).make({ranks, 4})->data_set();
    std::vector<int> counts;
    for (const char* name : {"a", "b", "c"})
      counts.push_back(set.contains(name) ? set[name]["ranks"].get<int>() : 0);
    return counts;
  };
  EXPECT_EQ(members(9, {}), (std::vector{3, 3, 3}));
  EXPECT_EQ(members(10, {"a.share=8"}), (std::vector{8, 1, 1}));
  EXPECT_EQ(members(10, {"a.share=2", "b.ranks=6"}), (std::vector{3, 6, 1}));
  EXPECT_EQ(members(3, {"a.share=100"}), (std::vector{1, 1, 1}));
  EXPECT_EQ(members(2, {"b.share=100", "c.share=2"})[1], 2); // too few for all
  EXPECT_THROW(members(4, {"a.ranks=5"}), InputError);
  EXPECT_THROW(members(4, {"a.ranks=1", "b.ranks=1", "c.ranks=1"}), InputError);
  EXPECT_THROW(members(4, {"a.ranks=1", "a.share=1"}), InputError);
  EXPECT_THROW(members(4, {"a.objcts=1"}), InputError);
  EXPECT_THROW(open_workload("mix", {}).make({1, 1}), InputError);
  EXPECT_THROW(open_workload("md-workbench", {"a.objects=1"}), InputError);
}

TEST(Mix, MembersKeepTheirStreamsAndArrivals)
{
  const Settings small{"a.workload=md-workbench", "a.datasets=1", "a.objects=3",   "a.iterations=2",
                       "b.workload=postmark",     "b.rate=50/s",  "think_time=1ms"};
  const auto mix   = open_workload("mix", small).make({4, 2});
  const auto alone = open_workload("md-workbench", {"datasets=1", "objects=3", "iterations=2"}).make({2, 2});
  std::vector<OpKind> expected{OpKind::phase, OpKind::mkdir}, kinds; // rank 0 makes the member's directory
  for (const auto& op : stream_of(*alone, 0))
    expected.push_back(op.kind);
  expected.insert(expected.end(), {OpKind::phase, OpKind::rmdir});
  for (const auto& op : stream_of(*mix, 0))
    kinds.push_back(op.kind);
  EXPECT_EQ(kinds, expected);
  EXPECT_EQ(mix->phases().front().name, "setup");
  EXPECT_EQ(mix->phases()[2].name, "benchmark");
  EXPECT_EQ(mix->arrivals_of(0).think_time, 1e-3); // the mix's own
  EXPECT_EQ(mix->arrivals_of(3).rate, 50);
  EXPECT_EQ(mix->arrivals_of(3).think_time, 0);
  char name[64];
  const auto ops = stream_of(*mix, 1);
  EXPECT_EQ(std::string(name, mix->name_dataset(ops[2].dataset, name)), "a/1_0");
  EXPECT_EQ(std::string(name, mix->name_object_in(ops[3].dataset, ops[3].object, name)), "file-0");
  EXPECT_EQ(mix->position_after(2)["a.start_index"], "2");
}

/// Of the ranks 0, 2, ..., one of each member.
std::vector<std::string> streams_of(const std::string& workload, const Settings& settings, uint64_t seed,
                                    uint32_t ranks)
{
  const auto pattern = open_workload(workload, settings, seed).make({ranks, ranks});
  std::vector<std::string> streams;
  for (uint32_t rank = 0; rank < ranks; rank += 2) {
    streams.emplace_back();
    for (const auto& op : stream_of(*pattern, rank)) // not the dataset, which names the member
      streams.back() += fmt::format("{} {} {};", static_cast<int>(op.kind), op.object, op.size);
  }
  return streams;
}

TEST(Mix, MembersDrawDifferentNumbers)
{
  const Settings twins{"a.workload=operation-mix", "a.operations=50", "b.workload=operation-mix", "b.operations=50"};
  const auto streams = streams_of("mix", twins, 1, 4);
  EXPECT_NE(streams[0].substr(streams[0].size() / 2), streams[1].substr(streams[1].size() / 2));
  EXPECT_EQ(streams, streams_of("mix", twins, 1, 4));
  EXPECT_NE(streams, streams_of("mix", twins, 2, 4));
  auto same = twins;
  same.insert(same.end(), {"a.seed=5", "b.seed=5"});
  EXPECT_EQ(streams_of("mix", same, 1, 4), streams_of("mix", same, 2, 4));
}

TEST(Patterns, TheSeedOfTheRunIsThatOfWhatIsDrawn)
{
  for (const char* name : {"operation-mix", "postmark", "source-tree"}) {
    const Settings settings = name == std::string("postmark") ? Settings{"number=20", "transactions=50"}
                              : name == std::string("source-tree")
                                  ? Settings{"shape=grown", "files=40", "directories=10", "sources=10"}
                                  : Settings{"operations=50"};
    EXPECT_EQ(streams_of(name, settings, 7, 1), streams_of(name, settings, 7, 1)) << name;
    EXPECT_NE(streams_of(name, settings, 7, 1), streams_of(name, settings, 8, 1)) << name;
    auto set = settings;
    set.emplace_back("seed=7");
    EXPECT_EQ(streams_of(name, set, 8, 1), streams_of(name, settings, 7, 1)) << name;
  }
  EXPECT_NE(streams_of("operation-mix", {}, UINT64_MAX, 1), streams_of("operation-mix", {}, UINT64_MAX - 1, 1));
}

TEST(Mix, LayoutsPlaceRanks)
{
  for (const char* layout : {"blocks", "interleaved"}) {
    const auto mix = open_workload("mix", {"layout=" + std::string(layout), "a.workload=md-workbench", "a.share=3",
                                           "b.workload=postmark", "b.rate=1/s"})
                         .make({64, 8});
    for (uint32_t node = 0; node < 8; ++node) {
      int of_b = 0;
      for (uint32_t rank = 8 * node; rank < 8 * (node + 1); ++rank)
        of_b += mix->arrivals_of(rank).is_open();
      EXPECT_EQ(of_b, layout == std::string("interleaved") ? 2 : node < 6 ? 0 : 8) << layout << " node " << node;
    }
  }
}

#ifdef NDEBUG // the rate is promised of optimised builds alone
double million_ops_a_second(const Pattern& pattern, uint32_t ranks)
{
  const auto start = std::clock(); // of the processor's time: others may use it too
  uint64_t count   = 0;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    Cursor cursor;
    cursor.rank = rank;
    for (Op op; pattern.next(cursor, op);)
      ++count;
  }
  return static_cast<double>(count) * 1e-6 / (static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
}

TEST(PoolPattern, StreamsAreFast)
{
  // Half of the promised rate, as others use the caches too; the figures are printed.
  const std::map<std::string, Settings> timed{{"postmark", {"transactions=500000"}},
                                              {"operation-mix", {"operations=1000000"}},
                                              {"mix",
                                               {"a.workload=md-workbench", "a.objects=20000", "a.iterations=20000",
                                                "b.workload=postmark", "b.transactions=300000"}}};
  for (const auto& [name, settings] : timed) {
    const auto pattern = open_workload(name, settings).make({2, 2});
    const double rate  = million_ops_a_second(*pattern, 2);
    printf("%s: %.1f million operations a second\n", name.c_str(), rate);
    EXPECT_GT(rate, 2.5) << name;
  }
}
#endif

} // namespace
} // namespace iocast
