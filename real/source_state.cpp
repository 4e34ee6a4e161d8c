// SPDX-License-Identifier: Apache-2.0
//
// By itself, so that after a commit nothing else is compiled again.
#include "real/source_state.hpp"

namespace iocast {

const char* const source_state = IOCAST_GIT;

} // namespace iocast
