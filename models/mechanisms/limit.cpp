// SPDX-License-Identifier: Apache-2.0
//
// What is declared of limits; models/limit.hpp has their course.
#include "models/platform_reader.hpp"

namespace iocast {

namespace {
void check(Named& spec, const YamlNode& yaml, const Platform& platform)
{
  const auto& limit = static_cast<const LimitSpec&>(spec);
  if (limit.station >= 0 && platform.stations[static_cast<size_t>(limit.station)].per == Per::node)
    yaml["of"].fail(fmt::format("'{}' is of the client nodes; a limit has slots for each instance of a server's "
                                "station",
                                yaml["of"].text()));
}

const std::vector<Key> keys{
    number(&LimitSpec::slots, {"slots", "maximum number of concurrent requests", Unit::count, 1, PlatformReader::most}),
    word(&LimitSpec::per, {"system", "node"}, {"per", "node (default) or system: owner of the slots"}, no_owner),
    station(&LimitSpec::station,
            {"of", "a server's station: the owner has slots of its own for each of its instances, such as a mount's "
                   "for each metadata target"})
        .or_none(),
    number(&LimitSpec::barging,
           {"barging",
            "share of the released slots that go to the last comer, default 0: each goes to who waits longest. "
            "The mean wait is the same; medians are shorter and tails longer",
            Unit::factor, 0, 1, 0})
        .where_set(),
};

const bool registered = register_mechanism({
    .section = "limits",
    .word    = "limit",
    .summary = "concurrency limit; the step acquires a slot, runs `steps`, releases it",
    .keys    = keys,
    .foreign = {{"threads", "slots"}, {"requests", "slots"}, {"count", "slots"}, {"servers", "slots"}},
    .kept    = kept_in<LimitSpec, &Platform::limits>,
    .owners  = {},
    .check   = check,
    .order   = 0,
    .listed  = true,
});
} // namespace

} // namespace iocast
