// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/holders.hpp"
#include "models/platform.hpp"
#include "models/read_ahead.hpp"
#include "workload/op.hpp"
#include "workload/random.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace iocast {

/// What caches did, over all of a name.
struct CacheSums {
  uint64_t lookups     = 0;
  uint64_t hits        = 0;
  uint64_t held        = 0; ///< bytes or objects at this moment; an estimate once `rate` is below 1
  double rate          = 1; ///< smallest share of the keys that an instance keeps track of
  uint64_t guessed     = 0; ///< lookups of keys that are not kept track of
  uint64_t fetched     = 0; ///< bytes, ahead of readers
  uint64_t requests    = 0; ///< that began to fetch them
  uint64_t waited      = 0; ///< lookups that waited for such
  uint64_t unused      = 0; ///< bytes of them that went before anybody read them
  uint64_t interrupted = 0; ///< readers who read on and had been forgotten
  uint64_t taken       = 0; ///< pages or objects that one node had and another one took out
  uint64_t expired     = 0; ///< lookups of entries that were there and no longer valid
};

/// Share of the last accesses of one kind that did something, such as hit.
struct RecentShare {
  double share   = 0;
  uint32_t count = 0;

  void add(bool did)
  {
    count = std::min(count + 1, 1024U);
    share += ((did ? 1.0 : 0.0) - share) / count;
  }
};

/// What the last accesses of one kind did.
struct Recent {
  RecentShare hits;
  RecentShare evictions; ///< had another key removed
};

/// Memory that keeps what was used last: exact LRU by key, each entry of a weight of its own. When it has
/// `most_entries` it goes on with every second key only, in half of the capacity, and so on: the keys that it knows
/// then see the same distances between two uses, in half as many other keys (spatial sampling: Waldspurger, Park,
/// Garthwaite & Ahmad, FAST 2015). Accesses of keys that it does not know hit as often as those of their kind that it
/// knows did lately, and have another one removed as often.
class Cache {
public:
  static constexpr uint32_t none = UINT32_MAX;

  Cache(uint64_t capacity, uint32_t most_entries) : capacity_(capacity), most_entries_(std::max(most_entries, 2U)) {}

  /// True for a key that is kept track of.
  bool knows(uint64_t key) const { return key >> 40 < threshold_; }

  bool holds(uint64_t key) const { return knows(key) && find(key) != none; }

  /// Uses the key: it is in afterwards, as the last one used. True when it was in already. Only for keys that are
  /// known. Calls removed(key) for each that has to go.
  template <class Removed> bool touch(uint64_t key, uint32_t weight, Removed removed, bool ahead = false)
  {
    uint32_t entry  = find(key);
    const bool held = entry != none;
    if (held) {
      unlink(entry);
    } else {
      entry = insert(key, removed);
      if (entry == none)
        return false; // it has just become unknown
    }
    Entry& used = entries_[entry];
    used.ahead  = ahead;
    if (weight > used.weight) {
      entered_ += weight - used.weight;
      held_ += weight - used.weight;
      used.weight = weight;
    }
    push_front(entry);
    shrink(removed);
    return held;
  }
  bool touch(uint64_t key, uint32_t weight)
  {
    return touch(key, weight, [](uint64_t) {});
  }

  /// False when it wasn't in.
  bool forget(uint64_t key)
  {
    const uint32_t entry = knows(key) ? find(key) : none;
    if (entry != none)
      remove(entry);
    return entry != none;
  }

  void clear()
  {
    for (uint32_t entry = first_; entry != none; entry = entries_[entry].next)
      unused_ += entries_[entry].ahead ? entries_[entry].weight : 0;
    left_ += held_;
    held_  = 0;
    size_  = 0;
    first_ = last_ = free_ = none;
    entries_.clear();
    std::fill(index_.begin(), index_.end(), none);
  }

  /// The entry used last; `none` when nothing is in.
  uint32_t newest() const { return first_; }
  double rate() const { return static_cast<double>(threshold_) * 0x1p-24; }
  /// Bytes or objects that are in; an estimate when only some keys are known.
  uint64_t held() const { return static_cast<uint64_t>(static_cast<double>(held_) / rate()); }
  uint32_t entries() const { return size_; }
  /// Bytes that came in ahead of any use, and went.
  uint64_t unused() const { return unused_; }
  /// What is in, counted in the other two ways: entry by entry, and what came in and did not leave.
  bool adds_up() const
  {
    uint64_t sum = 0;
    uint32_t n   = 0;
    for (uint32_t entry = first_; entry != none; entry = entries_[entry].next, ++n)
      sum += entries_[entry].weight;
    return sum == held_ && n == size_ && entered_ - left_ == held_ &&
           static_cast<double>(held_) <= static_cast<double>(capacity_) * rate();
  }

  /// By kind of operation; only where some keys are unknown.
  Recent& recent(OpKind kind)
  {
    if (recent_.empty())
      recent_.resize(work_count);
    return recent_[static_cast<size_t>(kind)];
  }

private:
  struct Entry {
    uint64_t key    = 0;
    uint32_t weight = 0;
    uint32_t newer  = none;
    uint32_t next   = none;  ///< used before this one; of a free entry the next free one
    bool ahead      = false; ///< nobody has used it yet
  };

  size_t home(uint64_t key) const { return key & (index_.size() - 1); }
  size_t place_of(uint64_t key) const
  {
    size_t at = home(key);
    while (index_[at] != none && entries_[index_[at]].key != key)
      at = (at + 1) & (index_.size() - 1);
    return at;
  }
  uint32_t find(uint64_t key) const { return index_.empty() ? none : index_[place_of(key)]; }

