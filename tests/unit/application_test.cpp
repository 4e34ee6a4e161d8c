// SPDX-License-Identifier: Apache-2.0
#include "input/error.hpp"
#include "tests/unit/access_tally.hpp"
#include "tests/unit/sharpness.hpp"
#include "workload/workload.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <numeric>
#include <sstream>

namespace iocast {
namespace {

/// A workload file that is gone when the test is over.
class File {
public:
  explicit File(const std::string& application, const std::string& parameters = "{}")
  {
    path_ = fmt::format("{}/application-{}.yaml", testing::TempDir(), getpid());
    std::ofstream(path_) << "schema_version: 1\npattern: application\nparameters: " << parameters << "\napplication:\n"
                         << application;
  }
  ~File() { std::filesystem::remove(path_); }

  std::unique_ptr<Pattern> make(const Placement& placement, const std::vector<std::string>& settings = {}) const
  {
    return open_workload(path_, settings).make(placement);
  }
  std::string refusal(const Placement& placement, const std::vector<std::string>& settings = {}) const
  {
    try {
      make(placement, settings);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }

private:
  std::string path_;
};

#define EXPECT_MENTIONS(text, what) EXPECT_NE(std::string(text).find(what), std::string::npos) << (text)

TEST(Application, StreamOfOneRankByHand)
{
  // Two ranks share a file in turn, three blocks of 5 bytes each, written with a sync after each two and read back by
  // the other.
  const auto pattern =
      open_workload("application", {"block_size=5B", "per_process=15B", "layout=strided", "fsync=2", "shift=1"})
          .make({2, 2});
  const std::vector<Op> expected{{OpKind::phase, 0, 0},
                                 {OpKind::phase, 0, 1},
                                 flagged({OpKind::open, 0, 0}, for_writing | make_it),
                                 {OpKind::pwrite, 0, 0, 5, 5},
                                 {OpKind::pwrite, 0, 0, 5, 15},
                                 {OpKind::fsync, 0, 0},
                                 {OpKind::pwrite, 0, 0, 5, 25},
                                 {OpKind::fsync, 0, 0},
                                 {OpKind::close, 0, 0},
                                 {OpKind::phase, 0, 2},
                                 {OpKind::open, 0, 0},
                                 {OpKind::pread, 0, 0, 5, 0},
                                 {OpKind::pread, 0, 0, 5, 10},
                                 {OpKind::pread, 0, 0, 5, 20},
                                 {OpKind::close, 0, 0},
                                 {OpKind::phase, 0, 3},
                                 {OpKind::phase, 0, 4}};
  EXPECT_EQ(stream_of(*pattern, 1), expected);
  const auto first = stream_of(*pattern, 0);
  EXPECT_EQ(first[1], Op(OpKind::mkdir, 0, 0));
  EXPECT_EQ(first[first.size() - 3], Op(OpKind::unlink, 0, 0));
  EXPECT_EQ(first.back(), Op(OpKind::rmdir, 0, 0));
  char name[64];
  EXPECT_EQ(std::string(name, pattern->name_dataset(0, name)), "data");
  EXPECT_EQ(std::string(name, pattern->name_object(17, name)), "file-17");
  std::vector<std::string> names;
  for (const auto& phase : pattern->phases())
    names.push_back(phase.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"precreate-directories", "write", "read", "cleanup", "cleanup-directories"}));
}

TEST(Application, AccessesInARowAreAStretch)
{
  const auto ahead = [](const std::string& order) {
    const auto pattern =
        open_workload("application", {"block_size=1KiB", "per_process=100KiB", "sharing=process", "run=write", order})
            .make({1, 1});
    Cursor cursor;
    for (Op op; pattern->next(cursor, op);)
      if (op.kind == OpKind::pwrite)
        return pattern->stretch(cursor, 63);
    return Stretch{};
  };
  EXPECT_EQ(ahead("order=forward").count, 63u);
  EXPECT_EQ(ahead("order=forward").step, 1024u);
  EXPECT_EQ(ahead("order=random").count, 0u);
}

TEST(Application, AGroupOfPhasesIsRepeatedInTurn)
{
  const File file(R"(
  files: {small: {per: process, directory: each}, big: {per: process, directory: each}}
  phases:
    - repeat: $hours
      phases:
        - {name: small, file: small, operation: write, layout: sequential, size: 3B, requests: 1, repeat: 2}
        - {name: checkpoint, file: big, operation: write, layout: sequential, size: 7B, requests: 1}
)",
                  "{hours: {default: 3, meaning: rounds}}");
  const auto pattern = file.make({2, 2});
  std::vector<std::pair<std::string, uint32_t>> names;
  for (const auto& phase : pattern->phases())
    if (phase.name == "small" || phase.name == "checkpoint")
      names.emplace_back(phase.name, phase.repeat);
  const std::vector<std::pair<std::string, uint32_t>> expected{{"small", 1}, {"small", 2}, {"checkpoint", 1},
                                                               {"small", 3}, {"small", 4}, {"checkpoint", 2},
                                                               {"small", 5}, {"small", 6}, {"checkpoint", 3}};
  EXPECT_EQ(names, expected);
  expect_rules_kept(*pattern, 2);
  EXPECT_NE(file.refusal({2, 2}, {"hours=60000"}), "");
  EXPECT_NE(file.refusal({2, 2}, {"hours=0"}), "");
}

