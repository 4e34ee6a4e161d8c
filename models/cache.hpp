// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/holders.hpp"
#include "models/memory_index.hpp"
#include "models/page_cache.hpp"
#include "models/page_holders.hpp"
#include "models/platform.hpp"
#include "models/read_ahead.hpp"
#include "workload/op.hpp"

#include <algorithm>
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

struct CacheEntry {
  uint64_t key   = 0;
  uint32_t newer = 0;
  uint32_t next  = 0; ///< used before this one
};

/// Memory that keeps what was used last: exact LRU by key. When it has `most_entries` it goes on with every second key
/// only, in half of the capacity, and so on.
class Cache : public MemoryIndex<CacheEntry> {
public:
  Cache(uint64_t capacity, uint32_t most_entries) : capacity_(capacity), most_entries_(std::max(most_entries, 2U)) {}

  /// True for a key that is kept track of.
  bool knows(uint64_t key) const { return is_below(key); }

  bool holds(uint64_t key) const { return knows(key) && find(key) != none; }

  /// Uses the key: it is in afterwards, as the last one used. True when it was in already. Only for keys that are
  /// known. Calls removed(key) for each that has to go.
  template <class Removed> bool touch(uint64_t key, Removed removed);
  bool touch(uint64_t key)
  {
    return touch(key, [](uint64_t) {});
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
    left_ += size_;
    size_ = 0;
    clear_all();
  }

  /// Objects that are in; an estimate when only some keys are known.
  uint64_t held() const { return static_cast<uint64_t>(static_cast<double>(size_) / rate()); }
  uint32_t entries() const { return size_; }
  /// What is in, counted in the other two ways: entry by entry, and what came in and did not leave.
  bool adds_up() const;

private:
  bool fits() const { return static_cast<double>(size_) <= static_cast<double>(capacity_) * rate(); }
  template <class Removed> void thin(Removed removed);
  template <class Removed> void shrink(Removed removed);
  void remove(uint32_t entry);

  uint64_t capacity_;
  uint32_t most_entries_;
  uint32_t size_    = 0; ///< known
  uint64_t entered_ = 0;
  uint64_t left_    = 0;
};
static_assert(sizeof(Cache) <= 144); // one a node, perhaps

template <class Removed> bool Cache::touch(uint64_t key, Removed removed)
{
  uint32_t entry  = find(key);
  const bool held = entry != none;
  if (held) {
    unlink(entry);
  } else {
    while (size_ >= most_entries_ && threshold_ > 1)
      thin(removed);
    if (!knows(key))
      return false; // it has just become unknown
    entry = allocate({key, none, none});
    enter(entry);
    ++size_;
    ++entered_;
  }
  push_front(entry);
  shrink(removed);
  return held;
}

/// Half of the keys are known no longer.
template <class Removed> void Cache::thin(Removed removed)
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

template <class Removed> void Cache::shrink(Removed removed)
{
  while (!fits()) {
    removed(entries_[last_].key);
    remove(last_);
  }
}

inline void Cache::remove(uint32_t entry)
{
  unlink(entry);
  leave(entries_[entry].key);
  release(entry);
  --size_;
  ++left_;
}

inline bool Cache::adds_up() const
{
  uint32_t n = 0;
  for (uint32_t entry = first_; entry != none; entry = entries_[entry].next)
    ++n;
  return n == size_ && entered_ - left_ == size_ && fits();
}

/// All instances of a cache of the platform.
struct Caches {
  /// Of all instances of a name together, unless there are very many: 2 to 4 GiB, taken as entries come. Who fetches
  /// ahead must know of all pages, who calls back of all objects.
  static constexpr uint32_t most_entries = 1 << 26;

  const CacheSpec* spec;
  std::vector<Cache> instances;            ///< of objects; empty: it holds pages
  std::vector<PageCache> pages;            ///< by instance; empty: it holds objects
  std::vector<ReadAhead> ahead;            ///< by instance; empty: nothing is fetched ahead
  std::optional<Holders> holders;          ///< of objects; none: no step removes them from other instances
  std::optional<PageHolders> page_holders; ///< likewise, of pages held and in flight
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
    const uint32_t most = cache.ahead > 0 || cache.calls_back ? UINT32_MAX : std::max(most_entries / count, 64U);
    if (cache.page > 0)
      pages.assign(count, PageCache(cache.capacity, most));
    else
      instances.assign(count, Cache(cache.capacity, most));
    if (cache.ahead > 0)
      for (uint32_t i = 0; i < count; ++i)
        ahead.emplace_back(cache);
    if (cache.forgotten_by_others && cache.page > 0)
      page_holders.emplace();
    else if (cache.forgotten_by_others)
      holders.emplace();
    if (cache.valid > 0)
      validity.resize(count);
  }

  /// Uses what an instance knows by this key, as Cache::touch() does.
  bool touch(uint32_t instance, uint64_t key);
  /// Uses pages, as PageCache::touch() does. What of them was on its way need not come any more.
  uint64_t touch(uint32_t instance, const Pages& used, bool comes_ahead = false);
  /// Of the entry that was touched last: false when it was `held` for longer than it is valid. It is valid anew.
  bool renew(uint32_t instance, bool held, double now);
  void forget(uint32_t instance, uint64_t key);
  void clear(uint32_t instance);
  /// Of the block with this key: those that the instance has, and those on their way to it.
  uint64_t there(uint32_t instance, uint64_t block) const;
  void forget(uint32_t instance, uint64_t block, uint64_t which);
  /// Out of all instances but `spared`.
  void forget_elsewhere(uint64_t key, uint32_t spared);
  void forget_elsewhere(uint64_t block, uint64_t which, uint32_t spared);
  /// With what is held at this moment. @throws RunError when it does not add up
  const CacheSums& checked();
};

} // namespace iocast
