// SPDX-License-Identifier: Apache-2.0
//
// How fast are the patterns, alone? Operations a second of one core for every pattern and every workload of the
// catalogue, and the bytes that a rank's state takes, at a million ranks.
//
//   in turn   each rank gives one operation after the other, as the simulator asks for them; default settings. Where
//   only one or two of
//             the ranks do anything (hpcs-01, hpcs-02), most of the time goes to asking the others in vain
//   slowest   ranks give their whole streams one after the other, with each of the workload's small settings; the
//   slowest of these.
//             Settings that are too small for that number of ranks are taken with 16
//
// Times are processor time, the best of three. Bytes a rank are the cursor and whatever the pattern allocates while all
// ranks are on their way.
#include "input/error.hpp"
#include "workload/workload.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ctime>
#include <exception>
#include <fmt/format.h>
#include <malloc.h>
#include <sstream>

namespace iocast {
namespace {

constexpr int attempts = 3;

struct Arguments {
  long long ranks         = 1'000'000;
  uint64_t operations     = 10'000'000;
  uint64_t own_operations = 300'000;
  std::vector<std::string> names;
  bool json = false;
};

/// Time of this program on a processor, so that others on the machine don't count.
class Clock {
public:
  double seconds() const { return now() - start_; }

private:
  static double now()
  {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }
  double start_ = now();
};

size_t heap_bytes()
{
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

/// Number of ranks that every small setting is good for.
constexpr Placement few_ranks{16, 8};

/// Something that depends on all of an operation, so that no part of making it can be left out.
uint64_t digest(const Op& op)
{
  return static_cast<uint64_t>(op.kind) + op.flags + op.count + op.dataset + op.object + op.size + op.offset +
         op.stride;
}

uint64_t sink = 0;

/// Operations a second, with all ranks at once on their way; adds the bytes of state a rank.
double in_turn(const Workload& workload, const Placement& placement, uint64_t operations, double& bytes)
{
  double best = 0;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const size_t before = heap_bytes();
    const auto pattern  = workload.make(placement);
    std::vector<Cursor> cursors(placement.ranks);
    for (uint32_t rank = 0; rank < placement.ranks; ++rank)
      cursors[rank].rank = rank;
    uint64_t done = 0;
    bool more     = true;
    const Clock clock;
    Op op;
    while (more && done < operations) {
      more = false;
      for (auto& cursor : cursors)
        if (pattern->next(cursor, op)) {
          sink += digest(op);
          ++done;
          more = true;
        }
    }
    best  = std::max(best, static_cast<double>(done) / clock.seconds());
    bytes = static_cast<double>(heap_bytes() - before) / placement.ranks;
  }
  return best;
}

/// Operations a second of whole streams, of ranks from everywhere.
double one_by_one(const Workload& workload, const Placement& placement, uint64_t operations)
{
  const auto pattern  = workload.make(placement);
  const uint32_t step = std::max(1U, placement.ranks / 1009); // a prime: ranks of all kinds
  double best         = 0;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    uint64_t done = 0;
    uint32_t rank = 0;
    Op op;
    const Clock clock;
    while (done < operations) {
      Cursor cursor;
      cursor.rank = rank;
      for (uint64_t i = 0; i < operations && pattern->next(cursor, op); ++i, ++done)
        sink += digest(op);
      rank = static_cast<uint32_t>((uint64_t{rank} + step) % placement.ranks);
    }
    best = std::max(best, static_cast<double>(done) / clock.seconds());
  }
  return best;
}

std::vector<std::string> split(const std::string& text)
{
  std::vector<std::string> result;
  std::istringstream in(text);
  for (std::string word; in >> word;)
    result.push_back(word);
  return result;
}

int run(const Arguments& given)
{
  auto names = given.names;
  if (names.empty()) {
    for (const auto& entry : patterns())
      names.push_back(entry.name);
    for (const auto& entry : catalogue())
      if (std::find(names.begin(), names.end(), entry.name) == names.end())
        names.push_back(entry.name);
  }
  const long long per_node = std::min(given.ranks, 100LL);
  const auto placement     = make_placement(given.ranks / per_node, per_node);
  auto rows                = nlohmann::ordered_json::array();
  if (!given.json)
    fmt::print("{:<28}{:>14}{:>14}{:>14}\n{:<28}{:>14}{:>14}{:>14}\n", fmt::format("{} ranks", placement.ranks),
               "in turn,", "slowest,", "state,", "", "million/s", "million/s", "bytes/rank");
  for (const auto& name : names) {
    nlohmann::ordered_json row{{"name", name}};
    const auto workload = open_workload(name, {});
    try {
      double bytes          = 0;
      row["in_turn"]        = in_turn(workload, placement, given.operations, bytes);
      row["bytes_per_rank"] = bytes;
    } catch (const InputError& error) {
      row["refused"] = error.what();
    }
    for (const auto& settings : workload.small) {
      const auto small = open_workload(name, split(settings));
      double rate      = 0;
      try {
        rate = one_by_one(small, placement, given.own_operations);
      } catch (const InputError&) {
        rate = one_by_one(small, few_ranks, given.own_operations);
      }
      if (!row.contains("slowest") || rate < row["slowest"]) {
        row["slowest"]          = rate;
        row["slowest_settings"] = settings;
      }
    }
    if (!given.json)
      fmt::print("{:<28}{:>14.1f}{:>14.1f}{:>14.1f}  {}\n", name, row.value("in_turn", 0.0) * 1e-6,
                 row.value("slowest", 0.0) * 1e-6, row.value("bytes_per_rank", 0.0), row.value("refused", ""));
    std::fflush(stdout);
    rows.push_back(row);
  }
  if (given.json)
    fmt::print("{}\n",
               nlohmann::ordered_json{{"ranks", placement.ranks}, {"patterns", rows}, {"digest", sink}}.dump(1));
  return 0;
}

int run_command(int argc, char** argv)
{
  CLI::App app{"pattern-speed says how many operations a second each pattern and workload generates on one core, and "
               "what a rank's state takes."};
  app.footer("Example: pattern-speed application iozone --json");
  Arguments given;
  app.add_option("names", given.names, "patterns and workloads; all when none is named");
  app.add_option("--ranks", given.ranks, "ranks on their way at once, 100 a node")->capture_default_str();
  app.add_option("--operations", given.operations, "least number of operations that are timed when ranks take turns")
      ->capture_default_str();
  app.add_option("--own-operations", given.own_operations,
                 "least number of operations of whole streams, with each small setting")
      ->capture_default_str();
  app.add_flag("--json", given.json, "one JSON object on standard output");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return run(given);
}

} // namespace
} // namespace iocast

int main(int argc, char** argv)
{
  try {
    return iocast::run_command(argc, argv);
  } catch (const iocast::InputError& error) {
    fmt::print(stderr, "pattern-speed: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "pattern-speed: {}\n", error.what());
    return 1;
  }
}
