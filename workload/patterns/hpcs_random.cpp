// SPDX-License-Identifier: Apache-2.0
//
// HPCS I/O scenarios 13 and 14: small random reads of many files or of one. Carrier, "HPCS I/O scenarios", Lustre Users
// Group 2012, page 5; sizes, numbers and order of the passes as quoted in tests/other/test_xdd_hpcs14.sh of XDD (Oak
// Ridge National Laboratory, github.com/bws/xdd, sections 14.01 to 14.03 of the scenarios). Half of the machine's
// memory is filled and written to disk; files of ten times the memory of the nodes are written sequentially; then four
// passes of reads follow, each read of random size: at random places, first of whole sectors and then of any bytes;
// backwards with random skips, likewise.
//
// Readings: `reads` is the number of each file, so the processes of one file share it. Backwards, each process passes
// once over its own contiguous part of the file, from the end; what is left at the start and is smaller than the next
// read stays unread. "Not aligned" is any byte, which is a sector's first one now and then.
#include "input/error.hpp"
#include "workload/phased_pattern.hpp"
#include "workload/random.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <mutex>

namespace iocast {
namespace {

/// Random quantities are drawn in units of one byte or of one sector.
struct Range {
  uint64_t low   = 0; ///< in units
  uint64_t count = 0; ///< of different values

  uint64_t draw(const std::array<uint32_t, 4>& words, size_t word) const
  {
    return low + (uint64_t{words[word]} * count >> 32);
  }
  uint64_t high() const { return low + count - 1; }
};

struct Grain {
  uint64_t unit = 1; ///< bytes
  Range size;
  Range skip;
};

class HpcsRandom final : public PhasedPattern {
public:
  HpcsRandom(const Parameters& given, const Placement& placement)
      : ranks_(placement.ranks), write_block_(given.count("write_block")), seed_(given.count("seed"))
  {
    read_files(given.text("files"));
    const double scale = given.number("scale");
    read_sizes(given, given.number("memory") * scale, placement);
    reads_             = static_cast<uint64_t>(given.number("reads") * scale);
    const double limit = given.number("most_seconds");
    using Does         = PhaseOfWork::Does;
    choose_phases("hpcs-random", given.text("phases"),
                  {{precreate, Does::makes, {"precreate"}},
                   {fill, Does::makes, {"fill"}},
                   {write, Does::makes, {"write"}},
                   {random_aligned, Does::uses, {"random-aligned", 0, limit}},
                   {random_unaligned, Does::uses, {"random-unaligned", 0, limit}},
                   {backwards_aligned, Does::uses, {"backwards-aligned", 0, limit}},
                   {backwards_unaligned, Does::uses, {"backwards-unaligned", 0, limit}},
                   {cleanup_files, Does::removes, {"cleanup", 1}},
                   {cleanup_dataset, Does::removes, {"cleanup", 2}}});
  }

  /// Bytes and numbers of reads depend on the random draws; they are exact as long as these can be gone through in a
  /// moment, beyond that they are upper bounds.
  Footprint footprint() const override
  {
    std::call_once(counted_, [this] { count_reads(); });
    const uint64_t made   = makes_data() ? ranks_ : 0;
    const uint64_t filled = fill_ > 0 ? ranks_ : 0;
    const uint64_t files  = own_ ? ranks_ : 1;
    uint64_t passes       = 0;
    for (const size_t which : {random_aligned, random_unaligned, backwards_aligned, backwards_unaligned})
      passes += runs(which) ? 1 : 0;
    Footprint result;
    result.peak_objects  = files + filled;
    result.peak_bytes    = ranks_ * (part_ + fill_);
    result.operations    = {{OpKind::mkdir, makes_data() ? 1 : 0},
                            {OpKind::open, (fill_ > 0 ? made : 0) + made + passes * ranks_},
                            {OpKind::pwrite, made * (blocks(fill_) + blocks(part_))},
                            {OpKind::pread, counted_reads_},
                            {OpKind::fsync, (fill_ > 0 ? made : 0) + made},
                            {OpKind::close, (fill_ > 0 ? made : 0) + made + passes * ranks_},
                            {OpKind::unlink, runs(cleanup_files) ? result.peak_objects : 0},
                            {OpKind::rmdir, runs(cleanup_files) ? 1 : 0}};
    result.bytes_written = makes_data() ? result.peak_bytes : 0;
    result.bytes_read    = counted_bytes_;
    result.largest_size = std::max(counted_largest_, makes_data() ? std::min(write_block_, std::max(part_, fill_)) : 0);
    return result;
  }

