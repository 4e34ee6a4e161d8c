// SPDX-License-Identifier: Apache-2.0
#include "input/units.hpp"

#include "input/error.hpp"

#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <utility>
#include <vector>

namespace iocast {

namespace {
using Suffixes = std::vector<std::pair<std::string, double>>;

const Suffixes& byte_suffixes()
{
  constexpr double Ki = 1024;
  static const Suffixes table{
      {"B", 1},           {"kB", 1e3}, {"KB", 1e3},      {"MB", 1e6},           {"GB", 1e9},
      {"TB", 1e12},       {"KiB", Ki}, {"MiB", Ki * Ki}, {"GiB", Ki * Ki * Ki}, {"TiB", Ki * Ki * Ki * Ki},
      {"k", Ki},          {"K", Ki},   {"m", Ki * Ki},   {"M", Ki * Ki},        {"g", Ki * Ki * Ki},
      {"G", Ki * Ki * Ki}};
  return table;
}

Suffixes suffixes_of(Unit unit)
{
  switch (unit) {
    case Unit::bytes:
      return byte_suffixes();
    case Unit::seconds:
      return {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}};
    case Unit::rate:
      return {{"/s", 1}, {"/ms", 1e3}, {"/us", 1e6}, {"/min", 1.0 / 60}};
    case Unit::bandwidth: {
      Suffixes table;
      for (const auto& [name, scale] : byte_suffixes()) {
        table.emplace_back(name + "/s", scale);
        table.emplace_back(name + "ps", scale);
      }
      // Networks are sold in bits a second.
      for (const auto& [prefix, scale] : {std::pair{"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}})
        for (const char* bits : {"bit/s", "b/s", "bps"})
          table.emplace_back(std::string(prefix) + bits, scale / 8);
      return table;
    }
    default:
      return {{"", 1}};
  }
}

std::string example_of(Unit unit)
{
  switch (unit) {
    case Unit::bytes:
      return "a size such as 3901B, 4KiB or 1GB";
    case Unit::seconds:
      return "a time such as 250us, 5ms or 2s";
    case Unit::rate:
      return "a rate such as 100/s";
    case Unit::bandwidth:
      return "a bandwidth such as 5GB/s, or in bits 100Gbit/s";
    case Unit::count:
      return "a whole number";
    default:
      return "a number";
  }
}
} // namespace

double parse_quantity(std::string_view text, Unit unit)
{
  if (unit == Unit::flag) {
    if (text == "true" || text == "1" || text == "yes")
      return 1;
    if (text == "false" || text == "0" || text == "no")
      return 0;
    throw InputError(fmt::format("'{}' is neither true nor false", text));
  }
  double value           = 0;
  const auto [end, what] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (what != std::errc{} || !std::isfinite(value))
    throw InputError(fmt::format("'{}' is not {}", text, example_of(unit)));
  std::string suffix(end, text.data() + text.size() - end);
  if (const auto first = suffix.find_first_not_of(' '); first != std::string::npos)
    suffix.erase(0, first);
  // Zero is zero in every unit.
  if (suffix.empty() && value == 0 && unit != Unit::text)
    return 0;
  std::vector<std::string> names;
  const bool bits = suffix.find("it") != std::string::npos;
  for (const auto& [name, scale] : suffixes_of(unit)) {
    if (name == suffix) {
      value *= scale;
      if (unit == Unit::bytes && scale != 1) // 1.001kB are 1001 bytes, though 1.001 is no double
        if (const double whole = std::round(value); std::abs(value - whole) <= 1e-15 * std::abs(value))
          value = whole;
      if ((unit == Unit::count || unit == Unit::bytes) && (value != std::floor(value) || std::abs(value) > 9e15))
        throw InputError(fmt::format("'{}' is not {}", text, example_of(unit)));
      return value;
    }
    // Of bandwidths "m/s" is understood and better not proposed, nor are bytes to somebody who writes bits.
    if (unit != Unit::bandwidth || name.find_first_of(bits ? "b" : "Bb") != std::string::npos)
      names.push_back(name);
  }
  if (unit == Unit::count || unit == Unit::factor)
    throw InputError(fmt::format("'{}' is not {}; it takes no unit", text, example_of(unit)));
  if (suffix.empty())
    throw InputError(fmt::format("'{}' lacks a unit; write {}", text, example_of(unit)));
  const bool has_bits = suffix.ends_with("b") || suffix.ends_with("bit");
  if (unit == Unit::bytes && has_bits)
    throw InputError(fmt::format("'{}' is in bits; write {}, in bytes: 8 bits are one", text, example_of(unit)));
  auto allowed = allowed_sentence(suffix, names);
  allowed.pop_back(); // the full stop is the caller's, as of the others
  throw InputError(
      fmt::format("'{}' has the unknown unit '{}'; write {}. {}", text, suffix, example_of(unit), allowed));
}

Unit unit_of(std::string_view text)
{
  if (text == "true" || text == "false")
    return Unit::flag;
  for (const Unit unit : {Unit::count, Unit::factor, Unit::bytes, Unit::seconds, Unit::rate, Unit::bandwidth}) {
    try {
      parse_quantity(text, unit);
      return unit;
    } catch (const InputError&) {
      continue;
    }
  }
  return Unit::text;
}

std::string format_size(double bytes)
{
  for (const auto& [name, scale] : {std::pair{"TiB", 0x1p40}, {"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 0x1p10}})
    if (bytes >= scale)
      return fmt::format("{:.1f} {}", bytes / scale, name);
  return fmt::format("{:.0f} B", bytes);
}

std::string format_quantity(double value, Unit unit)
{
  auto scaled = [value](std::initializer_list<std::pair<const char*, double>> table) {
    for (const auto& [name, scale] : table)
      if (std::abs(value) >= scale)
        return fmt::format("{:g}{}", value / scale, name);
    const auto& smallest = *(table.end() - 1);
    return fmt::format("{:g}{}", value / smallest.second, smallest.first);
  };
  switch (unit) {
    case Unit::bytes:
      return value == std::floor(value / 1024) * 1024 && value >= 1024
                 ? scaled({{"GiB", 1073741824.0}, {"MiB", 1048576.0}, {"KiB", 1024.0}})
                 : fmt::format("{:.0f}B", value);
    case Unit::seconds:
      return value == 0 ? "0s" : scaled({{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}});
    case Unit::rate:
      return fmt::format("{:g}/s", value);
    case Unit::bandwidth:
      return scaled({{"GB/s", 1e9}, {"MB/s", 1e6}, {"kB/s", 1e3}, {"B/s", 1}});
    case Unit::flag:
      return value != 0 ? "true" : "false";
    case Unit::count:
      return fmt::format("{:.0f}", value);
    default:
      return fmt::format("{:g}", value);
  }
}

std::string_view unit_name(Unit unit)
{
  switch (unit) {
    case Unit::count:
      return "count";
    case Unit::factor:
      return "factor";
    case Unit::bytes:
      return "bytes";
    case Unit::seconds:
      return "seconds";
    case Unit::rate:
      return "per second";
    case Unit::bandwidth:
      return "bytes per second";
    case Unit::flag:
      return "true or false";
    case Unit::text:
      return "text";
  }
  return "";
}

uint64_t parse_seed(const std::string& option, const std::string& text)
{
  uint64_t seed     = 0;
  const char* end   = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, seed);
  if (parsed.ec != std::errc() || parsed.ptr != end || text.empty())
    throw InputError(fmt::format("{} can't be '{}'; it is a whole number from 0 to {}.", option, text, UINT64_MAX));
  return seed;
}

} // namespace iocast
