// SPDX-License-Identifier: Apache-2.0
#include "models/mechanism.hpp"

#include "models/platform_reader.hpp"

#include <algorithm>
#include <fmt/ranges.h>
#include <tuple>

namespace iocast {

namespace {
std::vector<MechanismKind>& registry()
{
  static std::vector<MechanismKind> kinds;
  return kinds;
}
} // namespace

bool register_mechanism(MechanismKind kind)
{
  auto& kinds      = registry();
  const auto place = std::find_if(kinds.begin(), kinds.end(), [&](const MechanismKind& other) {
    return std::tie(other.order, other.section) > std::tie(kind.order, kind.section);
  });
  kinds.insert(place, std::move(kind));
  return true;
}

const std::vector<MechanismKind>& mechanism_kinds()
{
  return registry();
}

const Key* MechanismKind::pieces() const
{
  const auto found = std::find_if(keys.begin(), keys.end(), [](const Key& key) { return key.pieces.has_value(); });
  return found == keys.end() ? nullptr : &*found;
}

std::vector<std::pair<std::string, std::string>> MechanismKind::meanings() const
{
  std::vector<std::pair<std::string, std::string>> all;
  std::vector<std::string> names;
  for (const Per per : owners)
    names.emplace_back(fmt::format("{}{}", name_of(per), names.empty() ? " (default)" : ""));
  if (!names.empty())
    all.emplace_back("per", fmt::format("{}: owner of a {}", fmt::join(names, " or "), word));
  if (has_place())
    all.emplace_back("station", "in place of per: each instance of that station has one");
  for (const auto& key : keys)
    all.emplace_back(key.name, key.meaning);
  all.insert(all.end(), step_keys.begin(), step_keys.end());
  if (!step.empty())
    all.emplace_back(step, step_meaning);
  return all;
}

nlohmann::ordered_json MechanismKind::declared(const std::string& key) const
{
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const Key& one) { return one.name == key; });
  if (found == keys.end())
    return {{"value", key == "per" ? "word" : key == "station" || key == step ? "name" : "steps"}};
  if (!found->value.empty())
    return {{"value", found->value}};
  nlohmann::ordered_json json{{"unit", unit_name(found->unit)}, {"low", found->low}, {"high", found->high}};
  if (found->fallback)
    json["default"] = *found->fallback;
  else if (found->derived)
    json["default"] = found->derived_as;
  return json;
}

nlohmann::ordered_json MechanismKind::drawn() const
{
  nlohmann::ordered_json json{{"section", section}, {"word", word},       {"step", step},
                              {"says", says},       {"example", example}, {"use", use}};
  if (const Key* key = pieces())
    json["pieces"] = key->name;
  json["units"] = json["defaults"] = nlohmann::ordered_json::object();
  for (const auto& key : keys) {
    if (!key.set)
      continue;
    json["units"][key.name] = unit_name(key.unit);
    if (key.fallback)
      json["defaults"][key.name] = *key.fallback;
  }
  return json;
}

namespace {
bool is_set(const MechanismKind& kind, const std::string& name, const Named& spec, const Platform& platform)
{
  const auto key   = std::find_if(kind.keys.begin(), kind.keys.end(), [&](const Key& one) { return one.name == name; });
  const auto value = key->get(spec, platform, false);
  return !value.is_null() && value != (key->set ? nlohmann::ordered_json(key->fallback.value_or(0)) : key->usual);
}

bool has_needs(const MechanismKind& kind, const Key& key, const Named& spec, const Platform& platform)
{
  return key.needs.empty() || std::any_of(key.needs.begin(), key.needs.end(),
                                          [&](const std::string& name) { return is_set(kind, name, spec, platform); });
}

nlohmann::ordered_json part_json(const MechanismKind& kind, const Named& part, const Platform& platform, bool quantiles)
{
  auto json = nlohmann::ordered_json::object();
  if (!kind.owners.empty()) {
    const auto& spec = static_cast<const MechanismSpec&>(part);
    if (spec.station >= 0)
      json["station"] = platform.stations[static_cast<size_t>(spec.station)].name;
    else
      json["per"] = name_of(spec.per);
  }
  for (const auto& key : kind.keys) {
    if (!key.get || (key.sparse && !is_set(kind, key.name, part, platform)) || !has_needs(kind, key, part, platform))
      continue;
    if (auto value = key.get(part, platform, quantiles); !value.is_null())
      json[key.name] = std::move(value);
  }
  return json;
}
} // namespace

void write_mechanisms(const Platform& platform, bool quantiles, nlohmann::ordered_json& json)
{
  auto part = platform.parts.begin();
  for (const auto& kind : mechanism_kinds()) {
    if (kind.listed)
      json[kind.section] = nlohmann::ordered_json::object();
    for (; part != platform.parts.end() && (*part)->kind == &kind; ++part)
      json[kind.section][(*part)->name] = part_json(kind, **part, platform, quantiles);
  }
}

// Reading -------------------------------------------------------------------------------------------------------------