TEST(Application, ReadThenWriteAndItsPreparationByHand)
{
  // Files of 7 bytes are filled by blocks of 4 first; then each block of 3 of its first 6 bytes is read and written
  // back.
  const File file(R"(
  files: {data: {per: process, directory: each}}
  phases:
    - {name: look, file: data, operation: read, layout: sequential, size: 7B, requests: 1}
    - {name: update, file: data, operation: read-then-write, layout: segmented, size: 3B, requests: 2, order: backward,
       think: 2us}
)");
  const auto pattern = file.make({3, 3}, {"fill_block=4B"});
  const std::vector<Op> expected{{OpKind::phase, 0, 0},
                                 {OpKind::mkdir, 2, 0},
                                 {OpKind::phase, 0, 1},
                                 flagged({OpKind::open, 2, 2}, for_writing | make_it),
                                 {OpKind::pwrite, 2, 2, 4, 0},
                                 {OpKind::pwrite, 2, 2, 3, 4},
                                 {OpKind::close, 2, 2},
                                 {OpKind::phase, 0, 2},
                                 {OpKind::open, 2, 2},
                                 {OpKind::pread, 2, 2, 7, 0},
                                 {OpKind::close, 2, 2},
                                 {OpKind::phase, 0, 3},
                                 flagged({OpKind::open, 2, 2}, for_writing),
                                 {OpKind::pread, 2, 2, 3, 3},
                                 {OpKind::pwrite, 2, 2, 3, 3},
                                 {OpKind::think, 0, 0, 2000},
                                 {OpKind::pread, 2, 2, 3, 0},
                                 {OpKind::pwrite, 2, 2, 3, 0},
                                 {OpKind::think, 0, 0, 2000},
                                 {OpKind::close, 2, 2},
                                 {OpKind::phase, 0, 4},
                                 {OpKind::unlink, 2, 2},
                                 {OpKind::phase, 0, 5},
                                 {OpKind::rmdir, 2, 0}};
  EXPECT_EQ(stream_of(*pattern, 2), expected);
}

TEST(Application, TilesAndNestedStridesAreVectors)
{
  // Six processes in 2 rows and 3 columns; tiles of 4 x 6 elements of 10 bytes that overlap by 1 and 2: lines of 4*3 -
  // 2 elements.
  const File tiles(R"(
  files: {data: {per: all, may_overlap: true}}
  phases: [{name: write, file: data, operation: write, layout: tiled, together: all,
            tile: {width: 4, height: 6, element: 10B, overlap_x: 1, overlap_y: 2, rows: 3}}]
)");
  const auto tiled = stream_of(*tiles.make({6, 6}), 4); // row 1, column 1
  EXPECT_EQ(tiled[2], flagged({OpKind::open, 0, 0}, for_writing | make_it | shared));
  EXPECT_EQ(tiled[3], flagged(strided({OpKind::pwrite, 0, 0, 40, (4 * 10 + 3) * 10}, 3, 100), collective));
  EXPECT_EQ(tiled[4], flagged(strided({OpKind::pwrite, 0, 0, 40, (7 * 10 + 3) * 10}, 3, 100), collective));
  EXPECT_EQ(tiled[5], flagged({OpKind::close, 0, 0}, shared));

  const File nested(R"(
  files: {data: {per: all}}
  phases:
    - {name: write, file: data, operation: write, layout: nested-strided, size: 10B, requests: 2, inner: 3,
       grid_rows: 2}
)");
  const auto nest = stream_of(*nested.make({6, 6}), 4);
  // A stripe has two parts of 3 rounds of 3 blocks; process 4 is second in the second part.
  EXPECT_EQ(nest[3], strided({OpKind::pwrite, 0, 0, 10, (9 + 1) * 10}, 3, 30));
  EXPECT_EQ(nest[4], strided({OpKind::pwrite, 0, 0, 10, (18 + 9 + 1) * 10}, 3, 30));
}

