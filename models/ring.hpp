// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace iocast {

/// A queue that takes no memory until something is in it; it keeps the most memory that it ever took.
template <class T> class Ring {
public:
  bool empty() const { return length_ == 0; }
  size_t size() const { return length_; }
  T& operator[](size_t place) { return ring_[at(place)]; }
  const T& operator[](size_t place) const { return ring_[at(place)]; }
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return (*this)[length_ - 1]; }
  T& push_back(T value)
  {
    if (length_ == room_)
      grow();
    ++length_;
    return back() = std::move(value);
  }
  void pop_front()
  {
    ++head_;
    --length_;
  }

private:
  size_t at(size_t place) const { return (head_ + place) & (room_ - 1); }
  void grow()
  {
    const uint32_t room = room_ == 0 ? 1 : 2 * room_;
    auto larger         = std::make_unique<T[]>(room);
    for (size_t place = 0; place < length_; ++place)
      larger[place] = std::move((*this)[place]);
    ring_ = std::move(larger);
    room_ = room;
    head_ = 0;
  }

  std::unique_ptr<T[]> ring_;
  uint32_t room_   = 0; ///< a power of two, or zero
  uint32_t head_   = 0; ///< modulo the room
  uint32_t length_ = 0;
};

} // namespace iocast
