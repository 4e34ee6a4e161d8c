// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "input/units.hpp"

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>
#include <yaml-cpp/yaml.h>

namespace iocast {

/// What a plain file of at most 64 MiB holds. @throws InputError for anything else: a pipe would be waited for, a
/// device may have no end
std::string text_of(const std::string& file);

/// A YAML node that knows its file and line and refuses what it does not know.
///
/// Reading is strict: every key that was not read is an error once `finish()` is called, with the file, the line and
/// the nearest key that exists. Values carry units; a missing or unknown one is an error too.
class YamlNode {
public:
  /// Reads a whole file. @throws InputError when it can't be read or is no YAML
  static YamlNode load(const std::string& file);
  static YamlNode parse(const std::string& text, const std::string& name);
  YamlNode(const YAML::Node& node, std::string file, std::string path = "");
  /// This map with `base` below it: what this one lacks is looked up there, map by map. Lists, single values and maps
  /// that hold the key `replacing` hide what lies below them.
  YamlNode over(const YamlNode& base, const std::string& replacing) const;

  bool has(const std::string& key) const;
  /// The same, without taking the key for one that is known.
  bool holds(const std::string& key) const;
  /// The child `key`. @throws InputError when it is missing
  YamlNode operator[](const std::string& key) const;
  std::optional<YamlNode> find(const std::string& key) const;
  std::vector<YamlNode> items() const;
  std::vector<std::pair<std::string, YamlNode>> entries() const;

  bool is_map() const { return node().IsMap(); }
  bool is_sequence() const { return node().IsSequence(); }
  bool is_scalar() const { return node().IsScalar(); }

  std::string text() const;
  double quantity(Unit unit) const;
  /// A quantity within [low, high]; the error says which bound was broken and `what` it is.
  double quantity(Unit unit, double low, double high) const;

  std::string text_or(const std::string& key, const std::string& fallback) const;
  double quantity_or(const std::string& key, Unit unit, double fallback, double low, double high) const;

  /// As it is written: maps, lists and texts.
  nlohmann::ordered_json to_json() const;

  /// Refuses keys of this map that were not read.
  void finish() const;
  /// Refuses keys of this map outside `allowed`.
  void allow_only(const std::vector<std::string>& allowed) const;

  /// The file that this was read from; of a map that several have, the one on top.
  const std::string& file() const { return layers_.front().file; }
  /// Files that have this map, the one on top first; of all else the file that it was read from.
  std::vector<std::string> files() const;
  /// "platforms/lustre.yaml:12", for messages.
  std::string where() const;
  [[noreturn]] void fail(const std::string& sentence) const;
  /// What fail() says: the sentence with file, line and path before it.
  std::string failure(const std::string& sentence) const;

private:
  struct Layer { // NOLINT(bugprone-exception-escape): nodes of yaml-cpp may throw when they are assigned
    YAML::Node node;
    std::string file;
  };
  const YAML::Node& node() const { return layers_.front().node; }
  std::string child_path(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }

  std::vector<Layer> layers_; ///< the first hides the later ones; more than one only for maps
  std::string path_;
  std::string replacing_;
  std::shared_ptr<std::set<std::string>> read_ = std::make_shared<std::set<std::string>>();
};

} // namespace iocast
