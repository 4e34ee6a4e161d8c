// SPDX-License-Identifier: Apache-2.0
//
// Accesses cut at the boundaries of stripes, and what their parts take.
#include "input/error.hpp"
#include "models/stripes.hpp"
#include "sharpness.hpp"
#include "small_system.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>

namespace iocast {
namespace {

using small::run;

StationSpec striped(uint64_t size, uint32_t count)
{
  StationSpec spec;
  spec.spread       = Spread::stripe;
  spec.stripe_size  = size;
  spec.stripe_count = count;
  return spec;
}

Op access(uint64_t offset, uint64_t size, uint32_t blocks = 1, uint64_t stride = 0)
{
  Op op(OpKind::pread, 0, 0, size, offset);
  op.count  = blocks;
  op.stride = stride;
  return op;
}

/// Byte by byte.
std::map<uint32_t, std::pair<uint64_t, std::set<uint32_t>>> counted(const Op& op, const StationSpec& spec)
{
  std::map<uint32_t, std::pair<uint64_t, std::set<uint32_t>>> at;
  for (uint32_t block = 0; block < op.count; ++block)
    for (uint64_t byte = 0; byte < op.size; ++byte) {
      const uint64_t stripe = (op.offset + block * op.stride + byte) / spec.stripe_size;
      auto& [bytes, blocks] =
          at[spec.by_stripe ? chance_of(op, stripe, spec) : static_cast<uint32_t>(stripe % spec.stripe_count)];
      ++bytes;
      blocks.insert(block);
    }
  return at;
}

TEST(Stripes, ByHand)
{
  StripeCutter cutter;
  const auto spec = striped(100, 3);
  const auto& two =
      cutter.cut(access(250, 100), spec); // half of stripe 2, half of stripe 3, which is the first instance's
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].turn, 2u);
  EXPECT_EQ(two[0].bytes, 50u);
  EXPECT_EQ(two[1].turn, 0u);
  EXPECT_EQ(two[1].bytes, 50u);
  const auto& all = cutter.cut(access(50, 700), spec); // 50 of stripe 0, 1 to 6 whole, 50 of stripe 7
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].bytes, 50u + 100 + 100);
  EXPECT_EQ(all[1].bytes, 100u + 100 + 50);
  EXPECT_EQ(all[2].bytes, 200u);
  const auto& nothing = cutter.cut(Op(OpKind::stat, 0, 0, 0, 150), spec);
  ASSERT_EQ(nothing.size(), 1u);
  EXPECT_EQ(nothing[0].turn, 1u);
  EXPECT_EQ(nothing[0].bytes, 0u);
}

TEST(Stripes, AsCountedByteByByte)
{
  StripeCutter cutter;
  for (uint32_t k = 0; k < 3000; ++k) {
    const auto words  = random_words(1, Stream::service, 0, k);
    const auto more   = random_words(1, Stream::service, 1, k);
    auto spec         = striped(1 + words[0] % 40, 1 + words[1] % 7);
    spec.count        = spec.stripe_count;
    spec.by_stripe    = more[3] % 2 == 0;
    const auto size   = 1 + words[2] % 200;
    const auto blocks = 1 + more[0] % 4;
    const auto stride = blocks == 1 ? 0 : more[1] % 3 == 0 ? size : size + more[2] % 100;
    const Op op       = access(words[3] % 500, size, blocks, stride);
    const auto expect = counted(op, spec);
    const auto& parts = cutter.cut(op, spec);
    ASSERT_EQ(parts.size(), expect.size()) << k;
    const uint64_t first = op.offset / spec.stripe_size;
    EXPECT_EQ(parts[0].turn, spec.by_stripe ? chance_of(op, first, spec) : first % spec.stripe_count);
    for (const auto& part : parts) {
      EXPECT_EQ(part.bytes, expect.at(part.turn).first) << k;
      if (blocks == 1 || stride != size)
        EXPECT_EQ(part.blocks, expect.at(part.turn).second.size()) << k;
    }
  }
}

TEST(Stripes, ByChanceAreAsUnevenAsChanceIs)
{
  // The mean of the largest number of 24 stripes at one of 12 instances, against throws of another generator.
  constexpr int objects = 20'000;
  constexpr int stripes = 24;
  auto spec             = striped(1, 12);
  spec.count            = 12;
  spec.by_stripe        = true;
  std::mt19937_64 rng(1);
  std::array<double, 2> sum{}, squares{};
  for (int object = 0; object < objects; ++object)
    for (const bool thrown : {false, true}) {
      std::array<int, 12> at{};
      for (uint64_t stripe = 0; stripe < stripes; ++stripe)
        ++at[thrown ? rng() % 12 : chance_of(Op(OpKind::pwrite, 3, static_cast<uint64_t>(object), 1, 0), stripe, spec)];
      const double most = *std::max_element(at.begin(), at.end());
      sum[thrown] += most;
      squares[thrown] += most * most;
    }
  double variance = 0;
  for (const int one : {0, 1})
    variance += (squares[one] - sum[one] * sum[one] / objects) / objects / objects;
  expect_within("largest share of 12 instances", sum[0] / objects / stripes, sum[1] / objects / stripes, 5,
                std::sqrt(variance) / stripes);
  // Round robin has two everywhere.
  EXPECT_GT(sum[0] / objects, 3);
}

