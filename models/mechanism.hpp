// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "input/yaml.hpp"
#include "models/engine.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace iocast {

class PlatformReader;

/// Steps that a mechanism has done in the background, each time for one piece.
struct PieceSteps {
  enum class Bytes : uint8_t { none, written, read, staged };

  std::string piece; ///< what goes through them: batch
  std::string what;  ///< what a sentence calls that
  std::string through = "delays, visits to stations and slots of limits";
  std::vector<std::string> refused{"transfer", "disk", "buffer", "flush", "cache", "forget"}; ///< keys of steps
  Bytes bytes    = Bytes::none;                                                               ///< that transfers move
  bool of_a_node = false; ///< each piece is some node's, wherever the mechanism is; else those of a node's alone
};

/// A key in a section of platform files, declared once: it is read, checked, reported and described by this.
struct Key {
  std::string name;
  std::string meaning;
  Unit unit   = Unit::count;
  double low  = 0;
  double high = 0;
  std::optional<double> fallback{};              ///< none, and nothing derived: the key is required
  std::function<double(const Named&)> derived{}; ///< fallback that other keys decide ...
  std::string derived_as{};                      ///< ... in words: size - batch
  bool optional = false;                         ///< it may be left out though it has no fallback
  bool sparse   = false;                         ///< the resolved form has it only where it is set
  std::vector<std::string> needs{};              ///< without one of these, which stand before it, it is refused
  std::optional<PieceSteps> pieces{};            ///< of steps
  std::string value{};                           ///< what it is when it is no number: name, word, demand, list, steps
  nlohmann::ordered_json usual{};                ///< of a word: what it is unless it is set
  // These are made by number() and the like; a number has `set`, all else `read`.
  std::function<void(Named&, double)> set{};
  std::function<void(PlatformReader&, Named&, const YamlNode&)> read{};
  std::function<nlohmann::ordered_json(const Named&, const Platform&, bool quantiles)>
      get{}; ///< none, or null: not in that form

  Key needing(std::vector<std::string> keys) const
  {
    Key key   = *this;
    key.needs = std::move(keys);
    return key;
  }
  Key or_none() const
  {
    Key key      = *this;
    key.optional = true;
    return key;
  }
  Key where_set() const
  {
    Key key    = or_none();
    key.sparse = true;
    return key;
  }
  /// Its default is what this other key has.
  template <class Spec, class Number> Key as(const char* words, Number Spec::*other) const
  {
    Key key        = *this;
    key.derived_as = words;
    key.derived    = [other](const Named& spec) { return static_cast<double>(static_cast<const Spec&>(spec).*other); };
    return key;
  }
};

/// The key whose number is this member of the specification.
template <class Spec, class Number> Key number(Number Spec::*member, Key key)
{
  key.set = [member](Named& spec, double value) { static_cast<Spec&>(spec).*member = static_cast<Number>(value); };
  key.get = [member](const Named& spec, const Platform&, bool) -> nlohmann::ordered_json {
    const Number& value = static_cast<const Spec&>(spec).*member;
    if constexpr (std::is_arithmetic_v<Number>)
      return value;
    else // none, or a number
      return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
  };
  return key;
}

/// The key whose value is read to this member by read(reader, spec, yaml), and written by json(member, platform,
/// quantiles).
template <class Spec, class Member, class Read, class Json>
Key value(const char* what, Member Spec::*member, Key key, Read read, Json json)
{
  key.value = what;
  key.read  = [=](PlatformReader& reader, Named& part, const YamlNode& yaml) {
    auto& spec   = static_cast<Spec&>(part);
    spec.*member = read(reader, spec, yaml);
  };
  key.get = [=](const Named& spec, const Platform& platform, bool quantiles) -> nlohmann::ordered_json {
    return json(static_cast<const Spec&>(spec).*member, platform, quantiles);
  };
  return key;
}

/// What is made for a part of a section, and where a platform has it.
struct Kept {
  std::shared_ptr<Named> (*specify)();
  void (*keep)(Platform& platform, const std::shared_ptr<Named>& spec);
};

