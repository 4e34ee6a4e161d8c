// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdlib>
#include <new>
#include <sys/mman.h>
#include <vector>

namespace iocast {

/// Memory in pages of 2 MiB where the system has them: a million clients, visited in no order, would else miss the
/// processor's table of pages at each step.
template <class T> struct HugePages {
  using value_type = T;
  HugePages()      = default;
  template <class U> HugePages(const HugePages<U>&) {}
  T* allocate(size_t count)
  {
    constexpr size_t page = size_t{1} << 21;
    const size_t bytes    = count * sizeof(T);
    if (bytes < page)
      return static_cast<T*>(::operator new(bytes, std::align_val_t{alignof(T)}));
    const size_t rounded = (bytes + page - 1) / page * page;
    void* memory         = std::aligned_alloc(page, rounded);
    if (memory == nullptr)
      throw std::bad_alloc();
    madvise(memory, rounded, MADV_HUGEPAGE); // a wish; whatever comes of it
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t count)
  {
    if (count * sizeof(T) < size_t{1} << 21)
      ::operator delete(memory, std::align_val_t{alignof(T)});
    else
      std::free(memory);
  }
  bool operator==(const HugePages&) const { return true; }
};

template <class T> using HugeVector = std::vector<T, HugePages<T>>;

} // namespace iocast
