// SPDX-License-Identifier: Apache-2.0
//
// HPCS I/O scenarios 5 to 8: checkpoint and restart. Carrier, "HPCS I/O scenarios", Lustre Users Group 2012, page 7
// (record sizes, layouts) and page 8 (arrays, shares of memory). M processes hold `arrays` arrays each and write them,
// record by record:
//   segmented    one file, by process:  process 0: array 0, array 1, ... | process 1: ... (scenario 5)
//   strided      one file, by array:    array 0: process 0, process 1, ... | array 1: ... (scenario 6)
//   interleaved  one file, by record:   array 0: record 0 of every process | record 1 of every process ... (not of the
//   scenarios) own          a file per process, all in one directory (scenarios 7 and 8)
// A process's memory is its share of the node's. Restart reads everything back, by the same process or by another one.
// Whether processes make accesses of a shared file collectively the pages leave open.
#include "input/error.hpp"
#include "workload/phased_pattern.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace iocast {
namespace {

constexpr uint64_t element = 8; // Real*8

class HpcsCheckpoint final : public PhasedPattern {
public:
  HpcsCheckpoint(const Parameters& given, const Placement& placement)
      : ranks_(placement.ranks)
      , shift_(placement.ranks_between(within("hpcs-checkpoint", "node_offset", given, placement.nodes(), "nodes")) %
               placement.ranks)
      , requested_shift_(given.count("node_offset") > 0)
      , arrays_(given.count("arrays"))
      , sync_(given.flag("sync"))
  {
    read_sizes(given, placement);
    read_layout(given.text("layout"));
    read_together(given.text("together"));
    const double seconds = given.number("most_seconds");
    using Does           = PhaseOfWork::Does;
    choose_phases("hpcs-checkpoint", given.text("phases"),
                  {{precreate, Does::makes, {"precreate"}},
                   {checkpoint, Does::makes, {"checkpoint", 0, shift_ == 0 ? seconds : 0}},
                   {restart, Does::uses, {"restart", 0, seconds}},
                   {cleanup_files, Does::removes, {"cleanup", 1}},
                   {cleanup_dataset, Does::removes, {"cleanup", 2}}});
  }

  Footprint footprint() const override
  {
    const uint64_t made    = makes_data() ? 1 : 0;
    const uint64_t read    = runs(restart) ? 1 : 0;
    const uint64_t removed = runs(cleanup_files) ? 1 : 0;
    const uint64_t records = ranks_ * records_;
    Footprint result;
    result.peak_objects  = own_ ? ranks_ : 1;
    result.peak_bytes    = records * record_;
    result.operations    = {{OpKind::mkdir, made},
                            {OpKind::open, (made + read) * ranks_},
                            {OpKind::pwrite, made * records},
                            {OpKind::pread, read * records},
                            {OpKind::fsync, sync_ ? made * ranks_ : 0},
                            {OpKind::close, (made + read) * ranks_},
                            {OpKind::unlink, removed * result.peak_objects},
                            {OpKind::rmdir, removed}};
    result.bytes_written = made * result.peak_bytes;
    result.bytes_read    = read * result.peak_bytes;
    result.largest_size  = record_;
    result.collective    = joint_ != 0 && made + read > 0;
    return result;
  }

  std::vector<std::string> warnings() const override
  {
    std::vector<std::string> result;
    if (stretched_)
      result.push_back(fmt::format(
          "An array's share of memory is less than one record of {}; each array is one record nevertheless.",
          format_quantity(static_cast<double>(record_), Unit::bytes)));
    if (requested_shift_ && shift_ == 0)
      result.push_back("With this node_offset each process reads back what it wrote itself; choose another one.");
    return result;
  }

  char* name_dataset(uint64_t, char* out) const override
  {
    std::memcpy(out, "checkpoint", 10);
    return out + 10;
  }

  nlohmann::ordered_json data_set() const override
  {
    return {{"ranks", ranks_},   {"arrays", arrays_},         {"records", records_},
            {"record", record_}, {"array_step", array_step_}, {"process_step", process_step_}};
  }

private:
  enum Which : size_t { precreate, checkpoint, restart, cleanup_files, cleanup_dataset };

  void read_sizes(const Parameters& given, const Placement& placement)
  {
    const double memory = given.number("memory") * given.number("scale") / placement.ranks_per_node;
    const auto array =
        static_cast<uint64_t>(memory * given.number("share") / static_cast<double>(arrays_ * element)) * element;
    record_    = given.count("record") == 0 ? std::max(array, element) : given.count("record");
    stretched_ = array < record_;
    blocks_    = std::max<uint64_t>(1, array / record_);
    records_   = arrays_ * blocks_;
    if (records_ > UINT32_MAX)
      throw InputError(fmt::format("{} records of {} a process are too many; set a larger record or less memory.",
                                   records_, format_quantity(static_cast<double>(record_), Unit::bytes)));
  }

  /// Every layout is a sum of three steps: by process, by array, by record of an array.
  void read_layout(const std::string& layout)
  {
    static const std::vector<std::string> layouts{"segmented", "strided", "interleaved", "own"};
    const auto found = std::find(layouts.begin(), layouts.end(), layout);
    if (found == layouts.end())
      throw InputError(
          fmt::format("hpcs-checkpoint knows no layout '{}'. {}", layout, allowed_sentence(layout, layouts)));
    const uint64_t array = blocks_ * record_;
    own_                 = layout == "own";
    if (own_ || layout == "segmented") {
      process_step_ = own_ ? 0 : arrays_ * array;
      array_step_   = array;
      record_step_  = record_;
    } else {
      const bool by_record = layout == "interleaved";
      array_step_          = ranks_ * array;
      process_step_        = by_record ? record_ : array;
      record_step_         = by_record ? ranks_ * record_ : record_;
    }
  }

