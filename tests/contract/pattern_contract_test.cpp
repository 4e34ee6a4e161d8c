// SPDX-License-Identifier: Apache-2.0
//
// What every pattern must keep to, on the small settings that it names and on those of the catalogue's workloads; new
// ones are covered at once. One of them alone: iocast-contract-tests --gtest_filter='*/NAME_*'
#include "input/error.hpp"
#include "tests/contract/streams.hpp"
#include "workload/random.hpp"
#include "workload/workload.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <map>
#include <numeric>
#include <tuple>

namespace iocast {
namespace {

struct Case {
  std::string workload;
  size_t number;
  std::string settings;

  friend void PrintTo(const Case& tested, std::ostream* out) { *out << tested.settings; }
};

std::vector<Case> cases()
{
  std::vector<std::string> names;
  for (const auto& entry : patterns())
    names.push_back(entry.name);
  for (const auto& entry : catalogue())
    if (std::find(names.begin(), names.end(), entry.name) == names.end())
      names.push_back(entry.name);
  std::vector<Case> result;
  for (const auto& name : names) {
    const auto small = open_workload(name, {}).small;
    for (size_t number = 0; number < small.size(); ++number)
      result.push_back({name, number, small[number]});
    if (small.empty())
      result.push_back({name, 0, "?"});
  }
  return result;
}

class PatternContract : public testing::TestWithParam<Case> {
protected:
  std::unique_ptr<Pattern> make(uint32_t ranks) const
  {
    const auto workload = open_workload(GetParam().workload, words(GetParam().settings));
    return workload.make({ranks, std::max(1U, ranks / 2)});
  }
};

constexpr uint32_t rank_counts[] = {1, 2, 3, 8, 16};

TEST_P(PatternContract, NamesSmallSettings)
{
  EXPECT_NE(GetParam().settings, "?") << "the workload names no small settings for tests";
}

TEST_P(PatternContract, TouchesOnlyWhatExistsAndLeavesNothing)
{
  for (const uint32_t ranks : rank_counts) {
    SCOPED_TRACE(fmt::format("{} ranks", ranks));
    const auto pattern = make(ranks);
    const auto storage = expect_rules_kept(*pattern, ranks);
    ASSERT_FALSE(HasFailure()) << GetParam().workload << " " << GetParam().settings;
    EXPECT_LT(storage.thought_ns / ranks, 5'000'000'000) << "small settings end in a moment";
    EXPECT_LT(std::accumulate(storage.counts.begin(), storage.counts.end(), uint64_t{0}), 2'000'000U)
        << "small settings end in a moment";
    const auto run = whole_run(*pattern, ranks, true);
    for (const auto& phase : run)
      for (const auto& ops : phase)
        EXPECT_LE(std::any_of(ops.begin(), ops.end(),
                              [](const Op& op) { return op.kind != OpKind::think && (op.flags & collective); }),
                  pattern->footprint().collective);
    // It may serve the ranks in any order, and again.
    EXPECT_EQ(run, whole_run(*pattern, ranks, false)) << "the streams depend on the order in which ranks ask";
    EXPECT_EQ(run, whole_run(*make(ranks), ranks, true)) << "the streams are not the same each time";
  }
}

TEST_P(PatternContract, WhatIsSeenOnceIsNotSeenAgain)
{
  for (const uint32_t ranks : rank_counts) {
    const auto pattern = make(ranks);
    std::map<std::tuple<OpKind, uint64_t, uint64_t, bool>, int> seen;
    for (const auto& phase : whole_run(*pattern, ranks, true))
      for (const auto& ops : phase)
        for (const auto& op : ops) {
          if (op.kind == OpKind::create || op.kind == OpKind::unlink)
            for (size_t kind = 1; kind < op_count; ++kind)
              seen.erase({static_cast<OpKind>(kind), op.dataset, op.object, false});
          if (op.kind == OpKind::think || pattern->repeats(op.kind))
            continue;
          const bool is_dataset = (op.flags & whole) != 0;
          ASSERT_EQ((++seen[{op.kind, op.dataset, op.object, is_dataset}]), 1)
              << GetParam().workload << " with " << ranks << " ranks: " << line(*pattern, op);
        }
  }
}

TEST_P(PatternContract, StretchesAreWhatWouldHaveCome)
{
  for (const uint32_t ranks : {1U, 3U, 16U}) {
    const auto pattern = make(ranks);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const auto plain = stream_of(*pattern, rank);
      std::vector<Op> ops;
      Cursor cursor;
      cursor.rank = rank;
      for (Op op; pattern->next(cursor, op);) {
        ops.push_back(op);
        if (op.kind != OpKind::pwrite && op.kind != OpKind::pread)
          continue;
        const uint32_t most = random_words(1, Stream::content, rank, ops.size())[0] % 5;
        const auto stretch  = pattern->stretch(cursor, most);
        ASSERT_LE(stretch.count, most);
        for (uint32_t i = 0; i < stretch.count; ++i) {
          op.offset += stretch.step;
          ops.push_back(op);
        }
      }
      ASSERT_EQ(ops, plain) << "rank " << rank << " of " << ranks;
    }
  }
}

size_t heap_bytes()
{
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

/// What a pattern allocates while all its ranks are on their way.
size_t state_bytes(const Workload& workload, uint32_t ranks)
{
  std::vector<Cursor> cursors(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank)
    cursors[rank].rank = rank;
  const size_t before = heap_bytes();
  const auto pattern  = workload.make({ranks, 8});
  Op op;
  for (int i = 0; i < 40; ++i)
    for (auto& cursor : cursors)
      pattern->next(cursor, op);
  return heap_bytes() - before;
}

TEST_P(PatternContract, RemembersLittleOfEachRank)
{
  // Of a pool of files that were drawn, of other patterns, and of a trace there is more to remember than where a rank
  // stands.
  static const std::array<std::string, 5> not_closed_forms{"postmark", "operation-mix", "mix", "replay", "kv-cache"};
  auto workload = open_workload(GetParam().workload, words(GetParam().settings));
  if (std::find(not_closed_forms.begin(), not_closed_forms.end(), workload.pattern->name) != not_closed_forms.end())
    return;
  constexpr uint32_t few = 64, many = 2064;
  try {
    workload.make({many, 8});
  } catch (const InputError&) { // the setting is too small for this number of ranks
    workload = open_workload(GetParam().workload, {});
  }
  state_bytes(workload, few); // what is allocated once
  const auto of_few  = static_cast<double>(state_bytes(workload, few));
  const auto of_many = static_cast<double>(state_bytes(workload, many));
  EXPECT_LE(sizeof(Cursor) + (of_many - of_few) / (many - few), 128);
}

TEST_P(PatternContract, GoesOnFromWhereACursorIsSetBackTo)
{
  // Who asks for operations forms some ahead, over the end of the phase, and may have to stop before: then the stream
  // goes on from there. Where only a whole stream tells what is to come next, nobody stops before the end of a phase.
  constexpr size_t most_ahead = 40;
  static const std::array<std::string, 4> no_way_back{"postmark", "operation-mix", "replay", "kv-cache"};
  const auto pattern_name = open_workload(GetParam().workload, words(GetParam().settings)).pattern->name;
  for (const uint32_t ranks : {1U, 3U}) {
    const auto pattern = make(ranks);
    if (std::find(no_way_back.begin(), no_way_back.end(), pattern_name) != no_way_back.end()) {
      for (const auto& phase : pattern->phases())
        EXPECT_EQ(phase.most_seconds, 0);
      continue;
    }
    if (pattern_name == "mix" && std::all_of(pattern->phases().begin(), pattern->phases().end(),
                                             [](const Phase& phase) { return phase.most_seconds == 0; }))
      continue; // of members without a way back, perhaps
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const auto expected = stream_of(*pattern, rank);
      Cursor cursor;
      cursor.rank = rank;
      Op op;
      for (size_t number = 0; number < std::min<size_t>(expected.size(), 400); ++number) {
        Cursor ahead = cursor;
        for (size_t i = 0; i < most_ahead && pattern->next(ahead, op); ++i)
          ASSERT_EQ(op, expected[number + i]);
        ASSERT_TRUE(pattern->next(cursor, op));
        ASSERT_EQ(op, expected[number]) << "rank " << rank << ", operation " << number << ", after some ahead of it";
      }
    }
  }
}

TEST_P(PatternContract, CleansUpAfterTimeLimits)
{
  constexpr int trials = 12;
  for (const uint32_t ranks : rank_counts) {
    const auto pattern = make(ranks);
    const auto& phases = pattern->phases();
    if (std::none_of(phases.begin(), phases.end(), [](const Phase& phase) { return phase.most_seconds > 0; }))
      continue;
    const auto footprint = pattern->footprint();
    for (const bool together : {true, false})
      for (int trial = 0; trial < trials; ++trial) {
        const auto where = fmt::format("{} {}, {} ranks that stop {}, trial {}", GetParam().workload,
                                       GetParam().settings, ranks, together ? "together" : "alone", trial);
        try {
          const Phases whole = whole_run(*pattern, ranks, together);
          StorageModel storage(*pattern);
          Streams streams(*pattern, ranks, together);
          for (size_t number = 0; streams.phase(); ++number) {
            std::vector<uint64_t> budget(ranks, Streams::unlimited);
            if (phases[number].most_seconds > 0)
              for (uint32_t rank = 0; rank < ranks; ++rank) {
                const auto word = random_words(trial, Stream::content, rank, number)[0];
                budget[rank]    = 1 + word % (whole[number][rank].size() + 2);
              }
            storage.phase(phases[number].name, streams.take(budget));
          }
          storage.end();
          EXPECT_LE(storage.peak_objects, footprint.peak_objects) << where;
          EXPECT_LE(storage.peak_bytes, footprint.peak_bytes) << where;
          EXPECT_LE(storage.bytes_written, footprint.bytes_written) << where;
        } catch (const Violation& violation) {
          FAIL() << where << ": " << violation.what();
        }
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Workloads, PatternContract, testing::ValuesIn(cases()), [](const auto& tested) {
  std::string name = fmt::format("{}_{}", tested.param.workload, tested.param.number);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

} // namespace
} // namespace iocast