/// Offsets of all requests of process q of G, by loops as a programmer would write them.
std::vector<std::pair<uint64_t, uint64_t>> by_loops(const std::string& layout, uint32_t q, uint32_t G, uint64_t n,
                                                    uint64_t B)
{
  std::vector<std::pair<uint64_t, uint64_t>> result;
  uint64_t at = 0;
  if (layout == "sequential")
    for (uint64_t k = 0; k < n; ++k, at += B)
      result.emplace_back(at, B);
  else if (layout == "segmented")
    for (uint32_t process = 0; process < G; ++process)
      for (uint64_t k = 0; k < n; ++k, at += B)
        if (process == q)
          result.emplace_back(at, B);
  if (layout == "strided")
    for (uint64_t stripe = 0; stripe < n / 3; ++stripe) // three in a row
      for (uint32_t process = 0; process < G; ++process)
        for (int in_a_row = 0; in_a_row < 3; ++in_a_row, at += B)
          if (process == q)
            result.emplace_back(at, B);
  if (layout == "nested-strided") { // vectors of three, taken apart
    uint32_t rows = 1;
    for (uint32_t r = 1; r * r <= G; ++r)
      rows = G % r == 0 ? r : rows;
    for (uint64_t stripe = 0; stripe < n; ++stripe)
      for (uint32_t row = 0; row < rows; ++row)
        for (int round = 0; round < 3; ++round)
          for (uint32_t column = 0; column < G / rows; ++column, at += B)
            if (row * (G / rows) + column == q)
              result.emplace_back(at, B);
  }
  return result;
}

TEST(Application, OffsetsAreThoseOfPlainLoops)
{
  for (const std::string layout : {"sequential", "segmented", "strided", "nested-strided"})
    for (const uint32_t ranks : {1U, 2U, 7U, 12U})
      for (const uint32_t rank : {0U, ranks / 2, ranks - 1}) {
        const uint64_t per_process = layout == "nested-strided" ? 4 * 3 * 11 : 6 * 11;
        const auto pattern =
            open_workload("application",
                          {"block_size=11B", fmt::format("per_process={}B", per_process), "layout=" + layout,
                           "inner=" + std::string(layout == "nested-strided" ? "3" : "1"), "in_a_row=3", "run=write"})
                .make({ranks, ranks});
        std::vector<std::pair<uint64_t, uint64_t>> found;
        for (const auto& op : stream_of(*pattern, rank))
          if (op.kind == OpKind::pwrite)
            for (uint32_t block = 0; block < op.count; ++block)
              found.emplace_back(op.offset + block * op.stride, op.size);
        EXPECT_EQ(found, by_loops(layout, rank, ranks, layout == "nested-strided" ? 4 : 6, 11))
            << layout << " " << rank << " of " << ranks;
      }
}

TEST(Application, EveryByteIsWrittenOnce)
{
  for (const char* layout : {"segmented", "strided", "nested-strided inner=2", "random-strided", "mesh"})
    for (const char* order : {"forward", "backward", "random"})
      for (const char* more : {"sharing=all", "sharing=4", "sharing=process files=3", "sharing=all outstanding=3",
                               "sharing=all at_once=2", "files=2 in_turn=true"})
        for (const uint32_t ranks : {1U, 5U, 12U}) {
          SCOPED_TRACE(fmt::format("{} {} {} {}", layout, order, more, ranks));
          const auto pattern =
              open_workload("application",
                            words(fmt::format("layout={} order={} {} block_size=13B per_process=104B run=write", layout,
                                              order, more)))
                  .make({ranks, 4});
          const auto storage = expect_rules_kept(*pattern, ranks);
          const AccessTally accesses(*pattern, ranks);
          EXPECT_EQ(accesses.conflicts, 0U);
          uint64_t bytes = 0;
          for (const auto& [name, tally] : accesses.written) {
            bytes += tally.size();
            for (const uint32_t times : tally)
              ASSERT_EQ(times, 1U);
          }
          EXPECT_EQ(bytes, storage.bytes_written);
        }
}

