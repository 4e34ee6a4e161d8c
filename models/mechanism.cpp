// SPDX-License-Identifier: Apache-2.0
#include "models/mechanism.hpp"

#include "models/platform_reader.hpp"

#include <algorithm>
#include <fmt/ranges.h>

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
  const auto place = std::find_if(kinds.begin(), kinds.end(),
                                  [&](const MechanismKind& other) { return other.section > kind.section; });
  kinds.insert(place, std::move(kind));
  return true;
}

const std::vector<MechanismKind>& mechanism_kinds()
{
  return registry();
}

std::vector<std::pair<std::string, std::string>> MechanismKind::meanings() const
{
  std::vector<std::string> names;
  for (const Per per : owners)
    names.emplace_back(name_of(per));
  names.front() += " (default)";
  std::vector<std::pair<std::string, std::string>> all{
      {"per", fmt::format("{}: owner of a {}", fmt::join(names, " or "), word)}};
  if (has_place())
    all.emplace_back("station", "in place of per: each instance of that station has one");
  for (const auto& key : keys)
    all.emplace_back(key.name, key.meaning);
  if (pieces)
    all.emplace_back(pieces->key, pieces->meaning);
  all.emplace_back(step, step_meaning);
  return all;
}

nlohmann::ordered_json MechanismKind::declared(const std::string& key) const
{
  if (pieces && pieces->key == key)
    return {{"value", "steps"}};
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const Key& one) { return one.name == key; });
  if (found == keys.end())
    return {{"value", key == "per" ? "word" : "name"}};
  nlohmann::ordered_json json{{"unit", unit_name(found->unit)}, {"low", found->low}, {"high", found->high}};
  if (found->fallback)
    json["default"] = *found->fallback;
  return json;
}

nlohmann::ordered_json MechanismKind::drawn() const
{
  nlohmann::ordered_json json{{"section", section}, {"word", word},       {"step", step},
                              {"says", says},       {"example", example}, {"use", use}};
  if (pieces)
    json["pieces"] = pieces->key;
  json["units"] = json["defaults"] = nlohmann::ordered_json::object();
  for (const auto& key : keys) {
    json["units"][key.name] = unit_name(key.unit);
    if (key.fallback)
      json["defaults"][key.name] = *key.fallback;
  }
  return json;
}

nlohmann::ordered_json mechanism_json(const MechanismSpec& spec, const std::vector<StationSpec>& stations)
{
  nlohmann::ordered_json json;
  if (spec.station >= 0)
    json["station"] = stations[static_cast<size_t>(spec.station)].name;
  else
    json["per"] = name_of(spec.per);
  for (const auto& key : spec.kind->keys)
    json[key.name] = key.get(spec);
  if (spec.kind->pieces)
    json[spec.kind->pieces->key] = spec.steps_json;
  return json;
}

// Reading -------------------------------------------------------------------------------------------------------------

void PlatformReader::read_mechanisms()
{
  for (const auto& kind : mechanism_kinds())
    if (const auto section = yaml_.find(kind.section))
      for (const auto& [name, yaml] : section->entries())
        platform_.mechanisms.push_back(read_mechanism(kind, name, yaml));
}

