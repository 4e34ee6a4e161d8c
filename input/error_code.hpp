// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "input/error.hpp"

namespace iocast {

/// Codes of errors that programs tell apart: `{"error": {"code": ..., "message": ...}}`, see docs/run-directory.md.
namespace error_code {
inline constexpr auto bad_input      = "bad-input";
inline constexpr auto failed         = "failed";
inline constexpr auto work_piles_up  = "work-piles-up";  ///< requests of others come faster than they are served
inline constexpr auto no_demand_left = "no-demand-left"; ///< a share of a station's time, for requests without demand
inline constexpr auto nothing_shared = "nothing-shared"; ///< operations of several nodes that visit no server
inline constexpr auto unknown_key    = "unknown-key";    ///< a key that a map of an input file can't have
} // namespace error_code

/// An error with a code of its own.
template <class Error> struct Coded : Error {
  Coded(const char* code_of_it, const std::string& message) : Error(message), code(code_of_it) {}
  const char* code;
};

/// The code of an error, or `otherwise` where it has none of its own.
template <class Error> const char* code_of(const Error& error, const char* otherwise)
{
  const auto* coded = dynamic_cast<const Coded<Error>*>(&error);
  return coded ? coded->code : otherwise;
}

} // namespace iocast
