// SPDX-License-Identifier: Apache-2.0
#include "models/platform.hpp"

#include "input/error.hpp"
#include "workload/workload.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <optional>

namespace fs = std::filesystem;

namespace iocast {

namespace {

constexpr std::array<const char*, 4> spread_names{"dataset", "object", "stripe", "round-robin"};
constexpr std::array<const char*, 3> times_names{"operation", "entry", "block"};
constexpr std::array<const char*, 4> flush_names{"all", "object", "everywhere", "elsewhere"};
constexpr double longest_seconds = 1e6;
constexpr double most            = 4e9; // instances, servers, slots
constexpr uint32_t most_parts    = 255; // of a request at the same time
constexpr size_t most_steps      = 10000; // of a hit and a miss

const char* name_of(Per per)
{
  return per == Per::system ? "system" : per == Per::node ? "node" : per == Per::object ? "object" : "dataset";
}

std::vector<std::string> platform_names()
{
  std::vector<std::string> names;
  for (const auto& entry : platforms())
    names.push_back(entry.name);
  return names;
}

/// The file of a platform that was named in `from` (a directory), or by a user (empty).
std::string platform_file(const std::string& name_or_file, const fs::path& from)
{
  if (name_or_file.ends_with(".yaml") || name_or_file.ends_with(".yml"))
    return fs::path(name_or_file).is_absolute() || from.empty() ? name_or_file : (from / name_or_file).string();
  const fs::path file = fs::path(data_directory("platforms")) / (name_or_file + ".yaml");
  if (fs::exists(file))
    return file.string();
  throw InputError(fmt::format("There is no platform '{}'. {}", name_or_file, allowed_sentence(name_or_file, platform_names())));
}

YamlNode load_with_base(const std::string& file, std::vector<std::string> chain)
{
  const auto yaml  = YamlNode::load(file);
  const auto canon = fs::weakly_canonical(file).string();
  if (std::find(chain.begin(), chain.end(), canon) != chain.end())
    yaml.fail("this platform extends itself");
  chain.push_back(canon);
  const auto version = yaml["schema_version"];
  if (version.quantity(Unit::count) != 1)
    version.fail(fmt::format("schema version {} is unknown; this program reads version 1", version.text()));
  const auto base = yaml.find("extends");
  if (!base)
    return yaml;
  std::string base_file;
  try {
    base_file = platform_file(base->text(), fs::path(file).parent_path());
  } catch (const InputError& error) {
    base->fail(error.what());
  }
  return yaml.over(load_with_base(base_file, chain), "law");
}

class Reader {
public:
  Reader(const YamlNode& yaml, Platform& platform) : yaml_(yaml), platform_(platform) {}

  void read()
  {
    yaml_.allow_only({"schema_version", "extends", "description", "source", "clients", "stations", "limits", "locks", "stalls", "failures",
                      "background", "caches", "buffers", "pools", "demands", "network", "operations", "calibration", "fitted"});
    platform_.description = yaml_.text_or("description", "");
    platform_.source      = yaml_.text_or("source", "");
    if (const auto clients = yaml_.find("clients")) {
      platform_.speed_sigma     = clients->quantity_or("speed_sigma", Unit::factor, 0, 0, 3);
      platform_.think_overshoot = clients->quantity_or("think_overshoot", Unit::seconds, 0, 0, longest_seconds);
      platform_.wake_slowdown   = clients->quantity_or("wake_slowdown", Unit::factor, 1, 0.1, 100);
      clients->finish();
    }
    read_stations();
    if (const auto demands = yaml_.find("demands"))
      for (const auto& [name, law] : demands->entries())
        demands_[name] = read_law(law);
    read_limits_and_locks();
    read_stalls();
    read_failures();
    read_background();
    read_network();
    read_caches();
    read_buffers();
    read_pools();
    read_operations();
  }

private:
  template <class Specs> static std::vector<std::string> names_of(const Specs& specs)
  {
    std::vector<std::string> names;
    for (const auto& spec : specs)
      names.push_back(spec.name);
    return names;
  }

  template <class Specs> static uint32_t find_in(const Specs& specs, const YamlNode& reference, const char* what)
  {
    const auto name = reference.text();
    for (uint32_t i = 0; i < specs.size(); ++i)
      if (specs[i].name == name)
        return i;
    reference.fail(fmt::format("there is no {} '{}'. {}", what, name, allowed_sentence(name, names_of(specs))));
  }

  static Per read_per(const YamlNode& owner, Per fallback, const std::vector<std::string>& allowed)
  {
    const auto per = owner.find("per");
    if (!per)
      return fallback;
    const auto text = per->text();
    if (std::find(allowed.begin(), allowed.end(), text) == allowed.end())
      per->fail(fmt::format("'{}' can't own this. {}", text, allowed_sentence(text, allowed)));
    return text == "system" ? Per::system : text == "node" ? Per::node : text == "object" ? Per::object : Per::dataset;
  }

  void read_stations()
  {
    for (const auto& [name, yaml] : yaml_["stations"].entries()) {
      StationSpec station;
      station.name    = name;
      station.per     = read_per(yaml, Per::system, {"system", "node"});
      station.count   = static_cast<uint32_t>(yaml.quantity_or("count", Unit::count, 1, 1, 1e6));
      station.servers = static_cast<uint32_t>(yaml.quantity_or("servers", Unit::count, 1, 1, most));
      if (const auto spread = yaml.find("spread")) {
        static const std::vector<std::string> known{spread_names.begin(), spread_names.end()};
        const auto found = std::find(known.begin(), known.end(), spread->text());
        if (found == known.end())
          spread->fail(fmt::format("'{}' can't be spread by. {}", spread->text(), allowed_sentence(spread->text(), known)));
        station.spread = static_cast<Spread>(found - known.begin());
      }
      station.stripe_size  = static_cast<uint64_t>(yaml.quantity_or("stripe_size", Unit::bytes, 1 << 20, 1, 1e18));
      station.stripe_count = static_cast<uint32_t>(yaml.quantity_or("stripe_count", Unit::count, station.count, 1, station.count));
      if (const auto discipline = yaml.find("discipline")) {
        static const std::vector<std::string> known{"fcfs", "ps", "timeslice"};
        const auto found = std::find(known.begin(), known.end(), discipline->text());
        if (found == known.end())
          discipline->fail(fmt::format("the discipline '{}' is unknown. {}", discipline->text(), allowed_sentence(discipline->text(), known)));
        station.discipline = static_cast<Discipline>(found - known.begin());
      }
      station.quantum = yaml.quantity_or("quantum", Unit::seconds, 3e-3, 1e-9, longest_seconds);
      if (station.discipline != Discipline::timeslice)
        station.quantum = 0;
      if (const auto wakeup = yaml.find("wakeup")) {
        const auto text = wakeup->text();
        if (text != "preempts" && text != "queues")
          wakeup->fail(fmt::format("a wakeup either 'preempts' or 'queues', not '{}'", text));
        station.wakeup_preempts = text == "preempts";
      }
      station.rating     = yaml.quantity_or("speed", Unit::factor, 1, 1e-6, 1e6);
      if (const auto sockets = yaml.find("sockets")) {
        const auto on_one   = static_cast<uint32_t>((*sockets)["servers"].quantity(Unit::count, 1, most));
        const double remote = (*sockets)["remote"].quantity(Unit::factor, 0, 1e3);
        const uint32_t used = (station.servers - 1) / on_one + 1;
        station.rating /= 1 + remote * (1 - 1.0 / used);
        sockets->finish();
      }
      station.crowding   = yaml.quantity_or("crowding", Unit::factor, 0, 0, 1e3);
      station.contention = yaml.quantity_or("contention", Unit::factor, 0, 0, 1e3);
      station.coherency  = yaml.quantity_or("coherency", Unit::factor, 0, 0, 1e3);
      yaml.finish();
      platform_.stations.push_back(station);
    }
    if (platform_.stations.empty())
      yaml_["stations"].fail("a platform needs at least one station");
  }

