// SPDX-License-Identifier: Apache-2.0
//
// probe: asks for each operation there is, one kind after the other, so that a run of one rank shows what each costs by
// itself. A rank has a directory with small objects that are made, lengthened, looked at, fetched and removed whole,
// and one object that is written and read in accesses; each group of ranks has one shared object that is written and
// read collectively.
#include "input/error.hpp"
#include "workload/pattern.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <numeric>

namespace iocast {
namespace {

class Probe final : public Pattern {
public:
  Probe(const Parameters& given, const Placement& placement)
      : placement_(placement)
      , objects_(given.count("objects"))
      , object_size_(given.count("object_size"))
      , accesses_(given.count("accesses"))
      , access_size_(given.count("access_size"))
      , blocks_(static_cast<uint32_t>(given.count("blocks")))
      , think_ns_(static_cast<uint64_t>(std::llround(given.number("think") * 1e9)))
      , sharing_(static_cast<uint32_t>(given.count("sharing")))
      , limited_(given.number("most_seconds") > 0)
      , cleans_(given.flag("cleanup"))
  {
    if (sharing_ == 0)
      sharing_ = placement.ranks;
    phases_ = {{"make"}, {"write"}, {"write-shared"}, {"look"}, {"read"}, {"read-shared"}, {"cleanup"}};
    if (!cleans_)
      phases_.pop_back();
    for (const size_t phase : {write, write_shared})
      phases_[phase].most_seconds = given.number("most_seconds");
  }

  const std::vector<Phase>& phases() const override { return phases_; }
  uint32_t group_of(uint32_t rank) const override { return rank / sharing_; }

  /// A cursor counts the operations of its phase in `i`; `a` and `b` keep how many those of write and write-shared
  /// were.
  bool next(Cursor& cursor, Op& op) const override
  {
    for (; cursor.phase < phases_.size(); next_phase(cursor)) {
      if (cursor.step == 0) {
        cursor.step = 1;
        op          = {OpKind::phase, 0, cursor.phase};
        return true;
      }
      if (operation(cursor, op)) {
        ++cursor.i;
        return true;
      }
    }
    return false;
  }

  void cut(Cursor& cursor) const override { next_phase(cursor); }

  Footprint footprint() const override
  {
    const uint64_t ranks  = placement_.ranks;
    const uint64_t groups = (ranks + sharing_ - 1) / sharing_;
    const uint64_t small  = ranks * objects_;
    const uint64_t moved  = ranks * (accesses_ + blocks_ + accesses_) * access_size_; // own object, then shared
    Footprint result;
    result.operations    = {{OpKind::mkdir, 2 * ranks + groups},
                            {OpKind::create, small},
                            {OpKind::append, small},
                            {OpKind::stat, small},
                            {OpKind::read, small},
                            {OpKind::readdir, ranks},
                            {OpKind::open, 4 * ranks},
                            {OpKind::pwrite, ranks * (2 * accesses_ + 1)},
                            {OpKind::pread, ranks * (2 * accesses_ + 1)},
                            {OpKind::fsync, 2 * ranks},
                            {OpKind::close, 4 * ranks},
                            {OpKind::think, think_ns_ > 0 ? 2 * ranks * accesses_ : 0},
                            {OpKind::unlink, cleans_ * (small + ranks + groups)},
                            {OpKind::rmdir, cleans_ * (2 * ranks + groups)}};
    result.bytes_written = 2 * small * object_size_ + moved;
    result.bytes_read    = result.bytes_written;
    result.peak_objects  = small + ranks + groups;
    result.peak_bytes    = result.bytes_written;
    result.collective    = accesses_ > 0;
    result.largest_size  = std::max({2 * object_size_, access_size_ * blocks_, access_size_});
    return result;
  }

  /// "rank7", "rank7/files", "group0"
  char* name_dataset(uint64_t dataset, char* out) const override
  {
    const uint64_t ranks = placement_.ranks;
    const bool of_group  = dataset >= 2 * ranks;
    const char* word     = of_group ? "group" : "rank";
    std::memcpy(out, word, std::strlen(word));
    out = std::to_chars(out + std::strlen(word), out + 30, of_group ? dataset - 2 * ranks : dataset / 2).ptr;
    if (!of_group && dataset % 2 == 1) {
      std::memcpy(out, "/files", 6);
      out += 6;
    }
    return out;
  }

