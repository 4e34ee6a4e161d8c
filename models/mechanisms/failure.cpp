// SPDX-License-Identifier: Apache-2.0
//
// What is declared of failures; models/failure.hpp and models/fabric.cpp have their course.
#include "models/platform_reader.hpp"

namespace iocast {

namespace {
void check_station(const FailureSpec& failure, const YamlNode& yaml, const Platform& platform)
{
  const auto& station = platform.stations[failure.station];
  if (station.per == Per::node)
    yaml["station"].fail(
        "stations of the system fail, not those of client nodes, which would take their clients with them");
  if (station.discipline == Discipline::timeslice)
    yaml["station"].fail(
        fmt::format("the station '{}' slices time; only stations that serve fcfs or ps can fail", station.name));
  if (station.count > 1)
    yaml["instance"]; // is required
  for (const auto& other : platform.failures)
    if (other.station == failure.station && other.instance == failure.instance)
      yaml.fail(fmt::format("the instance {} of the station '{}' fails in '{}' already; 'every' makes it fail again",
                            failure.instance, station.name, other.name));
  if (failure.to == failure.instance)
    yaml["to"].fail("an instance can't take over its own requests; name another one");
  if (failure.takeover >= failure.length)
    yaml["takeover"].fail(
        fmt::format("the instance is back after {}, before another one has taken over", yaml["length"].text()));
}

void check(Named& spec, const YamlNode& yaml, const Platform& platform)
{
  auto& failure = static_cast<FailureSpec&>(spec);
  refuse_endless(failure, yaml);
  if (failure.link.empty())
    return check_station(failure, yaml, platform);
  if (!failure.disk && yaml.has("rebuild"))
    yaml["rebuild"].fail("bytes are rebuilt on a disk; name one with 'disk' in place of 'link'");
  if (failure.rebuild == 0)
    yaml["share"]; // is required
  else if (!yaml.has("share"))
    failure.share = 1;
}

void keep(Platform& platform, const std::shared_ptr<Named>& part)
{
  const auto& spec = static_cast<const FailureSpec&>(*part);
  (spec.link.empty() ? platform.failures : platform.link_failures).push_back(spec);
}

/// A lost request begins anew with the same service, so one that takes longer than the station is up never ends.
void check_routes(const Named& spec, const YamlNode& yaml, const Platform& platform)
{
  const auto& failure = static_cast<const FailureSpec&>(spec);
  if (failure.every <= 0 || failure.to || !failure.link.empty() || !platform.stations[failure.station].speeds.empty())
    return;
  const auto& station = platform.stations[failure.station];
  const double up     = failure.every - (failure.sigma > 0 ? 0 : failure.length);
  for (const auto& route : platform.routes)
    for (const auto& step : route.steps) {
      if (step.kind != Step::Kind::visit || step.target != failure.station || step.times != Times::once)
        continue;
      const double shortest = step.law->quantile(1e-9) / station.rating;
      if (shortest > up)
        yaml["every"].fail(
            fmt::format("a visit to '{}' takes {:.4g} s and more, and the station is up for {:.4g} s between two "
                        "failures, so that it would never end",
                        station.name, shortest, up));
    }
}

/// What has a bandwidth: a link, or the disk of an instance.
template <bool disk> Key link(Key key)
{
  key.value = "name";
  key.read  = [](PlatformReader&, Named& spec, const YamlNode& yaml) {
    if (yaml.text().empty())
      yaml.fail(fmt::format("a {} has a name, as a run prints it; give that", disk ? "disk" : "link"));
    auto& failure = static_cast<FailureSpec&>(spec);
    failure.disk  = disk;
    failure.link  = yaml.text() + (disk ? " disk" : "");
    failure.where = yaml.where();
  };
  key.get = [](const Named& spec, const Platform&, bool) {
    const auto& failure = static_cast<const FailureSpec&>(spec);
    return !failure.link.empty() && failure.disk == disk ? nlohmann::ordered_json(failure.link)
                                                         : nlohmann::ordered_json();
  };
  return key.or_none();
}

template <class Number> Key instance(Number FailureSpec::*member, Key key)
{
  return value(
             "whole number", member, std::move(key),
             [](auto& reader, auto& spec, auto& yaml) { return reader.read_instance(yaml, spec.station); },
             [](std::optional<uint32_t> at, auto&, bool) {
               return at ? nlohmann::ordered_json(*at) : nlohmann::ordered_json();
             })
      .or_none()
      .needing({"station"});
}

bool read_reroute(PlatformReader&, FailureSpec& failure, const YamlNode& yaml)
{
  if (failure.disk)
    yaml.fail("no other way leads to what a disk has");
  if (yaml.text() != "true" && yaml.text() != "false")
    yaml.fail(fmt::format("transfers go another way ('true') or not ('false'), not '{}'", yaml.text()));
  return yaml.text() == "true";
}

constexpr double longest = PlatformReader::longest_seconds;
const std::vector<Key> keys{
    station(&FailureSpec::station, {"station", "name of the station; it serves fcfs or ps"}).or_none(),
    link<false>({"link", "in place of a station: a link of the network as a run names it, such as leaf 7 uplink 3 or "
                         "node 5, both ways unless up, down, in or out is added. Its flows are slower; none is lost"}),
    link<true>({"disk", "likewise: the disk of an instance, such as oss 3, while it is rebuilt"}),
    instance(&FailureSpec::instance,
             {"instance", "number of the instance, from 0; needless for a station of one instance"}),
    number(&FailureSpec::at, {"at", "simulated time since the start of the run", Unit::seconds, 0, longest}),
    number(&FailureSpec::every, {"every", "time from the start of a failure to the next; default: it fails once",
                                 Unit::seconds, 1e-6, longest})
        .or_none(),
    number(&FailureSpec::length, {"length", "mean time until the instance serves again", Unit::seconds, 1e-6, longest}),
    number(&FailureSpec::sigma, {"sigma", "of the lognormal length", Unit::factor, 0, 3, 0}).needing({"station"}),
    number(&FailureSpec::timeout, {"timeout",
                                   "time after the loss at which a client sends a request again, or when "
                                   "someone serves if that is later; default 0: clients wait for recovery",
                                   Unit::seconds, 0, longest, 0})
        .needing({"station"}),
    instance(&FailureSpec::to,
             {"to", "another instance, which serves its requests beside its own meanwhile; default: they wait"}),
    number(&FailureSpec::takeover,
           {"takeover", "delay of the takeover after the failure, default none", Unit::seconds, 0, longest, 0})
        .needing({"to"}),
    number(&FailureSpec::share, {"share",
                                 "of a link or disk: part of its bandwidth that is left, 0 to 1; with 0 flows "
                                 "wait until it is back",
                                 Unit::factor, 0, 1})
        .or_none()
        .needing({"link", "disk"}),
    value("true or false", &FailureSpec::reroute,
          {"reroute",
           "of a link: false (default), or true: transfers take another way meanwhile, those on it with what "
           "they have not moved yet, and a run where none remains is refused"},
          read_reroute, [](bool reroute, auto&, bool) { return reroute; })
        .or_none()
        .needing({"link", "disk"}),
    number(&FailureSpec::rebuild,
           {"rebuild",
            "of a disk: bytes that the other instances of its station send it, evenly, from their disks over "
            "the network; over `length`, or longer where a link or disk holds them up. `share` is 1 by "
            "default then. What is coded takes as many bytes as a stripe has parts with data",
            Unit::bytes, 1, 1e18})
        .or_none()
        .needing({"link", "disk"}),
};

const bool registered = register_mechanism({
    .section   = "failures",
    .word      = "failure",
    .summary   = "an instance of a station stops serving for a time; its requests in service and in queue are lost and "
                 "sent again",
    .keys      = keys,
    .one_of    = {{"station", "link", "disk"}},
    .kept      = {specify<FailureSpec>, keep},
    .owners    = {},
    .in_routes = false,
    .check     = check,
    .check_routes = check_routes,
    .order        = 2,
    .listed       = true,
});
} // namespace

} // namespace iocast