  void read_limits_and_locks()
  {
    if (const auto limits = yaml_.find("limits"))
      for (const auto& [name, yaml] : limits->entries()) {
        platform_.limits.push_back({name, static_cast<uint32_t>(yaml["slots"].quantity(Unit::count, 1, most)),
                                    read_per(yaml, Per::node, {"system", "node"})});
        yaml.finish();
      }
    if (const auto locks = yaml_.find("locks"))
      for (const auto& [name, yaml] : locks->entries()) {
        LockSpec lock{name, read_per(yaml, Per::dataset, {"system", "node", "dataset", "object"})};
        if (const auto hand_over = yaml.find("hand_over")) {
          lock.hand_over = read_demand(*hand_over);
          if (lock.per == Per::node)
            hand_over->fail("a node's own lock is never handed over to another node");
        }
        read_extent(yaml, lock);
        platform_.locks.push_back(lock);
        yaml.finish();
      }
  }

  /// What of an object a node keeps when not all of it.
  void read_extent(const YamlNode& yaml, LockSpec& lock) const
  {
    const auto extent = yaml.find("extent");
    if (!extent) {
      for (const char* key : {"grow", "station"})
        if (yaml.has(key))
          yaml[key].fail(fmt::format("'{}' is of locks on ranges of an object; say in which units with 'extent'", key));
      return;
    }
    if (lock.per != Per::object)
      extent->fail(fmt::format("only objects have ranges; let the lock '{}' be per: object, not per: {}", lock.name, name_of(lock.per)));
    if (!lock.hand_over)
      extent->fail(fmt::format("ranges are of locks that nodes keep; give the lock '{}' a hand_over, of 0us if it takes no time", lock.name));
    lock.extent = static_cast<uint64_t>(extent->quantity(Unit::bytes, 1, 1e18));
    if (const auto grow = yaml.find("grow"))
      lock.grow = static_cast<uint64_t>(grow->quantity(Unit::bytes, 0, 1e18));
    if (const auto station = yaml.find("station")) {
      lock.station     = static_cast<int32_t>(find_in(platform_.stations, *station, "station"));
      const auto& spec = platform_.stations[static_cast<size_t>(lock.station)];
      if (spec.per == Per::node || spec.spread != Spread::stripe)
        station->fail(fmt::format("servers have the locks of what lies with them only where objects are striped over them; '{}' {}", spec.name,
                                  spec.per == Per::node ? "is of the client nodes" : fmt::format("is spread by {}", spread_names[static_cast<size_t>(spec.spread)])));
    }
  }

  void read_stalls()
  {
    const auto stalls = yaml_.find("stalls");
    if (!stalls)
      return;
    for (const auto& [name, yaml] : stalls->entries()) {
      StallSpec stall;
      stall.name    = name;
      stall.station = find_in(platform_.stations, yaml["station"], "station");
      stall.every   = yaml["every"].quantity(Unit::seconds, 1e-6, longest_seconds);
      stall.length  = yaml["length"].quantity(Unit::seconds, 0, longest_seconds);
      stall.sigma   = yaml.quantity_or("sigma", Unit::factor, 0, 0, 3);
      if (stall.length >= stall.every)
        yaml["length"].fail(fmt::format("a stall of {} every {} would never end", yaml["length"].text(), yaml["every"].text()));
      for (const auto& operation : yaml["operations"].items())
        stall.operations[static_cast<size_t>(read_op(operation))] = true;
      yaml.finish();
      platform_.stalls.push_back(stall);
    }
  }

  void read_failures()
  {
    const auto failures = yaml_.find("failures");
    if (!failures)
      return;
    for (const auto& [name, yaml] : failures->entries()) {
      FailureSpec failure;
      failure.name        = name;
      failure.station     = find_in(platform_.stations, yaml["station"], "station");
      const auto& station = platform_.stations[failure.station];
      if (station.per == Per::node)
        yaml["station"].fail("stations of the system fail, not those of client nodes, which would take their clients with them");
      if (station.discipline == Discipline::timeslice)
        yaml["station"].fail(fmt::format("the station '{}' slices time; only stations that serve fcfs or ps can fail", station.name));
      if (station.count > 1 || yaml.has("instance"))
        failure.instance = read_instance(yaml["instance"], station);
      for (const auto& other : platform_.failures)
        if (other.station == failure.station && other.instance == failure.instance)
          yaml.fail(fmt::format("the instance {} of the station '{}' fails in '{}' already; 'every' makes it fail again", failure.instance, station.name, other.name));
      failure.at     = yaml["at"].quantity(Unit::seconds, 0, longest_seconds);
      failure.length = yaml["length"].quantity(Unit::seconds, 1e-6, longest_seconds);
      failure.sigma  = yaml.quantity_or("sigma", Unit::factor, 0, 0, 3);
      if (const auto every = yaml.find("every")) {
        failure.every = every->quantity(Unit::seconds, 1e-6, longest_seconds);
        if (failure.length >= failure.every)
          yaml["length"].fail(fmt::format("a failure of {} every {} would never end", yaml["length"].text(), every->text()));
      }
      if (const auto to = yaml.find("to")) {
        failure.to = read_instance(*to, station);
        if (*failure.to == failure.instance)
          to->fail("an instance can't take over its own requests; name another one");
        failure.takeover = yaml.quantity_or("takeover", Unit::seconds, 0, 0, longest_seconds);
        if (failure.takeover >= failure.length)
          yaml["takeover"].fail(fmt::format("the instance is back after {}, before another one has taken over", yaml["length"].text()));
      } else if (const auto takeover = yaml.find("takeover")) {
        takeover->fail("nobody takes over; name an instance with 'to'");
      }
      failure.timeout = yaml.quantity_or("timeout", Unit::seconds, 0, 0, longest_seconds);
      yaml.finish();
      platform_.failures.push_back(failure);
    }
  }

