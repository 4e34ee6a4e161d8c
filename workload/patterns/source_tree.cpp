// SPDX-License-Identifier: Apache-2.0
//
// source-tree: what people do with a tree of source files, for the response time that they perceive. Sebepou, Magoutis,
// Marazakis & Bilas, "A comparative experimental study of parallel file systems for large-scale data processing", LASCO
// 2008, list the tree of Linux 2.6.12 (about 25,000 files) with `ls -lR`; the definition isn't more precise than that,
// and the other uses here are this pattern's own reading of "interactive tasks". The tree's shape is that of
// workload/tree.hpp, or a regular one; its files are those of workload/source_files.hpp.
//
//   list     ls -lR: directory by directory as ls goes, list it and stat its entries, first directories, then files
//   stat     stat files, in the order of the tree or at random, none twice
//   browse   a user who goes to a directory (stat), lists it with its entries' attributes, and reads a few of its
//   files, with a pause
//            before each of these: exponential, cut at ten times the mean, as are the think times of TPC-W's browsers
//   compile  for each source: read it, read its headers, compute, make an object beside it; afterwards `clean` removes
//   the objects chill    list every other copy of the tree, so that caches hold what nobody will ask for (Carrier,
//   "HPCS I/O scenarios", LUG 2012,
//            page 17, found that as good as a restart)
#include "input/error.hpp"
#include "input/portable.hpp"
#include "workload/pattern.hpp"
#include "workload/permutation.hpp"
#include "workload/phase_list.hpp"
#include "workload/random.hpp"
#include "workload/source_files.hpp"
#include "workload/tree.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fmt/format.h>

namespace iocast {
namespace {

/// The place of `given` in `allowed`. @throws InputError
size_t choice(const Parameters& given, const std::string& name, const std::vector<std::string>& allowed)
{
  const auto& wanted = given.text(name);
  const auto found   = std::find(allowed.begin(), allowed.end(), wanted);
  if (found == allowed.end())
    throw InputError(
        fmt::format("source-tree's {} can't be '{}'. {}", name, wanted, allowed_sentence(wanted, allowed)));
  return static_cast<size_t>(found - allowed.begin());
}

Tree make_tree(const Parameters& given)
{
  if (choice(given, "shape", {"grown", "regular"}) == 0)
    return Tree::grown(static_cast<uint32_t>(given.count("directories")), given.count("files"), given.count("seed"));
  const double fan_out = given.number("fan_out");
  double directories   = 1;
  for (double level = 0, width = 1; level < given.number("depth"); ++level)
    directories += width *= fan_out;
  if (directories > 1e7)
    throw InputError(
        fmt::format("A tree of depth {} and fan-out {} has more than 10 million directories; make it smaller.",
                    given.count("depth"), fan_out));
  constexpr double most_files = 4e9; // as many as a grown tree may have: their sizes are added up before a run
  if (directories * given.number("files_per_directory") > most_files)
    throw InputError(fmt::format("{:.0f} directories with {} files each are more than 4 billion files; make the tree "
                                 "smaller.",
                                 directories, given.count("files_per_directory")));
  return Tree::regular(static_cast<uint32_t>(given.count("depth")), static_cast<uint32_t>(fan_out),
                       given.count("files_per_directory"));
}

class SourceTree final : public Pattern {
public:
  SourceTree(const Parameters& given, const Placement& placement)
      : ranks_(placement.ranks)
      , shared_(choice(given, "tree", {"own", "shared"}) == 1)
      , one_user_(choice(given, "users", {"all", "one"}) == 1)
      , copies_(static_cast<uint32_t>(given.count("copies")))
      , split_(given.flag("split"))
      , seed_(given.count("seed"))
      , random_(choice(given, "order", {"tree", "random"}) == 1)
      , visits_(given.count("visits"))
      , reads_(static_cast<uint32_t>(given.count("reads")))
      , pause_seconds_(given.number("pause"))
      , compute_ns_(static_cast<uint64_t>(std::llround(given.number("compute_time") * 1e9)))
      , tree_(make_tree(given))
      , order_(std::max<uint64_t>(tree_.files(), 1))
      , data_set_{{"ranks", ranks_}}
  {
    for (const char* name : {"tree", "users", "shape"})
      data_set_[name] = given.text(name);
    const bool is_regular = given.text("shape") == "regular";
    for (const char* name :
         is_regular ? std::vector{"depth", "fan_out", "files_per_directory"} : std::vector{"directories", "files"})
      data_set_[name] = given.count(name);
    for (const char* name : {"copies", "size_median", "seed"})
      data_set_[name] = given.count(name);
    data_set_["size_sigma"] = given.number("size_sigma");
    trees_                  = shared_ || one_user_ ? 1 : ranks_;
    read_phases(given.text("phases"), static_cast<uint32_t>(given.count("repeats")), given.number("most_seconds"));
    read_counts(given);
    read_roles(given);
    check_names();
    count_up();
  }