  nlohmann::ordered_json data_set() const override { return {{"ranks", placement_.ranks}}; }
  nlohmann::ordered_json position_after(size_t) const override { return nlohmann::ordered_json::object(); }

private:
  enum PhaseNumber : uint16_t { make, write, write_shared, look, read, read_shared, cleanup };

  void next_phase(Cursor& cursor) const
  {
    if (cursor.phase == write)
      cursor.a = static_cast<uint32_t>(cursor.i);
    else if (cursor.phase == write_shared)
      cursor.b = static_cast<uint32_t>(cursor.i);
    ++cursor.phase;
    cursor.step = 0;
    cursor.i    = 0;
  }

  bool operation(const Cursor& cursor, Op& op) const
  {
    switch (static_cast<PhaseNumber>(cursor.phase)) {
      case make:
        return making(cursor, op);
      case write:
        return writing(cursor.i, files(cursor.rank), objects_, 0, op,
                       [&](uint64_t access) { return access * access_size_; });
      case write_shared:
        return writing(cursor.i, shared_by(cursor.rank), 0, shared, op,
                       [&](uint64_t access) { return shared_at(cursor.rank, access); });
      case look:
        return looking(cursor, op);
      case read:
        return reading(cursor.i, cursor.a, files(cursor.rank), objects_, 0, op,
                       [&](uint64_t access) { return access * access_size_; });
      case read_shared: {
        // What a neighbour wrote, unless nobody knows how far it came.
        const uint32_t whose = limited_ ? cursor.rank : neighbour(cursor.rank);
        return reading(cursor.i, cursor.b, shared_by(cursor.rank), 0, shared, op,
                       [&](uint64_t access) { return shared_at(whose, access); });
      }
      case cleanup:
        return removing(cursor, op);
    }
    return false;
  }

  uint64_t home(uint32_t rank) const { return 2 * uint64_t{rank}; }
  uint64_t files(uint32_t rank) const { return 2 * uint64_t{rank} + 1; }
  uint64_t shared_by(uint32_t rank) const { return 2 * uint64_t{placement_.ranks} + group_of(rank); }
  bool leads(uint32_t rank) const { return rank % sharing_ == 0; }
  uint32_t group_size(uint32_t rank) const { return std::min(sharing_, placement_.ranks - group_of(rank) * sharing_); }
  uint32_t neighbour(uint32_t rank) const
  {
    return group_of(rank) * sharing_ + (rank % sharing_ + 1) % group_size(rank);
  }
  uint64_t shared_at(uint32_t rank, uint64_t access) const
  {
    return (access * group_size(rank) + rank % sharing_) * access_size_;
  }

  bool making(const Cursor& cursor, Op& op) const
  {
    const uint64_t sets = 2 + leads(cursor.rank);
    if (cursor.i < sets) {
      op = {OpKind::mkdir,
            cursor.i == 0   ? home(cursor.rank)
            : cursor.i == 1 ? files(cursor.rank)
                            : shared_by(cursor.rank),
            0};
      return true;
    }
    const uint64_t item = cursor.i - sets;
    if (item >= 2 * objects_)
      return false;
    op = {item < objects_ ? OpKind::create : OpKind::append, files(cursor.rank), item % objects_, object_size_};
    return true;
  }

  /// How many operations an access takes: it may come after a think.
  uint64_t each() const { return think_ns_ > 0 ? 2 : 1; }

  /// open, accesses, strided access (to the rank's own object), fsync, close
  template <class Place>
  bool writing(uint64_t i, uint64_t dataset, uint64_t object, uint8_t with, Op& op, Place place) const
  {
    const uint64_t strided = 1 + accesses_ * each();
    const uint64_t sync    = strided + (with == 0);
    if (i == 0) {
      op       = {OpKind::open, dataset, object};
      op.flags = static_cast<uint8_t>(for_writing | make_it | with);
    } else if (i < strided) {
      access(i, OpKind::pwrite, dataset, object, with, op, place);
    } else if (i < sync) {
      strides(OpKind::pwrite, dataset, object, op);
    } else if (i < sync + 2) {
      op       = {i == sync ? OpKind::fsync : OpKind::close, dataset, object};
      op.flags = with;
    } else {
      return false;
    }
    return true;
  }