  static uint32_t read_instance(const YamlNode& yaml, const StationSpec& station)
  {
    const double number = yaml.quantity(Unit::count, 0, most);
    if (number >= station.count)
      yaml.fail(station.count == 1 ? fmt::format("the station '{}' has one instance, which is number 0", station.name)
                                   : fmt::format("the station '{}' has the instances 0 to {}, not {}", station.name, station.count - 1, yaml.text()));
    return static_cast<uint32_t>(number);
  }

  void read_background()
  {
    const auto background = yaml_.find("background");
    if (!background)
      return;
    for (const auto& [name, yaml] : background->entries()) {
      BackgroundSpec work;
      work.name    = name;
      work.station = find_in(platform_.stations, yaml["station"], "station");
      if (platform_.stations[work.station].per == Per::node)
        yaml["station"].fail("background work arrives at stations of the system, not of client nodes");
      work.demand  = read_demand(yaml["demand"]);
      if (const auto share = yaml.find("share")) {
        if (yaml.find("rate"))
          share->fail("work of others has a rate or a share of the station's time, not both");
        const auto& station = platform_.stations[work.station];
        if (!(work.demand->mean() > 0))
          share->fail("a share of the station's time can only be of a demand that is not always 0");
        work.rate = share->quantity(Unit::factor, 0, 0.99) * station.servers * station.count * station.rating / work.demand->mean();
      } else {
        work.rate = yaml["rate"].quantity(Unit::rate, 0, 1e9);
      }
      yaml.finish();
      platform_.background.push_back(work);
    }
  }

  /// Each instance of a station, or a node (the default) or the system, has one of these.
  template <class Spec> void read_place(const YamlNode& yaml, Spec& spec, const char* what) const
  {
    spec.per = read_per(yaml, Per::node, {"system", "node"});
    if (const auto station = yaml.find("station")) {
      if (yaml.find("per"))
        station->fail(fmt::format("a {} is of a node or the system (per) or of each instance of a station, not both", what));
      spec.station = static_cast<int32_t>(find_in(platform_.stations, *station, "station"));
      if (platform_.stations[static_cast<size_t>(spec.station)].per == Per::node)
        station->fail("a station of the client nodes has one instance each; write per: node instead");
    }
  }

  void read_caches()
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
        (capacity ? *objects : yaml).fail(fmt::format("the cache '{}' holds bytes (capacity, in pages) or so many objects (objects): give one of the two", name));
      if (objects) {
        if (const auto page = yaml.find("page"))
          page->fail("what is counted in objects has no pages; give a capacity in bytes instead of objects");
        cache.capacity = static_cast<uint64_t>(objects->quantity(Unit::count, 1, 1e15));
      } else {
        cache.capacity = static_cast<uint64_t>(capacity->quantity(Unit::bytes, 1, 1e18));
        cache.page     = static_cast<uint64_t>(yaml["page"].quantity(Unit::bytes, 1, 1 << 30));
        if (cache.page > cache.capacity)
          yaml["page"].fail(fmt::format("the cache '{}' has no room for a page of {}; its capacity is {}", name, yaml["page"].text(), capacity->text()));
      }
      yaml.finish();
      platform_.caches.push_back(cache);
    }
  }

  void read_buffers()
  {
    const auto buffers = yaml_.find("buffers");
    if (!buffers)
      return;
    for (const auto& [name, yaml] : buffers->entries()) {
      BufferSpec buffer;
      buffer.name = name;
      read_place(yaml, buffer, "buffer");
      buffer.capacity = static_cast<uint64_t>(yaml["capacity"].quantity(Unit::bytes, 1, 1e18));
      buffer.unit     = static_cast<uint64_t>(yaml.quantity_or("unit", Unit::bytes, 0, 1, 1e18));
      if (buffer.unit > buffer.capacity)
        yaml["unit"].fail(fmt::format("the buffer '{}' has no room for a unit of {}; its capacity is {}", name, yaml["unit"].text(), yaml["capacity"].text()));
      buffer.linger = yaml.quantity_or("linger", Unit::seconds, 0, 0, longest_seconds);
      if (buffer.linger > 0 && buffer.unit == 0)
        yaml["linger"].fail("only what can be part of a larger piece waits for more; say how large with 'unit'");
      buffer.resume  = static_cast<uint64_t>(yaml.quantity_or("resume", Unit::factor, 1, 0, 1) * static_cast<double>(buffer.capacity));
      buffer.at_once = static_cast<uint32_t>(yaml.quantity_or("at_once", Unit::count, 1, 1, 1e6));
      const auto steps = yaml["drain"];
      drained_          = &buffer;
      buffer.drain_json = read_steps(steps, buffer.drain, {});
      drained_          = nullptr;
      if (buffer.drain.empty())
        steps.fail("a buffer that drains through no step is never full; give it at least one");
      buffer.drain.emplace_back().kind = Step::Kind::drained;
      yaml.finish();
      platform_.buffers.push_back(std::move(buffer));
    }
  }

