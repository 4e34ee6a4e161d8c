// SPDX-License-Identifier: Apache-2.0
#include "real/filesystem.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

namespace {

using namespace iocast;
namespace fs = std::filesystem;

/// A directory with a program of this name, before all others on the path.
class Tool {
public:
  Tool(const std::string& name, const std::string& script) : path_(std::getenv("PATH"))
  {
    std::string pattern = fs::temp_directory_path() / "iocast-XXXXXX";
    directory_          = mkdtemp(pattern.data());
    std::ofstream(directory_ / name) << "#!/bin/sh\n" << script << "\n";
    fs::permissions(directory_ / name, fs::perms::owner_all);
    setenv("PATH", (directory_.string() + ":" + path_).c_str(), 1);
  }
  ~Tool()
  {
    setenv("PATH", path_.c_str(), 1);
    fs::remove_all(directory_);
  }
  const fs::path& directory() const { return directory_; }

private:
  std::string path_;
  fs::path directory_;
};

TEST(FileSystem, LayoutInTheWordsOfItsTool)
{
  const Tool lfs("lfs", "echo \"$#: $1 $2 $3\"; echo 'stripe_count:  4 stripe_size:   1048576'");
  EXPECT_EQ(layout_of("lustre", "/scratch/it's mine; $HOME"),
            "3: getstripe -d /scratch/it's mine; $HOME\nstripe_count:  4 stripe_size:   1048576");
  EXPECT_EQ(layout_of("ext4", "/scratch"), "");
}

TEST(FileSystem, NoLayoutOfAToolThatFailsOrIsMissing)
{
  const Tool lfs("lfs", "echo no; exit 1");
  EXPECT_EQ(layout_of("lustre", "/scratch"), "");
  EXPECT_EQ(layout_of("beegfs", "/scratch"), "");
}

TEST(FileSystem, TypeAndMountPointOfADirectory)
{
  const auto found = filesystem_of("/proc/self");
  EXPECT_EQ(found["type"], "proc");
  EXPECT_EQ(found["mount_point"], "/proc");
  EXPECT_FALSE(found.contains("layout"));
}

} // namespace
