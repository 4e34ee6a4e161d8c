// SPDX-License-Identifier: Apache-2.0
//
// mdtest: every rank makes, stats, reads and removes its items, files or directories, in trees of directories; one kind
// of operation a phase. What it does was read in src/mdtest.c of github.com/hpc/ior (version 4); the letters in the
// parameters' meanings are its options.
//
// A tree has its directories numbered level by level: those in directory n are b n + 1 to b n + b. Items are numbered
// through a tree, directory n holds n I to n I + I - 1. They are made and removed directory by directory, each before
// those in it, and found in the order of their numbers. With a stride S, rank r
//   - makes its items, with -u in the tree of rank r + S;
//   - stats the items of rank r + S, reads those of r + 2 S, removes those of r + 3 S.
//
// Deliberate differences: no directory rename phase; the trees of a run lie side by side, not each iteration's in a
// directory of its own; a number of ranks may share a tree (writers_per_directory); directories below a tree's root are
// called by their numbers alone, for shorter paths; a file's number counts on over the ranks, "file.mdtest.<rank n +
// item>"; the random order is a different one for each rank, but not rand()'s; -u, -z and -N go together (mdtest then
// looks for directories by the wrong rank's name). What mdtest does when the time of -W is over (all ranks go on to
// where the furthest came) is a phase of its own, file-create-rest.
#include "input/error.hpp"
#include "workload/levels.hpp"
#include "workload/pattern.hpp"
#include "workload/permutation.hpp"
#include "workload/phase_list.hpp"
#include "workload/random.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <tuple>

namespace iocast {
namespace {

class Mdtest final : public Pattern {
public:
  Mdtest(const Parameters& given, const Placement& placement)
      : ranks_(placement.ranks)
      , unique_(given.flag("unique_directory"))
      , leaf_only_(given.flag("leaf_only"))
      , with_files_(!given.flag("directories_only"))
      , with_directories_(!given.flag("files_only") && !given.flag("shared_files"))
      , shared_files_(given.flag("shared_files"))
      , random_(given.flag("random_order"))
      , seed_(given.count("seed"))
      , write_size_(given.count("write_size"))
      , read_size_(given.count("read_size"))
      , sync_(given.flag("sync"))
      , iterations_(static_cast<uint32_t>(given.count("iterations")))
      , most_seconds_(given.number("most_seconds"))
      , items_made_(given.count("items_made"))
  {
    if (given.flag("files_only") && given.flag("directories_only"))
      throw InputError(
          "mdtest can't leave out both files and directories: files_only and directories_only exclude each other.");
    if (shared_files_ && unique_)
      throw InputError(
          "mdtest's ranks can't share their files (shared_files) and keep them in directories of their own "
          "(unique_directory).");
    if (shared_files_ && !with_files_)
      throw InputError("mdtest's shared_files is about files; directories_only leaves none.");
    share_trees(static_cast<uint32_t>(given.count("writers_per_directory")));
    set_shift(given, placement);
    lay_out(given.count("items"), given.count("items_per_directory"), static_cast<uint32_t>(given.count("depth")),
            static_cast<uint32_t>(given.count("branching")));
    read_phases(given.text("phases"));
    check_sizes();
    check_time_limit();
    if (!requested(Part::create))
      most_seconds_ = 0;
  }

  const std::vector<Phase>& phases() const override { return phases_; }

  bool next(Cursor& cursor, Op& op) const override
  {
    while (cursor.phase < stages_.size()) {
      if (cursor.step == before_phase) {
        op          = {OpKind::phase, 0, cursor.phase};
        cursor.step = work;
        begin(cursor);
        return true;
      }
      if (next_of_phase(cursor, op))
        return true;
      leave(cursor, items_);
    }
    return false;
  }

