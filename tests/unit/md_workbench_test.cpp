// SPDX-License-Identifier: Apache-2.0
#include "input/error.hpp"
#include "tests/contract/streams.hpp"
#include "workload/workload.hpp"

#include <gtest/gtest.h>

namespace iocast {
namespace {

TEST(MdWorkbench, StreamOfOneRankByHand)
{
  // N = 3, D = 1, P = 2, I = 1, O = 1: rank 0 reads from (0 - 1) mod 3 = 2 and writes to 1 (Figure 3 of the paper).
  const auto pattern =
      open_workload("md-workbench", {"datasets=1", "objects=2", "iterations=1", "object_size=5B"}).make({3, 3});
  const std::vector<Op> expected{{OpKind::phase, 0, 0},     {OpKind::mkdir, 0, 0, 0},  {OpKind::create, 0, 0, 5},
                                 {OpKind::create, 0, 1, 5}, {OpKind::phase, 0, 1, 0},  {OpKind::stat, 2, 0, 5},
                                 {OpKind::read, 2, 0, 5},   {OpKind::unlink, 2, 0, 0}, {OpKind::create, 1, 2, 5},
                                 {OpKind::phase, 0, 2, 0},  {OpKind::unlink, 0, 1, 0}, {OpKind::unlink, 0, 2, 0},
                                 {OpKind::rmdir, 0, 0, 0}};
  EXPECT_EQ(stream_of(*pattern, 0), expected);
  char name[64];
  EXPECT_EQ(std::string(name, pattern->name_dataset(2, name)), "2_0");
  EXPECT_EQ(std::string(name, pattern->name_object(2, name)), "file-2");
}

TEST(MdWorkbench, FootprintCountsWhatTheStreamsDo)
{
  for (const char* more :
       {"repeats=1", "repeats=3", "read_only=true", "start_index=7", "phases=benchmark", "phases=precreate,cleanup"})
    for (uint32_t ranks : {1U, 2U, 7U}) {
      const auto pattern =
          open_workload("md-workbench", {"datasets=3", "objects=5", "iterations=4", more}).make({ranks, ranks});
      std::map<OpKind, uint64_t> counted;
      for (uint32_t rank = 0; rank < ranks; ++rank)
        for (const auto& op : stream_of(*pattern, rank))
          ++counted[op.kind];
      for (const auto& [kind, count] : pattern->footprint().operations)
        EXPECT_EQ(counted[kind], count) << more << " " << ranks << " " << name_of(kind);
    }
}

TEST(MdWorkbench, WarnsOfCachedReads)
{
  auto warnings = [](uint32_t ranks, uint32_t per_node, const std::string& setting) {
    return open_workload("md-workbench", {"datasets=10", "objects=10", "iterations=10", setting})
        .make({ranks, per_node})
        ->warnings();
  };
  EXPECT_EQ(warnings(1, 1, "offset=1").size(), 1U);
  EXPECT_EQ(warnings(1, 1, "offset=1")[0].substr(0, 5), "100 %");
  EXPECT_TRUE(warnings(64, 1, "offset=1").empty());
  EXPECT_EQ(warnings(160, 10, "offset=1").size(), 1U);
  EXPECT_EQ(warnings(160, 10, "offset=1")[0].substr(0, 4), "45 %"); // 16 nodes of 10: peers' measured share
  EXPECT_TRUE(warnings(640, 10, "node_offset=1").empty());
}

TEST(MdWorkbench, AfterACutAllGoOnToWhereTheFurthestCame)
{
  const std::vector<std::string> settings{"datasets=2", "objects=5", "iterations=5", "repeats=2", "start_index=3"};
  const auto with = [&](const std::string& more) {
    auto all = settings;
    all.push_back(more);
    return open_workload("md-workbench", all).make({3, 3});
  };
  const auto pattern = with("most_seconds=1s");
  // An iteration is stat, read, unlink and create in each of two datasets: one rank is in the second one, another has
  // read but not removed.
  const auto run = whole_run(*pattern, 3, false, [](size_t phase, uint32_t rank) {
    return phase == 1 ? std::vector<uint64_t>{2, 9, 1}[rank] : Streams::unlimited;
  });
  expect_rules_kept(*pattern, run);
  const auto whole = whole_run(*with("most_seconds=0s"), 3, false);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    auto first = run[1][rank];
    first.insert(first.end(), run[2][rank].begin(), run[2][rank].end());
    EXPECT_EQ(first,
              std::vector<Op>(whole[1][rank].begin(), whole[1][rank].begin() + 16)); // two iterations, nothing twice
    EXPECT_EQ(run[3][rank].size(), 40U);
    EXPECT_EQ(run[3][rank].front().object, 5U);
    EXPECT_TRUE(run[4][rank].empty());
    EXPECT_EQ(run[5][rank].front().object, 10U);
  }
  EXPECT_EQ(pattern->position_after(4), nlohmann::ordered_json({{"start_index", 10}}));
  // What never changes needs no rest.
  const auto read_only = open_workload("md-workbench", {"read_only=true", "most_seconds=1s"}).make({3, 3});
  EXPECT_EQ(read_only->phases().size(), 3U);
  EXPECT_EQ(read_only->phases()[1].most_seconds, 1);
}

TEST(MdWorkbench, RefusesToReadWhatNobodyMadeYet)
{
  EXPECT_THROW(open_workload("md-workbench", {"objects=5", "iterations=6"}).make({1, 1}), InputError);
  EXPECT_THROW(open_workload("md-workbench", {"phases=cleanup,precreate"}).make({1, 1}), InputError);
  EXPECT_THROW(open_workload("md-workbench", {"offset=5"}).make({4, 2}), InputError);
  EXPECT_THROW(open_workload("md-workbench", {"node_offset=3"}).make({4, 2}), InputError);
  EXPECT_NO_THROW(open_workload("md-workbench", {"objects=3000000000", "iterations=3000000000", "repeats=2"})
                      .make({1, 1})); // but not with a time limit
  EXPECT_THROW(
      open_workload("md-workbench", {"objects=3000000000", "iterations=3000000000", "repeats=2", "most_seconds=1s"})
          .make({1, 1}),
      InputError);
  EXPECT_NO_THROW(open_workload("md-workbench", {"offset=4"}).make({4, 2}));
  EXPECT_THROW(make_placement(0, 1), InputError);
}

} // namespace
} // namespace iocast