void PlatformReader::read_mechanisms()
{
  for (const auto& kind : mechanism_kinds())
    if (const auto section = yaml_.find(kind.section); section)
      for (const auto& [name, yaml] : section->entries()) {
        const std::shared_ptr<Named> part = kind.kept.specify();
        part->kind                        = &kind;
        part->name                        = name;
        refuse_foreign_words(yaml, kind.foreign);
        if (!kind.owners.empty())
          read_owner(kind, yaml, static_cast<MechanismSpec&>(*part));
        read_keys(kind, yaml, *part);
        if (kind.check != nullptr)
          kind.check(*part, yaml, platform_);
        yaml.finish();
        kind.kept.keep(platform_, part);
        platform_.parts.push_back(part);
      }
}

void PlatformReader::read_owner(const MechanismKind& kind, const YamlNode& yaml, MechanismSpec& spec) const
{
  std::vector<std::string> owners;
  for (auto per = kind.owners.rbegin(); per != kind.owners.rend(); ++per)
    owners.emplace_back(name_of(*per));
  spec.per = kind.owners.front();
  if (const auto per = yaml.find("per"))
    spec.per = kind.owners[owners.size() - 1 - place_of(*per, owners, no_owner)];
  const auto station = kind.has_place() ? yaml.find("station") : std::nullopt;
  if (!station)
    return;
  if (yaml.has("per"))
    station->fail(fmt::format("a {} has an owner (per: {}), or each instance of a station has one, not both", kind.word,
                              fmt::join(owners, " or ")));
  spec.station = static_cast<int32_t>(read_station(*station));
  if (platform_.stations[static_cast<size_t>(spec.station)].per == Per::node)
    station->fail("a station of the client nodes has one instance each; write per: node instead");
}

namespace {

/// A part that has none of `keys`: with what it has in their place.
[[noreturn]] void refuse_without(const MechanismKind& kind, const std::vector<std::string>& keys, const YamlNode& yaml)
{
  for (const auto& [key, value] : yaml.entries()) {
    const auto has_name = [&key](const auto& one) { return one.name == key; };
    if (key != "per" && key != "station" && std::none_of(kind.keys.begin(), kind.keys.end(), has_name))
      value.fail(fmt::format("a {} has no key '{}'. {}", kind.word, key, allowed_sentence(key, keys)));
  }
  yaml.fail(fmt::format("a {} needs one of these keys: {}", kind.word, fmt::join(keys, ", ")));
}

} // namespace

void PlatformReader::read_keys(const MechanismKind& kind, const YamlNode& yaml, Named& part)
{
  for (const auto& keys : kind.one_of) {
    const auto is_there = [&](const std::string& key) { return yaml.has(key); };
    const auto count    = std::count_if(keys.begin(), keys.end(), is_there);
    if (count == 0)
      refuse_without(kind, keys, yaml);
    if (count > 1)
      yaml[*std::find_if(keys.rbegin(), keys.rend(), is_there)].fail(
          fmt::format("a {} has one of these keys, and not two: {}", kind.word, fmt::join(keys, ", ")));
  }
  for (const auto& key : kind.keys) {
    const auto given = yaml.find(key.name);
    const bool has   = has_needs(kind, key, part, platform_);
    if (given && !has)
      given->fail(fmt::format("'{}' has no effect without '{}'; give that as well, or leave this out", key.name,
                              fmt::join(key.needs, "' or '")));
    if (given && key.read)
      key.read(*this, part, *given);
    else if (given)
      key.set(part, given->quantity(key.unit, key.low, key.high));
    else if (key.fallback)
      key.set(part, *key.fallback);
    else if (has && !key.derived && !key.optional)
      yaml[key.name]; // is required
  }
  for (const auto& key : kind.keys)
    if (key.derived && !yaml.has(key.name) && has_needs(kind, key, part, platform_))
      key.set(part, key.derived(part));
}

nlohmann::ordered_json PlatformReader::read_pieces(const PieceSteps& pieces, const YamlNode& yaml,
                                                   const MechanismSpec& spec, std::vector<Step>& steps)
{
  piece_of_ = &spec;
  pieces_   = &pieces;
  auto json = read_steps(yaml, steps, {});
  piece_of_ = nullptr;
  pieces_   = nullptr;
  if (steps.empty())
    yaml.fail(fmt::format("{} that goes through no step is there at once; give it at least one", pieces.what));
  steps.emplace_back().kind = Step::Kind::drained;
  return json;
}

void PlatformReader::check_mechanisms() const
{
  for (const auto& part : platform_.parts)
    if (part->kind->check_routes != nullptr)
      part->kind->check_routes(*part, yaml_[part->kind->section][part->name], platform_);
}

const MechanismKind* PlatformReader::mechanism_of(const YamlNode& item)
{
  for (const auto& kind : mechanism_kinds())
    if (!kind.step.empty() && item.holds(kind.step))
      return &kind;
  return nullptr;
}