  void cut(Cursor& cursor) const override
  {
    if (cursor.phase >= stages_.size() || cursor.step == before_phase)
      return;
    // The executor closes what is open: a file that was written is whole. One that wasn't is made, and file-create-rest
    // begins with it.
    cursor.i += cursor.step > move;
    leave(cursor, number_of(cursor) - first_item_ + (cursor.step == move));
  }
  uint64_t reached(const Cursor& cursor) const override { return made(cursor); }
  void agree(Cursor& cursor, uint64_t furthest) const override
  {
    keep_made(cursor, furthest);
    agreed_ = furthest;
  }

  Footprint footprint() const override
  {
    const uint64_t ranks  = ranks_;
    const uint64_t rounds = iterations_;
    const uint64_t trees  = rounds * trees_ * nodes_;
    const uint64_t each   = rounds * ranks * items_;
    const uint64_t found  = rounds * ranks * (items_made_ > 0 ? items_made_ : items_);
    const uint64_t files  = shared_files_ ? found / ranks : found;
    const bool whole_read = read_size_ == write_size_;
    std::array<uint64_t, op_count> count{};
    auto add = [&count](OpKind kind, uint64_t more) { count[static_cast<size_t>(kind)] += more; };
    Footprint result;
    if (requested(Part::create)) {
      add(OpKind::mkdir, trees + (with_directories_ ? each : 0));
      if (with_files_ && one_call_) {
        add(OpKind::create, each);
      } else if (with_files_) {
        add(OpKind::open, each);
        add(OpKind::pwrite, write_size_ > 0 ? each : 0);
        add(OpKind::fsync, syncs_ ? each : 0);
        add(OpKind::close, each);
      }
      result.bytes_written = with_files_ ? each * write_size_ : 0;
    }
    if (requested(Part::stat))
      add(OpKind::stat, (with_directories_ ? each : 0) + (with_files_ ? found : 0));
    if (requested(Part::read) && with_files_) {
      add(OpKind::read, whole_read ? found : 0);
      add(OpKind::open, whole_read ? 0 : found);
      add(OpKind::pread, whole_read || read_size_ == 0 ? 0 : found);
      add(OpKind::close, whole_read ? 0 : found);
      result.bytes_read = found * read_size_;
    }
    if (requested(Part::remove)) {
      add(OpKind::unlink, with_files_ ? files : 0);
      add(OpKind::rmdir, trees + (with_directories_ ? each : 0));
    }
    for (size_t kind = 0; kind < op_count; ++kind)
      if (count[kind] > 0)
        result.operations.emplace_back(static_cast<OpKind>(kind), count[kind]);
    const bool one_round = requested(Part::create) && requested(Part::remove);
    result.peak_objects  = with_files_ ? files / (one_round ? rounds : 1) : 0;
    result.peak_bytes    = result.peak_objects * write_size_;
    result.largest_size =
        with_files_ ? std::max(requested(Part::create) ? write_size_ : 0, requested(Part::read) ? read_size_ : 0) : 0;
    return result;
  }

  /// Each iteration has items of its own, and a phase for each kind of operation.
  bool repeats(OpKind kind) const override { return shared_files_ || (kind != OpKind::stat && kind != OpKind::read); }

  std::vector<std::string> warnings() const override
  {
    std::vector<std::string> result;
    if (with_files_ && requested(Part::read) && read_size_ == 0)
      result.push_back("read_size is 0B: reading a file only opens and closes it.");
    if (sync_ && !syncs_)
      result.push_back("sync does nothing when no bytes are written; set write_size.");
    if (ranks_ > 1 && shift_ > 0)
      for (const auto& [part, name, times] : {std::tuple{Part::stat, "stats", 1}, std::tuple{Part::read, "reads", 2}})
        if (requested(part) && times * shift_ % ranks_ == 0)
          result.push_back(fmt::format(
              "With this stride every rank {} the items that it made itself; its client may have them in cache.",
              name));
    return result;
  }