const std::string reads = "operations:\n  stat: []\n  read: {{open: [], read: [{}], close: []}}\n";

double seconds_of(const std::string& station, const std::string& step, uint32_t ranks, const std::string& size,
                  const std::string& rest = "")
{
  return run(fmt::format("stations: {{s: {{{}}}}}\n{}{}", station, rest, fmt::format(fmt::runtime(reads), step)), ranks,
             100, "object_size=" + size)
      .seconds;
}

TEST(Stripes, AVisitEndsWithItsLastPart)
{
  const std::string four = "count: 4, spread: stripe, stripe_size: 1KiB";
  const std::string step = "{station: s, demand: 1ms, bandwidth: 1024kB/s";
  // Parts of 1, 1 and half a KiB: the longest takes 1 ms and 1 ms more.
  EXPECT_NEAR(seconds_of(four, step + ", stripes: spanned}", 1, "2560B"), 100 * 2e-3, 1e-9);
  EXPECT_NEAR(seconds_of(four, step + "}", 1, "2560B"), 100 * 3.5e-3, 1e-9); // whole at one instance
  EXPECT_NEAR(seconds_of(four, step + ", stripes: spanned}", 1, "1000B"), 100 * (1e-3 + 1000 / 1024e3), 1e-9);
  EXPECT_NEAR(seconds_of(four, step + ", stripes: spanned}", 1, "6KiB"), 100 * 3e-3,
              1e-9); // two KiB each at two of four
  // All at all four: they are like one server each rank has its turn at.
  EXPECT_NEAR(seconds_of(four, step + ", stripes: spanned}", 5, "4KiB"), 5 * 100 * 2e-3, 1e-9);
}

TEST(Stripes, ATransferEndsWithItsLastPart)
{
  const std::string four = "count: 4, spread: stripe, stripe_size: 1000B";
  const auto network     = [](const std::string& links) { return "network: {latency: 1ms, " + links + "}\n"; };
  const std::string step = "{transfer: read, station: s, stripes: spanned}";
  EXPECT_NEAR(seconds_of(four, step, 1, "2500B", network("node_bandwidth: 100MB/s, server_bandwidth: 1MB/s")),
              100 * (1e-3 + 1e-3), 1e-9);
  EXPECT_NEAR(seconds_of(four, step, 1, "2500B", network("node_bandwidth: 1MB/s, server_bandwidth: 1MB/s")),
              100 * (1e-3 + 2.5e-3), 1e-9);
}

TEST(Stripes, AFailedInstanceHoldsUpItsPartOnly)
{
  // Each read needs all four instances; one is away for 5 ms at the eleventh.
  const std::string four = "count: 4, spread: stripe, stripe_size: 1KiB";
  const std::string away = "failures: {f: {station: s, instance: 2, at: 10500us, length: 5ms}}\n";
  EXPECT_NEAR(seconds_of(four, "{station: s, demand: 1ms, stripes: spanned}", 1, "4KiB", away), 100 * 1e-3 + 5.5e-3,
              1e-9);
  // A transfer's parts on their way arrive; the next begins with three of four.
  EXPECT_NEAR(
      seconds_of(four, "{transfer: read, station: s, stripes: spanned}", 1, "4KiB", away + "network: {latency: 1ms}\n"),
      100 * 1e-3 + 4.5e-3, 1e-9);
}

TEST(Stripes, AreRefusedWhereThereAreNone)
{
  const auto refused = [](const std::string& station, const std::string& step, const std::string& words) {
    try {
      seconds_of(station, step, 1, "1KiB");
      ADD_FAILURE() << step << " was taken";
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(".yaml:5"), std::string::npos) << error.what();
    }
  };
  refused("count: 400, spread: stripe", "{station: s, demand: 1ms, stripes: spanned}", "at most 255 parts");
  refused("count: 4, spread: stripe", "{station: s, demand: 1ms, stripes: spanned, per: entry}", "no stripes");
  refused("count: 4, spread: stripe", "{transfer: read, station: s, stripes: 2}", "'spanned'");
  refused("count: 4, spread: stripe, discipline: timeslice", "{station: s, demand: 1ms, stripes: spanned}",
          "fcfs or ps");
}

} // namespace
} // namespace iocast
