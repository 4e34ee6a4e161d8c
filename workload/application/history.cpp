// SPDX-License-Identifier: Apache-2.0
#include "workload/application/history.hpp"

#include "input/error.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace iocast {

namespace {
/// The kinds of groups that there are: the last one, and full ones before it.
std::vector<size_t> group_kinds(const Access& access)
{
  return access.groups > 1 ? std::vector<size_t>{0, 1} : std::vector<size_t>{1};
}

bool alone(const Access& access)
{
  return access.per_group == 1;
}
} // namespace

void History::Ranges::add(uint64_t begin, uint64_t end)
{
  std::vector<std::pair<uint64_t, uint64_t>> result;
  for (const auto& range : ranges_)
    if (range.second < begin || range.first > end) {
      result.push_back(range);
    } else {
      begin = std::min(begin, range.first);
      end   = std::max(end, range.second);
    }
  result.emplace_back(begin, end);
  std::sort(result.begin(), result.end());
  ranges_ = std::move(result);
}

bool History::Ranges::cover(uint64_t begin, uint64_t end) const
{
  return std::any_of(ranges_.begin(), ranges_.end(),
                     [&](const auto& range) { return range.first <= begin && end <= range.second; });
}

History::History(Plan& plan, uint64_t done) : plan_(plan), states_(plan.files.size())
{
  for (auto& file : plan_.files)
    if (file.prepare == FileClass::Prepare::always)
      for (const auto& phase : plan_.phases)
        for (const auto& access : phase.accesses)
          if (access.by_size > 0 && access.moves_data() && &plan_.files[access.file] == &file)
            prepare(phase, access, true);
  states_ = prepared();
  follow(Round::wanting);
  states_ = prepared();
  // Once every phase has been carried out, only the number modulo a whole round matters.
  const uint64_t all = plan_.phases.size();
  for (uint64_t i = 0; i < (done < all ? done : all + done % all); ++i)
    remember(plan_.phases[i % all]);
  before_       = states_;
  peak_objects_ = peak_bytes_ = 0;
  note_peak();
  peak_before_ = {peak_objects_, peak_bytes_};
  follow(Round::final);
}

/// As the files are before the benchmark begins.
std::vector<History::State> History::prepared() const
{
  std::vector<State> states(plan_.files.size());
  for (size_t i = 0; i < states.size(); ++i) {
    const auto& file = plan_.files[i];
    states[i].exists = file.made;
    states[i].bytes  = file.filled_bytes;
    for (size_t kind = 0; kind < 2; ++kind)
      if (file.filled_bytes[kind] > 0)
        states[i].written[kind].add(0, file.filled_bytes[kind]);
  }
  return states;
}

void History::follow(Round round)
{
  for (auto& phase : plan_.phases)
    follow(phase, round);
}

void History::follow(PlannedPhase& phase, Round round)
{
  phase.removes.clear();
  for (const auto& access : phase.accesses)
    if (access.new_files && access.by_size > 0 && states_[access.file].exists) {
      phase.removes.push_back(access.file);
      remove(access.file);
    }
  for (size_t i = 0; i < phase.accesses.size(); ++i)
    if (phase.accesses[i].by_size > 0) {
      check_existence(phase, i);
      check_written(phase, i, round);
    }
  if (round == Round::final)
    check_overlaps(phase);
  for (auto& access : phase.accesses)
    access.makes = access.writes() && !states_[access.file].exists;
  remember(phase);
}

/// Files that are removed, queried or written under a time limit have to exist.
void History::check_existence(const PlannedPhase& phase, size_t number)
{
  const auto& access = phase.accesses[number];
  if (states_[access.file].exists)
    return;
  if (!access.moves_data() ? !did_it_itself(phase, number) : access.writes() && phase.most_seconds > 0)
    prepare(phase, access, false);
}

void History::check_written(PlannedPhase& phase, size_t number, Round round)
{
  auto& access      = phase.accesses[number];
  const auto& state = states_[access.file];
  if (!access.moves_data() || !access.reads_first())
    return;
  const auto kinds = group_kinds(access);
  const bool known = std::all_of(kinds.begin(), kinds.end(), [&](size_t kind) {
    return state.written[kind].cover(access.shapes[kind].begin, access.shapes[kind].end);
  });
  if (known || did_it_itself(phase, number) || continues_timed_phase(phase, access, round))
    return;
  if (round == Round::wanting && state.touched)
    warnings_.push_back(fmt::format(
        "The files '{}' are filled before the benchmark begins, because the phase '{}' reads bytes that no phase "
        "before it is sure to have written.",
        plan_.files[access.file].name, phase.name));
  prepare(phase, access, true);
}

/// In an earlier access of the same phase the same process wrote all that it asks for now.
bool History::did_it_itself(const PlannedPhase& phase, size_t number) const
{
  const auto& access = phase.accesses[number];
  if (plan_.processes.lanes() > 1)
    return false;
  for (size_t i = 0; i < number; ++i) {
    const auto& earlier = phase.accesses[i];
    if (earlier.file != access.file || !earlier.writes() || earlier.operation == Operation::mixed ||
        !earlier.same_processes(access))
      continue;
    if (!access.moves_data())
      return alone(access);
    if (earlier.layout == access.layout && !access.layout->draws_places())
      return true;
    const auto kinds = group_kinds(access);
    if (alone(access) && std::all_of(kinds.begin(), kinds.end(), [&](size_t kind) {
          const auto& wrote = earlier.shapes[kind];
          const auto& asks  = access.shapes[kind];
          return wrote.whole && wrote.begin <= asks.begin && asks.end <= wrote.end;
        }))
      return true;
  }
  return false;
}

