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

Network::Network(s4u::Engine&, const Platform& platform, const Placement& placement)
    : servers_(platform.stations.size())
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

  for (uint32_t node = 0; node < placement.nodes(); ++node) {
    nodes_.push_back(simgrid_compat::add_host(zone, fmt::format("node-{}", node), 1e9));
    attach(nodes_.back(), bandwidth(spec.node_bandwidth));
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
    if (step.kind != Step::Kind::transfer || !platform.ways[step.way].network)
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
  const bool of_node = transfer.from_station == UINT32_MAX;
  s4u::Host* node    = of_node ? nodes_[transfer.node] : servers_[transfer.from_station][transfer.from_instance];
  s4u::Host* server  = servers_[transfer.station][transfer.instance];
  auto comm          = transfer.to_server ? s4u::Comm::sendto_init(node, server) : s4u::Comm::sendto_init(server, node);
  comm->set_payload_size(static_cast<uint64_t>(transfer.bytes));
  begun_bytes_ += transfer.bytes;
  flows_[comm.get()] = {comm, transfer.job, transfer.bytes};
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
  ended_ = flow.comm;
  flows_.erase(found);
  system_->transfer_done(job, s4u::Engine::get_clock());
}

} // namespace iocast