  /// open, what was written by the first `wrote` operations, close
  template <class Place>
  bool reading(uint64_t i, uint64_t wrote, uint64_t dataset, uint64_t object, uint8_t with, Op& op, Place place) const
  {
    if (wrote == 0)
      return false;
    const uint64_t written = std::min(accesses_, (wrote - 1) / each());
    const bool has_strides = with == 0 && wrote > 1 + accesses_ * each();
    if (i == 0) {
      op       = {OpKind::open, dataset, object};
      op.flags = with;
    } else if (i <= written) {
      op       = {OpKind::pread, dataset, object, access_size_, place(i - 1)};
      op.flags = with == shared ? collective : 0;
    } else if (i == written + 1 && has_strides) {
      strides(OpKind::pread, dataset, object, op);
    } else if (i == written + 1 + has_strides) {
      op       = {OpKind::close, dataset, object};
      op.flags = with;
    } else {
      return false;
    }
    return true;
  }

  template <class Place>
  void access(uint64_t i, OpKind kind, uint64_t dataset, uint64_t object, uint8_t with, Op& op, Place place) const
  {
    if (think_ns_ > 0 && i % 2 == 1) {
      op = {OpKind::think, 0, 0, think_ns_};
      return;
    }
    op       = {kind, dataset, object, access_size_, place((i - 1) / each())};
    op.flags = with == shared ? collective : 0;
  }

  /// Behind the single accesses.
  void strides(OpKind kind, uint64_t dataset, uint64_t object, Op& op) const
  {
    op        = {kind, dataset, object, access_size_, accesses_ * access_size_};
    op.count  = blocks_;
    op.stride = blocks_ > 1 ? 2 * access_size_ : 0;
  }

  bool looking(const Cursor& cursor, Op& op) const
  {
    if (cursor.i == 0) {
      op = {OpKind::readdir, files(cursor.rank), 0, objects_ + (cursor.a > 0)};
      return true;
    }
    const uint64_t item = cursor.i - 1;
    if (item >= 2 * objects_)
      return false;
    op = {item < objects_ ? OpKind::stat : OpKind::read, files(cursor.rank), item % objects_, 2 * object_size_};
    return true;
  }

  bool removing(const Cursor& cursor, Op& op) const
  {
    const uint64_t own = objects_ + (cursor.a > 0);
    if (cursor.i < own) {
      op = {OpKind::unlink, files(cursor.rank), cursor.i};
      return true;
    }
    const uint64_t item = cursor.i - own;
    if (item < 2) {
      op = {OpKind::rmdir, item == 0 ? files(cursor.rank) : home(cursor.rank), 0};
      return true;
    }
    if (!leads(cursor.rank) || item > 2 + (cursor.b > 0))
      return false;
    op = {item == 2 && cursor.b > 0 ? OpKind::unlink : OpKind::rmdir, shared_by(cursor.rank), 0};
    return true;
  }

  Placement placement_;
  uint64_t objects_;
  uint64_t object_size_;
  uint64_t accesses_;
  uint64_t access_size_;
  uint32_t blocks_;
  uint64_t think_ns_;
  uint32_t sharing_;
  bool limited_;
  bool cleans_;
  std::vector<Phase> phases_;
};

const bool registered = register_pattern(
    {"probe",
     "each kind of operation in turn, for what it costs by itself",
     "iocast",
     {{"objects", Unit::count, "200", "small objects of a rank", 1, 1e9},
      {"object_size", Unit::bytes, "4KiB", "bytes that one is created with, and as many are added to it", 0, 1e15},
      {"accesses", Unit::count, "64", "accesses of a rank to its own object, and to the shared one", 1, 1e9},
      {"access_size", Unit::bytes, "64KiB", "bytes of an access", 1, 1e12},
      {"blocks", Unit::count, "8", "blocks of the one strided access to the rank's own object", 1, 1e6},
      {"think", Unit::seconds, "0s", "think time before each access when writing", 0, 3600},
      {"sharing", Unit::count, "0", "ranks of a group, which shares one object; 0: all", 0, 4e9},
      {"most_seconds", Unit::seconds, "0s", "time limit of write and of write-shared; 0: none", 0, 1e6},
      {"cleanup", Unit::flag, "true", "remove everything at the end"}},
     {"objects=5 accesses=4 access_size=4KiB blocks=3", "objects=3 accesses=5 access_size=1000B sharing=2 think=10us",
      "objects=2 accesses=6 access_size=8KiB blocks=1 most_seconds=200ms sharing=3"},
     [](const Parameters& given, const Placement& placement) { return std::make_unique<Probe>(given, placement); }});

} // namespace
} // namespace iocast
