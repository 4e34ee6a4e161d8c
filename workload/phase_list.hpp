// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace iocast {

/// What a parameter `phases` such as "create,remove" asks for: places in `names`, the phases of the pattern in their
/// order.
/// @throws InputError: a phase that isn't there (with the nearest match), another order, none at all
std::vector<size_t> requested_phases(const std::string& pattern, const std::vector<std::string>& names,
                                     const std::string& wanted);

} // namespace iocast
