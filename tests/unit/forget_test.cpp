// SPDX-License-Identifier: Apache-2.0
//
// What one node takes out of the others' caches.
#include "models/cache.hpp"
#include "tests/unit/scripted.hpp"

#include <bit>
#include <fmt/format.h>
#include <map>

namespace iocast {
namespace {

using scripted::run;
using scripted::Script;
using scripted::think;
constexpr uint64_t mib = 1 << 20;

Op block(OpKind kind, uint64_t number, uint64_t object = 0)
{
  return {kind, 0, object, mib, number * mib};
}

/// A hit takes 1 ms, a miss 10 ms.
std::string pages(const std::string& of, const std::string& pwrite = "{forget: c, of: elsewhere}")
{
  return fmt::format("stations: {{s: {{servers: 1000}}}}\nlocks: {{l: {{per: object, hand_over: 2ms}}}}\ncaches: {{c: "
                     "{{page: 1MiB, capacity: 64MiB}}}}\n"
                     "operations:\n  stat: [{{forget: c, of: {}}}]\n  pwrite: [{}]\n"
                     "  pread: [{{station: s, demand: 0s, lock: l, lock_mode: shared}}, {{cache: c, hit: [{{delay: "
                     "1ms}}], miss: [{{delay: 10ms}}]}}]\n",
                     of, pwrite);
}

Script reads(std::vector<uint64_t> blocks)
{
  Script script;
  for (const uint64_t number : blocks)
    script.push_back(block(OpKind::pread, number));
  return script;
}

Script operator+(Script first, const Script& second)
{
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

TEST(ForgetElsewhere, AnAccessTakesOutItsPages)
{
  const Script reader = reads({0, 1, 2, 3}) + Script{think(100)} + reads({0, 1, 2, 3});
  const auto outcome  = run(pages("elsewhere"), {reader, Script{think(100), block(OpKind::pwrite, 1)}, reader});
  for (const size_t rank : {0, 2})
    EXPECT_EQ(outcome.took[rank], (std::vector<double>{10, 10, 10, 10, 1, 10, 1, 1})) << rank;
  EXPECT_EQ(outcome.caches[0].taken, 2U);
  EXPECT_EQ(outcome.caches[0].held, 8 * mib);
}

TEST(ForgetElsewhere, AnOperationOnTheObjectTakesOutAllOfIt)
{
  const Script reader = reads({0, 5, 6}) + Script{think(100)} + reads({6, 5, 0});
  for (const char* of : {"elsewhere", "everywhere"}) {
    // The other one has it as well, and looks again before the reader does.
    const auto outcome = run(pages(of), {reader, reads({5}) + Script{think(40), {OpKind::stat, 0, 0}} + reads({5}) +
                                                     Script{{OpKind::stat, 0, 1}}});
    EXPECT_EQ(outcome.took[0], (std::vector<double>{10, 10, 10, 10, 10, 10}));
    const bool all = of == std::string("everywhere");
    EXPECT_EQ(outcome.took[1], (std::vector<double>{10, 0, all ? 10.0 : 1.0, 0}));
    EXPECT_EQ(outcome.caches[0].taken, all ? 4U : 3U);
  }
}

TEST(ForgetElsewhere, ObjectsOfAnyKind)
{
  const std::string body = "stations: {s: {servers: 1000}}\ncaches: {c: {objects: 10}}\n"
                           "operations:\n  stat: [{cache: c, miss: [{delay: 10ms}]}]\n  unlink: [{forget: c, of: "
                           "elsewhere}]\n  open: [{forget: c, of: everywhere}]\n";
  const Op stat{OpKind::stat, 0, 7};
  const Script looker{stat, stat, think(100), stat, stat};
  for (const auto kind : {OpKind::unlink, OpKind::open}) {
    const auto outcome = run(body, {looker, Script{stat, think(50), {kind, 0, 7}, stat}});
    EXPECT_EQ(outcome.took[0], (std::vector<double>{10, 0, 10, 0}));
    EXPECT_EQ(outcome.took[1], (std::vector<double>{10, 0, kind == OpKind::open ? 10.0 : 0.0}));
  }
}

TEST(ForgetElsewhere, IsWhatCallingALockBackDoes)
{
  // Two nodes read in turns, then one writes: that takes the lock, and what the other has read, away from it; its next
  // read takes the lock back.
  const std::string body =
      pages("elsewhere", "{station: s, demand: 1ms, lock: l, recall: [{forget: c, of: elsewhere}]}");
  const Script reader = reads({0, 0}) + Script{think(100)} + reads({0, 0});
  const auto outcome  = run(body, {reader, Script{block(OpKind::pread, 0), think(50), block(OpKind::pwrite, 0),
                                                 block(OpKind::pwrite, 0), block(OpKind::pread, 0)}});
  EXPECT_EQ(outcome.took[0], (std::vector<double>{10, 1, 2 + 10, 1}));
  EXPECT_EQ(outcome.took[1], (std::vector<double>{10, 2 + 1, 1, 1}));
  EXPECT_EQ(outcome.caches[0].taken, 1U);
}

/// Compare the index with the contents of each instance, read from the instances themselves after each step.
void compare(const CacheSpec& spec, uint32_t instances, uint64_t objects, uint64_t steps)
{
  Caches caches(spec, instances);
  const uint32_t some = std::min(instances, 5U);
  const auto has      = [&](uint32_t instance, const Pages& which) {
    return spec.page > 0 ? caches.pages[instance].held(which.key()) & which.mask
                              : uint64_t{caches.instances[instance].holds(which.object)};
  };
  const auto count = [](uint64_t mask) { return static_cast<uint64_t>(std::popcount(mask)); };
  uint64_t taken   = 0;
  for (uint64_t step = 0; step < steps; ++step) {
    const auto words      = random_words(3, Stream::order, 1, step);
    const uint64_t object = mix(words[0] % objects);
    const auto first      = static_cast<uint32_t>(words[1] % 60);
    const uint32_t one    = words[2] % some;
    const Pages which     = spec.page > 0 ? Pages{object, words[1] / 64 % 3, bits(first, first + 1 + words[2] / 8 % 4),
                                              static_cast<uint32_t>(spec.page)}
                                          : Pages{object, 0, 1, 1};
    if (words[3] % 8 > 1) {
      if (spec.page > 0)
        caches.touch(one, which.only(caches.pages[one].known(which.key(), which.mask)));
      else if (caches.instances[one].knows(object))
        caches.touch(one, object);
      continue;
    }
    const uint32_t spared = words[3] % 8 == 0 ? one : UINT32_MAX;
    const uint64_t had    = has(one, which);
    for (uint32_t i = 0; i < some; ++i)
      taken += i != spared ? count(has(i, which)) : 0;
    if (spec.page > 0)
      caches.forget_elsewhere(which.key(), which.mask, spared);
    else
      caches.forget_elsewhere(object, spared);
    for (uint32_t i = 0; i < some; ++i)
      ASSERT_EQ(has(i, which), i == spared ? had : 0) << step;
    ASSERT_EQ(caches.sums.taken, taken);
    if (step % 64 == 0) {
      uint64_t blocks = 0;
      for (uint64_t block = 0; block < 3; ++block) {
        bool any = false;
        for (uint32_t i = 0; i < some; ++i)
          any = any || has(i, {object, block, ~uint64_t{0}, 1}) != 0;
        blocks += any;
      }
      if (spec.page > 0) {
        ASSERT_EQ(caches.page_holders->blocks_of(object).size(), blocks);
      }
      if (instances < 10)
        caches.checked();
    }
  }
  EXPECT_GT(taken, steps / 50);
  caches.checked();
}

TEST(ForgetElsewhere, KnowsWhoHasWhat)
{
  CacheSpec spec;
  spec.forgotten_by_others = true;
  spec.capacity            = 40;
  compare(spec, 5, 60, 50000); // objects
  spec.page     = 4096;
  spec.capacity = 30 * spec.page;
  compare(spec, 5, 12, 50000);
  spec.capacity = 200 * spec.page; // each instance keeps track of 64 pages
  compare(spec, 20000, 60, 50000);
}

} // namespace
} // namespace iocast