  const std::vector<Phase>& phases() const override { return phases_; }
  Footprint footprint() const override { return footprint_; }
  nlohmann::ordered_json data_set() const override { return data_set_; }
  nlohmann::ordered_json position_after(size_t) const override { return nlohmann::ordered_json::object(); }

  bool next(Cursor& cursor, Op& op) const override
  {
    while (cursor.phase < kinds_.size()) {
      if (cursor.step == before_phase) {
        op = {OpKind::phase, 0, cursor.phase};
        begin(cursor);
        return true;
      }
      if (is_active(cursor) && next_of_phase(cursor, op))
        return true;
      cut(cursor);
    }
    return false;
  }

  void cut(Cursor& cursor) const override
  {
    if (cursor.phase >= kinds_.size() || cursor.step == before_phase)
      return;
    if (kinds_[cursor.phase] == Kind::compile)
      cursor.c = static_cast<uint32_t>(cursor.i); // objects made
    ++cursor.phase;
    cursor.step = before_phase;
  }

  std::vector<std::string> warnings() const override
  {
    if (copies_ > 1 && !asks_for(Kind::chill))
      return {"The copies of the tree are of use only to the phase chill, which is not among the requested phases."};
    return {};
  }

  /// "tree-<number>-<copy>/3/17"
  char* name_dataset(uint64_t dataset, char* out) const override
  {
    const uint64_t tree = dataset / tree_.directories();
    std::memcpy(out, "tree-", 5);
    out    = std::to_chars(out + 5, out + 25, tree / copies_).ptr;
    *out++ = '-';
    out    = std::to_chars(out, out + 20, tree % copies_).ptr;
    return tree_.name(static_cast<uint32_t>(dataset % tree_.directories()), out);
  }

  char* name_object(uint64_t object, char* out) const override
  {
    const char* word = object < tree_.files() ? "file-" : "object-";
    std::memcpy(out, word, std::strlen(word));
    out += std::strlen(word);
    return std::to_chars(out, out + 20, object).ptr;
  }

  std::string making_phases() const override { return "make"; }
  std::string removing_phases() const override { return "remove"; }

private:
  enum class Kind : uint8_t {
    make_directories,
    make_files,
    chill,
    list,
    stat,
    browse,
    compile,
    clean,
    remove_files,
    remove_directories
  };
  enum Step : uint16_t { before_phase = 0, enter, look, directories, files, fetch, compute, finish };

  struct Range {
    uint64_t begin;
    uint64_t end;
  };

  // ---- requested phases
  // --------------------------------------------------------------------------------------------------

  bool asks_for(Kind kind) const { return std::find(kinds_.begin(), kinds_.end(), kind) != kinds_.end(); }

  void read_counts(const Parameters& given)
  {
    units_ = asks_for(Kind::compile) ? given.count("sources") : 0;
    files_ = SourceFiles(tree_.files(), units_, given.count("headers"),
                         {given.number("size_median"), given.number("size_sigma")}, seed_);
    stats_ = given.count("stats");
    if (stats_ > tree_.files() && asks_for(Kind::stat))
      throw InputError(
          fmt::format("source-tree stats each file once, so at most all {}, not {}.", tree_.files(), stats_));
    if (stats_ == 0)
      stats_ = tree_.files();
  }

  void read_roles(const Parameters& given)
  {
    const uint64_t stride = within("source-tree", "stride", given, ranks_, "ranks");
    if (stride > 0 && trees_ == 1 && ranks_ > 1)
      throw InputError(
          "source-tree has a stride only between trees of several ranks; set tree=own and users=all, or stride=0.");
    shift_ = stride % ranks_;
    if (split_ && !shared_)
      throw InputError("source-tree can split only a tree that the ranks share; set tree=shared, or split=false.");
  }

