// SPDX-License-Identifier: Apache-2.0
#include "workload/pool_pattern.hpp"

#include "input/error.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>

namespace iocast {

PoolPattern::PoolPattern(PoolPlan plan, const Placement& placement)
    : plan_(std::move(plan)), placement_(placement), ranks_(placement.ranks)
{
  uint64_t start = plan_.start;
  for (const size_t place : requested_phases(plan_.pattern, {"precreate", "benchmark", "cleanup"}, plan_.phases)) {
    const auto kind = static_cast<Kind>(place);
    for (uint32_t repeat = 1; repeat <= (kind == Kind::benchmark ? plan_.repeats : 1); ++repeat) {
      kinds_.push_back(kind);
      start_of_.push_back(start);
      if (kind == Kind::benchmark)
        phases_.push_back({"benchmark", repeat});
      else
        phases_.push_back({kind == Kind::precreate ? "precreate" : "cleanup", 0});
      start += kind == Kind::benchmark ? plan_.steps : 0;
    }
  }
  if (kinds_.front() == Kind::precreate && plan_.start > 0)
    throw InputError(
        fmt::format("{} can't precreate files that have {} steps behind them already; leave out start, or run "
                    "phases=benchmark,cleanup on files that an earlier run left.",
                    plan_.pattern, plan_.start));
  if (plan_.files + start > UINT32_MAX)
    throw InputError(fmt::format("{} can't number more than 4 billion files of one rank; ask for fewer files or steps.",
                                 plan_.pattern));
}

bool PoolPattern::next(Cursor& cursor, Op& op) const
{
  auto& rank = ranks_[cursor.rank];
  if (cursor.phase == 0 && cursor.step == 0)
    rank = std::make_unique<Rank>();
  if (rank && next_of(*rank, cursor, op))
    return true;
  rank.reset();
  return false;
}

bool PoolPattern::next_of(Rank& rank, Cursor& cursor, Op& op) const
{
  while (cursor.phase < kinds_.size()) {
    if (cursor.step == 0) {
      if (cursor.phase == 0)
        begin(rank, cursor.rank);
      op          = {OpKind::phase, 0, cursor.phase};
      cursor.i    = 0;
      cursor.j    = 0;
      cursor.step = first_part;
      return true;
    }
    if (cursor.step > parts)
      return next_block(cursor, op);
    bool more = false;
    switch (kinds_[cursor.phase]) {
      case Kind::precreate:
        more = next_precreate(rank, cursor, op);
        break;
      case Kind::benchmark:
        more = next_benchmark(rank, cursor, op, start_of_[cursor.phase], plan_.steps);
        break;
      case Kind::cleanup:
        more = next_cleanup(rank, cursor, op);
        break;
    }
    if (more)
      return true;
    ++cursor.phase;
    cursor.step = 0;
  }
  return false;
}

/// The pool at the beginning of the run.
void PoolPattern::begin(Rank& rank, uint32_t number) const
{
  rank.entries.assign(plan_.directories, 0);
  if (kinds_.front() == Kind::precreate)
    return;
  Cursor cursor;
  cursor.rank = number;
  Op op;
  for (cursor.i = 0; cursor.i < plan_.files; ++cursor.i)
    create(rank, cursor, op);
  cursor.i    = 0;
  cursor.step = first_part;
  while (cursor.step > parts ? next_block(cursor, op) : next_benchmark(rank, cursor, op, 0, plan_.start)) {
  }
}

bool PoolPattern::next_precreate(Rank& rank, Cursor& cursor, Op& op) const
{
  if (cursor.j < datasets()) {
    op = {OpKind::mkdir, uint64_t{cursor.rank} * datasets() + cursor.j++, 0};
    return true;
  }
  if (cursor.i == plan_.files)
    return false;
  ++cursor.i;
  create(rank, cursor, op);
  return true;
}

bool PoolPattern::next_benchmark(Rank& rank, Cursor& cursor, Op& op, uint64_t first, uint64_t steps) const
{
  while (cursor.i < steps && rank.pool.count() > 0) {
    if (next_in_step(rank, cursor, op, first + cursor.i))
      return true;
    ++cursor.i;
    cursor.step = first_part;
  }
  return false;
}

bool PoolPattern::next_cleanup(Rank& rank, Cursor& cursor, Op& op) const
{
  if (rank.pool.count() > 0) {
    unlink(rank, cursor, op, rank.pool.count() - 1);
    return true;
  }
  if (cursor.j == datasets())
    return false;
  op = {OpKind::rmdir, uint64_t{cursor.rank} * datasets() + (datasets() - 1 - cursor.j++),
        0}; // the one that holds the others last
  return true;
}

// ---- what can be done to a file
// -----------------------------------------------------------------------------------------

void PoolPattern::create(Rank& rank, Cursor& cursor, Op& op) const
{
  const uint64_t size   = size_of_new(cursor.rank, rank.pool.made());
  const uint32_t number = rank.pool.add(size);
  ++entries_of(rank, dataset_of(cursor.rank, number));
  transfer(cursor, op, OpKind::create, plan_.write_block, number, 0, size);
}

void PoolPattern::read(Rank& rank, Cursor& cursor, Op& op, uint64_t place) const
{
  transfer(cursor, op, OpKind::read, plan_.read_block, rank.pool[place].number, 0, rank.pool[place].size);
}

void PoolPattern::append(Rank& rank, Cursor& cursor, Op& op, uint64_t place, uint64_t bytes) const
{
  const uint64_t from = rank.pool[place].size;
  rank.pool.grow(place, bytes);
  transfer(cursor, op, OpKind::append, plan_.write_block, rank.pool[place].number, from, from + bytes);
}

void PoolPattern::unlink(Rank& rank, Cursor& cursor, Op& op, uint64_t place) const
{
  const uint32_t number = rank.pool.remove(place);
  op                    = {OpKind::unlink, dataset_of(cursor.rank, number), number};
  --entries_of(rank, op.dataset);
}

/// One operation, or the first of those that go through the bytes block by block.
void PoolPattern::transfer(Cursor& cursor, Op& op, OpKind whole, uint64_t block, uint32_t number, uint64_t from,
                           uint64_t to) const
{
  if (block == 0) {
    op = {whole, dataset_of(cursor.rank, number), number, to - from};
    return;
  }
  op       = {OpKind::open, dataset_of(cursor.rank, number), number};
  op.flags = whole == OpKind::read ? 0 : whole == OpKind::append ? for_writing : for_writing | make_it;
  cursor.a = static_cast<uint32_t>(from);
  cursor.b = static_cast<uint32_t>(to);
  cursor.c = number;
  cursor.step |= whole == OpKind::read ? reading : writing;
}

bool PoolPattern::next_block(Cursor& cursor, Op& op) const
{
  const bool reads = (cursor.step & reading) != 0;
  op               = {OpKind::close, dataset_of(cursor.rank, cursor.c), cursor.c};
  if (cursor.a == cursor.b) {
    cursor.step &= parts;
    return true;
  }
  op.kind   = reads ? OpKind::pread : OpKind::pwrite;
  op.size   = std::min<uint64_t>(reads ? plan_.read_block : plan_.write_block, cursor.b - cursor.a);
  op.offset = cursor.a;
  cursor.a += static_cast<uint32_t>(op.size);
  return true;
}

// ---- names and numbers
// --------------------------------------------------------------------------------------------------

/// With several directories, number 0 of the rank's is the one that holds the others: directory k is number (k + 1).
uint64_t PoolPattern::directory(uint32_t rank, uint32_t which) const
{
  return uint64_t{rank} * datasets() + (plan_.directories > 1 ? 1 + which : 0);
}

uint32_t& PoolPattern::entries_of(Rank& rank, uint64_t dataset) const
{
  return rank.entries[plan_.directories > 1 ? dataset % datasets() - 1 : 0];
}

/// A file's directory is drawn when it is made.
uint64_t PoolPattern::dataset_of(uint32_t rank, uint32_t number) const
{
  return plan_.directories == 1
             ? rank
             : directory(rank, static_cast<uint32_t>(below(words(rank, number, place_of_file)[0], plan_.directories)));
}

char* PoolPattern::name_dataset(uint64_t dataset, char* out) const
{
  out = std::to_chars(out, out + 20, dataset / datasets()).ptr;
  if (dataset % datasets() == 0)
    return out;
  *out++ = '/';
  *out++ = 's';
  return std::to_chars(out, out + 20, dataset % datasets() - 1).ptr;
}

char* PoolPattern::name_object(uint64_t object, char* out) const
{
  return std::to_chars(out, out + 20, object).ptr;
}

nlohmann::ordered_json PoolPattern::data_set() const
{
  nlohmann::ordered_json json{
      {"ranks", placement_.ranks}, {"files", plan_.files}, {"directories", plan_.directories}, {"seed", plan_.seed}};
  json.update(own_data_set());
  return json;
}

nlohmann::ordered_json PoolPattern::position_after(size_t phase) const
{
  return {{"start", start_of_[phase] + (kinds_[phase] == Kind::benchmark ? plan_.steps : 0)}};
}

Footprint PoolPattern::footprint() const
{
  if (!footprint_)
    footprint_ = count();
  return *footprint_;
}

Footprint PoolPattern::count() const
{
  constexpr uint64_t most_steps = 1 << 22;
  const uint64_t of_each        = std::max<uint64_t>(1, 2 * plan_.files + plan_.start + plan_.steps * plan_.repeats);
  const uint64_t looked_at      = std::clamp<uint64_t>(most_steps / of_each, 1, placement_.ranks);
  std::array<uint64_t, op_count> counted{};
  Footprint result;
  result.largest_size = plan_.largest;
  for (uint64_t number = 0; number < looked_at; ++number) {
    Cursor cursor;
    cursor.rank = static_cast<uint32_t>(number * placement_.ranks / looked_at);
    Rank rank;
    uint64_t most_objects = 0;
    uint64_t most_bytes   = 0;
    for (Op op; next_of(rank, cursor, op);) {
      ++counted[static_cast<size_t>(op.kind)];
      if (op.kind == OpKind::create || op.kind == OpKind::append || op.kind == OpKind::pwrite)
        result.bytes_written += op.size;
      if (op.kind == OpKind::read || op.kind == OpKind::pread)
        result.bytes_read += op.size;
      most_objects = std::max(most_objects, rank.pool.count());
      most_bytes   = std::max(most_bytes, rank.pool.bytes());
    }
    result.peak_objects += most_objects;
    result.peak_bytes += most_bytes;
  }
  const double share = static_cast<double>(placement_.ranks) / static_cast<double>(looked_at);
  for (uint64_t* count : {&result.bytes_written, &result.bytes_read, &result.peak_objects, &result.peak_bytes})
    *count = looked_at == placement_.ranks ? *count
                                           : static_cast<uint64_t>(std::llround(static_cast<double>(*count) * share));
  for (size_t kind = 1; kind < op_count; ++kind)
    if (counted[kind] > 0)
      result.operations.emplace_back(static_cast<OpKind>(kind), looked_at == placement_.ranks
                                                                    ? counted[kind]
                                                                    : static_cast<uint64_t>(std::llround(
                                                                          static_cast<double>(counted[kind]) * share)));
  return result;
}

} // namespace iocast
