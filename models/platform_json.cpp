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
  for (const char* section : {"stations", "limits", "locks", "stalls", "failures", "background"})
    json[section] = nlohmann::ordered_json::object();
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
  for (const auto& limit : limits) {
    auto& entry = json["limits"][limit.name];
    entry       = {{"slots", limit.slots}, {"per", name_of(limit.per)}};
    if (limit.station >= 0)
      entry["of"] = stations[static_cast<size_t>(limit.station)].name;
    if (limit.barging > 0)
      entry["barging"] = limit.barging;
  }
  for (const auto& lock : locks) {
    json["locks"][lock.name] = {{"per", name_of(lock.per)}};
    if (lock.hand_over)
      json["locks"][lock.name]["hand_over"] = law_to_json(*lock.hand_over, quantiles);
    if (lock.extent > 0)
      json["locks"][lock.name]["extent"] = lock.extent;
    if (lock.grow)
      json["locks"][lock.name]["grow"] = *lock.grow;
    if (lock.station >= 0)
      json["locks"][lock.name]["station"] = stations[static_cast<size_t>(lock.station)].name;
    if (lock.hot > 0) {
      json["locks"][lock.name]["hot"]     = lock.hot;
      json["locks"][lock.name]["message"] = law_to_json(*lock.message, quantiles);
    }
  }
  for (const auto& stall : stalls) {
    auto operations = nlohmann::ordered_json::array();
    for (size_t k = 0; k < op_count; ++k)
      if (stall.operations[k])
        operations.push_back(op_names[k]);
    json["stalls"][stall.name] = {{"station", stations[stall.station].name},
                                  {"every", stall.every},
                                  {"length", stall.length},
                                  {"sigma", stall.sigma},
                                  {"operations", operations}};
    if (stall.per_change > 0) {
      json["stalls"][stall.name]["per_change"] = stall.per_change;
      json["stalls"][stall.name]["absorbed"]   = stall.absorbed;
    }
  }
  for (const auto& failure : failures) {
    auto& entry = json["failures"][failure.name];
    entry       = {{"station", stations[failure.station].name},
                   {"instance", failure.instance},
                   {"at", failure.at},
                   {"every", failure.every},
                   {"length", failure.length},
                   {"sigma", failure.sigma},
                   {"timeout", failure.timeout}};
    if (failure.to) {
      entry["to"]       = *failure.to;
      entry["takeover"] = failure.takeover;
    }
  }
  for (const auto& failure : link_failures)
    json["failures"][failure.name] = {{failure.disk ? "disk" : "link", failure.link},
                                      {"at", failure.at},
                                      {"every", failure.every},
                                      {"length", failure.length},
                                      {"share", failure.share},
                                      {"reroute", failure.reroute},
                                      {"rebuild", failure.rebuild}};
  for (const auto& work : background)
    json["background"][work.name] = {{"station", stations[work.station].name},
                                     {"rate", work.rate},
                                     {"demand", law_to_json(*work.demand, quantiles)}};
  for (const auto& cache : caches) {
    auto& entry = json["caches"][cache.name];
    if (cache.station >= 0)
      entry["station"] = stations[static_cast<size_t>(cache.station)].name;
    else
      entry["per"] = name_of(cache.per);
    entry[cache.page > 0 ? "capacity" : "objects"] = cache.capacity;
    if (cache.page > 0)
      entry["page"] = cache.page;
    if (cache.valid > 0)
      entry.update({{"valid", cache.valid}, {"valid_at_most", cache.valid_at_most}});
    if (cache.ahead > 0)
      entry.update(
          {{"ahead", cache.ahead}, {"unit", cache.unit}, {"at_once", cache.at_once}, {"fetch", cache.fetch_json}});
    if (cache.strides)
      entry["follows"] = "strides";
  }
  json["buffers"] = nlohmann::ordered_json::object();
  for (const auto& buffer : buffers) {
    auto& entry = json["buffers"][buffer.name];
    if (buffer.station >= 0)
      entry["station"] = stations[static_cast<size_t>(buffer.station)].name;
    else
      entry["per"] = name_of(buffer.per);
    entry.update({{"capacity", buffer.capacity},
                  {"unit", buffer.unit},
                  {"linger", buffer.linger},
                  {"resume", static_cast<double>(buffer.resume) / static_cast<double>(buffer.capacity)},
                  {"at_once", buffer.at_once},
                  {"drain", buffer.drain_json}});
    if (buffer.above > 0)
      entry["above"] = static_cast<double>(buffer.above) / static_cast<double>(buffer.capacity);
    if (buffer.stage_out)
      entry["stage_out"] = "phase";
    if (buffer.stage_in > 0)
      entry.update({{"staged", buffer.stage_in}, {"stage_in", buffer.stage_in_json}});
  }
  for (const auto& mechanism : mechanisms)
    json[mechanism->kind->section][mechanism->name] = mechanism_json(*mechanism, stations);
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
  json["operations"] = routes_json;
  auto settle        = [&](auto&& self, nlohmann::ordered_json& node) -> void {
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
  for (const char* section : {"operations", "buffers", "caches"})
    if (json.contains(section))
      settle(settle, json[section]);
  for (const auto& mechanism : mechanisms)
    settle(settle, json[mechanism->kind->section][mechanism->name]);
  return json;
}

} // namespace iocast
