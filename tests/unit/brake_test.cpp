// SPDX-License-Identifier: Apache-2.0
#include "real/brake.hpp"

#include "input/error.hpp"

#include <gtest/gtest.h>

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

} // namespace iocast