  /// A new entry, not in the order yet; none when the key is not known any more.
  template <class Removed> uint32_t insert(uint64_t key, Removed removed)
  {
    while (size_ >= most_entries_ && threshold_ > 1)
      thin(removed);
    if (!knows(key))
      return none;
    if (2 * (size_t{size_} + 1) > index_.size())
      grow();
    uint32_t entry = free_;
    if (entry == none) {
      entry = static_cast<uint32_t>(entries_.size());
      entries_.emplace_back();
    } else {
      free_ = entries_[entry].next;
    }
    entries_[entry]       = {key, 0, none, none, false};
    index_[place_of(key)] = entry;
    ++size_;
    return entry;
  }

  void grow()
  {
    index_.assign(std::max<size_t>(8, 2 * index_.size()), none);
    for (uint32_t entry = first_; entry != none; entry = entries_[entry].next)
      index_[place_of(entries_[entry].key)] = entry;
  }

  /// Half of the keys are known no longer.
  template <class Removed> void thin(Removed removed)
  {
    threshold_ /= 2;
    for (uint32_t entry = first_; entry != none;) {
      const uint32_t next = entries_[entry].next;
      if (!knows(entries_[entry].key)) {
        removed(entries_[entry].key);
        remove(entry);
      }
      entry = next;
    }
    shrink(removed);
  }

  template <class Removed> void shrink(Removed removed)
  {
    while (static_cast<double>(held_) > static_cast<double>(capacity_) * rate()) {
      removed(entries_[last_].key);
      remove(last_);
    }
  }

  void push_front(uint32_t entry)
  {
    entries_[entry].newer                             = none;
    entries_[entry].next                              = first_;
    (first_ == none ? last_ : entries_[first_].newer) = entry;
    first_                                            = entry;
  }
  void unlink(uint32_t entry)
  {
    const auto [newer, next]                        = std::pair{entries_[entry].newer, entries_[entry].next};
    (newer == none ? first_ : entries_[newer].next) = next;
    (next == none ? last_ : entries_[next].newer)   = newer;
  }

  void remove(uint32_t entry)
  {
    unlink(entry);
    // Entries behind it move up, so that there are no tombstones.
    const size_t mask = index_.size() - 1;
    size_t hole       = place_of(entries_[entry].key);
    for (size_t at = (hole + 1) & mask; index_[at] != none; at = (at + 1) & mask)
      if (((at - home(entries_[index_[at]].key)) & mask) >= ((at - hole) & mask)) {
        index_[hole] = index_[at];
        hole         = at;
      }
    index_[hole] = none;
    held_ -= entries_[entry].weight;
    left_ += entries_[entry].weight;
    unused_ += entries_[entry].ahead ? entries_[entry].weight : 0;
    entries_[entry].next = free_;
    free_                = entry;
    --size_;
  }

  uint64_t capacity_;
  uint32_t most_entries_;
  uint32_t threshold_ = 1 << 24; ///< keys whose first 24 bits are below it are known
  uint32_t size_      = 0;
  uint32_t first_     = none; ///< used last
  uint32_t last_      = none;
  uint32_t free_      = none;
  uint64_t held_      = 0; ///< of known keys
  uint64_t entered_   = 0;
  uint64_t left_      = 0;
  uint64_t unused_    = 0;
  std::vector<Entry> entries_;
  std::vector<uint32_t> index_; ///< of entries, by key; its size is a power of two, or zero
  std::vector<Recent> recent_;
};
static_assert(sizeof(Cache) <= 144); // one a node, perhaps

/// All instances of a cache of the platform.
struct Caches {
  /// Of all instances of a name together, unless there are very many: 2 to 4 GiB, taken as entries come. Who fetches
  /// ahead must know of all pages.
  static constexpr uint32_t most_entries = 1 << 26;

  const CacheSpec* spec;
  std::vector<Cache> instances;
  std::vector<ReadAhead> ahead;   ///< by instance; empty: nothing is fetched ahead
  std::optional<Holders> holders; ///< of pages held and in flight; none: no step removes pages of other instances
  CacheSums sums;
  uint64_t fetches = 0;     ///< that ever were
  bool evicted     = false; ///< by a touch since this was last set
  uint64_t in_vain = 0;     ///< bytes that were fetched, and wanted no longer when they came
  bool idle        = false; ///< no object is ever looked up twice, so that none is kept

  /// Until when an entry may be used, and for how long since it was valid last.
  struct Validity {
    double until  = 0;
    double length = 0;
  };
  std::vector<std::vector<Validity>> validity; ///< by instance and entry; empty: all are valid without end

  Caches(const CacheSpec& cache, uint32_t count) : spec(&cache)
  {
    instances.assign(count, Cache(cache.capacity, cache.ahead > 0 ? UINT32_MAX : std::max(most_entries / count, 64U)));
    if (cache.ahead > 0)
      for (uint32_t i = 0; i < count; ++i)
        ahead.emplace_back(cache);
    if (cache.forgotten_by_others)
      holders.emplace(cache.page > 0);
    if (cache.valid > 0)
      validity.resize(count);
  }

  /// Uses what an instance knows by this key, as Cache::touch() does; `object` is what it is of. What of it was on its
  /// way need not come any more.
  bool touch(uint32_t instance, uint64_t key, uint64_t object, uint32_t weight, bool comes_ahead = false);
  /// Of the entry that was touched last: false when it was `held` for longer than it is valid. It is valid anew.
  bool renew(uint32_t instance, bool held, double now);
  /// False when the instance hadn't it, and it wasn't on its way.
  bool forget(uint32_t instance, uint64_t key);
  /// Out of all instances but `spared`.
  void forget_elsewhere(uint64_t key, uint32_t spared);
  /// With what is held at this moment. @throws RunError when it does not add up
  const CacheSums& checked();
};

} // namespace iocast
