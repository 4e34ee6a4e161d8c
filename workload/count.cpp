// SPDX-License-Identifier: Apache-2.0
#include "workload/count.hpp"

#include "workload/random.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

namespace iocast {
namespace {

constexpr uint32_t fewest = 16; ///< ranks that stand for all, however long they are
constexpr double several  = 10; ///< operations from which on ranks are compared: fewer differ by chance

struct Counted {
  uint32_t rank;
  double weight; ///< ranks that it stands for
};

/// All ranks, or about `wanted` of them.
std::vector<Counted> chosen(uint32_t ranks, uint32_t wanted)
{
  std::vector<Counted> found;
  if (wanted >= ranks) {
    for (uint32_t rank = 0; rank < ranks; ++rank)
      found.push_back({rank, 1});
    return found;
  }
  // The first often makes what the others use, and the last has what is left: neither stands for another.
  found.push_back({0, 1});
  const uint64_t between = ranks - 2;
  const uint64_t parts   = wanted - 2;
  for (uint64_t part = 0; part < parts; ++part) {
    const uint64_t low   = 1 + between * part / parts;
    const uint64_t width = 1 + between * (part + 1) / parts - low;
    // Drawn, lest they all have the same place on their nodes.
    found.push_back({static_cast<uint32_t>(low + mix(part) % width), static_cast<double>(width)});
  }
  found.push_back({ranks - 1, 1});
  return found;
}

struct KindCount {
  double operations = 0;
  double bytes      = 0;
  double blocks     = 0;
  double least      = INFINITY; ///< of a worker
  double most       = 0;
};

struct PhaseCount {
  std::string_view name;
  uint32_t repeats    = 0;
  double most_seconds = 0;
  std::array<KindCount, op_count> kinds{};
  double workers = 0;
  std::vector<uint32_t> nodes; ///< of the workers
  std::vector<uint64_t> datasets;
  std::vector<uint64_t> objects;
  bool together = false;
  bool pauses   = false;
  std::array<uint64_t, op_count> of_rank{}; ///< operations of the rank that is being counted
};

void keep_unlike(std::vector<uint64_t>& numbers)
{
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

class Counting {
public:
  Counting(const Pattern& pattern, const Placement& placement, bool whole)
      : pattern_(pattern), placement_(placement), whole_(whole)
  {
    for (const auto& phase : pattern.phases()) {
      const auto same =
          std::find_if(phases_.begin(), phases_.end(), [&](const auto& one) { return one.name == phase.name; });
      place_.push_back(static_cast<size_t>(same - phases_.begin()));
      if (same == phases_.end())
        phases_.emplace_back().name = phase.name;
      auto& one = phases_[place_.back()];
      ++one.repeats;
      one.most_seconds = std::max(one.most_seconds, phase.most_seconds);
    }
  }

  void add(const Counted& counted)
  {
    Cursor cursor;
    cursor.rank = counted.rank;
    size_t number{};
    PhaseCount* phase = nullptr;
    Op op;
    while (pattern_.next(cursor, op)) {
      if (op.kind == OpKind::phase) {
        if (phase && pattern_.phases()[number].most_seconds > 0)
          pattern_.agree(cursor, pattern_.reached(cursor));
        number = op.object;
        phase  = &phases_[place_[number]];
      } else {
        add(*phase, op, counted.weight);
      }
    }
    end_rank(counted);
  }

  nlohmann::ordered_json json()
  {
    auto found = nlohmann::ordered_json::array();
    for (auto& phase : phases_) {
      std::sort(phase.nodes.begin(), phase.nodes.end());
      phase.nodes.erase(std::unique(phase.nodes.begin(), phase.nodes.end()), phase.nodes.end());
      // Of workers that were not looked at nothing is known but that a node has no more ranks.
      const double nodes =
          std::max(static_cast<double>(phase.nodes.size()), std::ceil(phase.workers / placement_.ranks_per_node));
      nlohmann::ordered_json operations = nlohmann::ordered_json::object(), bytes = operations, blocks = operations;
      bool unlike = false;
      for (size_t kind = 0; kind < op_count; ++kind) {
        const auto& one = phase.kinds[kind];
        if (one.operations == 0)
          continue;
        const std::string name(op_names[kind]);
        operations[name] = one.operations;
        bytes[name]      = one.bytes;
        blocks[name]     = one.blocks;
        unlike           = unlike || (one.most >= several && 2 * one.least < one.most);
      }
      found.push_back({{"name", phase.name},
                       {"repeats", phase.repeats},
                       {"most_seconds", phase.most_seconds},
                       {"workers", std::llround(phase.workers)},
                       {"worker_nodes", std::llround(nodes)},
                       {"operations", operations},
                       {"bytes", bytes},
                       {"blocks", blocks},
                       {"together", phase.together},
                       {"pauses", phase.pauses},
                       {"unlike", unlike}});
      if (whole_) {
        keep_unlike(phase.datasets);
        keep_unlike(phase.objects);
        found.back()["datasets"] = phase.datasets.size();
        found.back()["objects"]  = phase.objects.size();
      }
    }
    return found;
  }

private:
  void add(PhaseCount& phase, const Op& op, double weight)
  {
    phase.together = phase.together || op.is_joint();
    if (op.kind == OpKind::think) {
      phase.pauses = true;
      return;
    }
    auto& kind          = phase.kinds[static_cast<size_t>(op.kind)];
    const double blocks = std::max<uint32_t>(op.count, 1);
    ++phase.of_rank[static_cast<size_t>(op.kind)];
    kind.operations += weight;
    kind.bytes += weight * static_cast<double>(op.size) * blocks;
    kind.blocks += weight * blocks;
    if (!whole_)
      return;
    note(phase.datasets, mix(op.dataset));
    note(phase.objects, mix(mix(op.dataset) ^ op.object));
  }

  /// A rank often uses one thing several times in turn.
  static void note(std::vector<uint64_t>& numbers, uint64_t number)
  {
    if (numbers.empty() || numbers.back() != number)
      numbers.push_back(number);
  }

  void end_rank(const Counted& counted)
  {
    const auto& arrivals  = pattern_.arrivals_of(counted.rank);
    const bool on_its_own = arrivals.is_open() || arrivals != pattern_.Pattern::arrivals_of(counted.rank);
    for (auto& phase : phases_) {
      if (std::any_of(phase.of_rank.begin(), phase.of_rank.end(), [](uint64_t count) { return count > 0; })) {
        phase.workers += counted.weight;
        phase.pauses = phase.pauses || on_its_own;
        phase.nodes.push_back(placement_.node_of(counted.rank));
        for (size_t kind = 0; kind < op_count; ++kind) {
          const auto count        = static_cast<double>(std::exchange(phase.of_rank[kind], 0));
          phase.kinds[kind].least = std::min(phase.kinds[kind].least, count);
          phase.kinds[kind].most  = std::max(phase.kinds[kind].most, count);
        }
      }
    }
  }

  const Pattern& pattern_;
  const Placement placement_;
  const bool whole_;
  std::vector<PhaseCount> phases_;
  std::vector<size_t> place_; ///< by number of a phase: where its name's count is
};

} // namespace

nlohmann::ordered_json count_operations(const Pattern& pattern, const Placement& placement, uint64_t most)
{
  Amount all           = 0;
  auto expected        = nlohmann::ordered_json::object();
  const auto footprint = pattern.footprint();
  check_size(footprint);
  for (const auto& [kind, count] : footprint.operations) {
    expected[std::string(name_of(kind))] = count;
    all                                  = all + Amount(count);
  }
  const bool whole    = all <= most || placement.ranks <= fewest;
  const double each   = static_cast<double>(all) / placement.ranks;
  const auto wanted   = std::max<double>(fewest, static_cast<double>(most) / std::max(each, 1.0));
  const auto counting = whole ? placement.ranks : static_cast<uint32_t>(std::min<double>(wanted, placement.ranks));
  Counting counts(pattern, placement, whole);
  for (const auto& rank : chosen(placement.ranks, counting))
    counts.add(rank);
  return {{"whole", whole},
          {"expected", expected},
          {"bytes_written", footprint.bytes_written},
          {"bytes_read", footprint.bytes_read},
          {"phases", counts.json()}};
}

} // namespace iocast
