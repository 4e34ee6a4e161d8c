// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/sharpness.hpp"
#include "workload/permutation.hpp"
#include "workload/random.hpp"
#include "workload/tree.hpp"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <set>
#include <string>

namespace iocast {
namespace {

std::string name(const Tree& tree, uint32_t directory)
{
  char text[256];
  return {text, tree.name(directory, text)};
}

TEST(Tree, RegularByHand)
{
  // 0 holds 1 and 4; 1 holds 2 and 3; 4 holds 5 and 6. Three files in each.
  const Tree tree = Tree::regular(2, 2, 3);
  ASSERT_EQ(tree.directories(), 7U);
  EXPECT_EQ(tree.files(), 21U);
  const std::vector<uint32_t> parents{0, 0, 1, 1, 0, 4, 4};
  const std::vector<uint32_t> after{7, 4, 3, 4, 7, 6, 7};
  for (uint32_t d = 0; d < 7; ++d) {
    EXPECT_EQ(tree.parent(d), parents[d]);
    EXPECT_EQ(tree.after(d), after[d]);
    EXPECT_EQ(tree.files_in(d), 3U);
    EXPECT_EQ(tree.directories_in(d), d == 0 || d == 1 || d == 4 ? 2U : 0U);
  }
  EXPECT_EQ(name(tree, 0), "");
  EXPECT_EQ(name(tree, 6), "/4/6");
  EXPECT_EQ(tree.longest_name(), 4U);
  EXPECT_EQ(tree.directory_of(20), 6U);
  EXPECT_EQ(Tree::regular(0, 5, 4).directories(), 1U);
  EXPECT_EQ(Tree::regular(3, 1, 0).directories(), 4U);
}

TEST(Tree, NumbersAreThoseOfADepthFirstWalk)
{
  for (uint64_t seed : {0, 1, 2}) {
    const Tree tree = Tree::grown(200, 1000, seed);
    std::vector<std::vector<uint32_t>> in(200);
    for (uint32_t d = 1; d < 200; ++d) {
      ASSERT_LT(tree.parent(d), d);
      in[tree.parent(d)].push_back(d);
    }
    std::vector<uint32_t> walked;
    std::vector<uint32_t> stack{0};
    while (!stack.empty()) {
      const uint32_t d = stack.back();
      stack.pop_back();
      walked.push_back(d);
      EXPECT_EQ(tree.directories_in(d), in[d].size());
      stack.insert(stack.end(), in[d].rbegin(), in[d].rend());
    }
    for (uint32_t d = 0; d < 200; ++d)
      ASSERT_EQ(walked[d], d);
    uint64_t file    = 0;
    uint64_t longest = 0;
    for (uint32_t d = 0; d < 200; ++d) {
      for (uint64_t i = 0; i < tree.files_in(d); ++i)
        ASSERT_EQ(tree.directory_of(file++), d);
      longest = std::max<uint64_t>(longest, name(tree, d).size());
    }
    EXPECT_EQ(file, 1000U);
    EXPECT_EQ(tree.longest_name(), longest);
  }
}

TEST(Tree, GrowsAsTheModelSays)
{
  // With weights 1 + C(d) the share of directories with none in them tends to 2/3; with files of density 2/(1+x)^3 in
  // units of the mean, quartiles are at 1/sqrt(3/4)-1, 1/sqrt(1/2)-1 and 1. Averages of 40 trees of 1000; their spread
  // from the trees themselves, the interval 4 standard errors to each side: a false alarm in 16,000 for each figure.
  struct Sample {
    double sum = 0, squares = 0;
    void add(double x) { sum += x, squares += x * x; }
  };
  constexpr int trees = 40;
  Sample leaves, first_quartile, third_quartile;
  for (uint64_t seed = 0; seed < trees; ++seed) {
    const Tree tree = Tree::grown(1000, 10'000'000, seed);
    double none     = 0;
    std::vector<double> shares;
    for (uint32_t d = 0; d < 1000; ++d) {
      none += tree.directories_in(d) == 0;
      shares.push_back(static_cast<double>(tree.files_in(d)));
    }
    std::sort(shares.begin(), shares.end());
    // A directory's part depends on the sum of all, which cancels in ratios of quantiles.
    leaves.add(none / 1000);
    first_quartile.add(shares[250] / shares[500]);
    third_quartile.add(shares[750] / shares[500]);
  }
  auto expect = [](const char* what, const Sample& sample, double value) {
    const double mean  = sample.sum / trees;
    const double error = std::sqrt((sample.squares / trees - mean * mean) / (trees - 1));
    expect_within(what, mean, value, 4, error, 0.001); // 0.001: of a thousand directories, not infinitely many
  };
  const double median = std::sqrt(2.0) - 1;
  expect("share of leaves", leaves, 2.0 / 3);
  expect("first quartile over median", first_quartile, (std::sqrt(4.0 / 3) - 1) / median);
  expect("third quartile over median", third_quartile, 1 / median);
}

Permutation::Key key_of(uint32_t who)
{
  return random_words(7, Stream::order, who, 0);
}

TEST(Permutation, IsOne)
{
  for (uint64_t n : {1, 2, 3, 4, 5, 17, 100, 1000, 65537}) {
    const Permutation order(n);
    std::set<uint64_t> seen;
    for (uint64_t i = 0; i < n; ++i)
      seen.insert(order(i, key_of(3)));
    EXPECT_EQ(seen.size(), n);
    EXPECT_EQ(*seen.rbegin(), n - 1);
  }
  const Permutation huge(uint64_t{1} << 62);
  EXPECT_LT(huge(12345, key_of(0)), uint64_t{1} << 62);
  EXPECT_NE(huge(12345, key_of(0)), huge(12345, key_of(1)));
}

TEST(Permutation, IsRandom)
{
  // Of 6000 orders of 6 things, where does the first one go, and the pair of the first two? Chi-square against equal
  // chances: 5 and 29 degrees of freedom, at a false alarm rate of 1 in 10,000 each (25.7 and 66.2).
  std::vector<double> first(6), pair(36);
  const Permutation order(6);
  constexpr uint32_t draws = 6000;
  for (uint32_t who = 0; who < draws; ++who) {
    const auto key = key_of(who);
    ++first[order(0, key)];
    ++pair[order(0, key) * 6 + order(1, key)];
  }
  auto chi_square = [](const std::vector<double>& counts, double cells) {
    double sum = 0;
    for (const double count : counts)
      sum += count > 0 || cells == static_cast<double>(counts.size())
                 ? (count - draws / cells) * (count - draws / cells) / (draws / cells)
                 : 0;
    return sum;
  };
  EXPECT_LT(chi_square(first, 6), 25.7);
  EXPECT_LT(chi_square(pair, 30), 66.2);
}

} // namespace
} // namespace iocast
