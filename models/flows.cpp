// SPDX-License-Identifier: Apache-2.0
#include "models/flows.hpp"

#include "workload/random.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <fmt/format.h>
#include <stdexcept>

namespace iocast {

namespace {
constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double same     = 1e-12; // relative difference of levels that is none
/// Of its own for each pair; mixed, since a FlatTable's home hardly looks at the upper half of a key.
uint64_t pair_of(uint32_t a, uint32_t b)
{
  return mix(uint64_t{a} << 32 | b);
}
/// Of flows that end at once, the first by number: heaps of different standard libraries disagree on equals.
constexpr auto later = [](const auto& a, const auto& b) {
  return a.mark > b.mark || (a.mark == b.mark && a.id > b.id);
};
constexpr auto higher = [](const auto& a, const auto& b) {
  return a.level > b.level || (a.level == b.level && a.cell > b.cell);
};
} // namespace

FlowNetwork::Link FlowNetwork::add_link(double capacity)
{
  links_.emplace_back().capacity = capacity;
  return static_cast<Link>(links_.size() - 1);
}

FlowNetwork::Link FlowNetwork::add_rate(double rate)
{
  const Link link      = add_link(rate);
  links_[link].is_rate = true;
  links_[link].level   = rate;
  return link;
}

void FlowNetwork::degrade(Link link, std::vector<double> shares)
{
  links_[link].table = static_cast<uint32_t>(tables_.size());
  tables_.push_back(std::move(shares));
}

void FlowNetwork::set_capacity(Link id, double capacity, double now)
{
  LinkState& link = links_[id];
  assert(!link.is_rate);
  now_ = now;
  advance(link, now);
  link.capacity = capacity;
  touch(id);
  make_dirty(id, link.level);
}

double FlowNetwork::capacity(const LinkState& link) const
{
  if (link.table == none || link.total == 0)
    return link.capacity;
  const auto& table = tables_[link.table];
  return link.capacity * table[std::min<size_t>(link.total, table.size()) - 1];
}

FlowNetwork::Bundle FlowNetwork::new_bundle(uint64_t key, std::span<const Pass> route)
{
  assert(!route.empty() && route.size() <= most_hops);
  Bundle id;
  if (free_bundles_.empty()) {
    id = static_cast<Bundle>(bundles_.size());
    bundles_.emplace_back();
  } else {
    id = free_bundles_.back();
    free_bundles_.pop_back();
  }
  BundleState& bundle = bundles_[id];
  bundle.key          = key;
  bundle.hops.clear();
  for (const auto& pass : route)
    bundle.hops.push_back(
        {pass.link, none, none, none, std::ldexp(std::max(1.0, std::round(std::ldexp(pass.weight, 32))), -32)});
  by_key_.insert({key, id});
  return id;
}

void FlowNetwork::advance(LinkState& link, double now)
{
  if (link.heap.empty())
    link.clock = 0; // nobody reads it: small numbers stay exact
  else
    link.clock += (now - link.since) * link.level;
  link.since = now;
}

// Heaps of bundles, by when their next flow ends.

void FlowNetwork::sift(std::vector<uint32_t>& heap, uint32_t at)
{
  const uint32_t id = heap[at];
  const double key  = top(id);
  while (at > 0) {
    const uint32_t up = (at - 1) / 2;
    if (top(heap[up]) <= key)
      break;
    heap[at]              = heap[up];
    bundles_[heap[at]].at = at;
    at                    = up;
  }
  for (;;) {
    uint32_t down = 2 * at + 1;
    if (down >= heap.size())
      break;
    if (down + 1 < heap.size() && top(heap[down + 1]) < top(heap[down]))
      ++down;
    if (top(heap[down]) >= key)
      break;
    heap[at]              = heap[down];
    bundles_[heap[at]].at = at;
    at                    = down;
  }
  heap[at]        = id;
  bundles_[id].at = at;
}

void FlowNetwork::heap_remove(std::vector<uint32_t>& heap, uint32_t at)
{
  const uint32_t last = heap.back();
  heap.pop_back();
  if (at < heap.size()) {
    heap[at]          = last;
    bundles_[last].at = at;
    sift(heap, at);
  }
}

// Links that hold flows, by when the next one ends.

void FlowNetwork::due_sift(uint32_t at)
{
  const Link id    = due_[at];
  const double key = links_[id].due;
  while (at > 0) {
    const uint32_t up = (at - 1) / 2;
    if (links_[due_[up]].due <= key)
      break;
    due_[at]                = due_[up];
    links_[due_[at]].at_due = at;
    at                      = up;
  }
  for (;;) {
    uint32_t down = 2 * at + 1;
    if (down >= due_.size())
      break;
    if (down + 1 < due_.size() && links_[due_[down + 1]].due < links_[due_[down]].due)
      ++down;
    if (links_[due_[down]].due >= key)
      break;
    due_[at]                = due_[down];
    links_[due_[at]].at_due = at;
    at                      = down;
  }
  due_[at]          = id;
  links_[id].at_due = at;
}

void FlowNetwork::touch(Link link)
{
  if (links_[link].touched)
    return;
  links_[link].touched = true;
  touched_.push_back(link);
}

void FlowNetwork::due_changed(Link id)
{
  LinkState& link = links_[id];
  link.touched    = false;
  if (link.heap.empty()) {
    if (link.at_due == none)
      return;
    const Link last   = due_.back();
    const uint32_t at = link.at_due;
    due_.pop_back();
    link.at_due = none;
    if (at < due_.size()) {
      due_[at]            = last;
      links_[last].at_due = at;
      due_sift(at);
    }
    return;
  }
  link.due = link.since + std::max(0.0, top(link.heap.front()) - link.clock) / link.level;
  if (link.at_due == none) {
    link.at_due = static_cast<uint32_t>(due_.size());
    due_.push_back(id);
  }
  due_sift(link.at_due);
}

// Cells: bundles at a link that another one holds.

void FlowNetwork::inform(uint32_t id)
{
  Cell& cell = cells_[id];
  if (cell.at_by != none)
    return;
  cell.at_by = static_cast<uint32_t>(links_[cell.by].informed_cells.size());
  links_[cell.by].informed_cells.push_back(id);
}

void FlowNetwork::leave_out(uint32_t id)
{
  Cell& cell = cells_[id];
  if (cell.at_by == none)
    return;
  auto& cells                     = links_[cell.by].informed_cells;
  cells[cell.at_by]               = cells.back();
  cells_[cells[cell.at_by]].at_by = cell.at_by;
  cells.pop_back();
  cell.at_by = none;
}

/// The cell's flows weigh so much more.
void FlowNetwork::weigh_in_cell(uint32_t id, double weight)
{
  Cell& cell      = cells_[id];
  LinkState& link = links_[cell.link];
  cell.weight += weight;
  if (link.holds()) {
    make_dirty(cell.link, link.level);
    return;
  }
  if (cell.allowed >= 0) {
    link.bound += weight * cell.allowed;
    if (link.bound <= capacity(link))
      return;
  }
  if (weight > 0 || link.table != none)
    make_dirty(cell.link, infinite);
}

uint32_t FlowNetwork::new_cell(Link link, Link by)
{
  uint32_t id;
  if (free_cells_.empty()) {
    id = static_cast<uint32_t>(cells_.size());
    cells_.emplace_back();
  } else {
    id = free_cells_.back();
    free_cells_.pop_back();
  }
  Cell& cell   = cells_[id];
  cell.link    = link;
  cell.by      = by;
  cell.weight  = 0;
  cell.at_link = static_cast<uint32_t>(links_[link].cells.size());
  links_[link].cells.push_back(id);
  if (links_[link].holds())
    inform(id);
  return id;
}

void FlowNetwork::put_in_cell(Bundle id, uint8_t hop, Link by)
{
  Hop& here    = bundles_[id].hops[hop];
  auto& known  = cell_of_.find(pair_of(here.link, by));
  uint32_t own = known.value;
  if (!known.used()) {
    own = new_cell(here.link, by);
    cell_of_.insert({pair_of(here.link, by), own});
  }
  Cell& cell = cells_[own];
  here.cell  = own;
  here.prev  = none;
  here.next  = cell.first;
  if (cell.first != none)
    hop_at(cell.first).prev = place_of(id, hop);
  cell.first = place_of(id, hop);
  weigh_in_cell(own, bundles_[id].count * here.weight);
}

void FlowNetwork::take_from_cell(Bundle id, uint8_t hop)
{
  Hop& here                                                 = bundles_[id].hops[hop];
  Cell& cell                                                = cells_[here.cell];
  (here.prev != none ? hop_at(here.prev).next : cell.first) = here.next;
  if (here.next != none)
    hop_at(here.next).prev = here.prev;
  weigh_in_cell(here.cell, -(bundles_[id].count * here.weight));
  if (cell.first == none) {
    leave_out(here.cell);
    auto& cells                         = links_[cell.link].cells;
    cells[cell.at_link]                 = cells.back();
    cells_[cells[cell.at_link]].at_link = cell.at_link;
    cells.pop_back();
    cell_of_.erase(cell_of_.find(pair_of(cell.link, cell.by)));
    ++cell.version;
    cell.allowed = -1;
    free_cells_.push_back(here.cell);
  }
  here.cell = none;
}

// Who holds a bundle.

void FlowNetwork::hold(Bundle id, uint8_t hop)
{
  BundleState& bundle = bundles_[id];
  const Link link_id  = bundle.hops[hop].link;
  LinkState& link     = links_[link_id];
  advance(link, now_);
  if (!link.holds()) { // it begins to hold flows: it must know the levels of others
    for (const uint32_t cell : link.cells) {
      cells_[cell].allowed = -1;
      ++cells_[cell].version;
      inform(cell);
    }
  }
  bundle.holder = hop;
  link.held += bundle.count * bundle.hops[hop].weight;
  bundle.at = static_cast<uint32_t>(link.heap.size());
  link.heap.push_back(id);
  sift(link.heap, bundle.at);
  touch(link_id);
  for (uint8_t other = 0; other < bundle.hops.size(); ++other)
    if (other != hop)
      put_in_cell(id, other, link_id);
}

void FlowNetwork::let_go(Bundle id)
{
  BundleState& bundle = bundles_[id];
  const Link link_id  = bundle.hops[bundle.holder].link;
  LinkState& link     = links_[link_id];
  advance(link, now_);
  for (uint8_t other = 0; other < bundle.hops.size(); ++other)
    if (other != bundle.holder)
      take_from_cell(id, other);
  heap_remove(link.heap, bundle.at);
  link.held -= bundle.count * bundle.hops[bundle.holder].weight;
  touch(link_id);
  make_dirty(link_id, link.level);
}

void FlowNetwork::move(Bundle id, uint8_t hop)
{
  ++cost_.moves;
  BundleState& bundle = bundles_[id];
  LinkState& from     = links_[bundle.hops[bundle.holder].link];
  LinkState& to       = links_[bundle.hops[hop].link];
  advance(from, now_);
  advance(to, now_);
  const double clock = from.clock + bundle.offset;
  let_go(id);
  bundle.offset = clock - to.clock;
  hold(id, hop);
}

/// With its first flow: held where the share seems least; settle() finds out whether it is.
void FlowNetwork::begin_bundle(Bundle id, uint32_t flow, double bytes)
{
  BundleState& bundle = bundles_[id];
  uint8_t best        = 0;
  double lowest       = infinite;
  for (uint8_t hop = 0; hop < bundle.hops.size(); ++hop) {
    const double weight = bundle.hops[hop].weight;
    LinkState& link     = links_[bundle.hops[hop].link];
    ++link.total;
    const double share = link.is_rate    ? link.capacity
                         : link.held > 0 ? link.level * link.held / (link.held + weight)
                                         : capacity(link) / (link.total * weight);
    if (share < lowest) {
      lowest = share;
      best   = hop;
    }
  }
  LinkState& link = links_[bundle.hops[best].link];
  advance(link, now_);
  bundle.offset = -link.clock;
  bundle.count  = 1;
  bundle.flows.push_back({bytes, bytes, flow});
  const bool first = !link.holds();
  hold(id, best);
  if (first)
    link.level = lowest;
  make_dirty(bundle.hops[best].link, link.level);
}

void FlowNetwork::join(Bundle id, uint32_t flow, double bytes, double now)
{
  now_ = now;
  ++cost_.starts;
  ++flows_;
  BundleState& bundle = bundles_[id];
  if (bundle.flows.empty()) {
    begin_bundle(id, flow, bytes);
    return;
  }
  const Link link_id = bundle.hops[bundle.holder].link;
  LinkState& link    = links_[link_id];
  advance(link, now);
  bundle.flows.push_back({link.clock + bundle.offset + bytes, bytes, flow});
  std::push_heap(bundle.flows.begin(), bundle.flows.end(), later);
  sift(link.heap, bundle.at);
  ++bundle.count;
  link.held += bundle.hops[bundle.holder].weight;
  touch(link_id);
  make_dirty(link_id, link.level);
  for (uint8_t hop = 0; hop < bundle.hops.size(); ++hop) {
    ++links_[bundle.hops[hop].link].total;
    if (hop != bundle.holder)
      weigh_in_cell(bundle.hops[hop].cell, bundle.hops[hop].weight);
  }
}

/// The flow at this place of the bundle goes; `bytes` is what it has moved.
void FlowNetwork::leave(Bundle id, size_t flow, double bytes)
{
  BundleState& bundle = bundles_[id];
  const Link link_id  = bundle.hops[bundle.holder].link;
  LinkState& link     = links_[link_id];
  --flows_;
  for (const auto& hop : bundle.hops) {
    --links_[hop.link].total;
    links_[hop.link].moved += hop.weight * bytes;
  }
  if (bundle.count == 1) {
    let_go(id);
    bundle.count = 0;
    bundle.flows.clear();
    by_key_.erase(by_key_.find(bundle.key));
    free_bundles_.push_back(id);
    return;
  }
  if (flow == 0) {
    std::pop_heap(bundle.flows.begin(), bundle.flows.end(), later);
  } else {
    std::swap(bundle.flows[flow], bundle.flows.back());
    std::make_heap(bundle.flows.begin(), bundle.flows.end() - 1, later);
  }
  bundle.flows.pop_back();
  --bundle.count;
  link.held -= bundle.hops[bundle.holder].weight;
  sift(link.heap, bundle.at);
  touch(link_id);
  make_dirty(link_id, link.level);
  for (uint8_t hop = 0; hop < bundle.hops.size(); ++hop)
    if (hop != bundle.holder)
      weigh_in_cell(bundle.hops[hop].cell, -bundle.hops[hop].weight);
}

// Shares.

void FlowNetwork::make_dirty(Link id, double key)
{
  if (links_[id].dirty)
    return;
  links_[id].dirty = true;
  dirty_.emplace_back(-key, id);
  std::push_heap(dirty_.begin(), dirty_.end());
}

void FlowNetwork::set_level(Link id, double level)
{
  LinkState& link = links_[id];
  if (level == link.level)
    return;
  advance(link, now_);
  link.level = level;
  touch(id);
  for (const uint32_t cell : link.informed_cells)
    make_dirty(cells_[cell].link, links_[cells_[cell].link].level);
  while (!link.watches.empty() && link.watches.front().level < level) {
    const Watch watch = link.watches.front();
    std::pop_heap(link.watches.begin(), link.watches.end(), higher);
    link.watches.pop_back();
    Cell& cell = cells_[watch.cell];
    if (cell.version != watch.version || cell.by != id)
      continue;
    links_[cell.link].bound -= cell.weight * cell.allowed;
    cell.allowed = -1;
    ++cell.version;
    make_dirty(cell.link, infinite);
  }
}

/// The cell's link looks again when the level of the one that holds the cell exceeds what is allowed.
void FlowNetwork::watch(uint32_t id)
{
  const Cell& cell = cells_[id];
  LinkState& by    = links_[cell.by];
  if (by.is_rate)
    return; // its level never changes
  by.watches.push_back({cell.allowed, id, cell.version});
  std::push_heap(by.watches.begin(), by.watches.end(), higher);
  if (by.watches.size() > by.most_watches) {
    std::erase_if(by.watches, [&](const Watch& watch) {
      return cells_[watch.cell].version != watch.version || cells_[watch.cell].by != cell.by;
    });
    std::make_heap(by.watches.begin(), by.watches.end(), higher);
    by.most_watches = std::max<size_t>(64, 2 * by.watches.size());
  }
}

/// A link that holds nothing and has room: it allows the others growth. First those that have no allowance yet, out of
/// what the others leave; if that is too little, all anew.
void FlowNetwork::relax(Link id, double used)
{
  LinkState& link   = links_[id];
  const double room = capacity(link);
  double bound      = 0;
  double fresh      = 0;
  for (const uint32_t each : link.cells) {
    const Cell& cell = cells_[each];
    if (cell.allowed >= 0)
      bound += cell.weight * cell.allowed;
    else
      fresh += cell.weight * links_[cell.by].level;
  }
  const bool all      = bound + 1.05 * fresh > room;
  const double growth = all ? room / used : std::min((room - bound) / std::max(fresh, 1e-300), 1e300);
  const double factor = all ? growth : 1 + (growth - 1) / 2;
  link.bound          = 0;
  for (const uint32_t each : link.cells) {
    Cell& cell = cells_[each];
    if (all || cell.allowed < 0) {
      const double level = links_[cell.by].level;
      cell.allowed       = std::max(level, level * factor);
      ++cell.version;
      leave_out(each);
      watch(each);
    }
    link.bound += cell.weight * cell.allowed;
  }
}

/// Takes over the flows that are faster than its level, which changes with each.
void FlowNetwork::pull(Link id, double level, double used)
{
  LinkState& link   = links_[id];
  const double room = capacity(link);
  faster_.clear();
  for (const uint32_t each : link.cells)
    faster_.emplace_back(links_[cells_[each].by].level, each);
  std::sort(faster_.begin(), faster_.end(), std::greater<>());
  size_t taken = 0;
  double held  = link.held;
  for (; taken < faster_.size() && faster_[taken].first > level * (1 + same); ++taken) {
    const auto& [rate, cell] = faster_[taken];
    held += cells_[cell].weight;
    used -= cells_[cell].weight * rate;
    if (!link.is_rate)
      level = (room - used) / held;
  }
  if (!link.holds())
    link.level = level;
  const auto some = faster_; // moving changes the link's cells
  for (size_t i = 0; i < taken; ++i)
    for (uint32_t at = cells_[some[i].second].first; at != none;) {
      const uint32_t next = hop_at(at).next;
      move(at / most_hops, static_cast<uint8_t>(at % most_hops));
      at = next;
    }
  if (!link.is_rate)
    set_level(id, level);
}

/// The level of a link, and who must be held by it.
void FlowNetwork::look(Link id)
{
  ++cost_.looks;
  LinkState& link = links_[id];
  double used     = 0;
  double fastest  = 0;
  for (const uint32_t each : link.cells) {
    const double level = links_[cells_[each].by].level;
    used += cells_[each].weight * level;
    fastest = std::max(fastest, level);
  }
  const double room = capacity(link);
  if (!link.holds() && used <= room * (1 + same)) {
    if (!link.cells.empty())
      relax(id, used);
    return;
  }
  const double level = link.is_rate ? link.capacity : link.held > 0 ? (room - used) / link.held : -1;
  if (fastest > level * (1 + same))
    pull(id, level, used);
  else if (!link.is_rate)
    set_level(id, level);
}

void FlowNetwork::settle()
{
  if (!dirty_.empty()) {
    ++cost_.settles;
    const uint64_t enough = std::min(most_looks_, 1000 + 100 * uint64_t{dirty_.size()} + 20 * links_.size());
    for (uint64_t looks = 0; !dirty_.empty(); ++looks) {
      if (looks >= enough) {
        fall_back();
        break;
      }
      std::pop_heap(dirty_.begin(), dirty_.end());
      const Link id = dirty_.back().second;
      dirty_.pop_back();
      links_[id].dirty = false;
      look(id);
    }
#ifndef NDEBUG
    if (links_.size() <= 1000)
      check(1e-9);
#endif
  }
  for (const Link id : touched_)
    due_changed(id);
  touched_.clear();
}

/// By bundle, what progressive filling finds from nothing: all rates grow together, and those through a link that is
/// full stop there. O(rounds * hops of all bundles).
std::vector<FlowNetwork::Share> FlowNetwork::fill() const
{
  struct Open {
    double left   = 0; ///< of its capacity
    double weight = 0; ///< of flows that still grow
    size_t count  = 0; ///< bundles that do
  };
  std::vector<Open> open(links_.size());
  std::vector<Bundle> growing;
  for (Bundle id = 0; id < bundles_.size(); ++id)
    if (bundles_[id].count > 0) {
      growing.push_back(id);
      for (const auto& hop : bundles_[id].hops) {
        open[hop.link].left = capacity(links_[hop.link]);
        open[hop.link].weight += bundles_[id].count * hop.weight;
        ++open[hop.link].count;
      }
    }
  const auto share = [&](Link link) {
    return links_[link].is_rate ? links_[link].capacity : open[link].left / open[link].weight;
  };
  std::vector<Share> shares(bundles_.size());
  while (!growing.empty()) {
    double level = infinite;
    for (Link link = 0; link < links_.size(); ++link)
      if (open[link].count > 0)
        level = std::min(level, share(link));
    std::vector<bool> full(links_.size());
    for (Link link = 0; link < links_.size(); ++link)
      full[link] = open[link].count > 0 && share(link) <= level * (1 + same);
    std::erase_if(growing, [&](Bundle id) {
      const auto& bundle = bundles_[id];
      const auto at =
          std::find_if(bundle.hops.begin(), bundle.hops.end(), [&](const Hop& hop) { return full[hop.link]; });
      if (at == bundle.hops.end())
        return false;
      shares[id] = {level, static_cast<uint8_t>(at - bundle.hops.begin())};
      for (const auto& hop : bundle.hops) {
        open[hop.link].left -= level * bundle.count * hop.weight;
        open[hop.link].weight -= bundle.count * hop.weight;
        --open[hop.link].count;
      }
      return true;
    });
  }
  return shares;
}

/// Shares did not settle link by link: all are set to what progressive filling finds.
void FlowNetwork::fall_back()
{
  ++cost_.fallbacks;
  const auto shares = fill();
  for (Bundle id = 0; id < shares.size(); ++id)
    if (bundles_[id].count > 0 && bundles_[id].holder != shares[id].hop) {
      LinkState& to = links_[bundles_[id].hops[shares[id].hop].link];
      if (!to.holds())
        to.level = shares[id].rate;
      move(id, shares[id].hop);
    }
  for (Bundle id = 0; id < shares.size(); ++id)
    if (bundles_[id].count > 0)
      if (const Link link = bundles_[id].hops[shares[id].hop].link; !links_[link].is_rate)
        set_level(link, shares[id].rate);
  for (const auto& [key, id] : dirty_)
    links_[id].dirty = false;
  dirty_.clear();
  for (Link id = 0; id < links_.size(); ++id) {
    if (links_[id].holds() || links_[id].cells.empty())
      continue;
    for (const uint32_t cell : links_[id].cells)
      cells_[cell].allowed = -1;
    relax(id, used(id));
  }
}

double FlowNetwork::next_time()
{
  settle();
  return due_.empty() ? infinite : links_[due_.front()].due;
}

void FlowNetwork::end(double now, std::vector<Ended>& ended)
{
  settle();
  now_ = now;
  while (!due_.empty() && links_[due_.front()].due <= now) {
    const Link id   = due_.front();
    LinkState& link = links_[id];
    advance(link, now);
    link.clock          = std::max(link.clock, top(link.heap.front()));
    const double behind = link.clock * (1 + 1e-15) + 1e-12; // ends that differ by rounding only are one
    while (!link.heap.empty() && top(link.heap.front()) <= behind) {
      const Bundle bundle = link.heap.front();
      const Flow flow     = bundles_[bundle].flows.front();
      ended.push_back({flow.id, flow.bytes});
      leave(bundle, 0, flow.bytes);
    }
    due_changed(id);
    touch(id);
  }
}

double FlowNetwork::withdraw(uint64_t key, uint32_t flow, double now)
{
  settle();
  now_                      = now;
  const Bundle id           = by_key_.find(key).value;
  const BundleState& bundle = bundles_[id];
  LinkState& link           = links_[bundle.hops[bundle.holder].link];
  advance(link, now);
  const auto at =
      std::find_if(bundle.flows.begin(), bundle.flows.end(), [&](const Flow& one) { return one.id == flow; });
  const double left = std::clamp(at->mark - bundle.offset - link.clock, 0.0, at->bytes);
  leave(id, static_cast<size_t>(at - bundle.flows.begin()), at->bytes - left);
  return left;
}

double FlowNetwork::used(Link id) const
{
  const LinkState& link = links_[id];
  double used           = link.held > 0 ? link.held * link.level : 0;
  for (const uint32_t cell : link.cells)
    used += cells_[cell].weight * links_[cells_[cell].by].level;
  return used;
}

std::vector<double> FlowNetwork::moved(double now)
{
  settle();
  std::vector<double> all;
  all.reserve(links_.size());
  for (const auto& link : links_)
    all.push_back(link.moved);
  for (const auto& bundle : bundles_) {
    if (bundle.count == 0)
      continue;
    const LinkState& link = links_[bundle.hops[bundle.holder].link];
    const double clock    = link.clock + (now - link.since) * link.level + bundle.offset;
    double bytes          = 0;
    for (const auto& flow : bundle.flows)
      bytes += flow.bytes - std::clamp(flow.mark - clock, 0.0, flow.bytes);
    for (const auto& hop : bundle.hops)
      all[hop.link] += hop.weight * bytes;
  }
  return all;
}

double FlowNetwork::rate_of(uint64_t key)
{
  settle();
  return rate(by_key_.find(key).value);
}

void FlowNetwork::check(double relative) const
{
  for (Link id = 0; id < links_.size(); ++id) {
    const LinkState& link = links_[id];
    const double all      = used(id);
    if (!link.is_rate && all > capacity(link) * (1 + relative))
      throw std::runtime_error(fmt::format("link {} has more than it can carry", id));
    if (link.heap.empty())
      continue;
    if (!link.is_rate && all < capacity(link) * (1 - relative))
      throw std::runtime_error(fmt::format("link {} holds flows and has room", id));
    for (const uint32_t cell : link.cells)
      if (links_[cells_[cell].by].level > link.level * (1 + relative))
        throw std::runtime_error(fmt::format("link {} has a faster flow", id));
  }
  const auto shares = fill();
  for (Bundle id = 0; id < shares.size(); ++id)
    if (bundles_[id].count > 0 && std::abs(rate(id) - shares[id].rate) > relative * shares[id].rate)
      throw std::runtime_error(
          fmt::format("bundle {} gets {} bytes a second, {} by progressive filling", id, rate(id), shares[id].rate));
}

} // namespace iocast
