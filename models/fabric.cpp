// SPDX-License-Identifier: Apache-2.0
#include "models/fabric.hpp"

#include "input/error.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <span>
#include <tuple>
#include <utility>

namespace iocast {

namespace {
constexpr double no_limit       = std::numeric_limits<double>::infinity();
constexpr double unlimited      = 1e30; // of a link without a bandwidth, among flows: none lasts for ever
constexpr double stopped        = 1e-9; // share of a link's capacity that is as good as none
constexpr double in_nanoseconds = 1e9;  // times of servers and windows, so that their weights are near 1
} // namespace

Fabric::Fabric(const Platform& platform, uint32_t nodes)
    : platform_(platform), nodes_(nodes), first_server_(platform.stations.size(), UINT32_MAX)
{
  const auto ends = iocast::ends_of(platform, nodes);
  for (const auto& servers : ends.servers)
    first_server_[servers.station] = servers.first;
  topology_      = make_topology(platform.network, ends);
  network_links_ = topology_->links();
  add_ways();
  small_bytes_.resize(network_links_ + disks_.size());
  slack_          = platform.network.never_limited;
  double tightest = no_limit;
  for (FlowNetwork::Link link = 0; link < small_bytes_.size(); ++link)
    tightest = std::min(tightest, capacity_of(link));
  for (const auto& way : ways_)
    if (way.disk)
      tightest = std::min(tightest, way.station->disk.speed(way.to_server));
  add_failing_links();
  for (const auto& failing : failing_)
    for (const auto link : failing.links)
      tightest = std::min(tightest, capacity_of(link) * std::max(failing.spec->share, stopped));
  passed_.resize(first_window() - network_links_);
  all_pace_       = 2 / tightest;
  looks_at_links_ = !topology_->is_star() || !failing_.empty();
}

bool Fabric::limits(const Platform& platform)
{
  const auto& network = platform.network;
  const bool links    = !network.is_uniform() || network.node_bandwidth > 0 || network.server_bandwidth > 0 ||
                     network.backbone_bandwidth > 0;
  return !platform.link_failures.empty() ||
         std::any_of(platform.ways.begin(), platform.ways.end(), [&](const Way& way) {
           return (way.network && links) || platform.stations[way.station].disk.exists() || way.train;
         });
}

/// Whether some of its disks take time for an access without bytes.
bool Fabric::has_overheads(const Platform& platform)
{
  return std::any_of(platform.ways.begin(), platform.ways.end(),
                     [&](const Way& way) { return platform.stations[way.station].disk.overhead > 0; });
}

void Fabric::add_failing_links()
{
  for (const auto& spec : platform_.link_failures) {
    FailingLink failing{&spec, {}, spec.at};
    const auto disks = static_cast<FlowNetwork::Link>(network_links_ + disks_.size());
    for (FlowNetwork::Link link = spec.disk ? network_links_ : 0; link < (spec.disk ? disks : network_links_); ++link) {
      const auto name = name_of(link);
      if (name == spec.link || (name.starts_with(spec.link + ' ') && name.find(' ', spec.link.size() + 1) == name.npos))
        failing.links.push_back(link);
    }
    if (failing.links.empty() && spec.disk)
      throw InputError(fmt::format("{}: there is no '{}' that bytes pass; a run names its busiest links and disks.",
                                   spec.where, spec.link));
    if (failing.links.empty()) {
      FlowNetwork::Link last = network_links_ - 1;
      while (topology_->name(last).empty())
        --last;
      throw InputError(fmt::format("{}: this network has no link '{}'; it has links such as '{}' and '{}', and a run "
                                   "names its busiest ones.",
                                   spec.where, spec.link, topology_->name(0), topology_->name(last)));
    }
    for (const auto link : failing.links) {
      if (std::isinf(capacity_of(link)))
        throw InputError(fmt::format("{}: the link '{}' has no bandwidth that a share could be left of; state one in "
                                     "'network'.",
                                     spec.where, name_of(link)));
      for (const auto& other : failing_)
        if (std::find(other.links.begin(), other.links.end(), link) != other.links.end())
          throw InputError(fmt::format("{}: the link '{}' fails in '{}' already; 'every' makes it fail again.",
                                       spec.where, name_of(link), other.spec->name));
    }
    next_failure_ = std::min(next_failure_, failing.next);
    if (spec.rebuild > 0)
      add_rebuild(failing);
    failing_.push_back(std::move(failing));
  }
  if (!failing_.empty())
    left_.resize(network_links_ + disks_.size(), 1);
  lost_.resize(left_.size());
}

/// What the other instances send one whose disk is rebuilt: from their disks to its, each at an even share of the pace.
/// What is coded is put together from as many others as have data of a stripe.
void Fabric::add_rebuild(FailingLink& failing)
{
  const auto of_disk         = std::find_if(ways_.begin(), ways_.end(), [&](const WayState& way) {
    return way.disk && failing.links.front() >= way.first_disk &&
           failing.links.front() < way.first_disk + way.station->count * way.disk_links;
  });
  const StationSpec& station = *of_disk->station;
  const auto number          = static_cast<size_t>(&station - platform_.stations.data());
  if (station.per == Per::node || station.count == 1 || first_server_[number] == UINT32_MAX)
    throw InputError(
        fmt::format("{}: nobody sends '{}' its bytes: what is rebuilt comes over the network from the "
                    "other instances of a station of the system. Leave out 'rebuild', or name such a disk.",
                    failing.spec->where, station.name));
  WayState way;
  way.streams   = true;
  way.to_server = true;
  way.station   = &station;
  add_disk(way);
  way.speed        = station.disk.speed(true);
  way.sent         = station.redundancy.exists() ? station.redundancy.data : 1;
  way.pace_link    = first_pace() + static_cast<uint32_t>(paces_.size());
  failing.way      = static_cast<uint16_t>(ways_.size());
  rebuild_to_come_ = true;
  ways_.push_back(way);
  paces_.push_back(failing.spec->rebuild * way.sent / failing.spec->length / (station.count - 1));
}

void Fabric::begin_rebuild(const FailingLink& failing, double now)
{
  const WayState& way  = ways_[failing.way];
  const uint32_t first = first_server_[static_cast<size_t>(way.station - platform_.stations.data())];
  const uint32_t lost  = (failing.links.front() - way.first_disk) / way.disk_links;
  for (uint32_t other = 0; other < way.station->count; ++other) {
    if (other == lost)
      continue;
    const uint32_t id = new_move();
    Move& move        = moves_[id];
    move.way          = failing.way;
    move.instance     = lost;
    move.stage        = Stage::both;
    move.ends         = {first + other, first + lost};
    move.path         = way_around(move.ends, topology_->way(move.ends.from, move.ends.to, number_++));
    move.bytes        = failing.spec->rebuild * way.sent / (way.station->count - 1);
    begun_bytes_ += move.bytes;
    looks_at_links_ = true;
    start_flow(id, move.bytes, now);
  }
}

/// Transfers whose way is gone take another one with what they have not moved yet.
void Fabric::reroute(double now)
{
  for (uint32_t id = 0; id < moves_.size(); ++id) {
    Move& move = moves_[id];
    if (!move.active || !ways_[move.way].network || (move.stage == Stage::disk && !move.first))
      continue;
    const uint32_t path = way_around(move.ends, move.path);
    if (path == move.path)
      continue;
    const bool flows  = move.flows && move.stage != Stage::disk;
    const double left = flows ? flows_->withdraw(key_of(move), id, now) : 0;
    move.path         = path;
    move.wire         = narrowest(topology_->route(move.ends.from, move.ends.to, path));
    if (flows)
      start_flow(id, left, now);
  }
}

void Fabric::fail_links(double now)
{
  while (next_failure_ <= now) {
    add_up_lost(next_failure_);
    bool ways_go = false;
    for (auto& failing : failing_) {
      if (failing.next > next_failure_)
        continue;
      const auto& spec = *failing.spec;
      failing.slow     = !failing.slow;
      ways_go          = ways_go || (failing.slow && spec.reroute);
      for (const auto link : failing.links) {
        left_[link] = failing.slow ? std::max(spec.share, stopped) : 1;
        if (flows_)
          flows_->set_capacity(link, capacity_now(link), now);
      }
      failing.next += failing.slow ? spec.length : spec.every > 0 ? spec.every - spec.length : no_limit;
      if (failing.slow && spec.rebuild > 0)
        begin_rebuild(failing, now);
    }
    if (ways_go)
      reroute(now);
    next_failure_    = no_limit;
    rebuild_to_come_ = false;
    for (const auto& failing : failing_) {
      next_failure_    = std::min(next_failure_, failing.next);
      rebuild_to_come_ = rebuild_to_come_ || failing.will_be_rebuilt();
    }
  }
}

/// Whether transfers go around it now.
bool Fabric::is_gone(FlowNetwork::Link link) const
{
  return std::any_of(failing_.begin(), failing_.end(), [&](const FailingLink& failing) {
    return failing.slow && failing.spec->reroute &&
           std::find(failing.links.begin(), failing.links.end(), link) != failing.links.end();
  });
}

/// This way, or the next one none of whose links is gone.
uint32_t Fabric::way_around(const Ends& ends, uint32_t way) const
{
  if (failing_.empty())
    return way;
  const auto is_free = [&](uint32_t one) {
    const auto route = topology_->route(ends.from, ends.to, one);
    return std::none_of(route.begin(), route.end(), [&](const auto& pass) { return is_gone(pass.link); });
  };
  if (is_free(way))
    return way;
  for (uint32_t other = 0; other < topology_->ways(ends.from, ends.to); ++other)
    if (is_free(other))
      return other;
  const auto names = iocast::ends_of(platform_, nodes_);
  throw InputError(fmt::format("{}: while '{}' is gone, no way leads from {} to {}; say 'reroute: false', with which "
                               "transfers wait, or leave one of its links.",
                               failing_.front().spec->where, failing_.front().spec->link, names.name(ends.from),
                               names.name(ends.to)));
}

void Fabric::add_ways()
{
  const auto& network = platform_.network;
  double wire         = no_limit;
  for (const double bandwidth : {network.node_bandwidth, network.server_bandwidth, network.backbone_bandwidth})
    if (bandwidth > 0)
      wire = std::min(wire, bandwidth);
  for (const auto& way : platform_.ways) {
    WayState state;
    state.network   = way.network;
    state.train     = way.train;
    state.to_server = way.to_server;
    state.station   = &platform_.stations[way.station];
    state.demand    = way.demand;
    state.wire      = way.network ? wire : no_limit;
    state.answered  = way.answered;
    if (way.network)
      state.fixed = network.latency * state.ways();
    if (way.device && state.station->disk.exists()) {
      add_disk(state);
      const auto& disk = state.station->disk;
      state.speed      = disk.speed(way.to_server) * (disk.slowdown.empty() ? 1 : disk.slowdown.front());
      state.extra      = disk.overhead * disk.speed(way.to_server);
      state.fixed += disk.overhead;
    }
    state.streams = way.network && state.disk && !way.train && state.extra == 0 && !state.station->disk.fifo;
    state.pace    = state.streams && !way.answered ? std::min(state.wire, state.speed)
                    : state.disk                   ? 1 / (1 / state.wire + 1 / state.speed)
                                                   : state.wire;
    ways_.push_back(state);
  }
  for (size_t way = 0; way < ways_.size(); ++way)
    if (ways_[way].train && ways_[way].demand > 0) {
      ways_[way].first_crew = static_cast<uint32_t>(network_links_ + disks_.size() + crews_.size());
      for (size_t before = 0; before < way; ++before)
        if (ways_[before].station == ways_[way].station && ways_[before].first_crew > 0)
          ways_[way].first_crew = ways_[before].first_crew;
      if (ways_[way].first_crew == network_links_ + disks_.size() + crews_.size())
        crews_.resize(crews_.size() + ways_[way].station->count, ways_[way].station->servers * in_nanoseconds);
    }
}

/// The links of the station's disks, unless another way has them.
void Fabric::add_disk(WayState& state)
{
  const auto& disk = state.station->disk;
  state.disk       = true;
  state.disk_links = disk.together > 0 ? 3 : 1;
  if (state.disk_links == 1)
    state.weight = std::max(disk.read, disk.write) / disk.speed(state.to_server);
  for (const auto& before : ways_)
    if (before.disk && before.station == state.station) {
      state.first_disk  = before.first_disk;
      state.first_queue = before.first_queue;
      return;
    }
  const uint32_t count = state.station->per == Per::node ? nodes_ : state.station->count;
  state.first_disk     = static_cast<uint32_t>(network_links_ + disks_.size());
  state.first_queue    = static_cast<uint32_t>(queues_.size());
  for (uint32_t instance = 0; instance < count; ++instance)
    if (disk.together > 0)
      disks_.insert(disks_.end(), {disk.read, disk.write, disk.together});
    else
      disks_.push_back(std::max(disk.read, disk.write));
  if (disk.fifo)
    queues_.resize(queues_.size() + count);
}

/// What a failure leaves of it.
double Fabric::capacity_now(FlowNetwork::Link link) const
{
  return capacity_of(link) * (link < left_.size() ? left_[link] : 1);
}

/// What failures took of links until now, so that a link is busy by what was left of it.
void Fabric::add_up_lost(double now)
{
  for (size_t link = 0; link < lost_.size(); ++link)
    lost_[link] += (1 - left_[link]) * std::max(now - lost_until_, 0.0);
  lost_until_ = std::max(lost_until_, now);
}

double Fabric::capacity_of(FlowNetwork::Link link) const
{
  if (link < network_links_)
    return topology_->capacity(link);
  link -= network_links_;
  if (link < disks_.size())
    return disks_[link];
  link -= static_cast<FlowNetwork::Link>(disks_.size());
  if (link < crews_.size())
    return crews_[link];
  link -= static_cast<FlowNetwork::Link>(crews_.size());
  return link < paces_.size() ? no_limit : windows_[link - paces_.size()].capacity;
}

/// @param weight of a byte, 1 unless the disk has more to do for it
void Fabric::pass_disk(const WayState& way, uint32_t instance, double weight, Topology::Route& route) const
{
  const FlowNetwork::Link link = way.first_disk + instance * way.disk_links;
  if (way.disk_links == 1) {
    route.push_back({link, weight * way.weight});
  } else {
    route.push_back({link + (way.to_server ? 1 : 0), weight});
    route.push_back({link + 2, weight});
  }
}

bool Fabric::passes_links(const Transfer& transfer, double time)
{
  if (is_idle()) // else an event of its own
    fail_links(time);
  const WayState& way = ways_[transfer.way];
  Topology::Route route;
  if (way.network) {
    const auto [from, to] = ends_of(transfer);
    route                 = topology_->route(from, to, 0);
  }
  if (way.disk) {
    if (way.station->disk.fifo && queues_[way.first_queue + transfer.instance].busy)
      return false;
    pass_disk(way, transfer.instance, 1, route);
  }
  idle_.resize(small_bytes_.size());
  for (const auto& pass : route)
    if ((idle_[pass.link] - time) * capacity_now(pass.link) > 2 * slack_ ||
        (pass.link < left_.size() && left_[pass.link] < 1))
      return false;
  use(route, transfer.bytes, time);
  for (const auto& pass : route) {
    small_bytes_[pass.link] += transfer.bytes * pass.weight;
    if (pass.link >= network_links_)
      passed_[pass.link - network_links_] += transfer.bytes;
  }
  return true;
}

void Fabric::use(const Topology::Route& route, double bytes, double time)
{
  idle_.resize(small_bytes_.size());
  for (const auto& pass : route)
    if (pass.link < idle_.size())
      idle_[pass.link] = std::max(idle_[pass.link], time) + 2 * bytes * pass.weight / capacity_now(pass.link);
}

/// Of all its stages.
void Fabric::use_all(const Move& move, double time)
{
  Move part = move;
  for (bool more = true; more; more = part.first && next_stage(part))
    use(route_of(part), part.bytes, time);
}

uint32_t Fabric::new_move()
{
  if (free_moves_.empty()) {
    moves_.emplace_back();
    return static_cast<uint32_t>(moves_.size() - 1);
  }
  const uint32_t id = free_moves_.back();
  free_moves_.pop_back();
  moves_[id] = {};
  return id;
}

void Fabric::begin(const Transfer& transfer, double now)
{
  const WayState& way = ways_[transfer.way];
  fail_links(now);
  const uint32_t id = new_move();
  Move& move        = moves_[id];
  move.job          = transfer.job;
  move.way          = transfer.way;
  move.instance     = transfer.instance;
  move.bytes        = transfer.bytes;
  move.stage        = way.train || way.streams                      ? Stage::both
                      : way.network && (way.to_server || !way.disk) ? Stage::network
                                                                    : Stage::disk;
  if (way.network) {
    move.ends = ends_of(transfer);
    move.path = way_around(move.ends, topology_->way(move.ends.from, move.ends.to, number_++));
    move.wire = narrowest(topology_->route(move.ends.from, move.ends.to, move.path));
  }
  begun_bytes_ += transfer.bytes;
  looks_at_links_ = true;
  use_all(move, now);
  if (way.train)
    plan_train(move);
  else if (way.streams)
    move.fill = latency(move) + (way.answered ? move.bytes / std::max(move.wire, way.speed) : 0);
  begin_stage(id, now);
}

/// Seconds of a request from being sent to its answer, when nobody else is there.
double Fabric::whole(const Move& move, double bytes) const
{
  const WayState& way = ways_[move.way];
  const double disk   = way.disk ? bytes / way.station->disk.speed(way.to_server) + way.station->disk.overhead : 0;
  return 2 * topology_->latency(move.ends.from, move.ends.to, move.path) + bytes / move.wire + way.demand + disk;
}

/// The first request goes through all stages; behind it comes one each time that the slowest stage takes. Servers that
/// are the slowest, and windows that are, send as many as they are together, one close behind the other.
void Fabric::plan_train(Move& move)
{
  const WayState& way = ways_[move.way];
  const auto& rpc     = way.station->rpc;
  const auto most     = static_cast<double>(rpc.size);
  const double bytes  = std::min(most, move.bytes);
  const double disk   = way.disk ? bytes / way.station->disk.speed(way.to_server) + way.station->disk.overhead : 0;
  const double all    = whole(move, bytes);
  const uint32_t crew = way.first_crew > 0 ? way.station->servers : 1;
  const double held   = way.first_crew > 0 ? way.demand + disk : 0;
  double pace         = std::max(bytes / move.wire, disk);
  double fill         = all - pace;
  if (held / crew > pace) {
    fill = all - held + (crew - 1) * pace;
    pace = held / crew;
  }
  move.fill             = std::min(fill, (rpc.in_flight - 1) * pace);
  const double requests = std::ceil(move.bytes / most);
  const bool in_order   = way.disk && way.station->disk.fifo;
  if (requests > (in_order ? rpc.in_flight : 1) && requests < 4.0 * rpc.in_flight)
    ++short_trains_;
}

Topology::Route Fabric::route_of(const Move& move)
{
  const WayState& way = ways_[move.way];
  Topology::Route route;
  if (move.stage != Stage::disk)
    route = topology_->route(move.ends.from, move.ends.to, move.path);
  if (move.stage == Stage::disk)
    pass_disk(way, move.instance, 1, route);
  if (move.stage != Stage::both)
    return route;
  if (way.pace_link > 0) {
    const auto& disk = way.station->disk;
    WayState source  = way;
    source.to_server = false;
    source.weight    = way.weight * disk.write / disk.read;
    pass_disk(way, move.instance, 1 / way.sent, route);
    pass_disk(source, move.instance + move.ends.from - move.ends.to, 1, route);
    route.push_back({way.pace_link});
    return route;
  }
  if (!way.train) {
    pass_disk(way, move.instance, 1, route);
    return route;
  }
  const auto& station = *way.station;
  const auto bytes    = static_cast<double>(station.rpc.size);
  const double speed  = station.disk.speed(way.to_server);
  if (way.disk)
    pass_disk(way, move.instance, 1 + station.disk.overhead * speed / bytes, route);
  if (way.first_crew > 0) {
    const double held = way.demand + (way.disk ? bytes / speed + station.disk.overhead : 0);
    route.push_back({way.first_crew + move.instance, held / bytes * in_nanoseconds});
  }
  route.push_back({window_of(move), whole(move, bytes) / bytes * in_nanoseconds});
  return route;
}

/// The link of all requests between two ends, whichever way their bytes go.
FlowNetwork::Link Fabric::window_of(const Move& move)
{
  const auto& [from, to] = move.ends;
  const bool to_server   = ways_[move.way].to_server;
  const Ends ends        = to_server ? Ends{from, to} : Ends{to, from};
  const auto first       = first_window();
  const auto [at, fresh] = window_of_.try_emplace(uint64_t{ends.from} << 32 | ends.to,
                                                  first + static_cast<FlowNetwork::Link>(windows_.size()));
  if (fresh) {
    windows_.push_back({ends, ways_[move.way].station->rpc.in_flight * in_nanoseconds});
    passed_.push_back(0);
    if (flows_)
      flows_->add_link(windows_.back().capacity);
  }
  return at->second;
}

/// Same key, same route: two ends and, where there are several ways between them, which; or one disk.
uint64_t Fabric::key_of(const Move& move)
{
  constexpr uint64_t at_disk = UINT16_MAX;
  if (move.stage == Stage::disk) {
    const WayState& way = ways_[move.way];
    return at_disk << 48 | (uint64_t{way.first_disk} + move.instance * way.disk_links) << 1 | (way.to_server ? 1 : 0);
  }
  const uint64_t kind = move.stage == Stage::both ? move.way + 1U : 0;
  uint64_t number     = 0;
  if (kind > 0 || move.path > 0) {
    const auto [found, fresh] =
        class_of_.try_emplace(kind << 32 | move.path, static_cast<uint16_t>(class_of_.size() + 1));
    if (class_of_.size() >= at_disk)
      throw RunError(
          fmt::format("More than {} kinds of ways between two ends are more than keys have room for.", at_disk));
    number = found->second;
  }
  return number << 48 | uint64_t{move.ends.from} << 24 | move.ends.to;
}

void Fabric::make_flows()
{
  flows_.emplace();
  const size_t links = first_window() + windows_.size();
  for (FlowNetwork::Link link = 0; link < links; ++link) {
    if (link >= first_pace() && link < first_window()) {
      flows_->add_rate(paces_[link - first_pace()]);
      continue;
    }
    const double capacity = std::min(capacity_now(link), unlimited);
    link < network_links_ && topology_->is_rate(link) ? flows_->add_rate(capacity) : flows_->add_link(capacity);
  }
  for (const auto& way : ways_)
    if (way.disk && !way.station->disk.slowdown.empty()) {
      const uint32_t count = way.station->per == Per::node ? nodes_ : way.station->count;
      for (uint32_t link = 0; link < count * way.disk_links; ++link)
        flows_->degrade(way.first_disk + link, way.station->disk.slowdown);
    }
}

double Fabric::latency(const Move& move) const
{
  return topology_->latency(move.ends.from, move.ends.to, move.path) * ways_[move.way].ways();
}

/// What passes before the stage's bytes move.
void Fabric::begin_stage(uint32_t id, double now)
{
  const Move& move    = moves_[id];
  const double before = move.stage == Stage::network ? latency(move) : move.fill;
  if (before > 0)
    waiting_.push({now + before, number_++, id});
  else
    start(id, now);
}

/// A disk that serves one after the other has its own order; trains that are longer than a window pass in between.
void Fabric::start(uint32_t id, double now)
{
  Move& move          = moves_[id];
  const WayState& way = ways_[move.way];
  if (move.stage != Stage::network && way.disk && way.station->disk.fifo &&
      (move.stage == Stage::disk ||
       move.bytes <= static_cast<double>(way.station->rpc.size) * way.station->rpc.in_flight)) {
    DiskQueue& queue = queues_[way.first_queue + move.instance];
    if (queue.busy) {
      queue.moves.push_back(id);
      return;
    }
    queue.busy = true;
    move.has   = true;
  }
  start_flow(id, bytes_of_stage(move), now);
}

/// At a device on the move's way: a disk gets a part of the bytes that are put together.
double Fabric::bytes_at(const Move& move, FlowNetwork::Link link) const
{
  const WayState& way = ways_[move.way];
  const bool rebuilt  = way.pace_link > 0 && (link - way.first_disk) / way.disk_links == move.instance;
  return move.bytes / (rebuilt ? way.sent : 1);
}

double Fabric::bytes_of_stage(const Move& move) const
{
  return move.stage == Stage::disk ? move.bytes + ways_[move.way].extra : move.bytes;
}

void Fabric::start_flow(uint32_t id, double bytes, double now)
{
  if (!flows_)
    make_flows();
  Move& move = moves_[id];
  move.flows = true;
  Topology::Route route;
  flows_->start(
      key_of(move),
      [&] {
        route = route_of(move);
        return std::span<const FlowNetwork::Pass>(route.data(), route.size());
      },
      id, bytes, now);
}

/// False when the stage was the last one.
bool Fabric::next_stage(Move& move) const
{
  const WayState& way = ways_[move.way];
  if (!move.first || move.stage == Stage::both || !way.network || !way.disk)
    return false;
  move.first = false;
  move.stage = move.stage == Stage::network ? Stage::disk : Stage::network;
  return true;
}

/// A stage of the move has ended. False when that was the last one.
bool Fabric::goes_on(uint32_t id, double now)
{
  moves_[id].flows = false;
  if (moves_[id].stage != Stage::network)
    for (const auto& pass : route_of(moves_[id]))
      if (pass.link >= network_links_)
        passed_[pass.link - network_links_] += bytes_at(moves_[id], pass.link);
  if (moves_[id].has) {
    moves_[id].has   = false;
    DiskQueue& queue = queues_[ways_[moves_[id].way].first_queue + moves_[id].instance];
    queue.busy       = !queue.moves.empty();
    if (queue.busy) {
      const uint32_t next = queue.moves.front();
      queue.moves.pop_front();
      moves_[next].has = true;
      start_flow(next, bytes_of_stage(moves_[next]), now);
    }
  }
  if (!next_stage(moves_[id]))
    return false;
  begin_stage(id, now);
  return true;
}

double Fabric::next_time()
{
  const double end = std::min(flows_ ? flows_->next_time() : no_limit, is_idle() ? no_limit : next_failure_);
  return waiting_.empty() ? end : std::min(end, waiting_.top().time);
}

void Fabric::go_on(double now, std::vector<JobId>& arrived)
{
  if (flows_ && !flows_->empty() && flows_->next_time() <= now) {
    ended_.clear();
    flows_->end(now, ended_);
    for (const auto& flow : ended_) {
      if (goes_on(flow.flow, now))
        continue;
      Move& move = moves_[flow.flow];
      ended_bytes_ += move.bytes;
      move.active = false;
      if (move.job != nobody)
        arrived.push_back(move.job);
      free_moves_.push_back(flow.flow);
    }
  }
  fail_links(now);
  while (!waiting_.empty() && waiting_.top().time <= now) {
    const Waiting one = waiting_.top();
    waiting_.pop();
    start(one.move, one.time);
  }
  looks_at_links_ = !is_idle() || !topology_->is_star() || !failing_.empty();
}

double Fabric::narrowest(const Topology::Route& route) const
{
  double least = no_limit;
  for (const auto& pass : route)
    least = std::min(least, topology_->capacity(pass.link));
  return least;
}

double Fabric::alone(const Transfer& transfer) const
{
  const WayState& way = ways_[transfer.way];
  if (!way.network)
    return alone(transfer.way, transfer.bytes);
  const auto [from, to] = ends_of(transfer);
  const double wire     = narrowest(topology_->route(from, to, 0));
  const double seconds  = way.streams && !way.answered ? transfer.bytes / std::min(wire, way.speed)
                          : way.disk                   ? transfer.bytes / wire + transfer.bytes / way.speed
                                                       : transfer.bytes / wire;
  return topology_->latency(from, to, 0) * way.ways() + (way.disk ? way.station->disk.overhead : 0) + seconds;
}

std::string Fabric::name_of(FlowNetwork::Link link) const
{
  return link < network_links_ ? topology_->name(link) : name_of_device(link);
}

/// Of a link that is none of the network.
std::string Fabric::name_of_device(FlowNetwork::Link link) const
{
  const size_t crews   = network_links_ + disks_.size();
  const size_t windows = first_window();
  if (link >= windows) {
    const auto& [from, to] = windows_[link - windows].ends;
    const auto ends        = iocast::ends_of(platform_, nodes_);
    return fmt::format("window of {} to {}", ends.name(from), ends.name(to));
  }
  for (const auto& way : ways_) {
    const uint32_t count = way.station->per == Per::node ? nodes_ : way.station->count;
    if (link >= crews) {
      if (way.first_crew > 0 && link >= way.first_crew && link < way.first_crew + count)
        return fmt::format("{} {} servers", way.station->name, link - way.first_crew);
    } else if (way.disk && link >= way.first_disk && link < way.first_disk + count * way.disk_links) {
      static constexpr std::array<const char*, 3> parts{" reads", " writes", ""};
      const uint32_t place = link - way.first_disk;
      return fmt::format("{} {} disk{}", way.station->name, place / way.disk_links,
                         way.disk_links == 1 ? "" : parts[place % 3]);
    }
  }
  return "";
}

/// By link, of the flows since the last call.
std::vector<double> Fabric::moved(double now)
{
  if (!flows_)
    return std::vector<double>(small_bytes_.size());
  auto all = flows_->moved(now);
  moved_before_.resize(all.size());
  for (size_t link = 0; link < all.size(); ++link) {
    const double sum = all[link];
    all[link] -= moved_before_[link];
    moved_before_[link] = sum;
  }
  return all;
}

NetworkUse Fabric::use_since(double start, double now)
{
  NetworkUse use;
  use.flows           = flows_ ? flows_->cost().starts : 0;
  use.short_trains    = short_trains_;
  use.fallbacks       = flows_ ? flows_->cost().fallbacks : 0;
  const auto by_flows = moved(now);
  if (topology_->is_star() && network_links_ % 2 == 1)
    small_bytes_[network_links_ - 1] += all_bytes_;
  all_bytes_      = 0;
  const auto ends = iocast::ends_of(platform_, nodes_);
  std::vector<double> at_ends(std::size_t{2} * ends.count());
  add_up_lost(now);
  struct Busy {
    double busy; ///< negative, so that the busiest is first
    FlowNetwork::Link link;
    double seconds;
    bool operator<(const Busy& other) const { return std::tie(busy, link) < std::tie(other.busy, other.link); }
  };
  std::vector<Busy> busiest;
  constexpr size_t most = 3;
  for (FlowNetwork::Link link = 0; link < by_flows.size(); ++link) {
    double bytes          = by_flows[link];
    const double capacity = capacity_of(link);
    if (link < small_bytes_.size())
      bytes += std::exchange(small_bytes_[link], 0);
    if (link < at_ends.size())
      at_ends[link] = bytes;
    if (bytes == 0 || std::isinf(capacity))
      continue;
    const double seconds = bytes / capacity;
    const double whole   = now - start - (link < lost_.size() ? lost_[link] : 0);
    busiest.push_back({whole > 0 ? -seconds / whole : 0, link, seconds});
    std::push_heap(busiest.begin(), busiest.end());
    if (busiest.size() > most) {
      std::pop_heap(busiest.begin(), busiest.end());
      busiest.pop_back();
    }
  }
  std::sort(busiest.begin(), busiest.end());
  for (const auto& [busy, link, seconds] : busiest)
    use.busiest.push_back({name_of(link),
                           link < network_links_ ? seconds * topology_->capacity(link) : passed_[link - network_links_],
                           -busy});
  std::fill(lost_.begin(), lost_.end(), 0);
  std::fill(passed_.begin(), passed_.end(), 0);
  for (const auto& servers : ends.servers) {
    const auto bytes_of = [&](uint32_t instance) {
      const uint32_t end = servers.first + instance;
      return at_ends[Topology::out_of(end)] + at_ends[Topology::into(end)];
    };
    double all        = 0;
    uint32_t greatest = 0;
    for (uint32_t instance = 0; instance < servers.count; ++instance) {
      all += bytes_of(instance);
      if (bytes_of(instance) > bytes_of(greatest))
        greatest = instance;
    }
    if (servers.count > 1 && all > 0)
      use.shares.push_back({servers.name, greatest, bytes_of(greatest) / all, servers.count});
  }
  return use;
}

void Fabric::check(double now)
{
  if (nothing_moves() && begun_bytes_ != ended_bytes_ && std::abs(begun_bytes_ - ended_bytes_) > 1e-9 * begun_bytes_)
    throw RunError(fmt::format("Transfers of {} bytes began and of {} ended; this is an error of the simulator.",
                               begun_bytes_, ended_bytes_));
  if (!flows_)
    return;
  const auto moved = flows_->moved(now);
  for (FlowNetwork::Link link = 0; link < moved.size(); ++link)
    if (moved[link] > capacity_of(link) * now * (1 + 1e-9) + 1)
      throw RunError(fmt::format("{} moved {} bytes in {} s, more than it can; this is an error of the simulator.",
                                 name_of(link), moved[link], now));
}

} // namespace iocast
