// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "input/error.hpp"
#include "models/platform.hpp"
#include "models/stall.hpp"
#include "workload/random.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <optional>
#include <vector>

namespace iocast {

/// A request as it was served, in seconds of the caller's clock.
struct Served {
  OpKind kind;
  double arrival;
  double start; ///< of its service, after it has waited for a server and for the end of a stall
  double finish;
};

/// The stations of a platform in real time: first come, first served, exactly. Each request learns on arrival when its
/// answer is due.
class Stations {
public:
  /// What a file system asks of its metadata server. An open is that of a read.
  static constexpr std::array<OpKind, 6> kinds{OpKind::stat,   OpKind::create, OpKind::read,
                                               OpKind::unlink, OpKind::mkdir,  OpKind::rmdir};

  /// @throws InputError for a platform of which not every route is one visit to one station of `c` servers alike
  Stations(const Platform& platform, uint64_t seed) : seed_(seed)
  {
    if (!platform.failures.empty())
      throw InputError(fmt::format(
          "The platform '{}' can't be a real file system: its servers don't fail as its failures say.", platform.file));
    for (const auto& spec : platform.stations) {
      free_at_.emplace_back(spec.servers, 0.0);
      rating_.push_back(spec.rating);
    }
    for (uint32_t number = 0; number < platform.stalls.size(); ++number)
      stalls_.push_back({platform.stalls[number], StallClock(platform.stalls[number], seed, number)});
    for (const OpKind kind : kinds)
      visits_[static_cast<size_t>(kind)] = visit_of(platform, kind);
  }

  /// When the answer to a request is due that comes now; at once for what costs nothing.
  double serve(OpKind kind, double now)
  {
    const auto& visit = visits_[static_cast<size_t>(kind)];
    if (!visit)
      return now;
    auto& free_at   = free_at_[visit->station];
    const auto next = std::min_element(free_at.begin(), free_at.end());
    double start    = std::max(now, *next);
    for (auto& [spec, clock] : stalls_)
      if (spec.station == visit->station && spec.operations[static_cast<size_t>(kind)])
        start = std::max(start, clock.end_of_window(start));
    const auto words = random_words(seed_, Stream::service, static_cast<uint32_t>(kind), served_.size());
    *next            = start + visit->law->at(to_uniform(words[0])) / rating_[visit->station];
    served_.push_back({kind, now, start, *next});
    return *next;
  }

  /// All so far, in the order of their arrival.
  const std::vector<Served>& served() const { return served_; }

private:
  struct Visit {
    uint32_t station;
    LawPointer law;
  };

  static std::optional<Visit> visit_of(const Platform& platform, OpKind kind)
  {
    const auto refuse = [&](const std::string& why) -> InputError {
      return InputError(
          fmt::format("The platform '{}' can't be a real file system: the route of {} {}. A route here is one visit to "
                      "a station with count 1 "
                      "and first come, first served, without locks, limits and work that depends on load.",
                      platform.file, name_of(kind), why));
    };
    std::optional<Visit> found;
    for (const Step& step : platform.routes[static_cast<size_t>(kind)].steps) {
      if (step.kind == Step::Kind::end_part || step.kind == Step::Kind::end)
        break;
      if (step.kind != Step::Kind::visit)
        throw refuse("has a step that is no visit");
      if (found)
        throw refuse("has several visits");
      const StationSpec& spec = platform.stations[step.target];
      if (spec.per != Per::system || spec.count != 1 || spec.discipline != Discipline::fcfs || spec.contention > 0 ||
          spec.coherency > 0 || !spec.speeds.empty() || spec.crowding > 0 || !spec.priority.empty() || step.lock >= 0)
        throw refuse(fmt::format("visits '{}', which is more than that", spec.name));
      found = Visit{step.target, step.law};
    }
    return found;
  }

  uint64_t seed_;
  std::vector<std::vector<double>> free_at_; ///< by station, of each of its servers
  std::vector<double> rating_;
  std::vector<std::pair<StallSpec, StallClock>> stalls_;
  std::array<std::optional<Visit>, op_count> visits_;
  std::vector<Served> served_;
};

} // namespace iocast
