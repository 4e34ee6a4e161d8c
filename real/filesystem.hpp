// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace iocast {

/// Type, mount point, device and options of the file system that `path` lies on, from /proc/self/mountinfo; and the
/// `layout` of new files there.
nlohmann::ordered_json filesystem_of(const std::string& path);

/// How files made in a directory are spread over servers (stripes), in the words of the file system's own tool; empty
/// when this type of file system has none, or it isn't installed or doesn't answer within ten seconds.
std::string layout_of(const std::string& type, const std::string& directory);

} // namespace iocast
