// SPDX-License-Identifier: Apache-2.0
//
// postmark: what the mail and news servers of an Internet provider did to a file system in 1997. A pool of small files
// of random sizes; then transactions, each a read or an append of a random file and the creation or deletion of one;
// then the removal of the rest. J. Katcher, "PostMark: a new file system benchmark", NetApp TR3022, 1997; the
// details are those of version 1.51: sizes lie in [low, high), an append adds 1 to (high - size) bytes and does nothing
// to a file of full size, the pool never holds more than twice the files it began with, and a rank whose pool is empty
// ends its transactions.
//
// Every rank is a PostMark process of its own, and all of them meet at barriers before and after the transactions: with
// more than one rank this is the Cluster PostMark of Sebepou et al., "An experimental evaluation of PVFS2 and Lustre",
// LASCO 2008.
#include "input/error.hpp"
#include "workload/pool_pattern.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace iocast {
namespace {

class PostMark final : public PoolPattern {
public:
  PostMark(const Parameters& given, const Placement& placement)
      : PoolPattern(plan_of(given), placement)
      , low_(given.count("size_low"))
      , high_(given.count("size_high"))
      , read_(given.number("bias_read"))
      , create_(given.number("bias_create"))
  {
  }

  std::vector<std::string> warnings() const override
  {
    if (create_ >= 0 && create_ < 5 &&
        static_cast<double>(plan().steps * plan().repeats + plan().start) * (1 - create_ / 5) >
            static_cast<double>(plan().files))
      return {fmt::format(
          "With bias_create = {:.0f} more files are deleted than created: ranks will run out of files and end before "
          "their {} transactions; ask for more files.",
          create_, plan().steps)};
    return {};
  }

private:
  enum Part : uint16_t { use = first_part, change, over };
  enum Draw : uint32_t { transaction, amount, size };

  static PoolPlan plan_of(const Parameters& given)
  {
    if (given.count("size_low") > given.count("size_high"))
      throw InputError(fmt::format("postmark can't draw sizes between {} and {} bytes; size_low is at most size_high.",
                                   given.count("size_low"), given.count("size_high")));
    PoolPlan plan;
    plan.pattern     = "postmark";
    plan.files       = given.count("number");
    plan.directories = std::max<uint32_t>(1, static_cast<uint32_t>(given.count("subdirectories")));
    plan.steps       = given.count("transactions");
    plan.start       = given.count("start");
    plan.repeats     = static_cast<uint32_t>(given.count("repeats"));
    plan.read_block  = given.count("read");
    plan.write_block = given.count("write");
    plan.seed        = given.count("seed");
    plan.phases      = given.text("phases");
    for (const uint64_t block : {plan.read_block, plan.write_block})
      plan.largest =
          std::max(plan.largest, block == 0 ? given.count("size_high") : std::min(block, given.count("size_high")));
    return plan;
  }

  bool next_in_step(Rank& rank, Cursor& cursor, Op& op, uint64_t number) const override
  {
    const auto drawn = words(cursor.rank, number, transaction);
    if (cursor.step == use) {
      cursor.step = change;
      if (read_ >= 0) {
        const uint64_t place = below(drawn[2], rank.pool.count());
        const uint64_t held  = rank.pool[place].size;
        if (static_cast<double>(below(drawn[0], 10)) < read_) {
          read(rank, cursor, op, place);
          return true;
        }
        if (held < high_) {
          append(rank, cursor, op, place, 1 + below(words(cursor.rank, number, amount)[0], high_ - held));
          return true;
        }
      }
    }
    if (cursor.step == change) {
      cursor.step = over;
      if (create_ >= 0) {
        if (static_cast<double>(below(drawn[1], 10)) >= create_) {
          unlink(rank, cursor, op, below(drawn[3], rank.pool.count()));
          return true;
        }
        if (rank.pool.count() < 2 * plan().files) {
          create(rank, cursor, op);
          return true;
        }
      }
    }
    return false;
  }

  uint64_t size_of_new(uint32_t rank, uint32_t number) const override
  {
    return low_ + below(words(rank, number, size)[0], high_ - low_);
  }

  nlohmann::ordered_json own_data_set() const override
  {
    return {{"size_low", low_}, {"size_high", high_}, {"bias_read", read_}, {"bias_create", create_}};
  }

  uint64_t low_;
  uint64_t high_;
  double read_;
  double create_;
};

constexpr double largest_size = 4294967295.0;

const bool registered = register_pattern(
    {"postmark",
     "a mail server's small files: read or append one, create or delete one, at random; each rank in files of its own",
     "Katcher, NetApp TR3022, 1997, and PostMark 1.51; Sebepou et al., LASCO 2008, for its parallel version",
     {{"number", Unit::count, "500", "files of each rank at the start", 1, 1e9},
      {"transactions", Unit::count, "500", "of each rank in one benchmark phase", 0, 4e9},
      {"size_low", Unit::bytes, "500B", "new files have at least this size", 1, largest_size},
      {"size_high", Unit::bytes, "10000B", "and less than this one (unless both are equal); appends stop there", 1,
       largest_size},
      {"subdirectories", Unit::count, "0", "number of subdirectories; new files go to a random one; 0 and 1 for none",
       0, 1e6},
      {"read", Unit::bytes, "512B", "bytes read at a time; 0: the file in one operation", 0, largest_size},
      {"write", Unit::bytes, "512B", "bytes written at a time; 0: all in one operation", 0, largest_size},
      {"bias_read", Unit::count, "5", "number of ten transactions that read; the others append; -1 for neither", -1,
       10},
      {"bias_create", Unit::count, "5", "number of ten transactions that create; the others delete; -1 for neither", -1,
       10},
      {"repeats", Unit::count, "1", "how often the benchmark phase runs, each time with further transactions", 1,
       60000},
      {"start", Unit::count, "0", "transactions that an earlier run made with the files", 0, 4e9},
      {"seed", Unit::count, "0", "of all that is drawn", 0, 9e15},
      {"phases", Unit::text, "precreate,benchmark,cleanup", "which phases to run, in this order"}},
     {"number=6 transactions=30 subdirectories=3 read=1KiB write=512B",
      "number=5 transactions=12 read=0B write=0B repeats=2 seed=4",
      "number=3 transactions=40 bias_create=3 size_low=1B size_high=1B"},
     [](const Parameters& given, const Placement& placement) { return std::make_unique<PostMark>(given, placement); }});

} // namespace
} // namespace iocast