TEST(Application, TilesCoverTheArrayAndOverlapAsAsked)
{
  const File file(R"(
  files: {data: {per: all, may_overlap: true}}
  phases: [{name: write, file: data, operation: write, layout: tiled, grid_rows: $grid_rows,
            tile: {width: 5, height: 4, element: 3B, overlap_x: $x, overlap_y: $y, rows: $rows}}]
)",
                  "{x: {default: 0, meaning: overlap}, y: {default: 0, meaning: overlap}, rows: {default: 4, meaning: "
                  "rows}, grid_rows: {default: 0, meaning: grid}}");
  for (const auto& [ranks, grid_rows] :
       std::vector<std::pair<uint32_t, uint32_t>>{{1, 0}, {7, 0}, {12, 0}, {12, 2}, {12, 12}})
    for (const uint64_t x : {0, 2})
      for (const uint64_t y : {0, 1})
        for (const char* rows : {"rows=1", "rows=2", "rows=4"}) {
          const auto pattern = file.make({ranks, ranks}, {fmt::format("x={}", x), fmt::format("y={}", y), rows,
                                                          fmt::format("grid_rows={}", grid_rows)});
          expect_rules_kept(*pattern, ranks);
          const AccessTally accesses(*pattern, ranks);
          // The array by hand: how many tiles lie over each element.
          const uint64_t down   = ranks == 12 ? (grid_rows == 0 ? 3 : grid_rows) : 1;
          const uint64_t across = ranks / down;
          const uint64_t width = across * 5 - (across - 1) * x, height = down * 4 - (down - 1) * y;
          std::vector<uint32_t> tally(width * height * 3);
          for (uint64_t tile = 0; tile < ranks; ++tile)
            for (uint64_t row = 0; row < 4; ++row)
              for (uint64_t byte = 0; byte < 15; ++byte)
                ++tally[((tile / across * (4 - y) + row) * width + tile % across * (5 - x)) * 3 + byte];
          EXPECT_EQ(accesses.written.at({0, 0}), tally) << ranks << " " << x << " " << y;
          EXPECT_EQ(accesses.conflicts > 0, (x > 0 && across > 1) || (y > 0 && down > 1));
        }
}

TEST(Application, RandomStridesVaryAndAverage)
{
  const auto pattern =
      open_workload("application", {"block_size=1kB", "per_process=200kB", "layout=random-strided", "run=write"})
          .make({10, 10});
  std::vector<double> sizes;
  for (uint32_t rank = 1; rank < 9; ++rank) // whose borders move on both sides
    for (const auto& op : stream_of(*pattern, rank))
      if (op.kind == OpKind::pwrite)
        sizes.push_back(static_cast<double>(op.size));
  // 1000 + U - V with U, V uniform on 0 ... 999: standard deviation sqrt(2 (1000^2 - 1) / 12) = 408.2. Means of the
  // 1600 sizes lie within five standard errors but once in 1.7 million (the sizes of neighbours are negatively
  // correlated, which narrows it).
  const double mean = std::accumulate(sizes.begin(), sizes.end(), 0.0) / static_cast<double>(sizes.size());
  expect_within("mean size in bytes", mean, 1000, 5, 408.2 / 40);
  double squares = 0;
  for (const double size : sizes)
    squares += (size - 1000) * (size - 1000);
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(sizes.size())), 408.2, 40);
  EXPECT_GT(*std::max_element(sizes.begin(), sizes.end()), 1800);
  EXPECT_LT(*std::min_element(sizes.begin(), sizes.end()), 200);
}

TEST(Application, OrdersArePermutations)
{
  auto offsets = [](const std::string& order, uint64_t n, uint64_t seed) {
    const File file(fmt::format("  files: {{data: {{per: process}}}}\n  phases: [{{name: write, file: data, operation: "
                                "write, layout: segmented, size: 1B, "
                                "requests: {}, order: {}}}]\n",
                                n, order));
    std::vector<uint64_t> result;
    for (const auto& op : stream_of(*file.make({1, 1}, {fmt::format("seed={}", seed)}), 0))
      if (op.kind == OpKind::pwrite)
        result.push_back(op.offset);
    return result;
  };
  EXPECT_EQ(offsets("{every: 4}", 10, 0), (std::vector<uint64_t>{0, 4, 8, 1, 5, 9, 2, 6, 3, 7}));
  EXPECT_EQ(offsets("{every: 17}", 3, 0), (std::vector<uint64_t>{0, 1, 2}));
  EXPECT_EQ(offsets("backward", 3, 0), (std::vector<uint64_t>{2, 1, 0}));
  for (const uint64_t n : {1, 2, 3, 97, 100, 1000}) {
    auto shuffled = offsets("random", n, 1);
    EXPECT_TRUE(n < 97 || shuffled != offsets("random", n, 2));
    std::sort(shuffled.begin(), shuffled.end());
    std::vector<uint64_t> all(n);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(shuffled, all) << n;
  }
  // No trend is left: the rank correlation of a random permutation of n has standard deviation 1/sqrt(n-1); five of
  // them are exceeded once in 1.7 million.
  const auto shuffled = offsets("random", 1000, 1);
  double squares      = 0;
  for (size_t i = 0; i < shuffled.size(); ++i)
    squares += (static_cast<double>(shuffled[i]) - static_cast<double>(i)) *
               (static_cast<double>(shuffled[i]) - static_cast<double>(i));
  const double correlation = 1 - 6 * squares / (1000.0 * (1000.0 * 1000.0 - 1));
  expect_within("rank correlation", correlation, 0, 5, 1 / std::sqrt(999.0));
}