  char* name_dataset(uint64_t dataset, char* out) const override
  {
    if (dataset < first_item_dataset_) {
      const uint64_t tree = dataset / nodes_;
      return name_directory(static_cast<uint32_t>(tree / trees_), static_cast<uint32_t>(tree % trees_),
                            static_cast<uint32_t>(dataset % nodes_), out);
    }
    const uint64_t item   = dataset - first_item_dataset_;
    const uint64_t number = item % numbers_;
    const auto owner      = static_cast<uint32_t>(item / numbers_ % ranks_);
    out                   = name_directory(static_cast<uint32_t>(item / numbers_ / ranks_), tree_of(owner),
                                           static_cast<uint32_t>(number / per_directory_), out);
    return std::to_chars(append(out, "/dir.mdtest."), out + 32, owner * numbers_ + number).ptr;
  }

  char* name_object(uint64_t object, char* out) const override
  {
    return std::to_chars(append(out, "file.mdtest."), out + 32, object).ptr;
  }

  nlohmann::ordered_json data_set() const override
  {
    return {{"ranks", ranks_},
            {"unique_directory", unique_},
            {"ranks_per_tree", sharers_},
            {"depth", levels_.depth},
            {"branching", levels_.branching},
            {"directories", nodes_},
            {"items", items_},
            {"leaf_only", leaf_only_},
            {"files", with_files_},
            {"item_directories", with_directories_},
            {"shared_files", shared_files_},
            {"write_size", write_size_},
            {"shift", unique_ ? shift_ : 0},
            {"iterations", iterations_}};
  }

  nlohmann::ordered_json position_after(size_t phase) const override
  {
    const bool was_limited = most_seconds_ > 0 && stages_[phase].kind >= Kind::file_create;
    return {{"items_made", was_limited ? agreed_.load() : items_made_}};
  }

  bool mends(size_t phase) const override { return stages_[phase].kind == Kind::file_create_rest; }

  std::string making_phases() const override { return "create"; }
  std::string removing_phases() const override { return "remove"; }

private:
  enum class Part : uint8_t { create, stat, read, remove };
  enum class Kind : uint8_t {
    tree_create,
    directory_create,
    directory_stat,
    directory_remove,
    file_create,
    file_create_rest,
    file_stat,
    file_read,
    file_remove,
    tree_remove
  };
  enum Step : uint16_t { before_phase = 0, work, move, synchronise, shut };
  struct Stage {
    Kind kind;
    uint32_t iteration;
  };

  // ---- requested phases
  // --------------------------------------------------------------------------------------------------

  bool requested(Part part) const { return parts_[static_cast<size_t>(part)]; }

  /// @param writers ranks that share a tree; 0: what unique_directory says
  void share_trees(uint32_t writers)
  {
    if (writers > 0 && (unique_ || shared_files_))
      throw InputError("mdtest's writers_per_directory says how many ranks share a tree; unique_directory and "
                       "shared_files do so, too: leave them out.");
    sharers_ = unique_ ? 1 : writers > 0 ? writers : ranks_;
    trees_   = (ranks_ + sharers_ - 1) / sharers_;
  }

  /// mdtest means nodes when there are several of them.
  void set_shift(const Parameters& given, const Placement& placement)
  {
    const bool in_nodes   = placement.nodes() > 1;
    const uint64_t stride = in_nodes ? within("mdtest", "stride", given, placement.nodes(), "nodes")
                                     : within("mdtest", "stride", given, placement.ranks, "ranks of its one node");
    shift_                = (in_nodes ? placement.ranks_between(stride) : stride) % placement.ranks;
  }