  /// Pieces of a buffer that is no node's have no node, and none is an operation.
  void check_drain_step(const YamlNode& item, const Step& step) const
  {
    check_refill_step(item, step);
    if (drained_ == nullptr)
      return;
    const std::string nodeless = fmt::format("the buffer '{}' is no node's, and so what it drains can't ", drained_->name);
    if (step.times != Times::once)
      item["per"].fail("what a buffer drains has no entries and no blocks; its demand is per operation, which is per piece");
    if (step.kind == Step::Kind::transfer) {
      if (!step.to_server)
        item["transfer"].fail("what a buffer drains is written, not read");
      if (!drained_->of_nodes() && drained_->station < 0)
        item["transfer"].fail("the whole system's buffer is at no place that a transfer could begin at; let it be of a node or a station");
      if (drained_->station == static_cast<int32_t>(step.target))
        item["station"].fail(fmt::format("the buffer '{}' is at that station already", drained_->name));
    }
    if (drained_->of_nodes())
      return;
    if (step.kind == Step::Kind::visit && platform_.stations[step.target].per == Per::node)
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

  /// Who waits for a buffer must not hold what the buffer needs to drain, nor what a pool needs to fill.
  void check_not_held(const YamlNode& reference, const std::vector<Step>& steps, const std::string& needs, const std::vector<uint32_t>& held) const
  {
    for (const auto& step : steps)
      if (step.kind == Step::Kind::seize && std::find(held.begin(), held.end(), step.target) != held.end())
        reference.fail(fmt::format("the {}, which is held here; a request would wait for itself", fmt::format(fmt::runtime(needs), platform_.limits[step.target].name)));
  }
  void check_not_held(const YamlNode& reference, const BufferSpec& buffer, const std::vector<uint32_t>& held) const
  {
    check_not_held(reference, buffer.drain, fmt::format("buffer '{}' needs the limit '{{}}' to drain", buffer.name), held);
  }

  void read_pools()
  {
    const auto pools = yaml_.find("pools");
    if (!pools)
      return;
    for (const auto& [name, yaml] : pools->entries()) {
      PoolSpec pool;
      pool.name = name;
      read_place(yaml, pool, "pool");
      pool.size  = static_cast<uint32_t>(yaml["size"].quantity(Unit::count, 1, 1e9));
      pool.batch = static_cast<uint32_t>(yaml["batch"].quantity(Unit::count, 1, 1e9));
      if (pool.batch > pool.size)
        yaml["batch"].fail(fmt::format("the pool '{}' has no room for a batch of {}; its size is {}", name, yaml["batch"].text(), yaml["size"].text()));
      pool.low = static_cast<uint32_t>(yaml.quantity_or("low", Unit::count, pool.size - pool.batch, 0, 1e9));
      if (pool.low > pool.size - pool.batch)
        yaml["low"].fail(fmt::format("when {} are left a batch of {} has no room in the pool '{}', whose size is {}; the most is {}", yaml["low"].text(),
                                     yaml["batch"].text(), name, yaml["size"].text(), pool.size - pool.batch));
      pool.at_once     = static_cast<uint32_t>(yaml.quantity_or("at_once", Unit::count, 1, 1, 1e6));
      const auto steps = yaml["refill"];
      filled_          = &pool;
      pool.refill_json = read_steps(steps, pool.refill, {});
      filled_          = nullptr;
      if (pool.refill.empty())
        steps.fail("a pool that is filled through no step is never empty; give it at least one");
      pool.refill.emplace_back().kind = Step::Kind::drained;
      yaml.finish();
      platform_.pools.push_back(std::move(pool));
    }
  }

  /// A batch has no bytes and is of no object; of a pool that is no node's it has no node either.
  void check_refill_step(const YamlNode& item, const Step& step) const
  {
    if (filled_ == nullptr)
      return;
    switch (step.kind) {
      case Step::Kind::visit:
        if (step.times != Times::once)
          item["per"].fail("what fills a pool has no entries and no blocks; its demand is per operation, which is per batch");
        if (step.stripes == Step::spanned)
          item["stripes"].fail("what fills a pool has no bytes that could span stripes; give a number of them");
        if (step.bandwidth > 0)
          item["bandwidth"].fail("what fills a pool has no bytes; give the time of a batch as its demand");
        if (step.lock >= 0)
          if (const auto& lock = platform_.locks[static_cast<size_t>(step.lock)]; lock.per != Per::system || lock.hand_over)
            item["lock"].fail("what fills a pool is of no dataset and of no object; it can take locks that are per: system and have no hand_over");
        break;
      case Step::Kind::delay:
      case Step::Kind::seize:
        break;
      default:
        for (const char* key : {"transfer", "buffer", "flush", "take", "cache", "forget"})
          if (item.has(key))
            item[key].fail("a pool is filled by delays, visits to stations and slots of limits");
    }
    if (filled_->of_nodes())
      return;
    const std::string nodeless = fmt::format("the pool '{}' is no node's, and so what fills it can't ", filled_->name);
    if (step.kind == Step::Kind::visit && platform_.stations[step.target].per == Per::node)
      item["station"].fail(nodeless + "visit a station of the client nodes");
    if (step.kind == Step::Kind::seize && platform_.limits[step.target].per == Per::node)
      item["limit"].fail(nodeless + "hold a slot of one (a limit is per node unless it says per: system)");
  }

  void read_network()
  {
    const auto network = yaml_.find("network");
    if (!network)
      return;
    auto& spec              = platform_.network;
    spec.latency            = network->quantity_or("latency", Unit::seconds, 0, 0, 10);
    spec.node_bandwidth     = network->quantity_or("node_bandwidth", Unit::bandwidth, 0, 1, 1e15);
    spec.server_bandwidth   = network->quantity_or("server_bandwidth", Unit::bandwidth, 0, 1, 1e15);
    spec.backbone_bandwidth = network->quantity_or("backbone_bandwidth", Unit::bandwidth, 0, 1, 1e18);
    spec.flow_threshold     = network->quantity_or("flow_threshold", Unit::bytes, 1 << 20, 1, 1e18);
    network->finish();
  }

  static OpKind read_op(const YamlNode& yaml)
  {
    if (const auto kind = op_named(yaml.text()); kind && *kind != OpKind::phase)
      return *kind;
    yaml.fail(unknown_op(yaml.text()));
  }

  static std::string unknown_op(const std::string& name)
  {
    std::vector<std::string> known(op_names.begin() + 1, op_names.end());
    known.push_back("wake");
    return fmt::format("there is no operation '{}'. {}", name, allowed_sentence(name, known));
  }

  /// A named demand, or a law written in place.
  LawPointer read_demand(const YamlNode& yaml)
  {
    if (!yaml.is_scalar() || demands_.empty() || (!yaml.text().empty() && std::isdigit(static_cast<unsigned char>(yaml.text()[0]))))
      return read_law(yaml);
    if (const auto found = demands_.find(yaml.text()); found != demands_.end())
      return found->second;
    std::vector<std::string> names;
    for (const auto& [name, law] : demands_)
      names.push_back(name);
    yaml.fail(fmt::format("'{}' is neither a time nor a named demand. {}", yaml.text(), allowed_sentence(yaml.text(), names)));
  }

  static void set_law(Step& step, LawPointer law)
  {
    step.constant = law->variance() == 0 ? law->mean() : -1;
    step.law      = std::move(law);
  }

  nlohmann::ordered_json demand_json(const YamlNode& yaml, const LawPointer& law) const
  {
    auto json = law_to_json(*law, true);
    if (yaml.is_scalar() && demands_.contains(yaml.text()))
      json["name"] = yaml.text();
    return json;
  }

  nlohmann::ordered_json read_steps(const YamlNode& list, std::vector<Step>& out, std::vector<uint32_t> held)
  {
    auto json = nlohmann::ordered_json::array();
    for (const auto& item : list.items()) {
      Step step;
      if (item.has("delay")) {
        step.kind = Step::Kind::delay;
        set_law(step, read_demand(item["delay"]));
        out.push_back(step);
        json.push_back({{"delay", demand_json(item["delay"], step.law)}});
      } else if (item.has("limit")) {
        step.kind   = Step::Kind::seize;
        step.target = find_in(platform_.limits, item["limit"], "limit");
        if (std::find(held.begin(), held.end(), step.target) != held.end())
          item["limit"].fail(fmt::format("the limit '{}' is already held here; a request would wait for itself", item["limit"].text()));
        check_drain_step(item, step);
        out.push_back(step);
        held.push_back(step.target);
        auto inner = read_steps(item["steps"], out, held);
        held.pop_back();
        step.kind = Step::Kind::release;
        out.push_back(step);
        json.push_back({{"limit", item["limit"].text()}, {"steps", inner}});
      } else if (const auto transfer = item.find("transfer")) {
        step.kind = Step::Kind::transfer;
        if (transfer->text() != "write" && transfer->text() != "read")
          transfer->fail(fmt::format("a transfer is a 'write' to a server or a 'read' from one, not '{}'", transfer->text()));
        step.to_server = transfer->text() == "write";
        step.target    = find_in(platform_.stations, item["station"], "station");
        if (platform_.stations[step.target].per == Per::node)
          item["station"].fail("a transfer goes to a station of the system, not of a client node");
        nlohmann::ordered_json moved{{"transfer", transfer->text()}, {"station", item["station"].text()}};
        if (const auto stripes = item.find("stripes")) {
          if (stripes->text() != "spanned")
            stripes->fail(fmt::format("the stripes of a transfer are 'spanned', those that its bytes lie in, not '{}'", stripes->text()));
          read_spanned(*stripes, step);
          moved["stripes"] = "spanned";
        }
        check_drain_step(item, step);
        out.push_back(step);
        json.push_back(moved);
      } else if (const auto buffer = item.find("buffer")) {
        step.kind   = Step::Kind::enter;
        step.target = find_in(platform_.buffers, *buffer, drained_ == nullptr ? "buffer" : "earlier buffer");
        if (filled_ == nullptr && drained_ == nullptr && op_ != OpKind::create && op_ != OpKind::append && op_ != OpKind::pwrite)
          buffer->fail(fmt::format("{} writes nothing that a buffer could take. Allowed: create, append, pwrite", name_of(op_)));
        check_not_held(*buffer, platform_.buffers[step.target], held);
        check_drain_step(item, step);
        out.push_back(step);
        json.push_back({{"buffer", buffer->text()}});
      } else if (const auto flushed = item.find("flush")) {
        if (drained_ != nullptr)
          flushed->fail("what a buffer drains waits for no other buffer to drain");
        step.kind   = Step::Kind::flush;
        step.target = find_in(platform_.buffers, *flushed, "buffer");
        check_refill_step(item, step);
        auto& spec  = platform_.buffers[step.target];
        check_not_held(*flushed, spec, held);
        if (const auto of = item.find("of")) {
          static const std::vector<std::string> known{flush_names.begin(), flush_names.end()};
          const auto found = std::find(known.begin(), known.end(), of->text());
          if (found == known.end())
            of->fail(fmt::format("a buffer can't be flushed of '{}'. {}", of->text(), allowed_sentence(of->text(), known)));
          step.flush = static_cast<Flush>(found - known.begin());
        }
        spec.flushed_by_object = spec.flushed_by_object || step.flush != Flush::all;
        out.push_back(step);
        json.push_back({{"flush", flushed->text()}, {"of", flush_names[static_cast<size_t>(step.flush)]}});
      } else if (const auto taken = item.find("take")) {
        step.kind   = Step::Kind::take;
        step.target = find_in(platform_.pools, *taken, "pool");
        if (drained_ != nullptr)
          taken->fail("what a buffer drains takes nothing from a pool; an operation does");
        check_refill_step(item, step);
        if (op_ == OpKind::phase)
          taken->fail("waking up makes nothing that a pool could have");
        const auto& pool = platform_.pools[step.target];
        check_not_held(*taken, pool.refill, fmt::format("pool '{}' needs the limit '{{}}' to fill", pool.name), held);
        out.push_back(step);
        json.push_back({{"take", taken->text()}});
      } else if (const auto cache = item.find("cache")) {
        json.push_back(read_look(item, *cache, out, held));
      } else if (const auto forgotten = item.find("forget")) {
        step.kind    = Step::Kind::look;
        step.forgets = true;
        step.target  = find_in(platform_.caches, *forgotten, "cache");
        check_has_object(*forgotten);
        check_drain_step(item, step);
        out.push_back(step);
        json.push_back({{"forget", forgotten->text()}});
      } else {
        step.kind       = Step::Kind::visit;
        step.target     = find_in(platform_.stations, item["station"], "station");
        set_law(step, read_demand(item["demand"]));
        step.bandwidth  = item.quantity_or("bandwidth", Unit::bandwidth, 0, 1, 1e15);
        step.lock_share = item.quantity_or("lock_share", Unit::factor, item.has("lock") ? 1 : 0, 0, 1);
        nlohmann::ordered_json visit{{"station", item["station"].text()}, {"demand", demand_json(item["demand"], step.law)}};
        if (const auto lock = item.find("lock")) {
          step.lock          = static_cast<int32_t>(find_in(platform_.locks, *lock, "lock"));
          visit["lock"]      = lock->text();
          visit["lock_share"] = step.lock_share;
          if (const auto mode = item.find("lock_mode")) {
            const auto text = mode->text();
            if (text != "shared" && text != "exclusive")
              mode->fail(fmt::format("a lock is 'exclusive' or 'shared', not '{}'", text));
            step.lock_shared = text == "shared";
            if (step.lock_shared && !platform_.locks[static_cast<size_t>(step.lock)].hand_over)
              mode->fail(fmt::format("only a lock that nodes keep is shared; '{}' has no hand_over", lock->text()));
            visit["lock_mode"] = text;
          }
          if (platform_.stations[step.target].discipline != Discipline::fcfs)
            lock->fail("only a first-come-first-served station can take a lock");
        }
        visit["bandwidth"] = step.bandwidth;
        if (const auto stripes = item.find("stripes")) {
          const auto& spec = platform_.stations[step.target];
          if (stripes->text() == "spanned")
            read_spanned(*stripes, step);
          else
            step.stripes = static_cast<uint32_t>(stripes->quantity(Unit::count, 1, most_parts));
          if (spec.per != Per::system || spec.discipline == Discipline::timeslice || step.lock >= 0)
            stripes->fail("stripes go to a station of the system that serves fcfs or ps, and take no lock");
          if (step.stripes > spec.count)
            stripes->fail(fmt::format("{} stripes need as many instances; the station '{}' has {}", step.stripes, spec.name, spec.count));
          if (step.stripes == Step::spanned)
            visit["stripes"] = "spanned";
          else
            visit["stripes"] = step.stripes;
        }
        if (const auto per = item.find("per")) {
          static const std::vector<std::string> known{times_names.begin(), times_names.end()};
          const auto found = std::find(known.begin(), known.end(), per->text());
          if (found == known.end())
            per->fail(fmt::format("a demand can't be per '{}'. {}", per->text(), allowed_sentence(per->text(), known)));
          step.times   = static_cast<Times>(found - known.begin());
          visit["per"] = per->text();
          if (step.times == Times::entry && step.stripes == Step::spanned)
            per->fail("a listing lies in no stripes");
        }
        check_drain_step(item, step);
        out.push_back(step);
        if (const auto recall = item.find("recall"))
          visit["recall"] = read_recall(*recall, step, out, held);
        json.push_back(visit);
      }
      item.finish();
    }
    return json;
  }

  /// Steps for those who had to call the lock of the visit back.
  nlohmann::ordered_json read_recall(const YamlNode& yaml, const Step& visit, std::vector<Step>& out, const std::vector<uint32_t>& held)
  {
    if (visit.lock < 0 || visit.lock_share == 0 || !platform_.locks[static_cast<size_t>(visit.lock)].hand_over)
      yaml.fail("only a lock that nodes keep (one with a hand_over) and that this step takes is called back");
    const size_t at = out.size();
    Step branch;
    branch.kind = Step::Kind::recalled;
    out.push_back(branch);
    auto json = read_steps(yaml, out, held);
    if (out.size() - at > most_steps)
      yaml.fail(fmt::format("a call-back may have {} steps", most_steps - 1));
    out[at].jump = static_cast<uint16_t>(out.size() - at);
    return json;
  }

  /// A look at a cache, the steps of a hit, a jump over the others, and the steps of a miss.
  nlohmann::ordered_json read_look(const YamlNode& item, const YamlNode& cache, std::vector<Step>& out, const std::vector<uint32_t>& held)
  {
    Step look;
    look.kind   = Step::Kind::look;
    look.target = find_in(platform_.caches, cache, "cache");
    check_has_object(cache);
    if (platform_.caches[look.target].page > 0 && drained_ == nullptr && filled_ == nullptr && !moves_bytes(op_))
      cache.fail(fmt::format("{} moves no bytes that the cache '{}' could have; let it hold objects. Allowed: create, read, append, pwrite, pread", name_of(op_), cache.text()));
    check_drain_step(item, look);
    nlohmann::ordered_json json{{"cache", cache.text()}};
    std::vector<Step> hit;
    std::vector<Step> miss;
    if (const auto steps = item.find("hit"))
      json["hit"] = read_steps(*steps, hit, held);
    if (const auto steps = item.find("miss"))
      json["miss"] = read_steps(*steps, miss, held);
    if (hit.size() + miss.size() > most_steps)
      cache.fail(fmt::format("a hit and a miss may have {} steps together", most_steps));
    if (!miss.empty()) {
      look.jump = static_cast<uint16_t>(hit.size() + 2);
      Step jump;
      jump.kind = Step::Kind::jump;
      jump.jump = static_cast<uint16_t>(miss.size() + 1);
      hit.push_back(jump);
    } else {
      look.jump = static_cast<uint16_t>(hit.size() + 1);
    }
    out.push_back(look);
    out.insert(out.end(), hit.begin(), hit.end());
    out.insert(out.end(), miss.begin(), miss.end());
    return json;
  }

  static bool moves_bytes(OpKind kind)
  {
    Op op;
    op.kind = kind;
    op.size = 1;
    return op.bytes() > 0;
  }

  void check_has_object(const YamlNode& cache) const
  {
    if (drained_ == nullptr && filled_ == nullptr && op_ == OpKind::phase)
      cache.fail("waking up is of no object that a cache could have");
  }

  /// Parts where an access has bytes, whatever it is.
  void read_spanned(const YamlNode& yaml, Step& step) const
  {
    const auto& spec = platform_.stations[step.target];
    if (spec.spread != Spread::stripe)
      yaml.fail(fmt::format("an access spans stripes only at a station with 'spread: stripe'; '{}' is spread by {}", spec.name, spread_names[static_cast<size_t>(spec.spread)]));
    if (spec.stripe_count > most_parts)
      yaml.fail(fmt::format("an access may have at most {} parts; the station '{}' has a stripe_count of {}", most_parts, spec.name, spec.stripe_count));
    step.stripes = Step::spanned;
  }

  void read_operations()
  {
    for (const auto& [name, yaml] : yaml_["operations"].entries()) {
      const auto kind = name == "wake" ? OpKind::phase : op_named(name);
      if (!kind || name == "phase")
        yaml.fail(unknown_op(name));
      op_              = *kind;
      Route& route     = platform_.routes[static_cast<size_t>(*kind)];
      route.served     = true;
      auto json        = nlohmann::ordered_json::array();
      const auto parts = parts_of(*kind);
      if (yaml.is_sequence()) {
        if (!parts.empty())
          yaml.fail(fmt::format("the operation '{}' has the parts {}, each with steps of its own", name, part_list(parts)));
        json.push_back({{"part", ""}, {"steps", read_steps(yaml, route.steps, {})}});
      } else {
        if (parts.empty())
          yaml.fail(fmt::format("the operation '{}' has no parts; write its steps as a list", name));
        yaml.allow_only({parts.begin(), parts.end()});
        for (const auto part : parts) {
          const auto steps = yaml.find(std::string(part));
          json.push_back({{"part", part}, {"steps", steps ? read_steps(*steps, route.steps, {}) : nlohmann::ordered_json::array()}});
          add_marker(route, Step::Kind::end_part);
        }
      }
      add_marker(route, Step::Kind::end);
      platform_.routes_json[name] = json;
    }
    lend_route(OpKind::mkdir, OpKind::create);
    lend_route(OpKind::rmdir, OpKind::unlink);
  }

  static void add_marker(Route& route, Step::Kind kind)
  {
    Step step;
    step.kind = kind;
    route.steps.push_back(step);
  }

  static std::string part_list(std::span<const std::string_view> parts)
  {
    std::string list;
    for (const auto part : parts)
      list += (list.empty() ? "" : ", ") + std::string(part);
    return list;
  }

  /// Making and removing a dataset costs what its object operation costs, less the data.
  void lend_route(OpKind to, OpKind from)
  {
    Route& route       = platform_.routes[static_cast<size_t>(to)];
    const Route& model = platform_.routes[static_cast<size_t>(from)];
    if (route.served || !model.served)
      return;
    route.served = true;
    const bool jumps = std::any_of(model.steps.begin(), model.steps.end(), [](const Step& step) { return step.kind == Step::Kind::look || step.kind == Step::Kind::recalled; });
    for (const auto& step : model.steps)
      if (step.kind != Step::Kind::transfer && step.kind != Step::Kind::enter && step.kind != Step::Kind::flush && step.kind != Step::Kind::take && step.kind != Step::Kind::end_part &&
          !(step.kind == Step::Kind::look && step.forgets && platform_.caches[step.target].page > 0))
        route.steps.push_back(step);
      else if (jumps) // to the next step, so that others lead where they did
        add_marker(route, Step::Kind::jump);
  }

  const YamlNode& yaml_;
  Platform& platform_;
  std::map<std::string, LawPointer> demands_;
  OpKind op_                 = OpKind::phase; ///< whose route is read
  const BufferSpec* drained_ = nullptr;       ///< whose drain is read
  const PoolSpec* filled_    = nullptr;       ///< whose refill is read
};

} // namespace