  void read_together(const std::string& together)
  {
    static const std::vector<std::string> words{"opening", "all"};
    if (std::find(words.begin(), words.end(), together) == words.end())
      throw InputError(
          fmt::format("hpcs-checkpoint knows no together '{}'. {}", together, allowed_sentence(together, words)));
    if (own_ && together == "all")
      throw InputError("In the layout 'own' no two processes share a file, so that none access it together; set "
                       "together=opening or another layout.");
    joint_ = together == "all" ? OpFlag::collective : 0;
  }

  uint64_t object_of(uint64_t owner) const { return own_ ? owner : 0; }

  /// In the cursor: a = records written, b = whether the file was opened for it.
  bool next_in(size_t which, Cursor& cursor, Op& op) const override
  {
    const uint8_t together = own_ ? 0 : OpFlag::shared;
    switch (which) {
      case precreate:
        return once(cursor.rank == 0, {OpKind::mkdir, 0, 0}, cursor, op);
      case checkpoint: {
        cursor.b         = 1;
        const auto flags = static_cast<uint8_t>(OpFlag::for_writing | OpFlag::make_it | together);
        return next_on({0, object_of(cursor.rank), flags, sync_}, cursor, op, [&](Op& access) {
          const bool more = next_record(OpKind::pwrite, cursor.rank, records_, cursor, access);
          cursor.a        = static_cast<uint32_t>(cursor.i);
          return more;
        });
      }
      case restart: {
        const uint64_t owner = (cursor.rank + ranks_ - shift_) % ranks_;
        const bool may_lack  = makes_data() && shift_ == 0;
        if (may_lack && own_ && cursor.b == 0)
          return false;
        return next_on({0, object_of(owner), together, false}, cursor, op, [&](Op& access) {
          return next_record(OpKind::pread, owner, may_lack ? cursor.a : records_, cursor, access);
        });
      }
      case cleanup_files: {
        const bool mine = own_ ? cursor.b == 1 || !makes_data() : cursor.rank == 0;
        return once(mine, {OpKind::unlink, 0, object_of(cursor.rank)}, cursor, op);
      }
      default:
        return once(cursor.rank == 0, {OpKind::rmdir, 0, 0}, cursor, op);
    }
  }

  bool once(bool mine, const Op& only, Cursor& cursor, Op& op) const
  {
    if (!mine || cursor.step != 1)
      return false;
    cursor.step = 2;
    op          = only;
    return true;
  }

  bool next_record(OpKind kind, uint64_t owner, uint64_t most, Cursor& cursor, Op& op) const
  {
    if (cursor.i == most)
      return false;
    const uint64_t at = owner * process_step_ + cursor.i / blocks_ * array_step_ + cursor.i % blocks_ * record_step_;
    op                = {kind, 0, object_of(owner), record_, at};
    op.flags          = joint_;
    ++cursor.i;
    return true;
  }

  uint64_t ranks_;
  uint64_t shift_; ///< ranks between who writes and who reads
  bool requested_shift_;
  uint64_t arrays_; ///< of each process
  bool sync_;
  uint64_t record_       = 0; ///< bytes
  uint64_t blocks_       = 0; ///< records of an array
  uint64_t records_      = 0; ///< of a process
  bool stretched_        = false;
  bool own_              = false;
  uint8_t joint_         = 0; ///< flags of an access
  uint64_t process_step_ = 0;
  uint64_t array_step_   = 0;
  uint64_t record_step_  = 0;
};

const bool registered = register_pattern(
    {"hpcs-checkpoint",
     "writes the arrays of every process to one shared file or to a file each, and reads them back",
     "Carrier, HPCS I/O scenarios, LUG 2012, pages 7 and 8: scenarios 5 to 8",
     {{"memory", Unit::bytes, "8GiB", "memory of a node; its processes have equal shares of it", 1, 1e15},
      {"share", Unit::factor, "0.5", "of the memory, in all arrays together", 0, 1},
      {"arrays", Unit::count, "50", "arrays of 8-byte elements in each process", 1, 1e6},
      {"record", Unit::bytes, "0B", "size of each access; 0B: an array whole", 0, 1e12},
      {"layout", Unit::text, "segmented", "segmented, strided, interleaved (one shared file), or own (a file each)"},
      {"together", Unit::text, "opening",
       "what the processes of a shared file do together: opening, or all, which makes accesses collective"},
      {"node_offset", Unit::count, "0",
       "nodes between who wrote a part and who reads it; 0: each process reads its own", 0, 1e9},
      {"sync", Unit::flag, "true", "fsync before the close of the checkpoint"},
      {"most_seconds", Unit::seconds, "0s",
       "ends checkpoint and restart after so long; 0s: when all is done. With node_offset the checkpoint is always "
       "whole",
       0, 1e9},
      {"scale", Unit::factor, "1", "multiplies the memory, for trial runs", 1e-9, 1e6},
      {"phases", Unit::text, "all", "which of precreate, checkpoint, restart, cleanup to run"}},
     {"memory=1MiB arrays=5 most_seconds=1h",
      "memory=1MiB arrays=5 record=8000B layout=strided share=0.25 most_seconds=1h",
      "memory=1MiB arrays=3 record=8000B layout=interleaved sync=false",
      "memory=1MiB arrays=3 record=8000B layout=interleaved together=all most_seconds=1h",
      "memory=1MiB arrays=5 layout=own most_seconds=1h",
      "memory=1MiB arrays=5 layout=own node_offset=1 most_seconds=1h"},
     [](const Parameters& given, const Placement& placement) {
       return std::make_unique<HpcsCheckpoint>(given, placement);
     }});

} // namespace
} // namespace iocast