TEST(Application, FullDuplexReadsWhileOthersWrite)
{
  const File file(R"(
  processes: {sets: {writers: $writers, readers: 1}, dealt: $dealt}
  files: {out: {of: writers, per: process}, in: {of: readers, per: 2}}
  phases:
    - name: both
      accesses:
        - {file: out, operation: write, layout: segmented, size: 4B, requests: 3}
        - {file: in, operation: read, layout: strided, size: 4B, requests: 3}
    - {name: change, file: out, operation: read, layout: segmented, size: 4B, requests: 3}
)",
                  "{writers: {default: 2, meaning: share}, dealt: {default: blocks, meaning: how}}");
  for (const char* dealt : {"dealt=blocks", "dealt=round-robin"})
    for (const uint32_t ranks : {1U, 2U, 3U, 10U, 11U}) {
      SCOPED_TRACE(fmt::format("{} {}", dealt, ranks));
      const auto pattern = file.make({ranks, ranks}, {dealt});
      expect_rules_kept(*pattern, ranks);
      uint32_t writers = 0;
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        std::set<OpKind> both;
        size_t phase = 0;
        for (const auto& op : stream_of(*pattern, rank)) {
          phase += op.kind == OpKind::phase;
          if (phase > 0 && pattern->phases()[phase - 1].name == "both" && op.kind != OpKind::phase)
            both.insert(op.kind);
        }
        const bool writes = both.count(OpKind::pwrite) > 0;
        EXPECT_NE(writes, both.count(OpKind::pread) > 0);
        writers += writes;
        if (std::string(dealt) == "dealt=round-robin") {
          EXPECT_EQ(writes, rank % 3 < 2);
        }
      }
      if (std::string(dealt) == "dealt=blocks") {
        EXPECT_EQ(writers, ranks * 2 / 3);
      }
    }
}

TEST(Application, TurnsKeepProcessesApart)
{
  const auto pattern =
      open_workload("application", {"block_size=4B", "per_process=8B", "layout=sequential", "at_once=1", "run=write"})
          .make({3, 3});
  EXPECT_EQ(AccessTally(*pattern, 3).conflicts, 0U); // all write the same bytes, one after the other
  std::vector<uint32_t> turns;
  for (const auto& phase : pattern->phases())
    if (phase.name == "write")
      turns.push_back(phase.repeat);
  EXPECT_EQ(turns, (std::vector<uint32_t>{1, 2, 3}));
}

TEST(Application, SharesOfReadsAreExact)
{
  for (const auto& [share, reads] :
       std::vector<std::pair<std::string, uint64_t>>{{"0", 0}, {"0.3", 6}, {"0.5", 10}, {"1", 20}}) {
    const auto pattern =
        open_workload("application", {"block_size=4B", "per_process=80B", "run=mixed", "read_share=" + share})
            .make({1, 1});
    const auto storage = expect_rules_kept(*pattern, 1);
    EXPECT_EQ(storage.counts[static_cast<size_t>(OpKind::pread)], reads) << share;
  }
}

TEST(Application, LoopsRepeatPhasesWithOtherSizes)
{
  const File file(R"(
  files: {data: {per: process}}
  phases:
    - for: {record: $records, test: [write, read]}
      phases:
        - {name: $test-$record, file: data, operation: $test, layout: segmented, size: $record,
           requests: $size / $record}
)",
                  "{records: {default: [1KiB, 4KiB], meaning: sizes}, size: {default: 8KiB, meaning: of a file}}");
  auto names = [&](const std::vector<std::string>& settings) {
    const auto pattern = file.make({2, 2}, settings);
    expect_rules_kept(*pattern, 2);
    std::string all;
    for (const auto& phase : pattern->phases())
      all += phase.name + " ";
    return all;
  };
  EXPECT_EQ(names({}), "precreate-directories write-1KiB read-1KiB write-4KiB read-4KiB cleanup cleanup-directories ");
  EXPECT_EQ(names({"records=2KiB"}), "precreate-directories write-2KiB read-2KiB cleanup cleanup-directories ");
  EXPECT_MENTIONS(
      file.refusal({1, 1}, {"records=3KiB"}),
      ".yaml:11: in application.phases[0].phases[0].requests, '$size / $record' is 2.66667, which is no whole number.");
  // What six digits would show as a whole number has all of them.
  EXPECT_MENTIONS(file.refusal({1, 1}, {"records=1048575B", "size=16MiB"}), "' is 16.000015258");
}