  void read_phases(const std::string& wanted, uint32_t repeats, double most_seconds)
  {
    static const std::vector<std::string> names{"make", "chill", "list", "stat", "browse", "compile", "remove"};
    auto add = [this](Kind kind, const std::string& name, uint32_t repeat = 0, double seconds = 0) {
      kinds_.push_back(kind);
      phases_.push_back({name, repeat, seconds});
    };
    for (const size_t place : requested_phases("source-tree", names, wanted)) {
      const auto& name = names[place];
      if (name == "make") {
        add(Kind::make_directories, "make-directories");
        add(Kind::make_files, "make-files");
      } else if (name == "remove") {
        add(Kind::remove_files, "remove-files");
        add(Kind::remove_directories, "remove-directories");
      } else if (name == "chill") {
        if (copies_ == 1)
          throw InputError("source-tree chills caches with other copies of the tree, but there is just the one; set "
                           "copies to 2 or more.");
        add(Kind::chill, name);
      } else {
        const Kind kind = name == "list"     ? Kind::list
                          : name == "stat"   ? Kind::stat
                          : name == "browse" ? Kind::browse
                                             : Kind::compile;
        for (uint32_t repeat = 1; repeat <= repeats; ++repeat) {
          add(kind, name, repeats > 1 ? repeat : 0, most_seconds);
          if (kind == Kind::compile)
            add(Kind::clean, "clean", repeats > 1 ? repeat : 0);
        }
      }
    }
  }

  void check_names() const
  {
    const uint64_t longest = fmt::formatted_size("tree-{}-{}", trees_, copies_) + tree_.longest_name();
    if (longest > 200)
      throw InputError(
          fmt::format("The deepest directories would have names of {} bytes, but a name has at most 200; make the tree "
                      "smaller or less deep.",
                      longest));
  }

  // ---- what is drawn
  // --------------------------------------------------------------------------------------------------

  /// The file that a user opens first in a visit; it says which directory it is.
  uint64_t visited_file(uint32_t rank, uint64_t visit) const
  {
    return random_words(seed_, Stream::visitor, rank, visit << 16)[0] * tree_.files() >> 32;
  }
  uint64_t pause_ns(uint32_t rank, uint64_t visit, uint64_t number) const
  {
    const double u       = to_uniform(random_words(seed_, Stream::visitor, rank, visit << 16 | number)[1]);
    const double seconds = pause_seconds_ * std::min(-portable::log(u), 10.0);
    return static_cast<uint64_t>(std::llround(seconds * 1e6)) * 1000;
  }

  // ---- who does what
  // -------------------------------------------------------------------------------------------------- i: file, visit
  // or source; j: place in what is being looked at; a: directory; b: subdirectory or copy; c: objects made.

  static Range share(uint64_t all, uint64_t part, uint64_t parts)
  {
    const uint64_t each  = all / parts;
    const uint64_t rest  = all % parts; // the first ones have one more
    const uint64_t begin = each * part + std::min(part, rest);
    return {begin, begin + each + (part < rest ? 1 : 0)};
  }
  /// A rank's share of the things of this kind.
  Range part_of(Kind kind, uint32_t rank) const
  {
    switch (kind) {
      case Kind::make_files:
      case Kind::remove_files:
        return parted(tree_.files(), rank, shared_ && !one_user_);
      case Kind::make_directories:
      case Kind::remove_directories:
        return {0, trees_ == 1 && rank > 0 ? 0 : tree_.directories()};
      case Kind::chill:
        return {0, tree_.directories()};
      case Kind::list:
        return parted(tree_.directories(), rank, split_);
      case Kind::stat:
        return parted(stats_, rank, split_);
      case Kind::browse:
        return {0, tree_.files() > 0 ? visits_ : 0};
      case Kind::compile:
      case Kind::clean:
        return parted(units_, rank, shared_);
    }
    return {0, 0};
  }
  Range parted(uint64_t all, uint32_t rank, bool is_split) const
  {
    return is_split && !one_user_ ? share(all, rank, ranks_) : Range{0, all};
  }
  bool is_active(const Cursor& cursor) const { return !one_user_ || cursor.rank == 0; }
  /// The tree that the rank made, or the one that it uses.
  uint64_t made_tree(uint32_t rank) const { return trees_ == 1 ? 0 : rank; }
  uint64_t used_tree(uint32_t rank) const { return trees_ == 1 ? 0 : (rank + shift_) % ranks_; }
  uint64_t dataset(uint64_t tree, uint32_t copy, uint32_t directory) const
  {
    return (tree * copies_ + copy) * tree_.directories() + directory;
  }