  void lay_out(uint64_t items, uint64_t per_directory, uint32_t depth, uint32_t branching)
  {
    if (items == 0 && per_directory == 0)
      throw InputError("mdtest needs items: set items (for each rank) or items_per_directory.");
    levels_ = {1, depth, branching};
    if (items > 0 && per_directory > 0) {
      if (unique_ || depth > 0)
        throw InputError("mdtest takes items or items_per_directory; both, only without unique_directory and depth: "
                         "then each rank's "
                         "items are dealt out to items / items_per_directory directories. Set one of them to 0.");
      if (items % per_directory != 0 || items / per_directory >= Levels::none)
        throw InputError(fmt::format("mdtest can't deal out {} items to directories of {}; items must be a multiple of "
                                     "items_per_directory, and not more than 4 billion times as many.",
                                     items, per_directory));
      levels_.roots = static_cast<uint32_t>(items / per_directory);
    }
    nodes_ = levels_.all();
    if (nodes_ >= Levels::none)
      throw InputError(
          fmt::format("A tree of depth {} and branching {} has more than 4 billion directories; make it smaller.",
                      depth, branching));
    const uint64_t with_items = leaf_only_ ? levels_.on_level(depth) : nodes_;
    per_directory_            = per_directory > 0 ? per_directory : items / with_items;
    if (per_directory_ == 0)
      throw InputError(
          fmt::format("{} items of a rank can't be dealt out to {} directories; set items to a multiple of that.",
                      items, with_items));
    items_      = per_directory_ * with_items;
    order_      = Permutation(items_);
    first_node_ = nodes_ - with_items;
    first_item_ = first_node_ * per_directory_;
    numbers_    = nodes_ * per_directory_;
    if (static_cast<double>(numbers_) * ranks_ * iterations_ > 4e18)
      throw InputError("mdtest can't number that many items; make items, depth or branching smaller.");
    first_item_dataset_ = uint64_t{iterations_} * trees_ * nodes_;
    check_names();
  }

  void check_names() const
  {
    // The deepest directory has the longest name: its number, those above it, and an item's.
    uint32_t node = static_cast<uint32_t>(nodes_ - 1);
    const uint64_t own =
        fmt::formatted_size("mdtest_tree.{}-{}.{}/dir.mdtest.{}", iterations_, node, trees_, numbers_ * ranks_);
    uint64_t length = own;
    for (uint32_t level = 0; level < levels_.depth; ++level, node = levels_.parent(node))
      length += 1 + fmt::formatted_size("{}", node);
    if (length > 200)
      throw InputError(fmt::format(
          "mdtest's directories at depth {} would have names of up to {} bytes, but a name has at most 200; set a "
          "smaller depth.",
          levels_.depth, length));
  }

  void read_phases(const std::string& wanted)
  {
    for (const size_t part : requested_phases("mdtest", {"create", "stat", "read", "remove"}, wanted))
      parts_[part] = true;
    for (uint32_t iteration = 0; iteration < iterations_; ++iteration) {
      auto add = [&](bool wants, Kind kind, const char* name, double most_seconds = 0) {
        if (!wants)
          return;
        stages_.push_back({kind, iteration});
        phases_.push_back({name, iterations_ > 1 ? iteration + 1 : 0, most_seconds});
      };
      add(requested(Part::create), Kind::tree_create, "tree-create");
      add(requested(Part::create) && with_directories_, Kind::directory_create, "directory-create");
      add(requested(Part::stat) && with_directories_, Kind::directory_stat, "directory-stat");
      add(requested(Part::remove) && with_directories_, Kind::directory_remove, "directory-remove");
      add(requested(Part::create) && with_files_, Kind::file_create, "file-create", most_seconds_);
      add(requested(Part::create) && with_files_ && most_seconds_ > 0, Kind::file_create_rest, "file-create-rest");
      add(requested(Part::stat) && with_files_, Kind::file_stat, "file-stat");
      add(requested(Part::read) && with_files_, Kind::file_read, "file-read");
      add(requested(Part::remove) && with_files_, Kind::file_remove, "file-remove");
      add(requested(Part::remove), Kind::tree_remove, "tree-remove");
    }
    if (phases_.empty())
      throw InputError(
          "mdtest has nothing to read in directories; with directories_only ask for other phases than read.");
  }

