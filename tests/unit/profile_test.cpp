// SPDX-License-Identifier: Apache-2.0
#include "profile/recorder.hpp"
#include "profile/run_directory.hpp"
#include "profile/summary.hpp"
#include "workload/random.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <sstream>
#include <unistd.h>

namespace iocast {
namespace {

TEST(Histogram, BucketsAreAtMostAThousandthWide)
{
  for (int64_t ns = 1; ns < Histogram::highest_ns; ns += 1 + ns / 7)
    EXPECT_LE(std::abs(Histogram::middle_ns(Histogram::index_of(ns)) - static_cast<double>(ns)),
              0.0005 * static_cast<double>(ns) + 0.5)
        << ns;
  EXPECT_LT(Histogram::index_of(Histogram::highest_ns), Histogram::size);
}

TEST(Histogram, QuantilesAreThoseOfTheSamples)
{
  Histogram histogram;
  std::vector<int64_t> samples;
  for (uint64_t i = 0; i < 5000; ++i) {
    samples.push_back(1 + random_words(1, Stream::service, 0, i)[0] % 3'000'000);
    histogram.record(samples.back());
  }
  std::sort(samples.begin(), samples.end());
  for (const double q : {0.01, 0.5, 0.75, 0.95, 0.99, 1.0}) {
    const auto exact = static_cast<double>(samples[static_cast<size_t>(std::ceil(q * 5000)) - 1]);
    EXPECT_NEAR(histogram.quantile_ns(q), exact, 0.001 * exact + 1) << q;
  }
  EXPECT_EQ(histogram.max_ns(), samples.back());
  EXPECT_EQ(histogram.encode().substr(0, 8), "HISTFAAA");
}

TEST(Histogram, CountsThatAreSetAreThoseThatWereRecorded)
{
  Histogram recorded, set, roomy;
  roomy.make_room();
  for (int64_t ns = 3; ns < Histogram::highest_ns; ns *= 7) {
    recorded.record(ns);
    roomy.record(ns);
  }
  set.set_totals(recorded.count(), recorded.sum_ns(), recorded.min_ns(), recorded.max_ns());
  EXPECT_TRUE(set.counts(5, 5).empty());
  const auto [first, last] = recorded.used();
  for (size_t i = first; auto& count : set.counts(first, last))
    count = recorded.count_at(i++);
  EXPECT_EQ(set.encode(), recorded.encode());
  EXPECT_EQ(roomy.encode(), recorded.encode());
  EXPECT_EQ(set.quantile_ns(0.5), recorded.quantile_ns(0.5));
}

TEST(Histogram, MergingIsRecordingTogether)
{
  Histogram a, b, both;
  for (int64_t i = 1; i < 1000; ++i) { // up, down and up again: either may have to make room for the other's
    const int64_t ns = i % 2 ? i * i : 1'000'000'000'000 / i;
    (i % 3 ? a : b).record(ns);
    both.record(ns);
  }
  a.merge(b);
  a.merge(Histogram{});
  for (size_t i = 0; i < Histogram::size; ++i)
    ASSERT_EQ(a.count_at(i), both.count_at(i)) << i;
  EXPECT_EQ(a.encode(), both.encode());
  EXPECT_EQ(a.count(), both.count());
  EXPECT_EQ(a.min_ns(), both.min_ns());
}

TEST(Histogram, WhatLastsLongerThanADayIsThatLongInMeanMinimumAndMaximum)
{
  constexpr int64_t second = 1'000'000'000;
  Histogram longer, shorter;
  for (const int64_t seconds : {200'000, 300'000})
    longer.record(seconds * second);
  EXPECT_EQ(longer.beyond(), 2U);
  EXPECT_EQ(longer.min_ns(), 200'000 * second);
  EXPECT_EQ(longer.max_ns(), 300'000 * second);
  EXPECT_EQ(longer.mean_ns(), 250'000.0 * second);
  EXPECT_GE(longer.quantile_ns(0.5), 200'000.0 * second);
  shorter.record(second);
  shorter.merge(longer);
  EXPECT_EQ(shorter.count(), 3U);
  EXPECT_EQ(shorter.beyond(), 2U);
  EXPECT_EQ(shorter.min_ns(), second);
  EXPECT_EQ(shorter.max_ns(), 300'000 * second);
  EXPECT_EQ(shorter.encode().substr(0, 8), "HISTFAAA");

  PhaseRecorder recorder;
  recorder.record({OpKind::stat, 0, 0, 0}, 0, {0, 200'000 * second, {}});
  const auto summary = phase_to_json({}, recorder)["latency"]["stat"];
  for (const char* key : {"mean", "min", "max"})
    EXPECT_NEAR(summary[key].get<double>(), 200'000, 1e-3) << key;
  EXPECT_EQ(summary["beyond_a_day"], 1);
}

TEST(Timeline, WideningKeepsEveryOperation)
{
  Timeline timeline;
  uint64_t recorded = 0;
  for (int64_t end = 0; end < 600'000'000'000; end += 777'777'777, ++recorded)
    timeline.record(end, end % 1000);
  uint64_t counted = 0;
  for (const auto& bin : timeline.data())
    counted += bin.count;
  EXPECT_EQ(counted, recorded);
  EXPECT_GE(timeline.width_ns() * static_cast<int64_t>(Timeline::bins), 600'000'000'000);
}

TEST(Recorder, ErrorsNeverEnterLatencies)
{
  PhaseRecorder recorder;
  recorder.record_error(OpKind::stat);
  recorder.record({OpKind::stat, 0, 0, 0}, 0, {0, 100, {}});
  EXPECT_EQ(recorder.operations(), 1U);
  EXPECT_EQ(recorder.errors(), 1U);
}

TEST(Recorder, CountsTheBytesOfWhatSucceeded)
{
  PhaseRecorder recorder;
  Op write{OpKind::pwrite, 0, 0, 1000};
  write.count = 3;
  recorder.record(write, 0, {0, 100, {}});
  recorder.record_stretch({OpKind::pwrite, 0, 0, 500}, 0, 0, std::array<int64_t, 3>{0, 10, 20});
  recorder.record({OpKind::create, 0, 0, 4096}, 0, {0, 100, {}});
  recorder.record({OpKind::stat, 0, 0, 4096}, 0, {0, 100, {}});
  recorder.record_error(OpKind::pread);
  EXPECT_EQ(recorder.of_kind(OpKind::pwrite).bytes, 4000U);
  EXPECT_EQ(recorder.of_kind(OpKind::create).bytes, 4096U);
  EXPECT_EQ(recorder.of_kind(OpKind::stat).bytes, 0U);
  EXPECT_EQ(recorder.of_kind(OpKind::pread).bytes, 0U);

  PhaseResult result;
  result.name     = "write";
  result.seconds  = 2;
  const auto json = phase_to_json(std::move(result), recorder);
  EXPECT_EQ(json["by_operation"]["pwrite"],
            (nlohmann::ordered_json{{"count", 3}, {"rate", 1.5}, {"bytes", 4000}, {"bytes_per_second", 2000.0}}));
  EXPECT_EQ(json["by_operation"]["stat"], (nlohmann::ordered_json{{"count", 1}, {"rate", 0.5}}));
}

TEST(Recorder, KeepsTheSlowestWhole)
{
  PhaseRecorder recorder;
  for (int64_t i = 1; i <= 10'000; ++i)
    recorder.record({OpKind::stat, 0, static_cast<uint64_t>(i), 0}, 0, {0, i, {}});
  recorder.trim_slow();
  ASSERT_EQ(recorder.slow().size(), PhaseRecorder::slow_kept);
  for (size_t i = 0; i < PhaseRecorder::slow_kept; ++i)
    EXPECT_EQ(recorder.slow()[i].object, 10'000 - i);
}

TEST(RunDirectory, TimesOfManyRanksAndNodesAreToldAsPercentiles)
{
  PhaseResult result;
  result.ranks_per_node = 2;
  for (uint32_t rank = 0; rank < 20'002; ++rank)
    result.rank_seconds.push_back(1 + (7919 * rank) % 20'002); // each number once
  const auto many = phase_to_json(result, PhaseRecorder());
  ASSERT_EQ(many.count("rank_seconds") + many.count("node_seconds"), 0U);
  const auto& percentiles = many["rank_seconds_quantiles"];
  ASSERT_EQ(percentiles.size(), 101U);
  for (size_t percent = 0; percent <= 100; ++percent)
    EXPECT_EQ(percentiles[percent], 1 + percent * 20'001 / 100);
  EXPECT_EQ(many["node_seconds_quantiles"].size(), 101U);

  result.rank_seconds.resize(20'000);
  const auto few = phase_to_json(result, PhaseRecorder());
  EXPECT_EQ(few["node_seconds"].size(), 10'000U);
  EXPECT_EQ(few.count("node_seconds_quantiles"), 0U);
}

TEST(RunDirectory, BalanceIsOfRanksThatHadOperations)
{
  const auto balance_of = [](std::vector<double> seconds) {
    PhaseResult result;
    result.ranks_per_node = 2;
    result.rank_seconds   = std::move(seconds);
    const auto json       = phase_to_json(result, PhaseRecorder());
    return std::pair{json["balance"].get<double>(), json.value("node_balance", -1.0)};
  };
  EXPECT_EQ(balance_of({2, 1, 0, 0}), (std::pair{0.5, 1.0}));
  EXPECT_EQ(balance_of({2, 0, 1, 1}), (std::pair{0.5, 0.5}));
  EXPECT_EQ(balance_of({0, 0, 0, 0}), (std::pair{1.0, 1.0}));
  EXPECT_EQ(balance_of({2, 2, 2, 2}), (std::pair{1.0, 1.0}));
}

/// What the process has handed to write(2) so far.
uint64_t bytes_written()
{
  std::ifstream io("/proc/self/io");
  for (std::string word; io >> word;)
    if (word == "wchar:") {
      uint64_t bytes = 0;
      io >> bytes;
      return bytes;
    }
  return 0;
}

TEST(RunDirectory, WritesAboutAsMuchAsItKeepsHoweverManyPhases)
{
  const auto path       = std::filesystem::temp_directory_path() / fmt::format("iocast-phases-{}", getpid());
  const uint64_t before = bytes_written();
  {
    RunDirectory directory(path);
    directory.begin({{"kind", "run"}});
    for (uint32_t repeat = 1; repeat <= 400; ++repeat) {
      PhaseRecorder recorder;
      recorder.record({OpKind::stat, 0, 0, 0}, 0, {0, 1000 + repeat, {}});
      PhaseResult result;
      result.name         = "benchmark";
      result.repeat       = repeat;
      result.rank_seconds = {1e-6};
      directory.add_phase(result, recorder);
      if (repeat == 10) // a kill now would cost nothing
        EXPECT_EQ(nlohmann::json::parse(std::ifstream(path / "run.json"))["phases"].size(), 10U);
    }
    directory.end("complete");
  }
  const uint64_t written = bytes_written() - before;
  const auto kept = std::filesystem::file_size(path / "run.json") + std::filesystem::file_size(path / "latency.hlog");
  EXPECT_GT(written, kept / 2);
  EXPECT_LT(written, 5 * kept);
  const auto run = nlohmann::json::parse(std::ifstream(path / "run.json"));
  EXPECT_EQ(run["phases"].size(), 400U);
  EXPECT_EQ(run["status"], "complete");
  size_t tags = 0;
  std::ifstream log(path / "latency.hlog");
  for (std::string line; std::getline(log, line);)
    tags += line.starts_with("Tag=benchmark.stat,");
  EXPECT_EQ(tags, 400U);
  std::filesystem::remove_all(path);
}

TEST(RunDirectory, WhatIsWrittenStaysInTheDirectoryThatWasMade)
{
  const auto path = std::filesystem::temp_directory_path() / fmt::format("iocast-moved-{}", getpid());
  RunDirectory directory(path);
  directory.begin({{"kind", "run"}});
  auto moved = path;
  moved += "-away";
  std::filesystem::rename(path, moved);
  std::filesystem::create_directory(path); // of a run that came later
  directory.end("interrupted");
  EXPECT_TRUE(std::filesystem::is_empty(path));
  EXPECT_EQ(nlohmann::json::parse(std::ifstream(moved / "run.json"))["status"], "interrupted");
  std::filesystem::remove_all(path);
  std::filesystem::remove_all(moved);
}

TEST(Summary, ColumnsDoNotTouch)
{
  using Json = nlohmann::ordered_json;
  for (const double size : {1e-9, 1.0, 85523.4, 999'949.9, 123'456'789.0, 9.87e12}) {
    const Json latency{{"count", static_cast<uint64_t>(size * 1e3)},
                       {"mean", size},
                       {"q50", size},
                       {"q75", size},
                       {"q95", size},
                       {"q99", size},
                       {"max", size}};
    Json phase{{"name", "benchmark"}, {"repeat", 0},  {"rate", size}, {"operations", 1},
               {"seconds", size},     {"balance", 1}, {"errors", 0}};
    phase["latency"]["create.write_of_a_long_name"] = phase["latency"]["create"] = latency;
    phase["by_operation"]["create"] = {{"rate", size}, {"bytes_per_second", size}};
    const Json run{{"workload", {{"name", "some"}}},
                   {"placement", {{"ranks", 1}, {"nodes", 1}}},
                   {"phases", Json::array({phase})}};
    std::istringstream lines(summary_text(run));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream columns(line);
      const std::vector<std::string> words{std::istream_iterator<std::string>(columns), {}};
      if (line.starts_with("  create")) { // rate and bandwidth have a unit behind a blank
        EXPECT_EQ(words.size(), 2 + 6 + 2 + 2) << line;
      } else if (line.starts_with("    .")) {
        EXPECT_EQ(words.size(), 2 + 6) << line;
      }
    }
  }
}

TEST(Summary, AFewOperationsASecondAreNotZero)
{
  using Json = nlohmann::ordered_json;
  for (const auto& [rate, text] : {std::pair{0.3, ": 0.3 operations/s"},
                                   {7.25, ": 7.25 operations/s"},
                                   {0.0, ": 0 operations/s"},
                                   {1234.4, ": 1234 operations/s"}}) {
    const Json phase{{"name", "compute"}, {"repeat", 0},  {"rate", rate}, {"operations", 1},
                     {"seconds", 10.0},   {"balance", 1}, {"errors", 0},  {"latency", Json::object()}};
    const Json run{{"workload", {{"name", "some"}}},
                   {"placement", {{"ranks", 1}, {"nodes", 1}}},
                   {"phases", Json::array({phase})}};
    EXPECT_NE(summary_text(run).find(text), std::string::npos) << summary_text(run);
  }
}

} // namespace
} // namespace iocast