nlohmann::ordered_json PlatformReader::read_use(const MechanismKind& kind, const YamlNode& item, std::vector<Step>& out,
                                                const std::vector<uint32_t>& held)
{
  const auto named = item[kind.step];
  if (!reads_route() || op_ == OpKind::phase)
    named.fail(fmt::format("only an operation has the step '{}' of a {}, not {}", kind.step, kind.word,
                           reads_route() ? "waking up" : "what goes on in the background"));
  std::vector<std::string> names;
  Step step;
  step.kind   = Step::Kind::use;
  step.target = static_cast<uint32_t>(platform_.mechanisms.size());
  for (uint32_t i = 0; i < platform_.mechanisms.size(); ++i)
    if (const auto& spec = *platform_.mechanisms[i]; spec.kind == &kind) {
      names.push_back(spec.name);
      if (spec.name == named.text())
        step.target = i;
    }
  if (step.target == platform_.mechanisms.size())
    named.fail(fmt::format("there is no {} '{}'. {}", kind.word, named.text(), allowed_sentence(named.text(), names)));
  const auto& spec = *platform_.mechanisms[step.target];
  check_not_held(named, spec, held);
  out.push_back(step);
  nlohmann::ordered_json json{{kind.step, named.text()}};
  if (!kind.encloses)
    return json;
  if (std::find(enclosed_.begin(), enclosed_.end(), step.target) != enclosed_.end())
    named.fail(
        fmt::format("the {} '{}' is already in use here; a request would wait for itself", kind.word, spec.name));
  enclosed_.push_back(step.target);
  json["steps"] = read_steps(item["steps"], out, held);
  enclosed_.pop_back();
  step.kind = Step::Kind::leave;
  out.push_back(step);
  return json;
}

void PlatformReader::check_beside_step(const YamlNode& item, const Step& step) const
{
  if (pieces_ == nullptr)
    return;
  const auto& [piece, what, through, refused, bytes, of_a_node] = *pieces_;
  const auto& spec                                              = *piece_of_;
  const std::string owner                                       = fmt::format("{} '{}'", spec.kind->word, spec.name);
  if (step.times != Times::once)
    item["per"].fail(
        fmt::format("{} has no entries and no blocks; its demand is per operation, which is per {}", what, piece));
  if (bytes == PieceSteps::Bytes::none && step.kind == Step::Kind::visit) {
    if (step.stripes == Step::spanned)
      item["stripes"].fail(fmt::format("{} has no bytes that could span stripes; give a number of them", what));
    if (step.bandwidth > 0)
      item["bandwidth"].fail(fmt::format("{} has no bytes; give the time of a {} as its demand", what, piece));
    if (step.lock >= 0)
      if (const auto& lock = platform_.locks[static_cast<size_t>(step.lock)]; lock.per != Per::system || lock.hand_over)
        item["lock"].fail(fmt::format("{} is of no dataset and of no object; it can take locks that are per: system "
                                      "and have no hand_over",
                                      what));
  }
  if (step.kind == Step::Kind::transfer) {
    const bool sends    = platform_.ways[step.way].network;
    const bool is_read  = bytes == PieceSteps::Bytes::read;
    const bool has_home = spec.of_nodes() || (spec.station >= 0 && !is_read);
    if ((sends || is_read) && step.to_server != (bytes == PieceSteps::Bytes::written))
      item[sends ? "transfer" : "disk"].fail(
          fmt::format("{} is {}", what, step.to_server ? "read, not written" : "written, not read"));
    if (sends && !has_home)
      item["transfer"].fail(
          fmt::format("the {} is at no place that a transfer could begin or end at; let it be of a "
                      "node{}",
                      owner, is_read ? ", or let the bytes move by the bandwidth of a visit" : " or a station"));
    if (sends && spec.station == static_cast<int32_t>(step.target))
      item["station"].fail(fmt::format("the {} is at that station already", owner));
  }
  if (step.kind == Step::Kind::look && platform_.caches[step.target].of_ranks())
    item[step.forgets ? "forget" : "cache"].fail(
        fmt::format("{} is no rank's and can't look into the cache of one", what));
  if (!spec.of_nodes() && !of_a_node)
    check_nodeless_step(item, step, fmt::format("the {} is no node's, and so {} can't ", owner, what));
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

void PlatformReader::check_not_held(const YamlNode& reference, const MechanismSpec& spec,
                                    const std::vector<uint32_t>& held) const
{
  for (const auto& step : spec.steps) {
    if (step.kind == Step::Kind::seize && std::find(held.begin(), held.end(), step.target) != held.end())
      reference.fail(fmt::format("{} '{}' needs the limit '{}' to {}, which is held here; a request would wait for "
                                 "itself",
                                 spec.kind->word, spec.name, platform_.limits[step.target].name,
                                 spec.kind->pieces()->name));
    if (step.kind == Step::Kind::look && !step.forgets) // what is fetched may wait for what another cache fetches
      check_not_held(reference, platform_.caches[step.target], held);
  }
}

} // namespace iocast
