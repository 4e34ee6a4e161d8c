// SPDX-License-Identifier: Apache-2.0
//
// HPCS I/O scenarios 1 to 3: streams of large blocks, in half or full duplex. Carrier, "HPCS I/O scenarios", Lustre
// Users Group 2012, pages 4 and 5. Only the names of these scenarios are public; the reading:
//   half duplex  a process writes its file block by block, then, in a second phase, reads it back
//   full duplex  at the same time one process writes a file and another reads one that was made before; stream s is the
//   pair of
//                ranks 2s and 2s+1, and a last rank without a partner reads a block and writes a block by turns
#include "input/error.hpp"
#include "workload/phased_pattern.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fmt/format.h>

namespace iocast {
namespace {

class HpcsStreaming final : public PhasedPattern {
public:
  HpcsStreaming(const Parameters& given, const Placement& placement)
      : block_(given.count("block")), sync_(given.flag("sync")), ranks_(placement.ranks)
  {
    const auto& duplex = given.text("duplex");
    static const std::vector<std::string> ways{"half", "full"};
    if (std::find(ways.begin(), ways.end(), duplex) == ways.end())
      throw InputError(fmt::format("hpcs-streaming knows no duplex '{}'. {}", duplex, allowed_sentence(duplex, ways)));
    full_   = duplex == "full";
    blocks_ = std::max<uint64_t>(
        1, static_cast<uint64_t>(given.number("memory") * given.number("scale") * given.number("times")) / block_);
    if (blocks_ > UINT32_MAX)
      throw InputError(fmt::format("A stream of {} blocks of {} is too long; set a larger block.", blocks_,
                                   format_quantity(static_cast<double>(block_), Unit::bytes)));
    const uint64_t streams = given.count("streams") == 0 ? ranks_ : given.count("streams");
    busy_                  = static_cast<uint32_t>(std::min<uint64_t>(ranks_, full_ ? 2 * streams : streams));
    const double seconds   = given.number("most_seconds");
    using Does             = PhaseOfWork::Does;
    if (full_)
      choose_phases("hpcs-streaming", given.text("phases"),
                    {{precreate, Does::makes, {"precreate"}},
                     {stream, Does::makes, {"stream", 0, seconds}},
                     {cleanup, Does::removes, {"cleanup"}}});
    else
      choose_phases("hpcs-streaming", given.text("phases"),
                    {{precreate, Does::makes, {"precreate"}},
                     {write, Does::makes, {"write", 0, seconds}},
                     {read, Does::uses, {"read", 0, seconds}},
                     {cleanup, Does::removes, {"cleanup"}}});
  }

  Footprint footprint() const override
  {
    const uint64_t one_sided = busy_ - turning();
    const uint64_t writers   = full_ ? one_sided / 2 + turning() : busy_; // of object 0
    const uint64_t readers   = full_ ? one_sided / 2 + turning() : busy_;
    const uint64_t inputs    = full_ ? readers : 0; // of object 1, made by precreate
    const uint64_t made      = makes_data() ? writers + inputs : 0;
    const uint64_t fetched   = runs(read) || runs(stream) ? readers : 0;
    const uint64_t removed   = runs(cleanup) ? writers + inputs : 0;
    Footprint result;
    result.operations    = {{OpKind::mkdir, makes_data() ? busy_ : 0},
                            {OpKind::open, made + fetched},
                            {OpKind::pwrite, made * blocks_},
                            {OpKind::pread, fetched * blocks_},
                            {OpKind::fsync, sync_ ? made : 0},
                            {OpKind::close, made + fetched},
                            {OpKind::unlink, removed},
                            {OpKind::rmdir, runs(cleanup) ? busy_ : 0}};
    result.bytes_written = made * blocks_ * block_;
    result.bytes_read    = fetched * blocks_ * block_;
    result.peak_objects  = writers + inputs;
    result.peak_bytes    = result.peak_objects * blocks_ * block_;
    result.largest_size  = block_;
    return result;
  }

  std::vector<std::string> warnings() const override
  {
    if (full_ && turning() == 1)
      return {fmt::format("Rank {} has no partner: it reads and writes by turns, which is not full duplex; use an even "
                          "number of ranks.",
                          busy_ - 1)};
    return {};
  }

  char* name_dataset(uint64_t dataset, char* out) const override
  {
    std::memcpy(out, "stream-", 7);
    return std::to_chars(out + 7, out + 27, dataset).ptr;
  }

  nlohmann::ordered_json data_set() const override
  {
    return {{"ranks", ranks_}, {"busy", busy_}, {"full_duplex", full_}, {"block", block_}, {"blocks", blocks_}};
  }

private:
  enum Which : size_t { precreate, write, read, stream, cleanup };
  enum class Role : uint8_t { idle, writes, reads, turns };

  /// 1 when the last busy rank of a full duplex has no partner.
  uint32_t turning() const { return full_ ? busy_ % 2 : 0; }

  Role role_of(uint32_t rank) const
  {
    if (rank >= busy_)
      return Role::idle;
    if (!full_)
      return Role::writes;
    if (rank % 2 == 1)
      return Role::reads;
    return rank + 1 < busy_ ? Role::writes : Role::turns;
  }