TEST(Application, PhasesThatALoopDoesNotNameHaveItsValueAppended)
{
  const File file(R"(
  files: {data: {per: process}}
  run: $run
  phases:
    - for: {block: $blocks}
      phases:
        - {name: write, file: data, operation: write, layout: segmented, size: $block, requests: 8KiB / $block}
        - {name: read, file: data, operation: read, layout: segmented, size: $block, requests: 8KiB / $block}
)",
                  "{blocks: {default: [4KiB], meaning: sizes}, run: {default: all, meaning: which}}");
  auto names = [&](const std::vector<std::string>& settings) {
    const auto pattern = file.make({2, 2}, settings);
    expect_rules_kept(*pattern, 2);
    std::string all;
    for (const auto& phase : pattern->phases())
      if (phase.name.find("directories") == std::string::npos)
        all += phase.name + " ";
    return all;
  };
  EXPECT_EQ(names({}), "write read cleanup ");
  EXPECT_EQ(names({"blocks=1KiB,4KiB"}), "write-1KiB read-1KiB write-4KiB read-4KiB cleanup ");
  EXPECT_EQ(names({"blocks=1KiB,4KiB", "run=write"}), "write-1KiB write-4KiB cleanup ");
  EXPECT_EQ(names({"blocks=1KiB,4KiB", "run=write,read-4KiB"}), "write-1KiB write-4KiB read-4KiB cleanup ");
  EXPECT_MENTIONS(file.refusal({1, 1}, {"blocks=1KiB,4KiB", "run=read-2KiB"}), "there is no phase 'read-2KiB'");
}

TEST(Application, PioGoesThroughTheBlocksOfTheStudy)
{
  for (const char* name : {"pio-simple-strided", "pio-nested-strided", "pio-random-strided", "pio-sequential",
                           "pio-segmented", "pio-tiled", "pio-unstructured-mesh"}) {
    const auto pattern =
        open_workload(name, {"block_size=64KiB,128KiB,256KiB,512KiB,1MiB,2MiB,4MiB,8MiB,16MiB,32MiB", "tests=read"})
            .make({4, 2});
    std::string all;
    for (const auto& phase : pattern->phases())
      if (phase.name.rfind("read", 0) == 0)
        all += phase.name + " ";
    EXPECT_EQ(
        all,
        "read-64KiB read-128KiB read-256KiB read-512KiB read-1MiB read-2MiB read-4MiB read-8MiB read-16MiB read-32MiB ")
        << name;
  }
}

TEST(Application, WhatWasCutIsReadBackAsFarAsItCame)
{
  const File file(R"(
  files: {own: {per: process, count: 2}, all: {per: all}}
  phases:
    - {name: write-own, most_seconds: 1s, file: own, operation: write, layout: segmented, size: 4B, requests: 3,
       order: random}
    - {name: write-all, most_seconds: 1s, file: all, operation: write, layout: strided, size: 4B, requests: 5,
       open: request}
    - {name: read-own, file: own, operation: read, layout: segmented, size: 4B, requests: 3, order: random}
    - {name: read-all, most_seconds: 1s, file: all, operation: read, layout: strided, size: 4B, requests: 5}
)");
  const auto pattern = file.make({3, 3});
  // Files of timed phases are made before them, so that cleanup knows what there is.
  EXPECT_EQ(pattern->phases()[1].name, "precreate");
  for (uint64_t after = 0; after <= 30; ++after) {
    const auto run =
        whole_run(*pattern, 3, false, [&](size_t, uint32_t) { return after == 0 ? Streams::unlimited : after; });
    expect_rules_kept(*pattern, run);
    const auto streams = by_rank(run);
    for (uint32_t rank = 0; rank < 3; ++rank) {
      std::map<std::pair<uint64_t, uint64_t>, std::set<uint64_t>> wrote;
      uint64_t reads = 0, unlinks = 0;
      for (const auto& op : streams[rank]) {
        if (op.kind == OpKind::pwrite)
          wrote[{op.dataset, op.object}].insert(op.offset);
        if (op.kind == OpKind::pread) {
          ++reads;
          EXPECT_TRUE(wrote[std::pair(op.dataset, op.object)].count(op.offset))
              << "rank " << rank << " cut after " << after;
        }
        unlinks += op.kind == OpKind::unlink;
      }
      EXPECT_EQ(unlinks, rank == 0 ? 3U : 2U);
      if (after == 0) {
        EXPECT_EQ(reads, 11U);
      }
      if (after == 3) { // open, two writes | open, write, close
        EXPECT_EQ(reads, 2U + 1U);
      }
    }
  }
  expect_rules_kept(*pattern, 3);
  // Another order of reading can't follow; then the file is filled before, with a message.
  const auto other =
      open_workload("application", {"most_seconds=1s", "shift=1", "block_size=4B", "per_process=12B"}).make({3, 3});
  EXPECT_EQ(other->phases()[1].name, "precreate");
  ASSERT_EQ(other->warnings().size(), 1U);
  EXPECT_MENTIONS(other->warnings()[0], "'data' are filled before the benchmark begins, because the phase 'read'");
}

