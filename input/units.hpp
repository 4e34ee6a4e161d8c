// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace iocast {

/// What a number means. Text carries units ("3901B", "250us", "100/s"); inside everything is SI (bytes, seconds, per
/// second).
enum class Unit {
  count,   ///< a whole number, no unit
  factor,  ///< a real number, no unit
  bytes,   ///< B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB, and k, K, m, M, g, G (powers of 1024, as IOR has
           ///< them)
  seconds, ///< ns, us, ms, s, min, h
  rate,    ///< /s, /ms, /us
  bandwidth, ///< bytes as above followed by /s or ps
  flag,      ///< true or false
  text       ///< anything
};

/// The number that `text` says, in SI units.
/// @throws InputError naming the text and what is allowed, when the unit is missing, unknown or of the wrong kind
double parse_quantity(std::string_view text, Unit unit);

/// What a text seems to mean, when nobody has declared it: its suffix decides; a number without one is a count or a
/// factor.
Unit unit_of(std::string_view text);

/// The shortest usual spelling of a quantity, e.g. 3901 -> "3901B", 0.00025 -> "250us".
std::string format_quantity(double value, Unit unit);

/// About how much, for people: 8388608 -> "8.0 MiB".
std::string format_size(double bytes);

/// "bytes", "seconds", ... for help texts.
std::string_view unit_name(Unit unit);

/// A seed: any whole number of 64 bits, in decimal digits. @throws InputError that names `option`
uint64_t parse_seed(const std::string& option, const std::string& text);

} // namespace iocast