  /// In the cursor: a = blocks of object 0 written, b = whether it was opened.
  bool next_in(size_t which, Cursor& cursor, Op& op) const override
  {
    const Role role = role_of(cursor.rank);
    if (role == Role::idle)
      return false;
    switch (which) {
      case precreate:
        if (cursor.j == 0) {
          cursor.j = 1;
          op       = {OpKind::mkdir, cursor.rank, 0};
          return true;
        }
        return role != Role::writes && next_on({cursor.rank, 1, written_flags, sync_}, cursor, op, [&](Op& access) {
                 return next_block(OpKind::pwrite, 1, blocks_, cursor, access);
               });
      case write:
        return next_written(cursor, op);
      case read:
        return next_fetched(0, makes_data() ? cursor.a : blocks_, cursor, op);
      case stream:
        if (role == Role::turns)
          return next_by_turns(cursor, op);
        return role == Role::writes ? next_written(cursor, op) : next_fetched(1, blocks_, cursor, op);
      default:
        return next_cleanup(role, cursor, op);
    }
  }

  bool next_block(OpKind kind, uint64_t object, uint64_t most, Cursor& cursor, Op& op) const
  {
    if (cursor.i == most)
      return false;
    op = {kind, cursor.rank, object, block_, cursor.i++ * block_};
    return true;
  }

  bool next_written(Cursor& cursor, Op& op) const
  {
    cursor.b = 1;
    return next_on({cursor.rank, 0, written_flags, sync_}, cursor, op, [&](Op& access) {
      const bool more = next_block(OpKind::pwrite, 0, blocks_, cursor, access);
      cursor.a        = static_cast<uint32_t>(cursor.i);
      return more;
    });
  }

  bool next_fetched(uint64_t object, uint64_t blocks, Cursor& cursor, Op& op) const
  {
    return blocks > 0 && next_on({cursor.rank, object, 0, false}, cursor, op,
                                 [&](Op& access) { return next_block(OpKind::pread, object, blocks, cursor, access); });
  }

  /// Object 1 is open all the time, object 0 as next_on() does it.
  bool next_by_turns(Cursor& cursor, Op& op) const
  {
    if (cursor.j == 0) {
      cursor.j = 1;
      op       = {OpKind::open, cursor.rank, 1};
      return true;
    }
    cursor.b        = 1;
    const bool more = next_on({cursor.rank, 0, written_flags, sync_}, cursor, op, [&](Op& access) {
      if (cursor.j == 1 && cursor.i < blocks_) {
        cursor.j = 2;
        access   = {OpKind::pread, cursor.rank, 1, block_, cursor.i * block_};
        return true;
      }
      cursor.j           = 1;
      const bool written = next_block(OpKind::pwrite, 0, blocks_, cursor, access);
      cursor.a           = static_cast<uint32_t>(cursor.i);
      return written;
    });
    if (more)
      return true;
    if (cursor.j == 3)
      return false;
    cursor.j = 3;
    op       = {OpKind::close, cursor.rank, 1};
    return true;
  }

  bool next_cleanup(Role role, Cursor& cursor, Op& op) const
  {
    switch (cursor.step) {
      case 1:
        cursor.step = 2;
        if (role != Role::reads && (cursor.b == 1 || !makes_data())) {
          op = {OpKind::unlink, cursor.rank, 0};
          return true;
        }
        [[fallthrough]];
      case 2:
        cursor.step = 3;
        if (full_ && role != Role::writes) {
          op = {OpKind::unlink, cursor.rank, 1};
          return true;
        }
        [[fallthrough]];
      case 3:
        cursor.step = 4;
        op          = {OpKind::rmdir, cursor.rank, 0};
        return true;
      default:
        return false;
    }
  }

  static constexpr uint8_t written_flags = OpFlag::for_writing | OpFlag::make_it;

  uint64_t block_;
  bool sync_;
  uint32_t ranks_;
  bool full_       = false;
  uint64_t blocks_ = 0; ///< of each file
  uint32_t busy_   = 0; ///< ranks that do something: the first ones
};

const bool registered = register_pattern(
    {"hpcs-streaming",
     "streams of large blocks: written, then read (half duplex), or written and read at the same time (full duplex)",
     "Carrier, HPCS I/O scenarios, LUG 2012, pages 4-5: scenarios 1 to 3; known by name, the rest is this pattern's "
     "reading",
     {{"duplex", Unit::text, "half",
       "half: one direction after the other; full: pairs of ranks, one writes while the other reads"},
      {"streams", Unit::count, "0", "how many streams; 0 for as many as there are ranks (full: pairs of ranks)", 0,
       4e9},
      {"block", Unit::bytes, "10MiB", "size of each access", 1, 1e12},
      {"memory", Unit::bytes, "8GiB", "memory of a node", 1, 1e15},
      {"times", Unit::factor, "2", "size of a stream's file, in memories of a node", 0, 1e6},
      {"sync", Unit::flag, "true", "fsync each written file before it is closed"},
      {"most_seconds", Unit::seconds, "0s", "ends a measured phase after so long; 0s: when the files end", 0, 1e9},
      {"scale", Unit::factor, "1", "multiplies the memory, for trial runs", 1e-9, 1e6},
      {"phases", Unit::text, "all",
       "which of precreate, write, read, cleanup (half) or precreate, stream, cleanup (full) to run"}},
     {"memory=1MiB times=0.5 block=64KiB most_seconds=1h",
      "memory=1MiB times=0.5 block=64KiB duplex=full most_seconds=1h",
      "memory=1MiB times=0.3 block=64KiB duplex=full streams=1 sync=false"},
     [](const Parameters& given, const Placement& placement) {
       return std::make_unique<HpcsStreaming>(given, placement);
     }});

} // namespace
} // namespace iocast
