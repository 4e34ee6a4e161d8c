// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace iocast {

/// The future event list: a 4-ary heap of 16-byte events, so that four children fill one cache line.
/// Events at the same time come out in an order that depends only on the order they went in.
class Calendar {
public:
  struct Event {
    double time;
    uint32_t kind;
    uint32_t who;
  };

  bool empty() const { return heap_.empty(); }
  size_t size() const { return heap_.size(); }
  void reserve(size_t events) { heap_.reserve(events); }
  double next_time() const { return heap_.front().time; }
  const Event& top() const { return heap_.front(); }

  void push(double time, uint32_t kind, uint32_t who)
  {
    size_t at = heap_.size();
    heap_.push_back({time, kind, who});
    while (at > 0) {
      const size_t parent = (at - 1) / 4;
      if (heap_[parent].time <= time)
        break;
      heap_[at] = heap_[parent];
      at        = parent;
    }
    heap_[at] = {time, kind, who};
  }

  Event pop()
  {
    const Event first = heap_.front();
    const Event last  = heap_.back();
    heap_.pop_back();
    const size_t size = heap_.size();
    if (size == 0)
      return first;
    size_t at = 0;
    for (;;) {
      const size_t child = 4 * at + 1;
      if (child >= size)
        break;
      size_t least      = child;
      const size_t stop = child + 4 < size ? child + 4 : size;
      for (size_t i = child + 1; i < stop; ++i)
        least = heap_[i].time < heap_[least].time ? i : least;
      if (heap_[least].time >= last.time)
        break;
      heap_[at] = heap_[least];
      at        = least;
    }
    heap_[at] = last;
    return first;
  }

private:
  std::vector<Event> heap_;
};

} // namespace iocast
