// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/memory_index.hpp"
#include "workload/random.hpp"

#include <algorithm>
#include <bit>

namespace iocast {

/// Pages of an object in one aligned block of `most` pages.
struct Pages {
  static constexpr uint64_t most = 64;

  uint64_t object = 0; ///< its key
  uint64_t block  = 0; ///< number of the block in the object
  uint64_t mask   = 0; ///< bit i: page i of the block
  uint32_t weight = 0; ///< bytes of each of them

  static uint64_t key_of(uint64_t object, uint64_t block) { return mix(object + block); }
  /// Of the block, among all blocks.
  uint64_t key() const { return key_of(object, block); }
  uint64_t first() const { return block * most; }
  Pages only(uint64_t of) const { return {object, block, mask & of, weight}; }
};

/// Bits from `first` up to and without `end`, which is beyond it and at most 64.
constexpr uint64_t bits(uint32_t first, uint32_t end)
{
  return ~uint64_t{0} << first & ~uint64_t{0} >> (64 - end);
}
constexpr uint64_t lowest_bit(uint64_t mask)
{
  return mask & (~mask + 1);
}

/// Pages of a block, of equal weight, that were used in order with nothing in between.
struct PageRun {
  uint64_t key         = 0; ///< the block's
  uint64_t pages       = 0;
  uint32_t weight : 31 = 0; ///< of each
  uint32_t ahead : 1   = 0; ///< nobody has used them yet
  uint32_t newer       = 0;
  uint32_t next        = 0; ///< used before this one
  uint32_t sibling     = 0; ///< another run of the block

  uint64_t bytes(uint64_t of) const { return static_cast<uint64_t>(std::popcount(of)) * weight; }
};
static_assert(sizeof(PageRun) == 32); // many millions of them

/// Memory that keeps the pages that were used last: exact LRU by page, as a list of pages would be. Pages of a block
/// that were used one after the other, in order, make one entry, a run; so 4 MiB in pages of 64 KiB cost as much as one
/// page. When it has `most_pages` it is sampled, page by page.
class PageCache : public MemoryIndex<PageRun> {
public:
  PageCache(uint64_t capacity, uint32_t most_pages) : capacity_(capacity), most_pages_(std::max(most_pages, 2U)) {}

  /// Those of the pages that are kept track of.
  uint64_t known(uint64_t block, uint64_t pages) const;
  /// Pages of the block that are in.
  uint64_t held(uint64_t block) const;

  /// Uses the pages, lowest first: they are in afterwards, as the last ones used. Returns those that were in when their
  /// turn came. Calls removed(block, pages) for all that have to go.
  template <class Removed>
  uint64_t touch(uint64_t block, uint64_t pages, uint32_t weight, Removed removed, bool ahead = false);
  uint64_t touch(uint64_t block, uint64_t pages, uint32_t weight)
  {
    return touch(block, pages, weight, [](uint64_t, uint64_t) {});
  }

  /// Returns those of the pages that were in.
  uint64_t forget(uint64_t block, uint64_t pages);
  void clear();

  /// Bytes that are in; an estimate when only some pages are known.
  uint64_t held() const { return static_cast<uint64_t>(static_cast<double>(held_) / rate()); }
  /// Pages that are in and known.
  uint32_t pages() const { return size_; }
  size_t runs() const;
  /// Bytes that came in ahead of any use, and went.
  uint64_t unused() const { return unused_; }
  /// What is in, counted in the other two ways: run by run, and what came in and did not leave.
  bool adds_up() const;

private:
  bool fits(uint64_t bytes) const { return static_cast<double>(bytes) <= static_cast<double>(capacity_) * rate(); }
  /// What using the pages would do.
  struct Prospect {
    uint64_t held   = 0; ///< of the pages
    uint64_t growth = 0; ///< bytes
    bool is_mixed   = false;
  };
  Prospect look(uint64_t block, uint64_t pages, uint32_t weight) const;
  void use(uint64_t block, uint64_t pages, uint32_t weight, bool ahead);
  void take(uint32_t run, uint64_t pages);
  void drop(uint32_t run);
  template <class Removed> void thin(Removed removed);
  template <class Removed> void shrink(Removed removed);

  uint64_t capacity_;
  uint32_t most_pages_;
  uint32_t size_    = 0; ///< pages
  uint64_t held_    = 0; ///< bytes of known pages
  uint64_t entered_ = 0;
  uint64_t left_    = 0;
  uint64_t unused_  = 0;
};

template <class Removed>
uint64_t PageCache::touch(uint64_t block, uint64_t pages, uint32_t weight, Removed removed, bool ahead)
{
  const Prospect prospect = look(block, pages, weight);
  const auto missing      = static_cast<uint64_t>(std::popcount(pages & ~prospect.held));
  // None of the pages can go before its turn; or none is in, and then all of them stay.
  const bool in_one = !prospect.is_mixed && uint64_t{size_} + missing <= most_pages_ &&
                      (fits(held_ + prospect.growth) || (prospect.held == 0 && fits(prospect.growth)));
  if (in_one) {
    use(block, pages, weight, ahead);
    shrink(removed);
    return prospect.held;
  }
  uint64_t held = 0;
  for (uint64_t left = pages; left != 0; left &= left - 1) {
    const uint64_t page = lowest_bit(left);
    const Prospect one  = look(block, page, weight);
    if (one.held == 0) {
      while (size_ >= most_pages_ && threshold_ > 1)
        thin(removed);
      if (known(block, page) == 0)
        continue; // it has just become unknown
    }
    held |= one.held;
    use(block, page, weight, ahead);
    shrink(removed);
  }
  return held;
}

/// Half of the pages are known no longer.
template <class Removed> void PageCache::thin(Removed removed)
{
  threshold_ /= 2;
  for (uint32_t run = first_; run != none;) {
    const uint32_t next  = entries_[run].next;
    const uint64_t block = entries_[run].key;
    if (const uint64_t gone = entries_[run].pages & ~known(block, entries_[run].pages); gone != 0) {
      removed(block, gone);
      unused_ += entries_[run].ahead != 0 ? entries_[run].bytes(gone) : 0;
      take(run, gone);
    }
    run = next;
  }
  shrink(removed);
}

/// Those used longest ago go until the others fit: of a run its lowest pages first, which were used first.
template <class Removed> void PageCache::shrink(Removed removed)
{
  while (!fits(held_)) {
    const PageRun& run = entries_[last_];
    uint64_t gone      = 0;
    for (uint64_t rest = held_; run.pages != gone && !fits(rest); rest -= run.weight)
      gone |= lowest_bit(run.pages & ~gone);
    removed(run.key, gone);
    unused_ += run.ahead != 0 ? run.bytes(gone) : 0;
    take(last_, gone);
  }
}

} // namespace iocast
