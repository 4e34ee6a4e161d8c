// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace iocast {

/// The nearest whole number of bytes, at least 1, rounded up to a multiple of `unit`.
inline uint64_t in_whole_units(double bytes, uint64_t unit)
{
  const auto whole = std::max<uint64_t>(1, static_cast<uint64_t>(std::llround(bytes)));
  return (whole + unit - 1) / unit * unit;
}

/// What the parameter of that unit means.
constexpr const char* meaning_of_align = "sizes are rounded up to a multiple of this; 4KiB for O_DIRECT";

} // namespace iocast
