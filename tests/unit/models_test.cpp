// SPDX-License-Identifier: Apache-2.0
#include "models/calendar.hpp"
#include "models/failure.hpp"
#include "models/law.hpp"
#include "models/limit.hpp"
#include "models/lock.hpp"
#include "models/stall.hpp"
#include "models/station.hpp"
#include "tests/unit/sharpness.hpp"
#include "workload/random.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <fmt/format.h>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <utility>

namespace iocast {
namespace {

uint32_t random_below(uint32_t bound, uint64_t counter)
{
  return random_words(7, Stream::service, 1, counter)[0] % bound;
}

TEST(Random, DependsOnNothingButItsArguments)
{
  EXPECT_EQ(random_words(1, Stream::service, 2, 3), random_words(1, Stream::service, 2, 3));
  EXPECT_NE(random_words(1, Stream::service, 2, 3), random_words(1, Stream::stall, 2, 3));
  EXPECT_NE(random_words(1, Stream::service, 2, 3), random_words(2, Stream::service, 2, 3));
}

/// Mean and variance by midpoint quadrature over the inverse distribution function.
void expect_moments(const Law& law, double tolerance)
{
  constexpr int points = 2'000'000;
  double sum           = 0;
  double square        = 0;
  for (int i = 0; i < points; ++i) {
    const double x = law.at((i + 0.5) / points);
    sum += x;
    square += x * x;
  }
  const double mean = sum / points;
  EXPECT_NEAR(law.mean(), mean, tolerance * mean);
  EXPECT_NEAR(law.variance(), square / points - mean * mean, 20 * tolerance * mean * mean);
}

TEST(Laws, HaveTheMomentsTheySay)
{
  expect_moments(*constant_law(2), 1e-9);
  expect_moments(*exponential_law(3e-4), 1e-4);
  expect_moments(*lognormal_law(1e-3, 0.8), 1e-4);
  expect_moments(*empirical_law({0, 0.5, 0.9, 1}, {1e-6, 2e-6, 5e-6, 1e-3}), 1e-4);
  expect_moments(*moved_law(exponential_law(1), 2, -0.5), 1e-3);
  expect_moments(*mixture_law({{3, constant_law(1)}, {1, exponential_law(4)}}), 1e-4);
}

TEST(Laws, DrawWhatTheirQuantilesSay)
{
  for (const auto& law : {exponential_law(3e-4), lognormal_law(1e-3, 0.2), lognormal_law(1e-3, 1)})
    for (uint64_t i = 0; i < 100'000; ++i)
      for (const uint32_t word :
           {random_below(UINT32_MAX, i), static_cast<uint32_t>(i), UINT32_MAX - static_cast<uint32_t>(i)}) {
        const double u = to_uniform(word);
        ASSERT_NEAR(law->at(u) / law->quantile(u), 1, 1e-4) << law->kind() << " at " << u;
      }
}

TEST(Laws, QuantileAndCumulativeAreInverse)
{
  const auto mixture = mixture_law({{3, exponential_law(1)}, {1, lognormal_law(4, 0.5)}});
  for (const double p : {0.1, 0.5, 0.9, 0.99})
    EXPECT_NEAR(mixture->cumulative(mixture->quantile(p)), p, 1e-6);
}

/// Against the standard library's ordered multimap, which keeps insertion order among equals too. `time` of a random
/// number, `ahead`: next events are looked at.
void compare_calendar_with_multimap(const std::function<double(uint64_t)>& time_of, bool ahead)
{
  Calendar calendar;
  if (ahead)
    calendar.look_ahead();
  std::multimap<double, uint32_t> reference;
  const auto pop_both = [&] {
    for (uint32_t place = 0; place < Calendar::most_near; ++place)
      calendar.ahead(place, [&](const Calendar::Event& event) {
        EXPECT_EQ(event.who, std::next(reference.begin(), place)->second);
      });
    const auto event = calendar.pop();
    EXPECT_EQ(event.time, reference.begin()->first);
    EXPECT_EQ(event.kind, reference.begin()->second % Calendar::kinds);
    EXPECT_EQ(event.who, reference.begin()->second);
    reference.erase(reference.begin());
  };
  for (uint32_t i = 0; i < 40'000; ++i) {
    if (random_below(3, 2 * i) && !reference.empty())
      pop_both();
    for (uint32_t k = 0; k < 2; ++k) {
      const double time = time_of(random_below(1'000'000'000, 4 * i + k + 100'000'000));
      calendar.push(time, (2 * i + k) % Calendar::kinds, 2 * i + k);
      reference.emplace(time, 2 * i + k);
    }
    ASSERT_EQ(calendar.next_time(), reference.begin()->first);
  }
  EXPECT_EQ(calendar.size(), reference.size());
  while (!reference.empty())
    pop_both();
  EXPECT_TRUE(calendar.empty());
}

TEST(Calendar, ReturnsEventsInOrderOfTime)
{
  for (const bool ahead : {false, true}) {
    compare_calendar_with_multimap([](uint64_t random) { return static_cast<double>(random); }, ahead);
    compare_calendar_with_multimap(
        [](uint64_t random) {
          return random % 1000 == 0 ? 1e6 * static_cast<double>(random) : 1e-9 * static_cast<double>(random);
        },
        ahead);
  }
}

TEST(Calendar, ReturnsEventsOfOneTimeInTheOrderTheyWentIn)
{
  for (const bool ahead : {false, true})
    for (const uint32_t different_times : {1, 2, 50, 3000})
      for (const double unit : {1.0, 0.1}) // of tenths the mean is not exact: that of equal times may lie beyond them
        compare_calendar_with_multimap([&](uint64_t random) { return unit * (1 + random % different_times); }, ahead);
}

TEST(Locks, StayWithTheirKeepersUntilOthersNeedThem)
{
  std::map<uint64_t, LockKeepers> keepers;
  const bool shared = true, exclusive = false, called_back = true, free = false;
  EXPECT_EQ(keepers[7].take(0, shared), free);
  EXPECT_EQ(keepers[7].take(1, shared), free);
  EXPECT_EQ(keepers[8].take(2, exclusive), free);        // another lock
  EXPECT_EQ(keepers[7].take(1, exclusive), called_back); // node 0 has it as well
  EXPECT_EQ(keepers[7].take(1, exclusive), free);
  EXPECT_EQ(keepers[7].take(1, shared), free);        // who may write may read
  EXPECT_EQ(keepers[7].take(0, shared), called_back); // node 1 may still write
  EXPECT_EQ(keepers[7].take(0, exclusive), free);     // nobody else is left
  EXPECT_EQ(keepers[7].take(2, exclusive), called_back);
}

TEST(Locks, GrantInOrderAndForgetWhatIsFree)
{
  constexpr uint32_t jobs = 500;
  Links links(jobs, nobody);
  LockTable locks;
  std::map<uint64_t, std::deque<JobId>> reference; // holder first
  std::vector<uint64_t> wants(jobs, UINT64_MAX);
  for (uint64_t step = 0; step < 50'000; ++step) {
    const JobId job = random_below(jobs, step);
    if (wants[job] == UINT64_MAX) {
      const uint64_t key = random_below(200, step + (1ULL << 40)) * 0x100000001ULL;
      wants[job]         = key;
      reference[key].push_back(job);
      EXPECT_EQ(locks.acquire(links, key, job), reference[key].size() == 1);
    } else if (auto& queue = reference[wants[job]]; queue.front() == job) {
      queue.pop_front();
      EXPECT_EQ(locks.release(links, wants[job]), queue.empty() ? nobody : queue.front());
      if (queue.empty())
        reference.erase(wants[job]);
      wants[job] = UINT64_MAX;
    }
    EXPECT_EQ(locks.held(), reference.size());
  }
}

TEST(Locks, AreSharedByThoseWhoReadAndPassNobodyWhoWaits)
{
  struct Request {
    JobId job;
    bool shared;
    bool holds;
  };
  constexpr uint32_t jobs = 300;
  Links links(jobs, nobody);
  LockTable locks;
  std::map<uint64_t, std::deque<Request>> reference;
  std::vector<uint64_t> wants(jobs, UINT64_MAX);
  std::vector<bool> shared(jobs);
  size_t together     = 0; // grants to a reader beside others
  const auto may_hold = [](const std::deque<Request>& queue, bool reads) {
    return std::none_of(queue.begin(), queue.end(),
                        [&](const Request& other) { return !other.holds || !other.shared || !reads; });
  };
  for (uint64_t step = 0; step < 100'000; ++step) {
    const JobId job = random_below(jobs, step);
    if (wants[job] == UINT64_MAX) {
      const uint64_t key = random_below(60, step + (1ULL << 40)) * 0x100000001ULL;
      wants[job]         = key;
      shared[job]        = random_below(4, step + (1ULL << 41)) > 0;
      auto& queue        = reference[key];
      const bool holds   = may_hold(queue, shared[job]);
      together += holds && !queue.empty();
      queue.push_back({job, shared[job], holds});
      ASSERT_EQ(shared[job] ? locks.acquire_shared(links, key, job) : locks.acquire(links, key, job), holds);
    } else {
      const uint64_t key = std::exchange(wants[job], UINT64_MAX);
      auto& queue        = reference[key];
      const auto own =
          std::find_if(queue.begin(), queue.end(), [&](const Request& request) { return request.job == job; });
      if (own->holds)
        locks.give_up(key);
      ASSERT_EQ(locks.leave(links, key, job), !own->holds);
      queue.erase(own);
      std::deque<Request> before;
      for (auto& request : queue) {
        if (!request.holds) {
          request.holds = may_hold(before, request.shared);
          if (!request.holds)
            break;
          together += !before.empty();
          ASSERT_EQ(locks.admit(links, key, [&](JobId other) { return shared[other]; }), request.job);
        }
        before.push_back(request);
      }
      ASSERT_EQ(locks.admit(links, key, [&](JobId other) { return shared[other]; }), nobody);
      if (queue.empty())
        reference.erase(key);
    }
    ASSERT_EQ(locks.held(), reference.size());
  }
  EXPECT_GT(together, 1000u);
}

TEST(Limit, LetsSoManyInAndTheRestInOrder)
{
  Links links(5, nobody);
  Limit limit;
  EXPECT_TRUE(limit.acquire(links, 0, 2));
  EXPECT_TRUE(limit.acquire(links, 1, 2));
  for (JobId job : {2, 3, 4})
    EXPECT_FALSE(limit.acquire(links, job, 2));
  EXPECT_EQ(limit.release(links), 2U);
  EXPECT_EQ(limit.release(links), 3U);
  EXPECT_EQ(limit.release(links), 4U);
  EXPECT_EQ(limit.release(links), nobody);
  EXPECT_EQ(limit.used(), 1U);
}

TEST(SharedServers, ProcessorSharingByHand)
{
  // One server; job 0 needs 1 s from 0 on, job 1 needs 1 s from 0.5 on: they share from 0.5, so 0 leaves at 1.5 and 1
  // at 2.
  StationSpec spec;
  const Speeds speeds(spec);
  SharedServers servers;
  servers.add(0, 1, 0, speeds);
  EXPECT_DOUBLE_EQ(servers.next_departure(0, speeds), 1);
  servers.add(1, 1, 0.5, speeds);
  EXPECT_DOUBLE_EQ(servers.next_departure(0.5, speeds), 1.5);
  EXPECT_EQ(servers.pop(1.5, speeds), 0U);
  EXPECT_DOUBLE_EQ(servers.next_departure(1.5, speeds), 2);
  EXPECT_EQ(servers.pop(2, speeds), 1U);
  EXPECT_TRUE(servers.empty());
}

/// The mean of share(seed) over 200 seeds is as expected, within its standard error.
template <class Share> void expect_share(double expected, double sigma, Share share)
{
  constexpr int seeds = 200;
  double sum = 0, squares = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    const double one = share(static_cast<uint64_t>(seed));
    sum += one;
    squares += one * one;
  }
  const double mean  = sum / seeds;
  const double error = std::sqrt(std::max(0.0, squares / seeds - mean * mean) / (seeds - 1));
  expect_within(fmt::format("share lost with sigma {}", sigma), mean, expected, 4, error, 1e-9);
}

TEST(Stall, TakesItsShareOfTheTime)
{
  constexpr int periods = 1000;
  for (const double share : {0.05, 0.24, 0.5})
    for (const double sigma : {0.0, 0.3, 0.6, 1.0, 1.5})
      expect_share(share, sigma, [&](uint64_t seed) {
        StallSpec spec;
        spec.every  = 5;
        spec.length = share * spec.every;
        spec.sigma  = sigma;
        StallClock clock(spec, seed, 0);
        int stalled = 0;
        for (int i = 0; i < 2 * periods; ++i) { // at a random moment in each half of a period
          const auto words = random_words(seed, Stream::service, 0, static_cast<uint64_t>(i));
          const double now = (i + to_uniform(words[0])) * spec.every / 2;
          stalled += clock.end_of_window(now) > now;
        }
        return stalled / (2.0 * periods);
      });
}

TEST(Stall, AnswersAboutEarlierMomentsAlike)
{
  StallSpec spec;
  spec.every  = 5;
  spec.length = 3;
  spec.sigma  = 1.5;
  StallClock forward(spec, 3, 0), back(spec, 3, 0);
  std::vector<double> ends;
  for (int i = 0; i < 2000; ++i)
    ends.push_back(forward.end_of_window(0.1 * i));
  for (int i = 2000; i-- > 0;)
    EXPECT_EQ(back.end_of_window(0.1 * i), ends[static_cast<size_t>(i)]);
}

TEST(Stall, WhoComesRarelyMeetsTheWindowsOfThoseWhoComeOften)
{
  const StallSpec spec{{"s"}, 0, 1, 0.3, 0.8, {}};
  StallClock often(spec, 3, 0), rarely(spec, 3, 0);
  for (int i = 0; i < 20000; ++i) {
    const double end = often.end_of_window(0.1 * i);
    if (i % 7000 == 0) // after more periods than are looked at
      EXPECT_EQ(rarely.end_of_window(0.1 * i), end);
  }
  const double late = 1e12; // drawing all windows until then would take hours
  EXPECT_LT(rarely.end_of_window(late), late + 100);
}

TEST(Failure, TakesItsShareOfTheTime)
{
  for (const double sigma : {0.0, 0.6, 1.5})
    expect_share(0.5, sigma, [&](uint64_t seed) {
      FailureClock clock({{"f"}, 0, 0, 0, 100, 50, sigma, {}, 0, 0}, seed, 0);
      double away = 0;
      double end  = 0;
      while (end < 1e5) {
        const double begin = clock.next();
        EXPECT_GE(begin, end); // it is back before it fails again
        const double length = clock.happen();
        end                 = begin + length;
        away += std::min(length, 1e5 - begin);
      }
      return away / 1e5;
    });
}

} // namespace
} // namespace iocast
