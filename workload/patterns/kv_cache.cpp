// SPDX-License-Identifier: Apache-2.0
//
// kv-cache: a store of key-value blocks behind servers of language models. A request asks for the blocks of its prompt:
// those that are kept are read, the others are computed and written, and where there is no room the least recently used
// one is removed. Each rank serves requests of its own and has a store of its own, of `capacity` blocks.
//
// Requests are drawn: a conversation by Zipf's law, whose next turn asks for the blocks of all its turns so far. Or
// they come from a trace of arrivals in the JSON lines that Mooncake published (Qin et al., FAST 2025): `timestamp` in
// ms, `input_length`, `output_length`, `hash_ids`; request i is rank (i mod ranks)'s. The first `pinned` blocks of a
// request have the higher priority: they go only when no others are left.
#include "input/error.hpp"
#include "workload/phased_pattern.hpp"
#include "workload/random.hpp"
#include "workload/zipf.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <exception>
#include <fmt/format.h>
#include <fstream>
#include <memory>
#include <optional>
#include <unordered_map>

namespace iocast {
namespace {

constexpr uint32_t none = UINT32_MAX;

/// The blocks that a store keeps, in two priorities of the least recently used order each.
class BlockStore {
public:
  /// The object that holds the block, which becomes the most recently used one.
  std::optional<uint64_t> find(uint64_t block)
  {
    const auto found = slots_.find(block);
    if (found == slots_.end())
      return {};
    const bool high = entries_[found->second].high;
    unlink(found->second);
    append(found->second, high);
    return entries_[found->second].object;
  }
  uint64_t count() const { return slots_.size(); }
  uint64_t made() const { return made_; }
  uint64_t add(uint64_t block, bool high)
  {
    uint32_t slot = none;
    if (free_.empty()) {
      slot = static_cast<uint32_t>(entries_.size());
      entries_.emplace_back();
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    entries_[slot].block  = block;
    entries_[slot].object = made_;
    append(slot, high);
    slots_.emplace(block, slot);
    return made_++;
  }
  /// Removes the least recently used block of the lower priority that has any. @return its object
  uint64_t evict()
  {
    const uint32_t slot = ends_[0].oldest != none ? ends_[0].oldest : ends_[1].oldest;
    unlink(slot);
    slots_.erase(entries_[slot].block);
    free_.push_back(slot);
    return entries_[slot].object;
  }

private:
  struct Entry {
    uint64_t block  = 0;
    uint64_t object = 0;
    uint32_t older  = none;
    uint32_t newer  = none;
    bool high       = false;
  };
  struct Ends {
    uint32_t oldest = none;
    uint32_t newest = none;
  };

  void append(uint32_t slot, bool high)
  {
    Ends& ends                                                        = ends_[high];
    Entry& entry                                                      = entries_[slot];
    entry.high                                                        = high;
    entry.older                                                       = ends.newest;
    entry.newer                                                       = none;
    (ends.newest == none ? ends.oldest : entries_[ends.newest].newer) = slot;
    ends.newest                                                       = slot;
  }
  void unlink(uint32_t slot)
  {
    const Entry& entry                                                = entries_[slot];
    Ends& ends                                                        = ends_[entry.high];
    (entry.older == none ? ends.oldest : entries_[entry.older].newer) = entry.newer;
    (entry.newer == none ? ends.newest : entries_[entry.newer].older) = entry.older;
  }

  std::unordered_map<uint64_t, uint32_t> slots_; ///< by block
  std::vector<Entry> entries_;
  std::vector<uint32_t> free_;
  std::array<Ends, 2> ends_; ///< by priority
  uint64_t made_ = 0;
};

/// Requests of a trace.
struct ArrivalTrace {
  std::vector<uint64_t> first; ///< by request, and one more: its first block
  std::vector<uint64_t> blocks;
  std::vector<uint64_t> ns; ///< arrival of each request

