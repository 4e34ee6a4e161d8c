// SPDX-License-Identifier: Apache-2.0
//
// operation-mix: each rank draws its operations one by one, by weights, and the file each is about at random from a
// pool of its own, whose sizes follow a distribution: what traces of production systems are usually summed up in.
//
// With `zipf` the place in the pool is the rank of popularity: the files of the start are the most popular ones, and a
// new file is the least popular one. Files are deleted regardless of popularity, and the newest one takes the place.
//
// The pool stays between half and twice the number of files it began with: there an unlink becomes a create, or a
// create an unlink.
#include "input/error.hpp"
#include "workload/pool_pattern.hpp"
#include "workload/size_law.hpp"
#include "workload/zipf.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace iocast {
namespace {

constexpr std::array<OpKind, 6> drawn_kinds{OpKind::stat,   OpKind::read,   OpKind::create,
                                            OpKind::unlink, OpKind::append, OpKind::readdir};

class OperationMix final : public PoolPattern {
public:
  OperationMix(const Parameters& given, const Placement& placement)
      : PoolPattern(plan_of(given), placement)
      , sizes_(sizes_of(given))
      , append_size_(given.count("append_size"))
      , zipf_(given.number("zipf"))
      , settings_(given.to_json())
  {
    double total = 0;
    for (const OpKind kind : drawn_kinds)
      total += given.number(std::string(name_of(kind)));
    if (total <= 0)
      throw InputError("operation-mix has nothing to draw from; give at least one operation a weight above 0.");
    double sum = 0;
    for (size_t i = 0; i < drawn_kinds.size(); ++i) {
      sum += given.number(std::string(name_of(drawn_kinds[i])));
      // On words of 32 bits, and exactly all of them at the end.
      ends_[i] = static_cast<uint64_t>(std::llround(sum / total * 0x1p32));
    }
  }

private:
  enum Part : uint16_t { draw = first_part, over };
  enum Draw : uint32_t { step, size, popularity };

  static SizeLaw sizes_of(const Parameters& given)
  {
    if (const auto& table = given.text("sizes"); !table.empty())
      return SizeLaw::table(table);
    return SizeLaw::lognormal(given.number("size_median"), given.number("size_sigma"), given.number("size_most"));
  }

  static PoolPlan plan_of(const Parameters& given)
  {
    PoolPlan plan;
    plan.pattern     = "operation-mix";
    plan.files       = given.count("files");
    plan.directories = static_cast<uint32_t>(given.count("directories"));
    plan.steps       = given.count("operations");
    plan.start       = given.count("start");
    plan.repeats     = static_cast<uint32_t>(given.count("repeats"));
    plan.seed        = given.count("seed");
    plan.phases      = given.text("phases");
    plan.largest     = std::max(sizes_of(given).largest(), given.count("append_size"));
    return plan;
  }

  bool next_in_step(Rank& rank, Cursor& cursor, Op& op, uint64_t number) const override
  {
    if (cursor.step == over)
      return false;
    cursor.step      = over;
    const auto drawn = words(cursor.rank, number, step);
    size_t which     = 0;
    while (drawn[0] >= ends_[which])
      ++which;
    OpKind kind = drawn_kinds[which];
    if (kind == OpKind::unlink && rank.pool.count() <= (plan().files + 1) / 2)
      kind = OpKind::create;
    else if (kind == OpKind::create && rank.pool.count() >= 2 * plan().files)
      kind = OpKind::unlink;
    const uint64_t place =
        kind == OpKind::unlink || zipf_ == 0 ? below(drawn[1], rank.pool.count()) : popular(rank, cursor, number);
    switch (kind) {
      case OpKind::create:
        create(rank, cursor, op);
        break;
      case OpKind::unlink:
        unlink(rank, cursor, op, place);
        break;
      case OpKind::read:
        read(rank, cursor, op, place);
        break;
      case OpKind::append:
        append(rank, cursor, op, place, append_size_);
        break;
      case OpKind::readdir: {
        const auto chosen = static_cast<uint32_t>(below(drawn[1], plan().directories));
        op                = {OpKind::readdir, directory(cursor.rank, chosen), 0, rank.entries[chosen]};
        break;
      }
      default:
        op = {OpKind::stat, dataset_of(cursor.rank, rank.pool[place].number), rank.pool[place].number};
        break;
    }
    return true;
  }

