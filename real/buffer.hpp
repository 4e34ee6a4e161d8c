// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "workload/random.hpp"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <sys/mman.h>

namespace iocast {

/// Memory for transfers, aligned to pages; a large one to huge pages, if the kernel has some: copying a record then
/// looks up fewer of them.
class Buffer {
public:
  static constexpr size_t page      = 4096;
  static constexpr size_t huge_page = size_t{2} << 20;

  size_t size() const { return size_; }
  char* data() const { return memory_.get(); }

  /// Makes it at least so large, every page in place; what it held is lost. @throws std::bad_alloc
  bool reserve(uint64_t bytes)
  {
    if (bytes <= size_)
      return false;
    const size_t unit    = bytes < huge_page ? page : huge_page;
    const size_t rounded = (bytes + unit - 1) / unit * unit;
    memory_.reset();
    memory_.reset(static_cast<char*>(std::aligned_alloc(unit, rounded)));
    size_ = memory_ ? rounded : 0;
    if (!memory_)
      throw std::bad_alloc();
    if (unit == huge_page)
      madvise(memory_.get(), rounded, MADV_HUGEPAGE); // a wish: without, all goes on
    std::memset(memory_.get(), 0, rounded);
    return true;
  }

  /// Random bytes, so that no file system makes them smaller.
  void fill_random(uint64_t seed, uint32_t rank)
  {
    for (size_t at = 0; at < size_; at += 16) {
      const auto words = random_words(seed, Stream::content, rank, at / 16);
      std::memcpy(data() + at, words.data(), 16);
    }
  }

private:
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  std::unique_ptr<char, Free> memory_;
  size_t size_ = 0;
};

} // namespace iocast