template <class Spec> std::shared_ptr<Named> specify()
{
  return std::make_shared<Spec>();
}

template <class Spec>
constexpr Kept kept{specify<Spec>, [](Platform& platform, const std::shared_ptr<Named>& spec) {
                      platform.mechanisms.push_back(std::static_pointer_cast<const MechanismSpec>(spec));
                    }};

/// The engine itself does it, by these specifications.
template <class Spec, std::vector<Spec> Platform::*list>
constexpr Kept kept_in{specify<Spec>, [](Platform& platform, const std::shared_ptr<Named>& spec) {
                         (platform.*list).push_back(static_cast<const Spec&>(*spec));
                       }};

template <class Made, class Spec> std::unique_ptr<Mechanism> make(const Engine& engine, const MechanismSpec& spec)
{
  return std::make_unique<Made>(engine, static_cast<const Spec&>(spec));
}

/// A kind of mechanism. One file of models/mechanisms/ has all of it, and registers it. Where the engine itself does
/// it, as with locks, the file has the declarations.
struct MechanismKind {
  std::string section; ///< of platform files: pools
  std::string word;    ///< for one of them: pool
  std::string summary;
  std::string step{}; ///< key of the step that names one: take; none where no route has a step of it
  std::string step_meaning{};
  std::string says{};    ///< what a drawing says of the step; {} is the name
  std::string example{}; ///< one of its section whose every number matters to creates; `s` is a station
  std::string use{};     ///< its step, of one that is called m
  std::vector<Key> keys;
  std::vector<std::vector<std::string>> one_of{};             ///< sets of keys of which one part has one, and not two
  std::vector<std::pair<std::string, std::string>> foreign{}; ///< keys that others use for ours, with ours
  Kept kept;
  std::unique_ptr<Mechanism> (*make)(const Engine& engine, const MechanismSpec& spec) = nullptr;
  std::vector<std::pair<std::string, std::string>> step_keys{}; ///< beside its own, of lists of steps
  std::vector<Per> owners{Per::node, Per::system}; ///< the first is the default; with nodes, a station's instances too
  bool encloses    = false;                        ///< its step has `steps`, and a job leaves when it is through them
  bool in_routes   = true;                         ///< they name it, and one that none names is refused
  bool directories = true; ///< mkdir and rmdir have its step where they go the way of create and unlink
  /// Refuses what no single key's bounds refuse, and settles what several decide. @throws InputError
  void (*check)(Named& spec, const YamlNode& yaml, const Platform& platform) = nullptr;
  /// Refuses what only routes show, which are read later. @throws InputError
  void (*check_routes)(const Named& spec, const YamlNode& yaml, const Platform& platform) = nullptr;
  int order   = 9;     ///< of its section among all, as they are read and resolved; then by name
  bool listed = false; ///< the resolved form has the section even where it is empty
  bool (*by_bytes)(const MechanismSpec& spec)       = nullptr; ///< whether more bytes may take longer; none: they don't
  bool (*by_bytes_alone)(const MechanismSpec& spec) = nullptr; ///< whether it does nothing where no bytes are moved

  bool has_place() const { return !owners.empty() && owners.front() == Per::node; }
  /// The key of the steps that its pieces go through, or none.
  const Key* pieces() const;
  /// Keys and meanings in the order of a section, those of place and step among them.
  std::vector<std::pair<std::string, std::string>> meanings() const;
  /// What is declared of a key beside its meaning: unit, bounds and default, or the kind of value.
  nlohmann::ordered_json declared(const std::string& key) const;
  /// What a drawing has to know: word, step, its words, the key of its pieces' steps, units, defaults.
  nlohmann::ordered_json drawn() const;
};

/// Called from the file of a mechanism before main() begins.
bool register_mechanism(MechanismKind kind);
/// All of them, by order and section.
const std::vector<MechanismKind>& mechanism_kinds();

/// Puts all sections of mechanisms in the resolved form of a platform.
void write_mechanisms(const Platform& platform, bool quantiles, nlohmann::ordered_json& json);

} // namespace iocast
