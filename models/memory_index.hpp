// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/platform.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace iocast {

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

/// What a cache keeps track of: all keys, or half of them, and so on. The keys that it knows then see the same
/// distances between two uses, in half as many other keys (spatial sampling: Waldspurger, Park, Garthwaite & Ahmad,
/// FAST 2015). Accesses of keys that it does not know hit as often as those of their kind that it knows did lately, and
/// have another one removed as often.
class Sampling {
public:
  double rate() const { return static_cast<double>(threshold_) * 0x1p-24; }

  /// By kind of operation; only where some keys are unknown.
  Recent& recent(OpKind kind)
  {
    if (recent_.empty())
      recent_.resize(work_count);
    return recent_[static_cast<size_t>(kind)];
  }

protected:
  static constexpr uint32_t all_known = 1 << 24;

  bool is_below(uint64_t key) const { return key >> 40 < threshold_; }

  uint32_t threshold_ = all_known; ///< keys whose first 24 bits are below it are known

private:
  std::vector<Recent> recent_;
};

/// Entries in the order of their use, and where those of a key begin. An `Entry` has `key`, `newer` and `next`.
template <class Entry> class MemoryIndex : public Sampling {
public:
  static constexpr uint32_t none = UINT32_MAX;

  /// The entry used last; `none` when nothing is in.
  uint32_t newest() const { return first_; }

protected:
  uint32_t find(uint64_t key) const { return index_.empty() ? none : index_[place_of(key)]; }

  /// An entry that is neither in the order nor found yet.
  uint32_t allocate(const Entry& entry)
  {
    uint32_t at = free_;
    if (at == none) {
      at = static_cast<uint32_t>(entries_.size());
      entries_.push_back(entry);
    } else {
      free_        = entries_[at].next;
      entries_[at] = entry;
    }
    return at;
  }
  void release(uint32_t entry)
  {
    entries_[entry].next = free_;
    free_                = entry;
  }

  /// Found by its key from now on, which nothing was found by.
  void enter(uint32_t entry)
  {
    if (2 * (keys_ + 1) > index_.size())
      grow();
    index_[place_of(entries_[entry].key)] = entry;
    ++keys_;
  }
  /// Found in place of the one that was.
  void replace(uint32_t entry) { index_[place_of(entries_[entry].key)] = entry; }
  /// Nothing is found by this key any more. Entries behind it move up, so that there are no tombstones.
  void leave(uint64_t key)
  {
    const size_t mask = index_.size() - 1;
    size_t hole       = place_of(key);
    for (size_t at = (hole + 1) & mask; index_[at] != none; at = (at + 1) & mask)
      if (((at - home(entries_[index_[at]].key)) & mask) >= ((at - hole) & mask)) {
        index_[hole] = index_[at];
        hole         = at;
      }
    index_[hole] = none;
    --keys_;
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
    const uint32_t newer                            = entries_[entry].newer;
    const uint32_t next                             = entries_[entry].next;
    (newer == none ? first_ : entries_[newer].next) = next;
    (next == none ? last_ : entries_[next].newer)   = newer;
  }

  void clear_all()
  {
    first_ = last_ = free_ = none;
    keys_                  = 0;
    entries_.clear();
    std::fill(index_.begin(), index_.end(), none);
  }

  uint32_t first_ = none; ///< used last
  uint32_t last_  = none;
  std::vector<Entry> entries_;

private:
  size_t home(uint64_t key) const { return key & (index_.size() - 1); }
  size_t place_of(uint64_t key) const
  {
    size_t at = home(key);
    while (index_[at] != none && entries_[index_[at]].key != key)
      at = (at + 1) & (index_.size() - 1);
    return at;
  }
  void grow()
  {
    std::vector<uint32_t> old(std::max<size_t>(8, 2 * index_.size()), none);
    old.swap(index_);
    for (const uint32_t entry : old)
      if (entry != none)
        index_[place_of(entries_[entry].key)] = entry;
  }

  uint32_t free_ = none;
  size_t keys_   = 0;
  std::vector<uint32_t> index_; ///< of entries, by key; its size is a power of two, or zero
};

} // namespace iocast
