// SPDX-License-Identifier: Apache-2.0
#include "models/page_cache.hpp"

namespace iocast {

uint64_t PageCache::known(uint64_t block, uint64_t pages) const
{
  if (threshold_ == all_known)
    return pages;
  uint64_t known = 0;
  for (uint64_t left = pages; left != 0; left &= left - 1)
    if (is_below(mix(block + static_cast<uint64_t>(std::countr_zero(left)))))
      known |= lowest_bit(left);
  return known;
}

uint64_t PageCache::held(uint64_t block) const
{
  uint64_t held = 0;
  for (uint32_t run = find(block); run != none; run = entries_[run].sibling)
    held |= entries_[run].pages;
  return held;
}

PageCache::Prospect PageCache::look(uint64_t block, uint64_t pages, uint32_t weight) const
{
  Prospect prospect;
  for (uint32_t at = find(block); at != none; at = entries_[at].sibling) {
    const PageRun& run   = entries_[at];
    const uint64_t those = run.pages & pages;
    if (those == 0)
      continue;
    prospect.held |= those;
    prospect.is_mixed = prospect.is_mixed || (run.weight > weight && those != pages);
    if (run.weight < weight)
      prospect.growth += static_cast<uint64_t>(std::popcount(those)) * (weight - run.weight);
  }
  prospect.growth += static_cast<uint64_t>(std::popcount(pages & ~prospect.held)) * weight;
  return prospect;
}

/// All of the pages that are in have at most this weight, or all are in and have the same one.
void PageCache::use(uint64_t block, uint64_t pages, uint32_t weight, bool ahead)
{
  for (uint32_t at = find(block); at != none;) {
    const uint32_t sibling = entries_[at].sibling;
    if (const uint64_t those = entries_[at].pages & pages; those != 0) {
      weight = std::max<uint32_t>(weight, entries_[at].weight);
      take(at, those);
    }
    at = sibling;
  }
  const auto count = static_cast<uint32_t>(std::popcount(pages));
  size_ += count;
  held_ += uint64_t{count} * weight;
  entered_ += uint64_t{count} * weight;
  if (first_ != none) {
    PageRun& run = entries_[first_];
    if (run.key == block && run.weight == weight && (run.ahead != 0) == ahead && run.pages < lowest_bit(pages)) {
      run.pages |= pages;
      return;
    }
  }
  const uint32_t sibling = find(block);
  const uint32_t added   = allocate({block, pages, weight, ahead, none, none, sibling});
  if (sibling == none)
    enter(added);
  else
    replace(added);
  push_front(added);
}

/// The run is without these of its pages.
void PageCache::take(uint32_t run, uint64_t pages)
{
  const uint64_t bytes = entries_[run].bytes(pages);
  size_ -= static_cast<uint32_t>(std::popcount(pages));
  held_ -= bytes;
  left_ += bytes;
  entries_[run].pages &= ~pages;
  if (entries_[run].pages == 0)
    drop(run);
}

void PageCache::drop(uint32_t run)
{
  unlink(run);
  const PageRun gone = entries_[run];
  uint32_t before    = find(gone.key);
  if (before != run) {
    while (entries_[before].sibling != run)
      before = entries_[before].sibling;
    entries_[before].sibling = gone.sibling;
  } else if (gone.sibling != none) {
    replace(gone.sibling);
  } else {
    leave(gone.key);
  }
  release(run);
}

uint64_t PageCache::forget(uint64_t block, uint64_t pages)
{
  uint64_t forgotten = 0;
  for (uint32_t at = find(block); at != none;) {
    const uint32_t sibling = entries_[at].sibling;
    if (const uint64_t those = entries_[at].pages & pages; those != 0) {
      forgotten |= those;
      unused_ += entries_[at].ahead != 0 ? entries_[at].bytes(those) : 0;
      take(at, those);
    }
    at = sibling;
  }
  return forgotten;
}

void PageCache::clear()
{
  for (uint32_t run = first_; run != none; run = entries_[run].next)
    unused_ += entries_[run].ahead != 0 ? entries_[run].bytes(entries_[run].pages) : 0;
  left_ += held_;
  held_ = 0;
  size_ = 0;
  clear_all();
}

size_t PageCache::runs() const
{
  size_t runs = 0;
  for (uint32_t run = first_; run != none; run = entries_[run].next)
    ++runs;
  return runs;
}

bool PageCache::adds_up() const
{
  uint64_t sum = 0;
  uint64_t n   = 0;
  for (uint32_t run = first_; run != none; run = entries_[run].next) {
    sum += entries_[run].bytes(entries_[run].pages);
    n += static_cast<uint64_t>(std::popcount(entries_[run].pages));
  }
  return sum == held_ && n == size_ && entered_ - left_ == held_ && fits(held_);
}

} // namespace iocast