  char* name_dataset(uint64_t, char* out) const override
  {
    std::memcpy(out, "random", 6);
    return out + 6;
  }

  nlohmann::ordered_json data_set() const override
  {
    return {{"ranks", ranks_}, {"own_files", own_}, {"part", part_}, {"fill", fill_}};
  }

private:
  enum Which : size_t {
    precreate,
    fill,
    write,
    random_aligned,
    random_unaligned,
    backwards_aligned,
    backwards_unaligned,
    cleanup_files,
    cleanup_dataset
  };

  void read_files(const std::string& files)
  {
    static const std::vector<std::string> ways{"shared", "own"};
    if (std::find(ways.begin(), ways.end(), files) == ways.end())
      throw InputError(fmt::format("hpcs-random knows no files '{}'. {}", files, allowed_sentence(files, ways)));
    own_ = files == "own";
  }

  void read_sizes(const Parameters& given, double memory, const Placement& placement)
  {
    const uint64_t sector = given.count("sector");
    auto range            = [&](const char* what, const char* low, const char* high, uint64_t unit) {
      const uint64_t from = std::max<uint64_t>(1, (given.count(low) + unit - 1) / unit);
      const uint64_t to   = given.count(high) / unit;
      if (to < from || to - from >= UINT32_MAX)
        throw InputError(fmt::format("There is no {} between {} and {} in units of {} B.", what,
                                                format_quantity(given.number(low), Unit::bytes),
                                                format_quantity(given.number(high), Unit::bytes), unit));
      return Range{from, to - from + 1};
    };
    for (auto [grain, unit] : {std::pair{&aligned_, sector}, {&unaligned_, uint64_t{1}}})
      *grain = {unit, range("size of a read", "read_low", "read_high", unit),
                range("skip", "skip_low", "skip_high", unit)};
    part_ = static_cast<uint64_t>(memory * placement.nodes() * given.number("times") / static_cast<double>(ranks_)) /
            sector * sector;
    fill_ = static_cast<uint64_t>(memory * given.number("fill_share") / placement.ranks_per_node);
    if (part_ < std::max(unaligned_.size.high(), aligned_.size.high() * sector))
      throw InputError(
          fmt::format("The part of a process is {} B, less than the largest read of {}; raise memory, times or scale.",
                      part_, format_quantity(given.number("read_high"), Unit::bytes)));
    if (part_ > 1ULL << 48)
      throw InputError("The part of a process is more than 256 TiB; use more processes or less memory.");
  }

  uint64_t blocks(uint64_t bytes) const { return (bytes + write_block_ - 1) / write_block_; }
  uint64_t file_of(uint32_t rank) const { return own_ ? rank : 0; }
  uint64_t filling_of(uint32_t rank) const { return (own_ ? ranks_ : 1) + rank; }
  uint64_t part_start(uint32_t rank) const { return own_ ? 0 : rank * part_; }
  uint64_t file_size() const { return own_ ? part_ : ranks_ * part_; }
  uint64_t reads_of(uint32_t rank) const
  {
    return own_ ? reads_ : share_start(reads_, rank + 1ULL, ranks_) - share_start(reads_, rank, ranks_);
  }
  /// Passes draw apart from each other, and within a pass each read has its own counter.
  std::array<uint32_t, 4> draw(size_t which, uint32_t rank, uint64_t counter) const
  {
    return random_words(seed_, Stream::hpcs, rank, uint64_t{which} << 56 | counter);
  }

