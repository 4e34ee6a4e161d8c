// SPDX-License-Identifier: Apache-2.0
//
// memory: an example of a backend. One rank keeps the sizes of its objects in its own memory.
#include "input/error.hpp"
#include "real/backend.hpp"

#include <cerrno>
#include <fmt/format.h>
#include <string>
#include <unordered_map>

namespace iocast {
namespace {

class Memory final : public Backend {
public:
  explicit Memory(uint64_t capacity) : capacity_(capacity) {}

  void connect() override {}

  int mkdir(const Name& name) override { return sizes_.emplace(name.dataset(), 0).second ? 0 : EEXIST; }

  int create(const Name& name, uint64_t size, Stopwatch& watch) override
  {
    if (sizes_.size() >= capacity_) // going on would be pointless
      throw RunError(fmt::format("The memory holds {} objects and is full; raise --memory.capacity.", capacity_));
    sizes_[name.path()] = size;
    return after_parts(OpKind::create, 0, watch);
  }

  int stat(const Name& name, uint64_t& size) override
  {
    const auto found = sizes_.find(name.path());
    if (found == sizes_.end())
      return ENOENT;
    size = found->second;
    return 0;
  }

  int read(const Name& name, uint64_t size, Stopwatch& watch) override
  {
    uint64_t present = 0;
    const int error  = stat(name, present);
    return after_parts(OpKind::read, error == 0 && present < size ? short_transfer : error, watch);
  }

  int unlink(const Name& name) override { return sizes_.erase(name.path()) > 0 ? 0 : ENOENT; }
  int rmdir(const Name& name) override { return sizes_.erase(name.dataset()) > 0 ? 0 : ENOENT; }

private:
  /// `error`, after a lap for each part of the operation: a store that opens and closes takes them one by one.
  static int after_parts(OpKind kind, int error, Stopwatch& watch)
  {
    for (size_t part = 0; part < parts_of(kind).size(); ++part)
      watch.lap();
    return error;
  }

  uint64_t capacity_;
  std::unordered_map<std::string, uint64_t> sizes_; // bytes by path; 0 for a dataset
};

const bool registered = register_backend({
    "memory",
    "sizes of objects in the memory of one rank",
    {{"capacity", Unit::count, "1000000", "most objects and datasets", 1, 1e9}},
    {}, // no secrets
    "", // needs no library
    [](const Parameters& given, const Client&) { return std::make_unique<Memory>(given.count("capacity")); },
    false, // the data ends with the process
});

} // namespace
} // namespace iocast
