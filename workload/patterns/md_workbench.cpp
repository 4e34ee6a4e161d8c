// SPDX-License-Identifier: Apache-2.0
//
// md-workbench: N ranks keep a working set of N x D datasets with P objects each at constant size. In each step a rank
// stats, reads and deletes the oldest object of a dataset that lies O ranks before its own and appends a new one O
// ranks after it. Kunkel & Markomanolis, "Understanding metadata latency with MDWorkbench", 2018, Figures 1 to 3.
//
// Two deliberate differences from the tools of that name: with a start index s, precreate makes the objects s to s+P-1
// (they make P-s of them and then fail), and I > P is refused (they read objects that nobody has made yet).
//
// With a time limit a benchmark phase ends for each rank where it is, and the phase benchmark-rest takes all of them as
// far as the furthest has come: then every dataset has P objects again, with the same numbers.
#include "input/error.hpp"
#include "workload/pattern.hpp"
#include "workload/phase_list.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <fmt/format.h>

namespace iocast {
namespace {

class MdWorkbench final : public Pattern {
public:
  MdWorkbench(const Parameters& given, const Placement& placement)
      : placement_(placement)
      , datasets_(static_cast<uint32_t>(given.count("datasets")))
      , objects_(given.count("objects"))
      , iterations_(given.count("iterations"))
      , object_size_(given.count("object_size"))
      , start_index_(given.count("start_index"))
      , read_only_(given.flag("read_only"))
      , most_seconds_(given.number("most_seconds"))
      , limited_(most_seconds_ > 0 && !read_only_)
  {
    const uint64_t node_offset = within("md-workbench", "node_offset", given, placement.nodes(), "nodes");
    offset_                    = node_offset > 0 ? placement.ranks_between(node_offset)
                                                 : within("md-workbench", "offset", given, placement.ranks, "ranks");
    if (iterations_ > objects_)
      throw InputError(
          fmt::format("md-workbench can't run {} iterations on {} objects: a rank would read objects that another "
                      "has yet to create. Set iterations to at most objects.",
                      iterations_, objects_));
    const auto repeats = static_cast<uint32_t>(given.count("repeats"));
    if (limited_ && static_cast<double>(iterations_) * repeats > most_limited)
      throw InputError(fmt::format("md-workbench counts at most {} iterations in all repeats together when "
                                   "most_seconds limits their time, not {} in each of {}.",
                                   most_limited, iterations_, repeats));
    read_phases(given.text("phases"), repeats);
  }

  const std::vector<Phase>& phases() const override { return phases_; }

  bool next(Cursor& cursor, Op& op) const override
  {
    while (cursor.phase < kinds_.size()) {
      if (cursor.step == before_phase) {
        op = {OpKind::phase, 0, cursor.phase};
        if (kinds_[cursor.phase] == Kind::rest) {
          cursor.step = static_cast<uint16_t>(cursor.c);
          return true;
        }
        cursor.i    = 0;
        cursor.j    = 0;
        cursor.step = kinds_[cursor.phase] == Kind::precreate ? make_datasets : work;
        return true;
      }
      bool more = false;
      switch (kinds_[cursor.phase]) {
        case Kind::precreate:
          more = next_precreate(cursor, op);
          break;
        case Kind::benchmark:
          more = next_benchmark(cursor, op, iterations_);
          break;
        case Kind::rest:
          more = next_benchmark(cursor, op, cursor.b);
          break;
        case Kind::cleanup:
          more = next_cleanup(cursor, op);
          break;
      }
      if (more)
        return true;
      if (kinds_[cursor.phase] == Kind::rest)
        cursor.a += cursor.b;
      leave(cursor);
    }
    return false;
  }

  void cut(Cursor& cursor) const override
  {
    if (cursor.phase < kinds_.size() && cursor.step != before_phase)
      leave(cursor);
  }
  /// Iterations, of which the last may be unfinished.
  uint64_t reached(const Cursor& cursor) const override { return cursor.i + (cursor.j > 0 || cursor.c != work); }
  void agree(Cursor& cursor, uint64_t furthest) const override
  {
    cursor.b = static_cast<uint32_t>(furthest);
    agreed_  = cursor.a + furthest;
  }

