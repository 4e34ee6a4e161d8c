// SPDX-License-Identifier: Apache-2.0
#include "input/own_library.hpp"

#include "input/error.hpp"

#include <algorithm>
#include <dlfcn.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>

extern "C" const char iocast_interface[]; // of the program; each library has its own. CMakeLists.txt makes it

namespace iocast::own_library {

namespace fs = std::filesystem;

namespace {
constexpr const char* suffix = ".so"; // CMake's, of modules, on Linux and elsewhere

/// build/bin/iocast-sim has it in build/lib/iocast, PREFIX/bin/iocast-sim in PREFIX/lib/iocast.
fs::path directory()
{
  std::error_code unknown; // without /proc: then there are none
  const auto program = fs::read_symlink("/proc/self/exe", unknown);
  return program.parent_path().parent_path() / "lib" / "iocast";
}

/// By its bytes: loading it would already run code of it. What can't be read is left to the system's loader to refuse.
bool is_of_this_build(const std::string& file)
{
  std::ifstream opened(file, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(opened), {}};
  return content.empty() || content.find(iocast_interface) != std::string::npos;
}
} // namespace

std::string place()
{
  return directory().string();
}

std::vector<std::string> names(const std::string& beginning)
{
  std::vector<std::string> found;
  std::error_code none;
  for (const auto& file : fs::directory_iterator(directory(), none))
    if (file.path().extension() == suffix && file.path().stem().string().starts_with(beginning))
      found.push_back(file.path().stem().string());
  std::sort(found.begin(), found.end());
  return found;
}

void* load(const std::string& name)
{
  const auto file = (directory() / (name + suffix)).string();
  if (!is_of_this_build(file))
    throw RunError(fmt::format("{} is of another build than this program", file));
  void* const loaded = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL); // as if it were linked
  if (loaded == nullptr)
    throw RunError(dlerror());
  return loaded;
}

const void* symbol_of(const std::string& name, const char* symbol)
{
  const void* found = dlsym(load(name), symbol);
  if (found == nullptr)
    throw RunError(dlerror());
  return found;
}

} // namespace iocast::own_library