  void begin(Cursor& cursor) const
  {
    const Kind kind   = kinds_[cursor.phase];
    const Range range = part_of(kind, cursor.rank);
    cursor.step       = enter;
    cursor.i          = range.begin;
    cursor.j          = 0;
    cursor.a          = 0;
    cursor.b          = 0;
    if (kind == Kind::remove_directories)
      cursor.i = range.end;
    else if ((kind == Kind::make_files || kind == Kind::remove_files) && range.begin < range.end)
      cursor.a = tree_.directory_of(range.begin);
    else if (kind == Kind::chill)
      cursor.j = 1; // the copy
  }

  // ---- operations
  // -----------------------------------------------------------------------------------------------------

  bool next_of_phase(Cursor& cursor, Op& op) const
  {
    const Kind kind   = kinds_[cursor.phase];
    const Range range = part_of(kind, cursor.rank);
    switch (kind) {
      case Kind::make_directories:
      case Kind::remove_directories:
        return next_directory(kind == Kind::make_directories, range, cursor, op);
      case Kind::make_files:
      case Kind::remove_files:
        return next_file(kind == Kind::make_files, range, cursor, op);
      case Kind::chill:
        while (cursor.j < copies_) {
          if (next_listed(cursor.j, range, cursor, op))
            return true;
          ++cursor.j;
          cursor.i = 0;
        }
        return false;
      case Kind::list:
        return next_listed(0, range, cursor, op);
      case Kind::stat: {
        if (cursor.i == range.end)
          return false;
        const uint64_t file =
            random_ ? order_(cursor.i, random_words(seed_, Stream::order, shared_ && split_ ? 0 : cursor.rank, 0))
                    : cursor.i;
        ++cursor.i;
        about_file(OpKind::stat, cursor.rank, file, op);
        return true;
      }
      case Kind::browse:
        return next_visit(range, cursor, op);
      case Kind::compile:
        return next_compiled(range, cursor, op);
      case Kind::clean:
        if (cursor.i == cursor.c || cursor.i >= range.end)
          return false;
        about_object(OpKind::unlink, cursor.rank, cursor.i++, op);
        return true;
    }
    return false;
  }

  /// In the order of their numbers, or backwards; copy by copy.
  bool next_directory(bool makes, const Range& range, Cursor& cursor, Op& op) const
  {
    if (cursor.i == (makes ? range.end : 0)) {
      if (range.end == 0 || ++cursor.b == copies_)
        return false;
      cursor.i = makes ? 0 : range.end;
    }
    const auto directory = static_cast<uint32_t>(makes ? cursor.i++ : --cursor.i);
    op = {makes ? OpKind::mkdir : OpKind::rmdir, dataset(made_tree(cursor.rank), cursor.b, directory), 0};
    return true;
  }

  bool next_file(bool makes, const Range& range, Cursor& cursor, Op& op) const
  {
    if (cursor.i == range.end) {
      if (range.begin == range.end || ++cursor.b == copies_)
        return false;
      cursor.i = range.begin;
      cursor.a = tree_.directory_of(range.begin);
    }
    while (cursor.i >= tree_.first_file(cursor.a + 1))
      ++cursor.a;
    op = {makes ? OpKind::create : OpKind::unlink, dataset(made_tree(cursor.rank), cursor.b, cursor.a), cursor.i,
          makes ? files_.size_of(cursor.i) : 0};
    ++cursor.i;
    return true;
  }

  /// ls -lR of the directories in the range (i); ls itself reads the attributes of its arguments.
  bool next_listed(uint32_t copy, const Range& range, Cursor& cursor, Op& op) const
  {
    while (cursor.i < range.end) {
      const auto directory = static_cast<uint32_t>(cursor.i);
      if (cursor.step == enter) {
        cursor.step = look;
        if (directory == 0) {
          about_directory(OpKind::stat, cursor.rank, copy, 0, op);
          return true;
        }
      }
      if (next_entry(copy, directory, cursor, op))
        return true;
      ++cursor.i;
      cursor.step = enter;
    }
    return false;
  }

