// SPDX-License-Identifier: Apache-2.0
//
// HPCS I/O scenarios 9 to 12: walks through directory trees and random stat calls, by one process or by many, with a
// cold and with a warm cache of metadata. Carrier, "HPCS I/O scenarios", Lustre Users Group 2012, pages 5 and 17. There
// are two copies of the tree. The phase `dirty` does to one copy what `cold` and then `warm` do to the other: it fills
// the caches with metadata that nobody needs again, which Carrier (page 17) found as good as starting the storage
// system anew. The shape of the tree isn't public; here every directory has `files` files and, above depth `depth`,
// `branching` subdirectories.
//
// Directories are numbered in the order of a depth-first walk, so that a walk counts up, and a contiguous share of the
// numbers is what one of several walking processes visits. Random stat calls follow a random permutation of all files:
// a file is called again only after all others, otherwise a cold pass would warm itself.
#include "input/error.hpp"
#include "input/portable.hpp"
#include "workload/permutation.hpp"
#include "workload/phased_pattern.hpp"
#include "workload/random.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fmt/format.h>

namespace iocast {
namespace {

constexpr uint64_t copies     = 2;
constexpr uint64_t measured   = 0;
constexpr uint64_t other_copy = 1;

class HpcsTree final : public PhasedPattern {
public:
  HpcsTree(const Parameters& given, const Placement& placement)
      : ranks_(placement.ranks)
      , branching_(given.count("branching"))
      , files_(given.count("files"))
      , file_size_(given.count("file_size"))
      , key_(random_words(given.count("seed"), Stream::hpcs, 0, 0))
  {
    scale_ = given.number("scale");
    grow(given.count("depth"));
    all_files_ = directories() * files_;
    walkers_   = given.count("walkers") == 0 ? ranks_ : std::min<uint64_t>(ranks_, given.count("walkers"));
    read_access(given);
    const double seconds = given.number("most_seconds");
    using Does           = PhaseOfWork::Does;
    choose_phases("hpcs-tree", given.text("phases"),
                  {{precreate_datasets, Does::makes, {"precreate", 1}},
                   {precreate_files, Does::makes, {"precreate", 2}},
                   {dirty, Does::uses, {"dirty", 0, seconds}},
                   {cold, Does::uses, {"cold", 0, seconds}},
                   {warm, Does::uses, {"warm", 0, seconds}},
                   {cleanup_files, Does::removes, {"cleanup", 1}},
                   {cleanup_datasets, Does::removes, {"cleanup", 2}}});
    follows_cold_ = seconds > 0 && runs(cold);
  }

  Footprint footprint() const override
  {
    const uint64_t made    = makes_data() ? copies : 0;
    const uint64_t removed = runs(cleanup_files) ? copies : 0;
    uint64_t passes        = 0;
    for (const size_t which : {dirty, cold, warm})
      passes += runs(which) ? 1 : 0;
    Footprint result;
    result.operations    = {{OpKind::mkdir, made * directories()},
                            {OpKind::create, made * all_files_},
                            {OpKind::readdir, walks_ ? passes * directories() : 0},
                            {OpKind::stat, passes * (walks_ ? all_files_ : stats_)},
                            {OpKind::unlink, removed * all_files_},
                            {OpKind::rmdir, removed * directories()}};
    result.bytes_written = made * all_files_ * file_size_;
    result.peak_objects  = copies * all_files_;
    result.peak_bytes    = result.peak_objects * file_size_;
    result.largest_size  = file_size_;
    return result;
  }

  char* name_dataset(uint64_t dataset, char* out) const override
  {
    std::memcpy(out, "copy-", 5);
    out = std::to_chars(out + 5, out + 6, dataset / directories()).ptr;
    descend(dataset % directories(), [&](uint64_t child) {
      std::memcpy(out, "/d", 2);
      out = std::to_chars(out + 2, out + 22, child).ptr;
    });
    return out;
  }

  nlohmann::ordered_json data_set() const override
  {
    return {{"ranks", ranks_},
            {"depth", subtree_.size() - 1},
            {"branching", branching_},
            {"files", files_},
            {"file_size", file_size_}};
  }

private:
  enum Which : size_t { precreate_datasets, precreate_files, dirty, cold, warm, cleanup_files, cleanup_datasets };

