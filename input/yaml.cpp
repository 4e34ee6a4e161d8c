// SPDX-License-Identifier: Apache-2.0
#include "input/yaml.hpp"

#include "input/error_code.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace iocast {

namespace {
constexpr size_t most_text = size_t{64} << 20; ///< as iocast/ground/strict.py has it

struct Opened {
  explicit Opened(const std::string& file)
      : number(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) // a pipe would be waited for
  {
  }
  ~Opened()
  {
    if (number >= 0)
      ::close(number);
  }
  Opened(const Opened&)            = delete;
  Opened& operator=(const Opened&) = delete;
  const int number;
};

void require_plain_file(const std::string& file, int opened)
{
  struct stat about {};
  if (opened < 0 || ::fstat(opened, &about) != 0)
    throw InputError(fmt::format("The file '{}' can't be read: {}.", file, std::strerror(errno)));
  if (!S_ISREG(about.st_mode))
    throw InputError(fmt::format("The file '{}' can't be read: it is {}; name a plain file.", file,
                                 S_ISDIR(about.st_mode) ? "a directory" : "a pipe, a device or the like"));
}

} // namespace

std::string text_of(const std::string& file)
{
  const Opened in(file);
  require_plain_file(file, in.number);
  std::string text;
  std::vector<char> some(size_t{1} << 20);
  ssize_t got = 0;
  while (text.size() <= most_text && (got = ::read(in.number, some.data(), some.size())) > 0)
    text.append(some.data(), static_cast<size_t>(got));
  if (got < 0)
    throw InputError(fmt::format("The file '{}' can't be read: {}.", file, std::strerror(errno)));
  if (text.size() > most_text)
    throw InputError(fmt::format("The file '{}' has more than {} bytes; such a file is not read.", file, most_text));
  return text;
}

YamlNode YamlNode::load(const std::string& file)
{
  return parse(text_of(file), file);
}

namespace {
/// A key that is given twice: the second would be lost without a word.
void refuse_twice(const YAML::Node& node, const std::string& name, std::set<int>& seen)
{
  if (!seen.insert(node.Mark().pos).second && !node.IsScalar())
    return; // an alias
  std::set<std::string> keys;
  if (node.IsMap())
    for (const auto& entry : node) {
      const YAML::Node& key = entry.first;
      if (key.IsScalar() && key.Scalar() != "<<" && !keys.insert(key.Scalar()).second)
        throw InputError(fmt::format("{}:{}: the key '{}' is given twice.", name, key.Mark().line + 1, key.Scalar()));
      refuse_twice(entry.second, name, seen);
    }
  else if (node.IsSequence())
    for (const auto& one : node)
      refuse_twice(one, name, seen);
}
} // namespace

YamlNode YamlNode::parse(const std::string& text, const std::string& name)
{
  try {
    const YAML::Node document = YAML::Load(text);
    std::set<int> seen;
    refuse_twice(document, name, seen);
    YamlNode node(document, name);
    if (!node.is_map())
      node.fail("this is not a YAML map of keys and values");
    return node;
  } catch (const YAML::Exception& error) {
    throw InputError(fmt::format("{}:{}: this is not valid YAML: {}.", name, error.mark.line + 1, error.msg));
  }
}

YamlNode::YamlNode(const YAML::Node& node, std::string file, std::string path)
    : layers_{{node, std::move(file)}}, path_(std::move(path))
{
}

YamlNode YamlNode::over(const YamlNode& base, const std::string& replacing) const
{
  YamlNode merged   = *this;
  merged.read_      = std::make_shared<std::set<std::string>>();
  merged.replacing_ = replacing;
  merged.layers_.insert(merged.layers_.end(), base.layers_.begin(), base.layers_.end());
  return merged;
}

bool YamlNode::has(const std::string& key) const
{
  return find(key).has_value();
}

bool YamlNode::holds(const std::string& key) const
{
  const bool read  = read_->contains(key);
  const bool found = has(key);
  if (!read)
    read_->erase(key);
  return found;
}

std::optional<YamlNode> YamlNode::find(const std::string& key) const
{
  if (!is_map())
    fail("a map of keys and values is expected here");
  read_->insert(key);
  std::optional<YamlNode> found;
  for (const auto& layer : layers_) {
    const YAML::Node child = layer.node[key];
    if (!child.IsDefined())
      continue;
    if (child.IsNull() && !found)
      return std::nullopt; // "key:" with nothing behind it takes away what lies below
    if (!found) {
      found             = YamlNode(child, layer.file, child_path(key));
      found->replacing_ = replacing_;
    } else if (child.IsMap()) {
      found->layers_.push_back({child, layer.file});
    }
    if (!child.IsMap() || (!replacing_.empty() && child[replacing_].IsDefined()))
      break;
  }
  return found;
}