  /// A directory's list, then its entries (b: the next directory; a: the next file in it), until false; steps look to
  /// files.
  bool next_entry(uint32_t copy, uint32_t directory, Cursor& cursor, Op& op) const
  {
    switch (cursor.step) {
      case look:
        about_directory(OpKind::readdir, cursor.rank, copy, directory, op);
        op.size     = tree_.directories_in(directory) + tree_.files_in(directory);
        cursor.b    = directory + 1;
        cursor.a    = 0;
        cursor.step = directories;
        return true;
      case directories:
        if (cursor.b < tree_.after(directory)) {
          about_directory(OpKind::stat, cursor.rank, copy, cursor.b, op);
          cursor.b = tree_.after(cursor.b);
          return true;
        }
        cursor.step = files;
        [[fallthrough]];
      case files:
        if (cursor.a == tree_.files_in(directory))
          return false;
        op = {OpKind::stat, dataset(used_tree(cursor.rank), copy, directory), tree_.first_file(directory) + cursor.a};
        ++cursor.a;
        return true;
      default:
        return false;
    }
  }

  /// j counts the pauses and what follows each: going, listing, reading the first file, the second, ...
  bool next_visit(const Range& range, Cursor& cursor, Op& op) const
  {
    while (cursor.i < range.end) {
      const uint64_t file      = visited_file(cursor.rank, cursor.i);
      const uint32_t directory = tree_.directory_of(file);
      const uint64_t inside    = tree_.files_in(directory);
      switch (cursor.step) {
        case enter: // a pause, unless nothing is left to do
          if (cursor.j == 2 + std::min<uint64_t>(reads_, inside)) {
            cursor.j = 0;
            ++cursor.i;
            break;
          }
          cursor.step = cursor.j == 0 ? finish : cursor.j == 1 ? look : fetch;
          if (const uint64_t ns = pause_ns(cursor.rank, cursor.i, cursor.j++); ns > 0) {
            op = {OpKind::think, 0, 0, ns};
            return true;
          }
          break;
        case finish:
          about_directory(OpKind::stat, cursor.rank, 0, directory, op);
          cursor.step = enter;
          return true;
        case fetch: {
          const uint64_t first = tree_.first_file(directory);
          about_file(OpKind::read, cursor.rank, first + (file - first + cursor.j - 3) % inside, op);
          cursor.step = enter;
          return true;
        }
        default:
          if (next_entry(0, directory, cursor, op))
            return true;
          cursor.step = enter;
      }
    }
    return false;
  }

  bool next_compiled(const Range& range, Cursor& cursor, Op& op) const
  {
    if (cursor.i == range.end)
      return false;
    switch (cursor.step) {
      case enter:
        about_file(OpKind::read, cursor.rank, files_.source_of(cursor.i), op);
        cursor.step = fetch;
        return true;
      case fetch:
        if (cursor.j < files_.headers_each()) {
          about_file(OpKind::read, cursor.rank, files_.header_of(cursor.i, cursor.j++), op);
          return true;
        }
        cursor.j    = 0;
        cursor.step = compute;
        [[fallthrough]];
      case compute:
        cursor.step = finish;
        if (compute_ns_ > 0) {
          op = {OpKind::think, 0, 0, compute_ns_};
          return true;
        }
        [[fallthrough]];
      default:
        about_object(OpKind::create, cursor.rank, cursor.i++, op);
        cursor.step = enter;
        return true;
    }
  }

  void about_directory(OpKind kind, uint32_t rank, uint32_t copy, uint32_t directory, Op& op) const
  {
    op       = {kind, dataset(used_tree(rank), copy, directory), 0};
    op.flags = kind == OpKind::stat ? whole : 0;
  }
  void about_file(OpKind kind, uint32_t rank, uint64_t file, Op& op) const
  {
    op = {kind, dataset(used_tree(rank), 0, tree_.directory_of(file)), file,
          kind == OpKind::read ? files_.size_of(file) : 0};
  }
  void about_object(OpKind kind, uint32_t rank, uint64_t unit, Op& op) const
  {
    const uint64_t object = tree_.files() + unit;
    op                    = {kind, dataset(used_tree(rank), 0, tree_.directory_of(files_.source_of(unit))), object,
          kind == OpKind::create ? files_.size_of(object) : 0};
  }

  // ---- the footprint
  // --------------------------------------------------------------------------------------------------

  struct Moved {
    uint64_t bytes   = 0;
    uint64_t largest = 0;

    void add(uint64_t more)
    {
      bytes += more;
      largest = std::max(largest, more);
    }
    void add(const Moved& more, uint64_t times = 1)
    {
      bytes += times * more.bytes;
      largest = std::max(largest, more.largest);
    }
  };

