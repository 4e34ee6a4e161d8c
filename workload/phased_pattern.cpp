// SPDX-License-Identifier: Apache-2.0
#include "workload/phased_pattern.hpp"

#include "input/error.hpp"
#include "workload/phase_list.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace iocast {

bool PhasedPattern::next(Cursor& cursor, Op& op) const
{
  while (cursor.phase < which_.size()) {
    if (cursor.step == 0) {
      op          = {OpKind::phase, 0, cursor.phase};
      cursor.step = 1;
      cursor.i    = 0;
      cursor.j    = 0;
      return true;
    }
    if (next_in(which_[cursor.phase], cursor, op)) [[likely]]
      return true;
    cut(cursor);
  }
  return false;
}

void PhasedPattern::cut(Cursor& cursor) const
{
  ++cursor.phase;
  cursor.step = 0;
}

void PhasedPattern::choose_phases(const std::string& pattern, const std::string& wanted,
                                  const std::vector<PhaseOfWork>& all)
{
  std::vector<std::string> names;
  for (const auto& planned : all)
    if (names.empty() || names.back() != planned.phase.name)
      names.push_back(planned.phase.name);

  std::vector<bool> chosen(names.size(), wanted == "all");
  if (wanted != "all")
    for (const size_t place : requested_phases(pattern, names, wanted))
      chosen[place] = true;

  using Does   = PhaseOfWork::Does;
  bool leaves  = false; // out a phase that makes something
  bool removes = false;
  bool limited = false;
  std::vector<std::string> makers;
  for (const auto& planned : all) {
    const auto& name = planned.phase.name;
    const bool runs  = chosen[static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin())];
    if (runs) {
      phases_.push_back(planned.phase);
      which_.push_back(planned.which);
    }
    removes |= runs && planned.does == Does::removes;
    if (planned.does != Does::makes)
      continue;
    if (makers.empty() || makers.back() != name)
      makers.push_back(name);
    (runs ? makes_ : leaves) = true;
    limited |= runs && planned.phase.most_seconds > 0;
  }
  making_phases_ = fmt::format("{}", fmt::join(makers, ","));
  if (makes_ && leaves)
    throw InputError(
        fmt::format("The phases {} of {} make one data set together; choose all of them or none, not '{}'.",
                    fmt::join(makers, ", "), pattern, wanted));
  if (limited && !removes)
    throw InputError(fmt::format(
        "A later run of {} can't know how much a phase that ends after some time made; set most_seconds=0s or "
        "add the phase cleanup.",
        pattern));
}

bool PhasedPattern::runs(size_t which) const
{
  return std::find(which_.begin(), which_.end(), which) != which_.end();
}

} // namespace iocast