  void check_sizes()
  {
    if (requested(Part::create) && requested(Part::read) && read_size_ > write_size_)
      throw InputError(fmt::format(
          "mdtest can't read {} bytes of files that it writes {} bytes to. Set read_size to at most write_size.",
          read_size_, write_size_));
    syncs_    = sync_ && write_size_ > 0;
    one_call_ = !syncs_ && !shared_files_;
  }

  void check_time_limit() const
  {
    const bool is_a_row = levels_.depth == 0 || levels_.branching == 1;
    if ((most_seconds_ > 0 || items_made_ > 0) && !is_a_row)
      throw InputError(fmt::format(
          "mdtest can't limit the time of making files in a tree that branches (branching {}); with most_seconds "
          "or items_made set branching to 1 or depth to 0.",
          levels_.branching));
    if (items_made_ > items_)
      throw InputError(fmt::format("items_made is {}, but a rank has {} items at most.", items_made_, items_));
    if (items_made_ > 0 && requested(Part::create))
      throw InputError(
          "items_made says how many items an earlier run made; a run that makes them itself has no use for it.");
    if (most_seconds_ == 0)
      return;
    if (!with_files_)
      throw InputError("most_seconds limits the time in which mdtest makes files; directories_only leaves none.");
    if (iterations_ > 1 && requested(Part::create) && !requested(Part::remove))
      throw InputError("With most_seconds the iterations of mdtest differ in how many files they make; they can't be "
                       "kept for later runs: "
                       "add remove to the phases or set iterations to 1.");
  }

  // ---- where a rank is
  // ------------------------------------------------------------------------------------------------ a: directory, b:
  // its level, i: item in the directory, or of all items; j and c: files that each rank made.

  uint64_t number_of(const Cursor& cursor) const { return cursor.a * per_directory_ + cursor.i; }
  uint64_t made(const Cursor& cursor) const
  {
    if (most_seconds_ > 0)
      return uint64_t{cursor.c} << 32 | cursor.j;
    return items_made_ > 0 ? items_made_ : items_;
  }
  static void keep_made(Cursor& cursor, uint64_t items)
  {
    cursor.j = static_cast<uint32_t>(items);
    cursor.c = static_cast<uint32_t>(items >> 32);
  }
  static Levels::Place place(const Cursor& cursor) { return {cursor.a, cursor.b}; }
  static void go(Cursor& cursor, Levels::Place place)
  {
    cursor.a = place.number;
    cursor.b = place.level;
  }
  void go_to_next_items(Cursor& cursor) const
  {
    do
      go(cursor, levels_.after_downwards(place(cursor)));
    while (leaf_only_ && cursor.a != Levels::none && cursor.b < levels_.depth);
    cursor.i = 0;
  }

  void begin(Cursor& cursor) const
  {
    const Kind kind = stages_[cursor.phase].kind;
    if (kind == Kind::file_create_rest)
      return; // goes on where file_create ended
    cursor.i = 0;
    go(cursor, {0, 0});
    const bool of_trees = kind == Kind::tree_create || kind == Kind::tree_remove;
    const bool idle =
        of_trees ? cursor.rank % sharers_ > 0 : kind == Kind::file_remove && shared_files_ && cursor.rank > 0;
    if (idle)
      go(cursor, {Levels::none, 0});
    else if (kind == Kind::tree_remove || (leaf_only_ && kind != Kind::tree_create))
      go(cursor, levels_.lowest_first({0, 0}));
  }

  void leave(Cursor& cursor, uint64_t items) const
  {
    if (stages_[cursor.phase].kind == Kind::file_create)
      keep_made(cursor, items);
    ++cursor.phase;
    cursor.step = before_phase;
  }

  // ---- operations
  // -----------------------------------------------------------------------------------------------------

