// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "input/error.hpp"
#include "real/cluster.hpp"
#include "real/nothing_there.hpp"

#include <exception>
#include <optional>
#include <string>

namespace iocast {

/// What went wrong on one rank.
struct Failure {
  int exit_code;
  std::string message;
};

/// Thrown by every rank alike once all know of a failure; it has been printed.
struct AgreedFailure : std::runtime_error {
  AgreedFailure(int code, const std::string& message) : std::runtime_error(message), exit_code(code) {}
  int exit_code;
};

/// Runs `body`; what it throws becomes this rank's failure.
template <class Body> std::optional<Failure> failure_of(Body&& body)
{
  try {
    body();
    return std::nullopt;
  } catch (const NothingThere& error) {
    return Failure{4, error.what()};
  } catch (const InputError& error) {
    return Failure{2, error.what()};
  } catch (const std::bad_alloc&) {
    return Failure{1, "There is not enough memory."};
  } catch (const std::exception& error) {
    return Failure{1, error.what()};
  }
}

/// Where all ranks meet: returns when none has failed. Otherwise the lowest failing rank prints its message, once.
/// @throws AgreedFailure on all ranks
void settle(const Cluster& cluster, const std::optional<Failure>& mine);

/// Runs `body` on every rank and settles what came of it.
template <class Body> void agree(const Cluster& cluster, Body&& body)
{
  settle(cluster, failure_of(std::forward<Body>(body)));
}

} // namespace iocast
