// SPDX-License-Identifier: Apache-2.0
//
// What is declared of locks; models/lock.hpp and models/extent.hpp have their course.
#include "models/platform_reader.hpp"

namespace iocast {

namespace {
/// What of an object a node keeps when not all of it.
void check_extent(const LockSpec& lock, const YamlNode& yaml, const Platform& platform)
{
  if (lock.per != Per::object)
    yaml["extent"].fail(fmt::format("only objects have ranges; let the lock '{}' be per: object, not per: {}",
                                    lock.name, name_of(lock.per)));
  if (!lock.hand_over)
    yaml["extent"].fail(fmt::format(
        "ranges are of locks that nodes keep; give the lock '{}' a hand_over, of 0us if it takes no time", lock.name));
  if (lock.station < 0)
    return;
  const auto& station = platform.stations[static_cast<size_t>(lock.station)];
  if (station.per == Per::node || station.spread != Spread::stripe)
    yaml["station"].fail(fmt::format(
        "servers keep the locks of their own stripes only where objects are striped over them; '{}' {}", station.name,
        station.per == Per::node ? "is of the client nodes"
                                 : fmt::format("is spread by {}", spread_names[static_cast<size_t>(station.spread)])));
  if (station.by_stripe)
    yaml["station"].fail(fmt::format(
        "ranges are of stripes in turn; stripes of '{}' lie by chance (allocation: by-stripe)", station.name));
}

void check(Named& spec, const YamlNode& yaml, const Platform& platform)
{
  auto& lock = static_cast<LockSpec&>(spec);
  if (lock.hand_over && lock.per == Per::node)
    yaml["hand_over"].fail("a node's own lock is never handed over to another node");
  if (lock.extent > 0)
    check_extent(lock, yaml, platform);
  for (const char* key : {"grow", "station"})
    if (lock.extent == 0 && yaml.has(key))
      yaml[key].fail(fmt::format("'{}' is of locks on ranges of an object; say in which units with 'extent'", key));
  const auto hot = yaml.find("hot");
  if (!hot && lock.message)
    yaml["message"].fail(
        "a message goes to a lock that stays where it is while it is hot; say for how long with 'hot'");
  if (!hot)
    return;
  if (!lock.hand_over)
    hot->fail(fmt::format("only a lock that nodes keep can be hot; give the lock '{}' a hand_over", lock.name));
  if (lock.extent > 0)
    hot->fail("ranges of an object move whenever another node wants them; leave out 'hot' or 'extent'");
  yaml["message"]; // is required
  if (lock.hot == 0)
    lock.message = {};
}

const std::vector<Key> keys{
    word(&LockSpec::per, {"system", "node", "dataset", "object"},
         {"per", "owner of a lock: dataset (default), object, node or system"}, no_owner),
    demand(&LockSpec::hand_over,
           {"hand_over",
            "time to revoke the lock when another node needs it, a law or the name of a demand; nodes keep the "
            "lock until then, several nodes if all had it shared"})
        .or_none(),
    number(&LockSpec::extent,
           {"extent",
            "per object, with hand_over: unit in bytes of the ranges that nodes keep. An access gets its units in a "
            "range grown upwards to other nodes' ranges, or to the range that a revoked node had requested, and "
            "downwards over free units. A revoked node keeps the rest. Readers share; others wait while it is "
            "in use",
            Unit::bytes, 1, 1e18})
        .where_set(),
    number(&LockSpec::grow,
           {"grow", "with extent: largest growth in bytes on each side, default without end", Unit::bytes, 0, 1e18})
        .or_none(),
    station(&LockSpec::station,
            {"station", "with extent: each instance of this station, which is spread by stripe, has the locks of its "
                        "stripes. An access needs the locks of every instance with bytes of it, each with its own "
                        "hand-over"})
        .or_none(),
    number(&LockSpec::hot,
           {"hot",
            "time since its last use in which the lock stays where it is; another node then sends a message instead, "
            "and the node that has it does the work. Default 0: it moves at each use by another node",
            Unit::seconds, 0, PlatformReader::longest_seconds})
        .where_set(),
    demand(&LockSpec::message, {"message", "with hot: time of such a message, a law or the name of a demand"})
        .or_none(),
};

const bool registered = register_mechanism({
    .section = "locks",
    .word    = "lock",
    .summary = "held for part of a service by one request at a time, or by several that share it",
    .keys    = keys,
    .kept    = kept_in<LockSpec, &Platform::locks>,
    .owners  = {},
    .check   = check,
    .order   = 0,
    .listed  = true,
});
} // namespace

} // namespace iocast
