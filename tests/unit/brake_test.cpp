// SPDX-License-Identifier: Apache-2.0
#include "real/brake.hpp"

#include "input/error.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

namespace iocast {
namespace {
int64_t longest(const std::string& text, OpKind kind)
{
  Brake brake;
  brake.set_latencies("--stop-latency", text);
  return brake.longest_ns[static_cast<size_t>(kind)];
}
} // namespace

TEST(Brake, AnOperationsOwnTimeStandsInAnyOrder)
{
  for (const auto* text : {"any:10s,create:5s", "create:5s,any:10s"}) {
    EXPECT_EQ(longest(text, OpKind::create), 5'000'000'000) << text;
    EXPECT_EQ(longest(text, OpKind::stat), 10'000'000'000) << text;
  }
}

TEST(Brake, ATimeIsGivenOnce)
{
  for (const auto* text : {"create:5s,create:6s", "any:1s,stat:2s,any:3s"})
    EXPECT_THROW(longest(text, OpKind::create), InputError) << text;
}

TEST(Brake, AnErrorIsOneSentenceWithOneFullStop)
{
  for (const std::string time : {"5", "x", "5x", "-1s"})
    try {
      longest("create:" + time, OpKind::create);
      FAIL() << time;
    } catch (const InputError& error) {
      const std::string text = error.what();
      EXPECT_EQ(text.back(), '.') << text;
      EXPECT_EQ(text.find(".."), text.npos) << text;
    }
}

TEST(Brake, ATimeIsAtLeastANanosecond)
{
  EXPECT_EQ(longest("create:1ns", OpKind::create), 1);
  for (const auto* text : {"create:0.1ns", "create:9e9s", "create:0s"})
    EXPECT_THROW(longest(text, OpKind::create), InputError) << text;
}

/// An open loop with this gap between arrivals under a brake, on storage that takes these times: its responses. The
/// rate is kept, and nobody begins before its arrival.
std::vector<int64_t> responses(int64_t gap, int64_t pace, const std::vector<int64_t>& services)
{
  std::vector<int64_t> result;
  int64_t arrives = 0, answered = 0, turn = 7 * pace / 10, last = -pace, begun = -pace;
  for (const int64_t service : services) {
    const int64_t admitted = Brake::admitted_ns(pace, arrives, last, turn, answered);
    const int64_t begins   = std::max({arrives, turn, answered});
    EXPECT_GE(begins, begun + pace);
    EXPECT_GE(admitted, std::max(arrives, last + pace));
    EXPECT_LE(admitted, begins);
    last     = admitted;
    begun    = begins;
    answered = begins + service;
    turn     = begins + pace;
    result.push_back(answered - admitted);
    arrives += gap;
  }
  return result;
}

TEST(Brake, ItsDelaysAreInNoResponse)
{
  // Arrivals faster than the brake, as fast, and slower.
  for (const int64_t gap : {1, 50, 99, 100, 150})
    EXPECT_EQ(responses(gap, 100, std::vector<int64_t>(1000, 10)), std::vector<int64_t>(1000, 10)) << gap;
}

TEST(Brake, AStallOfTheStorageIsInResponses)
{
  std::vector<int64_t> services(200, 10);
  services[50]     = 1000;
  const auto found = responses(100, 100, services);
  EXPECT_EQ(found[49], 10);
  EXPECT_EQ(found[50], 1000);
  EXPECT_EQ(found[51], 1000 - 100 + 10);
  for (size_t i = 52; i < found.size(); ++i) // the backlog waits for its turns, which is the brake's delay
    EXPECT_EQ(found[i], std::max<int64_t>(10, found[i - 1] - 90)) << i;
  // Storage slower than arrivals: all of that is its own.
  const auto slow = responses(200, 100, std::vector<int64_t>(100, 300));
  for (size_t i = 2; i < slow.size(); ++i)
    EXPECT_EQ(slow[i], slow[i - 1] + 100) << i;
}

} // namespace iocast
