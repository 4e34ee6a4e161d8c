// SPDX-License-Identifier: Apache-2.0
#include "sim/simgrid/network.hpp"

#include "input/error.hpp"
#include "sim/simgrid/topology.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace iocast {

namespace s4u = simgrid_compat::s4u;

namespace {
constexpr double unlimited = 1e15; // bytes a second, for links whose bandwidth the platform leaves open
} // namespace

Network::Network(s4u::Engine&, const Platform& platform, const Placement& placement)
    : ends_(ends_of(platform, placement.nodes())), first_server_(platform.stations.size())
{
  for (const auto& group : ends_.servers)
    first_server_[group.station] = group.first;
  const auto topology = make_topology(platform.network, ends_);
  if (!topology->has_one_way())
    throw InputError(fmt::format("SimGrid has one route between two ends, and the network of '{}' has several; compare "
                                 "it with minimal: 1, or leave out --flows simgrid.",
                                 platform.file));
  if (!platform.link_failures.empty())
    throw InputError(fmt::format("{}: links that fail are not compared with SimGrid's; leave out --flows simgrid.",
                                 platform.link_failures.front().where));
  if (const auto* hosts = dynamic_cast<const SimGridHosts*>(topology.get()))
    for (uint32_t end = 0; end < ends_.count(); ++end)
      hosts_.push_back(hosts->host_of(end));
  else if (topology->is_star() && platform.network.is_uniform())
    make_star(platform.network);
  else
    make_routes(platform, *topology);
  simgrid_compat::on_comm_completion([this](const s4u::Comm& comm) { finished(comm); });
}

/// One route for each end: the way up and the way down do not compete, and each has half of the one-way latency.
void Network::make_star(const NetworkSpec& spec)
{
  auto* zone     = simgrid_compat::add_star_zone("cluster");
  auto bandwidth = [](double given) { return given > 0 ? given : unlimited; };
  s4u::Link* backbone =
      spec.backbone_bandwidth > 0 ? simgrid_compat::add_link(zone, "backbone", spec.backbone_bandwidth) : nullptr;
  if (backbone)
    backbone->set_latency(0);
  for (uint32_t end = 0; end < ends_.count(); ++end) {
    auto* host         = simgrid_compat::add_host(zone, ends_.name(end), 1e9);
    const double speed = bandwidth(end < ends_.nodes ? spec.node_bandwidth : spec.server_bandwidth);
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
    hosts_.push_back(host);
  }
  zone->seal();
}

/// Each route as the topology has it.
void Network::make_routes(const Platform& platform, const Topology& topology)
{
  constexpr uint32_t most = 2000; // ends, each with a route to all others
  const uint32_t count    = ends_.count();
  if (count > most)
    throw InputError(fmt::format("The network of '{}' has {} ends; --flows simgrid compares networks of at most {}.",
                                 platform.file, count, most));
  auto* zone = simgrid_compat::add_full_zone("cluster");
  std::vector<s4u::Link*> links;
  for (FlowNetwork::Link link = 0; link < topology.links(); ++link) {
    links.push_back(
        simgrid_compat::add_link(zone, fmt::format("link {}", link), std::min(topology.capacity(link), unlimited)));
    links.back()->set_latency(link < 2 * count ? platform.network.latency / 2 : platform.network.hop_latency);
  }
  for (uint32_t end = 0; end < count; ++end)
    hosts_.push_back(simgrid_compat::add_host(zone, ends_.name(end), 1e9));
  for (uint32_t from = 0; from < count; ++from)
    for (uint32_t to = 0; to < count; ++to) {
      if (from == to)
        continue;
      std::vector<s4u::LinkInRoute> route{s4u::LinkInRoute(links[Topology::out_of(from)])};
      for (const auto& pass : topology.route(from, to, 0))
        if (pass.link != Topology::out_of(from) && pass.link != Topology::into(to))
          route.emplace_back(links[pass.link]);
      route.emplace_back(links[Topology::into(to)]);
      zone->add_route(hosts_[from]->get_netpoint(), hosts_[to]->get_netpoint(), nullptr, nullptr, route, false);
    }
  zone->seal();
}

void Network::connect(System& system)
{
  system_ = &system;
}

void Network::start(const Transfer& transfer)
{
  const bool of_node = transfer.from_station == UINT32_MAX;
  s4u::Host* node    = hosts_[of_node ? transfer.node : first_server_[transfer.from_station] + transfer.from_instance];
  s4u::Host* server =
      hosts_[transfer.station == UINT32_MAX ? transfer.instance : first_server_[transfer.station] + transfer.instance];
  auto comm = transfer.to_server ? s4u::Comm::sendto_init(node, server) : s4u::Comm::sendto_init(server, node);
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