  Footprint footprint() const override
  {
    const Amount sets        = Amount(placement_.ranks) * datasets_;
    const uint64_t repeats   = std::count(kinds_.begin(), kinds_.end(), Kind::benchmark);
    const uint64_t precreate = std::count(kinds_.begin(), kinds_.end(), Kind::precreate);
    const uint64_t cleanup   = std::count(kinds_.begin(), kinds_.end(), Kind::cleanup);
    const Amount steps       = sets * iterations_ * repeats;
    const Amount replaced    = read_only_ ? Amount() : steps;
    Footprint result;
    result.operations    = {{OpKind::mkdir, precreate * sets},
                            {OpKind::create, precreate * sets * objects_ + replaced},
                            {OpKind::stat, steps},
                            {OpKind::read, steps},
                            {OpKind::unlink, replaced + cleanup * sets * objects_},
                            {OpKind::rmdir, cleanup * sets}};
    result.bytes_written = (precreate * sets * objects_ + replaced) * object_size_;
    result.bytes_read    = steps * object_size_;
    result.peak_objects  = sets * objects_;
    result.peak_bytes    = sets * objects_ * object_size_;
    result.largest_size  = object_size_;
    return result;
  }

  /// An object is looked at once and removed, unless nothing is.
  bool repeats(OpKind kind) const override { return read_only_ || (kind != OpKind::stat && kind != OpKind::read); }

  std::vector<std::string> warnings() const override
  {
    std::vector<std::string> result;
    if (std::count(kinds_.begin(), kinds_.end(), Kind::benchmark) == 0 || iterations_ == 0)
      return result;
    const auto share = cached_reads();
    if (share.same_rank > 0)
      result.push_back(
          fmt::format("{:.0f} % of the reads fetch an object that the same rank created (its client may have it in "
                      "cache); with datasets={} and offset={} a run of more than {} ranks avoids this.",
                      100 * share.same_rank, datasets_, offset_, uint64_t{2} * datasets_ * offset_));
    if (placement_.nodes() > 1 && share.same_node > 0)
      result.push_back(
          fmt::format("{:.0f} % of the reads fetch an object that a rank of the same node created; set node_offset=1 "
                      "to read from other nodes.",
                      100 * share.same_node));
    return result;
  }

  char* name_dataset(uint64_t dataset, char* out) const override
  {
    out    = std::to_chars(out, out + 20, dataset / datasets_).ptr;
    *out++ = '_';
    return std::to_chars(out, out + 20, dataset % datasets_).ptr;
  }

  nlohmann::ordered_json data_set() const override
  {
    return {{"ranks", placement_.ranks}, {"datasets", datasets_}, {"objects", objects_}, {"object_size", object_size_}};
  }

  nlohmann::ordered_json position_after(size_t phase) const override
  {
    if (limited_ && kinds_[phase] != Kind::precreate)
      return {{"start_index", start_index_ + agreed_}};
    return {{"start_index", start_of_[phase] + (kinds_[phase] == Kind::benchmark && !read_only_ ? iterations_ : 0)}};
  }

  bool mends(size_t phase) const override { return kinds_[phase] == Kind::rest; }

private:
  enum class Kind : uint8_t { precreate, benchmark, cleanup, rest };
  static constexpr uint32_t most_limited = UINT32_MAX;
  enum Step : uint16_t { before_phase = 0, make_datasets, work, read_it, delete_it, append };

  void read_phases(const std::string& wanted, uint32_t repeats)
  {
    static const std::vector<std::string> names{"precreate", "benchmark", "cleanup"};
    uint64_t start = start_index_;
    auto add       = [&](Kind kind, uint32_t repeat) {
      kinds_.push_back(kind);
      start_of_.push_back(start);
      phases_.push_back({kind == Kind::rest ? "benchmark-rest" : names[static_cast<size_t>(kind)], repeat,
                         kind == Kind::benchmark ? most_seconds_ : 0});
    };
    for (const size_t place : requested_phases("md-workbench", names, wanted)) {
      const auto kind = static_cast<Kind>(place);
      if (kind != Kind::benchmark)
        add(kind, 0);
      else
        for (uint32_t repeat = 1; repeat <= repeats; ++repeat) {
          add(kind, repeat);
          if (limited_)
            add(Kind::rest, repeat);
          start += read_only_ ? 0 : iterations_;
        }
    }
  }