  void grow(uint64_t depth)
  {
    if (depth > 0) // there are about branching^depth directories
      branching_ = std::max<uint64_t>(
          1, static_cast<uint64_t>(std::llround(static_cast<double>(branching_) *
                                                portable::pow(scale_, 1 / static_cast<double>(depth)))));
    const size_t longest = 6 + depth * (2 + std::to_string(branching_ - 1).size());
    if (longest > 200)
      throw InputError(
          fmt::format("A tree of depth {} has names of {} bytes; at most 200 are allowed.", depth, longest));
    subtree_.assign(depth + 1, 1);
    for (size_t level = depth; level-- > 0;) {
      const double size = 1 + static_cast<double>(branching_) * static_cast<double>(subtree_[level + 1]);
      if (size > 4e9)
        throw InputError(
            fmt::format("A tree of depth {} with {} subdirectories in each directory has too many directories.", depth,
                        branching_));
      subtree_[level] = 1 + branching_ * subtree_[level + 1];
    }
  }

  void read_access(const Parameters& given)
  {
    static const std::vector<std::string> ways{"walk", "stat"};
    const auto& access = given.text("access");
    if (std::find(ways.begin(), ways.end(), access) == ways.end())
      throw InputError(fmt::format("hpcs-tree knows no access '{}'. {}", access, allowed_sentence(access, ways)));
    walks_ = access == "walk";
    if (!walks_ && all_files_ == 0)
      throw InputError("Random stat calls need files; set files to at least 1.");
    stats_ = given.count("stats") == 0 ? all_files_
                                       : std::max<uint64_t>(1, static_cast<uint64_t>(given.number("stats") * scale_));
    if (!walks_)
      order_ = Permutation(all_files_);
  }

  uint64_t directories() const { return subtree_[0]; }

  /// Calls `enter(number of the subdirectory)` on the way from the root to directory `number`, and returns its depth.
  template <class Enter> size_t descend(uint64_t number, Enter enter) const
  {
    size_t level = 0;
    for (uint64_t rest = number; rest > 0; ++level) {
      const uint64_t size = subtree_[level + 1];
      enter((rest - 1) / size);
      rest = (rest - 1) % size;
    }
    return level;
  }

  uint64_t entries(uint64_t directory) const
  {
    const bool is_leaf = descend(directory, [](uint64_t) {}) + 1 == subtree_.size();
    return files_ + (is_leaf ? 0 : branching_);
  }

  /// In the cursor: i and a, b = where the rank stands and where its share ends; j = file of the directory; c =
  /// operations of the cold phase, beyond which the warm one must not go when that was cut.
  bool next_in(size_t which, Cursor& cursor, Op& op) const override
  {
    switch (which) {
      case precreate_datasets:
      case cleanup_datasets:
        return next_dataset(which == precreate_datasets, cursor, op);
      case precreate_files:
        return next_file(OpKind::create, file_size_, cursor, op);
      case cleanup_files:
        return next_file(OpKind::unlink, 0, cursor, op);
      case dirty:
        return next_access(other_copy, cursor, op);
      case cold:
        if (!next_access(measured, cursor, op))
          return false;
        cursor.c += cursor.c < UINT32_MAX;
        return true;
      default:
        if (follows_cold_ && cursor.c-- == 0)
          return false;
        return next_access(measured, cursor, op);
    }
  }

  /// Rank 0 makes parents before children and removes them after.
  bool next_dataset(bool makes, Cursor& cursor, Op& op) const
  {
    const uint64_t last = copies * directories() - 1;
    if (cursor.rank != 0 || cursor.i > last)
      return false;
    op = {makes ? OpKind::mkdir : OpKind::rmdir, makes ? cursor.i : last - cursor.i, 0};
    ++cursor.i;
    return true;
  }

  /// All ranks share the directories of both copies.
  bool next_file(OpKind kind, uint64_t size, Cursor& cursor, Op& op) const
  {
    if (files_ == 0 || !has_more(cursor, copies * directories(), ranks_))
      return false;
    op = {kind, cursor.i, cursor.j, size};
    if (++cursor.j == files_) {
      cursor.j = 0;
      ++cursor.i;
    }
    return true;
  }

