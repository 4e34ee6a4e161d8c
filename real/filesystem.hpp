// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace iocast {

/// Type, mount point, device and options of the file system that `path` lies on, from /proc/self/mountinfo.
nlohmann::ordered_json filesystem_of(const std::string& path);

} // namespace iocast