TEST(Application, PartsRunOnTheirOwn)
{
  auto kinds = [](const std::vector<std::string>& settings) {
    auto all = settings;
    for (const char* more : {"block_size=4B", "per_process=8B", "run=write,read"})
      all.emplace_back(more);
    const auto pattern = open_workload("application", all).make({2, 2});
    std::map<OpKind, uint64_t> result;
    for (uint32_t rank = 0; rank < 2; ++rank)
      for (const auto& op : stream_of(*pattern, rank))
        ++result[op.kind];
    std::map<OpKind, uint64_t> announced;
    for (const auto& [kind, count] : pattern->footprint().operations)
      announced[kind] = count;
    result.erase(OpKind::phase);
    EXPECT_EQ(result, announced);
    return result;
  };
  EXPECT_EQ(kinds({"phases=precreate"}), (std::map<OpKind, uint64_t>{{OpKind::mkdir, 1}}));
  // After precreate alone there is no file yet; after a benchmark there is one.
  EXPECT_EQ(kinds({"phases=cleanup"}), (std::map<OpKind, uint64_t>{{OpKind::rmdir, 1}}));
  EXPECT_EQ(kinds({"phases=cleanup", "done=1"}), (std::map<OpKind, uint64_t>{{OpKind::unlink, 1}, {OpKind::rmdir, 1}}));
  EXPECT_EQ(kinds({"phases=benchmark", "done=2"})[OpKind::pwrite], 4U);
  const auto pattern = open_workload("application", {"phases=benchmark", "done=2"}).make({2, 2});
  EXPECT_EQ(pattern->position_after(0).dump(), R"({"done":3})");
  EXPECT_EQ(pattern->position_after(1).dump(), R"({"done":4})");
  EXPECT_EQ(pattern->data_set(), open_workload("application", {"phases=cleanup"}).make({2, 2})->data_set());
  EXPECT_NE(pattern->data_set(), open_workload("application", {"run=read"}).make({2, 2})->data_set());
}

