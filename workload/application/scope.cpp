// SPDX-License-Identifier: Apache-2.0
#include "workload/application/scope.hpp"

#include "input/error.hpp"

#include <cctype>
#include <cmath>
#include <fmt/format.h>
#include <sstream>

namespace iocast {

namespace {
bool in_name(char c)
{
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

bool in_quantity(char c)
{
  return std::isalnum(static_cast<unsigned char>(c)) || c == '.';
}

std::string dimension_of(const Quantity& quantity)
{
  if (quantity.bytes == 0 && quantity.seconds == 0)
    return "a pure number";
  if (quantity.bytes == 1 && quantity.seconds == 0)
    return "a number of bytes";
  if (quantity.bytes == 0 && quantity.seconds == 1)
    return "a time";
  return fmt::format("bytes^{} seconds^{}", quantity.bytes, quantity.seconds);
}
} // namespace

/// Sums of products of atoms, by recursive descent. Messages have no end: the caller adds where it was.
class Scope::Reader {
public:
  Reader(const Scope& scope, const std::string& text) : scope_(scope), text_(text) {}

  Quantity read()
  {
    const Quantity result = sum();
    if (peek() != '\0')
      throw InputError(fmt::format("'{}' is not understood from '{}' on", text_, text_.substr(at_)));
    return result;
  }

private:
  char peek()
  {
    while (at_ < text_.size() && text_[at_] == ' ')
      ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  std::string take(bool (*wanted)(char))
  {
    const size_t from = at_;
    while (at_ < text_.size() && wanted(text_[at_]))
      ++at_;
    return text_.substr(from, at_ - from);
  }

  Quantity sum()
  {
    Quantity result = product();
    for (char sign = peek(); sign == '+' || sign == '-'; sign = peek()) {
      ++at_;
      const Quantity next = product();
      if (next.bytes != result.bytes || next.seconds != result.seconds)
        throw InputError(fmt::format("'{}' adds {} and {}", text_, dimension_of(result), dimension_of(next)));
      result.value += sign == '+' ? next.value : -next.value;
    }
    return result;
  }

  Quantity product()
  {
    Quantity result = atom();
    for (char sign = peek(); sign == '*' || sign == '/'; sign = peek()) {
      ++at_;
      const Quantity next = atom();
      if (sign == '/' && next.value == 0)
        throw InputError(fmt::format("'{}' divides by zero", text_));
      const int direction = sign == '*' ? 1 : -1;
      result.value        = sign == '*' ? result.value * next.value : result.value / next.value;
      result.bytes += direction * next.bytes;
      result.seconds += direction * next.seconds;
    }
    return result;
  }

  Quantity atom()
  {
    const char first = peek();
    if (first == '(') {
      ++at_;
      const Quantity result = sum();
      if (peek() != ')')
        throw InputError(fmt::format("'{}' lacks a closing bracket", text_));
      ++at_;
      return result;
    }
    if (first == '$') {
      ++at_;
      const auto name      = take(in_name);
      const auto& variable = scope_.variable(name);
      if (!variable.is_number)
        throw InputError(fmt::format("'{}' needs a number, but ${} is '{}'", text_, name, variable.text));
      return variable.number;
    }
    const auto literal = take(in_quantity);
    if (literal.empty())
      throw InputError(fmt::format("'{}' lacks a number or $name{}", text_,
                                   first ? fmt::format(" before '{}'", text_.substr(at_)) : " at its end"));
    const Unit unit = unit_of(literal);
    if (unit != Unit::count && unit != Unit::factor && unit != Unit::bytes && unit != Unit::seconds)
      throw InputError(fmt::format("'{}' is no number; a name is written ${}", literal, literal));
    return quantity(parse_quantity(literal, unit), unit);
  }

  const Scope& scope_;
  const std::string& text_;
  size_t at_ = 0;
};

Quantity Scope::quantity(double value, Unit unit)
{
  return {value, unit == Unit::bytes ? 1 : 0, unit == Unit::seconds ? 1 : 0};
}

void Scope::set(const std::string& name, const std::string& text)
{
  const Unit unit = unit_of(text);
  Variable variable{
      text, unit == Unit::count || unit == Unit::factor || unit == Unit::bytes || unit == Unit::seconds, {}};
  if (variable.is_number)
    variable.number = quantity(parse_quantity(text, unit), unit);
  variables_[name] = variable;
}

void Scope::set(const std::string& name, double value, Unit unit)
{
  variables_[name] = {format_quantity(value, unit), true, quantity(value, unit)};
}

const Scope::Variable& Scope::variable(const std::string& name) const
{
  if (const auto found = variables_.find(name); found != variables_.end())
    return found->second;
  std::vector<std::string> names;
  for (const auto& [known, ignored] : variables_)
    names.push_back("$" + known);
  throw InputError(fmt::format("there is no ${}. {}", name, allowed_sentence("$" + name, names)));
}

double Scope::number(const YamlNode& node, Unit wanted, double low, double high) const
{
  const std::string text = node.text();
  Quantity found;
  try {
    found = Reader(*this, text).read();
  } catch (const InputError& error) {
    node.fail(error.what());
  }
  const Quantity meant = quantity(0, wanted);
  const bool is_zero   = found.value == 0; // zero is zero in every unit
  if (!is_zero && (found.bytes != meant.bytes || found.seconds != meant.seconds))
    node.fail(fmt::format("'{}' is {}, but {} is needed{}", text, dimension_of(found), dimension_of(meant),
                          wanted == Unit::bytes && found.bytes == 0 ? ", such as 4KiB" : ""));
  if ((wanted == Unit::count || wanted == Unit::bytes) && found.value != std::floor(found.value)) {
    std::string shown = fmt::format("{:g}", found.value);
    if (shown.find('.') == std::string::npos) // six digits don't show that it is none
      shown = fmt::format("{:.17g}", found.value);
    node.fail(fmt::format("'{}' is {}, which is no whole number", text, shown));
  }
  if (!(found.value >= low && found.value <= high))
    node.fail(fmt::format("'{}' is {}, which is outside its range, {} to {}", text,
                          format_quantity(found.value, wanted), format_quantity(low, wanted),
                          format_quantity(high, wanted)));
  return found.value;
}

std::string Scope::text(const YamlNode& node) const
{
  const std::string written = node.text();
  std::string result;
  for (size_t i = 0; i < written.size();) {
    if (written[i] != '$') {
      result += written[i++];
      continue;
    }
    size_t end = ++i;
    while (end < written.size() && in_name(written[end]))
      ++end;
    try {
      result += variable(written.substr(i, end - i)).text;
    } catch (const InputError& error) {
      node.fail(error.what());
    }
    i = end;
  }
  return result;
}

std::vector<std::string> Scope::list(const YamlNode& node) const
{
  std::vector<std::string> result;
  if (node.is_sequence()) {
    for (const auto& item : node.items())
      result.push_back(text(item));
    return result;
  }
  std::istringstream all(text(node));
  for (std::string item; std::getline(all, item, ',');)
    result.push_back(
        item.substr(item.find_first_not_of(' ') == std::string::npos ? item.size() : item.find_first_not_of(' ')));
  return result;
}

size_t Scope::choice(const YamlNode& node, const std::vector<std::string>& allowed) const
{
  const auto chosen = text(node);
  for (size_t i = 0; i < allowed.size(); ++i)
    if (allowed[i] == chosen)
      return i;
  node.fail(fmt::format("'{}' is not known here. {}", chosen, allowed_sentence(chosen, allowed)));
}

} // namespace iocast