  /// Once: what is drawn has to be gone through.
  void count_up()
  {
    std::array<uint64_t, op_count> count{};
    auto add             = [&count](OpKind kind, uint64_t more) { count[static_cast<size_t>(kind)] += more; };
    const uint64_t users = one_user_ ? 1 : ranks_;
    const uint64_t lists = split_ && !one_user_ ? 1 : users; // how often the tree is gone through
    const uint64_t works = shared_ ? 1 : users;
    const uint64_t trees = trees_ * copies_;
    Moved all; // the files of a tree
    for (uint64_t file = 0; file < tree_.files(); ++file)
      all.add(files_.size_of(file));
    Moved fetched; // by a compilation of everything
    Moved objects;
    if (asks_for(Kind::compile)) {
      Moved common;
      for (uint32_t j = 0; j < files_.common_headers(); ++j)
        common.add(files_.size_of(files_.header_of(0, j)));
      for (uint64_t unit = 0; unit < units_; ++unit) {
        fetched.add(files_.size_of(files_.source_of(unit)));
        fetched.add(common);
        for (uint32_t j = files_.common_headers(); j < files_.headers_each(); ++j)
          fetched.add(files_.size_of(files_.header_of(unit, j)));
        objects.add(files_.size_of(tree_.files() + unit));
      }
    }
    Moved read;
    Moved written;
    for (const Kind kind : kinds_)
      switch (kind) {
        case Kind::make_directories:
          add(OpKind::mkdir, trees * tree_.directories());
          break;
        case Kind::make_files:
          add(OpKind::create, trees * tree_.files());
          written.add(all, trees);
          break;
        case Kind::chill:
          add(OpKind::readdir, users * (copies_ - 1) * tree_.directories());
          add(OpKind::stat, users * (copies_ - 1) * (tree_.directories() + tree_.files()));
          break;
        case Kind::list:
          add(OpKind::readdir, lists * tree_.directories());
          add(OpKind::stat, lists * (tree_.directories() + tree_.files()));
          break;
        case Kind::stat:
          add(OpKind::stat, lists * stats_);
          break;
        case Kind::browse:
          count_browsing(users, count, read);
          break;
        case Kind::compile:
          add(OpKind::read, works * units_ * (1 + files_.headers_each()));
          add(OpKind::think, compute_ns_ > 0 ? works * units_ : 0);
          add(OpKind::create, works * units_);
          read.add(fetched, works);
          written.add(objects, works);
          break;
        case Kind::clean:
          add(OpKind::unlink, works * units_);
          break;
        case Kind::remove_files:
          add(OpKind::unlink, trees * tree_.files());
          break;
        case Kind::remove_directories:
          add(OpKind::rmdir, trees * tree_.directories());
          break;
      }
    for (size_t kind = 0; kind < op_count; ++kind)
      if (count[kind] > 0)
        footprint_.operations.emplace_back(static_cast<OpKind>(kind), count[kind]);
    footprint_.bytes_read    = read.bytes;
    footprint_.bytes_written = written.bytes;
    footprint_.peak_objects  = trees * tree_.files() + works * units_;
    footprint_.peak_bytes    = trees * all.bytes + works * objects.bytes;
    footprint_.largest_size  = std::max(read.largest, written.largest);
  }

  void count_browsing(uint64_t users, std::array<uint64_t, op_count>& count, Moved& read) const
  {
    auto add = [&count](OpKind kind, uint64_t more) { count[static_cast<size_t>(kind)] += more; };
    for (uint32_t rank = 0; rank < users; ++rank)
      for (uint64_t visit = 0; visit < part_of(Kind::browse, rank).end; ++visit) {
        const uint64_t file      = visited_file(rank, visit);
        const uint32_t directory = tree_.directory_of(file);
        const uint64_t inside    = tree_.files_in(directory);
        const uint64_t opened    = std::min<uint64_t>(reads_, inside);
        add(OpKind::stat, 1 + tree_.directories_in(directory) + inside);
        add(OpKind::readdir, 1);
        add(OpKind::read, opened);
        for (uint64_t i = 0; i < 2 + opened; ++i)
          add(OpKind::think, pause_ns(rank, visit, i) > 0);
        for (uint64_t i = 0; i < opened; ++i)
          read.add(files_.size_of(tree_.first_file(directory) + (file - tree_.first_file(directory) + i) % inside));
      }
  }