Platform open_platform(const std::string& name_or_file)
{
  Platform platform;
  platform.file = platform_file(name_or_file, {});
  platform.name = fs::path(platform.file).stem().string();
  const auto yaml = load_with_base(platform.file, {});
  Reader(yaml, platform).read();
  return platform;
}

std::vector<PlatformEntry> platforms()
{
  std::vector<PlatformEntry> entries;
  for (const auto& file : fs::directory_iterator(data_directory("platforms")))
    if (file.path().extension() == ".yaml") {
      const auto yaml = YamlNode::load(file.path().string());
      entries.push_back({file.path().stem().string(), yaml.text_or("description", ""), yaml.text_or("extends", ""),
                         yaml.text_or("source", ""), file.path().string()});
    }
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return entries;
}

nlohmann::ordered_json Platform::to_json(bool quantiles) const
{
  static constexpr const char* disciplines[] = {"fcfs", "ps", "timeslice"};
  nlohmann::ordered_json json{{"name", name}, {"file", file}, {"description", description}, {"source", source}};
  json["clients"] = {{"speed_sigma", speed_sigma}, {"think_overshoot", think_overshoot}, {"wake_slowdown", wake_slowdown}};
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
  for (const auto& station : stations)
    if (station.spread == Spread::stripe) {
      json["stations"][station.name]["stripe_size"]  = station.stripe_size;
      json["stations"][station.name]["stripe_count"] = station.stripe_count;
    }
  for (const auto& limit : limits)
    json["limits"][limit.name] = {{"slots", limit.slots}, {"per", name_of(limit.per)}};
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
  }
  for (const auto& failure : failures) {
    auto& said = json["failures"][failure.name];
    said       = {{"station", stations[failure.station].name},
                  {"instance", failure.instance},
                  {"at", failure.at},
                  {"every", failure.every},
                  {"length", failure.length},
                  {"sigma", failure.sigma},
                  {"timeout", failure.timeout}};
    if (failure.to) {
      said["to"]       = *failure.to;
      said["takeover"] = failure.takeover;
    }
  }
  for (const auto& work : background)
    json["background"][work.name] = {
        {"station", stations[work.station].name}, {"rate", work.rate}, {"demand", law_to_json(*work.demand, quantiles)}};
  for (const auto& cache : caches) {
    auto& told = json["caches"][cache.name];
    if (cache.station >= 0)
      told["station"] = stations[static_cast<size_t>(cache.station)].name;
    else
      told["per"] = name_of(cache.per);
    told[cache.page > 0 ? "capacity" : "objects"] = cache.capacity;
    if (cache.page > 0)
      told["page"] = cache.page;
  }
  json["buffers"] = nlohmann::ordered_json::object();
  for (const auto& buffer : buffers) {
    auto& told = json["buffers"][buffer.name];
    if (buffer.station >= 0)
      told["station"] = stations[static_cast<size_t>(buffer.station)].name;
    else
      told["per"] = name_of(buffer.per);
    told.update({{"capacity", buffer.capacity}, {"unit", buffer.unit}, {"linger", buffer.linger},
                 {"resume", static_cast<double>(buffer.resume) / static_cast<double>(buffer.capacity)}, {"at_once", buffer.at_once}, {"drain", buffer.drain_json}});
  }
  for (const auto& pool : pools) {
    auto& told = json["pools"][pool.name];
    if (pool.station >= 0)
      told["station"] = stations[static_cast<size_t>(pool.station)].name;
    else
      told["per"] = name_of(pool.per);
    told.update({{"size", pool.size}, {"low", pool.low}, {"batch", pool.batch}, {"at_once", pool.at_once}, {"refill", pool.refill_json}});
  }
  json["network"]    = {{"latency", network.latency},
                        {"node_bandwidth", network.node_bandwidth},
                        {"server_bandwidth", network.server_bandwidth},
                        {"backbone_bandwidth", network.backbone_bandwidth},
                        {"flow_threshold", network.flow_threshold}};
  json["operations"] = routes_json;
  if (!quantiles) {
    // Strip them wherever a law stands.
    auto strip = [](auto&& self, nlohmann::ordered_json& node) -> void {
      if (node.is_object())
        node.erase("quantiles");
      if (node.is_structured())
        for (auto& child : node)
          self(self, child);
    };
    strip(strip, json["operations"]);
    strip(strip, json["buffers"]);
    if (!pools.empty())
      strip(strip, json["pools"]);
  }
  return json;
}