  bool next_access(uint64_t copy, Cursor& cursor, Op& op) const
  {
    if (cursor.rank >= walkers_ || !has_more(cursor, walks_ ? directories() : stats_, walkers_))
      return false;
    if (!walks_) {
      const uint64_t file = order_(cursor.i++ % all_files_, key_);
      op                  = {OpKind::stat, copy * directories() + file / files_, file % files_};
      return true;
    }
    const uint64_t dataset = copy * directories() + cursor.i;
    op = cursor.j == 0 ? Op{OpKind::readdir, dataset, 0, entries(cursor.i)} : Op{OpKind::stat, dataset, cursor.j - 1};
    if (cursor.j++ == files_) {
      cursor.j = 0;
      ++cursor.i;
    }
    return true;
  }

  /// Puts a cursor at the start of a phase on its rank's share of `total`; false when it has reached the end of that.
  static bool has_more(Cursor& cursor, uint64_t total, uint64_t sharers)
  {
    if (cursor.step == 1) {
      cursor.step        = 2;
      cursor.i           = share_start(total, cursor.rank, sharers);
      const uint64_t end = share_start(total, cursor.rank + 1ULL, sharers);
      cursor.a           = static_cast<uint32_t>(end);
      cursor.b           = static_cast<uint32_t>(end >> 32);
    }
    return cursor.i < (uint64_t{cursor.b} << 32 | cursor.a);
  }

  uint64_t ranks_;
  uint64_t branching_;
  uint64_t files_; ///< of each directory
  uint64_t file_size_;
  Permutation::Key key_;
  double scale_ = 1;
  std::vector<uint64_t> subtree_; ///< directories in a subtree whose root is at each level
  uint64_t all_files_ = 0;        ///< of one copy
  uint64_t walkers_   = 0;        ///< ranks that walk or stat: the first ones
  bool walks_         = true;
  uint64_t stats_     = 0; ///< of all walkers in one phase
  Permutation order_;      ///< of the files
  bool follows_cold_ = false;
};

const bool registered = register_pattern(
    {"hpcs-tree",
     "walks through a directory tree or stats its files at random, with cold and warm caches",
     "Carrier, HPCS I/O scenarios, LUG 2012, pages 5 and 17: scenarios 9 to 12; the shape of the tree is this "
     "pattern's choice",
     {{"access", Unit::text, "walk",
       "walk: list each directory and stat its files, depth first; stat: files in random order"},
      {"walkers", Unit::count, "0", "processes that walk or stat; 0: all", 0, 4e9},
      {"depth", Unit::count, "4", "levels of directories below the root of the tree", 0, 60},
      {"branching", Unit::count, "10", "subdirectories of each directory above the deepest level", 1, 1e6},
      {"files", Unit::count, "100", "files in each directory", 0, 1e9},
      {"file_size", Unit::bytes, "0B", "size of each file", 0, 1e12},
      {"stats", Unit::count, "0", "random stat calls of all processes in each phase; 0: as many as there are files", 0,
       1e15},
      {"most_seconds", Unit::seconds, "0s", "ends dirty, cold and warm after so long each; 0s: when all is visited", 0,
       1e9},
      {"seed", Unit::count, "0", "of the random order", 0, 9e15},
      {"scale", Unit::factor, "1",
       "multiplies the directories, by fewer subdirectories in each, and stats, for trial runs", 1e-9, 1e6},
      {"phases", Unit::text, "all", "which of precreate, dirty, cold, warm, cleanup to run"}},
     {"depth=2 branching=3 files=4 most_seconds=1h", "depth=1 branching=2 files=5 file_size=100B access=stat",
      "depth=2 branching=2 files=0 walkers=1 most_seconds=1h",
      "depth=1 branching=3 files=3 access=stat stats=20 walkers=2 most_seconds=1h"},
     [](const Parameters& given, const Placement& placement) { return std::make_unique<HpcsTree>(given, placement); }});

} // namespace
} // namespace iocast
