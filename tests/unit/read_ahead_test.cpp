// SPDX-License-Identifier: Apache-2.0
//
// Blocks that caches fetch before their request, in systems whose course is computed by hand: a hit takes 1 ms, a miss
// 12 ms, a piece 10 ms.
#include "models/read_ahead.hpp"
#include "tests/unit/scripted.hpp"

#include <fmt/format.h>

namespace iocast {
namespace {

using scripted::run;
using scripted::Script;
using scripted::think;
constexpr uint64_t mib = 1 << 20;

Op read(uint64_t block, uint64_t size = mib, uint64_t object = 0)
{
  return {OpKind::pread, 0, object, size, block * mib};
}

Op write(uint64_t block, uint64_t size = mib)
{
  return {OpKind::pwrite, 0, 0, size, block * mib};
}

std::string platform(const std::string& ahead, const std::string& more = "")
{
  return fmt::format("stations: {{s: {{servers: 1000}}}}\ncaches: {{c: {{page: 1MiB, {}}}}}\n{}"
                     "operations:\n  create: {{open: []}}\n  append: {{open: []}}\n  open: []\n  stat: [{{forget: c, "
                     "of: elsewhere}}]\n  unlink: []\n"
                     "  pwrite: []\n  pread: [{{cache: c, hit: [{{delay: 1ms}}], miss: [{{delay: 12ms}}]}}]\n",
                     ahead, more);
}

std::string fetching(const std::string& keys)
{
  return platform("capacity: 64MiB, fetch: [{delay: 10ms}], " + keys);
}

/// Reads of `blocks` blocks, one after the other from `first` on, each after a `pause` in milliseconds.
Script in_turn(uint64_t blocks, double pause = 0, uint64_t first = 0)
{
  Script script;
  for (uint64_t block = first; block < first + blocks; ++block) {
    if (pause > 0)
      script.push_back(think(pause));
    script.push_back(read(block));
  }
  return script;
}

uint64_t missed(const scripted::Outcome& outcome)
{
  return outcome.caches[0].lookups - outcome.caches[0].hits;
}

TEST(ReadAhead, WhoThinksFindsAllButTheFirst)
{
  const auto outcome = run(fetching("ahead: 4MiB, at_once: 4"), {in_turn(16, 20)});
  std::vector<double> expected(16, 1);
  expected[0] = 12;
  EXPECT_EQ(outcome.took[0], expected);
  EXPECT_EQ(outcome.caches[0].hits, 15U);
  EXPECT_EQ(outcome.caches[0].waited, 0U);
  // The window grows from one block to four; where the object ends isn't known. What was not begun 10 ms before the end
  // is on its way.
  EXPECT_EQ(outcome.caches[0].fetched, 18 * mib);
  EXPECT_EQ(outcome.caches[0].unused, 0U);
}

TEST(ReadAhead, WhoDoesNotThinkGoesAtTheRateOfTheFetch)
{
  // The second block begins with the first. At 12 ms the window has two, and from then on the fetch never stops.
  const auto one = run(fetching("ahead: 4MiB"), {in_turn(40)});
  EXPECT_NEAR(one.seconds, 0.012 + 0.010 * 38 + 0.001, 1e-9);
  EXPECT_EQ(one.caches[0].waited, 38U);
  EXPECT_EQ(one.caches[0].hits, 39U);
  // Two at a time: from then on pairs of them.
  const auto two = run(fetching("ahead: 4MiB, at_once: 2"), {in_turn(40)});
  EXPECT_NEAR(two.seconds, 0.012 + 0.010 * 19 + 0.002, 1e-9);
  EXPECT_EQ(two.caches[0].waited, 19U);
  // In the long run `at_once` pieces come in 10 ms, as long as they can be read in that time.
  for (const uint32_t at_once : {4U, 8U}) {
    const auto more = run(fetching(fmt::format("ahead: 16MiB, at_once: {}", at_once)), {in_turn(400)});
    EXPECT_NEAR(more.seconds, 0.010 * 400 / at_once, 0.030) << at_once;
  }
  // A window of one piece: each is requested when the reader requests the one before, so that two are in flight; 1 ms
  // of a pair passes before the next request.
  const auto narrow = run(fetching("ahead: 1MiB, at_once: 8"), {in_turn(40)});
  EXPECT_NEAR(narrow.seconds, 0.012 + 0.001 + 0.011 * 19, 1e-9);
}

TEST(ReadAhead, TheWindowIsAsMuchAsWasReadInTurn)
{
  for (const auto& [blocks, fetched] :
       {std::pair{1U, 1U}, std::pair{2U, 3U}, std::pair{3U, 5U}, std::pair{8U, 15U}, std::pair{9U, 16U}}) {
    Script script = in_turn(blocks, 100);
    script.push_back(think(100));
    script.push_back({OpKind::open, 0, 0}); // until all has come
    EXPECT_EQ(run(fetching("ahead: 8MiB, at_once: 8"), {script}).caches[0].fetched, fetched * mib) << blocks;
  }
  // Small reads: a piece at first; 16 of 64 KiB have read one.
  Script small;
  for (uint64_t i = 0; i < 17; ++i) {
    small.push_back({OpKind::pread, 0, 0, 65536, i * 65536});
    small.push_back(think(100));
  }
  small.push_back({OpKind::open, 0, 0});
  const auto outcome = run(fetching("ahead: 8MiB, at_once: 8"), {small});
  EXPECT_EQ(missed(outcome), 1U);
  // The second piece, and the third, which begins within 1 MiB and 64 KiB of the end of the reads.
  EXPECT_EQ(outcome.caches[0].fetched, 2 * mib);
}

TEST(ReadAhead, PiecesAreOfWholeUnits)
{
  Script script = in_turn(9, 100);
  script.insert(script.begin(), {write(0, 16 * mib)});
  script.push_back(think(100));
  script.push_back({OpKind::open, 0, 0});
  const auto outcome = run(fetching("ahead: 4MiB, unit: 4MiB"), {script});
  EXPECT_EQ(missed(outcome), 1U);
  EXPECT_EQ(outcome.caches[0].fetched, 15 * mib); // what is left of the first unit, and then the others
}

TEST(ReadAhead, WhoJumpsFetchesNothing)
{
  Script backward;
  Script strided;
  for (uint64_t block = 40; block > 0; --block) {
    backward.push_back(read(block));
    strided.push_back(read(2 * (41 - block)));
  }
  for (const auto& script : {backward, strided}) {
    const auto outcome = run(fetching("ahead: 4MiB"), {script});
    EXPECT_EQ(outcome.caches[0].fetched, 0U);
    EXPECT_NEAR(outcome.seconds, 40 * 0.012, 1e-9);
  }
  // Nor do readers each of whom jumps where another one has been.
  Script even;
  Script odd;
  for (uint64_t pair = 1; pair < 20; ++pair) {
    even.push_back(think(10));
    even.push_back(read(2 * pair));
    odd.push_back(think(pair == 1 ? 15 : 10));
    odd.push_back(read(2 * pair + 1));
  }
  EXPECT_EQ(run(fetching("ahead: 4MiB"), {even, odd}, 2).caches[0].fetched, 0U);
  Op blocks     = read(0, mib / 2); // of one access as well
  blocks.count  = 4;
  blocks.stride = 2 * mib;
  EXPECT_EQ(run(fetching("ahead: 4MiB"), {{blocks, think(100), blocks}}).caches[0].fetched, 0U);
}

TEST(ReadAhead, ReadersOfANodeShareWhatComes)
{
  // The second comes half a second later, the third at the same time as the first.
  Script late = in_turn(16, 20);
  late.insert(late.begin(), {think(500)});
  const auto outcome = run(fetching("ahead: 4MiB, at_once: 4"), {in_turn(16, 20), late, in_turn(16, 20)}, 3);
  EXPECT_EQ(missed(outcome), 1U);
  EXPECT_EQ(outcome.took[1], std::vector<double>(16, 1));
  EXPECT_EQ(outcome.caches[0].fetched, 19 * mib);
  const auto apart = run(fetching("ahead: 4MiB, at_once: 4"), {in_turn(16, 20), in_turn(16, 20)}, 1); // nodes do not
  EXPECT_EQ(missed(apart), 2U);
  // In one file, each a part of its own: who doesn't begin at the begin is known by the second read.
  const auto parts =
      run(fetching("ahead: 4MiB, at_once: 4"), {in_turn(16, 20), in_turn(16, 20, 100), in_turn(16, 20, 200)}, 3);
  EXPECT_EQ(missed(parts), 1U + 2 + 2);
}

TEST(ReadAhead, NothingIsFetchedBeyondTheEnd)
{
  const auto fetched = [](Script script) {
    script.push_back(think(100));
    script.push_back({OpKind::stat, 0, 0});
    return run(fetching("ahead: 8MiB, at_once: 8"), {script}).caches[0].fetched;
  };
  Script script = in_turn(6, 20);
  EXPECT_EQ(fetched(script), 11 * mib); // nobody wrote it
  const auto after = [&](std::vector<Op> ops) {
    ops.insert(ops.end(), script.begin(), script.end());
    return fetched(ops);
  };
  EXPECT_EQ(after({write(0, 7 * mib)}), 6 * mib);
  EXPECT_EQ(after({write(0), write(6, mib / 2)}), 5 * mib + mib / 2);
  EXPECT_EQ(after({{OpKind::create, 0, 0, 6 * mib}}), 5 * mib);
  EXPECT_EQ(after({{OpKind::create, 0, 0, 6 * mib}, {OpKind::append, 0, 0, mib}}), 6 * mib);
  EXPECT_EQ(after({write(0, 7 * mib), {OpKind::unlink, 0, 0}, write(0, 6 * mib)}), 5 * mib);
  Op strided     = write(0, mib / 2);
  strided.count  = 4;
  strided.stride = 2 * mib;
  EXPECT_EQ(after({strided}), 5 * mib + mib / 2);
}

TEST(ReadAhead, WhatIsThrownOutBeforeItIsReadIsTold)
{
  // Two files of 20 blocks in turns, with room for the window of one.
  Script script;
  for (uint64_t block = 0; block < 20; ++block)
    for (const uint64_t object : {0, 1}) {
      script.push_back(think(50));
      script.push_back(read(block, mib, object));
    }
  const auto outcome = run(platform("capacity: 5MiB, ahead: 4MiB, at_once: 4, fetch: [{delay: 10ms}]"), {script});
  EXPECT_GT(outcome.caches[0].unused, 10 * mib);
  EXPECT_LE(outcome.caches[0].unused + (outcome.caches[0].hits + 5) * mib, outcome.caches[0].fetched + 5 * mib);
  EXPECT_GT(missed(outcome), 10U);
  const auto room = run(platform("capacity: 20MiB, ahead: 4MiB, at_once: 4, fetch: [{delay: 10ms}]"), {script});
  EXPECT_EQ(room.caches[0].unused, 0U);
  EXPECT_EQ(missed(room), 2U);
}

TEST(ReadAhead, WhatIsTakenOutOnItsWayIsReadByAMiss)
{
  // The second block is on its way from 0 to 10 ms; at 5 ms the other node takes all of the object out, at 12 ms the
  // reader reads on.
  const auto outcome = run(fetching("ahead: 1MiB"), {in_turn(2), {think(5), {OpKind::stat, 0, 0}}});
  EXPECT_EQ(outcome.took[0], (std::vector<double>{12, 12}));
  EXPECT_EQ(outcome.caches[0].taken, 2U); // the first block, and the second
  EXPECT_EQ(outcome.caches[0].unused, mib);
  // Who waits for it already looks again when it comes, and does not find it.
  const std::string slow = platform("capacity: 64MiB, ahead: 1MiB, fetch: [{delay: 20ms}]");
  const auto waiting     = run(slow, {in_turn(2), {think(15), {OpKind::stat, 0, 0}}});
  EXPECT_EQ(waiting.took[0], (std::vector<double>{12, 8 + 12}));
  EXPECT_EQ(waiting.caches[0].waited, 1U);
  EXPECT_EQ(run(slow, {in_turn(2), {think(15)}}).took[0], (std::vector<double>{12, 8 + 1}));
}

TEST(ReadAhead, AFailedServerLosesWhatIsOnItsWay)
{
  const std::string body =
      "stations: {s: {servers: 10}}\ncaches: {c: {station: s, page: 1MiB, capacity: 64MiB, ahead: 4MiB, fetch: "
      "[{station: s, demand: 10ms}]}}\n"
      "operations: {pread: [{cache: c, hit: [{delay: 1ms}], miss: [{station: s, demand: 12ms}]}]}\n";
  EXPECT_EQ(run(body, {in_turn(5)}).took[0], (std::vector<double>{12, 1, 10, 10, 10}));
  // At 15 ms the third read waits for its block. It asks the server, which is back at 115 ms, and the fourth is the
  // first of a new turn.
  const auto failed = run(body + "failures: {f: {station: s, at: 15ms, length: 100ms}}\n", {in_turn(6)});
  EXPECT_EQ(failed.took[0], (std::vector<double>{12, 1, 2 + 100 + 12, 12, 12, 1}));
}

TEST(ReadAhead, AServersCacheReadsAheadOfWhatNodesFetch)
{
  const std::string body =
      "stations: {s: {servers: 10}}\n"
      "caches:\n  server: {station: s, page: 1MiB, capacity: 64MiB, ahead: 4MiB, at_once: 2, fetch: [{station: s, "
      "demand: 30ms}]}\n"
      "  node: {page: 1MiB, capacity: 64MiB, ahead: 2MiB, at_once: 2, fetch: [{cache: server, miss: [{station: s, "
      "demand: 30ms}]}, {delay: 1ms}]}\n"
      "operations: {pread: [{cache: node, miss: [{cache: server, miss: [{station: s, demand: 30ms}]}]}]}\n";
  const auto outcome = run(body, {in_turn(20, 100)});
  EXPECT_EQ(outcome.caches[0].lookups - outcome.caches[0].hits, 1U);
  EXPECT_EQ(outcome.caches[1].lookups - outcome.caches[1].hits, 1U);
  EXPECT_EQ(outcome.took[0][19], 0);
}

TEST(ReadAhead, AllReadersAreKnownWhoReadAFewObjects)
{
  CacheSpec spec;
  spec.page = spec.unit = 1;
  spec.ahead = spec.capacity = 100;
  ReadAhead ahead(spec);
  constexpr uint32_t readers = 5000;
  for (uint64_t at = 0; at < 3; ++at)
    for (uint32_t reader = 0; reader < readers; ++reader)
      EXPECT_NE(ahead.read(7, reader, at, at + 1), nullptr);
  EXPECT_EQ(ahead.interrupted(), 0U);
}

TEST(ReadAhead, OfManyReadersTheLastOnesAreKnown)
{
  CacheSpec spec;
  spec.page = spec.unit = 1;
  spec.ahead = spec.capacity = 100;
  ReadAhead ahead(spec);
  constexpr uint64_t most = ReadAhead::fewest_streams + ReadAhead::streams_of_reader; // of one reader
  for (uint64_t object = 0; object < 2 * most; ++object)
    EXPECT_EQ(ahead.read(object, 0, 5, 6), nullptr);
  EXPECT_EQ(ahead.interrupted(), 0U);
  EXPECT_EQ(ahead.read(most - 1, 0, 6, 7), nullptr);
  EXPECT_EQ(ahead.interrupted(), 1U); // it would have gone on
  EXPECT_EQ(ahead.read(0, 0, 9, 10), nullptr);
  EXPECT_EQ(ahead.interrupted(), 1U); // not where it ended
  EXPECT_NE(ahead.read(most + 3, 0, 6, 7), nullptr);
  EXPECT_EQ(ahead.read(most + 3, 0, 6, 7), nullptr); // it has gone on
  EXPECT_EQ(ahead.read(most + 3, 1, 7, 8), nullptr); // another reader has not been there
  EXPECT_EQ(ahead.read(0, 0, 0, 1)->length, 1U);
  EXPECT_EQ(ahead.read(0, 0, 1, 3)->length, 3U);
  EXPECT_EQ(ahead.read(0, 0, 9, 10), nullptr);
  EXPECT_EQ(ahead.read(0, 0, 10, 11)->length, 2U); // anew
}

} // namespace
} // namespace iocast
