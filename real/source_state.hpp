// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace iocast {

/// The state of the sources, as of `git describe`; "unknown" where they are no clone.
extern const char* const source_state;

} // namespace iocast
