// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace iocast {

/// A queue that takes no memory until something is in it; of what it takes it keeps the most.
template <class T> class Ring {
public:
  bool empty() const { return length_ == 0; }
  size_t size() const { return length_; }
  T& operator[](size_t place) { return ring_[(head_ + place) & (ring_.size() - 1)]; }
  const T& operator[](size_t place) const { return ring_[(head_ + place) & (ring_.size() - 1)]; }
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return (*this)[length_ - 1]; }
  T& push_back(T value)
  {
    if (length_ == ring_.size()) {
      std::vector<T> larger(std::max<size_t>(1, 2 * ring_.size()));
      for (size_t place = 0; place < length_; ++place)
        larger[place] = std::move((*this)[place]);
      ring_.swap(larger);
      head_ = 0;
    }
    ++length_;
    return back() = std::move(value);
  }
  void pop_front()
  {
    ++head_;
    --length_;
  }

private:
  std::vector<T> ring_; ///< its size is a power of two, or zero
  size_t head_   = 0;
  size_t length_ = 0;
};

} // namespace iocast