  uint64_t dataset_id(uint32_t rank, uint32_t d) const { return uint64_t{rank} * datasets_ + d; }

  // In the cursor of a run with a time limit: a is how many iterations the repeats before made, b how far this one
  // goes, c the step at which it was cut.

  /// Number of the oldest object of the working set when the cursor's phase began.
  uint64_t start(const Cursor& cursor) const { return limited_ ? start_index_ + cursor.a : start_of_[cursor.phase]; }

  void leave(Cursor& cursor) const
  {
    if (kinds_[cursor.phase] == Kind::benchmark && limited_) {
      cursor.c = cursor.step;
      cursor.b = static_cast<uint32_t>(reached(cursor)); // unless others came further
    }
    ++cursor.phase;
    cursor.step = before_phase;
  }

  bool next_precreate(Cursor& cursor, Op& op) const
  {
    if (cursor.step == make_datasets) {
      op = {OpKind::mkdir, dataset_id(cursor.rank, cursor.j), 0, 0};
      if (++cursor.j == datasets_) {
        cursor.j    = 0;
        cursor.step = work;
      }
      return true;
    }
    if (cursor.i == objects_)
      return false;
    op = {OpKind::create, dataset_id(cursor.rank, cursor.j), start(cursor) + cursor.i, object_size_};
    advance(cursor);
    return true;
  }

  bool next_benchmark(Cursor& cursor, Op& op, uint64_t iterations) const
  {
    if (cursor.step == work && cursor.i >= iterations)
      return false;
    const uint64_t object = start(cursor) + cursor.i;
    const auto shift      = static_cast<uint32_t>(offset_ * (cursor.j + 1) % placement_.ranks);
    if (cursor.step == append) {
      const uint64_t owner = (uint64_t{cursor.rank} + shift) % placement_.ranks;
      const auto dataset   = dataset_id(static_cast<uint32_t>(owner), cursor.j);
      op                   = {OpKind::create, dataset, objects_ + object, object_size_};
      cursor.step          = work;
      advance(cursor);
      return true;
    }
    const uint64_t dataset =
        dataset_id(cursor.rank >= shift ? cursor.rank - shift : cursor.rank + (placement_.ranks - shift), cursor.j);
    switch (cursor.step) {
      case work:
        op          = {OpKind::stat, dataset, object, object_size_};
        cursor.step = read_it;
        return true;
      case read_it:
        op = {OpKind::read, dataset, object, object_size_};
        if (read_only_) {
          cursor.step = work;
          advance(cursor);
        } else {
          cursor.step = delete_it;
        }
        return true;
      default:
        op          = {OpKind::unlink, dataset, object, 0};
        cursor.step = append;
        return true;
    }
  }

  bool next_cleanup(Cursor& cursor, Op& op) const
  {
    if (cursor.j == datasets_)
      return false;
    if (cursor.i < objects_) {
      op = {OpKind::unlink, dataset_id(cursor.rank, cursor.j), start(cursor) + cursor.i, 0};
      ++cursor.i;
    } else {
      op = {OpKind::rmdir, dataset_id(cursor.rank, cursor.j), 0, 0};
      ++cursor.j;
      cursor.i = 0;
    }
    return true;
  }

  /// Outer loop over object numbers, inner loop over datasets (Figure 3).
  void advance(Cursor& cursor) const
  {
    if (++cursor.j == datasets_) {
      cursor.j = 0;
      ++cursor.i;
    }
  }

  struct CachedReads {
    double same_rank = 0;
    double same_node = 0;
  };