  uint64_t popular(const Rank& rank, const Cursor& cursor, uint64_t number) const
  {
    if (rank.pool.count() == 0)
      return 0;
    return Zipf(rank.pool.count(), zipf_)(
        [&](uint32_t i) { return to_uniform(words(cursor.rank, number, popularity + i / 2), i % 2 * 2); });
  }

  uint64_t size_of_new(uint32_t rank, uint32_t number) const override
  {
    return sizes_.at(to_uniform(words(rank, number, size)[0]));
  }

  nlohmann::ordered_json own_data_set() const override
  {
    nlohmann::ordered_json json;
    for (const char* name : {"stat", "read", "create", "unlink", "append", "readdir", "size_median", "size_sigma",
                             "size_most", "sizes", "append_size", "zipf"})
      json[name] = settings_[name];
    return json;
  }

  SizeLaw sizes_;
  uint64_t append_size_;
  double zipf_;
  nlohmann::ordered_json settings_;
  std::array<uint64_t, drawn_kinds.size()> ends_{}; ///< of each kind's share of the 32-bit words
};

const bool registered = register_pattern(
    {"operation-mix",
     "operations drawn by weights on random files of a pool with a distribution of sizes; each rank in files of its "
     "own",
     "the operation mixes and size distributions of file system traces, such as those of SPECsfs2008 and Filebench's "
     "personalities",
     {{"files", Unit::count, "1000", "of each rank at the start", 1, 1e9},
      {"directories", Unit::count, "1", "that a rank's files are spread over at random", 1, 1e6},
      {"operations", Unit::count, "1000", "of each rank in one benchmark phase", 0, 4e9},
      {"stat", Unit::factor, "1", "weight of stat", 0, 1e9},
      {"read", Unit::factor, "1", "weight of reading a file whole", 0, 1e9},
      {"create", Unit::factor, "1", "weight of creating a file", 0, 1e9},
      {"unlink", Unit::factor, "1", "weight of deleting a file", 0, 1e9},
      {"append", Unit::factor, "1", "weight of appending to a file", 0, 1e9},
      {"readdir", Unit::factor, "0", "weight of listing a directory", 0, 1e9},
      {"size_median", Unit::bytes, "4KiB", "median of the sizes, which are lognormal", 1, 1e15},
      {"size_sigma", Unit::factor, "1.5", "standard deviation of the sizes' natural logarithm", 0, 20},
      {"size_most", Unit::bytes, "1GiB", "larger files are cut to this size", 1, 1e15},
      {"sizes", Unit::text, "",
       "a table of sizes instead, PROBABILITY:SIZE with commas between: 0:512B,0.5:4KiB,1:1GiB"},
      {"append_size", Unit::bytes, "4KiB", "bytes that an append adds", 1, 1e15},
      {"zipf", Unit::factor, "0", "exponent of the popularity of files that are not deleted; 0: all alike", 0,
       largest_exponent},
      {"repeats", Unit::count, "1", "how often the benchmark phase runs, each time with further operations", 1, 60000},
      {"start", Unit::count, "0", "operations that an earlier run drew for the files", 0, 4e9},
      {"seed", Unit::count, "0", "of all that is drawn", 0, 9e15},
      {"phases", Unit::text, "precreate,benchmark,cleanup", "which phases to run, in this order"}},
     {"files=8 operations=40 directories=3 readdir=1",
      "files=5 operations=20 repeats=2 zipf=0.9 sizes=0:0B,0.5:300B,1:2KiB append=0 seed=3"},
     [](const Parameters& given, const Placement& placement) {
       return std::make_unique<OperationMix>(given, placement);
     }});

} // namespace
} // namespace iocast