  uint32_t ranks_;
  bool shared_;
  bool one_user_;
  uint32_t copies_;
  bool split_;
  uint64_t seed_;
  bool random_;
  uint64_t visits_;
  uint32_t reads_; ///< files in a visit, at most
  double pause_seconds_;
  uint64_t compute_ns_;
  Tree tree_;
  Permutation order_;
  nlohmann::ordered_json data_set_;
  uint64_t trees_ = 1; ///< without their copies
  uint64_t shift_ = 0;
  SourceFiles files_;
  uint64_t units_ = 0; ///< sources that are compiled
  uint64_t stats_ = 0;
  std::vector<Kind> kinds_;
  std::vector<Phase> phases_;
  Footprint footprint_;
};

const bool registered = register_pattern(
    {"source-tree",
     "lists, browses and compiles a tree of source files, for the response time that users perceive",
     "Sebepou, Magoutis, Marazakis & Bilas 2008, user-perceived response time; shape of the tree after Agrawal et al., "
     "FAST 2007, and "
     "Linux 6.1",
     {{"tree", Unit::text, "own", "own: each rank has a tree; shared: one for all"},
      {"users", Unit::text, "all", "all: every rank does something; one: rank 0 alone, on one tree"},
      {"shape", Unit::text, "grown", "grown: as source trees are; regular: by depth, fan_out and files_per_directory"},
      {"directories", Unit::count, "1600", "grown: directories of a tree", 1, 1e7},
      {"files", Unit::count, "25000", "grown: files of a tree", 0, 4e9},
      {"depth", Unit::count, "4", "regular: levels of directories below the root", 0, 100},
      {"fan_out", Unit::count, "6", "regular: directories in a directory", 1, 1e6},
      {"files_per_directory", Unit::count, "16", "regular: files in a directory", 0, 4e5},
      {"size_median", Unit::bytes, "3874B", "of the files; lognormal", 1, 1e9},
      {"size_sigma", Unit::factor, "1.62", "standard deviation of the natural logarithm of their sizes", 0, 4},
      {"seed", Unit::count, "0", "of everything that is drawn", 0, 9e15},
      {"copies", Unit::count, "1", "copies of each tree; all but the first are for the phase chill", 1, 1000},
      {"stride", Unit::count, "0", "ranks from who makes a tree to who uses it", 0, 4e9},
      {"split", Unit::flag, "false",
       "with a shared tree: list and stat are dealt out to the ranks; else each does all"},
      {"order", Unit::text, "tree", "of the phase stat: tree or random"},
      {"stats", Unit::count, "0", "files that the phase stat asks for; 0: all", 0, 4e9},
      {"visits", Unit::count, "20", "browse: directories that a user goes to", 0, 1e9},
      {"reads", Unit::count, "3", "browse: files read in each, if it has that many", 0, 60000},
      {"pause", Unit::seconds, "1s", "browse: a user's pause before each action, a mean", 0, 1e4},
      {"sources", Unit::count, "1000", "compile: sources to compile; of a shared tree the ranks share them", 0, 4e9},
      {"headers", Unit::count, "600", "compile: headers that each source reads", 0, 1e6},
      {"compute_time", Unit::seconds, "0s", "compile: time from the last header to the object", 0, 1e4},
      {"repeats", Unit::count, "1", "how often each of list, stat, browse and compile runs", 1, 10000},
      {"most_seconds", Unit::seconds, "0s", "when each of them is stopped; 0s: when it is done", 0, 1e9},
      {"phases", Unit::text, "make,list,browse,compile,remove",
       "of make, chill, list, stat, browse, compile, remove, in this order"}},
     {"directories=7 files=40 sources=10 headers=8 visits=3 pause=1us compute_time=1us copies=2 stride=1 "
      "phases=make,chill,list,stat,browse,compile,remove order=random",
      "tree=shared split=true shape=regular depth=2 fan_out=3 files_per_directory=3 sources=12 headers=5 repeats=2 "
      "visits=2 pause=0s "
      "phases=make,list,stat,browse,compile,remove",
      "tree=shared users=one directories=9 files=25 sources=3 pause=0s visits=2"},
     [](const Parameters& given, const Placement& placement) {
       return std::make_unique<SourceTree>(given, placement);
     }});

} // namespace
} // namespace iocast
