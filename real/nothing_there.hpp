// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "input/error.hpp"

namespace iocast {

/// What a run should remove isn't there, so that it has nothing to do. The program exits with 4 (docs/exit-codes.md).
struct NothingThere : InputError {
  using InputError::InputError;
};

} // namespace iocast