  explicit ArrivalTrace(const std::string& file)
  {
    std::ifstream lines(file);
    if (!lines)
      throw InputError(fmt::format("The trace '{}' can't be read.", file));
    uint64_t number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      if (line.find_first_not_of(" \t\r") == std::string::npos)
        continue;
      try {
        const auto request = nlohmann::json::parse(line);
        const auto ms      = request.at("timestamp").get<double>();
        if (!(ms >= 0 && ms < 1e12))
          throw InputError("the timestamp is no number of milliseconds from 0 on");
        first.push_back(blocks.size());
        ns.push_back(static_cast<uint64_t>(ms * 1e6));
        for (const auto& block : request.at("hash_ids")) {
          if (!block.is_number_unsigned())
            throw InputError(fmt::format("{} is no whole number from 0 on", block.dump()));
          blocks.push_back(block.get<uint64_t>());
        }
      } catch (const std::exception& error) {
        throw InputError(fmt::format("{}:{}: this is no request of a trace, a JSON object with 'timestamp' in ms and "
                                     "'hash_ids', a list of whole numbers: {}.",
                                     file, number, error.what()));
      }
    }
    if (first.empty())
      throw InputError(fmt::format("The trace '{}' has no requests.", file));
    first.push_back(blocks.size());
  }
  uint64_t count() const { return ns.size(); }
};

class KvCache final : public PhasedPattern {
public:
  KvCache(const Parameters& given, const Placement& placement)
      : ranks_(placement.ranks)
      , capacity_(given.count("capacity"))
      , block_(given.count("block"))
      , turns_(given.count("turns"))
      , turn_blocks_(given.count("turn_blocks"))
      , pinned_(given.count("pinned"))
      , timed_(given.flag("timed"))
      , seed_(given.count("seed"))
      , requests_(given.count("requests"))
      , popularity_(given.count("conversations"), given.number("zipf"))
      , stores_(placement.ranks)
  {
    if (!given.text("trace").empty()) {
      for (const char* drawn : {"requests", "conversations", "zipf", "turns", "turn_blocks"})
        if (given.is_set(drawn))
          throw InputError(fmt::format("The trace has the requests of kv-cache; leave out {}, or trace.", drawn));
      trace_ = std::make_unique<ArrivalTrace>(given.text("trace"));
    } else if (timed_)
      throw InputError("kv-cache has no times of requests without a trace; leave out timed, or set trace.");
    using Does = PhaseOfWork::Does;
    choose_phases(
        "kv-cache", "all",
        {{make, Does::makes, {"precreate"}}, {serve, Does::makes, {"serve"}}, {remove, Does::removes, {"cleanup"}}});
  }

  Footprint footprint() const override
  {
    if (!footprint_)
      footprint_ = count();
    return *footprint_;
  }
  char* name_dataset(uint64_t dataset, char* out) const override { return std::to_chars(out, out + 20, dataset).ptr; }
  nlohmann::ordered_json data_set() const override { return {{"ranks", ranks_}, {"block", block_}}; }

private:
  enum Which : size_t { make, serve, remove };

  struct Rank {
    BlockStore store;
    std::unordered_map<uint64_t, uint32_t> turns; ///< by conversation: requests of it so far
    uint64_t conversation = 0;                    ///< of the request, where they are drawn
    uint64_t blocks       = 0;                    ///< of the request
  };

  uint64_t requests_of(uint32_t rank) const
  {
    return trace_ ? (trace_->count() + ranks_ - 1 - rank) / ranks_ : requests_;
  }

  bool next_in(size_t which, Cursor& cursor, Op& op) const override
  {
    if (which == make) {
      stores_[cursor.rank] = std::make_unique<Rank>();
      op                   = {OpKind::mkdir, cursor.rank, 0};
      return cursor.step++ == 1;
    }
    Rank& rank = *stores_[cursor.rank];
    if (which == serve)
      return next_block(rank, cursor, op);
    if (rank.store.count() > 0) {
      op = {OpKind::unlink, cursor.rank, rank.store.evict()};
      return true;
    }
    op = {OpKind::rmdir, cursor.rank, 0};
    return cursor.step++ == 1;
  }

  /// `i` is the request, `j` the block of it; step 1 before a request.
  bool next_block(Rank& rank, Cursor& cursor, Op& op) const
  {
    while (cursor.step != 1 && cursor.j == rank.blocks) {
      ++cursor.i;
      cursor.step = 1;
    }
    while (cursor.step == 1) {
      if (cursor.i == requests_of(cursor.rank))
        return false;
      cursor.j    = 0;
      cursor.step = 2;
      begin_request(rank, cursor);
      if (const uint64_t at = timed_ ? trace_->ns[request_of(cursor)] : 0; at > 0) {
        op       = {OpKind::think, 0, 0, at};
        op.flags = until;
        return true;
      }
      if (rank.blocks == 0) {
        ++cursor.i;
        cursor.step = 1;
      }
    }
    if (cursor.j == rank.blocks)
      return next_block(rank, cursor, op);
    const uint64_t block = block_at(rank, cursor);
    if (const auto kept = rank.store.find(block)) {
      op = {OpKind::read, cursor.rank, *kept, block_};
    } else if (rank.store.count() == capacity_) {
      op = {OpKind::unlink, cursor.rank, rank.store.evict()};
      return true; // the block itself comes next
    } else {
      op = {OpKind::create, cursor.rank, rank.store.add(block, cursor.j < pinned_), block_};
    }
    ++cursor.j;
    return true;
  }

