// SPDX-License-Identifier: Apache-2.0
//
// HPCS I/O scenario 4, extreme file creation rates. Carrier, "HPCS I/O scenarios", Lustre Users Group 2012, pages 4 and
// 5: only the name is public, and that it belongs to the environment in which a single node makes files from streaming
// data. The reading: every process creates files with some content as fast as it can, in directories of its own or all
// in one.
#include "input/error.hpp"
#include "workload/phased_pattern.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fmt/format.h>

namespace iocast {
namespace {

class HpcsCreation final : public PhasedPattern {
public:
  HpcsCreation(const Parameters& given, const Placement& placement)
      : ranks_(placement.ranks), file_size_(given.count("file_size")), in_one_(given.flag("one_directory"))
  {
    const double files = given.number("files") * given.number("scale");
    if (files > UINT32_MAX)
      throw InputError(
          fmt::format("{:.0f} files a process are too many; at most {} can be counted.", files, UINT32_MAX));
    files_     = std::max(1U, static_cast<uint32_t>(files));
    each_      = static_cast<uint32_t>(std::min<uint64_t>(files_, given.count("files_per_directory")));
    datasets_  = (files_ + each_ - 1) / each_;
    using Does = PhaseOfWork::Does;
    choose_phases("hpcs-creation", given.text("phases"),
                  {{precreate, Does::makes, {"precreate"}},
                   {create, Does::makes, {"create", 0, given.number("most_seconds")}},
                   {cleanup_files, Does::removes, {"cleanup", 1}},
                   {cleanup_datasets, Does::removes, {"cleanup", 2}}});
  }

  Footprint footprint() const override
  {
    const uint64_t files    = uint64_t{ranks_} * files_;
    const uint64_t datasets = in_one_ ? 1 : uint64_t{ranks_} * datasets_;
    const uint64_t made     = makes_data() ? 1 : 0;
    const uint64_t removed  = runs(cleanup_files) ? 1 : 0;
    Footprint result;
    result.operations    = {{OpKind::mkdir, made * datasets},
                            {OpKind::create, made * files},
                            {OpKind::unlink, removed * files},
                            {OpKind::rmdir, removed * datasets}};
    result.bytes_written = made * files * file_size_;
    result.peak_objects  = files;
    result.peak_bytes    = files * file_size_;
    result.largest_size  = file_size_;
    return result;
  }

  char* name_dataset(uint64_t dataset, char* out) const override
  {
    std::memcpy(out, "directory-", 10);
    return std::to_chars(out + 10, out + 30, dataset).ptr;
  }

  nlohmann::ordered_json data_set() const override
  {
    return {{"ranks", ranks_},
            {"files", files_},
            {"files_per_directory", each_},
            {"one_directory", in_one_},
            {"file_size", file_size_}};
  }

private:
  enum Which : size_t { precreate, create, cleanup_files, cleanup_datasets };

  /// In the cursor: a = files created.
  bool next_in(size_t which, Cursor& cursor, Op& op) const override
  {
    switch (which) {
      case precreate:
        return next_dataset(OpKind::mkdir, cursor, op);
      case create:
        if (!next_file(OpKind::create, files_, file_size_, cursor, op))
          return false;
        ++cursor.a;
        return true;
      case cleanup_files:
        return next_file(OpKind::unlink, makes_data() ? cursor.a : files_, 0, cursor, op);
      default:
        return next_dataset(OpKind::rmdir, cursor, op);
    }
  }

  bool next_dataset(OpKind kind, Cursor& cursor, Op& op) const
  {
    if (cursor.i == (!in_one_ ? datasets_ : cursor.rank == 0 ? 1 : 0))
      return false;
    op = {kind, in_one_ ? 0 : uint64_t{cursor.rank} * datasets_ + cursor.i, 0};
    ++cursor.i;
    return true;
  }

  /// File number i of the rank.
  bool next_file(OpKind kind, uint32_t most, uint64_t size, Cursor& cursor, Op& op) const
  {
    if (cursor.i == most)
      return false;
    const uint64_t file = in_one_ ? uint64_t{cursor.rank} * files_ + cursor.i : cursor.i;
    op                  = {kind, in_one_ ? 0 : uint64_t{cursor.rank} * datasets_ + cursor.i / each_, file, size};
    ++cursor.i;
    return true;
  }

  uint32_t ranks_;
  uint64_t file_size_;
  bool in_one_;
  uint32_t files_    = 0; ///< of each rank
  uint32_t each_     = 0; ///< files in a full directory
  uint32_t datasets_ = 0; ///< of each rank
};

const bool registered = register_pattern(
    {"hpcs-creation",
     "creates small files as fast as it can, in directories of each process or all in one",
     "Carrier, HPCS I/O scenarios, LUG 2012, pages 4-5: scenario 4; known by name, the rest is this pattern's reading",
     {{"files", Unit::count, "1000000", "files each process creates", 1, 4e9},
      {"file_size", Unit::bytes, "32KiB", "content of each file", 0, 1e12},
      {"files_per_directory", Unit::count, "10000",
       "files in each directory; a process fills one directory after another", 1, 4e9},
      {"one_directory", Unit::flag, "false", "all files of all processes lie in one directory"},
      {"most_seconds", Unit::seconds, "0s", "ends the creation after so long; 0s: when all files are made", 0, 1e9},
      {"scale", Unit::factor, "1", "multiplies the number of files, for trial runs", 1e-9, 1e6},
      {"phases", Unit::text, "all", "which of precreate, create, cleanup to run"}},
     {"files=25 files_per_directory=10 file_size=1KiB most_seconds=1h",
      "files=8 one_directory=true file_size=0B most_seconds=1h"},
     [](const Parameters& given, const Placement& placement) {
       return std::make_unique<HpcsCreation>(given, placement);
     }});

} // namespace
} // namespace iocast