std::shared_ptr<const MechanismSpec> PlatformReader::read_mechanism(const MechanismKind& kind, const std::string& name,
                                                                    const YamlNode& yaml)
{
  std::shared_ptr<MechanismSpec> spec = kind.specify();
  spec->kind                          = &kind;
  spec->name                          = name;
  if (kind.has_place()) {
    read_place(yaml, *spec, kind.word.c_str());
  } else {
    std::vector<std::string> owners;
    for (const Per per : kind.owners)
      owners.emplace_back(name_of(per));
    spec->per = read_per(yaml, kind.owners.front(), owners);
  }
  for (const auto& key : kind.keys)
    if (const auto given = yaml.find(key.name); given || !(key.fallback || key.derived))
      key.set(*spec, (given ? *given : yaml[key.name]).quantity(key.unit, key.low, key.high));
    else if (key.fallback)
      key.set(*spec, *key.fallback);
  for (const auto& key : kind.keys)
    if (key.derived && !yaml.has(key.name))
      key.set(*spec, key.derived(*spec));
  if (kind.check != nullptr)
    kind.check(*spec, yaml);
  if (kind.pieces) {
    const auto steps = yaml[kind.pieces->key];
    piece_of_        = spec.get();
    spec->steps_json = read_steps(steps, spec->steps, {});
    piece_of_        = nullptr;
    if (spec->steps.empty())
      steps.fail(
          fmt::format("a {} that goes through no step is there at once; give it at least one", kind.pieces->piece));
    spec->steps.emplace_back().kind = Step::Kind::drained;
  }
  yaml.finish();
  return spec;
}

const MechanismKind* PlatformReader::mechanism_of(const YamlNode& item)
{
  for (const auto& kind : mechanism_kinds())
    if (item.holds(kind.step))
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
  if (kind.pieces)
    check_not_held(named, spec.steps,
                   fmt::format("{} '{}' needs the limit '{{}}' to {}", kind.word, spec.name, kind.pieces->key), held);
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

void PlatformReader::check_piece_step(const YamlNode& item, const Step& step) const
{
  const auto& pieces      = *piece_of_->kind->pieces;
  const std::string piece = fmt::format("a {} of a {}", pieces.piece, piece_of_->kind->word);
  switch (step.kind) {
    case Step::Kind::visit:
      if (step.times != Times::once)
        item["per"].fail(fmt::format("{} has no entries and no blocks; its demand is per operation, which is per {}",
                                     piece, pieces.piece));
      if (step.stripes == Step::spanned)
        item["stripes"].fail(fmt::format("{} has no bytes that could span stripes; give a number of them", piece));
      if (step.bandwidth > 0)
        item["bandwidth"].fail(
            fmt::format("{} has no bytes; give the time of a {} as its demand", piece, pieces.piece));
      if (step.lock >= 0)
        if (const auto& lock = platform_.locks[static_cast<size_t>(step.lock)];
            lock.per != Per::system || lock.hand_over)
          item["lock"].fail(fmt::format("{} is of no dataset and of no object; it can take locks that are per: system "
                                        "and have no hand_over",
                                        piece));
      break;
    case Step::Kind::delay:
    case Step::Kind::seize:
      break;
    default:
      for (const char* key : {"transfer", "disk", "buffer", "flush", "cache", "forget"})
        if (item.has(key))
          item[key].fail(fmt::format("{} goes through delays, visits to stations and slots of limits", piece));
  }
  if (!piece_of_->of_nodes() && !pieces.of_a_node)
    check_nodeless_step(item, step,
                        fmt::format("the {} '{}' is no node's, and so its {} can't ", piece_of_->kind->word,
                                    piece_of_->name, pieces.piece));
}

void PlatformReader::check_mechanisms_used(std::vector<bool>& stations) const
{
  std::vector<bool> used(platform_.mechanisms.size());
  platform_.for_each_step([&](const Step& step, const BufferSpec*) {
    if (step.kind == Step::Kind::use)
      used[step.target] = true;
  });
  for (const auto& kind : mechanism_kinds()) {
    std::vector<std::string> names;
    for (size_t i = 0; i < used.size(); ++i)
      if (used[i] && platform_.mechanisms[i]->kind == &kind)
        names.push_back(platform_.mechanisms[i]->name);
    for (size_t i = 0; i < used.size(); ++i)
      if (const auto& spec = *platform_.mechanisms[i]; spec.kind == &kind) {
        if (!used[i])
          refuse_unused(kind.section.c_str(), kind.word.c_str(), spec.name, names);
        if (spec.station >= 0)
          stations[static_cast<size_t>(spec.station)] = true;
      }
  }
}

} // namespace iocast
