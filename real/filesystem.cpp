// SPDX-License-Identifier: Apache-2.0
#include "real/filesystem.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace fs = std::filesystem;

namespace iocast {

namespace {

/// mountinfo writes a blank as \040.
std::string unescaped(const std::string& text)
{
  std::string result;
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\\' && i + 3 < text.size()) {
      result.push_back(static_cast<char>(std::stoi(text.substr(i + 1, 3), nullptr, 8)));
      i += 3;
    } else {
      result.push_back(text[i]);
    }
  return result;
}

bool is_below(const fs::path& directory, const fs::path& path)
{
  return std::mismatch(directory.begin(), directory.end(), path.begin(), path.end()).first == directory.end();
}

} // namespace

nlohmann::ordered_json filesystem_of(const std::string& path)
{
  std::error_code ignored;
  const fs::path target = fs::canonical(path, ignored);
  nlohmann::ordered_json best{{"type", "unknown"}, {"mount_point", ""}, {"device", ""}, {"options", ""}};
  std::ifstream in("/proc/self/mountinfo");
  // id parent major:minor root mount-point options [optional fields] - type device super-options; see proc(5).
  for (std::string line; std::getline(in, line);) {
    const auto dash = line.find(" - ");
    if (dash == std::string::npos)
      continue;
    std::istringstream left(line.substr(0, dash)), right(line.substr(dash + 3));
    std::string id, parent, numbers, root, mount_point, options, type, device, super_options;
    left >> id >> parent >> numbers >> root >> mount_point >> options;
    right >> type >> device >> super_options;
    mount_point = unescaped(mount_point);
    // The longest mount point wins, and of equal ones the last: it lies on top.
    if (is_below(mount_point, target) && mount_point.size() >= best["mount_point"].get_ref<const std::string&>().size())
      best = {{"type", type},
              {"mount_point", mount_point},
              {"device", unescaped(device)},
              {"options", options + ";" + super_options}};
  }
  return best;
}

} // namespace iocast
