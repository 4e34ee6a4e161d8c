// SPDX-License-Identifier: Apache-2.0
#include "input/error.hpp"
#include "tests/contract/streams.hpp"
#include "workload/workload.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <gtest/gtest.h>
#include <set>

namespace iocast {
namespace {

using Lines = std::vector<std::string>;

std::unique_ptr<Pattern> mdtest(const std::vector<std::string>& settings, uint32_t ranks = 1,
                                uint32_t ranks_per_node = 1000)
{
  return open_workload("mdtest", settings).make({ranks, std::min(ranks, ranks_per_node)});
}

TEST(Mdtest, OneSharedDirectoryByHand)
{
  // Two ranks with two files each: rank 0 stats what rank 1 made, reads its own again (2 S = 2 = N), removes rank 1's.
  const auto pattern = mdtest({"items=2", "files_only=true", "write_size=5B", "read_size=5B", "stride=1"}, 2);
  EXPECT_EQ(
      lines(*pattern, 0),
      (Lines{"phase tree-create", "mkdir mdtest_tree.0-0.0", //
             "phase file-create", "create mdtest_tree.0-0.0/file.mdtest.0 5",
             "create mdtest_tree.0-0.0/file.mdtest.1 5",                                                              //
             "phase file-stat", "stat mdtest_tree.0-0.0/file.mdtest.2", "stat mdtest_tree.0-0.0/file.mdtest.3",       //
             "phase file-read", "read mdtest_tree.0-0.0/file.mdtest.0 5", "read mdtest_tree.0-0.0/file.mdtest.1 5",   //
             "phase file-remove", "unlink mdtest_tree.0-0.0/file.mdtest.2", "unlink mdtest_tree.0-0.0/file.mdtest.3", //
             "phase tree-remove", "rmdir mdtest_tree.0-0.0"}));
  EXPECT_EQ(
      lines(*pattern, 1),
      (Lines{"phase tree-create", //
             "phase file-create", "create mdtest_tree.0-0.0/file.mdtest.2 5",
             "create mdtest_tree.0-0.0/file.mdtest.3 5",                                                              //
             "phase file-stat", "stat mdtest_tree.0-0.0/file.mdtest.0", "stat mdtest_tree.0-0.0/file.mdtest.1",       //
             "phase file-read", "read mdtest_tree.0-0.0/file.mdtest.2 5", "read mdtest_tree.0-0.0/file.mdtest.3 5",   //
             "phase file-remove", "unlink mdtest_tree.0-0.0/file.mdtest.0", "unlink mdtest_tree.0-0.0/file.mdtest.1", //
             "phase tree-remove"}));
}

TEST(Mdtest, OwnTreesByHand)
{
  // Three ranks, a directory below each root, a file in each directory, fsync, part of it read: rank 2 makes its files
  // in rank 0's tree, stats rank 0's in rank 1's tree, reads rank 1's in its own, and removes its own in rank 0's.
  const auto pattern = mdtest({"items=2", "files_only=true", "unique_directory=true", "depth=1", "stride=1",
                               "write_size=7B", "read_size=3B", "sync=true"},
                              3);
  auto file          = [](int tree, const std::string& sub, int number) {
    return fmt::format("mdtest_tree.0-0.{}{}/file.mdtest.{}", tree, sub, number);
  };
  Lines expected{"phase tree-create", "mkdir mdtest_tree.0-0.2", "mkdir mdtest_tree.0-0.2/1", "phase file-create"};
  for (const auto& name : {file(0, "", 4), file(0, "/1", 5)})
    for (const auto& op : {"open " + name, "pwrite " + name + " 7", "fsync " + name, "close " + name})
      expected.push_back(op);
  for (const auto& op : {std::string("phase file-stat"), "stat " + file(1, "", 0), "stat " + file(1, "/1", 1),
                         std::string("phase file-read")})
    expected.push_back(op);
  for (const auto& name : {file(2, "", 2), file(2, "/1", 3)})
    for (const auto& op : {"open " + name, "pread " + name + " 3", "close " + name})
      expected.push_back(op);
  for (const auto& op : {std::string("phase file-remove"), "unlink " + file(0, "", 4), "unlink " + file(0, "/1", 5),
                         std::string("phase tree-remove"), std::string("rmdir mdtest_tree.0-0.2/1"),
                         std::string("rmdir mdtest_tree.0-0.2")})
    expected.push_back(op);
  EXPECT_EQ(lines(*pattern, 2), expected);
  const auto ops = stream_of(*pattern, 2);
  EXPECT_EQ(ops[4].flags, for_writing | make_it);
  EXPECT_EQ(ops[16].flags, 0); // the open to read
}

TEST(Mdtest, SoManyWritersInADirectoryByHand)
{
  // Three ranks, two in a directory: rank 1 makes none, and stats what rank 2 made in the second one.
  const auto pattern =
      mdtest({"items=1", "files_only=true", "writers_per_directory=2", "stride=1", "phases=create,stat,remove"}, 3);
  EXPECT_EQ(lines(*pattern, 1),
            (Lines{"phase tree-create", "phase file-create", "create mdtest_tree.0-0.0/file.mdtest.1",
                   "phase file-stat", "stat mdtest_tree.0-0.1/file.mdtest.2", "phase file-remove",
                   "unlink mdtest_tree.0-0.0/file.mdtest.1", "phase tree-remove"}));
  EXPECT_EQ(lines(*pattern, 2),
            (Lines{"phase tree-create", "mkdir mdtest_tree.0-0.1", "phase file-create",
                   "create mdtest_tree.0-0.1/file.mdtest.2", "phase file-stat", "stat mdtest_tree.0-0.0/file.mdtest.0",
                   "phase file-remove", "unlink mdtest_tree.0-0.1/file.mdtest.2", "phase tree-remove",
                   "rmdir mdtest_tree.0-0.1"}));
}

TEST(Mdtest, DirectoriesAsItemsByHand)
{
  const auto pattern = mdtest({"items=2", "directories_only=true"});
  EXPECT_EQ(lines(*pattern, 0), (Lines{"phase tree-create", "mkdir mdtest_tree.0-0.0", //
                                       "phase directory-create", "mkdir mdtest_tree.0-0.0/dir.mdtest.0",
                                       "mkdir mdtest_tree.0-0.0/dir.mdtest.1", //
                                       "phase directory-stat", "stat mdtest_tree.0-0.0/dir.mdtest.0",
                                       "stat mdtest_tree.0-0.0/dir.mdtest.1", //
                                       "phase directory-remove", "rmdir mdtest_tree.0-0.0/dir.mdtest.0",
                                       "rmdir mdtest_tree.0-0.0/dir.mdtest.1", //
                                       "phase tree-remove", "rmdir mdtest_tree.0-0.0"}));
  EXPECT_EQ(stream_of(*pattern, 0)[6].flags, whole);
}

/// mdtest as a person would do it, by recursion over names.
class Slow {
public:
  int ranks, depth, branching, items_per_directory;
  bool unique, leaf_only;
  int stride;

