// SPDX-License-Identifier: Apache-2.0
//
// Popularity by Zipf's law in the patterns that draw by it: counts against the law's, by Pearson's test.
#include "tests/contract/streams.hpp"
#include "tests/unit/sharpness.hpp"
#include "workload/workload.hpp"

#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <vector>

namespace iocast {
namespace {

/// Expects counts of ranks of popularity, the most popular first, that Pearson's statistic allows but for a false alarm
/// in a million. Records the relative error of the largest share that it detects.
void expect_zipf(const std::string& what, const std::vector<double>& counts, double s)
{
  const double draws = std::accumulate(counts.begin(), counts.end(), 0.0);
  double sum         = 0;
  for (size_t k = 1; k <= counts.size(); ++k)
    sum += std::pow(static_cast<double>(k), -s);
  double statistic = 0;
  for (size_t k = 1; k <= counts.size(); ++k) {
    const double expected = draws * std::pow(static_cast<double>(k), -s) / sum;
    statistic += (counts[k - 1] - expected) * (counts[k - 1] - expected) / expected;
  }
  const double degrees = static_cast<double>(counts.size()) - 1;
  const double allowed = quantile(complement(boost::math::chi_squared(degrees), 1e-6));
  EXPECT_LE(statistic, allowed) << what;
  // An error of e in the first share adds draws x share x e^2 to the statistic's mean; its deviation is sqrt(2
  // degrees).
  record_sharpness(what, std::sqrt((allowed - degrees + 1.2816 * std::sqrt(2 * degrees)) * sum / draws));
}

TEST(Popularity, FilesOfAnOperationMixFollowTheLaw)
{
  for (const char* s : {"0.5", "1", "2"}) {
    const auto pattern =
        open_workload("operation-mix", {"files=40", "operations=100000", "stat=1", "read=0", "create=0", "unlink=0",
                                        "append=0", "phases=benchmark", fmt::format("zipf={}", s)})
            .make({1, 1});
    std::vector<double> counts(40);
    for (const auto& op : stream_of(*pattern, 0))
      if (op.kind == OpKind::stat)
        ++counts.at(op.object);
    expect_zipf(s, counts, std::stod(s));
  }
}

TEST(Popularity, AllProcessesFindTheSameBlocksOfAnApplicationPopular)
{
  std::map<uint64_t, int> first; // blocks that are the most popular ones, by seed
  for (const char* seed : {"1", "2", "3", "4"}) {
    const auto pattern =
        open_workload("application", {"block_size=1kB", "per_process=40MB", "layout=random", "zipf=1.1", "run=read",
                                      fmt::format("seed={}", seed), "phases=benchmark"})
            .make({2, 2});
    std::vector<std::vector<uint64_t>> orders;
    for (uint32_t rank = 0; rank < 2; ++rank) {
      std::map<uint64_t, double> counted;
      for (const auto& op : stream_of(*pattern, rank))
        if (op.kind == OpKind::pread)
          ++counted[op.offset];
      std::vector<std::pair<double, uint64_t>> sorted;
      for (const auto& [offset, count] : counted)
        sorted.emplace_back(count, offset);
      std::sort(sorted.rbegin(), sorted.rend());
      auto& order = orders.emplace_back();
      for (size_t i = 0; i < 4; ++i) // whose counts differ by more than ten standard deviations
        order.push_back(sorted.at(i).second);
    }
    EXPECT_EQ(orders[0], orders[1]);
    ++first[orders[0][0]];
  }
  EXPECT_GT(first.size(), 1U);
}

TEST(Popularity, BlocksOfAnApplicationFollowTheLaw)
{
  const auto pattern = open_workload("application", {"block_size=1kB", "per_process=8kB", "passes=12500",
                                                     "layout=random", "zipf=1.1", "run=read", "phases=benchmark"})
                           .make({1, 1});
  std::map<uint64_t, double> counted;
  for (const auto& op : stream_of(*pattern, 0))
    if (op.kind == OpKind::pread)
      ++counted[op.offset];
  std::vector<double> counts;
  for (const auto& [offset, count] : counted)
    counts.push_back(count);
  std::sort(counts.rbegin(), counts.rend()); // neighbours differ by more than six standard deviations
  ASSERT_EQ(counts.size(), 8U);
  expect_zipf("zipf=1.1", counts, 1.1);
}

} // namespace
} // namespace iocast
