// SPDX-License-Identifier: Apache-2.0
//
// What is declared of caches and their read-ahead; models/cache.hpp and models/read_ahead.hpp have their course.
#include "models/platform_reader.hpp"

namespace iocast {

namespace {
void check_ahead(const CacheSpec& cache, const YamlNode& yaml, const Platform& platform)
{
  if (cache.unit % cache.page != 0)
    yaml["unit"].fail(fmt::format("pieces are of whole pages, of {} each; {} is not a multiple of that",
                                  yaml["page"].text(), yaml["unit"].text()));
  if (cache.unit > cache.ahead)
    yaml["ahead"].fail(fmt::format("a piece of {} is more than is fetched ahead, {}",
                                   yaml[yaml.has("unit") ? "unit" : "page"].text(), yaml["ahead"].text()));
  if (cache.ahead + cache.unit > cache.capacity)
    yaml["ahead"].fail(fmt::format("the cache '{}' has no room for so much and a piece besides; its capacity is {}",
                                   cache.name, yaml["capacity"].text()));
  if (cache.capacity / cache.page > PlatformReader::most_pages)
    yaml["page"].fail(fmt::format("the cache '{}' has to know each of its pages as it fetches ahead, and would have "
                                  "{}; the most is {}: make them larger",
                                  cache.name, cache.capacity / cache.page, PlatformReader::most_pages));
  if (cache.station >= 0 && platform.stations[static_cast<size_t>(cache.station)].spread == Spread::stripe)
    yaml["ahead"].fail(fmt::format("an instance of '{}' has only stripes of an object and can't tell who reads on; let "
                                   "a cache of nodes, or of a station that is spread otherwise, fetch ahead",
                                   yaml["station"].text()));
}

void check(Named& part, const YamlNode& yaml, const Platform& platform)
{
  const auto& cache = static_cast<const CacheSpec&>(part);
  if (cache.page > cache.capacity)
    yaml["page"].fail(fmt::format("the cache '{}' has no room for a page of {}; its capacity is {}", cache.name,
                                  yaml["page"].text(), yaml["capacity"].text()));
  if (cache.valid_at_most < cache.valid)
    yaml["valid_at_most"].fail(fmt::format("an entry is valid for {} at first, which is longer", yaml["valid"].text()));
  if (cache.of_ranks() && cache.ahead > 0)
    yaml["ahead"].fail("what is fetched ahead is a node's, not a rank's");
  if (cache.ahead > 0)
    check_ahead(cache, yaml, platform);
}

/// Bytes of pages, or objects.
template <bool objects> Key capacity(Key key)
{
  key.set = [](Named& part, double value) {
    auto& cache      = static_cast<CacheSpec&>(part);
    cache.capacity   = static_cast<uint64_t>(value);
    cache.in_objects = objects;
  };
  key.get = [](const Named& part, const Platform&, bool) {
    const auto& cache = static_cast<const CacheSpec&>(part);
    return cache.capacity > 0 && cache.in_objects == objects ? nlohmann::ordered_json(cache.capacity)
                                                             : nlohmann::ordered_json();
  };
  return key.or_none();
}

constexpr double longest = PlatformReader::longest_seconds;
const std::vector<Key> keys{
    capacity<false>({"capacity", "bytes of pages of objects", Unit::bytes, 1, 1e18}),
    capacity<true>({"objects", "in place of capacity and page: number of objects and datasets, whatever their size",
                    Unit::count, 1, 1e15}),
    number(&CacheSpec::page, {"page", "bytes that enter and leave together", Unit::bytes, 1, 1 << 30})
        .needing({"capacity"}),
    number(&CacheSpec::valid,
           {"valid",
            "of objects: time for which an entry may be used before a look-up is a miss again, default without end",
            Unit::seconds, 1e-9, longest})
        .where_set()
        .needing({"objects"}),
    number(&CacheSpec::valid_at_most,
           {"valid_at_most", "with valid: that time doubles up to this one whenever it was over, default: it stays",
            Unit::seconds, 1e-9, longest})
        .as("valid", &CacheSpec::valid)
        .needing({"valid"}),
    number(&CacheSpec::ahead, {"ahead",
                               "of pages: largest number of bytes fetched in the background beyond a sequential pread. "
                               "Sequential is one at the object's start, or where the last one of its rank (in a cache "
                               "of no node: of its node) ended. The window is as long as the bytes read in sequence",
                               Unit::bytes, 1, 1e18})
        .where_set()
        .needing({"capacity"}),
    number(&CacheSpec::unit,
           {"unit", "with ahead: bytes of a fetched piece, whole pages, default one page", Unit::bytes, 1, 1e18})
        .as("page", &CacheSpec::page)
        .needing({"ahead"}),
    number(&CacheSpec::at_once, {"at_once", "with ahead: pieces fetched at a time, default 1", Unit::count, 1, 1e6, 1})
        .needing({"ahead"}),
    steps({"fetch",
           "with ahead: steps of a piece: delays, visits, transfers, limits, and caches that are written above "
           "this one"},
          {.piece   = "piece",
           .what    = "what a cache fetches",
           .through = "delays, visits, transfers, limits, and caches that are written above it",
           .refused = {"buffer", "flush"},
           .bytes   = PieceSteps::Bytes::read})
        .needing({"ahead"}),
    word(&CacheSpec::strides, {"sequential", "strides"},
         {"follows", "with ahead: sequential (default) readers alone, or strides: also those of one size at equal "
                     "distances, from the third on"})
        .where_set()
        .needing({"ahead"}),
};

const bool registered = register_mechanism({
    .section   = "caches",
    .word      = "cache",
    .summary   = "memory with the last used objects or pages (LRU); the step runs `hit` when all that the operation "
                 "needs is there, else `miss`, and all of it is there afterwards. An instance of a station that fails "
                 "loses its own",
    .keys      = keys,
    .one_of    = {{"capacity", "objects"}},
    .kept      = kept_in<CacheSpec, &Platform::caches>,
    .step_keys = {{"hit", "steps of a hit, default none"},
                  {"miss", "steps of a miss, default none"},
                  {"evict", "steps that follow when the operation brought something in that had something else "
                            "removed, such as its write-back"}},
    .owners    = {Per::node, Per::rank, Per::system},
    .check     = check,
    .order     = 4,
});
} // namespace

} // namespace iocast
