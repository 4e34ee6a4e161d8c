// SPDX-License-Identifier: Apache-2.0
//
// What is declared of background load; models/system/background.cpp has its course.
#include "input/error_code.hpp"
#include "models/platform_reader.hpp"

#include <utility>

namespace iocast {

namespace {
void check(Named& spec, const YamlNode& yaml, const Platform& platform)
{
  auto& work          = static_cast<BackgroundSpec&>(spec);
  const auto& station = platform.stations[work.station];
  if (station.per == Per::node)
    yaml["station"].fail("background work arrives at stations of the system, not of client nodes");
  const auto share = yaml.find("share");
  if (!share)
    return;
  if (!(work.demand->mean() > 0))
    throw Coded<InputError>(
        error_code::no_demand_left,
        share->failure("a share of the station's time can only be of a demand that is not always 0"));
  if (station.servers > PlatformReader::most_limited)
    share->fail(fmt::format("the station '{}' has {} servers, which is no limit, and a share of no limit has no size; "
                            "state a rate, or at most {} servers",
                            station.name, station.servers, PlatformReader::most_limited));
  work.rate = std::exchange(work.share, 0) * station.servers * station.count * station.rating / work.demand->mean();
}

const std::vector<Key> keys{
    station(&BackgroundSpec::station, {"station", "name of the station"}),
    number(&BackgroundSpec::rate, {"rate", "arrivals a second", Unit::rate, 0, 1e9}).or_none(),
    number(&BackgroundSpec::share,
           {"share", "in place of a rate: share of all its servers' time", Unit::factor, 0, 0.99})
        .where_set(),
    demand(&BackgroundSpec::demand, {"demand", "service time: a law or the name of a demand"}),
};

const bool registered = register_mechanism({
    .section   = "background",
    .word      = "background",
    .summary   = "background load: Poisson arrivals at a station that no rank waits for",
    .keys      = keys,
    .one_of    = {{"rate", "share"}},
    .kept      = kept_in<BackgroundSpec, &Platform::background>,
    .owners    = {},
    .in_routes = false,
    .check     = check,
    .order     = 3,
    .listed    = true,
});
} // namespace

} // namespace iocast
