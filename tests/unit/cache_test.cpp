// SPDX-License-Identifier: Apache-2.0
//
// Caches against closed forms: least recently used under independent references and under scans, and whole systems by
// hand.
#include "models/cache.hpp"
#include "tests/unit/sharpness.hpp"
#include "tests/unit/small_system.hpp"

#include <cmath>
#include <fmt/format.h>
#include <list>

namespace iocast {
namespace {

double draw(uint64_t i)
{
  return to_uniform(random_words(7, Stream::order, 0, i)[0]);
}

/// Share of `references` to `objects` equally likely objects that hit, after as many others to warm up.
double hits_of_equals(Cache& cache, uint64_t objects, int references, double& seen)
{
  int hits  = 0;
  int known = 0;
  for (int i = 0; i < 2 * references; ++i) {
    const uint64_t key = mix(static_cast<uint64_t>(draw(static_cast<uint64_t>(i)) * static_cast<double>(objects)));
    if (!cache.knows(key))
      continue;
    const bool hit = cache.touch(key);
    if (i >= references) {
      ++known;
      hits += hit;
    }
  }
  EXPECT_TRUE(cache.adds_up());
  seen = known;
  return static_cast<double>(hits) / known;
}

/// Standard error of a share of n; five of them are exceeded once in 1.7 million right ones.
double error_of(double p, double n)
{
  return std::sqrt(p * (1 - p) / n);
}

TEST(Cache, OfEqualReferencesAsManyHitAsFit)
{
  for (const uint64_t capacity : {1, 100, 900, 1000}) {
    Cache cache(capacity, 1 << 20);
    double seen        = 0;
    const double share = hits_of_equals(cache, 1000, 100000, seen);
    EXPECT_EQ(seen, 100000);
    const double fits = static_cast<double>(capacity) / 1000;
    expect_within(fmt::format("hit ratio, {} of 1000 fit", capacity), share, fits, 5, error_of(fits, 100000), 1e-12);
    EXPECT_EQ(cache.held(), capacity);
  }
}

/// W. F. King III, Analysis of demand paging algorithms, IFIP 1971: the two last used of three are a and b with
/// probability p(a) p(b) / (1 - p(a)).
TEST(Cache, UnequalReferencesHitAsKingSays)
{
  const std::array<double, 3> p{0.6, 0.3, 0.1};
  double expected = 0;
  for (size_t i = 0; i < 3; ++i)
    for (size_t a = 0; a < 3; ++a)
      expected += a == i ? p[i] * p[i] : p[i] * p[a] * p[i] / (1 - p[a]);
  Cache cache(2, 1 << 20);
  int hits    = 0;
  const int n = 200000;
  for (int i = -100; i < n; ++i) {
    const double u = draw(static_cast<uint64_t>(i + 100));
    hits += cache.touch(mix(u < p[0] ? 0 : u < p[0] + p[1] ? 1 : 2)) && i >= 0;
  }
  // Neighbours are a little correlated; twice the deviation of independent ones.
  expect_within("hit ratio", static_cast<double>(hits) / n, expected, 10, error_of(expected, n));
}

TEST(Cache, AScanOfMoreThanFitsNeverHits)
{
  for (const auto& [objects, expected] : {std::pair{101, 0}, std::pair{100, 900}}) {
    Cache cache(100, 1 << 20);
    int hits = 0;
    for (int round = 0; round < 10; ++round)
      for (int object = 0; object < objects; ++object)
        hits += cache.touch(mix(static_cast<uint64_t>(object)));
    EXPECT_EQ(hits, expected);
  }
}

TEST(Cache, IsTheTextbooksList)
{
  Cache cache(50, 1 << 20);
  std::list<uint64_t> list; // last used first
  for (uint64_t i = 0; i < 20000; ++i) {
    const auto object = static_cast<uint64_t>(120 * draw(i) * draw(i + 1000000));
    const auto found  = std::find(list.begin(), list.end(), object);
    const bool hit    = found != list.end();
    if (hit)
      list.erase(found);
    if (i % 7 == 3) {
      ASSERT_EQ(cache.forget(mix(object)), hit);
      continue;
    }
    ASSERT_EQ(cache.touch(mix(object)), hit) << i;
    list.push_front(object);
    if (list.size() > 50)
      list.pop_back();
    ASSERT_EQ(cache.held(), list.size());
  }
  EXPECT_TRUE(cache.adds_up());
}

TEST(Cache, WithTooManyEntriesItKnowsAShareOfTheKeysAndTheSameHits)
{
  Cache cache(40000, 1000);
  double seen        = 0;
  const double share = hits_of_equals(cache, 100000, 400000, seen);
  EXPECT_LE(cache.entries(), 1000U);
  EXPECT_LE(cache.rate(), 1.0 / 32);
  EXPECT_NEAR(seen / 400000, cache.rate(), 0.1 * cache.rate());
  // Which keys are known is drawn once, about 100000 rate of them: their number decides what share of them fits.
  const double known = 100000 * cache.rate();
  expect_within("hit ratio", share, 0.4, 5, 0.4 / std::sqrt(known));
  for (int round = 0; round < 3; ++round) // and a scan of more than fits still never hits
    for (uint64_t object = 200000; object < 250000; ++object)
      if (cache.knows(mix(object))) {
        EXPECT_FALSE(cache.touch(mix(object)));
      }
}

TEST(Caches, OfManyInstancesForgetNothingThatFits)
{
  // 1.6 million entries; what one instance holds does not depend on how many there are.
  for (const uint32_t count : {1U, 16384U}) {
    CacheSpec spec;
    spec.capacity = 100;
    Caches caches(spec, count);
    for (const bool again : {false, true})
      for (uint32_t instance = 0; instance < count; ++instance)
        for (uint64_t object = 0; object < 100; ++object)
          ASSERT_EQ(caches.touch(instance, mix(object)), again) << instance << " of " << count;
    EXPECT_EQ(caches.checked().rate, 1);
    EXPECT_EQ(caches.checked().held % (100 * uint64_t{count}), 0U);
  }
}

// ---- in whole systems
// -------------------------------------------------------------------------------------------------

struct Looked {
  double seconds = 0;
  CacheSums before, after; ///< the last phase
  std::array<uint64_t, op_count> operations{};
};

Looked run(const std::string& body, const std::string& workload, const std::vector<std::string>& settings,
           const Placement& placement = {1, 1})
{
  const auto file = std::filesystem::temp_directory_path() / ("iocast-cache-" + std::to_string(getpid()) + ".yaml");
  std::ofstream(file) << "schema_version: 1\nstations: {s: {}}\n" << body;
  const auto platform = open_platform(file.string());
  std::filesystem::remove(file);
  const auto pattern = open_workload(workload, settings).make(placement);
  Looked looked;
  System system(platform, *pattern, placement, {}, [&](const FinishedPhase& phase) {
    looked.seconds = phase.end - phase.start;
    looked.before  = looked.after;
    looked.after   = phase.caches.at(0);
    for (size_t k = 0; k < op_count; ++k)
      looked.operations[k] =
          phase.recorder.has(static_cast<OpKind>(k)) ? phase.recorder.of_kind(static_cast<OpKind>(k)).whole.count() : 0;
  });
  system.start();
  system.run();
  EXPECT_TRUE(system.finished());
  return looked;
}

constexpr const char* inodes =
    "caches: {{c: {{station: s, objects: {}}}}}\n"
    "operations:\n"
    "  mkdir: []\n  rmdir: []\n  create: {{open: [{{cache: c}}]}}\n  unlink: [{{forget: c}}]\n"
    "  stat: [{{cache: c, hit: [{{station: s, demand: 10us}}], miss: [{{station: s, demand: 1ms}}, {{delay: 1ms}}]}}]\n"
    "  read: {{open: [{{cache: c, miss: [{{station: s, demand: 1ms}}]}}]}}\n";

TEST(CacheInASystem, HitsAndMissesTakeTheirOwnWays)
{
  const auto looked = run(
      fmt::format(inodes, 250), "operation-mix",
      {"files=1000", "operations=20000", "read=0", "create=0", "unlink=0", "append=0", "phases=precreate,benchmark"});
  const auto hits = static_cast<double>(looked.after.hits - looked.before.hits);
  EXPECT_EQ(looked.after.lookups - looked.before.lookups, 20000U);
  expect_within("hit ratio", hits / 20000, 0.25, 5, error_of(0.25, 20000));
  EXPECT_NEAR(looked.seconds, hits * 10e-6 + (20000 - hits) * 2e-3, 1e-6);
  EXPECT_EQ(looked.after.held, 250U);
}

/// Each object of this benchmark is made once, looked at and read once, and deleted: stat is what finds it or doesn't,
/// and then read finds it.
TEST(CacheInASystem, ADatasetThatIsUsedInTurnsFitsOrDoesNot)
{
  for (const auto& [capacity, stats_that_hit] : {std::pair{100, 200U}, std::pair{99, 0U}}) {
    const auto looked = run(
        fmt::format(inodes, capacity), "md-workbench",
        {"datasets=1", "objects=100", "iterations=100", "repeats=2", "phases=precreate,benchmark", "waiting_factor=0"});
    EXPECT_EQ(looked.after.held, static_cast<uint64_t>(capacity));
    EXPECT_EQ(looked.after.lookups, 100U + 2 * 300);                // made; found, read, made
    EXPECT_EQ(looked.after.hits, stats_that_hit + 200) << capacity; // all reads
  }
}

TEST(CacheInASystem, WhatIsDeletedMakesRoom)
{
  const auto looked = run(fmt::format(inodes, 1000), "md-workbench",
                          {"datasets=2", "objects=100", "iterations=50", "waiting_factor=0"});
  EXPECT_EQ(looked.after.held, 0U); // after the cleanup
}

TEST(CacheInASystem, OfPagesAllMustBeThere)
{
  const std::string body =
      "caches: {c: {station: s, capacity: 3MiB, page: 1MiB}}\n"
      "operations:\n  mkdir: []\n  open: []\n  close: []\n  unlink: []\n  rmdir: []\n  create: {}\n  fsync: []\n"
      "  pwrite: [{cache: c}]\n  pread: [{cache: c, hit: [{station: s, demand: 1ms}], miss: [{station: s, demand: "
      "10ms}]}]\n";
  // Three MiB fit, four are gone when they are read from the start on.
  for (const auto& [mib, seconds] : {std::pair{3, 3e-3}, std::pair{4, 40e-3}}) {
    const auto looked = run(body, "application",
                            {"block_size=1MiB", fmt::format("per_process={}MiB", mib), "sharing=process",
                             "run=write,read", "phases=benchmark"});
    EXPECT_NEAR(looked.after.lookups, 2 * mib, 0);
    EXPECT_EQ(looked.operations[static_cast<size_t>(OpKind::pread)], static_cast<uint64_t>(mib));
    EXPECT_NEAR(looked.seconds, seconds, 1e-9);
  }
  // Of two pages one is there at first; fetching the other one takes its place, and so on.
  const auto looked =
      run(body, "application",
          {"block_size=2MiB", "per_process=4MiB", "sharing=process", "run=write,read", "phases=benchmark"});
  EXPECT_EQ(looked.after.hits, 0U);
}

TEST(CacheInASystem, AFailedServersMemoryIsEmpty)
{
  const std::string body = fmt::format(inodes, 1000) + "failures: {f: {station: s, at: 4s, length: 1s}}\n";
  const std::vector<std::string> settings{
      "files=100", "operations=1000", "read=0",          "create=0",
      "unlink=0",  "append=0",        "think_time=10ms", "phases=precreate,benchmark"};
  const auto failed = run(body, "operation-mix", settings);
  const auto whole  = run(fmt::format(inodes, 1000), "operation-mix", settings);
  EXPECT_EQ(whole.after.hits - whole.before.hits, 1000U);
  // About all of a hundred objects are requested again in the six seconds that are left.
  EXPECT_NEAR(static_cast<double>(failed.after.lookups - failed.after.hits - 100), 100, 5);
}

} // namespace
} // namespace iocast
