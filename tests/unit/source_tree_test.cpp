// SPDX-License-Identifier: Apache-2.0
#include "input/error.hpp"
#include "tests/contract/streams.hpp"
#include "tests/unit/sharpness.hpp"
#include "workload/source_files.hpp"
#include "workload/tree.hpp"
#include "workload/workload.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <set>

namespace iocast {
namespace {

using Lines = std::vector<std::string>;

std::unique_ptr<Pattern> source_tree(const std::vector<std::string>& settings, uint32_t ranks = 1)
{
  return open_workload("source-tree", settings).make({ranks, ranks});
}

/// Operations of the first phase called `name`.
std::vector<Op> phase_of(const Pattern& pattern, uint32_t rank, const std::string& name)
{
  std::vector<Op> result;
  bool inside = false;
  for (const auto& op : stream_of(pattern, rank)) {
    if (op.kind == OpKind::phase)
      inside = pattern.phases()[op.object].name == name;
    else if (inside)
      result.push_back(op);
  }
  return result;
}

Lines lines_of(const Pattern& pattern, uint32_t rank, const std::string& name)
{
  Lines result;
  for (const auto& op : phase_of(pattern, rank, name))
    result.push_back(line(pattern, op));
  return result;
}

const std::vector<std::string> regular{"shape=regular",         "depth=1",      "fan_out=2",
                                       "files_per_directory=2", "size_sigma=0", "size_median=10B"};

std::vector<std::string> with(std::vector<std::string> settings, const std::vector<std::string>& more)
{
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

TEST(SourceTree, MakeListRemoveByHand)
{
  // The root holds the directories 1 and 2; each of the three has two files of 10 bytes.
  const auto pattern = source_tree(with(regular, {"phases=make,list,remove"}));
  EXPECT_EQ(lines(*pattern, 0), (Lines{"phase make-directories",
                                       "mkdir tree-0-0",
                                       "mkdir tree-0-0/1",
                                       "mkdir tree-0-0/2", //
                                       "phase make-files",
                                       "create tree-0-0/file-0 10",
                                       "create tree-0-0/file-1 10",
                                       "create tree-0-0/1/file-2 10", //
                                       "create tree-0-0/1/file-3 10",
                                       "create tree-0-0/2/file-4 10",
                                       "create tree-0-0/2/file-5 10", //
                                       "phase list",
                                       "stat tree-0-0", //
                                       "readdir tree-0-0 4",
                                       "stat tree-0-0/1",
                                       "stat tree-0-0/2",
                                       "stat tree-0-0/file-0",
                                       "stat tree-0-0/file-1", //
                                       "readdir tree-0-0/1 2",
                                       "stat tree-0-0/1/file-2",
                                       "stat tree-0-0/1/file-3", //
                                       "readdir tree-0-0/2 2",
                                       "stat tree-0-0/2/file-4",
                                       "stat tree-0-0/2/file-5", //
                                       "phase remove-files",
                                       "unlink tree-0-0/file-0",
                                       "unlink tree-0-0/file-1",
                                       "unlink tree-0-0/1/file-2", //
                                       "unlink tree-0-0/1/file-3",
                                       "unlink tree-0-0/2/file-4",
                                       "unlink tree-0-0/2/file-5", //
                                       "phase remove-directories",
                                       "rmdir tree-0-0/2",
                                       "rmdir tree-0-0/1",
                                       "rmdir tree-0-0"}));
  EXPECT_EQ(phase_of(*pattern, 0, "list")[0].flags, whole);
}

TEST(SourceTree, CompileByHand)
{
  // Six files: 0 to 3 are sources, 4 and 5 headers. Objects are five quarters of their source and numbered after all
  // files.
  const auto pattern =
      source_tree(with(regular, {"sources=2", "headers=2", "compute_time=1ms", "phases=make,compile,remove"}));
  auto found = lines_of(*pattern, 0, "compile");
  ASSERT_EQ(found.size(), 10U);
  // Both headers, in whatever order.
  std::sort(found.begin() + 1, found.begin() + 3);
  std::sort(found.begin() + 6, found.begin() + 8);
  EXPECT_EQ(found, (Lines{"read tree-0-0/file-0 10", "read tree-0-0/2/file-4 10", "read tree-0-0/2/file-5 10", "think",
                          "create tree-0-0/object-6 12", "read tree-0-0/1/file-2 10", "read tree-0-0/2/file-4 10",
                          "read tree-0-0/2/file-5 10", "think", "create tree-0-0/1/object-7 12"}));
  EXPECT_EQ(phase_of(*pattern, 0, "compile")[3].size, 1'000'000U);
  EXPECT_EQ(lines_of(*pattern, 0, "clean"), (Lines{"unlink tree-0-0/object-6", "unlink tree-0-0/1/object-7"}));
}

TEST(SourceTree, BrowsingByHand)
{
  const auto pattern = source_tree(with(regular, {"visits=20", "reads=5", "pause=1s", "phases=make,browse,remove"}));
  const auto found   = lines_of(*pattern, 0, "browse");
  std::set<std::string> seen;
  for (size_t at = 0; at < found.size();) {
    const std::string where = found[at + 1].substr(5); // behind "stat "
    seen.insert(where);
    ASSERT_EQ(found[at++], "think");
    ASSERT_EQ(found[at++], "stat " + where);
    ASSERT_EQ(found[at++], "think");
    if (where == "tree-0-0") {
      ASSERT_EQ(found[at++], "readdir tree-0-0 4");
      ASSERT_EQ(found[at++], "stat tree-0-0/1");
      ASSERT_EQ(found[at++], "stat tree-0-0/2");
    } else {
      ASSERT_EQ(found[at++], "readdir " + where + " 2");
    }
    std::set<std::string> listed, opened;
    for (int file = 0; file < 2; ++file)
      listed.insert(found[at++].substr(5) + " 10");
    for (int file = 0; file < 2; ++file) {
      ASSERT_EQ(found[at++], "think");
      opened.insert(found[at++].substr(5));
    }
    ASSERT_EQ(listed, opened);
  }
  EXPECT_EQ(seen, (std::set<std::string>{"tree-0-0", "tree-0-0/1", "tree-0-0/2"}));
}

TEST(SourceTree, PausesAreExponential)
{
  // 4000 pauses of mean 1 s; the mean of the cut law is 1 - e^-10, its standard error 1/sqrt(4000); 4 of them: false
  // alarm 1 in 16,000.
  const auto pattern = source_tree(with(regular, {"visits=1000", "reads=2", "phases=make,browse,remove"}));
  double sum = 0, longest = 0;
  int count = 0, beyond_mean = 0;
  for (const auto& op : phase_of(*pattern, 0, "browse"))
    if (op.kind == OpKind::think) {
      const double seconds = static_cast<double>(op.size) * 1e-9;
      sum += seconds;
      longest = std::max(longest, seconds);
      beyond_mean += seconds > 1;
      ++count;
    }
  ASSERT_EQ(count, 4000);
  expect_within("mean pause in seconds", sum / count, 1, 4, 1 / std::sqrt(4000));
  const double beyond = std::exp(-1);
  expect_within("share beyond the mean", beyond_mean / 4000.0, beyond, 4, std::sqrt(beyond * (1 - beyond) / 4000));
  EXPECT_LE(longest, 10);
}

/// ls -lR by recursion.
void list(const Tree& tree, uint32_t directory, const std::string& path, Lines& out)
{
  Lines entries;
  std::vector<uint32_t> inside;
  for (uint32_t d = 1; d < tree.directories(); ++d)
    if (tree.parent(d) == directory) {
      inside.push_back(d);
      entries.push_back(fmt::format("stat {}/{}", path, d));
    }
  for (uint64_t file = 0; file < tree.files(); ++file)
    if (tree.directory_of(file) == directory)
      entries.push_back(fmt::format("stat {}/file-{}", path, file));
  out.push_back(fmt::format("readdir {}", path) + (entries.empty() ? "" : fmt::format(" {}", entries.size())));
  out.insert(out.end(), entries.begin(), entries.end());
  for (const uint32_t d : inside)
    list(tree, d, fmt::format("{}/{}", path, d), out);
}

TEST(SourceTree, ListsAsLsDoes)
{
  for (uint64_t seed : {0, 1, 2}) {
    const auto pattern = source_tree({"directories=30", "files=150", fmt::format("seed={}", seed), "stride=1",
                                      "copies=3", "phases=make,chill,list,remove"},
                                     3);
    const Tree tree    = Tree::grown(30, 150, seed);
    // Rank 2 uses the tree of rank 0.
    Lines expected{"stat tree-0-0"};
    list(tree, 0, "tree-0-0", expected);
    EXPECT_EQ(lines_of(*pattern, 2, "list"), expected);
    Lines others;
    for (int copy : {1, 2}) {
      others.push_back(fmt::format("stat tree-0-{}", copy));
      list(tree, 0, fmt::format("tree-0-{}", copy), others);
    }
    EXPECT_EQ(lines_of(*pattern, 2, "chill"), others);
  }
}

TEST(SourceTree, SharesOfRanksAreTheWhole)
{
  const auto alone = source_tree({"tree=shared", "directories=23", "files=101", "sources=31", "headers=9",
                                  "order=random", "phases=make,list,stat,compile,remove"});
  const auto split = source_tree({"tree=shared", "split=true", "directories=23", "files=101", "sources=31", "headers=9",
                                  "order=random", "phases=make,list,stat,compile,remove"},
                                 7);
  for (const char* phase :
       {"make-directories", "make-files", "list", "compile", "clean", "remove-files", "remove-directories"}) {
    Lines together;
    for (uint32_t rank = 0; rank < 7; ++rank) {
      const auto own = lines_of(*split, rank, phase);
      together.insert(together.end(), own.begin(), own.end());
    }
    EXPECT_EQ(together, lines_of(*alone, 0, phase)) << phase;
  }
  std::set<std::string> found;
  size_t count = 0;
  for (uint32_t rank = 0; rank < 7; ++rank)
    for (const auto& text : lines_of(*split, rank, "stat")) {
      found.insert(text);
      ++count;
    }
  EXPECT_EQ(found.size(), 101U);
  EXPECT_EQ(count, 101U);
}

TEST(SourceTree, CompilesAsMeasured)
{
  const auto pattern = source_tree({"phases=make,compile,remove"});
  const auto ops     = phase_of(*pattern, 0, "compile");
  ASSERT_EQ(ops.size(), 1000 * 602U);
  std::map<uint64_t, uint64_t> popularity;
  for (size_t unit = 0; unit < 1000; ++unit) {
    EXPECT_LT(ops[unit * 602].object % 10, 4U);
    std::set<uint64_t> headers;
    for (size_t j = 1; j <= 600; ++j) {
      const uint64_t file = ops[unit * 602 + j].object;
      ASSERT_TRUE(file % 10 >= 4 && file % 10 <= 6);
      headers.insert(file);
      ++popularity[file];
    }
    EXPECT_EQ(headers.size(), 600U);
  }
  EXPECT_EQ(popularity.size(), 7500U); // three tenths of 25,000
  EXPECT_EQ(
      std::count_if(popularity.begin(), popularity.end(), [](const auto& header) { return header.second == 1000; }),
      480);
}

TEST(SourceTree, SizesAreLognormal)
{
  // 25,000 sizes: quantiles at median exp(sigma z), 4 standard errors sqrt(p(1-p)/n) of the share below, a false alarm
  // in 16,000 each.
  const auto pattern = source_tree({"phases=make"});
  std::vector<double> sizes;
  for (const auto& op : phase_of(*pattern, 0, "make-files"))
    sizes.push_back(static_cast<double>(op.size));
  ASSERT_EQ(sizes.size(), 25000U);
  for (const auto& [p, z] : {std::pair{0.1, -1.28155}, {0.5, 0.0}, {0.9, 1.28155}, {0.99, 2.32635}}) {
    const double size = 3874 * std::exp(1.62 * z);
    const double below =
        static_cast<double>(std::count_if(sizes.begin(), sizes.end(), [size](double s) { return s < size; })) / 25000;
    const std::string what = fmt::format("share below the {} quantile", p);
    expect_within(what, below, p, 4, std::sqrt(p * (1 - p) / 25000), 1.0 / 4096);
  }
}

const std::vector<std::vector<std::string>> many_trees{
    {"directories=9", "files=50", "sources=15", "headers=6", "visits=4", "stride=1", "copies=2",
     "phases=make,chill,list,stat,browse,compile,remove"},
    {"tree=shared", "directories=9", "files=50", "sources=15", "headers=6", "visits=4", "pause=0s", "compute_time=1s",
     "repeats=2"},
    {"tree=shared", "split=true", "shape=regular", "depth=2", "fan_out=2", "files_per_directory=4", "sources=5",
     "stats=9", "visits=3", "phases=make,list,stat,compile,remove"},
    {"users=one", "directories=5", "files=30", "sources=0", "order=random",
     "phases=make,list,stat,browse,compile,remove"},
    {"tree=shared", "split=true", "users=one", "directories=5", "files=30", "sources=3",
     "phases=make,list,stat,browse,compile,remove"},
    {"directories=4", "files=0", "sources=0", "phases=make,list,stat,browse,remove"},
    {"directories=1", "files=1", "sources=1", "headers=5", "reads=3"}};

TEST(SourceTree, MakesWhatItUsesAndLeavesNothing)
{
  for (const auto& settings : many_trees)
    for (uint32_t ranks : {1, 2, 3, 8}) {
      const auto pattern = source_tree(settings, ranks);
      SCOPED_TRACE(fmt::format("{} on {}", fmt::join(settings, " "), ranks));
      expect_rules_kept(*pattern, whole_run(*pattern, ranks, false));
    }
}

TEST(SourceTree, FootprintCountsWhatTheStreamsDo)
{
  for (auto settings : many_trees)
    for (uint32_t ranks : {1, 2, 7}) {
      expect_footprint_of_streams(*source_tree(settings, ranks), ranks,
                                  fmt::format("{} on {}", fmt::join(settings, " "), ranks));
      for (const char* phases : {"make", "remove", "list,compile"})
        expect_footprint_of_streams(*source_tree(with(settings, {std::string("phases=") + phases}), ranks), ranks,
                                    phases);
    }
}

TEST(SourceTree, ACutCompilationIsCleanedExactly)
{
  for (uint32_t cut = 0; cut < 40; ++cut) {
    const auto pattern = source_tree({"tree=shared", "directories=9", "files=50", "sources=15", "headers=2",
                                      "most_seconds=1s", "phases=make,compile,remove"},
                                     2);
    SCOPED_TRACE(fmt::format("cut at {}", cut));
    expect_rules_kept(*pattern, whole_run(*pattern, 2, false, [&](size_t, uint32_t rank) { return cut + rank; }));
  }
}

TEST(SourceTree, RefusesWhatCannotBe)
{
  for (const std::vector<std::string>& settings :
       std::vector<std::vector<std::string>>{{"tree=mine"},
                                             {"users=two"},
                                             {"shape=round"},
                                             {"order=backwards"},
                                             {"files=100"}, // 40 sources
                                             {"files=100", "stats=101", "phases=stat"},
                                             {"stride=5"},
                                             {"stride=1", "tree=shared"},
                                             {"split=true"},
                                             {"phases=make,chill"},
                                             {"phases=remove,make"},
                                             {"phases=make,look"},
                                             {"shape=regular", "depth=9", "fan_out=10"},
                                             {"shape=regular", "depth=100", "fan_out=1"}})
    EXPECT_THROW(source_tree(settings, 4), InputError) << fmt::format("{}", fmt::join(settings, " "));
  EXPECT_EQ(source_tree({"copies=2"})->warnings().size(), 1U);
  EXPECT_TRUE(source_tree({"copies=2", "phases=make,chill,list,remove"})->warnings().empty());
}

/// As many files as a tree may have, near 2^32: each directory finds its own, and sizes, sources and headers stay
/// inside.
TEST(SourceTree, FourBillionFiles)
{
  constexpr uint64_t files = 4'000'000'000;
  const Tree tree          = Tree::grown(1000, files, 0);
  ASSERT_EQ(tree.files(), files);
  for (uint32_t directory = 0; directory < tree.directories(); ++directory)
    if (tree.files_in(directory) > 0) {
      EXPECT_EQ(tree.directory_of(tree.first_file(directory)), directory);
      EXPECT_EQ(tree.directory_of(tree.first_file(directory + 1) - 1), directory);
    }
  constexpr uint64_t sources = files / 10 * 4;
  const SourceFiles all(files, sources, 600, {3874, 1.62}, 0);
  EXPECT_EQ(all.source_of(sources - 1), files - 10 + 3);
  std::set<uint64_t> headers;
  for (uint32_t j = 0; j < all.headers_each(); ++j) {
    headers.insert(all.header_of(sources - 1, j));
    EXPECT_LT(*headers.rbegin(), files);
  }
  EXPECT_EQ(headers.size(), 600U);
  EXPECT_EQ(all.size_of(files + sources - 1), all.size_of(files - 10 + 3) * 5 / 4); // an object
}

TEST(SourceTree, MoreFilesThanCanBeCountedAreRefused)
{
  try {
    source_tree({"shape=regular", "depth=1", "fan_out=1000000", "files_per_directory=4000"});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "1000001 directories with 4000 files each are more than 4 billion files; make the tree smaller.");
  }
}

} // namespace
} // namespace iocast