  uint64_t request_of(const Cursor& cursor) const { return cursor.i * ranks_ + cursor.rank; }

  void begin_request(Rank& rank, const Cursor& cursor) const
  {
    if (trace_) {
      rank.blocks = trace_->first[request_of(cursor) + 1] - trace_->first[request_of(cursor)];
      return;
    }
    rank.conversation = popularity_(
        [&](uint32_t i) { return to_uniform(random_words(seed_, Stream::pool, cursor.rank, cursor.i << 8 | i)[0]); });
    const uint32_t turn = turns_ == 1 ? 0 : rank.turns[rank.conversation]++;
    rank.blocks         = (turn % turns_ + 1) * turn_blocks_;
  }

  /// Conversations begin anew, with other blocks, after their last turn.
  uint64_t block_at(const Rank& rank, const Cursor& cursor) const
  {
    if (trace_)
      return trace_->blocks[trace_->first[request_of(cursor)] + cursor.j];
    const uint64_t before = turns_ == 1 ? 0 : (rank.turns.at(rank.conversation) - 1) / turns_;
    return mix(mix(rank.conversation) + before) + cursor.j;
  }

  /// By going through all requests.
  Footprint count() const
  {
    std::array<uint64_t, op_count> counted{};
    Footprint result;
    result.largest_size = block_;
    for (uint32_t number = 0; number < ranks_; ++number) {
      Cursor cursor;
      cursor.rank   = number;
      uint64_t most = 0;
      auto kept     = std::move(stores_[number]); // of a stream that is under way
      for (Op op; next(cursor, op);) {
        ++counted[static_cast<size_t>(op.kind)];
        if (stores_[number])
          most = std::max(most, stores_[number]->store.count());
      }
      stores_[number] = std::move(kept);
      result.peak_objects += most;
    }
    for (size_t kind = 1; kind < op_count; ++kind)
      if (counted[kind] > 0)
        result.operations.emplace_back(static_cast<OpKind>(kind), counted[kind]);
    result.bytes_written = Amount(counted[static_cast<size_t>(OpKind::create)]) * block_;
    result.bytes_read    = Amount(counted[static_cast<size_t>(OpKind::read)]) * block_;
    result.peak_bytes    = Amount(result.peak_objects) * block_;
    return result;
  }

  uint64_t ranks_;
  uint64_t capacity_; ///< blocks of a rank's store
  uint64_t block_;    ///< bytes
  uint64_t turns_;
  uint64_t turn_blocks_;
  uint64_t pinned_;
  bool timed_;
  uint64_t seed_;
  uint64_t requests_; ///< of each rank, where they are drawn
  Zipf popularity_;
  std::unique_ptr<ArrivalTrace> trace_;
  mutable std::vector<std::unique_ptr<Rank>> stores_;
  mutable std::optional<Footprint> footprint_;
};

const bool registered = register_pattern(
    {"kv-cache",
     "a store of key-value blocks of language models: read again by popularity, evicted by capacity",
     "Qin et al., Mooncake, FAST 2025: prefix blocks, least recently used, traces of arrivals",
     {{"capacity", Unit::count, "10000", "blocks that a rank's store holds", 1, 4e9},
      {"block", Unit::bytes, "2MiB", "bytes of a block", 1, 1e12},
      {"requests", Unit::count, "10000", "requests of each rank, where no trace has them", 1, 1e12},
      {"conversations", Unit::count, "100000", "conversations of each rank that requests are drawn from", 1, 1e15},
      {"zipf", Unit::factor, "1", "exponent of their popularity; 0: all alike", 0, largest_exponent},
      {"turns", Unit::count, "1", "requests of a conversation, each with the blocks of those before", 1, 1e6},
      {"turn_blocks", Unit::count, "4", "blocks that a turn adds", 1, 1e6},
      {"pinned", Unit::count, "0", "first blocks of a request that have the higher priority", 0, 1e9},
      {"trace", Unit::text, "", "a file of requests in JSON lines: timestamp in ms, hash_ids", 0, 0},
      {"timed", Unit::flag, "false", "requests of the trace come at their times, and else one after the other"},
      {"seed", Unit::count, "0", "seed of the requests", 0, 9e15}},
     {"capacity=20 block=1kB requests=60 conversations=30 turns=3 turn_blocks=2 pinned=1",
      "capacity=5 block=3kB requests=40 conversations=9 zipf=0.8 turn_blocks=1"},
     [](const Parameters& given, const Placement& placement) { return std::make_unique<KvCache>(given, placement); }});

} // namespace
} // namespace iocast
