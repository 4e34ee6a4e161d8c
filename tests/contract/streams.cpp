// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/streams.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <iterator>
#include <sstream>

namespace iocast {

std::vector<Op> stream_of(const Pattern& pattern, uint32_t rank)
{
  Cursor cursor;
  cursor.rank = rank;
  std::vector<Op> ops;
  for (Op op; pattern.next(cursor, op);)
    ops.push_back(op);
  return ops;
}

std::string dataset_name(const Pattern& pattern, uint64_t dataset)
{
  char name[256];
  return {name, pattern.name_dataset(dataset, name)};
}

std::string object_name(const Pattern& pattern, uint64_t dataset, uint64_t object)
{
  char name[256];
  return {name, pattern.name_object_in(dataset, object, name)};
}

std::string line(const Pattern& pattern, const Op& op)
{
  std::string text(name_of(op.kind));
  if (op.kind == OpKind::phase)
    return text + " " + pattern.phases().at(op.object).name;
  if (op.kind == OpKind::think)
    return text;
  text += " " + dataset_name(pattern, op.dataset);
  const bool on_dataset =
      op.kind == OpKind::mkdir || op.kind == OpKind::rmdir || op.kind == OpKind::readdir || (op.flags & whole);
  if (!on_dataset)
    text += "/" + object_name(pattern, op.dataset, op.object);
  if (op.size > 0)
    text += " " + std::to_string(op.size);
  return text;
}

std::vector<std::string> lines(const Pattern& pattern, uint32_t rank)
{
  std::vector<std::string> result;
  for (const auto& op : stream_of(pattern, rank))
    result.push_back(line(pattern, op));
  return result;
}

Op flagged(Op op, int flags)
{
  op.flags = static_cast<uint8_t>(flags);
  return op;
}

Op strided(Op op, uint32_t count, uint64_t stride)
{
  op.count  = count;
  op.stride = stride;
  return op;
}

std::vector<std::string> words(const std::string& text)
{
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

Streams::Streams(const Pattern& pattern, uint32_t ranks, bool together)
    : pattern_(pattern), together_(together), ranks_(ranks)
{
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    ranks_[rank].cursor.rank = rank;
    Op op;
    if (!pattern.next(ranks_[rank].cursor, op) || op.kind != OpKind::phase)
      throw Violation(fmt::format("the stream of rank {} does not begin with a phase", rank));
    ranks_[rank].phase = op.object;
  }
}

std::optional<uint64_t> Streams::phase() const
{
  for (const auto& rank : ranks_)
    if (rank.phase != ranks_[0].phase)
      throw Violation("the ranks do not have the same phases");
  return ranks_[0].phase;
}

std::vector<std::vector<Op>> Streams::take(const std::vector<uint64_t>& budget)
{
  const uint64_t number = phase().value();
  std::map<uint32_t, std::vector<uint32_t>> groups;
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    ranks_[rank].done.clear();
    ranks_[rank].state  = State::runs;
    ranks_[rank].budget = budget[rank];
    groups[together_ ? pattern_.group_of(rank) : rank].push_back(rank);
  }
  for (const auto& [group, members] : groups)
    run_group(group, members);
  if (pattern_.phases().at(number).most_seconds > 0) {
    uint64_t furthest = 0;
    for (const auto& rank : ranks_)
      furthest = std::max(furthest, pattern_.reached(rank.cursor));
    for (auto& rank : ranks_)
      pattern_.agree(rank.cursor, furthest);
  }
  std::vector<std::vector<Op>> result;
  for (auto& rank : ranks_)
    result.push_back(std::move(rank.done));
  return result;
}

