// SPDX-License-Identifier: Apache-2.0
#include "models/coverage.hpp"
#include "models/platform_reader.hpp"
#include "models/topology.hpp"
#include "workload/workload.hpp"

namespace iocast {

nlohmann::ordered_json Platform::to_json(bool quantiles) const
{
  static constexpr const char* disciplines[] = {"fcfs", "ps", "timeslice"};
  nlohmann::ordered_json json{{"name", name}, {"file", file}, {"description", description}, {"source", source}};
  json["serves"] = serves.to_json();
  for (size_t k = 1; k < op_count; ++k)
    if (const auto kind = static_cast<OpKind>(k); routes[k].served && is_alone(reach_of(*this, kind), kind))
      json["serves"]["alone"].push_back(name_of(kind));
  json["clients"] = {
      {"speed_sigma", speed_sigma}, {"think_overshoot", think_overshoot}, {"wake_slowdown", wake_slowdown}};
  if (slow.share > 0)
    json["clients"]["slow_nodes"] = {{"share", slow.share}, {"factor", slow.factor}};
  if (slow.share > 0 && slow.station >= 0)
    json["clients"]["slow_nodes"]["station"] = stations[static_cast<size_t>(slow.station)].name;
  if (collective.aggregators > 0)
    json["clients"]["collective"] = {{"aggregators", collective.aggregators}, {"unit", collective.unit}};
  if (collective.servers > 0)
    json["clients"]["collective"]["servers"] = collective.servers;
  json["stations"] = nlohmann::ordered_json::object();
  for (const auto& station : stations)
    json["stations"][station.name] = {{"per", name_of(station.per)},
                                      {"count", station.count},
                                      {"spread", spread_names[static_cast<size_t>(station.spread)]},
                                      {"servers", station.servers},
                                      {"speed", station.rating},
                                      {"discipline", disciplines[static_cast<size_t>(station.discipline)]},
                                      {"quantum", station.quantum},
                                      {"contention", station.contention},
                                      {"coherency", station.coherency},
                                      {"crowding", station.crowding},
                                      {"wakeup", station.wakeup_preempts ? "preempts" : "queues"}};
  for (const auto& station : stations) {
    auto& entry = json["stations"][station.name];
    if (station.spread == Spread::stripe) {
      entry["stripe_size"]  = station.stripe_size;
      entry["stripe_count"] = station.stripe_count;
      if (station.allocated_in_turn)
        entry["allocation"] = "round-robin";
      else if (station.by_stripe)
        entry["allocation"] = "by-stripe";
      else if (!station.free.empty())
        entry["allocation"] = "weighted";
    }
    if (station.newest_first)
      entry["waiting"] = "newest-first";
    if (!station.speeds.empty())
      entry["speeds"] = station.speeds;
    if (!station.priority.empty())
      entry["priority"] = station.priority;
    if (const auto& disk = station.disk; disk.exists()) {
      entry["disk"] = {{"read", disk.read},
                       {"write", disk.write},
                       {"overhead", disk.overhead},
                       {"discipline", disk.fifo ? "fifo" : "shared"}};
      if (disk.together > 0)
        entry["disk"]["together"] = disk.together;
      if (!disk.slowdown.empty())
        entry["disk"]["slowdown"] = disk.slowdown;
    }
    if (const auto& redundancy = station.redundancy; redundancy.is_coded())
      entry["redundancy"] = {
          {"data", redundancy.data}, {"parity", redundancy.shards - redundancy.data}, {"unit", redundancy.unit}};
    else if (redundancy.exists())
      entry["redundancy"] = {{"copies", redundancy.shards}};
    if (station.rpc.size > 0)
      entry["rpc"] = {{"size", station.rpc.size}, {"in_flight", station.rpc.in_flight}};
  }
  write_mechanisms(*this, quantiles, json);
  json["network"] = {{"latency", network.latency},
                     {"node_bandwidth", network.node_bandwidth},
                     {"server_bandwidth", network.server_bandwidth},
                     {"backbone_bandwidth", network.backbone_bandwidth},
                     {"never_limited", network.never_limited}};
  if (network.routers >= 0)
    json["network"]["routers"] = stations[static_cast<size_t>(network.routers)].name;
  if (network.plan) {
    json["network"]["hop_latency"] = network.hop_latency;
    json["network"].update(network.plan->to_json());
  }
  for (const auto& place : network.places) {
    auto& entry = json["network"]["servers"][stations[place.station].name];
    entry       = {{"each", place.each}, {"among_nodes", place.among_nodes}, {"bandwidth", place.bandwidth}};
  }
  json["operations"] = settled(routes_json, quantiles);
  return json;
}

nlohmann::ordered_json Platform::settled(nlohmann::ordered_json steps, bool quantiles) const
{
  const auto settle = [&](auto&& self, nlohmann::ordered_json& node) -> void {
    if (!node.is_structured())
      return;
    if (node.is_object() && node.contains("law") && node.contains("quantiles")) {
      if (quantiles)
        node["quantiles"] = quantiles_of(*quantile_laws[node["quantiles"].get<size_t>()]);
      else
        node.erase("quantiles");
      return;
    }
    for (auto& child : node)
      self(self, child);
  };
  settle(settle, steps);
  return steps;
}

} // namespace iocast
