// SPDX-License-Identifier: Apache-2.0
#include "models/fabric.hpp"

#include "input/error.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <span>

namespace iocast {

Fabric::Fabric(const Platform& platform, uint32_t nodes)
    : platform_(platform), first_server_(platform.stations.size(), UINT32_MAX)
{
  const auto ends = iocast::ends_of(platform, nodes);
  for (const auto& servers : ends.servers)
    first_server_[servers.station] = servers.first;
  topology_ = make_topology(platform.network, ends);
  small_bytes_.resize(topology_->links());
  slack_          = platform.network.never_limited;
  double tightest = std::numeric_limits<double>::infinity();
  for (FlowNetwork::Link link = 0; link < topology_->links(); ++link)
    tightest = std::min(tightest, topology_->capacity(link));
  all_pace_       = 2 / tightest;
  looks_at_links_ = !topology_->is_star();
}

bool Fabric::limits(const Platform& platform)
{
  const auto& network = platform.network;
  if (network.is_uniform() && network.node_bandwidth == 0 && network.server_bandwidth == 0 &&
      network.backbone_bandwidth == 0)
    return false;
  bool transfers = false;
  platform.for_each_step(
      [&](const Step& step, const BufferSpec*) { transfers = transfers || step.kind == Step::Kind::transfer; });
  return transfers;
}

bool Fabric::passes_links(const Transfer& transfer, double time)
{
  const auto [from, to] = ends_of(transfer);
  const auto route      = topology_->route(from, to, 0);
  idle_.resize(small_bytes_.size());
  for (const auto& pass : route)
    if ((idle_[pass.link] - time) * topology_->capacity(pass.link) > 2 * slack_)
      return false;
  use(route, transfer.bytes, time);
  for (const auto& pass : route)
    small_bytes_[pass.link] += transfer.bytes;
  return true;
}

void Fabric::use(const Topology::Route& route, double bytes, double time)
{
  idle_.resize(small_bytes_.size());
  for (const auto& pass : route)
    idle_[pass.link] = std::max(idle_[pass.link], time) + 2 * bytes / topology_->capacity(pass.link);
}

void Fabric::begin(const Transfer& transfer, double now)
{
  const Ends ends = ends_of(transfer);
  begun_bytes_ += transfer.bytes;
  looks_at_links_    = true;
  const uint32_t way = topology_->way(ends.from, ends.to, number_);
  use(topology_->route(ends.from, ends.to, way), transfer.bytes, now);
  const Waiting one{
      now + topology_->latency(ends.from, ends.to, way), number_++, ends, way, transfer.job, transfer.bytes};
  if (one.time > now)
    waiting_.push(one);
  else
    start(one);
}

void Fabric::make_flows()
{
  flows_.emplace();
  for (FlowNetwork::Link link = 0; link < topology_->links(); ++link)
    topology_->is_rate(link) ? flows_->add_rate(topology_->capacity(link))
                             : flows_->add_link(topology_->capacity(link));
}

void Fabric::start(const Waiting& one)
{
  if (!flows_)
    make_flows();
  Topology::Route route;
  flows_->start(
      uint64_t{one.way} << 48 | uint64_t{one.ends.from} << 24 | one.ends.to,
      [&] {
        route = topology_->route(one.ends.from, one.ends.to, one.way);
        return std::span<const FlowNetwork::Pass>(route.data(), route.size());
      },
      one.job, one.bytes, one.time);
}

double Fabric::next_time()
{
  const double end = flows_ ? flows_->next_time() : std::numeric_limits<double>::infinity();
  return waiting_.empty() ? end : std::min(end, waiting_.top().time);
}

void Fabric::go_on(double now, std::vector<JobId>& arrived)
{
  if (flows_ && !flows_->empty() && flows_->next_time() <= now) {
    ended_.clear();
    flows_->end(now, ended_);
    for (const auto& flow : ended_) {
      ended_bytes_ += flow.bytes;
      arrived.push_back(flow.flow);
    }
  }
  while (!waiting_.empty() && waiting_.top().time <= now) {
    start(waiting_.top());
    waiting_.pop();
  }
  looks_at_links_ = !is_idle() || !topology_->is_star();
}

double Fabric::alone(const Transfer& transfer) const
{
  const auto [from, to] = ends_of(transfer);
  double slowest        = std::numeric_limits<double>::infinity();
  for (const auto& pass : topology_->route(from, to, 0))
    slowest = std::min(slowest, topology_->capacity(pass.link));
  return topology_->latency(from, to, 0) + transfer.bytes / slowest;
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
  use.fallbacks       = flows_ ? flows_->cost().fallbacks : 0;
  const auto by_flows = moved(now);
  if (topology_->is_star() && topology_->links() % 2 == 1)
    small_bytes_.back() += all_bytes_;
  all_bytes_ = 0;
  std::vector<std::pair<double, FlowNetwork::Link>> busiest;
  constexpr size_t most = 3;
  for (FlowNetwork::Link link = 0; link < small_bytes_.size(); ++link) {
    const double bytes    = by_flows[link] + small_bytes_[link];
    const double capacity = topology_->capacity(link);
    small_bytes_[link]    = 0;
    if (bytes == 0 || std::isinf(capacity))
      continue;
    busiest.emplace_back(-bytes / capacity, link);
    std::push_heap(busiest.begin(), busiest.end());
    if (busiest.size() > most) {
      std::pop_heap(busiest.begin(), busiest.end());
      busiest.pop_back();
    }
  }
  std::sort(busiest.begin(), busiest.end());
  for (const auto& [seconds, link] : busiest)
    use.busiest.push_back(
        {topology_->name(link), -seconds * topology_->capacity(link), now > start ? -seconds / (now - start) : 0});
  return use;
}

void Fabric::check(double now)
{
  if (is_idle() && begun_bytes_ != ended_bytes_ && std::abs(begun_bytes_ - ended_bytes_) > 1e-9 * begun_bytes_)
    throw RunError(fmt::format("Transfers of {} bytes began and of {} ended; this is an error of the simulator.",
                               begun_bytes_, ended_bytes_));
  if (!flows_)
    return;
  const auto moved = flows_->moved(now);
  for (FlowNetwork::Link link = 0; link < topology_->links(); ++link)
    if (moved[link] > topology_->capacity(link) * now * (1 + 1e-9) + 1)
      throw RunError(fmt::format("{} moved {} bytes in {} s, more than it can; this is an error of the simulator.",
                                 topology_->name(link), moved[link], now));
}

} // namespace iocast
