// SPDX-License-Identifier: Apache-2.0
#include "input/error.hpp"
#include "tests/unit/access_tally.hpp"
#include "tests/unit/sharpness.hpp"
#include "workload/workload.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <sstream>

namespace iocast {
namespace {

constexpr uint8_t written = OpFlag::for_writing | OpFlag::make_it;
constexpr uint8_t shared  = OpFlag::shared;

std::unique_ptr<Pattern> make(const std::string& workload, const std::string& settings,
                              const Placement& placement = {1, 1})
{
  return open_workload(workload, words(settings)).make(placement);
}

/// At most `most` operations of one rank from the phase of that name on, without the OpKind::phase before the first.
std::vector<Op> ops_of(const Pattern& pattern, uint32_t rank, const std::string& phase, size_t most = SIZE_MAX)
{
  Cursor cursor;
  cursor.rank = rank;
  std::vector<Op> ops;
  bool inside = false;
  for (Op op; ops.size() < most && pattern.next(cursor, op);)
    if (op.kind == OpKind::phase)
      inside = pattern.phases()[op.object].name == phase;
    else if (inside)
      ops.push_back(op);
  return ops;
}

std::vector<Op> of_kind(const std::vector<Op>& ops, OpKind kind)
{
  std::vector<Op> result;
  std::copy_if(ops.begin(), ops.end(), std::back_inserter(result), [kind](const Op& op) { return op.kind == kind; });
  return result;
}

std::vector<std::string> hpcs_workloads()
{
  std::vector<std::string> names;
  for (const auto& entry : patterns())
    if (entry.name.starts_with("hpcs-"))
      names.push_back(entry.name);
  for (const auto& entry : catalogue())
    if (entry.name.starts_with("hpcs-"))
      names.push_back(entry.name);
  return names;
}

const std::vector<Placement> placements{{1, 1}, {2, 2}, {3, 3}, {6, 2}, {7, 3}, {16, 16}};

// ---- what holds for all of them
// -------------------------------------------------------------------------------------------

TEST(Hpcs, FourteenScenariosAndFivePatterns)
{
  EXPECT_EQ(hpcs_workloads().size(), 14U + 5U);
}

/// One run on what earlier ones have left.
void carry_out(const Pattern& pattern, uint32_t ranks, StorageModel& storage)
{
  const auto run = whole_run(pattern, ranks, true);
  for (size_t phase = 0; phase < run.size(); ++phase)
    storage.phase(pattern.phases()[phase].name, run[phase]);
}

TEST(Hpcs, RunsMayBeTornApart)
{
  const std::vector<std::pair<std::string, std::vector<std::string>>> runs{
      {"hpcs-streaming", {"precreate,write", "read", "read", "cleanup"}},
      {"hpcs-streaming duplex=full", {"precreate,stream", "cleanup"}},
      {"hpcs-creation", {"precreate,create", "cleanup"}},
      {"hpcs-checkpoint", {"precreate,checkpoint", "restart", "cleanup"}},
      {"hpcs-checkpoint layout=own node_offset=1", {"precreate,checkpoint", "restart,cleanup"}},
      {"hpcs-tree", {"precreate", "cold", "dirty,cold,warm", "cleanup"}},
      {"hpcs-random", {"precreate,fill,write", "backwards-unaligned", "random-aligned,random-unaligned", "cleanup"}}};
  for (const auto& [given, parts] : runs)
    for (const auto& placement : placements) {
      SCOPED_TRACE(given);
      const auto name  = words(given).front();
      const auto small = pattern_named(name).small.front() + " most_seconds=0s" + given.substr(name.size());
      std::map<OpKind, uint64_t> promised;
      const auto whole = make(name, small, placement);
      StorageModel storage(*whole);
      try {
        for (const auto& phases : parts) {
          const auto pattern = make(name, small + " phases=" + phases, placement);
          carry_out(*pattern, placement.ranks, storage);
          for (const auto& [kind, count] : pattern->footprint().operations)
            promised[kind] += count;
          EXPECT_EQ(pattern->footprint().peak_objects, whole->footprint().peak_objects);
          EXPECT_EQ(pattern->footprint().peak_bytes, whole->footprint().peak_bytes);
          EXPECT_EQ(pattern->data_set(), whole->data_set());
        }
        storage.end();
      } catch (const Violation& violation) {
        ADD_FAILURE() << violation.what();
      }
      for (size_t kind = 1; kind < op_count; ++kind)
        EXPECT_EQ(promised[static_cast<OpKind>(kind)], storage.counts[kind]) << op_names[kind];
      EXPECT_EQ(whole->footprint().peak_bytes, storage.peak_bytes);
    }
}

TEST(Hpcs, CutPhasesLeaveNothingAndReadNothingThatIsNotThere)
{
  // Every operation is a place where time may be up.
  const std::vector<std::string> runs{"hpcs-streaming",
                                      "hpcs-streaming duplex=full",
                                      "hpcs-creation",
                                      "hpcs-creation one_directory=true",
                                      "hpcs-checkpoint",
                                      "hpcs-checkpoint layout=strided record=8000B",
                                      "hpcs-checkpoint layout=interleaved record=8000B together=all",
                                      "hpcs-checkpoint layout=own",
                                      "hpcs-checkpoint layout=own node_offset=1",
                                      "hpcs-tree",
                                      "hpcs-tree access=stat",
                                      "hpcs-random",
                                      "hpcs-random files=own"};
  for (const auto& given : runs)
    for (const auto& placement : {Placement{1, 1}, Placement{5, 2}})
      for (uint64_t moment = 0; moment < 25; ++moment) {
        SCOPED_TRACE(given + " " + std::to_string(moment));
        const auto name    = words(given).front();
        const auto small   = pattern_named(name).small.front() + given.substr(name.size());
        const auto pattern = make(name, small + " most_seconds=1s", placement);
        const auto run     = whole_run(*pattern, placement.ranks, true, [&](size_t phase, uint32_t rank) {
          return 1 + moment * (1 + (phase * 7 + rank * 5) % 3) / 3;
        });
        const auto storage = expect_rules_kept(*pattern, run);
        EXPECT_LE(storage.bytes_written, pattern->footprint().bytes_written);
        EXPECT_LE(storage.bytes_read, pattern->footprint().bytes_read);
      }
}

TEST(Hpcs, Refusals)
{
  auto refused = [](const std::string& workload, const std::string& settings, const std::string& word) {
    try {
      make(workload, settings, {4, 2});
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
      EXPECT_TRUE(std::string(error.what()).ends_with(".")) << error.what();
      return;
    }
    ADD_FAILURE() << workload << " " << settings << " was accepted";
  };
  refused("hpcs-streaming", "duplex=both", "half, full");
  refused("hpcs-streaming", "duplex=full phases=write", "precreate, stream, cleanup");
  refused("hpcs-streaming", "phases=precreate", "choose all of them or none");
  refused("hpcs-streaming", "phases=cleanup,read", "in the order");
  refused("hpcs-streaming", "phases=", "at least one");
  refused("hpcs-streaming", "most_seconds=1s phases=precreate,write", "most_seconds=0s");
  refused("hpcs-creation", "files=4000000000 scale=2", "too many");
  refused("hpcs-checkpoint", "layout=segmentd", "segmented");
  refused("hpcs-checkpoint", "together=opening-all", "opening, all");
  refused("hpcs-checkpoint", "layout=own together=all", "another layout");
  refused("hpcs-checkpoint", "memory=1000TB record=8B share=1", "larger record");
  refused("hpcs-checkpoint", "node_offset=3", "the run has 2 nodes. Set node_offset to at most 2.");
  refused("hpcs-tree", "access=look", "walk, stat");
  refused("hpcs-tree", "access=stat files=0", "at least 1");
  refused("hpcs-tree", "depth=60 branching=100", "at most 200");
  refused("hpcs-tree", "depth=9 branching=100", "too many directories");
  refused("hpcs-random", "memory=10kB times=1", "largest read");
  refused("hpcs-random", "read_low=64KiB read_high=1KiB", "size of a read");
  refused("hpcs-random", "sector=1MiB", "units of 1048576 B");
}

// ---- 1 to 3
// ---------------------------------------------------------------------------------------------------------------

TEST(HpcsStreaming, HalfDuplexByHand)
{
  const auto pattern = make("hpcs-01", "memory=10B block=10B times=2");
  const std::vector<Op> written_ops{flagged({OpKind::open, 0, 0}, written),
                                    {OpKind::pwrite, 0, 0, 10, 0},
                                    {OpKind::pwrite, 0, 0, 10, 10},
                                    {OpKind::fsync, 0, 0},
                                    {OpKind::close, 0, 0}};
  const std::vector<Op> read_ops{
      {OpKind::open, 0, 0}, {OpKind::pread, 0, 0, 10, 0}, {OpKind::pread, 0, 0, 10, 10}, {OpKind::close, 0, 0}};
  EXPECT_EQ(ops_of(*pattern, 0, "precreate"), (std::vector<Op>{{OpKind::mkdir, 0, 0}}));
  EXPECT_EQ(ops_of(*pattern, 0, "write"), written_ops);
  EXPECT_EQ(ops_of(*pattern, 0, "read"), read_ops);
  EXPECT_EQ(ops_of(*pattern, 0, "cleanup"), (std::vector<Op>{{OpKind::unlink, 0, 0}, {OpKind::rmdir, 0, 0}}));
}

TEST(HpcsStreaming, FullDuplexByHand)
{
  const auto pattern = make("hpcs-03", "memory=10B block=10B times=2 sync=false", {3, 3});
  EXPECT_EQ(ops_of(*pattern, 0, "stream"), (std::vector<Op>{flagged({OpKind::open, 0, 0}, written),
                                                            {OpKind::pwrite, 0, 0, 10, 0},
                                                            {OpKind::pwrite, 0, 0, 10, 10},
                                                            {OpKind::close, 0, 0}}));
  EXPECT_EQ(
      ops_of(*pattern, 1, "stream"),
      (std::vector<Op>{
          {OpKind::open, 1, 1}, {OpKind::pread, 1, 1, 10, 0}, {OpKind::pread, 1, 1, 10, 10}, {OpKind::close, 1, 1}}));
  EXPECT_EQ(ops_of(*pattern, 2, "stream"), (std::vector<Op>{{OpKind::open, 2, 1},
                                                            flagged({OpKind::open, 2, 0}, written),
                                                            {OpKind::pread, 2, 1, 10, 0},
                                                            {OpKind::pwrite, 2, 0, 10, 0},
                                                            {OpKind::pread, 2, 1, 10, 10},
                                                            {OpKind::pwrite, 2, 0, 10, 10},
                                                            {OpKind::close, 2, 0},
                                                            {OpKind::close, 2, 1}}));
  EXPECT_EQ(pattern->warnings().size(), 1U);
  EXPECT_TRUE(make("hpcs-03", "", {4, 2})->warnings().empty());
}

TEST(HpcsStreaming, ASingleStreamKeepsOtherRanksIdle)
{
  for (const auto& [name, busy] : {std::pair{"hpcs-01", 1U}, {"hpcs-02", 2U}})
    for (uint32_t rank = 0; rank < 6; ++rank)
      EXPECT_EQ(ops_of(*make(name, "scale=0.01", {6, 2}), rank, "precreate", 1).empty(), rank >= busy);
}

TEST(HpcsStreaming, FullSize)
{
  const auto promised = make("hpcs-01", "")->footprint();
  EXPECT_EQ(promised.largest_size, 10ULL << 20);
  EXPECT_EQ(promised.peak_bytes, (16ULL << 30) / (10 << 20) * (10 << 20));
}

// ---- 4
// --------------------------------------------------------------------------------------------------------------------

TEST(HpcsCreation, ByHand)
{
  const auto own = make("hpcs-04", "files=3 files_per_directory=2 file_size=5B", {2, 2});
  EXPECT_EQ(ops_of(*own, 1, "precreate"), (std::vector<Op>{{OpKind::mkdir, 2, 0}, {OpKind::mkdir, 3, 0}}));
  EXPECT_EQ(ops_of(*own, 1, "create"),
            (std::vector<Op>{{OpKind::create, 2, 0, 5}, {OpKind::create, 2, 1, 5}, {OpKind::create, 3, 2, 5}}));
  const auto one = make("hpcs-04", "files=2 one_directory=true file_size=5B", {2, 2});
  EXPECT_TRUE(ops_of(*one, 1, "precreate").empty());
  EXPECT_EQ(ops_of(*one, 1, "create"), (std::vector<Op>{{OpKind::create, 0, 2, 5}, {OpKind::create, 0, 3, 5}}));
}

// ---- 5 to 8
// ---------------------------------------------------------------------------------------------------------------

/// (process, array, record) in the order in which they lie in the file, by three nested loops.
std::vector<std::array<uint64_t, 3>> in_file_order(const std::string& layout, uint64_t processes, uint64_t arrays,
                                                   uint64_t records)
{
  std::vector<std::array<uint64_t, 3>> all;
  if (layout == "segmented") {
    for (uint64_t p = 0; p < processes; ++p)
      for (uint64_t a = 0; a < arrays; ++a)
        for (uint64_t z = 0; z < records; ++z)
          all.push_back({p, a, z});
  } else if (layout == "strided") {
    for (uint64_t a = 0; a < arrays; ++a)
      for (uint64_t p = 0; p < processes; ++p)
        for (uint64_t z = 0; z < records; ++z)
          all.push_back({p, a, z});
  } else {
    for (uint64_t a = 0; a < arrays; ++a)
      for (uint64_t z = 0; z < records; ++z)
        for (uint64_t p = 0; p < processes; ++p)
          all.push_back({p, a, z});
  }
  return all;
}

TEST(HpcsCheckpoint, SharedLayoutsAsThePagesShowThem)
{
  constexpr uint64_t processes = 4, arrays = 3, records = 2, record = 16;
  for (const std::string layout : {"segmented", "strided", "interleaved"}) {
    // Two nodes of 4 x 96 B: half of it makes 96 B a process, 32 B an array.
    const auto pattern = make("hpcs-checkpoint", "memory=384B share=0.5 arrays=3 record=16B layout=" + layout, {4, 2});
    std::map<std::array<uint64_t, 3>, uint64_t> offset_of;
    uint64_t place = 0;
    for (const auto& item : in_file_order(layout, processes, arrays, records))
      offset_of[item] = record * place++;
    for (uint64_t p = 0; p < processes; ++p) {
      std::vector<Op> expected{flagged({OpKind::open, 0, 0}, written | shared)};
      std::vector<Op> back{flagged({OpKind::open, 0, 0}, shared)};
      for (uint64_t a = 0; a < arrays; ++a)
        for (uint64_t z = 0; z < records; ++z) {
          expected.push_back({OpKind::pwrite, 0, 0, record, offset_of[{p, a, z}]});
          back.push_back({OpKind::pread, 0, 0, record, offset_of[{p, a, z}]});
        }
      expected.push_back(flagged({OpKind::fsync, 0, 0}, shared));
      expected.push_back(flagged({OpKind::close, 0, 0}, shared));
      back.push_back(flagged({OpKind::close, 0, 0}, shared));
      EXPECT_EQ(ops_of(*pattern, static_cast<uint32_t>(p), "checkpoint"), expected) << layout;
      EXPECT_EQ(ops_of(*pattern, static_cast<uint32_t>(p), "restart"), back) << layout;
    }
  }
}

TEST(HpcsCheckpoint, EveryByteIsWrittenOnce)
{
  for (const std::string more : {"", "record=800B", "layout=strided record=800B", "layout=interleaved record=808B",
                                 "layout=strided record=808B together=all", "layout=own"})
    for (const auto& placement : placements) {
      const auto pattern = make("hpcs-checkpoint", "memory=300kB arrays=7 " + more, placement);
      const auto storage = expect_rules_kept(*pattern, placement.ranks);
      const AccessTally accesses(*pattern, placement.ranks);
      for (const auto& [key, times] : accesses.written)
        EXPECT_TRUE(std::all_of(times.begin(), times.end(), [](uint32_t often) { return often == 1; })) << more;
      EXPECT_EQ(accesses.conflicts, 0U);
      EXPECT_EQ(storage.bytes_written, storage.bytes_read);
      EXPECT_EQ(storage.bytes_written, storage.peak_bytes);
    }
}

TEST(HpcsCheckpoint, RestartOnAnotherNodeReadsWhatThatOneWrote)
{
  const auto pattern = make("hpcs-08", "memory=1MiB arrays=5 record=800B node_offset=2", {6, 2});
  for (uint32_t rank = 0; rank < 6; ++rank) {
    auto theirs = ops_of(*pattern, (rank + 6 - 4) % 6, "checkpoint");
    auto mine   = ops_of(*pattern, rank, "restart");
    theirs      = of_kind(theirs, OpKind::pwrite);
    mine        = of_kind(mine, OpKind::pread);
    for (auto& op : theirs)
      op.kind = OpKind::pread;
    EXPECT_EQ(mine, theirs);
  }
  EXPECT_TRUE(pattern->warnings().empty());
  EXPECT_EQ(make("hpcs-08", "node_offset=3", {6, 2})->warnings().size(), 1U);
}

TEST(HpcsCheckpoint, FullSizeHasTheDocumentsNumbers)
{
  constexpr double memory = 8.0 * (1 << 30);
  for (const uint64_t per_node : {1, 4}) {
    const double process_memory = memory / static_cast<double>(per_node);
    const Placement placement{static_cast<uint32_t>(3 * per_node), static_cast<uint32_t>(per_node)};
    for (const char* name : {"hpcs-05", "hpcs-07"}) { // records of 1 %, 50 arrays, 50 %
      const auto writes = of_kind(ops_of(*make(name, "", placement), 1, "checkpoint"), OpKind::pwrite);
      EXPECT_EQ(writes.size(), 50U);
      uint64_t bytes = 0;
      for (const auto& op : writes) {
        EXPECT_EQ(op.size, static_cast<uint64_t>(process_memory / 100 / 8) * 8); // whole numbers of 8 bytes
        bytes += op.size;
      }
      EXPECT_NEAR(static_cast<double>(bytes), 0.5 * process_memory, 50 * 8);
    }
    for (const char* name : {"hpcs-06", "hpcs-08"}) { // records of 10,000 Real*8, 50 arrays, 25 %
      const auto writes = of_kind(ops_of(*make(name, "", placement), 1, "checkpoint"), OpKind::pwrite);
      const auto blocks = static_cast<uint64_t>(0.25 * process_memory / 50 / 80000); // Z
      EXPECT_EQ(blocks, per_node == 1 ? 536U : 134U);
      EXPECT_EQ(writes.size(), 50 * blocks);
      for (const auto& op : writes)
        EXPECT_EQ(op.size, 10000U * 8);
      EXPECT_NEAR(static_cast<double>(writes.size() * 80000), 0.25 * process_memory, 50 * 80000);
    }
    // Page 7: one shared file for 5 and 6, a file per process for 7 and 8.
    for (const auto& [name, files] :
         {std::pair{"hpcs-05", 1U}, {"hpcs-06", 1U}, {"hpcs-07", placement.ranks}, {"hpcs-08", placement.ranks}})
      EXPECT_EQ(make(name, "", placement)->footprint().peak_objects, files);
  }
}

TEST(HpcsCheckpoint, ScaledDownToLessThanARecordStillWritesOne)
{
  const auto pattern = make("hpcs-06", "scale=1e-6");
  EXPECT_EQ(of_kind(ops_of(*pattern, 0, "checkpoint"), OpKind::pwrite).size(), 50U);
  EXPECT_EQ(pattern->warnings().size(), 1U);
}

// ---- 9 to 12
// --------------------------------------------------------------------------------------------------------------

/// A depth-first walk by recursion: names of directories in order.
void walk(const std::string& name, uint64_t depth, uint64_t branching, std::vector<std::string>& names)
{
  names.push_back(name);
  for (uint64_t child = 0; depth > 0 && child < branching; ++child)
    walk(name + "/d" + std::to_string(child), depth - 1, branching, names);
}

std::string name_of_dataset(const Pattern& pattern, uint64_t dataset)
{
  char name[256];
  return {name, pattern.name_dataset(dataset, name)};
}

TEST(HpcsTree, WalksDepthFirst)
{
  for (const auto& [depth, branching, files] :
       {std::array<uint64_t, 3>{0, 3, 2}, {1, 1, 0}, {3, 2, 1}, {2, 11, 3}, {4, 3, 0}, {5, 1, 2}})
    for (const uint32_t ranks : {1U, 2U, 5U, 16U})
      for (const auto& [phase, copy] : {std::pair{"dirty", "copy-1"}, {"cold", "copy-0"}, {"warm", "copy-0"}}) {
        const auto pattern = make("hpcs-tree",
                                  "depth=" + std::to_string(depth) + " branching=" + std::to_string(branching) +
                                      " files=" + std::to_string(files),
                                  {ranks, ranks});
        std::vector<std::string> names;
        walk(copy, depth, branching, names);
        std::vector<std::string> walked;
        size_t examined = 0;
        for (uint32_t rank = 0; rank < ranks; ++rank) {
          const auto ops = ops_of(*pattern, rank, phase);
          for (size_t i = 0; i < ops.size(); i += files + 1) { // a listing, and then the directory's files
            ASSERT_EQ(ops[i].kind, OpKind::readdir);
            walked.push_back(name_of_dataset(*pattern, ops[i].dataset));
            for (uint64_t file = 0; file < files; ++file, ++examined)
              ASSERT_EQ(ops[i + 1 + file], Op(OpKind::stat, ops[i].dataset, file));
          }
        }
        EXPECT_EQ(walked, names);
        EXPECT_EQ(examined, names.size() * files);
      }
}

TEST(HpcsTree, OneWalkerOrAll)
{
  for (const auto& [name, walkers] : {std::pair{"hpcs-09", 1U}, {"hpcs-10", 4U}, {"hpcs-11", 1U}, {"hpcs-12", 4U}})
    for (uint32_t rank = 0; rank < 4; ++rank)
      EXPECT_EQ(ops_of(*make(name, "depth=2", {4, 2}), rank, "cold", 1).empty(), rank >= walkers) << name;
}

TEST(HpcsTree, ScaleMakesTheTreeNarrower)
{
  auto directories = [](const char* settings) {
    const auto promised = make("hpcs-09", settings)->footprint();
    return promised.operations.front().second / 2; // of each copy
  };
  EXPECT_EQ(directories(""), 11111U);
  EXPECT_EQ(directories("scale=0.01"), 1U + 3 + 9 + 27 + 81);
  EXPECT_EQ(directories("scale=1e-9"), 5U);
  EXPECT_EQ(directories("scale=0.01 depth=0"), 1U);
}

TEST(HpcsTree, RandomStatCallsEachFileOnceInRandomOrder)
{
  for (const uint64_t files : {1, 2, 3, 7, 97})
    for (const uint32_t ranks : {1U, 4U}) {
      const auto pattern = make("hpcs-12", "depth=2 branching=3 files=" + std::to_string(files), {ranks, ranks});
      std::vector<uint64_t> order;
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        const auto cold = ops_of(*pattern, rank, "cold");
        for (const auto& op : cold) {
          ASSERT_EQ(op.kind, OpKind::stat);
          order.push_back(op.dataset * files + op.object);
        }
        EXPECT_EQ(ops_of(*pattern, rank, "warm"), cold);
        auto other = ops_of(*pattern, rank, "dirty");
        for (auto& op : other)
          op.dataset -= 13; // directories of a copy
        EXPECT_EQ(other, cold);
      }
      auto sorted = order;
      std::sort(sorted.begin(), sorted.end());
      ASSERT_EQ(sorted.size(), 13 * files);
      for (uint64_t file = 0; file < sorted.size(); ++file)
        EXPECT_EQ(sorted[file], file);
      // Of a random permutation of n, (n - 1) / 2 +- sqrt((n + 1) / 12) neighbours ascend: 5 sigma, false alarm 6e-7 a
      // test; and places correlate with files by 0 +- 1 / sqrt(n - 1).
      const auto n = static_cast<double>(order.size());
      if (n < 100)
        continue;
      double ascents = 0, product = 0;
      for (size_t i = 0; i < order.size(); ++i) {
        ascents += i > 0 && order[i] > order[i - 1];
        product += (static_cast<double>(i) - (n - 1) / 2) * (static_cast<double>(order[i]) - (n - 1) / 2);
      }
      const std::string of = fmt::format(" of {} files", n);
      expect_within("ascents" + of, ascents, (n - 1) / 2, 5, std::sqrt((n + 1) / 12));
      expect_within("rank correlation" + of, product / (n * (n * n - 1) / 12), 0, 5, 1 / std::sqrt(n - 1));
      EXPECT_NE(ops_of(*make("hpcs-12", "depth=2 branching=3 seed=1 files=" + std::to_string(files)), 0, "cold"),
                ops_of(*make("hpcs-12", "depth=2 branching=3 seed=2 files=" + std::to_string(files)), 0, "cold"));
    }
}

TEST(HpcsTree, AWarmPassEndsWhereTheColdOneWasCut)
{
  for (const std::string access : {"walk", "stat"}) {
    const auto pattern = make("hpcs-tree", "depth=2 branching=3 files=4 most_seconds=1s access=" + access);
    Cursor cursor;
    size_t cold = 0, warm = 0;
    std::string phase;
    for (Op op; pattern->next(cursor, op);) {
      if (op.kind == OpKind::phase)
        phase = pattern->phases()[op.object].name;
      else if (phase == "cold" && ++cold == 17)
        pattern->cut(cursor);
      else if (phase == "warm")
        ++warm;
    }
    EXPECT_EQ(cold, 17U);
    EXPECT_EQ(warm, 17U);
  }
}

// ---- 13 and 14
// ------------------------------------------------------------------------------------------------------------

TEST(HpcsRandom, FullSizeHasTheDocumentsNumbers)
{
  // 10 nodes of 100 processes: 50 million reads of the one file are 50,000 of each process; of a file each, 50 million
  // of each.
  const Placement placement{1000, 100};
  const auto one          = make("hpcs-14", "", placement);
  const auto own          = make("hpcs-13", "", placement);
  constexpr double memory = 10 * 8.0 * (1 << 30);
  EXPECT_NEAR(static_cast<double>(one->footprint().peak_bytes), (10 + 0.5) * memory, 1000 * 512);
  EXPECT_EQ(one->footprint().peak_objects, 1U + 1000);
  EXPECT_EQ(own->footprint().peak_objects, 1000U + 1000);
  for (const std::string pass : {"random-aligned", "random-unaligned"}) {
    EXPECT_EQ(of_kind(ops_of(*make("hpcs-14", "phases=" + pass, placement), 999, pass), OpKind::pread).size(), 50000U);
    EXPECT_EQ(make("hpcs-13", "phases=" + pass, placement)->footprint().bytes_read,
              50000000ULL * 1000 * 65536); // at most
  }
  std::vector<std::string> passes;
  for (const auto& phase : one->phases())
    passes.push_back(phase.name);
  EXPECT_EQ(passes, words("precreate fill write random-aligned random-unaligned backwards-aligned backwards-unaligned "
                          "cleanup cleanup"));
}

/// Pearson's statistic of 16 equally likely cells exceeds this in one of 10^6 tests (15 degrees of freedom).
constexpr double chi_square_15 = 56.5;

TEST(HpcsRandom, RandomReadsAreUniformOverSizesAndFile)
{
  for (const std::string pass : {"random-aligned", "random-unaligned"}) {
    const auto pattern  = make("hpcs-14", "reads=20000 memory=1GiB", {2, 2});
    const uint64_t file = 10ULL << 30;
    std::vector<double> sizes(16), places(16);
    double reads   = 0;
    uint64_t grain = pass == "random-aligned" ? 512 : 1;
    for (uint32_t rank = 0; rank < 2; ++rank)
      for (const auto& op : of_kind(ops_of(*pattern, rank, pass), OpKind::pread)) {
        ASSERT_GE(op.size, 512U);
        ASSERT_LE(op.size, 65536U);
        ASSERT_LE(op.offset + op.size, file);
        ASSERT_EQ(op.size % grain, 0U);
        ASSERT_EQ(op.offset % grain, 0U);
        ++sizes[(op.size - 512) * 16 / (65536 - 512 + grain)];
        ++places[static_cast<uint64_t>(static_cast<double>(op.offset) / static_cast<double>(file - op.size + 1) * 16)];
        ++reads;
      }
    EXPECT_EQ(reads, 20000);
    for (const auto* cells : {&sizes, &places}) {
      double statistic = 0;
      for (const double count : *cells)
        statistic += (count - reads / 16) * (count - reads / 16) / (reads / 16);
      EXPECT_LT(statistic, chi_square_15) << pass;
    }
  }
}

TEST(HpcsRandom, BackwardsReadsSkipAsAsked)
{
  for (const std::string pass : {"backwards-aligned", "backwards-unaligned"}) {
    const auto pattern   = make("hpcs-14", "memory=100MiB phases=" + pass, {4, 4});
    const uint64_t part  = pattern->data_set()["part"].get<uint64_t>();
    const uint64_t grain = pass == "backwards-aligned" ? 512 : 1;
    size_t odd           = 0;
    for (uint32_t rank = 0; rank < 4; ++rank) {
      const auto reads = of_kind(ops_of(*pattern, rank, pass), OpKind::pread);
      ASSERT_GT(reads.size(), part / (65536 + 524288));
      EXPECT_EQ(reads.front().offset + reads.front().size, (rank + 1) * part);
      for (size_t i = 0; i < reads.size(); ++i) {
        EXPECT_GE(reads[i].size, 512U);
        EXPECT_LE(reads[i].size, 65536U);
        EXPECT_GE(reads[i].offset, rank * part);
        EXPECT_EQ(reads[i].offset % grain, 0U);
        EXPECT_EQ(reads[i].size % grain, 0U);
        odd += reads[i].offset % 512 != 0;
        if (i > 0) {
          const uint64_t skip = reads[i - 1].offset - reads[i].offset - reads[i].size;
          EXPECT_GE(skip, 8192U);
          EXPECT_LE(skip, 524288U);
        }
      }
      EXPECT_LT(reads.back().offset - rank * part, 65536U + 524288U); // it came as far as it could
    }
    EXPECT_EQ(odd == 0, grain == 512);
  }
}

TEST(HpcsRandom, FootprintsOfLongRunsAreUpperBounds)
{
  // 12 million draws are too many to go through, 8 million are not; both come out near the mean, the bound above it.
  auto read = [](const char* reads) {
    return make("hpcs-14", std::string("memory=1GiB phases=random-unaligned reads=") + reads)->footprint();
  };
  const auto exact = read("8000000");
  const auto bound = read("12000000");
  const auto bytes = static_cast<double>(exact.bytes_read);
  expect_within("bytes read", bytes, 8e6 * (512 + 65536) / 2, 6, std::sqrt(8e6 / 12) * 65025); // 6 sigma: 2e-9
  EXPECT_EQ(bound.bytes_read, 12000000ULL * 65536);
}

} // namespace
} // namespace iocast