YamlNode YamlNode::operator[](const std::string& key) const
{
  if (auto child = find(key))
    return *child;
  fail(fmt::format("the key '{}' is missing", key));
}

namespace {
/// @throws InputError for a key that is itself a list or a map
std::string key_of(const YAML::Node& key, const std::string& file, const std::string& path)
{
  if (!key.IsScalar() && !key.IsNull())
    YamlNode(key, file, path).fail("a key is a single word, and here it is a list or a map");
  return key.as<std::string>();
}
} // namespace

std::vector<YamlNode> YamlNode::items() const
{
  if (!is_sequence())
    fail("a list is expected here");
  std::vector<YamlNode> result;
  for (size_t i = 0; i < node().size(); ++i)
    result.emplace_back(node()[i], layers_.front().file, fmt::format("{}[{}]", path_, i));
  return result;
}

std::vector<std::pair<std::string, YamlNode>> YamlNode::entries() const
{
  if (!is_map())
    fail("a map of keys and values is expected here");
  std::vector<std::pair<std::string, YamlNode>> result;
  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer)
    for (const auto& entry : layer->node) {
      const auto key = key_of(entry.first, layer->file, path_);
      if (std::any_of(result.begin(), result.end(), [&key](const auto& seen) { return seen.first == key; }))
        continue;
      if (const auto child = find(key))
        result.emplace_back(key, *child);
    }
  return result;
}

std::string YamlNode::text() const
{
  if (!is_scalar())
    fail("a single value is expected here");
  return node().Scalar();
}

double YamlNode::quantity(Unit unit) const
{
  const std::string written = text(); // which fails with a place of its own
  try {
    return parse_quantity(written, unit);
  } catch (const InputError& error) {
    fail(error.what());
  }
}

double YamlNode::quantity(Unit unit, double low, double high) const
{
  const double value = quantity(unit);
  if (!(value >= low && value <= high))
    fail(fmt::format("{} is outside its range, {} to {}", text(), format_quantity(low, unit),
                     format_quantity(high, unit)));
  return value;
}

std::string YamlNode::text_or(const std::string& key, const std::string& fallback) const
{
  const auto child = find(key);
  return child ? child->text() : fallback;
}

double YamlNode::quantity_or(const std::string& key, Unit unit, double fallback, double low, double high) const
{
  const auto child = find(key);
  return child ? child->quantity(unit, low, high) : fallback;
}

nlohmann::ordered_json YamlNode::to_json() const
{
  auto json = nlohmann::ordered_json::array();
  if (is_sequence()) {
    for (const auto& item : items())
      json.push_back(item.to_json());
    return json;
  }
  if (!is_map())
    return text();
  json = nlohmann::ordered_json::object();
  for (const auto& [key, value] : entries())
    json[key] = value.to_json();
  return json;
}

void YamlNode::finish() const
{
  allow_only({read_->begin(), read_->end()});
}

void YamlNode::allow_only(const std::vector<std::string>& allowed) const
{
  if (!is_map())
    fail("a map of keys and values is expected here");
  for (const auto& layer : layers_)
    for (const auto& entry : layer.node) {
      const auto key = key_of(entry.first, layer.file, path_);
      if (std::find(allowed.begin(), allowed.end(), key) == allowed.end()) {
        const auto sentence = fmt::format("the key '{}' is unknown here. {}", key, allowed_sentence(key, allowed));
        throw Coded<InputError>(error_code::unknown_key, YamlNode(entry.first, layer.file, path_).failure(sentence));
      }
    }
}

std::vector<std::string> YamlNode::files() const
{
  std::vector<std::string> files;
  for (const auto& layer : layers_)
    files.push_back(layer.file);
  return files;
}

std::string YamlNode::where() const
{
  const auto mark = node().Mark();
  return mark.line >= 0 ? fmt::format("{}:{}", layers_.front().file, mark.line + 1) : layers_.front().file;
}

std::string YamlNode::failure(const std::string& sentence) const
{
  const bool closed = !sentence.empty() && sentence.back() == '.';
  return fmt::format("{}: {}{}{}", where(), path_.empty() ? "" : "in " + path_ + ", ", sentence, closed ? "" : ".");
}

void YamlNode::fail(const std::string& sentence) const
{
  throw InputError(failure(sentence));
}

} // namespace iocast