TEST(Application, RefusesWithASentenceAndALine)
{
  auto refusal = [](const std::string& files, const std::string& access,
                    const std::vector<std::string>& settings = {}) {
    return File("  files: {" + files + "}\n  phases:\n    - {name: one, " + access + "}\n").refusal({6, 3}, settings);
  };
  const std::string data = "data: {per: all}";
  const std::string good = "file: data, operation: write, layout: segmented, size: 4B, requests: 2";
  EXPECT_EQ(refusal(data, good), "");
  EXPECT_MENTIONS(
      refusal(data, "file: dota, operation: write, size: 4B, requests: 2"),
      ".yaml:7: in application.phases[0].file, 'dota' is not known here. Did you mean 'data'? Allowed: data.");
  EXPECT_MENTIONS(refusal(data, "file: data, operation: wriet, size: 4B, requests: 2"), "Did you mean 'write'?");
  EXPECT_MENTIONS(refusal(data, good + ", passses: 2"), "the key 'passses' is unknown here. Did you mean 'passes'?");
  EXPECT_MENTIONS(refusal(data, good + ", in_a_row: 2"), "a layout that is segmented has no 'in_a_row'");
  EXPECT_MENTIONS(refusal(data, "file: data, operation: write, size: 4, requests: 2"),
                  "'4' is a pure number, but a number of bytes is needed, such as 4KiB");
  EXPECT_MENTIONS(refusal(data, "file: data, operation: write, size: $blok, requests: 2"), "there is no $blok.");
  EXPECT_MENTIONS(refusal(data, "file: data, operation: write, size: 4B * (2 + 1, requests: 2"),
                  "lacks a closing bracket");
  EXPECT_MENTIONS(refusal(data, "file: data, operation: write, size: 4B + 2s, requests: 2"),
                  "adds a number of bytes and a time");
  // Overlaps
  EXPECT_MENTIONS(refusal(data, "file: data, operation: write, layout: sequential, size: 4B, requests: 2"),
                  "in the phase 'one', bytes of a file 'data' that one process writes are written by another at the "
                  "same time; if that is meant, give the file 'may_overlap: true'.");
  EXPECT_EQ(refusal("data: {per: all, may_overlap: true}",
                    "file: data, operation: write, layout: sequential, size: 4B, requests: 2"),
            "");
  EXPECT_EQ(refusal("data: {per: process}", "file: data, operation: write, layout: sequential, size: 4B, requests: 2"),
            "");
  EXPECT_EQ(refusal(data, "file: data, operation: read, layout: sequential, size: 4B, requests: 2"), "");
  EXPECT_MENTIONS(refusal(data, good + ", overlap: 1B"), "may_overlap");
  EXPECT_MENTIONS(refusal(data, good + "}\n    - {name: two, accesses: [{" + good +
                                    "}, {file: data, operation: read, layout: sequential, size: 4B, requests: 2}]"),
                  "are read by another");
  EXPECT_EQ(refusal(data, good + "}\n    - {name: two, accesses: [{" + good + "}, {" + good + ", offset: 48B}]"), "");
  // Beyond the processes
  EXPECT_EQ(refusal(data, good + ", shift: 6"), "");
  EXPECT_MENTIONS(refusal(data, good + ", shift: 7"), "a shift of 7 reaches beyond the 6 processes there are");
  // What isn't there
  EXPECT_MENTIONS(refusal("data: {per: all, prepare: never}", "file: data, operation: read, size: 4B, requests: 2"),
                  "the phase 'one' needs bytes of the files 'data' that no phase before it is sure to have made, and "
                  "they are never prepared");
  EXPECT_MENTIONS(
      refusal(
          data,
          good +
              "}\n    - {name: two, file: data, operation: remove}\n    - {name: three, file: data, operation: stat"),
      "which an earlier phase removes");
  // Groups
  EXPECT_MENTIONS(
      refusal(data,
              "file: data, operation: write, layout: tiled, grid_rows: 4, tile: {width: 2, height: 2, element: 1B}"),
      "the 6 processes of a file don't fill a grid of 4 rows");
  EXPECT_MENTIONS(
      refusal(data, "file: data, operation: write, layout: tiled, tile: {width: 2, height: 5, element: 1B, rows: 2}"),
      "'rows' divides 'height'");
  EXPECT_MENTIONS(refusal(data, "file: data, operation: write, layout: strided, stride: 8B, size: 4B, requests: 2"),
                  "a stride of 8 is shorter than the 24");
  EXPECT_MENTIONS(refusal("data: {per: all}, more: {per: 2}",
                          good + ", together: all}\n    - {name: two, file: more, operation: write, layout: segmented, "
                                 "size: 4B, requests: 2, together: all"),
                  "one division of the processes into groups");
  EXPECT_MENTIONS(refusal(data, good + ", together: all, most_seconds: 1s"), "no time limit");
  EXPECT_MENTIONS(refusal(data, "file: data, operation: write, layout: segmented, size: 1TB, requests: 1000000"),
                  "more than 9 PB");
  EXPECT_MENTIONS(refusal(data, good, {"phases=cleanup,precreate"}), "in the order precreate, benchmark, cleanup");
}

TEST(Application, TheManualsExampleRuns)
{
  std::ifstream manual(IOCAST_SOURCE_DIR "/docs/application.md");
  const std::string text{std::istreambuf_iterator<char>(manual), {}};
  const auto from = text.find("```yaml\n") + 8;
  const auto path = fmt::format("{}/example-{}.yaml", testing::TempDir(), getpid());
  std::ofstream(path) << text.substr(from, text.find("```", from) - from);
  const auto workload = open_workload(path, {});
  for (const uint32_t ranks : {1U, 2U, 7U})
    expect_rules_kept(*open_workload(path, words(workload.small.at(0))).make({ranks, 2}), ranks);
  std::filesystem::remove(path);
}

} // namespace
} // namespace iocast