  std::string root(int tree) const { return fmt::format("mdtest_tree.0-0.{}", tree); }
  void recurse(const std::string& path, int number, int level,
               const std::function<void(std::string, int, int, bool)>& visit) const
  {
    visit(path, number, level, true);
    for (int child = branching * number + 1; level < depth && child <= branching * number + branching; ++child)
      recurse(path + "/" + std::to_string(child), child, level + 1, visit);
    visit(path, number, level, false);
  }
  int directories() const
  {
    int count = 0;
    recurse("", 0, 0, [&](auto, int, int, bool down) { count += down; });
    return count;
  }
  Lines tree(int rank, bool makes) const
  {
    Lines result;
    if (unique || rank == 0)
      recurse(root(unique ? rank : 0), 0, 0, [&](const std::string& path, int, int, bool down) {
        if (down == makes)
          result.push_back((makes ? "mkdir " : "rmdir ") + path);
      });
    return result;
  }
  /// Items of `owner`: name by number, in the order in which they are made.
  std::vector<std::pair<int, std::string>> items(int owner, const std::string& word) const
  {
    std::vector<std::pair<int, std::string>> result;
    recurse(root(unique ? (owner + stride) % ranks : 0), 0, 0,
            [&](const std::string& path, int number, int level, bool down) {
              for (int i = 0; down && (level == depth || !leaf_only) && i < items_per_directory; ++i) {
                const int item = number * items_per_directory + i;
                result.emplace_back(item, fmt::format("{}/{}.mdtest.{}", path, word,
                                                      owner * directories() * items_per_directory + item));
              }
            });
    return result;
  }
  Lines all(int rank) const
  {
    Lines result{"phase tree-create"};
    auto append = [&](const Lines& more) { result.insert(result.end(), more.begin(), more.end()); };
    auto phase  = [&](const std::string& name, const std::string& op, const std::string& word, int strides,
                     bool by_number, const std::string& size) {
      result.push_back("phase " + name);
      auto found = items((rank + strides * stride) % ranks, word);
      if (by_number)
        std::sort(found.begin(), found.end());
      for (const auto& [number, item] : found)
        result.push_back(op + " " + item + size);
    };
    append(tree(rank, true));
    phase("directory-create", "mkdir", "dir", 0, false, "");
    phase("directory-stat", "stat", "dir", 1, true, "");
    phase("directory-remove", "rmdir", "dir", 3, false, "");
    phase("file-create", "create", "file", 0, false, " 9");
    phase("file-stat", "stat", "file", 1, true, "");
    phase("file-read", "read", "file", 2, true, " 9");
    phase("file-remove", "unlink", "file", 3, false, "");
    result.push_back("phase tree-remove");
    append(tree(rank, false));
    return result;
  }
};

TEST(Mdtest, EqualsTheSlowOne)
{
  for (int ranks : {1, 2, 5})
    for (int depth : {0, 1, 3})
      for (int branching : {1, 2, 3})
        for (bool unique : {false, true})
          for (bool leaf_only : {false, true})
            for (int stride : {0, 1}) {
              const Slow slow{ranks, depth, branching, 2, unique, leaf_only, stride};
              const auto pattern = mdtest({"items=0", "items_per_directory=2", "write_size=9B", "read_size=9B",
                                           fmt::format("depth={}", depth), fmt::format("branching={}", branching),
                                           fmt::format("unique_directory={}", unique),
                                           fmt::format("leaf_only={}", leaf_only), fmt::format("stride={}", stride)},
                                          ranks);
              for (int rank = 0; rank < ranks; ++rank)
                ASSERT_EQ(lines(*pattern, rank), slow.all(rank))
                    << ranks << depth << branching << unique << leaf_only << stride;
            }
}

const std::vector<std::vector<std::string>> many{
    {"items=5"},
    {"items=12", "depth=2", "branching=2", "leaf_only=true", "iterations=2", "write_size=3B", "read_size=3B"},
    {"items=14", "depth=2", "branching=2", "unique_directory=true", "stride=1", "write_size=3B", "read_size=1B"},
    {"items=6", "items_per_directory=2", "files_only=true", "stride=1", "sync=true", "write_size=8B"},
    {"items=6", "items_per_directory=2", "random_order=true", "stride=1"},
    {"items=4", "shared_files=true", "write_size=8B", "read_size=8B", "stride=1"},
    {"items=4", "directories_only=true", "unique_directory=true", "depth=3", "stride=1"},
    {"items=4", "files_only=true", "most_seconds=10s", "stride=1", "iterations=3"}};

TEST(Mdtest, MakesWhatItUsesAndLeavesNothing)
{
  for (const auto& settings : many)
    for (uint32_t ranks : {1, 2, 3, 8}) {
      const auto pattern = mdtest(settings, ranks);
      SCOPED_TRACE(fmt::format("{} on {}", fmt::join(settings, " "), ranks));
      expect_rules_kept(*pattern, whole_run(*pattern, ranks, false));
    }
}

TEST(Mdtest, FootprintCountsWhatTheStreamsDo)
{
  for (auto settings : many)
    if (!settings[2 % settings.size()].starts_with("most_seconds"))
      for (const char* phases : {"create,stat,read,remove", "create", "stat,read", "remove", "create,remove"})
        for (uint32_t ranks : {1, 2, 7}) {
          settings.push_back(std::string("phases=") + phases);
          if (settings[1] != "directories_only=true" ||
              settings.back() != "phases=stat,read") // directories can't be read
            expect_footprint_of_streams(*mdtest(settings, ranks), ranks,
                                        fmt::format("{} on {}", fmt::join(settings, " "), ranks));
          settings.pop_back();
        }
}

TEST(Mdtest, RandomOrderFindsEachItemOnce)
{
  const auto pattern = mdtest({"items=100", "files_only=true", "random_order=true", "seed=5", "phases=stat"}, 2);
  for (uint32_t rank : {0, 1}) {
    const auto ops = stream_of(*pattern, rank);
    std::set<uint64_t> found;
    for (const auto& op : ops)
      if (op.kind == OpKind::stat)
        found.insert(op.object);
    EXPECT_EQ(found.size(), 100U);
    EXPECT_EQ(*found.begin(), 100 * rank);
  }
  auto objects = [&](const Pattern& p, uint32_t rank) {
    std::vector<uint64_t> result;
    for (const auto& op : stream_of(p, rank))
      result.push_back(op.object - 100 * rank);
    return result;
  };
  EXPECT_NE(objects(*pattern, 0), objects(*pattern, 1));
  EXPECT_NE(objects(*pattern, 0),
            objects(*mdtest({"items=100", "files_only=true", "random_order=true", "seed=6", "phases=stat"}, 2), 0));
}

TEST(Mdtest, AfterACutAllGoOnToWhereTheFurthestCame)
{
  const auto pattern =
      mdtest({"items=10", "files_only=true", "most_seconds=1s", "stride=1", "write_size=4B", "read_size=4B"}, 3);
  const auto run = whole_run(*pattern, 3, false, [](size_t, uint32_t rank) {
    return std::vector<uint64_t>{2, 0, 4}[rank];
  });
  expect_rules_kept(*pattern, run);
  const auto streams = by_rank(run);
  std::vector<std::map<OpKind, int>> counts(3);
  for (uint32_t rank = 0; rank < 3; ++rank)
    for (const auto& op : streams[rank])
      ++counts[rank][op.kind];
  for (const auto& count : counts)
    for (const OpKind kind : {OpKind::create, OpKind::stat, OpKind::read, OpKind::unlink})
      EXPECT_EQ(count.at(kind), 4);
  EXPECT_EQ(pattern->position_after(1), nlohmann::ordered_json({{"items_made", 4}}));
  EXPECT_EQ(pattern->position_after(0), nlohmann::ordered_json({{"items_made", 0}}));
  // What a later run makes of that.
  const auto later = mdtest({"items=10", "files_only=true", "items_made=4", "phases=stat,remove"}, 3);
  EXPECT_EQ(stream_of(*later, 0).size(), 4 + 4 + 4U);
  expect_footprint_of_streams(*later, 3, "later");
}

TEST(Mdtest, AFileThatACutLeavesOpenIsWrittenOnce)
{
  for (const char* shared : {"true", "false"})
    for (uint32_t cut = 0; cut <= 12; ++cut) {
      const auto pattern = mdtest({"items=3", "most_seconds=1s", "sync=true", "write_size=4B", "read_size=4B",
                                   "files_only=true", std::string("shared_files=") + shared},
                                  2);
      SCOPED_TRACE(fmt::format("cut at {}", cut));
      const auto run = whole_run(*pattern, 2, false, [&](size_t, uint32_t rank) { return rank == 0 ? cut : 1; });
      expect_rules_kept(*pattern, run);
      const auto streams = by_rank(run);
      // open, pwrite, fsync, close: what is open counts, and is written once, before the cut or after it.
      const uint64_t made = std::max<uint64_t>(1, (cut + 3) / 4);
      for (const auto& ops : streams) {
        std::multiset<uint64_t> written;
        std::set<uint64_t> read;
        for (const auto& op : ops) {
          if (op.kind == OpKind::pwrite)
            written.insert(op.object);
          if (op.kind == OpKind::read)
            read.insert(op.object);
        }
        EXPECT_EQ(std::set<uint64_t>(written.begin(), written.end()), read);
        EXPECT_EQ(written.size(), made);
        EXPECT_EQ(read.size(), made);
      }
    }
}

TEST(Mdtest, SeveralNodesStrideByNodes)
{
  const auto pattern = mdtest({"items=1", "files_only=true", "stride=1"}, 6, 2);
  const auto ops     = stream_of(*pattern, 1);
  EXPECT_EQ(line(*pattern, ops[4]), "stat mdtest_tree.0-0.0/file.mdtest.3"); // two ranks further, on the next node
}

TEST(Mdtest, NamesAreShortEnough)
{
  const auto pattern = mdtest({"items=30", "depth=14", "unique_directory=true", "iterations=5000"}, 1'000'000);
  EXPECT_LE(dataset_name(*pattern, 5000ULL * 1'000'000 * 15 - 1).size(), 200U);
  EXPECT_THROW(mdtest({"items=100", "depth=99"}), InputError);
}

TEST(Mdtest, RefusesWhatCannotBe)
{
  for (const std::vector<std::string>& settings :
       std::vector<std::vector<std::string>>{{"items=0"},
                                             {"items=3", "depth=2", "branching=2"}, // 7 directories
                                             {"items=6", "items_per_directory=4"},
                                             {"items=6", "items_per_directory=2", "depth=1"},
                                             {"items=6", "items_per_directory=2", "unique_directory=true"},
                                             {"files_only=true", "directories_only=true"},
                                             {"shared_files=true", "unique_directory=true"},
                                             {"shared_files=true", "directories_only=true"},
                                             {"stride=5"},
                                             {"read_size=2B", "write_size=1B"},
                                             {"phases=remove,create"},
                                             {"phases=look"},
                                             {"directories_only=true", "phases=read"},
                                             {"most_seconds=1s", "directories_only=true"},
                                             {"most_seconds=1s", "depth=1", "branching=2"},
                                             {"most_seconds=1s", "iterations=2", "phases=create"},
                                             {"items_made=2"},
                                             {"items_made=1001", "phases=stat"},
                                             {"depth=40", "branching=10"}})
    EXPECT_THROW(mdtest(settings, 4), InputError) << fmt::format("{}", fmt::join(settings, " "));
  EXPECT_THROW(mdtest({"stride=3"}, 4, 2), InputError); // two nodes
  EXPECT_NO_THROW(mdtest({"stride=4"}, 4));
}

TEST(Mdtest, WarnsOfWhatIsProbablyNotMeant)
{
  EXPECT_EQ(mdtest({"stride=2", "write_size=1B", "read_size=1B"}, 4)->warnings().size(),
            1U); // reads from 2 S = N ranks further
  EXPECT_EQ(mdtest({"stride=1", "write_size=1B", "read_size=1B"}, 4)->warnings().size(), 0U);
  EXPECT_EQ(mdtest({"sync=true", "phases=create"}, 4)->warnings().size(), 1U);
  EXPECT_EQ(mdtest({}, 1)->warnings().size(), 1U); // reads nothing
}

/// Files beyond 2^32 of a rank, and ranks beyond the first, whose files' numbers count on.
TEST(Mdtest, NumbersBeyond32Bits)
{
  constexpr uint64_t items = 6'000'000'000;
  const auto pattern = mdtest({"items=6000000000", "files_only=true", "phases=create,stat", "most_seconds=1h"}, 2);
  for (const uint32_t rank : {0U, 1U}) {
    Cursor cursor;
    cursor.rank = rank;
    Op op;
    const auto go_to = [&](const std::string& phase) {
      while (pattern->next(cursor, op))
        if (op.kind == OpKind::phase && pattern->phases()[op.object].name == phase)
          return true;
        else if (op.kind != OpKind::phase && op.kind != OpKind::mkdir)
          pattern->cut(cursor);
      return false;
    };
    ASSERT_TRUE(go_to("file-create"));
    for (cursor.i = UINT32_MAX - uint64_t{1}; cursor.i < uint64_t{UINT32_MAX} + 3;) {
      const uint64_t number = cursor.i;
      ASSERT_TRUE(pattern->next(cursor, op));
      ASSERT_EQ(op.kind, OpKind::create);
      char name[256];
      const std::string object(name, pattern->name_object_in(op.dataset, op.object, name));
      EXPECT_EQ(object, fmt::format("file.mdtest.{}", rank * items + number));
    }
    pattern->cut(cursor); // its time is over
    EXPECT_EQ(pattern->reached(cursor), uint64_t{UINT32_MAX} + 3);
    pattern->agree(cursor, uint64_t{UINT32_MAX} + 5); // the other rank came further
    ASSERT_TRUE(go_to("file-create-rest"));
    uint64_t rest = 0;
    while (pattern->next(cursor, op) && op.kind == OpKind::create)
      ++rest;
    EXPECT_EQ(rest, 2U);
    EXPECT_EQ(pattern->phases()[op.object].name, "file-stat");
    cursor.i = uint64_t{UINT32_MAX} + 4;
    ASSERT_TRUE(pattern->next(cursor, op));
    EXPECT_EQ(op.kind, OpKind::stat);
    EXPECT_TRUE(pattern->next(cursor, op) == false || op.kind == OpKind::phase); // all that were made
  }
}

} // namespace
} // namespace iocast
