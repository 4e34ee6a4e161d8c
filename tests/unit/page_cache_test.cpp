// SPDX-License-Identifier: Apache-2.0
//
// Caches of pages, which keep runs, against a plain list of pages; and who has which pages, against a set of pairs.
#include "models/cache.hpp"
#include "models/pages.hpp"
#include "tests/unit/sharpness.hpp"

#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <list>
#include <map>
#include <set>

namespace iocast {
namespace {

std::array<uint64_t, 4> draw(uint64_t seed, uint64_t i)
{
  const auto words = random_words(seed, Stream::order, 2, i);
  return {words[0], words[1], words[2], words[3]};
}

/// Pages one by one, last used first.
struct PlainList {
  struct Page {
    uint64_t block;
    uint64_t number;
    uint32_t weight;
    bool ahead;
  };
  uint64_t capacity;
  std::list<Page> pages;
  uint64_t held   = 0;
  uint64_t unused = 0;
  std::set<std::pair<uint64_t, uint64_t>> removed; ///< by the last access

  auto find(uint64_t block, uint64_t number)
  {
    return std::find_if(pages.begin(), pages.end(),
                        [&](const Page& page) { return page.block == block && page.number == number; });
  }
  uint64_t touch(uint64_t block, uint64_t mask, uint32_t weight, bool ahead)
  {
    removed.clear();
    uint64_t hits = 0;
    for (uint64_t number = 0; number < 64; ++number) {
      if ((mask >> number & 1) == 0)
        continue;
      uint32_t most = weight;
      if (const auto found = find(block, number); found != pages.end()) {
        hits |= uint64_t{1} << number;
        most = std::max(weight, found->weight);
        held -= found->weight;
        pages.erase(found);
      }
      pages.push_front({block, number, most, ahead});
      held += most;
      for (; held > capacity; pages.pop_back()) {
        held -= pages.back().weight;
        unused += pages.back().ahead ? pages.back().weight : 0;
        removed.emplace(pages.back().block, pages.back().number);
      }
    }
    return hits;
  }
  uint64_t forget(uint64_t block, uint64_t mask)
  {
    uint64_t forgotten = 0;
    for (uint64_t number = 0; number < 64; ++number)
      if (const auto found = find(block, number); (mask >> number & 1) != 0 && found != pages.end()) {
        forgotten |= uint64_t{1} << number;
        held -= found->weight;
        unused += found->ahead ? found->weight : 0;
        pages.erase(found);
      }
    return forgotten;
  }
  uint64_t of(uint64_t block) const
  {
    uint64_t mask = 0;
    for (const auto& page : pages)
      mask |= page.block == block ? uint64_t{1} << page.number : 0;
    return mask;
  }
};

struct Shape {
  uint64_t capacity; ///< in pages of weight 4
  uint64_t blocks;
  uint64_t longest; ///< access, pages
  bool short_pages; ///< some weigh less
};

TEST(PageCache, IsThePlainListOfPages)
{
  uint64_t seed = 10;
  for (const Shape& shape :
       {Shape{1, 2, 3, false}, Shape{10, 2, 30, false}, Shape{40, 3, 64, false}, Shape{100, 4, 64, true},
        Shape{300, 6, 16, true}, Shape{400, 8, 8, false}, Shape{60, 1, 64, true}, Shape{200, 9, 1, true}}) {
    PageCache cache(4 * shape.capacity, 1 << 20);
    PlainList list{4 * shape.capacity, {}, 0, 0, {}};
    ++seed;
    uint64_t evictions = 0;
    for (uint64_t i = 0; i < 6000; ++i) {
      const auto words      = draw(seed, i);
      const uint64_t block  = mix(words[0] % shape.blocks);
      const auto first      = static_cast<uint32_t>(words[1] % 64);
      const auto length     = static_cast<uint32_t>(1 + words[1] / 64 % shape.longest);
      const uint64_t holes  = words[0] / 64 % 4 == 0 ? mix(words[1]) : ~uint64_t{0};
      const uint64_t mask   = bits(first, std::min(first + length, 64U)) & (holes | uint64_t{1} << first);
      const auto weight     = static_cast<uint32_t>(shape.short_pages && words[2] % 3 == 0 ? 1 + words[3] % 4 : 4);
      const uint64_t choice = words[2] / 4 % 64;
      if (choice < 6) {
        ASSERT_EQ(cache.forget(block, mask), list.forget(block, mask)) << i;
      } else if (choice == 6 && i % 8 == 0) {
        cache.clear();
        for (uint64_t b = 0; b < shape.blocks; ++b)
          list.forget(mix(b), ~uint64_t{0});
      } else {
        const bool ahead = choice < 12;
        std::set<std::pair<uint64_t, uint64_t>> removed;
        const uint64_t hits = cache.touch(
            block, mask, weight,
            [&](uint64_t of, uint64_t gone) {
              for (uint64_t left = gone; left != 0; left &= left - 1)
                removed.emplace(of, std::countr_zero(left));
            },
            ahead);
        ASSERT_EQ(hits, list.touch(block, mask, weight, ahead)) << i;
        ASSERT_EQ(removed, list.removed) << i;
        evictions += removed.size();
      }
      ASSERT_EQ(cache.held(), list.held) << i;
      ASSERT_EQ(cache.pages(), list.pages.size()) << i;
      ASSERT_EQ(cache.unused(), list.unused) << i;
      if (i % 16 == 0) {
        for (uint64_t b = 0; b < shape.blocks; ++b)
          ASSERT_EQ(cache.held(mix(b)), list.of(mix(b))) << i;
        ASSERT_TRUE(cache.adds_up());
      }
    }
    EXPECT_GT(evictions, 100U) << shape.capacity;
  }
}

TEST(PageCache, AStreamMakesOneRunOfABlock)
{
  PageCache cache(1 << 30, UINT32_MAX);
  for (uint64_t block = 0; block < 10; ++block)
    for (uint32_t page = 0; page < 64; page += 4)
      cache.touch(mix(block), bits(page, page + 4), 1 << 16);
  EXPECT_EQ(cache.pages(), 640U);
  EXPECT_EQ(cache.runs(), 10U);
  cache.touch(mix(3), ~uint64_t{0}, 1 << 16);
  EXPECT_EQ(cache.runs(), 10U);
  cache.touch(mix(4), bits(8, 9), 1 << 16); // and what is out of turn one of its own
  EXPECT_EQ(cache.runs(), 11U);
}

TEST(PageCache, OfTooManyPagesItKnowsAShareAndTheSameHits)
{
  // A tenth of 6,400 pages fits; 64 are kept track of at most.
  PageCache cache(640, 64);
  uint64_t hits  = 0;
  uint64_t known = 0;
  for (uint64_t i = 0; i < 400000; ++i) {
    const auto words     = draw(5, i);
    const uint64_t block = mix(words[0] % 100);
    const uint64_t page  = cache.known(block, uint64_t{1} << words[1] % 64);
    if (page == 0)
      continue;
    const uint64_t hit = cache.touch(block, page, 1);
    known += i >= 200000;
    hits += i >= 200000 && hit == page;
  }
  EXPECT_LE(cache.pages(), 64U);
  EXPECT_LE(cache.rate(), 1.0 / 8);
  EXPECT_TRUE(cache.adds_up());
  // Which pages are known is drawn once, about 6400 rate of them: their number decides what share of them fits.
  const double pages_known = 6400 * cache.rate();
  expect_within("hit ratio", static_cast<double>(hits) / static_cast<double>(known), 0.1, 5,
                0.1 / std::sqrt(pages_known));
}

TEST(PageHolders, AreThePairsOfPageAndInstance)
{
  PageHolders holders;
  std::map<uint64_t, std::set<std::pair<uint64_t, uint64_t>>> who; ///< by instance, blocks and pages
  constexpr uint64_t object = 77;
  const auto of             = [&](uint64_t block, uint64_t instance) {
    uint64_t mask = 0;
    for (const auto& [number, page] : who[instance])
      mask |= number == block ? uint64_t{1} << page : 0;
    return mask;
  };
  const auto change = [&](uint64_t block, uint64_t mask, uint64_t instance, bool has) {
    for (uint64_t left = mask; left != 0; left &= left - 1) {
      const std::pair<uint64_t, uint64_t> page{block, std::countr_zero(left)};
      if (has)
        who[instance].insert(page);
      else
        who[instance].erase(page);
    }
  };
  uint64_t taken_in_all = 0;
  for (uint64_t i = 0; i < 30000; ++i) {
    const auto words     = draw(6, i);
    const uint64_t block = words[0] % 4;
    const auto one       = static_cast<uint32_t>(words[0] / 4 % 5);
    const auto first     = static_cast<uint32_t>(words[1] % 60);
    const uint64_t mask  = bits(first, first + 1 + static_cast<uint32_t>(words[1] / 64 % 4));
    const uint64_t key   = Pages::key_of(object, block);
    if (words[2] % 4 < 2) {
      const uint64_t added = mask & ~of(block, one);
      holders.add({object, block, added, 1}, one);
      change(block, added, one, true);
    } else if (words[2] % 4 == 2) {
      holders.remove(key, mask, one);
      change(block, mask, one, false);
    } else {
      const bool spares   = words[3] % 2 == 0;
      const uint64_t wide = words[3] % 8 == 3 ? ~uint64_t{0} : mask;
      std::map<uint32_t, uint64_t> taken;
      for (const auto& share : holders.take(key, wide, spares ? one : UINT32_MAX - 1))
        taken[share.instance] = share.pages;
      for (uint32_t instance = 0; instance < 5; ++instance) {
        const uint64_t expected = spares && instance == one ? 0 : of(block, instance) & wide;
        ASSERT_EQ(taken.contains(instance) ? taken[instance] : 0, expected) << i;
        taken_in_all += static_cast<uint64_t>(std::popcount(expected));
        change(block, expected, instance, false);
      }
    }
    uint64_t pages = 0;
    std::set<uint64_t> blocks;
    for (const auto& [instance, has] : who) {
      pages += has.size();
      for (const auto& [number, page] : has)
        blocks.insert(Pages::key_of(object, number));
    }
    ASSERT_EQ(holders.size(), pages) << i;
    const auto found = holders.blocks_of(object);
    ASSERT_EQ(std::set<uint64_t>(found.begin(), found.end()), blocks) << i;
    ASSERT_EQ(found.size(), blocks.size()) << i;
  }
  EXPECT_GT(taken_in_all, 3000U);
}

TEST(Pages, OfAnAccessAreThoseThatItsBytesLieIn)
{
  for (uint64_t i = 0; i < 3000; ++i) {
    const auto words      = draw(8, i);
    const uint64_t page   = 1 + words[0] % 50;
    const uint64_t size   = words[1] % 9000;
    const bool is_whole   = i % 3 == 0;
    const uint64_t offset = is_whole ? 0 : words[2] % 9000;
    Op op{is_whole ? OpKind::read : OpKind::pread, 1, 2, size, offset};
    if (i % 3 == 1) {
      op.count  = static_cast<uint32_t>(1 + words[3] % 4);
      op.stride = size + words[3] / 4 % 500;
    }
    std::vector<std::pair<uint64_t, uint64_t>> expected; // pages in turn, and their bytes
    for (uint32_t piece = 0; piece < op.count && size > 0; ++piece) {
      const uint64_t begin = offset + piece * op.stride;
      for (uint64_t number = begin / page; number <= (begin + size - 1) / page; ++number)
        if (op.count == 1 || op.stride != size || expected.empty() || expected.back().first != number)
          expected.emplace_back(number, is_whole ? std::min(page, begin + size - number * page) : page);
    }
    std::vector<std::pair<uint64_t, uint64_t>> pages;
    for_each_block(op, page, [&](const Pages& of) {
      ASSERT_NE(of.mask, 0U);
      for (uint64_t left = of.mask; left != 0; left &= left - 1)
        pages.emplace_back(of.first() + static_cast<uint64_t>(std::countr_zero(left)), of.weight);
    });
    ASSERT_EQ(pages, expected) << i;
  }
}

} // namespace
} // namespace iocast
