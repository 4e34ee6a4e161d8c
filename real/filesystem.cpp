// SPDX-License-Identifier: Apache-2.0
#include "real/filesystem.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
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

/// For a shell.
std::string quoted(const std::string& word)
{
  std::string text = "'";
  for (const char c : word)
    text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

struct LayoutTool {
  const char* type; ///< as in mountinfo
  const char* command;
};
constexpr std::array layout_tools{LayoutTool{"lustre", "lfs getstripe -d"},
                                  LayoutTool{"beegfs", "beegfs-ctl --getentryinfo"}, LayoutTool{"gpfs", "mmlsattr -L"},
                                  LayoutTool{"ceph", "getfattr --only-values -n ceph.dir.layout"},
                                  LayoutTool{"fuse.ceph-fuse", "getfattr --only-values -n ceph.dir.layout"}};

} // namespace

std::string layout_of(const std::string& type, const std::string& directory)
{
  const auto* const tool =
      std::find_if(layout_tools.begin(), layout_tools.end(), [&](const LayoutTool& one) { return type == one.type; });
  if (tool == layout_tools.end())
    return "";
  FILE* const answer =
      ::popen(("timeout 10 " + std::string(tool->command) + " " + quoted(directory) + " 2>/dev/null").c_str(), "re");
  if (!answer)
    return "";
  std::array<char, 4096> text; // longer ones are of single files
  const size_t length = std::fread(text.data(), 1, text.size(), answer);
  if (::pclose(answer) != 0)
    return "";
  std::string layout(text.data(), length);
  layout.erase(layout.find_last_not_of(" \n") + 1);
  return layout;
}

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
              {"options", fmt::format("{};{}", options, super_options)}};
  }
  if (const auto layout = layout_of(best["type"], target); !layout.empty())
    best["layout"] = layout;
  return best;
}

} // namespace iocast
