// SPDX-License-Identifier: Apache-2.0
#include "sim/network.hpp"

#include "input/error.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace iocast {

namespace s4u = simgrid_compat::s4u;

namespace {
constexpr double unlimited = 1e15; // bytes a second, for links whose bandwidth the platform leaves open
} // namespace

Network::Network(s4u::Engine&, const Platform& platform, const Placement& placement, uint32_t hosts,
                 double most_updates)
    : node_bandwidth_(platform.network.node_bandwidth), most_updates_(most_updates), servers_(platform.stations.size())
{
  const auto& spec = platform.network;
  auto* zone       = simgrid_compat::add_star_zone("cluster");
  auto bandwidth   = [](double given) { return given > 0 ? given : unlimited; };
  s4u::Link* backbone =
      spec.backbone_bandwidth > 0 ? simgrid_compat::add_link(zone, "backbone", spec.backbone_bandwidth) : nullptr;
  if (backbone)
    backbone->set_latency(0);

  // Each end has half of the one-way latency; the way up and the way down do not compete.
  auto attach = [&](s4u::Host* host, double speed) {
    std::vector<s4u::LinkInRoute> up;
    std::vector<s4u::LinkInRoute> down;
    auto* out = simgrid_compat::add_link(zone, host->get_name() + "-up", speed);
    auto* in  = simgrid_compat::add_link(zone, host->get_name() + "-down", speed);
    for (auto* link : {out, in})
      link->set_latency(spec.latency / 2);
    up.emplace_back(out);
    if (backbone)
      up.emplace_back(backbone);
    down.emplace_back(in);
    zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, up, false);
    zone->add_route(nullptr, host->get_netpoint(), nullptr, nullptr, down, false);
  };

  nodes_per_host_ = (placement.nodes() + hosts - 1) / hosts;
  if (nodes_per_host_ > 1)
    busy_links_.resize(2 * size_t{placement.nodes()});
  for (uint32_t first = 0; first < placement.nodes(); first += nodes_per_host_) {
    const auto together = std::min(nodes_per_host_, placement.nodes() - first);
    nodes_.push_back(simgrid_compat::add_host(zone, fmt::format("node-{}", first), 1e9));
    attach(nodes_.back(), bandwidth(spec.node_bandwidth) * together);
  }
  const auto add_servers = [&](uint32_t station) {
    if (servers_[station].empty())
      for (uint32_t i = 0; i < platform.stations[station].count; ++i) {
        auto* host = simgrid_compat::add_host(zone, fmt::format("{}-{}", platform.stations[station].name, i), 1e9);
        attach(host, bandwidth(spec.server_bandwidth));
        servers_[station].push_back(host);
      }
  };
  platform.for_each_step([&](const Step& step, const BufferSpec* buffer) {
    if (step.kind != Step::Kind::transfer)
      return;
    add_servers(step.target);
    if (buffer != nullptr && buffer->station >= 0)
      add_servers(static_cast<uint32_t>(buffer->station));
  });
  zone->seal();
  simgrid_compat::on_comm_completion([this](const s4u::Comm& comm) { finished(comm); });
}

void Network::connect(System& system)
{
  system_ = &system;
}

void Network::start(const Transfer& transfer)
{
  updates_ += 2 * static_cast<double>(flows_.size());
  if (updates_ > most_updates_)
    throw RunError(fmt::format("The simulation takes more than {:g} updates of flows that share the network: {} are in "
                               "progress at {:.3g} s.",
                               most_updates_, flows_.size(), s4u::Engine::get_clock()));
  const bool of_node = transfer.from_station == UINT32_MAX;
  s4u::Host* node =
      of_node ? nodes_[transfer.node / nodes_per_host_] : servers_[transfer.from_station][transfer.from_instance];
  s4u::Host* server = servers_[transfer.station][transfer.instance];
  auto comm         = transfer.to_server ? s4u::Comm::sendto_init(node, server) : s4u::Comm::sendto_init(server, node);
  comm->set_payload_size(static_cast<uint64_t>(transfer.bytes));
  if (of_node && nodes_per_host_ > 1) {
    crowded_ += flows_of(transfer.node, transfer.to_server)++ > 0;
    if (node_bandwidth_ > 0)
      comm->set_rate(node_bandwidth_);
  }
  begun_bytes_ += transfer.bytes;
  flows_[comm.get()] = {comm, transfer.job, transfer.bytes, of_node ? transfer.node : UINT32_MAX, transfer.to_server};
  comm->start();
}

void Network::finished(const s4u::Comm& comm)
{
  const auto found = flows_.find(&comm);
  if (found == flows_.end())
    return;
  const Flow& flow = found->second;
  const JobId job  = flow.job;
  ended_bytes_ += flow.bytes;
  if (flow.node != UINT32_MAX && nodes_per_host_ > 1)
    --flows_of(flow.node, flow.to_server);
  ended_ = flow.comm;
  flows_.erase(found);
  system_->transfer_done(job, s4u::Engine::get_clock());
}

bool needs_network(const Platform& platform, const Pattern& pattern)
{
  uint64_t largest = pattern.footprint().largest_size;
  for (const auto& buffer : platform.buffers)
    largest = std::max(largest, buffer.unit); // small writes drain together
  for (const auto& cache : platform.caches)
    largest = std::max(largest, cache.unit); // and more is fetched than small reads ask for
  if (static_cast<double>(largest) < platform.network.flow_threshold)
    return false;
  bool transfers = false;
  platform.for_each_step(
      [&](const Step& step, const BufferSpec*) { transfers = transfers || step.kind == Step::Kind::transfer; });
  return transfers;
}

} // namespace iocast
