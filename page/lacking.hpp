// SPDX-License-Identifier: Apache-2.0
//
// What Debian's emscripten lacks of C++20; read before every source of the page's module.
#pragma once
#include <bit>
#include <charconv>
#include <cstdlib>
#include <string>

// Random123 refuses processors that it doesn't know; what it has for this one is plain C.
#define __arm__ 1
#include <Random123/philox.h>
#undef __arm__

namespace std {

#ifndef __cpp_lib_bit_cast
template <class To, class From> constexpr To bit_cast(const From& from) noexcept
{
  return __builtin_bit_cast(To, from);
}
#endif

#ifndef __cpp_lib_to_chars
/// As std::from_chars reads doubles: neither white space nor "+" before them, rounded to the nearest.
inline from_chars_result from_chars(const char* first, const char* last, double& value)
{
  const string text(first, last);
  char* end         = nullptr;
  const double read = strtod(text.c_str(), &end);
  if (text.empty() || isspace(text.front()) || text.front() == '+' || end == text.c_str())
    return {first, errc::invalid_argument};
  value = read;
  return {first + (end - text.c_str()), errc{}};
}
#endif

} // namespace std