  uint32_t rank_after(uint32_t rank, uint64_t strides) const
  {
    return static_cast<uint32_t>((rank + strides * shift_) % ranks_);
  }
  /// The tree that the items of a rank are in.
  uint32_t tree_of(uint32_t owner) const { return unique_ ? rank_after(owner, 1) : owner / sharers_; }
  uint64_t directory_id(uint32_t iteration, uint32_t tree, uint64_t node) const
  {
    return (uint64_t{iteration} * trees_ + tree) * nodes_ + node;
  }

  bool next_of_phase(Cursor& cursor, Op& op) const
  {
    const Stage& stage = stages_[cursor.phase];
    switch (stage.kind) {
      case Kind::tree_create:
      case Kind::tree_remove: {
        if (cursor.a == Levels::none)
          return false;
        const bool makes = stage.kind == Kind::tree_create;
        op = {makes ? OpKind::mkdir : OpKind::rmdir, directory_id(stage.iteration, cursor.rank / sharers_, cursor.a),
              0};
        go(cursor, makes ? levels_.after_downwards(place(cursor)) : levels_.after_upwards(place(cursor)));
        return true;
      }
      case Kind::directory_create:
        return walk(cursor, stage, items_, 0, [&](auto... item) { return directory_op(OpKind::mkdir, op, item...); });
      case Kind::directory_remove:
        return walk(cursor, stage, items_, 3, [&](auto... item) { return directory_op(OpKind::rmdir, op, item...); });
      case Kind::directory_stat:
        return find(cursor, stage, items_, 1, [&](auto... item) {
          directory_op(OpKind::stat, op, item...);
          op.flags = whole;
          return true;
        });
      case Kind::file_create:
        return walk(cursor, stage, items_, 0, [&](auto... item) { return create_op(cursor, op, item...); });
      case Kind::file_create_rest:
        return walk(cursor, stage, made(cursor), 0, [&](auto... item) { return create_op(cursor, op, item...); });
      case Kind::file_remove:
        return walk(cursor, stage, made(cursor), 3,
                    [&](auto... item) { return file_op(OpKind::unlink, 0, op, item...); });
      case Kind::file_stat:
        return find(cursor, stage, made(cursor), 1,
                    [&](auto... item) { return file_op(OpKind::stat, 0, op, item...); });
      case Kind::file_read:
        return find(cursor, stage, made(cursor), 2, [&](auto... item) { return read_op(cursor, op, item...); });
    }
    return false;
  }

  /// The next of the first `items` items, directory by directory, of the rank `strides` further on. `act` gets
  /// iteration, owner and number of the item, and returns whether it is done with it.
  template <class Act>
  bool walk(Cursor& cursor, const Stage& stage, uint64_t items, uint64_t strides, const Act& act) const
  {
    if (cursor.a != Levels::none && cursor.i == per_directory_)
      go_to_next_items(cursor);
    // In a tree that branches, numbers don't ascend, but there `items` is all of them.
    if (cursor.a == Levels::none || number_of(cursor) - first_item_ >= items)
      return false;
    if (act(stage.iteration, shared_files_ ? 0 : rank_after(cursor.rank, strides), number_of(cursor)))
      ++cursor.i;
    return true;
  }

  /// The same in the order of the numbers, or a random one.
  template <class Act>
  bool find(Cursor& cursor, const Stage& stage, uint64_t items, uint64_t strides, const Act& act) const
  {
    if (cursor.i >= items)
      return false;
    const uint64_t item = random_ ? place_at_random(cursor, items) : cursor.i;
    if (act(stage.iteration, shared_files_ ? 0 : rank_after(cursor.rank, strides), first_item_ + item))
      ++cursor.i;
    return true;
  }

  uint64_t place_at_random(const Cursor& cursor, uint64_t items) const
  {
    const bool all = items == items_;
    return (all ? order_ : Permutation(items))(cursor.i, random_words(seed_, Stream::order, cursor.rank, 0));
  }

