// SPDX-License-Identifier: Apache-2.0
#include "workload/application/processes.hpp"

#include "input/error.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace iocast {

Processes::Processes(const Scope& scope, const std::optional<YamlNode>& given, const Placement& placement)
    : ranks_(placement.ranks), count_(placement.ranks)
{
  if (given) {
    given->allow_only({"sets", "dealt", "outstanding"});
    if (const auto outstanding = given->find("outstanding")) {
      lanes_ = static_cast<uint32_t>(scope.whole(*outstanding, Unit::count, 1, 1024));
      count_ = (ranks_ + lanes_ - 1) / lanes_;
    }
    if (const auto dealt = given->find("dealt"))
      round_robin_ = scope.choice(*dealt, {"blocks", "round-robin"}) == 1;
  }
  sets_.push_back({"all", count_});
  const auto sets = given ? given->find("sets") : std::nullopt;
  if (!sets)
    return;
  cycle_ = 0;
  for (const auto& [name, weight] : sets->entries()) {
    if (name == "all")
      weight.fail("'all' is the set of all processes; call this one otherwise");
    sets_.push_back({name, 0, static_cast<uint32_t>(scope.whole(weight, Unit::count, 0, 1e6)), cycle_, 0});
    cycle_ += sets_.back().weight;
  }
  if (cycle_ == 0)
    sets->fail("at least one set has a weight above zero");
  for (size_t i = 1; i < sets_.size(); ++i) {
    Set& set = sets_[i];
    if (round_robin_) {
      const uint32_t rest = count_ % cycle_;
      set.size = count_ / cycle_ * set.weight + std::min(rest > set.before ? rest - set.before : 0, set.weight);
    } else {
      set.first = static_cast<uint32_t>(uint64_t{count_} * set.before / cycle_);
      set.size  = static_cast<uint32_t>(uint64_t{count_} * (set.before + set.weight) / cycle_) - set.first;
    }
  }
}

uint32_t Processes::set_named(const Scope& scope, const YamlNode& node) const
{
  std::vector<std::string> names;
  for (const auto& set : sets_)
    names.push_back(set.name);
  return static_cast<uint32_t>(scope.choice(node, names));
}

uint32_t Processes::process_at(uint32_t set, uint32_t index) const
{
  if (set == everyone)
    return index;
  const Set& s = sets_[set];
  return round_robin_ ? index / s.weight * cycle_ + s.before + index % s.weight : s.first + index;
}

uint64_t Processes::ranks_of(uint32_t set, uint32_t from, uint32_t size) const
{
  if (size == 0)
    return 0;
  return uint64_t{size - 1} * lanes_ + lanes_of(process_at(set, from + size - 1));
}

} // namespace iocast
