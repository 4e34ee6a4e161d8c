// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "input/yaml.hpp"
#include "models/engine.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace iocast {

/// A number in the section of a mechanism, declared once: it is read, checked, reported and described by this.
struct Key {
  std::string name;
  std::string meaning;
  Unit unit   = Unit::count;
  double low  = 0;
  double high = 0;
  std::optional<double> fallback{};                      ///< none, and nothing derived: the key is required
  std::function<double(const MechanismSpec&)> derived{}; ///< fallback that other keys decide
  std::function<void(MechanismSpec&, double)> set{};     ///< these two are made by number()
  std::function<nlohmann::ordered_json(const MechanismSpec&)> get{};
};

/// The key whose number is this member of the mechanism's specification.
template <class Spec, class Number> Key number(Number Spec::*member, Key key)
{
  key.set = [member](MechanismSpec& spec, double value) {
    static_cast<Spec&>(spec).*member = static_cast<Number>(value);
  };
  key.get = [member](const MechanismSpec& spec) { return static_cast<const Spec&>(spec).*member; };
  return key;
}

/// Steps that a mechanism has done in the background, each time for one piece.
struct PieceSteps {
  std::string key;        ///< of the section: refill
  std::string piece;      ///< what goes through them: batch
  std::string meaning;    ///< of the key
  bool of_a_node = false; ///< each piece is some node's, wherever the mechanism is; else those of a node's alone
};

/// A kind of mechanism. One file of models/mechanisms/ has all of it, and registers it.
struct MechanismKind {
  std::string section; ///< of platform files: pools
  std::string word;    ///< for one of them: pool
  std::string summary;
  std::string step; ///< key of the step that names one: take
  std::string step_meaning;
  std::string says;    ///< what a drawing says of the step; {} is the name
  std::string example; ///< one of its section whose every number matters to creates; `s` is a station
  std::string use;     ///< its step, of one that is called m
  std::vector<Key> keys;
  std::unique_ptr<MechanismSpec> (*specify)();
  std::unique_ptr<Mechanism> (*make)(const Engine& engine, const MechanismSpec& spec);
  std::optional<PieceSteps> pieces{};
  std::vector<Per> owners{Per::node, Per::system}; ///< the first is the default; with nodes, a station's instances too
  bool encloses    = false;                        ///< its step has `steps`, and a job leaves when it is through them
  bool directories = true; ///< mkdir and rmdir have its step where they go the way of create and unlink
  /// Refuses what no single key's bounds refuse. @throws InputError
  void (*check)(const MechanismSpec& spec, const YamlNode& yaml) = nullptr;
  bool (*by_bytes)(const MechanismSpec& spec) = nullptr; ///< whether more bytes may take longer; none: they don't

  bool has_place() const { return owners.front() == Per::node; }
  /// Keys and meanings in the order of a section, those of place, pieces and step among them.
  std::vector<std::pair<std::string, std::string>> meanings() const;
  /// What is declared of a key beside its meaning: unit, bounds and default, or the kind of value.
  nlohmann::ordered_json declared(const std::string& key) const;
  /// What a drawing has to know: word, step, its words, the key of its pieces' steps, units, defaults.
  nlohmann::ordered_json drawn() const;
};

/// Called from the file of a mechanism before main() begins.
bool register_mechanism(MechanismKind kind);
/// All of them, by section.
const std::vector<MechanismKind>& mechanism_kinds();

/// The resolved form of one, as Platform::to_json() has it.
nlohmann::ordered_json mechanism_json(const MechanismSpec& spec, const std::vector<StationSpec>& stations);

} // namespace iocast