  bool next_in(size_t which, Cursor& cursor, Op& op) const override
  {
    const uint8_t together = own_ ? 0 : OpFlag::shared;
    switch (which) {
      case precreate:
        return cursor.rank == 0 && once(1, {OpKind::mkdir, 0, 0}, cursor, op);
      case fill:
        return fill_ > 0 && next_written(filling_of(cursor.rank), 0, fill_, 0, cursor, op);
      case write:
        return next_written(file_of(cursor.rank), part_start(cursor.rank), part_, together, cursor, op);
      case cleanup_files:
        if ((own_ || cursor.rank == 0) && once(1, {OpKind::unlink, 0, file_of(cursor.rank)}, cursor, op))
          return true;
        cursor.step = std::max<uint16_t>(cursor.step, 2);
        return fill_ > 0 && once(2, {OpKind::unlink, 0, filling_of(cursor.rank)}, cursor, op);
      case cleanup_dataset:
        return cursor.rank == 0 && once(1, {OpKind::rmdir, 0, 0}, cursor, op);
      default:
        return next_on({0, file_of(cursor.rank), together, false}, cursor, op, [&](Op& access) {
          return which < backwards_aligned ? next_random(which, cursor, access) : next_backwards(which, cursor, access);
        });
    }
  }

  static bool once(uint16_t step, const Op& only, Cursor& cursor, Op& op)
  {
    if (cursor.step != step)
      return false;
    ++cursor.step;
    op = only;
    return true;
  }

  bool next_written(uint64_t object, uint64_t start, uint64_t size, uint8_t together, Cursor& cursor, Op& op) const
  {
    const auto flags = static_cast<uint8_t>(OpFlag::for_writing | OpFlag::make_it | together);
    return next_on({0, object, flags, true}, cursor, op, [&](Op& access) {
      if (cursor.i == size)
        return false;
      access = {OpKind::pwrite, 0, object, std::min(write_block_, size - cursor.i), start + cursor.i};
      cursor.i += access.size;
      return true;
    });
  }

  const Grain& grain_of(size_t which) const
  {
    return which == random_aligned || which == backwards_aligned ? aligned_ : unaligned_;
  }

  /// Read number i of the rank.
  bool next_random(size_t which, Cursor& cursor, Op& op) const
  {
    if (cursor.j == 0) { // how many there are to be
      cursor.j             = 1;
      const uint64_t reads = reads_of(cursor.rank);
      cursor.a             = static_cast<uint32_t>(reads);
      cursor.b             = static_cast<uint32_t>(reads >> 32);
    }
    if (cursor.i == (uint64_t{cursor.b} << 32 | cursor.a))
      return false;
    const Grain& grain  = grain_of(which);
    const auto words    = draw(which, cursor.rank, cursor.i++);
    const uint64_t size = grain.size.draw(words, 0) * grain.unit;
    const uint64_t last = grain.unit == 1 ? file_size() - size : (file_size() - size) / grain.unit;
    op                  = {OpKind::pread, 0, file_of(cursor.rank), size, random_below(last + 1, words, 1) * grain.unit};
    return true;
  }

  /// i is where the rank stands in its part, and the counter of its draws, since it never stands there twice.
  bool next_backwards(size_t which, Cursor& cursor, Op& op) const
  {
    if (cursor.j == 0) {
      cursor.j = 1;
      cursor.i = part_;
    }
    const Grain& grain  = grain_of(which);
    const auto words    = draw(which, cursor.rank, cursor.i);
    const uint64_t size = grain.size.draw(words, 0) * grain.unit;
    const uint64_t skip = grain.skip.draw(words, 1) * grain.unit;
    if (cursor.i < size)
      return false;
    const uint64_t at = cursor.i - size;
    op                = {OpKind::pread, 0, file_of(cursor.rank), size, part_start(cursor.rank) + at};
    cursor.i          = at > skip ? at - skip : 0;
    return true;
  }

