// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/flat_table.hpp"

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace iocast {

/// Flows that share links max-min fairly (Bertsekas and Gallager, Data Networks, section 6.5.2), worked out anew only
/// where something changed. It knows no platform.
///
/// Flows with the same route are a bundle. Each bundle is held by one link of its route, its bottleneck, whose level is
/// the rate of each flow that it holds: (capacity - what flows held elsewhere use) / weights of the flows held. What a
/// flow has got is read off its link's virtual clock, which runs at the level, so that a new level costs nothing for
/// each flow.
///
///   max-min  <=>  on each link that holds flows, what they use adds up to its capacity, and none of the flows held
///                 elsewhere is faster than its level; on each other link it adds up to no more than its capacity.
///
/// A link that holds nothing is watched instead of computed: it allows the levels of the others so much growth that it
/// can't be full before one of them exceeds what it was allowed.
class FlowNetwork {
public:
  using Link                        = uint32_t;
  static constexpr uint32_t none    = UINT32_MAX;
  static constexpr size_t most_hops = 32;

  /// One link of a route. A flow of rate x uses weight * x of the link's capacity; weights are rounded to multiples of
  /// 2^-32, so that their sums are exact.
  struct Pass {
    Link link;
    double weight = 1;
  };
  struct Ended {
    uint32_t flow;
    double bytes;
  };
  /// What the work took: `looks` at links, `moves` of bundles from one bottleneck to another; `fallbacks` counts how
  /// often shares were filled from nothing as these had not settled.
  struct Cost {
    uint64_t starts = 0, settles = 0, looks = 0, moves = 0, fallbacks = 0;
  };

  /// @param capacity bytes a second of all flows together, > 0
  Link add_link(double capacity);
  /// No link, but what each flow that has it in its route gets at most, bytes a second.
  Link add_rate(double rate);
  size_t links() const { return links_.size(); }
  /// Shares of the capacity that are left with 1, 2, ... flows in progress; beyond the table its last entry.
  void degrade(Link link, std::vector<double> shares);

  /// From `now` on; of a link of add_link().
  void set_capacity(Link link, double capacity, double now);

  /// @param key same key, same route; `route()`, a span of Pass with at least one link of add_link() or add_rate() and
  /// no link twice, is called only when no flow of that key is in progress
  /// @param now seconds, never before an earlier call's
  template <class Route> void start(uint64_t key, Route route, uint32_t flow, double bytes, double now)
  {
    auto& found = by_key_.find(key);
    if (found.used())
      join(found.value, flow, bytes, now);
    else
      join(new_bundle(key, route()), flow, bytes, now);
  }
  /// When the next flow ends if nothing else begins; infinity when there is none.
  double next_time();
  /// Appends those that end up to then.
  void end(double now, std::vector<Ended>& ended);
  /// Takes out a flow that is in progress: the bytes that it has not moved.
  double withdraw(uint64_t key, uint32_t flow, double now);
  bool empty() const { return flows_ == 0; }
  size_t flows() const { return flows_; }
  /// Flows whose route has the link.
  uint32_t flows_at(Link link) const { return links_[link].total; }

  /// Weighted bytes that each link has moved, of ended flows and those in progress; O(links + flows in progress).
  std::vector<double> moved(double now);
  const Cost& cost() const { return cost_; }

  // For tests.
  double rate_of(uint64_t key);
  /// After next_time(). @throws std::runtime_error unless the shares are max-min, by the condition above and by
  /// progressive filling
  void check(double relative) const;
  /// Fills from nothing after this number of looks at links in one go; 0: always.
  void fall_back_after(uint64_t looks) { most_looks_ = looks; }

private:
  using Bundle = uint32_t;
  struct Flow {
    double mark; ///< of the bundle's clock, when it ends
    double bytes;
    uint32_t id;
  };
  struct Hop {
    Link link;
    uint32_t cell; ///< none at the link that holds the bundle
    uint32_t next;
    uint32_t prev; ///< hops of the same cell
    double weight;
  };
  struct BundleState {
    uint64_t key   = 0;
    double offset  = 0; ///< bundle's clock - clock of the link that holds it
    uint32_t count = 0;
    uint8_t holder = 0; ///< hop
    uint32_t at    = 0; ///< in the holder's heap
    std::vector<Flow> flows;
    std::vector<Hop> hops;
  };
  /// Bundles at a link that another one holds.
  struct Cell {
    Link link;
    Link by;
    double weight    = 0;    ///< of all their flows
    uint32_t first   = none; ///< hop of a bundle
    uint32_t at_link = 0;
    uint32_t at_by   = none; ///< in `informed_cells` of the other link
    uint32_t version = 0;
    double allowed   = -1; ///< level of `by` up to which the link need not look; negative: none yet
  };
  struct Watch {
    double level;
    uint32_t cell;
    uint32_t version;
  };
  struct LinkState {
    double capacity = 0;
    double level    = std::numeric_limits<double>::infinity();
    double clock    = 0;
    double since    = 0;
    double bound    = 0; ///< most that flows can get here, while it holds none
    double due      = std::numeric_limits<double>::infinity();
    double held     = 0; ///< weights of the flows that it holds
    double moved    = 0; ///< weighted bytes of ended flows
    uint32_t total  = 0; ///< flows, held here or elsewhere
    uint32_t at_due = none;
    uint32_t table  = none;
    bool is_rate    = false;
    bool dirty      = false;
    bool touched    = false;              ///< its heap or level changed since its due time was known
    std::vector<uint32_t> heap;           ///< bundles that it holds, next end first
    std::vector<uint32_t> cells;          ///< of bundles held elsewhere
    std::vector<uint32_t> informed_cells; ///< cells at others that hold some, of bundles held here
    std::vector<Watch> watches;           ///< with some that are over
    size_t most_watches = 64;             ///< before those are dropped
    bool holds() const { return held > 0 || is_rate; }
  };
  struct Known {
    uint64_t key   = 0;
    uint32_t value = none;
    bool used() const { return value != none; }
  };
  /// The bottleneck of a bundle, and what it gets there.
  struct Share {
    double rate = 0;
    uint8_t hop = 0;
  };

  // A bundle's hop as one number.
  static uint32_t place_of(Bundle id, uint8_t hop) { return id * most_hops + hop; }
  Hop& hop_at(uint32_t place) { return bundles_[place / most_hops].hops[place % most_hops]; }

  double rate(Bundle id) const { return links_[bundles_[id].hops[bundles_[id].holder].link].level; }
  double top(Bundle id) const { return bundles_[id].flows.front().mark - bundles_[id].offset; }
  double capacity(const LinkState& link) const;
  double used(Link id) const;
  Bundle new_bundle(uint64_t key, std::span<const Pass> route);
  void begin_bundle(Bundle id, uint32_t flow, double bytes);
  void join(Bundle id, uint32_t flow, double bytes, double now);
  void leave(Bundle id, size_t flow, double bytes);
  static void advance(LinkState& link, double now);
  void hold(Bundle id, uint8_t hop);
  void let_go(Bundle id);
  void move(Bundle id, uint8_t hop);
  uint32_t new_cell(Link link, Link by);
  void put_in_cell(Bundle id, uint8_t hop, Link by);
  void take_from_cell(Bundle id, uint8_t hop);
  void weigh_in_cell(uint32_t cell, double weight);
  void look(Link link);
  void pull(Link link, double level, double used);
  void relax(Link link, double used);
  void watch(uint32_t cell);
  void set_level(Link link, double level);
  void make_dirty(Link link, double key);
  void inform(uint32_t cell);
  void leave_out(uint32_t cell);
  void touch(Link link);
  void sift(std::vector<uint32_t>& heap, uint32_t at);
  void heap_remove(std::vector<uint32_t>& heap, uint32_t at);
  void due_changed(Link link);
  void due_sift(uint32_t at);
  void settle();
  void fall_back();
  std::vector<Share> fill() const;

  std::vector<LinkState> links_;
  std::vector<BundleState> bundles_;
  std::vector<Bundle> free_bundles_;
  std::vector<Cell> cells_;
  std::vector<uint32_t> free_cells_;
  std::vector<std::vector<double>> tables_;
  FlatTable<Known> by_key_;
  FlatTable<Known> cell_of_;                   ///< by link and the one that holds
  std::vector<std::pair<double, Link>> dirty_; ///< heap, lowest level first
  std::vector<Link> touched_;
  std::vector<Link> due_; ///< heap of links that hold flows, by when the next one ends
  std::vector<std::pair<double, uint32_t>> faster_;
  size_t flows_        = 0;
  double now_          = 0;
  uint64_t most_looks_ = UINT64_MAX;
  Cost cost_;
};

} // namespace iocast