  bool directory_op(OpKind kind, Op& op, uint32_t iteration, uint32_t owner, uint64_t number) const
  {
    op = {kind, first_item_dataset_ + (uint64_t{iteration} * ranks_ + owner) * numbers_ + number, 0};
    return true;
  }

  bool file_op(OpKind kind, uint64_t size, Op& op, uint32_t iteration, uint32_t owner, uint64_t number) const
  {
    op = {kind, directory_id(iteration, tree_of(owner), number / per_directory_), owner * numbers_ + number, size};
    return true;
  }

  bool create_op(Cursor& cursor, Op& op, uint32_t iteration, uint32_t owner, uint64_t number) const
  {
    auto file = [&](OpKind kind, uint64_t size = 0) { file_op(kind, size, op, iteration, owner, number); };
    if (one_call_) {
      file(OpKind::create, write_size_);
      return true;
    }
    switch (cursor.step) {
      case work:
        file(OpKind::open);
        op.flags    = for_writing | make_it;
        cursor.step = write_size_ > 0 ? move : shut;
        return false;
      case move:
        file(OpKind::pwrite, write_size_);
        cursor.step = syncs_ ? synchronise : shut;
        return false;
      case synchronise:
        file(OpKind::fsync);
        cursor.step = shut;
        return false;
      default:
        file(OpKind::close);
        cursor.step = work;
        return true;
    }
  }

  bool read_op(Cursor& cursor, Op& op, uint32_t iteration, uint32_t owner, uint64_t number) const
  {
    auto file = [&](OpKind kind, uint64_t size = 0) { file_op(kind, size, op, iteration, owner, number); };
    if (read_size_ == write_size_) {
      file(OpKind::read, read_size_);
      return true;
    }
    switch (cursor.step) {
      case work:
        file(OpKind::open);
        cursor.step = read_size_ > 0 ? move : shut;
        return false;
      case move:
        file(OpKind::pread, read_size_);
        cursor.step = shut;
        return false;
      default:
        file(OpKind::close);
        cursor.step = work;
        return true;
    }
  }

  // ---- names
  // ----------------------------------------------------------------------------------------------------------

  static char* append(char* out, const char* text)
  {
    const size_t length = std::strlen(text);
    std::memcpy(out, text, length);
    return out + length;
  }

  /// "mdtest_tree.<iteration>-<root>.<tree>", then "/<number>" of each directory on the way down.
  char* name_directory(uint32_t iteration, uint32_t tree, uint32_t node, char* out) const
  {
    std::array<uint32_t, 200> path;
    size_t length = 0;
    if (levels_.depth > 0)
      for (; node > 0; node = levels_.parent(node))
        path[length++] = node;
    auto number = [&out](uint32_t value) { out = std::to_chars(out, out + 10, value).ptr; };
    out         = append(out, "mdtest_tree.");
    number(iteration);
    *out++ = '-';
    number(node);
    *out++ = '.';
    number(tree);
    while (length > 0) {
      *out++ = '/';
      number(path[--length]);
    }
    return out;
  }