void Streams::run_group(uint32_t number, const std::vector<uint32_t>& members)
{
  const auto all = [&](auto what) {
    return std::all_of(members.begin(), members.end(), [&](uint32_t r) { return what(ranks_[r]); });
  };
  const auto any = [&](auto what) {
    return std::any_of(members.begin(), members.end(), [&](uint32_t r) { return what(ranks_[r]); });
  };
  for (const uint32_t rank : members)
    ranks_[rank].was_joint = false;
  for (bool stops = false; !stops;) {
    // In turns, so that a pattern that keeps state mixes up ranks if it can.
    while (any([](const Rank& rank) { return rank.state == State::runs; }))
      for (const uint32_t rank : members)
        if (ranks_[rank].state == State::runs)
          step(ranks_[rank]);
    if (!any([](const Rank& rank) { return rank.state == State::at_joint; }))
      break;
    if (any([](const Rank& rank) { return rank.state == State::cut; })) {
      for (const uint32_t rank : members)
        if (ranks_[rank].state == State::at_joint) {
          ranks_[rank].cursor = ranks_[rank].before;
          cut(ranks_[rank]);
        }
      break;
    }
    const auto& first = ranks_[members.front()];
    for (const uint32_t rank : members) {
      const auto& other = ranks_[rank];
      if (other.state == State::ended || first.state == State::ended)
        throw Violation(fmt::format(
            "the ranks {} and {} of group {} have different numbers of shared and collective operations in one phase",
            members.front(), rank, number));
      const bool same = other.joint.kind == first.joint.kind && other.joint.dataset == first.joint.dataset &&
                        other.joint.object == first.joint.object && other.joint.flags == first.joint.flags &&
                        (other.joint.stride > 0) == (first.joint.stride > 0);
      if (!same)
        throw Violation(fmt::format("rank {} begins {} of dataset {} object {} together with its group {}, but rank {} "
                                    "begins {} of dataset {} object {}",
                                    members.front(), name_of(first.joint.kind), first.joint.dataset, first.joint.object,
                                    number, rank, name_of(other.joint.kind), other.joint.dataset, other.joint.object));
    }
    stops = !all([](const Rank& rank) { return rank.done.size() < rank.budget; });
    for (const uint32_t rank : members) {
      perform(ranks_[rank], ranks_[rank].joint);
      ranks_[rank].was_joint = true;
      ranks_[rank].state     = State::runs;
      if (stops)
        cut(ranks_[rank]);
    }
  }
}

void Streams::step(Rank& rank)
{
  if (rank.done.size() >= rank.budget && !rank.was_joint) {
    cut(rank);
    return;
  }
  Op op;
  rank.before = rank.cursor;
  if (!pattern_.next(rank.cursor, op)) {
    rank.phase = std::nullopt;
    rank.state = State::ended;
  } else if (op.kind == OpKind::phase) {
    rank.phase = op.object;
    rank.state = State::ended;
  } else if (together_ && op.is_joint()) {
    rank.joint = op;
    rank.state = State::at_joint;
  } else {
    perform(rank, op);
    rank.was_joint = false;
  }
}

void Streams::perform(Rank& rank, const Op& op)
{
  rank.done.push_back(op);
  if (op.kind == OpKind::open)
    rank.open.push_back(op);
  else if (op.kind == OpKind::close)
    std::erase_if(rank.open, [&](const Op& open) { return open.dataset == op.dataset && open.object == op.object; });
}

void Streams::cut(Rank& rank)
{
  rank.state = State::cut;
  while (!rank.open.empty()) {
    Op close(OpKind::close, rank.open.front().dataset, rank.open.front().object);
    close.flags = rank.open.front().flags & shared;
    perform(rank, close);
  }
  pattern_.cut(rank.cursor);
  Op op;
  rank.phase = std::nullopt;
  if (!pattern_.next(rank.cursor, op))
    return;
  if (op.kind != OpKind::phase)
    throw Violation(fmt::format("rank {} goes on with {} after its phase was cut", rank.cursor.rank, name_of(op.kind)));
  rank.phase = op.object;
}

Phases whole_run(const Pattern& pattern, uint32_t ranks, bool together, const CutAfter& cut_after)
{
  const auto& phases = pattern.phases();
  Phases run;
  Streams streams(pattern, ranks, together);
  for (size_t number = 0; streams.phase(); ++number) {
    if (*streams.phase() != number || number >= phases.size())
      throw Violation(
          fmt::format("phase number {} comes where number {} of {} should", *streams.phase(), number, phases.size()));
    std::vector<uint64_t> budget(ranks, Streams::unlimited);
    if (cut_after && phases[number].most_seconds > 0)
      for (uint32_t rank = 0; rank < ranks; ++rank)
        budget[rank] = cut_after(number, rank);
    run.push_back(streams.take(budget));
  }
  if (run.size() != phases.size())
    throw Violation(fmt::format("only {} of {} phases come", run.size(), phases.size()));
  return run;
}

std::vector<std::vector<Op>> by_rank(const Phases& run)
{
  std::vector<std::vector<Op>> result(run.empty() ? 0 : run.front().size());
  for (size_t phase = 0; phase < run.size(); ++phase)
    for (size_t rank = 0; rank < result.size(); ++rank) {
      result[rank].emplace_back(OpKind::phase, 0, phase);
      result[rank].insert(result[rank].end(), run[phase][rank].begin(), run[phase][rank].end());
    }
  return result;
}