  void count_reads() const
  {
    constexpr double most_draws = 10e6;
    for (const size_t which : {random_aligned, random_unaligned, backwards_aligned, backwards_unaligned}) {
      if (!runs(which))
        continue;
      const Grain& grain      = grain_of(which);
      const bool is_random    = which < backwards_aligned;
      const uint64_t smallest = (grain.size.low + grain.skip.low) * grain.unit;
      const uint64_t most     = is_random ? reads_ * (own_ ? ranks_ : 1) : ranks_ * (part_ / smallest + 1);
      const double expected =
          is_random
              ? static_cast<double>(most)
              : static_cast<double>(ranks_ * part_) /
                    (0.5 * static_cast<double>(
                               (grain.size.low + grain.size.high() + grain.skip.low + grain.skip.high()) * grain.unit));
      if (expected > most_draws) {
        counted_reads_ += most;
        counted_bytes_ += most * grain.size.high() * grain.unit;
        counted_largest_ = std::max(counted_largest_, grain.size.high() * grain.unit);
        continue;
      }
      for (uint32_t rank = 0; rank < ranks_; ++rank) {
        Cursor cursor;
        cursor.rank = rank;
        for (Op op; is_random ? next_random(which, cursor, op) : next_backwards(which, cursor, op);) {
          ++counted_reads_;
          counted_bytes_ += op.size;
          counted_largest_ = std::max(counted_largest_, op.size);
        }
      }
    }
  }

  uint64_t ranks_;
  uint64_t write_block_;
  uint64_t seed_;
  bool own_       = false;
  uint64_t part_  = 0; ///< bytes that each process writes of the data
  uint64_t fill_  = 0; ///< and of the filling
  uint64_t reads_ = 0; ///< of each file in each random pass
  Grain aligned_;
  Grain unaligned_;
  mutable std::once_flag counted_;
  mutable uint64_t counted_reads_   = 0;
  mutable uint64_t counted_bytes_   = 0;
  mutable uint64_t counted_largest_ = 0;
};

const bool registered = register_pattern(
    {"hpcs-random",
     "reads files at random places and backwards with skips, in small random sizes, aligned to sectors and not",
     "Carrier, HPCS I/O scenarios, LUG 2012, page 5; sections 14.01-14.03 as quoted in XDD's test_xdd_hpcs14.sh: "
     "scenarios 13 and 14",
     {{"files", Unit::text, "shared", "shared: all processes read one file; own: each process reads a file of its own"},
      {"memory", Unit::bytes, "8GiB", "memory of a node", 1, 1e15},
      {"times", Unit::factor, "10", "size of all files together, in memories of all nodes", 0, 1e6},
      {"fill_share", Unit::factor, "0.5", "of the memory, written to a file of each process first; 0 leaves it out", 0,
       1e6},
      {"reads", Unit::count, "50000000", "reads of each file in a random pass", 0, 9e15},
      {"sector", Unit::bytes, "512B", "what the aligned passes align to; their reads are at least one sector", 1, 1e9},
      {"read_low", Unit::bytes, "512B", "smallest read", 1, 4e9},
      {"read_high", Unit::bytes, "64KiB", "largest read", 1, 4e9},
      {"skip_low", Unit::bytes, "8KiB", "smallest skip between two backwards reads", 1, 4e9},
      {"skip_high", Unit::bytes, "512KiB", "largest skip", 1, 4e9},
      {"write_block", Unit::bytes, "16MiB", "size of each write of the files", 1, 1e12},
      {"most_seconds", Unit::seconds, "0s", "ends each pass of reads after so long; 0s: when all is done", 0, 1e9},
      {"seed", Unit::count, "0", "of the random sizes and places", 0, 9e15},
      {"scale", Unit::factor, "1", "multiplies memory and reads, for trial runs", 1e-9, 1e6},
      {"phases", Unit::text, "all",
       "which of precreate, fill, write, random-aligned, random-unaligned, backwards-aligned, backwards-unaligned, "
       "cleanup to run"}},
     {"memory=128KiB reads=50 write_block=32KiB read_high=16KiB skip_high=16KiB",
      "memory=128KiB reads=20 files=own write_block=1MiB sector=4KiB read_high=32KiB skip_high=64KiB most_seconds=1h",
      "memory=128KiB reads=20 fill_share=0 read_high=8KiB most_seconds=1h"},
     [](const Parameters& given, const Placement& placement) {
       return std::make_unique<HpcsRandom>(given, placement);
     }});

} // namespace
} // namespace iocast