  uint32_t ranks_;
  bool unique_;
  uint32_t sharers_ = 1; ///< ranks whose items are in one tree
  bool leaf_only_;
  bool with_files_;
  bool with_directories_;
  bool shared_files_;
  bool random_;
  uint64_t seed_;
  uint64_t write_size_;
  uint64_t read_size_;
  bool sync_;
  uint32_t iterations_;
  double most_seconds_;
  uint64_t items_made_; ///< by an earlier run, when its time limit cut them; 0: all
  bool syncs_     = false;
  bool one_call_  = true; ///< a file is made by one OpKind::create
  uint64_t shift_ = 0;    ///< the stride in ranks
  uint32_t trees_ = 1;
  Levels levels_;
  uint64_t nodes_              = 1; ///< directories of a tree
  uint64_t per_directory_      = 0; ///< I: items of a rank in each directory that has any
  uint64_t items_              = 0; ///< of a rank
  uint64_t first_node_         = 0; ///< the first directory with items
  uint64_t first_item_         = 0; ///< and the number of its first item
  uint64_t numbers_            = 0; ///< item numbers are below this
  uint64_t first_item_dataset_ = 0; ///< datasets from here on are items
  std::array<bool, 4> parts_{};     ///< requested, by Part
  std::vector<Stage> stages_;
  std::vector<Phase> phases_;
  Permutation order_;
  mutable std::atomic<uint64_t> agreed_ = 0; ///< the last agree(): the same for all ranks
};

const bool registered = register_pattern(
    {"mdtest",
     "makes, stats, reads and removes files and directories in trees, one kind of operation a phase",
     "mdtest of github.com/hpc/ior, src/mdtest.c",
     {{"items", Unit::count, "1000", "-n: items of each rank, files and as many directories", 0, 1e12},
      {"items_per_directory", Unit::count, "0", "-I: items of each rank in each directory; set items=0 with it", 0,
       1e12},
      {"depth", Unit::count, "0", "-z: levels of directories below a tree's root", 0, 100},
      {"branching", Unit::count, "1", "-b: directories in each directory of a tree", 1, 1e9},
      {"unique_directory", Unit::flag, "false", "-u: a tree for each rank; else one for all"},
      {"writers_per_directory", Unit::count, "0",
       "number of consecutive ranks that share a tree and its directories; 0: all, or with -u each has its own", 0,
       4e9},
      {"leaf_only", Unit::flag, "false", "-L: items only on the lowest level"},
      {"files_only", Unit::flag, "false", "-F: no directories as items"},
      {"directories_only", Unit::flag, "false", "-D: no files"},
      {"shared_files", Unit::flag, "false", "-S: all ranks open the same files; rank 0 removes them"},
      {"write_size", Unit::bytes, "0B", "-w: bytes written to each file", 0, 1e15},
      {"read_size", Unit::bytes, "0B", "-e: bytes read from each file", 0, 1e15},
      {"sync", Unit::flag, "false", "-y: fsync after writing"},
      {"stride", Unit::count, "0", "-N: ranks, or nodes if there are several, from who makes an item to who finds it",
       0, 4e9},
      {"random_order", Unit::flag, "false", "-R: stat and read in random order"},
      {"seed", Unit::count, "0", "--random-seed: of that order", 0, 9e15},
      {"iterations", Unit::count, "1", "-i: how often everything is done", 1, 5000},
      {"most_seconds", Unit::seconds, "0s", "-W: when the making of files is stopped; 0s: when all are made", 0, 1e9},
      {"items_made", Unit::count, "0",
       "-x: files that each rank finds when a time limit stopped their making earlier; 0: all", 0, 1e12},
      {"phases", Unit::text, "create,stat,read,remove", "-C -T -E -r: which phases to run, in this order"}},
     {"items=12 depth=2 branching=2 leaf_only=true write_size=5B read_size=5B stride=1 iterations=2",
      "items=6 unique_directory=true stride=1 random_order=true seed=3 write_size=100B read_size=60B sync=true depth=1 "
      "branching=2",
      "items=8 items_per_directory=2 files_only=true most_seconds=1h",
      "items=5 shared_files=true write_size=1kB read_size=1kB stride=1",
      "items=9 unique_directory=true files_only=true most_seconds=1h sync=true write_size=9B read_size=9B stride=1",
      "items=0 items_per_directory=3 directories_only=true depth=3 branching=1 unique_directory=true",
      "items=4 writers_per_directory=2 stride=1 depth=1 branching=2 write_size=7B read_size=7B"},
     [](const Parameters& given, const Placement& placement) { return std::make_unique<Mdtest>(given, placement); }});

} // namespace
} // namespace iocast