/// The same processes wrote the same blocks in the same order in an earlier timed phase, and read back as far as they
/// came.
bool History::continues_timed_phase(const PlannedPhase& phase, Access& access, Round round)
{
  if (access.operation != Operation::read || access.shift != 0 || phase.at_once > 0 ||
      access.together != Access::Together::nothing)
    return false;
  for (auto& earlier : plan_.phases) {
    if (&earlier == &phase)
      return false;
    if (earlier.most_seconds == 0)
      continue;
    for (size_t i = 0; i < earlier.accesses.size(); ++i) {
      const auto& wrote = earlier.accesses[i];
      if (!wrote.writes() || wrote.operation == Operation::mixed || !wrote.same_requests(access) ||
          wrote.layout->draws_places())
        continue;
      if (earlier.slot >= 0 && earlier.slot_access != i)
        continue;
      if (earlier.slot < 0) {
        if (used_slots_ == slots)
          continue;
        earlier.slot        = used_slots_++;
        earlier.slot_access = i;
      }
      if (round == Round::final)
        access.follows = earlier.slot;
      return true;
    }
  }
  return false;
}

void History::prepare(const PlannedPhase& phase, const Access& access, bool fill)
{
  auto& file        = plan_.files[access.file];
  const auto& state = states_[access.file];
  if (file.prepare == FileClass::Prepare::never)
    access.where.fail(fmt::format(
        "the phase '{}' needs {} the files '{}' that no phase before it is sure to have made, and they are never "
        "prepared",
        phase.name, fill ? "bytes of" : "", file.name));
  if (state.removed)
    access.where.fail(
        fmt::format("the phase '{}' needs the files '{}', which an earlier phase removes", phase.name, file.name));
  file.made = true;
  if (fill)
    for (const size_t kind : group_kinds(access))
      file.filled_bytes[kind] = std::max(file.filled_bytes[kind], access.shapes[kind].end);
  // From here on it is as if this had been so from the start.
  auto& now  = states_[access.file];
  now.exists = true;
  for (const size_t kind : group_kinds(access))
    if (fill) {
      now.written[kind].add(0, access.shapes[kind].end);
      now.bytes[kind] = std::max(now.bytes[kind], access.shapes[kind].end);
    }
}

void History::check_overlaps(const PlannedPhase& phase) const
{
  for (size_t i = 0; i < phase.accesses.size(); ++i)
    for (size_t j = i; j < phase.accesses.size(); ++j)
      if (phase.accesses[i].file == phase.accesses[j].file && phase.accesses[i].by_size > 0 &&
          phase.accesses[j].by_size > 0)
        check_overlap(phase, phase.accesses[i], phase.accesses[j]);
}

void History::check_overlap(const PlannedPhase& phase, const Access& a, const Access& b) const
{
  const auto& file       = plan_.files[a.file];
  const bool one_process = alone(a) && alone(b) && a.same_processes(b);
  if (one_process || phase.at_once == 1)
    return;
  if (a.operation == Operation::remove || b.operation == Operation::remove) {
    if (&a != &b)
      b.where.fail(fmt::format(
          "in the phase '{}', files '{}' are removed while other processes use them; do it in a phase of its own",
          phase.name, file.name));
    return;
  }
  if (!a.moves_data() || !b.moves_data() || (!a.writes() && !b.writes()) || file.may_overlap)
    return;
  const auto kinds    = group_kinds(a);
  const bool disjoint = std::all_of(kinds.begin(), kinds.end(), [&](size_t kind) {
    const auto& first  = a.shapes[kind];
    const auto& second = b.shapes[kind];
    if (&a == &b || (a.same_processes(b) && a.layout == b.layout))
      return first.disjoint;
    return first.end <= second.begin || second.end <= first.begin;
  });
  if (!disjoint)
    b.where.fail(fmt::format("in the phase '{}', bytes of a file '{}' that one process writes are {} by another at the "
                             "same time; if that is "
                             "meant, give the file 'may_overlap: true'",
                             phase.name, file.name, a.writes() && b.writes() ? "written" : "read"));
}

void History::remember(const PlannedPhase& phase)
{
  for (const auto& access : phase.accesses) {
    if (access.by_size == 0 || !access.writes())
      continue;
    auto& state   = states_[access.file];
    state.exists  = true;
    state.touched = true;
    for (const size_t kind : group_kinds(access)) {
      const auto& shape = access.shapes[kind];
      state.bytes[kind] = std::max(state.bytes[kind], shape.end);
      if (phase.most_seconds == 0 && access.fills(kind))
        state.written[kind].add(shape.begin, shape.end);
    }
  }
  note_peak();
  for (const auto& access : phase.accesses)
    if (access.operation == Operation::remove && access.by_size > 0)
      remove(access.file);
}

void History::remove(size_t file)
{
  states_[file]         = {};
  states_[file].removed = true;
  states_[file].touched = true;
}

void History::note_peak()
{
  uint64_t objects = 0;
  uint64_t bytes   = 0;
  for (size_t i = 0; i < states_.size(); ++i)
    if (states_[i].exists) {
      objects += plan_.files[i].files();
      bytes += plan_.files[i].total(states_[i].bytes);
    }
  peak_objects_ = std::max(peak_objects_, objects);
  peak_bytes_   = std::max(peak_bytes_, bytes);
}

} // namespace iocast