StorageModel expect_rules_kept(const Pattern& pattern, const Phases& run)
{
  StorageModel storage(pattern);
  try {
    for (size_t number = 0; number < run.size(); ++number)
      storage.phase(pattern.phases()[number].name, run[number]);
    storage.end();
  } catch (const Violation& violation) {
    ADD_FAILURE() << violation.what();
  }
  return storage;
}

StorageModel expect_rules_kept(const Pattern& pattern, uint32_t ranks)
{
  Phases run;
  try {
    run = whole_run(pattern, ranks, true);
  } catch (const Violation& violation) {
    ADD_FAILURE() << violation.what();
    return StorageModel(pattern);
  }
  auto storage = expect_rules_kept(pattern, run);
  if (testing::Test::HasFailure())
    return storage;
  const auto footprint = pattern.footprint();
  std::array<uint64_t, op_count> promised{};
  for (const auto& [kind, count] : footprint.operations)
    promised[static_cast<size_t>(kind)] += count;
  for (size_t kind = 1; kind < op_count; ++kind)
    EXPECT_EQ(storage.counts[kind], promised[kind]) << "operations " << op_names[kind];
  EXPECT_EQ(storage.bytes_written, footprint.bytes_written);
  EXPECT_EQ(storage.bytes_read, footprint.bytes_read);
  EXPECT_LE(storage.largest, footprint.largest_size);
  EXPECT_GE(footprint.peak_objects, storage.peak_objects);
  // Where things come and go at random, ranks may have most of them in different phases: then there is less than
  // the footprint promises.
  constexpr double slack = 1.1;
  EXPECT_LE(static_cast<double>(footprint.peak_objects), slack * static_cast<double>(storage.most_objects));
  EXPECT_GE(footprint.peak_bytes, storage.peak_bytes);
  EXPECT_LE(static_cast<double>(footprint.peak_bytes), slack * static_cast<double>(storage.most_bytes));
  return storage;
}

void expect_footprint_of_streams(const Pattern& pattern, uint32_t ranks, const std::string& about)
{
  std::map<OpKind, uint64_t> counted;
  uint64_t written = 0;
  uint64_t fetched = 0;
  uint64_t largest = 0;
  std::vector<std::vector<Op>> streams;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    streams.push_back(stream_of(pattern, rank));
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> sizes; // bytes of each existing object
  uint64_t bytes        = 0;
  uint64_t peak_objects = 0;
  uint64_t peak_bytes   = 0;
  std::vector<size_t> at(ranks, 0);
  for (size_t phase = 0; phase < pattern.phases().size(); ++phase) {
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      auto& place = at[rank];
      ASSERT_EQ(streams[rank].at(place), Op(OpKind::phase, 0, phase)) << about;
      for (++place; place < streams[rank].size() && streams[rank][place].kind != OpKind::phase; ++place) {
        const Op& op = streams[rank][place];
        ++counted[op.kind];
        const bool writes = op.kind == OpKind::create || op.kind == OpKind::pwrite || op.kind == OpKind::append;
        const bool reads  = op.kind == OpKind::read || op.kind == OpKind::pread;
        written += writes ? op.bytes() : 0;
        fetched += reads ? op.bytes() : 0;
        largest = writes || reads ? std::max(largest, op.size) : largest;
        const std::pair<uint64_t, uint64_t> object{op.dataset, op.object};
        if (op.kind == OpKind::create || (op.kind == OpKind::open && (op.flags & make_it)))
          sizes.try_emplace(object, 0);
        if (op.kind == OpKind::create || op.kind == OpKind::pwrite) {
          auto& size          = sizes.at(object);
          const uint64_t more = std::max(size, op.offset + op.size) - size;
          size += more;
          bytes += more;
        }
        if (op.kind == OpKind::unlink && sizes.count(object)) {
          bytes -= sizes.at(object);
          sizes.erase(object);
        }
        peak_bytes   = std::max(peak_bytes, bytes);
        peak_objects = std::max<uint64_t>(peak_objects, sizes.size());
      }
    }
  }
  const auto footprint = pattern.footprint();
  counted.erase(OpKind::phase);
  EXPECT_EQ((std::map<OpKind, uint64_t>(footprint.operations.begin(), footprint.operations.end())), counted) << about;
  EXPECT_EQ(footprint.bytes_written, written) << about;
  EXPECT_EQ(footprint.bytes_read, fetched) << about;
  EXPECT_EQ(footprint.largest_size, largest) << about;
  if (counted.count(OpKind::mkdir)) { // else data of an earlier run is there too
    EXPECT_EQ(footprint.peak_objects, peak_objects) << about;
    EXPECT_EQ(footprint.peak_bytes, peak_bytes) << about;
  }
}

} // namespace iocast
