// SPDX-License-Identifier: Apache-2.0
#include "selftest/answers.hpp"
#include "selftest/stations.hpp"

#include <atomic>
#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

namespace {

using namespace iocast;

Platform truth(const std::string& text)
{
  const std::string file = testing::TempDir() + fmt::format("truth-{}.yaml", getpid());
  std::ofstream(file) << "schema_version: 1\n" << text;
  const Platform platform = open_platform(file);
  std::remove(file.c_str());
  return platform;
}

const std::string routes = "operations: {stat: [{station: s, demand: 10ms}], unlink: [{station: s, demand: 30ms}], "
                           "create: {open: [], write: [], close: []}}\n";

TEST(Stations, AreFirstComeFirstServed)
{
  Stations two(truth("stations: {s: {servers: 2, speed: 2}}\n" + routes), 1);
  EXPECT_NEAR(two.serve(OpKind::unlink, 1.000), 1.015, 1e-12);
  EXPECT_NEAR(two.serve(OpKind::stat, 1.001), 1.006, 1e-12);
  EXPECT_NEAR(two.serve(OpKind::stat, 1.002), 1.011, 1e-12);   // waits for the second server
  EXPECT_NEAR(two.serve(OpKind::unlink, 1.003), 1.026, 1e-12); // and again
  EXPECT_NEAR(two.serve(OpKind::stat, 1.100), 1.105, 1e-12);
  EXPECT_EQ(two.serve(OpKind::create, 1.100), 1.100); // its route is empty
  ASSERT_EQ(two.served().size(), 5u);
  EXPECT_NEAR(two.served()[2].start, 1.006, 1e-12);
}

TEST(Stations, StallsHoldTheServer)
{
  Stations stalled(
      truth("stations: {s: {}}\nstalls: {c: {station: s, every: 1s, length: 400ms, sigma: 0, operations: [unlink]}}\n" +
            routes),
      1);
  StallClock clock({{"c"}, 0, 1, 0.4, 0, {}}, 1, 0);
  double now = 5;
  while (clock.end_of_window(now) == now)
    now += 0.01;
  const double end = clock.end_of_window(now);
  EXPECT_NEAR(stalled.serve(OpKind::unlink, now), end + 0.030, 1e-12);
  EXPECT_NEAR(stalled.serve(OpKind::stat, now), end + 0.040, 1e-12);
}

TEST(Stations, RefuseWhatTheyCannotBe)
{
  for (const std::string bad :
       {"stations: {s: {count: 2}}\n", "stations: {s: {contention: 0.1}}\n", "stations: {s: {speeds: [1, 0.9]}}\n",
        "stations: {s: {priority: [stat]}}\n", "stations: {s: {discipline: ps}}\n", "stations: {s: {per: node}}\n",
        "stations: {s: {}}\nfailures: {f: {station: s, at: 1s, length: 1s}}\n"})
    EXPECT_THROW(Stations(truth(bad + routes), 1), InputError) << bad;
  EXPECT_THROW(Stations(truth("stations: {s: {}}\noperations: {stat: [{delay: 1ms}]}\n"), 1), InputError);
  EXPECT_THROW(
      Stations(truth("stations: {s: {}}\noperations: {stat: [{station: s, demand: 1ms}, {station: s, demand: 1ms}]}\n"),
               1),
      InputError);
}

TEST(Answers, ComeWhenTheyAreDueAndNotBefore)
{
  std::atomic<int> given{0};
  std::array<double, 3> late{};
  {
    Answers answers;
    const double now = now_seconds();
    for (const int which : {2, 0, 1})
      answers.at(now + 0.02 * (which + 1), [&, which, due = now + 0.02 * (which + 1)] {
        late[static_cast<size_t>(which)] = now_seconds() - due;
        EXPECT_EQ(given++, which);
      });
    while (given < 3)
      usleep(1000);
    answers.at(now + 1000, [&] { ++given; }); // given when it ends
  }
  EXPECT_EQ(given, 4);
  for (const double seconds : late)
    EXPECT_GE(seconds, 0);
}

} // namespace
