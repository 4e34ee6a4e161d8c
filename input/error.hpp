// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace iocast {

/// Bad input: it can't be done as written; the message is a finished sentence. Programs exit with 2.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Something failed while running (a full disk, a dead server); the message is a finished sentence. Programs exit with
/// 1.
struct RunError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The member of `allowed` with the smallest edit distance to `given`; empty when nothing is near.
std::string nearest_match(std::string_view given, std::span<const std::string> allowed);

/// "Did you mean 'x'? Allowed: a, b, c." for the end of an error message; each name once.
std::string allowed_sentence(std::string_view given, std::span<const std::string> allowed);

/// Text from elsewhere, for a message: without control characters, and cut at `most` characters.
std::string printable(std::string_view text, size_t most = 200);

} // namespace iocast
