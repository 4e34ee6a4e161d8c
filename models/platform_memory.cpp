// SPDX-License-Identifier: Apache-2.0
#include "models/platform_reader.hpp"

#include "workload/workload.hpp"

namespace iocast {

void PlatformReader::read_caches()
{
  const auto caches = yaml_.find("caches");
  if (!caches)
    return;
  for (const auto& [name, yaml] : caches->entries()) {
    CacheSpec cache;
    cache.name = name;
    read_place(yaml, cache, "cache");
    const auto capacity = yaml.find("capacity");
    const auto objects  = yaml.find("objects");
    if (capacity.has_value() == objects.has_value())
      (capacity ? *objects : yaml)
          .fail(fmt::format("the cache '{}' holds bytes (capacity, in pages) or objects (objects): give one of the two",
                            name));
    if (objects) {
      if (const auto page = yaml.find("page"))
        page->fail("what is counted in objects has no pages; give a capacity in bytes instead of objects");
      cache.capacity = static_cast<uint64_t>(objects->quantity(Unit::count, 1, 1e15));
    } else {
      cache.capacity = static_cast<uint64_t>(capacity->quantity(Unit::bytes, 1, 1e18));
      cache.page     = static_cast<uint64_t>(yaml["page"].quantity(Unit::bytes, 1, 1 << 30));
      if (cache.page > cache.capacity)
        yaml["page"].fail(fmt::format("the cache '{}' has no room for a page of {}; its capacity is {}", name,
                                      yaml["page"].text(), capacity->text()));
    }
    read_fetch(yaml, cache);
    read_validity(yaml, cache);
    yaml.finish();
    platform_.caches.push_back(cache);
  }
}

void PlatformReader::read_validity(const YamlNode& yaml, CacheSpec& cache)
{
  const auto valid = yaml.find("valid");
  const auto most  = yaml.find("valid_at_most");
  if (most && !valid)
    most->fail(fmt::format("the entries of the cache '{}' are valid without end; say how long at first with 'valid'",
                           cache.name));
  if (!valid)
    return;
  if (cache.page > 0)
    valid->fail(fmt::format("the cache '{}' holds pages; only entries of objects are valid for a time", cache.name));
  cache.valid         = valid->quantity(Unit::seconds, 1e-9, longest_seconds);
  cache.valid_at_most = yaml.quantity_or("valid_at_most", Unit::seconds, cache.valid, 1e-9, longest_seconds);
  if (cache.valid_at_most < cache.valid)
    most->fail(fmt::format("an entry is valid for {} at first, which is longer", valid->text()));
}

void PlatformReader::read_fetch(const YamlNode& yaml, CacheSpec& cache)
{
  const auto ahead = yaml.find("ahead");
  if (!ahead) {
    for (const char* key : {"fetch", "unit", "at_once", "follows"})
      if (const auto given = yaml.find(key))
        given->fail(fmt::format("the cache '{}' has no read-ahead; say how many bytes with 'ahead'", cache.name));
    return;
  }
  if (cache.page == 0)
    ahead->fail("what is counted in objects has no bytes that could be fetched ahead; give a capacity and pages "
                "instead of objects");
  cache.ahead = static_cast<uint64_t>(ahead->quantity(Unit::bytes, 1, 1e18));
  cache.unit  = static_cast<uint64_t>(yaml.quantity_or("unit", Unit::bytes, static_cast<double>(cache.page), 1, 1e18));
  if (cache.unit % cache.page != 0)
    yaml["unit"].fail(fmt::format("pieces are of whole pages, of {} each; {} is not a multiple of that",
                                  yaml["page"].text(), yaml["unit"].text()));
  if (cache.unit > cache.ahead)
    ahead->fail(fmt::format("a piece of {} is more than is fetched ahead, {}",
                            yaml[yaml.has("unit") ? "unit" : "page"].text(), ahead->text()));
  if (cache.ahead + cache.unit > cache.capacity)
    ahead->fail(fmt::format("the cache '{}' has no room for so much and a piece besides; its capacity is {}",
                            cache.name, yaml["capacity"].text()));
  if (cache.capacity / cache.page > most_pages)
    yaml["page"].fail(fmt::format("the cache '{}' has to know each of its pages as it fetches ahead, and would have "
                                  "{}; the most is {}: make them larger",
                                  cache.name, cache.capacity / cache.page, most_pages));
  if (cache.station >= 0 && platform_.stations[static_cast<size_t>(cache.station)].spread == Spread::stripe)
    ahead->fail(fmt::format("an instance of '{}' has only stripes of an object and can't tell who reads on; let a "
                            "cache of nodes, or of a station that is spread otherwise, fetch ahead",
                            yaml["station"].text()));
  cache.at_once = static_cast<uint32_t>(yaml.quantity_or("at_once", Unit::count, 1, 1, 1e6));
  if (const auto follows = yaml.find("follows")) {
    static const std::vector<std::string> known{"sequential", "strides"};
    if (std::find(known.begin(), known.end(), follows->text()) == known.end())
      follows->fail(
          fmt::format("no reader is followed by '{}'. {}", follows->text(), allowed_sentence(follows->text(), known)));
    cache.strides = follows->text() == "strides";
  }
  const auto steps = yaml["fetch"];
  fetched_         = &cache;
  cache.fetch_json = read_steps(steps, cache.fetch, {});
  fetched_         = nullptr;
  if (cache.fetch.empty())
    steps.fail("what is fetched through no step is there at once; give it at least one");
  cache.fetch.emplace_back().kind = Step::Kind::drained;
}

void PlatformReader::check_fetch_step(const YamlNode& item, const Step& step) const
{
  if (step.times != Times::once)
    item["per"].fail(
        "what a cache fetches has no entries and no blocks; its demand is per operation, which is per piece");
  const bool moves = step.kind == Step::Kind::transfer;
  const bool sends = moves && platform_.ways[step.way].network;
  if (moves && step.to_server)
    item[sends ? "transfer" : "disk"].fail("what a cache fetches is read, not written");
  if (sends && !fetched_->of_nodes())
    item["transfer"].fail(
        fmt::format("the cache '{}' is no node's; what it fetches moves by the bandwidth of a visit", fetched_->name));
  if (!fetched_->of_nodes())
    check_nodeless_step(item, step,
                        fmt::format("the cache '{}' is no node's, and so what it fetches can't ", fetched_->name));
}

void PlatformReader::check_beside_step(const YamlNode& item, const Step& step) const
{
  if (piece_of_ != nullptr)
    check_piece_step(item, step);
  else if (drained_ != nullptr)
    check_drain_step(item, step);
  else if (fetched_ != nullptr)
    check_fetch_step(item, step);
  else if (staged_ != nullptr)
    check_stage_step(item, step);
}

void PlatformReader::check_nodeless_step(const YamlNode& item, const Step& step, const std::string& nodeless) const
{
  if ((step.kind == Step::Kind::visit || step.kind == Step::Kind::transfer) &&
      platform_.stations[step.target].per == Per::node)
    item["station"].fail(nodeless + "visit a station of the client nodes");
  if (step.kind == Step::Kind::seize && platform_.limits[step.target].per == Per::node)
    item["limit"].fail(nodeless + "hold a slot of one (a limit is per node unless it says per: system)");
  if (step.lock >= 0)
    if (const auto& lock = platform_.locks[static_cast<size_t>(step.lock)]; lock.per == Per::node || lock.hand_over)
      item["lock"].fail(nodeless + "take a lock that nodes have or keep");
  if (step.kind == Step::Kind::enter && platform_.buffers[step.target].of_nodes())
    item["buffer"].fail(nodeless + "go to one of a node");
  if (step.kind == Step::Kind::look && platform_.caches[step.target].of_nodes())
    item[step.forgets ? "forget" : "cache"].fail(nodeless + "look into the cache of one");
}

void PlatformReader::read_buffers()
{
  const auto buffers = yaml_.find("buffers");
  if (!buffers)
    return;
  for (const auto& [name, yaml] : buffers->entries()) {
    BufferSpec buffer;
    buffer.name = name;
    read_place(yaml, buffer, "buffer");
    if (buffer.station >= 0 && platform_.stations[static_cast<size_t>(buffer.station)].by_stripe)
      yaml["station"].fail(fmt::format("what a buffer has of an object drains as if its stripes lay in turn; those of "
                                       "'{}' lie by chance (allocation: by-stripe)",
                                       yaml["station"].text()));
    buffer.capacity = static_cast<uint64_t>(yaml["capacity"].quantity(Unit::bytes, 1, 1e18));
    if (const auto granularity = yaml.find("granularity")) {
      const auto granule = static_cast<uint64_t>(granularity->quantity(Unit::bytes, 1, 1e18));
      buffer.capacity    = (buffer.capacity + granule - 1) / granule * granule;
    }
    buffer.unit = static_cast<uint64_t>(yaml.quantity_or("unit", Unit::bytes, 0, 1, 1e18));
    if (buffer.unit > buffer.capacity)
      yaml["unit"].fail(fmt::format("the buffer '{}' has no room for a unit of {}; its capacity is {}", name,
                                    yaml["unit"].text(), yaml["capacity"].text()));
    buffer.linger = yaml.quantity_or("linger", Unit::seconds, 0, 0, longest_seconds);
    if (buffer.linger > 0 && buffer.unit == 0)
      yaml["linger"].fail("only what can be part of a larger piece waits for more; say how large with 'unit'");
    buffer.resume =
        static_cast<uint64_t>(yaml.quantity_or("resume", Unit::factor, 1, 0, 1) * static_cast<double>(buffer.capacity));
    buffer.at_once    = static_cast<uint32_t>(yaml.quantity_or("at_once", Unit::count, 1, 1, 1e6));
    buffer.above      = static_cast<uint64_t>(yaml.quantity_or("above", Unit::factor, 0, 0, 0.99) *
                                         static_cast<double>(buffer.capacity));
    const auto steps  = yaml["drain"];
    drained_          = &buffer;
    buffer.drain_json = read_steps(steps, buffer.drain, {});
    drained_          = nullptr;
    if (buffer.drain.empty())
      steps.fail("a buffer that drains through no step is never full; give it at least one");
    buffer.drain.emplace_back().kind = Step::Kind::drained;
    read_stages(yaml, buffer);
    yaml.finish();
    platform_.buffers.push_back(std::move(buffer));
  }
}

void PlatformReader::read_stages(const YamlNode& yaml, BufferSpec& buffer)
{
  if (const auto out = yaml.find("stage_out")) {
    if (out->text() != "never" && out->text() != "phase")
      out->fail(fmt::format("a buffer is emptied after each 'phase' or 'never', not '{}'", out->text()));
    buffer.stage_out = out->text() == "phase";
  }
  const auto staged = yaml.find("staged");
  if (staged.has_value() != yaml.has("stage_in"))
    (staged ? *staged : yaml["stage_in"])
        .fail(fmt::format("what comes into the buffer '{}' before the first phase has bytes (staged) and steps "
                          "(stage_in): give both or none",
                          buffer.name));
  if (!staged)
    return;
  buffer.stage_in = static_cast<uint64_t>(staged->quantity(Unit::bytes, 1, 1e18));
  if (buffer.unit == 0)
    staged->fail(fmt::format("the buffer '{}' has no 'unit', the bytes of a piece that is staged in", buffer.name));
  if (buffer.stage_in + buffer.unit > buffer.capacity)
    staged->fail(fmt::format("the buffer '{}' has no room for {} and a unit besides; its capacity is {} bytes, of each "
                             "instance",
                             buffer.name, staged->text(), buffer.capacity));
  const auto steps     = yaml["stage_in"];
  staged_              = &buffer;
  buffer.stage_in_json = read_steps(steps, buffer.stage_in_steps, {});
  staged_              = nullptr;
  if (buffer.stage_in_steps.empty())
    steps.fail("what is staged in through no step is there at once; give it at least one");
  buffer.stage_in_steps.emplace_back().kind = Step::Kind::drained;
}

void PlatformReader::check_stage_step(const YamlNode& item, const Step& step) const
{
  if (step.times != Times::once)
    item["per"].fail("what is staged in has no entries and no blocks; its demand is per operation, which is per piece");
  if (step.kind == Step::Kind::transfer && platform_.ways[step.way].network) {
    if (step.to_server)
      item["transfer"].fail("what is staged in is read from another station, not written");
    if (!staged_->of_nodes() && staged_->station < 0)
      item["transfer"].fail("the whole system's buffer is at no place that a transfer could end at; let it be of a "
                            "node or a station");
    if (staged_->station == static_cast<int32_t>(step.target))
      item["station"].fail(fmt::format("the buffer '{}' is at that station itself", staged_->name));
  }
  if (!staged_->of_nodes())
    check_nodeless_step(item, step,
                        fmt::format("the buffer '{}' is no node's, and so what comes into it can't ", staged_->name));
}

void PlatformReader::check_drain_step(const YamlNode& item, const Step& step) const
{
  if (step.times != Times::once)
    item["per"].fail(
        "what a buffer drains has no entries and no blocks; its demand is per operation, which is per piece");
  if (step.kind == Step::Kind::transfer && platform_.ways[step.way].network) {
    if (!step.to_server)
      item["transfer"].fail("what a buffer drains is written, not read");
    if (!drained_->of_nodes() && drained_->station < 0)
      item["transfer"].fail(
          "the whole system's buffer is at no place that a transfer could begin at; let it be of a node or a station");
    if (drained_->station == static_cast<int32_t>(step.target))
      item["station"].fail(fmt::format("the buffer '{}' is at that station already", drained_->name));
  }
  if (!drained_->of_nodes())
    check_nodeless_step(item, step,
                        fmt::format("the buffer '{}' is no node's, and so what it drains can't ", drained_->name));
}

void PlatformReader::check_not_held(const YamlNode& reference, const std::vector<Step>& steps, const std::string& needs,
                                    const std::vector<uint32_t>& held) const
{
  for (const auto& step : steps)
    if (step.kind == Step::Kind::seize && std::find(held.begin(), held.end(), step.target) != held.end())
      reference.fail(fmt::format("the {}, which is held here; a request would wait for itself",
                                 fmt::format(fmt::runtime(needs), platform_.limits[step.target].name)));
}

void PlatformReader::check_not_held(const YamlNode& reference, const BufferSpec& buffer,
                                    const std::vector<uint32_t>& held) const
{
  check_not_held(reference, buffer.drain, fmt::format("buffer '{}' needs the limit '{{}}' to drain", buffer.name),
                 held);
}

void PlatformReader::check_not_held(const YamlNode& reference, const CacheSpec& cache,
                                    const std::vector<uint32_t>& held) const
{
  check_not_held(reference, cache.fetch, fmt::format("cache '{}' needs the limit '{{}}' to fetch ahead", cache.name),
                 held);
  for (const auto& step : cache.fetch) // what is fetched may wait for what another cache fetches
    if (step.kind == Step::Kind::look && !step.forgets)
      check_not_held(reference, platform_.caches[step.target], held);
}

} // namespace iocast
