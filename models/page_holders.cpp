// SPDX-License-Identifier: Apache-2.0
#include "models/page_holders.hpp"

#include <algorithm>
#include <bit>

namespace iocast {

void PageHolders::add(const Pages& pages, uint32_t instance)
{
  if (pages.mask == 0)
    return;
  size_ += static_cast<uint64_t>(std::popcount(pages.mask));
  const uint64_t key = pages.key();
  Held& held         = held_.find(key);
  if (!held.used()) {
    Held fresh{key, pages.object, pages.mask, 0, instance};
    if (pages.block > 0) {
      auto& blocks = blocks_of_[pages.object];
      fresh.place  = static_cast<uint32_t>(blocks.size());
      blocks.push_back(key);
    }
    held_.insert(fresh);
    return;
  }
  if (held.instance == instance) {
    held.pages |= pages.mask;
    return;
  }
  auto& shares = several_[key];
  if (held.instance != several) {
    shares.push_back({held.instance, held.pages});
    held.instance = several;
  }
  const auto at =
      std::find_if(shares.begin(), shares.end(), [&](const Share& share) { return share.instance == instance; });
  if (at == shares.end())
    shares.push_back({instance, pages.mask});
  else
    at->pages |= pages.mask;
}

void PageHolders::remove(uint64_t block, uint64_t pages, uint32_t instance)
{
  Held& held = held_.find(block);
  if (!held.used())
    return;
  if (held.instance != several) {
    if (held.instance != instance)
      return;
    size_ -= static_cast<uint64_t>(std::popcount(held.pages & pages));
    if ((held.pages & ~pages) == 0)
      erase(held);
    else
      held.pages &= ~pages;
    return;
  }
  auto& shares = several_[block];
  const auto at =
      std::find_if(shares.begin(), shares.end(), [&](const Share& share) { return share.instance == instance; });
  if (at == shares.end())
    return;
  size_ -= static_cast<uint64_t>(std::popcount(at->pages & pages));
  at->pages &= ~pages;
  if (at->pages != 0)
    return;
  *at = shares.back();
  shares.pop_back();
  settle(held);
}

std::vector<PageHolders::Share> PageHolders::take(uint64_t block, uint64_t pages, uint32_t spared)
{
  Held& held = held_.find(block);
  if (!held.used())
    return {};
  if (held.instance != several) {
    const Share taken{held.instance, held.pages & pages};
    if (held.instance == spared || taken.pages == 0)
      return {};
    remove(block, pages, held.instance);
    return {taken};
  }
  auto& shares = several_[block];
  std::vector<Share> taken;
  for (auto& share : shares)
    if (share.instance != spared && (share.pages & pages) != 0) {
      taken.push_back({share.instance, share.pages & pages});
      size_ -= static_cast<uint64_t>(std::popcount(share.pages & pages));
      share.pages &= ~pages;
    }
  if (!taken.empty()) {
    std::erase_if(shares, [](const Share& share) { return share.pages == 0; });
    settle(held);
  }
  return taken;
}

std::vector<uint64_t> PageHolders::blocks_of(uint64_t object)
{
  const auto found             = blocks_of_.find(object);
  std::vector<uint64_t> blocks = found == blocks_of_.end() ? std::vector<uint64_t>{} : found->second;
  if (const uint64_t first = Pages::key_of(object, 0); held_.find(first).used())
    blocks.push_back(first);
  return blocks;
}

/// Several instances had some of the block, which may have become one or none.
void PageHolders::settle(Held& held)
{
  auto& shares = several_[held.key];
  if (shares.size() > 1)
    return;
  const Share last = shares.empty() ? Share{} : shares.front();
  several_.erase(held.key);
  if (last.pages == 0) {
    erase(held);
  } else {
    held.instance = last.instance;
    held.pages    = last.pages;
  }
}

/// Nobody has any of the block.
void PageHolders::erase(Held& held)
{
  if (held.key != Pages::key_of(held.object, 0)) {
    const auto blocks       = blocks_of_.find(held.object);
    const uint64_t moved    = blocks->second.back();
    const uint32_t place    = held.place;
    blocks->second[place]   = moved;
    held_.find(moved).place = place;
    blocks->second.pop_back();
    if (blocks->second.empty())
      blocks_of_.erase(blocks);
  }
  held_.erase(held);
}

} // namespace iocast
