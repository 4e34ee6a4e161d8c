// SPDX-License-Identifier: Apache-2.0
#include "models/platform_reader.hpp"

#include "workload/workload.hpp"

#include <algorithm>
#include <fmt/ranges.h>

namespace iocast {

OpKind PlatformReader::read_op(const YamlNode& yaml)
{
  if (const auto kind = op_named(yaml.text()); kind && *kind != OpKind::phase)
    return *kind;
  yaml.fail(unknown_op(yaml.text()));
}

std::string PlatformReader::unknown_op(const std::string& name)
{
  return fmt::format("there is no operation '{}'. {}", name, allowed_sentence(name, op_list()));
}

std::vector<std::string> PlatformReader::op_list()
{
  std::vector<std::string> names(op_names.begin() + 1, op_names.end());
  names.push_back("wake");
  return names;
}

LawPointer PlatformReader::read_demand(const YamlNode& yaml)
{
  if (!yaml.is_scalar() || demands_.empty() ||
      (!yaml.text().empty() && std::isdigit(static_cast<unsigned char>(yaml.text()[0]))))
    return read_law(yaml);
  if (const auto found = demands_.find(yaml.text()); found != demands_.end()) {
    used_demands_.insert(found->first);
    return found->second;
  }
  std::vector<std::string> names;
  for (const auto& [name, law] : demands_)
    names.push_back(name);
  yaml.fail(
      fmt::format("'{}' is neither a time nor a named demand. {}", yaml.text(), allowed_sentence(yaml.text(), names)));
}

void PlatformReader::set_law(Step& step, LawPointer law)
{
  step.constant = law->variance() == 0 ? law->mean() : -1;
  step.law      = std::move(law);
}

nlohmann::ordered_json PlatformReader::demand_json(const YamlNode& yaml, const LawPointer& law)
{
  auto json         = law_to_json(*law, false);
  json["quantiles"] = platform_.quantile_laws.size();
  platform_.quantile_laws.push_back(law);
  if (yaml.is_scalar() && demands_.contains(yaml.text()))
    json["name"] = yaml.text();
  return json;
}

void PlatformReader::refuse_step(const YamlNode& item)
{
  std::vector<std::string> known{"station", "delay", "limit", "transfer", "disk", "buffer", "flush", "cache", "forget"};
  for (const auto& kind : mechanism_kinds())
    if (!kind.step.empty())
      known.push_back(kind.step);
  const auto keys = item.entries();
  if (keys.empty())
    item.fail("a step is empty; a list of steps without any is []");
  item.fail(fmt::format("no key of this step says what it does: '{}'. {}", keys.front().first,
                        allowed_sentence(keys.front().first, known)));
}

nlohmann::ordered_json PlatformReader::read_steps(const YamlNode& list, std::vector<Step>& out,
                                                  std::vector<uint32_t> held)
{
  auto json = nlohmann::ordered_json::array();
  for (const auto& item : list.items()) {
    Step step;
    const auto verb = [&item](const char* key) { return item.holds(key) ? item.find(key) : std::nullopt; };
    if (pieces_ != nullptr)
      for (const auto& key : pieces_->refused)
        if (item.holds(key))
          item[key].fail(fmt::format("{} goes through {}", pieces_->what, pieces_->through));
    if (item.holds("delay")) {
      step.kind = Step::Kind::delay;
      set_law(step, read_demand(item["delay"]));
      out.push_back(step);
      json.push_back({{"delay", demand_json(item["delay"], step.law)}});
    } else if (item.holds("limit")) {
      step.kind   = Step::Kind::seize;
      step.target = find_in(platform_.limits, item["limit"], "limit");
      if (std::find(held.begin(), held.end(), step.target) != held.end())
        item["limit"].fail(
            fmt::format("the limit '{}' is already held here; a request would wait for itself", item["limit"].text()));
      check_beside_step(item, step);
      out.push_back(step);
      held.push_back(step.target);
      auto inner = read_steps(item["steps"], out, held);
      held.pop_back();
      step.kind = Step::Kind::release;
      out.push_back(step);
      json.push_back({{"limit", item["limit"].text()}, {"steps", inner}});
    } else if (const auto transfer = verb("transfer")) {
      json.push_back(read_transfer(item, *transfer, out));
    } else if (const auto access = verb("disk")) {
      json.push_back(read_disk_access(item, *access, out));
    } else if (const auto buffer = verb("buffer")) {
      step.kind   = Step::Kind::enter;
      step.target = find_in(platform_.buffers, *buffer, earlier("buffer"));
      if (reads_route() && op_ != OpKind::create && op_ != OpKind::append && op_ != OpKind::pwrite)
        buffer->fail(
            fmt::format("{} writes nothing that a buffer could take. Allowed: create, append, pwrite", name_of(op_)));
      check_not_held(*buffer, platform_.buffers[step.target], held);
      check_beside_step(item, step);
      json.push_back({{"buffer", buffer->text()}});
      if (const auto stripes = item.find("stripes")) {
        const auto& spec = platform_.buffers[step.target];
        if (spec.station < 0 || stripes->text() != "spanned")
          stripes->fail(
              fmt::format("bytes enter a buffer of a station's instances by 'spanned' stripes, those that they "
                          "lie in, not by '{}' into '{}'",
                          stripes->text(), spec.name));
        Step there;
        there.target = static_cast<uint32_t>(spec.station);
        read_spanned(*stripes, there);
        step.stripes = there.stripes;
        if (platform_.stations[there.target].spread == Spread::stripe)
          json.back()["stripes"] = "spanned";
      }
      out.push_back(step);
    } else if (const auto flushed = verb("flush")) {
      step.kind   = Step::Kind::flush;
      step.target = find_in(platform_.buffers, *flushed, "buffer");
      check_not_held(*flushed, platform_.buffers[step.target], held);
      if (const auto of = item.find("of")) {
        static const std::vector<std::string> known{flush_names.begin(), flush_names.end()};
        const auto found = std::find(known.begin(), known.end(), of->text());
        if (found == known.end())
          of->fail(
              fmt::format("a buffer can't be flushed of '{}'. {}", of->text(), allowed_sentence(of->text(), known)));
        step.flush = static_cast<Flush>(found - known.begin());
      }
      out.push_back(step);
      json.push_back({{"flush", flushed->text()}, {"of", flush_names[static_cast<size_t>(step.flush)]}});
    } else if (const auto* kind = mechanism_of(item)) {
      json.push_back(read_use(*kind, item, out, held));
    } else if (const auto cache = verb("cache")) {
      json.push_back(read_look(item, *cache, out, held));
    } else if (const auto forgotten = verb("forget")) {
      step.kind    = Step::Kind::look;
      step.forgets = true;
      step.target  = find_in(platform_.caches, *forgotten, "cache");
      check_has_object(*forgotten);
      check_beside_step(item, step);
      json.push_back({{"forget", forgotten->text()}});
      if (const auto of = item.find("of"))
        json.back()["of"] = read_forget_of(*of, step);
      out.push_back(step);
      if (const auto recall = item.find("recall")) {
        auto& cache = platform_.caches[step.target];
        if (step.flush != Flush::elsewhere)
          recall->fail("only what others have is called back; write 'of: elsewhere'");
        if (cache.valid > 0)
          recall->fail(fmt::format("entries of the cache '{}' lapse ('valid'), and what has lapsed is not called back; "
                                   "use a cache without",
                                   cache.name));
        cache.calls_back      = true;
        json.back()["recall"] = read_called_back(*recall, out, held);
      }
    } else {
      if (!item.holds("station"))
        refuse_step(item);
      step.kind   = Step::Kind::visit;
      step.target = find_in(platform_.stations, item["station"], "station");
      set_law(step, read_demand(item["demand"]));
      step.bandwidth = item.quantity_or("bandwidth", Unit::bandwidth, 0, 1, 1e15);
      if (step.bandwidth > 0 && reads_route() && !moves_bytes(op_))
        item["bandwidth"].fail(fmt::format("{} moves no bytes, so that it changes nothing; give the time as 'demand'. "
                                           "Allowed: create, read, append, pwrite, pread",
                                           name_of(op_)));
      step.lock_share = item.quantity_or("lock_share", Unit::factor, item.has("lock") ? 1 : 0, 0, 1);
      for (const char* key : {"lock_share", "lock_mode"})
        if (item.has(key) && !item.has("lock"))
          item[key].fail(fmt::format("'{}' is of a lock, and this step takes none; name one with 'lock'", key));
      nlohmann::ordered_json visit{{"station", item["station"].text()},
                                   {"demand", demand_json(item["demand"], step.law)}};
      if (const auto lock = item.find("lock")) {
        step.lock           = static_cast<int32_t>(find_in(platform_.locks, *lock, "lock"));
        visit["lock"]       = lock->text();
        visit["lock_share"] = step.lock_share;
        if (const auto mode = item.find("lock_mode")) {
          const auto text = mode->text();
          if (text != "shared" && text != "exclusive")
            mode->fail(fmt::format("a lock is 'exclusive' or 'shared', not '{}'", text));
          step.lock_shared   = text == "shared";
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
          stripes->fail(fmt::format("{} stripes need as many instances; the station '{}' has {}", step.stripes,
                                    spec.name, spec.count));
        if (stripes->text() != "spanned")
          visit["stripes"] = step.stripes;
        else if (spec.spread == Spread::stripe)
          visit["stripes"] = "spanned";
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
      check_beside_step(item, step);
      out.push_back(step);
      if (const auto recall = item.find("recall"))
        visit["recall"] = read_recall(*recall, step, out, held);
      json.push_back(visit);
    }
    item.finish();
  }
  return json;
}

nlohmann::ordered_json PlatformReader::read_transfer(const YamlNode& item, const YamlNode& transfer,
                                                     std::vector<Step>& out)
{
  if (transfer.text() != "write" && transfer.text() != "read")
    transfer.fail(fmt::format("a transfer is a 'write' to a server or a 'read' from one, not '{}'", transfer.text()));
  Step step;
  step.kind        = Step::Kind::transfer;
  step.to_server   = transfer.text() == "write";
  step.target      = find_in(platform_.stations, item["station"], "station");
  const auto& spec = platform_.stations[step.target];
  if (spec.per == Per::node)
    item["station"].fail("a transfer goes to a station of the system, not of a client node");
  nlohmann::ordered_json json{{"transfer", transfer.text()}, {"station", item["station"].text()}};
  if (const auto stripes = item.find("stripes")) {
    if (stripes->text() != "spanned")
      stripes->fail(fmt::format("the stripes of a transfer are 'spanned', those that its bytes lie in, not '{}'",
                                stripes->text()));
    read_spanned(*stripes, step);
    if (spec.spread == Spread::stripe)
      json["stripes"] = "spanned";
  }
  const Step shards = shards_of(step);
  Way way{step.target, step.to_server};
  way.device = shards.shard_way < 0;
  step.way   = number_of(way);
  check_beside_step(item, step);
  if (step.to_server && spec.redundancy.is_coded() && op_ != OpKind::create) {
    Step before      = step;
    before.to_server = false;
    before           = shards_of(before);
    before.mends     = true;
    out.push_back(before);
  }
  if (const auto demand = item.find("demand")) {
    if (spec.rpc.size == 0)
      demand->fail(fmt::format("the demand of a transfer is that of each of its requests; say with 'rpc' how the "
                               "station '{}' cuts it, or write a visit before the transfer",
                               spec.name));
    Step visit;
    visit.kind    = Step::Kind::visit;
    visit.target  = step.target;
    visit.stripes = step.stripes;
    set_law(visit, read_demand(*demand));
    check_beside_step(item, visit);
    json["demand"] = demand_json(*demand, visit.law);
    way.demand     = visit.law->mean() / spec.rating;
    way.train      = true;
    way.answered   = true;
    Step train     = shards.shard_way < 0 ? step : shards;
    train.kind     = Step::Kind::train;
    train.jump     = shards.shard_way < 0 ? 3 : 4;
    train.way      = number_of(way);
    out.push_back(train);
    out.push_back(visit);
    way.train = false;
    step.way  = number_of(way);
  }
  out.push_back(step);
  if (shards.shard_way >= 0) {
    out.push_back(shards);
    if (!step.to_server) // which has nothing to send before
      std::swap(out.back(), out[out.size() - 2]);
  }
  return json;
}

/// All bytes pass the instance that has the object; what it exchanges with others is at their disks, and its own part
/// at its own.
Step PlatformReader::shards_of(const Step& step)
{
  const auto& spec = platform_.stations[step.target];
  Step shards      = step;
  shards.kind      = Step::Kind::shards;
  if (!spec.redundancy.exists() || (!step.to_server && !spec.redundancy.is_coded()))
    return shards;
  shards.shard_way = number_of({step.target, step.to_server});
  shards.own_way   = number_of({step.target, step.to_server, false});
  return shards;
}

nlohmann::ordered_json PlatformReader::read_disk_access(const YamlNode& item, const YamlNode& access,
                                                        std::vector<Step>& out)
{
  if (access.text() != "write" && access.text() != "read")
    access.fail(fmt::format("an access of a disk is a 'write' or a 'read', not '{}'", access.text()));
  Step step;
  step.kind        = Step::Kind::transfer;
  step.to_server   = access.text() == "write";
  step.target      = find_in(platform_.stations, item["station"], "station");
  const auto& spec = platform_.stations[step.target];
  if (!spec.disk.exists())
    item["station"].fail(
        fmt::format("the station '{}' has no disk; give it one: disk: {{read: 1GB/s, write: 1GB/s}}", spec.name));
  nlohmann::ordered_json json{{"disk", access.text()}, {"station", item["station"].text()}};
  if (const auto stripes = item.find("stripes")) {
    if (stripes->text() != "spanned")
      stripes->fail(fmt::format("the stripes of an access are 'spanned', those that its bytes lie in, not '{}'",
                                stripes->text()));
    read_spanned(*stripes, step);
    if (spec.spread == Spread::stripe)
      json["stripes"] = "spanned";
  }
  step.way = number_of({step.target, step.to_server, false});
  check_beside_step(item, step);
  out.push_back(step);
  return json;
}

/// Its place among all that differ.
uint16_t PlatformReader::number_of(const Way& way)
{
  const auto found = std::find(platform_.ways.begin(), platform_.ways.end(), way);
  const auto place = found - platform_.ways.begin();
  if (found == platform_.ways.end())
    platform_.ways.push_back(way);
  return static_cast<uint16_t>(place);
}

nlohmann::ordered_json PlatformReader::read_recall(const YamlNode& yaml, const Step& visit, std::vector<Step>& out,
                                                   const std::vector<uint32_t>& held)
{
  if (visit.lock < 0 || visit.lock_share == 0 || !platform_.locks[static_cast<size_t>(visit.lock)].hand_over)
    yaml.fail("only a lock that nodes keep (one with a hand_over) and that this step takes is called back");
  return read_called_back(yaml, out, held);
}

nlohmann::ordered_json PlatformReader::read_called_back(const YamlNode& yaml, std::vector<Step>& out,
                                                        const std::vector<uint32_t>& held)
{
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

nlohmann::ordered_json PlatformReader::read_look(const YamlNode& item, const YamlNode& cache, std::vector<Step>& out,
                                                 const std::vector<uint32_t>& held)
{
  Step look;
  look.kind   = Step::Kind::look;
  look.target = find_in(platform_.caches, cache, earlier("cache"));
  check_has_object(cache);
  check_not_held(cache, platform_.caches[look.target], held);
  if (platform_.caches[look.target].page > 0 && reads_route() && !moves_bytes(op_))
    cache.fail(fmt::format("{} moves no bytes that the cache '{}' could have; let it hold objects. Allowed: create, "
                           "read, append, pwrite, pread",
                           name_of(op_), cache.text()));
  check_beside_step(item, look);
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
  const auto evicts = item.find("evict");
  look.evicts       = evicts.has_value();
  out.push_back(look);
  out.insert(out.end(), hit.begin(), hit.end());
  out.insert(out.end(), miss.begin(), miss.end());
  if (evicts) {
    for (const auto* steps : {&hit, &miss})
      if (std::any_of(steps->begin(), steps->end(), [](const Step& step) { return step.kind == Step::Kind::look; }))
        evicts->fail(fmt::format("what the cache '{}' evicts goes by the last look at a cache; put other caches before "
                                 "this step or after it",
                                 cache.text()));
    std::vector<Step> evict;
    json["evict"] = read_steps(*evicts, evict, held);
    if (evict.size() > most_steps)
      evicts->fail(fmt::format("an eviction may have {} steps", most_steps));
    Step branch;
    branch.kind = Step::Kind::evicted;
    branch.jump = static_cast<uint16_t>(evict.size() + 1);
    out.push_back(branch);
    out.insert(out.end(), evict.begin(), evict.end());
  }
  return json;
}

std::string PlatformReader::read_forget_of(const YamlNode& of, Step& step)
{
  static const std::vector<std::string> known{"elsewhere", "everywhere"};
  if (std::find(known.begin(), known.end(), of.text()) == known.end())
    of.fail(fmt::format("nothing can be forgotten of '{}'. {}", of.text(), allowed_sentence(of.text(), known)));
  auto& cache = platform_.caches[step.target];
  if (!cache.of_nodes() && !cache.of_ranks())
    of.fail(fmt::format("the cache '{}' is no node's and no rank's; only what others have is forgotten {}", cache.name,
                        of.text()));
  step.flush                = of.text() == "elsewhere" ? Flush::elsewhere : Flush::everywhere;
  cache.forgotten_by_others = true;
  return of.text();
}

bool PlatformReader::moves_bytes(OpKind kind)
{
  Op op;
  op.kind = kind;
  op.size = 1;
  return op.bytes() > 0;
}

void PlatformReader::refuse_without_bytes() const
{
  for (size_t i = 0; i < platform_.mechanisms.size(); ++i) {
    const auto& mechanism = *platform_.mechanisms[i];
    const auto* kind      = mechanism.kind;
    if (kind->by_bytes_alone == nullptr || !kind->by_bytes_alone(mechanism))
      continue;
    const auto uses = [i](const Step& step) { return step.kind == Step::Kind::use && step.target == i; };
    size_t every    = 0; // steps, also those of drains, fills and fetches, which have bytes
    platform_.for_each_step([&](const Step& step, const BufferSpec*) { every += uses(step) ? 1 : 0; });
    size_t idle = 0;
    std::vector<std::string> names;
    for (size_t k = 0; k < op_count; ++k)
      if (const auto count = std::count_if(platform_.routes[k].steps.begin(), platform_.routes[k].steps.end(), uses);
          count > 0 && !moves_bytes(static_cast<OpKind>(k))) {
        idle += static_cast<size_t>(count);
        names.emplace_back(op_names[k]);
      }
    const auto yaml = yaml_[kind->section][mechanism.name];
    if (idle > 0 && idle == every && (yaml.file() == platform_.file || !is_of_catalogue(yaml.file())))
      yaml.fail(fmt::format("the {0} '{1}' counts bytes alone, and what uses it moves none ({2}): it changes nothing. "
                            "Give it a 'rate' of requests, or use it where bytes are moved. Allowed: create, read, "
                            "append, pwrite, pread",
                            kind->word, mechanism.name, fmt::join(names, ", ")));
  }
}

void PlatformReader::check_has_object(const YamlNode& cache) const
{
  if (reads_route() && op_ == OpKind::phase)
    cache.fail("waking up is of no object that a cache could have");
}

void PlatformReader::read_spanned(const YamlNode& yaml, Step& step) const
{
  const auto& spec = platform_.stations[step.target];
  if (spec.spread != Spread::stripe)
    return; // objects lie whole on one instance
  if (spec.stripe_count > most_parts)
    yaml.fail(fmt::format("an access may have at most {} parts; the station '{}' has a stripe_count of {}", most_parts,
                          spec.name, spec.stripe_count));
  if (spec.stripe_count > 1)
    step.stripes = Step::spanned;
}

void PlatformReader::read_operations()
{
  for (const auto& [name, yaml] : yaml_["operations"].entries()) {
    const auto kind = name == "wake" ? OpKind::phase : op_named(name);
    if (!kind || name == "phase")
      yaml.fail(unknown_op(name));
    op_              = *kind;
    Route& route     = platform_.routes[static_cast<size_t>(*kind)];
    route.served     = true;
    route.where      = yaml.where();
    auto json        = nlohmann::ordered_json::array();
    const auto parts = parts_of(*kind);
    if (yaml.is_sequence()) {
      if (!parts.empty())
        yaml.fail(
            fmt::format("the operation '{}' has the parts {}, each with steps of its own", name, part_list(parts)));
      json.push_back({{"part", ""}, {"steps", read_steps(yaml, route.steps, {})}});
    } else {
      if (parts.empty())
        yaml.fail(fmt::format("the operation '{}' has no parts; write its steps as a list", name));
      yaml.allow_only({parts.begin(), parts.end()});
      for (const auto part : parts) {
        const auto steps   = yaml.find(std::string(part));
        const size_t begin = route.steps.size();
        json.push_back(
            {{"part", part}, {"steps", steps ? read_steps(*steps, route.steps, {}) : nlohmann::ordered_json::array()}});
        if (begin > 0 && (part == "write" || part == "read")) // which an empty object passes over
          route.steps[begin - 1].jump = static_cast<uint16_t>(route.steps.size() - begin + 1);
        add_marker(route, Step::Kind::end_part);
      }
    }
    add_marker(route, Step::Kind::end);
    platform_.routes_json[name] = json;
  }
  lend_route(OpKind::mkdir, OpKind::create);
  lend_route(OpKind::rmdir, OpKind::unlink);
}

void PlatformReader::add_marker(Route& route, Step::Kind kind)
{
  Step step;
  step.kind = kind;
  route.steps.push_back(step);
}

std::string PlatformReader::part_list(std::span<const std::string_view> parts)
{
  std::string list;
  for (const auto part : parts)
    list += (list.empty() ? "" : ", ") + std::string(part);
  return list;
}

void PlatformReader::lend_route(OpKind to, OpKind from)
{
  Route& route       = platform_.routes[static_cast<size_t>(to)];
  const Route& model = platform_.routes[static_cast<size_t>(from)];
  if (route.served || !model.served)
    return;
  route.served     = true;
  const bool jumps = std::any_of(model.steps.begin(), model.steps.end(), [](const Step& step) {
    return step.kind == Step::Kind::look || step.kind == Step::Kind::recalled || step.kind == Step::Kind::evicted ||
           step.kind == Step::Kind::train || step.kind == Step::Kind::shards;
  });
  for (const auto& step : model.steps) {
    if (step.kind == Step::Kind::end_part) { // a directory has a name, as a file that is opened, and no content
      add_marker(route, Step::Kind::end);
      return;
    }
    if (step.kind != Step::Kind::transfer && step.kind != Step::Kind::train && step.kind != Step::Kind::shards &&
        step.kind != Step::Kind::enter && step.kind != Step::Kind::flush &&
        !(step.kind == Step::Kind::use && !platform_.mechanisms[step.target]->kind->directories) &&
        !(step.kind == Step::Kind::leave && !platform_.mechanisms[step.target]->kind->directories) &&
        !(step.kind == Step::Kind::look && step.forgets && platform_.caches[step.target].page > 0 &&
          !platform_.caches[step.target].calls_back))
      route.steps.push_back(step);
    else if (jumps) // to the next step, so that others lead where they did
      add_marker(route, Step::Kind::jump);
  }
}

} // namespace iocast
