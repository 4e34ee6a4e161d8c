// SPDX-License-Identifier: Apache-2.0
//
// Token buckets, whose course can be computed by hand.
#include "tests/unit/small_system.hpp"

#include <fmt/format.h>

namespace iocast::small {
namespace {

/// `stats` of each rank, which pass a bucket and take no time; reads take none at all.
double seconds_of(const std::string& bucket, uint64_t stats, const Placement& placement,
                  const std::string& read = "{open: [], read: [], close: []}")
{
  return run(fmt::format(
                 "stations: {{s: {{}}}}\nbuckets: {{b: {{{}}}}}\noperations:\n  stat: [{{bucket: b}}, {{station: "
                 "s, demand: 1ns}}]\n  read: {}\n",
                 bucket, read),
             placement, stats)
      .seconds;
}

TEST(Bucket, WhatIsBeyondTheBurstGoesAtItsRate)
{
  // 400 stats at 100/s: the first 50 at once, the last of the others when 350 tokens have come.
  EXPECT_NEAR(seconds_of("per: system, rate: 100/s, burst: 50", 100, {4, 2}), 3.5, 1e-6);
  EXPECT_NEAR(seconds_of("per: system, rate: 100/s", 100, {4, 2}), 3.99, 1e-6);
  // Two nodes have a bucket each.
  EXPECT_NEAR(seconds_of("rate: 100/s, burst: 50", 100, {4, 2}), 1.5, 1e-6);
  // Nobody waits who comes more slowly.
  EXPECT_LT(seconds_of("per: system, rate: 1000000000/s, burst: 400", 100, {4, 2}), 1e-3);
}

TEST(Bucket, BytesPassAtItsBandwidth)
{
  // The 100 reads of 3901 bytes: of the last one only its turn is waited for, as the bucket has no burst.
  const std::string read = "{open: [], read: [{bucket: b}], close: []}";
  EXPECT_NEAR(seconds_of("per: system, bandwidth: 39010B/s", 100, {1, 1}, read), 9.9, 1e-6);
  EXPECT_NEAR(seconds_of("per: system, bandwidth: 39010B/s, burst_bytes: 39010B", 100, {1, 1}, read), 9.0, 1e-6);
}

/// Of 400 ranks that each come 0.175 times a second to stats and reads with these steps.
Outcome at_random(const std::string& steps, const std::string& bucket)
{
  return run(
      fmt::format("stations: {{s: {{}}}}\nbuckets: {{b: {{per: system, {}}}, unused: {{rate: 1/s}}}}\noperations:\n"
                  "  stat: [{}]\n  read: {{open: [], read: [{}], close: []}}\n  rmdir: [{{bucket: unused}}, {{bucket: "
                  "b}}, {{station: s, demand: 1s}}]\n",
                  bucket, steps, steps),
      {400, 20}, 50, "rate=0.175/s");
}

TEST(Bucket, AtRandomRequestsWaitAsForAServerOfConstantTime)
{
  // 70/s come to 100/s one by one, as to a server that takes 10 ms for each. Of 40,000 some 0.5 % come late, as their
  // rank waits itself, which is a hundredth of that less in the mean.
  const auto total   = [](const Outcome& outcome) { return all_ms(outcome).first + all_ms(outcome).second; };
  const auto bucket  = at_random("{bucket: b}", "rate: 100/s");
  const double waits = total(bucket) / 40000;
  EXPECT_NEAR(waits, total(at_random("{station: s, demand: 10ms}", "rate: 100/s")) / 40000 - 10, 0.01 * waits);
  // M/D/1: 0.7 / (2 x 100/s x 0.3) = 11.7 ms. It forgets in 0.2 s where it was, of 571 s, and waits scatter by 15 ms:
  // three standard errors are 1.2 ms.
  EXPECT_NEAR(waits, 11.67, 1.2);
  // Two tokens more: 20 ms less for whoever waits so long.
  const auto longest = [](const Outcome& outcome) {
    return 1e-6 * static_cast<double>(outcome.latency[static_cast<size_t>(OpKind::stat)].max_ns());
  };
  EXPECT_NEAR(longest(at_random("{bucket: b}", "rate: 100/s, burst: 3")), longest(bucket) - 20, 1);
}

TEST(Bucket, WhatHasNoBytesWaitsBehindBytes)
{
  // Reads pass at 10/s. A stat that comes behind those of the two others passes with the later.
  const auto longest = [](const std::string& bucket, uint32_t ranks) {
    const auto outcome = run("stations: {s: {}}\nbuckets: {b: {per: system, " + bucket +
                                 "}}\noperations:\n  stat: [{bucket: b}]\n  read: {open: [], read: [{bucket: b}], "
                                 "close: []}\n",
                             {ranks, 1}, 100);
    return 1e-6 * static_cast<double>(outcome.latency[static_cast<size_t>(OpKind::stat)].max_ns());
  };
  EXPECT_NEAR(longest("bandwidth: 39010B/s", 1), 0, 1);
  EXPECT_NEAR(longest("bandwidth: 39010B/s", 3), 200, 1);
  // Also where there are tokens of requests at any time.
  EXPECT_NEAR(longest("bandwidth: 39010B/s, rate: 1000000/s, burst: 9", 3), 200, 1);
}

TEST(Bucket, WhatMakesNoSenseIsRefused)
{
  const auto refused = [](const std::string& bucket, const std::string& why) {
    expect_refused("stations: {s: {}}\nbuckets: {b: {" + bucket + "}}\noperations: {stat: [{bucket: b}], read: {}}\n",
                   why);
  };
  refused("per: system", "lets everything through");
  refused("rate: 5/s, burst_bytes: 1MB", "'burst_bytes' is of a bucket with a 'bandwidth'");
  refused("bandwidth: 5MB/s, burst: 9", "'burst' is of a bucket with a 'rate'");
  refused("rate: 0/s", "outside its range");
}

} // namespace
} // namespace iocast::small
