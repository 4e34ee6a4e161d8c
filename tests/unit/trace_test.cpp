// SPDX-License-Identifier: Apache-2.0
//
// Traces: how they are coded, written, read, and replayed.
#include "input/error.hpp"
#include "profile/op_trace.hpp"
#include "tests/contract/streams.hpp"
#include "workload/random.hpp"
#include "workload/workload.hpp"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>
#include <sstream>
#include <unistd.h>

namespace fs = std::filesystem;

namespace iocast {
namespace {

/// A directory that goes with the test.
class Trace : public testing::Test {
protected:
  Trace() : directory_(fs::temp_directory_path() / ("iocast-trace-" + std::to_string(getpid())))
  {
    fs::create_directory(directory_);
  }
  ~Trace() override { fs::remove_all(directory_); }
  std::string file(const std::string& name = "ops.h5") const { return (directory_ / name).string(); }

  /// As if all ranks had run the workload, with times like a file system's.
  std::string recorded(const Workload& workload, const Placement& placement, const std::string& name = "ops.h5") const
  {
    const auto pattern = workload.make(placement);
    OpTrace trace(placement.ranks);
    for (uint32_t rank = 0; rank < placement.ranks; ++rank) {
      int64_t now    = 5'000'000;
      uint64_t count = 0;
      for (const auto& op : stream_of(*pattern, rank)) {
        const auto words = random_words(0, Stream::service, rank, count++);
        const auto u     = to_uniform(words[0]);
        const auto ns =
            op.kind == OpKind::phase ? 0 : static_cast<int64_t>(3000 * std::exp(0.4 * std::log(u / (1 - u))));
        trace.add(rank, {op, now, ns, op.kind == OpKind::stat && count % 97 == 0 ? 5 : 0});
        now += ns + (op.kind == OpKind::phase ? 0 : 250 + words[1] % 64);
      }
    }
    write_trace(trace, *pattern, file(name), about_trace("bench", workload.to_json(), placement, *pattern, 7));
    return file(name);
  }

private:
  fs::path directory_;
};

Workload small_md_workbench(const std::string& more = "repeats=2")
{
  return open_workload("md-workbench", {"datasets=2", "objects=6", "iterations=4", more});
}

TEST(OpCodec, GivesBackWhatItGot)
{
  std::vector<TracedOp> traced;
  for (uint32_t i = 0; i < 2000; ++i) {
    const auto a = random_words(1, Stream::service, 0, 2 * i);
    const auto b = random_words(1, Stream::service, 0, 2 * i + 1);
    TracedOp one;
    one.op = {static_cast<OpKind>(a[0] % op_count), uint64_t{a[1]} << a[2] % 33, a[3], uint64_t{b[0]} << b[1] % 33,
              uint64_t{b[2]} << b[3] % 33};
    one.op.flags  = a[0] >> 24;
    one.op.count  = a[1] % 3 ? 1 : b[0];
    one.op.stride = a[1] % 3 ? 0 : UINT64_MAX - b[1];
    one.start_ns  = static_cast<int64_t>(b[3]) - (i % 5 ? 0 : 4'000'000'000);
    one.ns        = a[3];
    one.error     = i % 7 ? 0 : static_cast<int32_t>(a[2]);
    traced.push_back(one);
  }
  OpCodec writes, reads;
  std::vector<unsigned char> bytes(traced.size() * OpCodec::most_bytes);
  auto* end = bytes.data();
  for (const auto& one : traced)
    end = writes.encode(one, end);
  const unsigned char* at = bytes.data();
  for (const auto& one : traced) {
    TracedOp read;
    at = reads.decode(at, read);
    ASSERT_EQ(read, one);
  }
  EXPECT_EQ(at, end);
}

TEST_F(Trace, IsReadAsItWasWritten)
{
  // More than fits in the buffers of a rank, and in one chunk of the file.
  const auto workload = open_workload("md-workbench", {"datasets=3", "objects=9000", "iterations=9000"});
  const Placement placement{3, 2};
  const auto reader  = ops_file::open_file(recorded(workload, placement));
  const auto pattern = workload.make(placement);
  EXPECT_EQ(reader->about()["workload"]["pattern"], "md-workbench");
  EXPECT_EQ(reader->index().ranks(), 3U);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    std::vector<Op> ops;
    int64_t end = 0;
    reader->visit(reader->index().first_row[rank], reader->index().first_row[rank + 1], [&](const ops_file::Row& row) {
      EXPECT_EQ(row.rank, rank);
      EXPECT_GE(row.traced.start_ns, end);
      end = row.traced.start_ns + row.traced.ns;
      ops.push_back(row.traced.op);
    });
    EXPECT_EQ(ops, stream_of(*pattern, rank));
  }
  const double bytes = static_cast<double>(fs::file_size(file())) / static_cast<double>(reader->index().rows());
  printf("%.2f bytes an operation of %lu\n", bytes, static_cast<unsigned long>(reader->index().rows()));
  EXPECT_LE(bytes, 8);
}

TEST_F(Trace, SameOperationsAreTheSameBytes)
{
  auto bytes = [&](const std::string& name) {
    std::ifstream in(recorded(small_md_workbench(), {4, 4}, name));
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  EXPECT_EQ(bytes("a"), bytes("b"));
}

TEST_F(Trace, DamagedFilesAreRefused)
{
  auto words_of = [](const std::string& name) -> std::string {
    try {
      open_workload("replay", {"file=" + name}).make({1, 1});
      return "";
    } catch (const InputError& error) {
      return error.what();
    }
  };
  const auto whole = recorded(small_md_workbench(), {2, 2});
  EXPECT_EQ(words_of(whole), "");
  std::ifstream in(whole);
  const std::string bytes(std::istreambuf_iterator<char>(in), {});
  for (const size_t kept : {size_t{0}, size_t{100}, bytes.size() / 2, bytes.size() - 1}) {
    std::ofstream(file("cut.h5")) << bytes.substr(0, kept);
    EXPECT_NE(words_of(file("cut.h5")).find("was cut off"), std::string::npos) << kept;
  }
  auto changed     = bytes; // the name of an operation in the file's type
  const auto place = changed.find("rmdir");
  ASSERT_NE(place, std::string::npos);
  for (size_t at = place; at != std::string::npos; at = changed.find("rmdir", at))
    changed.replace(at, 5, "mvdir");
  std::ofstream(file("unknown.h5")) << changed;
  EXPECT_NE(words_of(file("unknown.h5")).find("the operation 'mvdir', which this program doesn't know"),
            std::string::npos)
      << words_of(file("unknown.h5"));
  EXPECT_NE(words_of(file("none.h5")).find("No such file"), std::string::npos);
  EXPECT_NE(words_of("").find("set file"), std::string::npos);
  std::ofstream(file("text.h5")) << "no HDF5 at all";
  EXPECT_NE(words_of(file("text.h5")).find("no HDF5 file"), std::string::npos);
}

TEST_F(Trace, ReplayGivesTheRecordedStreams)
{
  for (const char* name : {"md-workbench", "postmark", "operation-mix", "mix"})
    for (const auto& small : pattern_named(name).small) {
      std::vector<std::string> settings;
      std::istringstream words(small);
      for (std::string word; words >> word;)
        settings.push_back(word);
      const auto workload = open_workload(name, settings);
      const Placement placement{5, 2};
      const auto pattern = workload.make(placement);
      const auto trace   = recorded(workload, placement);
      const auto replay  = open_workload("replay", {"file=" + trace}).make(placement);
      char one[512], other[512];
      for (uint32_t rank = 0; rank < 5; ++rank) {
        const auto ops = stream_of(*replay, rank);
        EXPECT_EQ(ops, stream_of(*pattern, rank)) << name << " " << small;
        for (const auto& op : ops)
          if (op.kind != OpKind::phase) {
            EXPECT_EQ(std::string(one, replay->name_dataset(op.dataset, one)),
                      std::string(other, pattern->name_dataset(op.dataset, other)));
            EXPECT_EQ(std::string(one, replay->name_object_in(op.dataset, op.object, one)),
                      std::string(other, pattern->name_object_in(op.dataset, op.object, other)));
          }
      }
      for (const uint32_t ranks : {1U, 3U, 5U, 15U}) {
        SCOPED_TRACE(std::string(name) + " " + small + " replayed by " + std::to_string(ranks));
        expect_rules_kept(*open_workload("replay", {"file=" + trace}).make({ranks, 4}), ranks);
      }
      EXPECT_THROW(open_workload("replay", {"file=" + trace}).make({7, 7}), InputError);
    }
}

TEST_F(Trace, TimingByHand)
{
  const auto workload = open_workload("md-workbench", {"datasets=1", "objects=1", "iterations=1", "phases=benchmark"});
  const auto pattern  = workload.make({1, 1});
  const auto ops      = stream_of(*pattern, 0); // phase, stat, read, unlink, create
  OpTrace trace(1);
  int64_t start = 1000;
  for (const auto& op : ops) {
    trace.add(0, {op, start, op.kind == OpKind::phase ? 0 : 30, 0});
    start += 100;
  }
  write_trace(trace, *pattern, file(), about_trace("bench", workload.to_json(), {1, 1}, *pattern, 0));
  auto waits = [&](const std::string& timing, const std::string& scale) {
    std::vector<uint64_t> sizes;
    const auto replay =
        open_workload("replay", {"file=" + file(), "timing=" + timing, "time_scale=" + scale}).make({1, 1});
    for (const auto& op : stream_of(*replay, 0))
      if (op.kind == OpKind::think) {
        EXPECT_EQ(op.flags, timing == "start" ? until : 0);
        sizes.push_back(op.size);
      }
    for (const auto& [kind, count] : replay->footprint().operations)
      if (kind == OpKind::think)
        EXPECT_EQ(count, sizes.size());
    return sizes;
  };
  EXPECT_EQ(waits("fast", "1"), std::vector<uint64_t>{});
  EXPECT_EQ(waits("think", "1"), (std::vector<uint64_t>{100, 70, 70, 70}));
  EXPECT_EQ(waits("think", "0.5"), (std::vector<uint64_t>{50, 35, 35, 35}));
  EXPECT_EQ(waits("start", "2"), (std::vector<uint64_t>{200, 400, 600, 800}));
  for (const auto& bad :
       {std::vector<std::string>{"timing=soon"}, {"timing=start", "rate=5/s"}, {"timing=think", "waiting_factor=1"}})
    EXPECT_THROW(
        {
          auto settings = bad;
          settings.push_back("file=" + file());
          open_workload("replay", settings).make({1, 1});
        },
        InputError);
}

TEST_F(Trace, TimesThatCantBeAddedAreRefused)
{
  const auto workload = open_workload("md-workbench", {"datasets=1", "objects=1", "iterations=1", "phases=benchmark"});
  const auto pattern  = workload.make({1, 1});
  OpTrace trace(1);
  for (const auto& op : stream_of(*pattern, 0))
    trace.add(0, {op, 1000, op.kind == OpKind::unlink ? std::numeric_limits<int64_t>::max() - 1000 : 0, 0});
  write_trace(trace, *pattern, file(), about_trace("bench", workload.to_json(), {1, 1}, *pattern, 0));
  EXPECT_THROW(open_workload("replay", {"file=" + file(), "timing=think"}).make({1, 1}), InputError);
}

TEST_F(Trace, ScaledTimesStayTimes)
{
  const auto workload = open_workload("md-workbench", {"datasets=1", "objects=1", "iterations=1", "phases=benchmark"});
  const auto pattern  = workload.make({1, 1});
  OpTrace trace(1);
  for (int64_t start = 0; const auto& op : stream_of(*pattern, 0))
    trace.add(0, {op, start++ << 50, 0, 0});
  write_trace(trace, *pattern, file(), about_trace("bench", workload.to_json(), {1, 1}, *pattern, 0));
  const auto replay = open_workload("replay", {"file=" + file(), "timing=start", "time_scale=1e6"}).make({1, 1});
  for (const auto& op : stream_of(*replay, 0))
    if (op.kind == OpKind::think)
      EXPECT_EQ(op.size, uint64_t{1} << 61);
}

TEST_F(Trace, OutgrowsMemoryOnlyWhereThereIsRoom)
{
  const char* before = std::getenv("TMPDIR");
  const std::string kept(before ? before : "/tmp");
  setenv("TMPDIR", file("nowhere").c_str(), 1);
  OpTrace trace(1);
  try {
    for (uint64_t object = 0; object < 1'000'000; ++object)
      trace.add(0, {{OpKind::stat, 0, object * 7919}, static_cast<int64_t>(object) * 1000, 500, 0});
    ADD_FAILURE() << "a million operations need a scratch file";
  } catch (const RunError& error) {
    EXPECT_NE(std::string(error.what()).find("Set TMPDIR to a directory with room."), std::string::npos);
  }
  for (uint64_t object = 0; object < 100; ++object) // the records that follow find the buffer with room again
    EXPECT_NO_THROW(trace.add(0, {{OpKind::stat, 0, object * 7919}, static_cast<int64_t>(object) * 1000, 500, 0}));
  setenv("TMPDIR", kept.c_str(), 1);
}

} // namespace
} // namespace iocast