const std::vector<PrimitiveEntry>& primitives()
{
  static const std::vector<PrimitiveEntry> entries{
      {"station",
       "servers that work on requests",
       {{"per", "system (default) or node: who has an instance of it"},
        {"count", "instances, when per system"},
        {"spread", "dataset (default), object or stripe: what chooses the instance; round-robin: a dataset's objects have them in turn"},
        {"stripe_size", "spread by stripe: bytes of an object that one instance has before the next has its turn, default 1 MiB"},
        {"stripe_count", "spread by stripe: how many instances an object is spread over, default all"},
        {"servers", "servers (threads, cores) of an instance"},
        {"speed", "1 (default): service takes what the demands say; 2: half of it"},
        {"sockets", "servers: so many are on one socket; remote: how much longer a service is of which all memory is on another. What is served "
                    "spreads over all sockets that the servers need"},
        {"discipline", "fcfs (default), ps (processor sharing) or timeslice (round robin)"},
        {"quantum", "timeslice: how long a job may keep its server while others wait"},
        {"contention", "sigma of the universal scalability law: each of n busy servers runs at 1/(1 + sigma (n-1) + kappa n (n-1))"},
        {"coherency", "kappa of the same law"},
        {"crowding", "a service asked for while others wait takes 1 + crowding ln(1 + waiting / servers) times as long"},
        {"wakeup", "timeslice: a job that comes from a sleep or an answer 'preempts' (default) a running one or 'queues'"}}},
      {"visit",
       "a step at a station: wait for a server, be served",
       {{"station", "where"},
        {"demand", "a law or the name of a demand"},
        {"per", "operation (default); entry: the demand for each entry that a readdir lists; block: for each block of an access"},
        {"bandwidth", "adds the operation's bytes / bandwidth to the service"},
        {"lock", "a lock that is held during ..."},
        {"lock_share", "... this share of the demand, default 1"},
        {"lock_mode", "exclusive (default) or shared: for reading, of a lock with hand_over"},
        {"recall", "steps that follow when the lock had to be called back from other nodes, such as a flush of what they have; the lock is free again meanwhile"},
        {"stripes", "so many parts, each with a demand of its own and its share of the bytes, go to neighbouring instances at the same "
                    "time; the visit ends with the last (fork-join). spanned: one part for each instance that the access has bytes at"}}},
      {"limit",
       "how many requests may be on their way at once, and a step that holds one of its slots while it goes through `steps`",
       {{"slots", "so many"}, {"per", "node (default) or system: who has them"}}},
      {"lock",
       "held for part of a service by one request at a time",
       {{"per", "dataset (default), object, node or system: who has one"},
        {"hand_over", "nodes keep the lock when they have had it, several if all had it shared; this time (a law or the name of a demand) "
                      "is what calling it back takes when another node asks for it: caches are emptied, permission moves"},
        {"extent", "per object, with hand_over: nodes keep ranges of the object, in units of so many bytes. Who asks gets what its access touches, grown as far as nobody contests it: upwards to what "
                   "others keep or, of those who are called back, had asked for; downwards over what nobody keeps. Who is called back keeps the rest. Readers share; others wait while it is in use"},
        {"grow", "with extent: by at most so many bytes on each side, default without end"},
        {"station", "with extent: each instance of this station, which is spread by stripe, has the locks of what lies there; an access asks each of those that it has bytes at, and a hand-over is one of each"}}},
      {"stall",
       "every so often a class of operations does not start service at a station",
       {{"station", "where"},
        {"every", "from one's begin to the next one's"},
        {"length", "mean"},
        {"sigma", "of the lognormal length"},
        {"operations", "the class"}}},
      {"failure",
       "an instance of a station stops serving for a time; what it has in service and in its queue is lost, and asked again",
       {{"station", "where; it serves fcfs or ps"},
        {"instance", "which one, counted from 0; a station of one instance need not say"},
        {"at", "when, in simulated time from the start of the run"},
        {"length", "mean time until the instance serves again"},
        {"sigma", "of the lognormal length"},
        {"every", "it fails again so long after the begin of the last time; default: never"},
        {"to", "another instance, which serves its requests beside its own while it is away; default: they wait"},
        {"takeover", "so long after the failure, default at once"},
        {"timeout", "so long after it was lost a client asks a request again, or as soon as someone serves it if that is later, as if it had never "
                    "been asked; default 0: clients wait for recovery"}}},
      {"background",
       "work of others: Poisson arrivals at a station that nobody here waits for",
       {{"station", "where"}, {"rate", "arrivals a second"}, {"share", "instead of a rate: of all its servers' time"}, {"demand", "a law or the name of a demand"}}},
      {"buffer",
       "memory that takes writes at once and empties in the background, and a step (of create, append or pwrite) at which the operation's bytes go in: it "
       "waits for room, first come, first served, and goes on. Pieces drain by steps of their own. Reads don't see what is in it",
       {{"per", "node (default) or system: who has one"},
        {"station", "instead of per: each instance of that station has one"},
        {"capacity", "bytes of one; a piece takes room until it is drained"},
        {"unit", "adjacent bytes of an object drain together, up to the next multiple of so many; without, each write as it came"},
        {"linger", "how long less than a unit waits for more, default 0; shorter when it is flushed or a write waits for room"},
        {"resume", "once writes had to wait they go on when no more than this share of the capacity is held, default 1: as soon as there is room"},
        {"at_once", "pieces that one drains at a time, default 1"},
        {"drain", "the steps of a piece: delays, visits, transfers, limits, and buffers that are written above this one"}}},
      {"cache",
       "memory that keeps what was used last (LRU), and a step that looks there for what the operation needs: all of it (a hit) or not (a miss), and goes "
       "through the steps of the one or the other; all of it is there afterwards",
       {{"per", "node (default) or system: who has one"},
        {"station", "instead of per: each instance of that station has one, which it loses when it fails"},
        {"capacity", "bytes of one, which holds pages of objects"},
        {"page", "bytes that come and go together"},
        {"objects", "instead of a capacity and pages: so many objects (and datasets), whatever their size"},
        {"hit", "the steps of a hit, default none"},
        {"miss", "the steps of a miss, default none"}}},
      {"forget",
       "a step that takes out of a cache what it has of the operation's object; of pages those from the first on that are there without a gap",
       {{"forget", "which cache; of it the node's, or the server's, own"}}},
      {"pool",
       "objects made in advance, which one fewer is left of after each step that takes one; one that finds none waits, first come, first served. Batches are made "
       "in the background. It is full at first",
       {{"per", "node (default) or system: who has one"},
        {"station", "instead of per: each instance of that station has one"},
        {"size", "objects of one, at first and at most"},
        {"batch", "how many are made together"},
        {"low", "when no more are left, batches are made until no further one fits; default size - batch: as soon as one fits"},
        {"at_once", "batches that are made at a time, default 1"},
        {"refill", "the steps of a batch: delays, visits and limits"},
        {"take", "of the step: which pool; of it the node's, or the server's, own"}}},
      {"flush",
       "a step that waits until a buffer is drained",
       {{"flush", "which buffer; of it the node's, or the server's, own"},
        {"of", "all (default): all that is in it now; object: what the operation's object has in it; everywhere: what the object has in any of that name; elsewhere: in any "
               "but this one, as when a lock is called back"}}},
      {"delay", "a step that takes time but nobody's server", {{"delay", "a law or the name of a demand"}}},
      {"transfer",
       "a step that moves the operation's bytes; from flow_threshold on as a flow that shares the network fairly",
       {{"transfer", "write (to the server) or read (from it)"},
        {"station", "whose instance is the other end"},
        {"stripes", "spanned: one part for each instance that the bytes lie at, at the same time; default: all with the instance of the first byte"}}},
      {"clients",
       "the nodes that ask",
       {{"speed_sigma", "sigma of a lognormal factor on each node's own demands"},
        {"think_overshoot", "what a sleep lasts longer than asked"},
        {"wake_slowdown", "factor on the demands at stations of the node when ranks think between operations (cold caches)"}}}};
  return entries;
}

} // namespace iocast
