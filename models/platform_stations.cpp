// SPDX-License-Identifier: Apache-2.0
#include "models/platform_reader.hpp"

#include "workload/workload.hpp"

#include <cctype>
#include <fmt/ranges.h>

namespace iocast {

void PlatformReader::read()
{
  refuse_foreign_words(yaml_,
                       {{"nodes", "--nodes of the command: a platform does not say how many client nodes there are"},
                        {"ops", "operations"},
                        {"routes", "operations"},
                        {"servers", "stations"},
                        {"queues", "stations"}});
  std::vector<std::string> sections{"schema_version", "extends", "description", "source", "clients",     "stations",
                                    "demands",        "network", "operations",  "serves", "calibration", "fitted"};
  for (const auto& kind : mechanism_kinds())
    sections.push_back(kind.section);
  yaml_.allow_only(sections);
  platform_.description = yaml_.text_or("description", "");
  platform_.source      = yaml_.text_or("source", "");
  read_stations();
  if (const auto clients = yaml_.find("clients")) {
    platform_.speed_sigma = clients->quantity_or("speed_sigma", Unit::factor, 0, 0, 3);
    if (const auto slow = clients->find("slow_nodes")) {
      platform_.slow.share  = (*slow)["share"].quantity(Unit::factor, 0, 1);
      platform_.slow.factor = (*slow)["factor"].quantity(Unit::factor, 0.001, 1e6);
      if (const auto station = slow->find("station")) {
        platform_.slow.station = static_cast<int32_t>(find_in(platform_.stations, *station, "station"));
        if (platform_.stations[static_cast<size_t>(platform_.slow.station)].per != Per::node)
          station->fail(fmt::format("'{}' is a station of the system; nodes are slower at stations of their own",
                                    station->text()));
      }
      slow->finish();
    }
    if (std::none_of(platform_.stations.begin(), platform_.stations.end(),
                     [](const auto& station) { return station.per == Per::node; }))
      for (const char* key : {"slow_nodes", "speed_sigma"})
        if (const auto idle = clients->find(key);
            idle && idle->file() == platform_.file && (idle->is_map() || platform_.speed_sigma > 0))
          idle->fail(fmt::format("'{}' has no effect: nodes differ at stations of their own, and no station of this "
                                 "platform has 'per: node'",
                                 key));
    platform_.think_overshoot = clients->quantity_or("think_overshoot", Unit::seconds, 0, 0, longest_seconds);
    platform_.wake_slowdown   = clients->quantity_or("wake_slowdown", Unit::factor, 1, 0.1, 100);
    if (const auto collective = clients->find("collective"))
      read_collective(*collective);
    clients->finish();
  }
  if (const auto demands = yaml_.find("demands"))
    for (const auto& [name, law] : demands->entries())
      demands_[name] = read_law(law);
  read_network();
  read_mechanisms();
  read_operations();
  read_serves();
  check_mechanisms();
  check_all_used();
  check_places();
}

void PlatformReader::refuse_foreign_words(const YamlNode& owner,
                                          const std::vector<std::pair<std::string, std::string>>& words)
{
  for (const auto& [word, ours] : words)
    if (owner.holds(word))
      owner[word].fail(fmt::format("'{}' is no key here; write {}", word, ours));
}

void PlatformReader::refuse_idle(const YamlNode& owner, const char* key, const char* decided_by,
                                 const std::string& sentence) const
{
  const auto idle = owner.find(key);
  if (!idle)
    return;
  const auto decided = owner.find(decided_by);
  if (!decided || idle->file() == decided->file() || idle->file() == platform_.file)
    idle->fail(fmt::format("'{}' has no effect: {}", key, sentence));
}

void PlatformReader::check_all_used() const
{
  std::map<std::string, std::set<std::string>> used; // names by section
  const auto uses    = [&](const Named& part) { used[part.kind->section].insert(part.name); };
  const auto uses_at = [&](auto at) { used["stations"].insert(platform_.stations[static_cast<size_t>(at)].name); };
  platform_.for_each_step([&](const Step& step, const BufferSpec*) {
    if (step.kind == Step::Kind::visit && step.lock >= 0)
      uses(platform_.locks[static_cast<size_t>(step.lock)]);
    if (step.kind == Step::Kind::visit || step.kind == Step::Kind::transfer)
      uses_at(step.target);
    else if (step.kind == Step::Kind::seize)
      uses(platform_.limits[step.target]);
    else if (step.kind == Step::Kind::use)
      uses(*platform_.mechanisms[step.target]);
    else if (step.kind == Step::Kind::enter || step.kind == Step::Kind::flush)
      uses(platform_.buffers[step.target]);
    else if (step.kind == Step::Kind::look)
      uses(platform_.caches[step.target]);
  });
  for (const auto& lock : platform_.locks)
    if (lock.station >= 0)
      uses_at(lock.station);
  if (platform_.network.routers >= 0)
    uses_at(platform_.network.routers);
  for (const auto& part : platform_.parts) {
    if (const auto& names = used[part->kind->section]; part->kind->in_routes && !names.contains(part->name))
      refuse_unused(part->kind->section, part->kind->word, part->name, names);
    if (!part->kind->owners.empty() && static_cast<const MechanismSpec&>(*part).station >= 0)
      uses_at(static_cast<const MechanismSpec&>(*part).station);
  }
  refuse_without_bytes();
  for (const auto& station : platform_.stations)
    if (!used["stations"].contains(station.name))
      refuse_unused("stations", "station", station.name, used["stations"]);
  // A calibration writes what it measured, whether or not the structure that it tries has a use for it.
  std::set<std::string> measured;
  if (const auto calibration = yaml_.find("calibration"); calibration && calibration->is_map()) {
    if (const auto laws = calibration->find("laws"))
      for (const auto& [name, tag] : laws->entries())
        measured.insert(name);
    if (const auto parameters = calibration->find("parameters"))
      for (const auto& [name, parameter] : parameters->entries())
        if (const auto within = parameter.find("within"))
          for (const auto& [law, way] : within->entries())
            measured.insert(way.text());
  }
  for (const auto& [name, law] : demands_)
    if (!used_demands_.contains(name) && !measured.contains(name))
      refuse_unused("demands", "demand", name, used_demands_);
}

void PlatformReader::refuse_unused(const std::string& section, const std::string& what, const std::string& name,
                                   const std::set<std::string>& used) const
{
  const auto part = yaml_[section][name];
  if (!is_own(part.file()))
    return;
  const std::string match = nearest_match(name, std::vector<std::string>{used.begin(), used.end()});
  part.fail(fmt::format("no route uses the {} '{}', so that it changes nothing. {}{} in use: {}.", what, name,
                        match.empty() ? "" : fmt::format("Did you mean '{}'? ", match),
                        static_cast<char>(std::toupper(section[0])) + section.substr(1),
                        used.empty() ? "none" : fmt::format("{}", fmt::join(used, ", "))));
}

void PlatformReader::read_stations()
{
  for (const auto& [name, yaml] : yaml_["stations"].entries()) {
    StationSpec station;
    station.name = name;
    refuse_foreign_words(yaml, {{"threads", "servers"},
                                {"cores", "servers"},
                                {"cpus", "servers"},
                                {"instances", "count"},
                                {"nodes", "count, the instances of a station of the system, or per: node"}});
    if (const auto per = yaml.find("per"))
      station.per = static_cast<Per>(place_of(*per, {"system", "node"}, no_owner));
    station.count   = static_cast<uint32_t>(yaml.quantity_or("count", Unit::count, 1, 1, 1e6));
    station.servers = static_cast<uint32_t>(yaml.quantity_or("servers", Unit::count, 1, 1, most));
    if (const auto spread = yaml.find("spread"))
      station.spread = static_cast<Spread>(
          place_of(*spread, {spread_names.begin(), spread_names.end()}, "'{}' can't be spread by. {}"));
    if (station.per == Per::node) {
      for (const char* key : {"count", "spread", "stripe_size", "stripe_count", "allocation", "free"})
        refuse_idle(yaml, key, "per", fmt::format("each client node has its own instance of the station '{}'", name));
      station.count  = 1; // what it inherits is of a station of the system
      station.spread = {};
    } else if (station.spread != Spread::stripe) {
      for (const char* key : {"stripe_size", "stripe_count", "allocation", "free"})
        refuse_idle(yaml, key, "spread",
                    fmt::format("the station '{}' is spread by {}; only what is spread by stripe has stripes", name,
                                spread_names[static_cast<size_t>(station.spread)]));
    }
    station.stripe_count = station.count;
    if (station.spread == Spread::stripe)
      read_stripes(yaml, station);
    if (const auto discipline = yaml.find("discipline"))
      station.discipline = static_cast<Discipline>(
          place_of(*discipline, {"fcfs", "ps", "timeslice"}, "the discipline '{}' is unknown. {}"));
    if (const auto waiting = yaml.find("waiting")) {
      station.newest_first = place_of(*waiting, {"oldest-first", "newest-first"},
                                      "those who wait are served 'oldest-first' or 'newest-first', not '{}'") == 1;
      if (station.newest_first && (station.discipline != Discipline::fcfs || yaml.has("priority")))
        waiting->fail(fmt::format("only at a station without classes and with the discipline fcfs can the newest be "
                                  "first; '{}' is another",
                                  name));
    }
    station.quantum = yaml.quantity_or("quantum", Unit::seconds, 3e-3, 1e-9, longest_seconds);
    if (station.discipline != Discipline::timeslice)
      station.quantum = 0;
    if (const auto wakeup = yaml.find("wakeup"))
      station.wakeup_preempts =
          place_of(*wakeup, {"preempts", "queues"}, "a wakeup either 'preempts' or 'queues', not '{}'") == 0;
    if (station.discipline != Discipline::timeslice) {
      for (const char* key : {"quantum", "wakeup"})
        refuse_idle(yaml, key, "discipline",
                    fmt::format("the station '{}' doesn't slice time; only the discipline 'timeslice' does", name));
      station.wakeup_preempts = true;
    } else if (station.servers > most_slicing) {
      yaml["servers"].fail(fmt::format("a station that slices time has at most {} servers; '{}' has {}", most_slicing,
                                       name, station.servers));
    }
    station.crowding = yaml.quantity_or("crowding", Unit::factor, 0, 0, 1e3);
    if (station.discipline == Discipline::ps) {
      if (!yaml_.has("fitted") && station.crowding > 0)
        refuse_idle(
            yaml, "crowding", "discipline",
            fmt::format("nobody waits at the station '{}', whose requests share its servers (discipline ps)", name));
      station.crowding = 0;
    }
    station.rating = yaml.quantity_or("speed", Unit::factor, 1, 1e-6, 1e6);
    if (const auto sockets = yaml.find("sockets")) {
      const auto on_one   = static_cast<uint32_t>((*sockets)["servers"].quantity(Unit::count, 1, most));
      const double remote = (*sockets)["remote"].quantity(Unit::factor, 0, 1e3);
      const uint32_t used = (station.servers - 1) / on_one + 1;
      station.rating /= 1 + remote * (1 - 1.0 / used);
      sockets->finish();
    }
    station.contention = yaml.quantity_or("contention", Unit::factor, 0, 0, 1e3);
    station.coherency  = yaml.quantity_or("coherency", Unit::factor, 0, 0, 1e3);
    read_speeds(yaml, station);
    read_priority(yaml, station);
    read_disk(yaml, station);
    read_rpc(yaml, station);
    read_redundancy(yaml, station);
    yaml.finish();
    platform_.stations.push_back(station);
  }
  if (platform_.stations.empty())
    yaml_["stations"].fail("a platform needs at least one station");
}

void PlatformReader::read_stripes(const YamlNode& yaml, StationSpec& station) const
{
  station.stripe_size = static_cast<uint64_t>(yaml.quantity_or("stripe_size", Unit::bytes, 1 << 20, 1, 1e18));
  if (const auto count = yaml.find("stripe_count")) {
    const auto depth = [&](const std::string& file) { // of those that extend each other; what a run sets has none
      const auto at = std::find_if(platform_.read.begin(), platform_.read.end(),
                                   [&](const auto& read) { return read.first == file; });
      return at == platform_.read.end() ? 0 : at - platform_.read.begin();
    };
    const auto stripes = static_cast<uint32_t>(count->quantity(Unit::count, 1, station.count));
    if (depth(count->file()) <= depth(yaml["spread"].file()))
      station.stripe_count = stripes; // else the file that says how objects are spread leaves their stripes out
  }
  enum : size_t { by_name, in_turn, weighted, by_stripe };
  const auto given          = yaml.find("allocation");
  const auto allocation     = given ? place_of(*given, {"by-name", "round-robin", "weighted", "by-stripe"},
                                               "an object's instances can't be chosen by '{}'. {}")
                                    : by_name;
  station.allocated_in_turn = allocation == in_turn;
  station.by_stripe         = allocation == by_stripe;
  if (station.by_stripe) {
    refuse_idle(yaml, "stripe_count", "allocation",
                fmt::format("with allocation: by-stripe each stripe of '{}' may lie on any instance", station.name));
    station.stripe_count = station.count;
  }
  if (allocation == weighted)
    read_free(yaml, station);
  else
    refuse_idle(
        yaml, "free", "allocation",
        fmt::format("objects of '{}' are allocated by free space only with allocation: weighted", station.name));
}

void PlatformReader::read_free(const YamlNode& yaml, StationSpec& station)
{
  double all = 0;
  for (const auto& free : yaml["free"].items()) {
    all += free.quantity(Unit::bytes, 0, 1e18);
    station.free.push_back(all);
  }
  if (station.free.size() != station.count || !(all > 0))
    yaml["free"].fail(fmt::format("the free space of each of the {} instances of '{}' is needed, and not all full; "
                                  "there are {} numbers",
                                  station.count, station.name, station.free.size()));
  for (double& free : station.free)
    free /= all;
}

void PlatformReader::read_speeds(const YamlNode& yaml, StationSpec& station)
{
  const auto speeds = yaml.find("speeds");
  if (!speeds)
    return;
  const bool remote = yaml.has("sockets") && yaml["sockets"]["remote"].quantity(Unit::factor) > 0;
  if (station.contention > 0 || station.coherency > 0 || remote)
    speeds->fail(fmt::format("measured speeds have all in them that slows the servers of '{}' down; leave out {}",
                             station.name,
                             station.contention > 0  ? "contention"
                             : station.coherency > 0 ? "coherency"
                                                     : "sockets"));
  for (const auto& speed : speeds->items())
    station.speeds.push_back(speed.quantity(Unit::factor, 1e-6, 1e6));
  if (station.speeds.empty())
    speeds->fail("a table of speeds says at least that of one busy server, usually 1");
}

void PlatformReader::read_disk(const YamlNode& yaml, StationSpec& station)
{
  const auto given = yaml.find("disk");
  if (!given)
    return;
  refuse_foreign_words(*given, {{"bandwidth", "read and write, the bytes a second of each"},
                                {"seek", "overhead, the seconds of an access beside its bytes"}});
  auto& disk    = station.disk;
  disk.read     = (*given)["read"].quantity(Unit::bandwidth, 1, 1e15);
  disk.write    = (*given)["write"].quantity(Unit::bandwidth, 1, 1e15);
  disk.together = given->quantity_or("together", Unit::bandwidth, 0, 1, 1e15);
  if (disk.together > 0 && (disk.together < std::max(disk.read, disk.write) || disk.together > disk.read + disk.write))
    (*given)["together"].fail(
        fmt::format("the disk of '{}' moves from {:g} to {:g} bytes a second when it reads and writes at the same "
                    "time: no less than of one of them alone, and no more than of both; leave it out where they share "
                    "its time",
                    station.name, std::max(disk.read, disk.write), disk.read + disk.write));
  disk.overhead = given->quantity_or("overhead", Unit::seconds, 0, 0, longest_seconds);
  if (const auto slowdown = given->find("slowdown")) {
    for (const auto& share : slowdown->items())
      disk.slowdown.push_back(share.quantity(Unit::factor, 1e-6, 1));
    if (disk.slowdown.empty())
      slowdown->fail("a table of shares has at least that of one access, usually 1");
  }
  if (const auto discipline = given->find("discipline"))
    disk.fifo =
        place_of(*discipline, {"shared", "fifo"},
                 "a disk is 'shared' by all accesses at a time, or serves one after the other ('fifo'). {1}") == 1;
  given->finish();
}

void PlatformReader::read_rpc(const YamlNode& yaml, StationSpec& station)
{
  const auto rpc = yaml.find("rpc");
  if (!rpc)
    return;
  if (station.per == Per::node)
    rpc->fail(fmt::format("'{}' is of the client nodes, to which nothing is sent", station.name));
  station.rpc.size      = static_cast<uint64_t>((*rpc)["size"].quantity(Unit::bytes, 1, 1e18));
  station.rpc.in_flight = static_cast<uint32_t>((*rpc)["in_flight"].quantity(Unit::count, 1, most));
  rpc->finish();
}

void PlatformReader::read_redundancy(const YamlNode& yaml, StationSpec& station)
{
  const auto given = yaml.find("redundancy");
  if (!given)
    return;
  refuse_foreign_words(*given, {{"replicas", "copies"}, {"size", "copies"}, {"k", "data"}, {"m", "parity"}});
  auto& spec        = station.redundancy;
  const auto copies = given->find("copies");
  if (copies.has_value() == given->has("data"))
    given->fail("objects have copies, or stripes of data and parity; give one of the two");
  if (copies) {
    spec.shards = static_cast<uint32_t>(copies->quantity(Unit::count, 1, most_parts));
  } else {
    spec.data   = static_cast<uint32_t>((*given)["data"].quantity(Unit::count, 2, most_parts));
    spec.shards = spec.data + static_cast<uint32_t>((*given)["parity"].quantity(Unit::count, 1, most_parts));
    spec.unit   = static_cast<uint64_t>(given->quantity_or("unit", Unit::bytes, 4096, 1, 1e15));
  }
  given->finish();
  if (station.per == Per::node)
    given->fail(fmt::format("'{}' is of the client nodes, which keep nothing for each other", station.name));
  if (spec.shards > station.count)
    given->fail(fmt::format("{} {} need as many instances; the station '{}' has {}", spec.shards,
                            spec.is_coded() ? "shards" : "copies", station.name, station.count));
  if (station.spread == Spread::stripe && station.stripe_size % spec.stripe() > 0)
    given->fail(fmt::format("a stripe of {} x {} bytes must fit a whole number of times into the stripe_size of '{}', "
                            "{} bytes",
                            spec.data, spec.unit, station.name, station.stripe_size));
}

void PlatformReader::read_priority(const YamlNode& yaml, StationSpec& station)
{
  const auto priority = yaml.find("priority");
  if (!priority)
    return;
  if (station.discipline != Discipline::fcfs)
    priority->fail(fmt::format(
        "only where requests are served first come, first served, can some have priority; '{}' has another discipline",
        station.name));
  constexpr size_t nowhere = SIZE_MAX;
  auto known               = op_list();
  for (const char* other : {"drain", "background", "rest"})
    known.emplace_back(other);
  std::vector<size_t> place(known.size(), nowhere);
  for (const auto& entry : priority->items()) {
    auto& names = station.priority.emplace_back();
    for (const auto& name : entry.is_sequence() ? entry.items() : std::vector{entry}) {
      size_t& of = place[place_of(name, known, "there is no work '{}'. {}")];
      if (of != nowhere)
        name.fail(fmt::format("'{}' has its priority already", name.text()));
      of = station.priority.size() - 1;
      names.push_back(name.text());
    }
    if (names.empty())
      entry.fail("a class of work names what is in it");
  }
  if (place.back() == nowhere) {
    place.back() = station.priority.size();
    station.priority.push_back({"rest"});
  }
  // In the order of `known`: operations from the second kind on, waking up, which is the first kind, drains, the work
  // of others.
  for (size_t i = 0; i + 1 < known.size(); ++i)
    station.class_of[i + 1 < op_count    ? i + 1
                     : i + 1 == op_count ? 0
                                         : i] = static_cast<uint8_t>(place[i] == nowhere ? place.back() : place[i]);
}

void PlatformReader::read_collective(const YamlNode& yaml)
{
  auto& spec        = platform_.collective;
  spec.aggregators  = static_cast<uint32_t>(yaml["aggregators"].quantity(Unit::count, 1, 1e6));
  const auto unit   = yaml.find("unit");
  const auto stripe = yaml.find("stripes_of");
  if (unit.has_value() == stripe.has_value())
    yaml.fail(
        "aggregators have units of a file by turns: give their bytes (unit) or the station whose stripes they are "
        "(stripes_of), one of the two");
  if (unit) {
    spec.unit = static_cast<uint64_t>(unit->quantity(Unit::bytes, 1, 1e15));
  } else {
    const auto& station = platform_.stations[find_in(platform_.stations, *stripe, "station")];
    spec.unit           = station.stripe_size;
    spec.servers        = station.spread == Spread::stripe ? station.stripe_count : 1; // objects lie whole on one
  }
  Way between_nodes;
  between_nodes.device = false;
  spec.way             = number_of(between_nodes);
  yaml.finish();
}

uint32_t PlatformReader::read_instance(const YamlNode& yaml, uint32_t at) const
{
  const auto& station = platform_.stations[at];
  const double number = yaml.quantity(Unit::count, 0, most);
  if (number >= station.count)
    yaml.fail(station.count == 1 ? fmt::format("the station '{}' has one instance, which is number 0", station.name)
                                 : fmt::format("the station '{}' has the instances 0 to {}, not {}", station.name,
                                               station.count - 1, yaml.text()));
  return static_cast<uint32_t>(number);
}

} // namespace iocast