  /// Shares of reads whose object the reading rank, or another rank of its node, created. Object g of dataset (x, d)
  /// was made by x itself when it is one of the first P, else by the appender x - O(d+1), which is 2 O(d+1) ranks
  /// before the reader.
  CachedReads cached_reads() const
  {
    uint64_t precreated = 0;
    uint64_t reads      = 0;
    for (size_t phase = 0; phase < kinds_.size(); ++phase)
      if (kinds_[phase] == Kind::benchmark) {
        const uint64_t first = start_of_[phase] - start_index_;
        precreated += std::min(first + iterations_, objects_) - std::min(first, objects_);
        reads += iterations_;
      }
    const double from_owner = static_cast<double>(precreated) / static_cast<double>(reads);
    CachedReads share;
    for (uint32_t d = 0; d < datasets_; ++d) {
      const uint64_t owner    = offset_ * (d + 1) % placement_.ranks;
      const uint64_t appender = 2 * owner % placement_.ranks;
      share.same_rank += from_owner * (owner == 0) + (1 - from_owner) * (appender == 0);
      share.same_node += from_owner * same_node(owner) + (1 - from_owner) * same_node(appender);
    }
    share.same_rank /= datasets_;
    share.same_node /= datasets_;
    return share;
  }

  /// Share of ranks r for which r and (r - shift) mod N are different ranks of one node.
  double same_node(uint64_t shift) const
  {
    if (shift == 0)
      return 0;
    if (placement_.cyclic) // whose nodes have as many ranks each
      return shift % placement_.nodes() == 0 ? 1 : 0;
    auto pairs_at_distance = [this](uint64_t distance) {
      const uint64_t full = placement_.ranks / placement_.ranks_per_node;
      const uint64_t rest = placement_.ranks % placement_.ranks_per_node;
      auto within         = [distance](uint64_t size) { return size > distance ? size - distance : 0; };
      return full * within(placement_.ranks_per_node) + within(rest);
    };
    return static_cast<double>(pairs_at_distance(shift) + pairs_at_distance(placement_.ranks - shift)) /
           placement_.ranks;
  }

  Placement placement_;
  uint32_t datasets_;
  uint64_t objects_;
  uint64_t iterations_;
  uint64_t object_size_;
  uint64_t offset_ = 1;
  uint64_t start_index_;
  bool read_only_;
  double most_seconds_;
  bool limited_;                             ///< and so not all ranks get equally far
  mutable std::atomic<uint64_t> agreed_ = 0; ///< iterations that all ranks have made, after the last agree()
  std::vector<Kind> kinds_;
  std::vector<uint64_t> start_of_; ///< the start index s at the beginning of each phase
  std::vector<Phase> phases_;
};

const bool registered = register_pattern(
    {"md-workbench",
     "keeps a working set of small objects at constant size: stat, read, delete, create in FIFO order",
     "Kunkel & Markomanolis 2018, Figures 1-3",
     {{"datasets", Unit::count, "10", "D: datasets a rank precreates", 1, 1e9},
      {"objects", Unit::count, "1000", "P: objects precreated in each dataset", 1, 1e12},
      {"iterations", Unit::count, "200", "I: objects replaced in each dataset in one benchmark phase; at most P", 0,
       1e12},
      {"object_size", Unit::bytes, "3901B", "S: size of each object", 0, 1e15},
      {"offset", Unit::count, "1", "O: ranks between the dataset's owner and its reader", 0, 1e9},
      {"node_offset", Unit::count, "0",
       "the same in nodes; when set it replaces offset, so that no read hits its own node's cache", 0, 1e9},
      {"repeats", Unit::count, "1", "R: how often the benchmark phase runs", 1, 60000},
      {"most_seconds", Unit::seconds, "0s",
       "when a benchmark phase is stopped; a phase benchmark-rest then takes all ranks as far as the first has come. "
       "0s: when all is done",
       0, 1e9},
      {"start_index", Unit::count, "0", "number of the first object of the working set", 0, 1e15},
      {"read_only", Unit::flag, "false", "only stat and read; the working set stays as it is"},
      {"phases", Unit::text, "precreate,benchmark,cleanup", "which phases to run, in this order"}},
     {"datasets=3 objects=7 iterations=5 repeats=2 offset=1",
      "datasets=2 objects=4 iterations=4 start_index=9 waiting_factor=0.5 node_offset=1",
      "datasets=1 objects=6 iterations=3 read_only=true",
      "datasets=2 objects=9 iterations=7 repeats=2 most_seconds=1h"},
     [](const Parameters& given, const Placement& placement) {
       return std::make_unique<MdWorkbench>(given, placement);
     }});

} // namespace
} // namespace iocast
