// SPDX-License-Identifier: Apache-2.0
//
// What input/yaml.cpp uses of yaml-cpp, for documents that are JSON: the page's module has no yaml-cpp, for Debian has
// none that emscripten links. A page holds its platforms and workloads as JSON whose single values are texts, as they
// were written in YAML.
#pragma once
#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace YAML {

/// JSON on one line has no lines that would help anybody.
struct Mark {
  int pos  = -1;
  int line = -1;
};

struct Exception {
  Mark mark;
  std::string msg;
};

class Node {
public:
  /// A value of a list, or a key and a value of a map.
  struct Entry;

  Node() = default;
  explicit Node(const nlohmann::ordered_json& json) : Node(std::make_shared<nlohmann::ordered_json>(json)) {}

  bool IsDefined() const { return json_ != nullptr; }
  bool IsNull() const { return json_ && json_->is_null(); }
  bool IsMap() const { return json_ && json_->is_object(); }
  bool IsSequence() const { return json_ && json_->is_array(); }
  bool IsScalar() const { return json_ && json_->is_primitive() && !json_->is_null(); }
  YAML::Mark Mark() const { return {}; }
  size_t size() const { return json_->size(); }

  const std::string& Scalar() const
  {
    text_ = json_->is_string() ? json_->get<std::string>() : json_->is_null() ? "" : json_->dump();
    return text_;
  }
  template <class Text> Text as() const { return IsNull() ? "null" : Scalar(); }

  Node operator[](const std::string& key) const
  {
    const auto found = IsMap() ? json_->find(key) : json_->end();
    return found == json_->end() ? Node() : part(*found);
  }
  Node operator[](size_t index) const { return part((*json_)[index]); }

  std::vector<Entry> entries() const;

private:
  explicit Node(std::shared_ptr<const nlohmann::ordered_json> json) : json_(std::move(json)) {}
  Node part(const nlohmann::ordered_json& child) const
  {
    return Node(std::shared_ptr<const nlohmann::ordered_json>(json_, &child));
  }

  std::shared_ptr<const nlohmann::ordered_json> json_; ///< none: undefined
  mutable std::string text_;
};

struct Node::Entry : Node, std::pair<Node, Node> {
  explicit Entry(const Node& value) : Node(value) {}
  Entry(const std::string& key, const Node& value) : std::pair<Node, Node>(Node(nlohmann::ordered_json(key)), value) {}
};

inline std::vector<Node::Entry> Node::entries() const
{
  std::vector<Entry> all;
  if (IsMap())
    for (const auto& [key, value] : json_->items())
      all.emplace_back(key, part(value));
  else if (IsSequence())
    for (const auto& value : *json_)
      all.emplace_back(part(value));
  return all;
}

/// For loops over a node; the entries live as long as the loop.
class Entries {
public:
  explicit Entries(std::shared_ptr<std::vector<Node::Entry>> all, size_t at) : all_(std::move(all)), at_(at) {}
  const Node::Entry& operator*() const { return (*all_)[at_]; }
  Entries& operator++()
  {
    ++at_;
    return *this;
  }
  bool operator!=(const Entries& other) const { return at_ != other.at_; }

private:
  std::shared_ptr<std::vector<Node::Entry>> all_;
  size_t at_;
};

inline Entries begin(const Node& node)
{
  return Entries(std::make_shared<std::vector<Node::Entry>>(node.entries()), 0);
}
inline Entries end(const Node& node)
{
  return Entries(nullptr, node.size());
}

/// @throws Exception
inline Node Load(const std::string& text)
{
  try {
    return Node(nlohmann::ordered_json::parse(text));
  } catch (const nlohmann::json::exception& error) {
    throw Exception{{}, error.what()};
  }
}

} // namespace YAML
