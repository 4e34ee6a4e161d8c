// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace iocast {

/// Registers those backends that lie in libraries of their own, lib/iocast/backend-NAME.so, and that the command line
/// has a name or an option of; all of them when it is a question what there is.
/// @throws InputError when one that it names can't be loaded
void load_backends(const std::vector<std::string>& command);

/// Registers all of them; one whose library can't be loaded here as unavailable. @return whether there are more now
bool load_all_backends();

/// A sentence for who looks for a backend where no library is; else empty.
std::string where_backends_are_missing();

} // namespace iocast
