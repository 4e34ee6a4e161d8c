// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

namespace iocast {

/// The future event list. What comes next is in a 4-ary heap of 16-byte events (four children fill one cache line) that stays
/// small enough for the processor's cache; later events lie unsorted in buckets, and the nearest of them is spread over smaller ones
/// until it is small when the heap has run dry. So a million clients that start at once cost little more an event than a thousand.
/// Sorted no sooner than needed, as in the quickheaps of Navarro & Paredes 2010; by equal widths, as in the ladder queue of Tang, Goh & Thng 2005.
/// Events at the same time come out in the order they went in: first come, first served holds for constant times as well.
class Calendar {
public:
  struct Event {
    double time; ///< not negative
    uint32_t kind;
    uint32_t who;
  };
  static constexpr uint32_t kinds  = 16;
  static constexpr uint32_t owners = 1U << 28; ///< how many different `who` there can be

  static constexpr uint32_t most_near = 8; ///< events that ahead() shows

  /// Keeps the next few events in order from now on, for ahead(); that has its cost, which pays where memory is cold. To be called while there are no events.
  void look_ahead() { near_.open(); }
  bool empty() const { return heap_.empty() && near_.empty(); }
  size_t size() const
  {
    size_t events = near_.size() + heap_.size();
    for (const auto& bucket : later_)
      events += bucket.events.size();
    return events;
  }
  double next_time() const { return time_of(first()); }
  Event top() const { return event_of(first()); }
  /// Calls visit(event) for the event at `place` (0: the next; below most_near), if so many are in order.
  template <class Visit> void ahead(uint32_t place, Visit visit) const
  {
    if (place < near_.size())
      visit(event_of(near_[place]));
  }

  void push(double time, uint32_t kind, uint32_t who)
  {
    Entry entry = from_time(time) | static_cast<uint64_t>(pushed_++) << 32 | kind << 28 | who;
    if (near_.is_open()) [[unlikely]] {
      if (!near_.full()) { // there are no others
        near_.insert(entry);
        return;
      }
      if (entry < near_.back()) {
        const Entry last = near_.pop_back();
        near_.insert(entry);
        entry = last;
      }
    }
    if (!later_.empty() && entry >= later_.back().from) {
      put_later(entry);
      return;
    }
    heap_.push_back(entry);
    rise(heap_.size() - 1);
    if (heap_.size() >= most_in_heap)
      split_heap();
  }

  Event pop()
  {
    const Entry next = first();
    if (near_.is_open()) [[unlikely]] {
      near_.pop_front();
      if (heap_.empty())
        return event_of(next);
      near_.push_back(heap_.front());
    }
    const Entry last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty())
      sink(0, last);
    else if (!later_.empty())
      refill();
    return event_of(next);
  }

private:
  /// One number to compare: the time's bits, which order as the times do because none is negative, then 32 bits that count
  /// the events pushed, then 4 bits of kind and 28 of who. The count starts again after 2^32 events; only events at one time
  /// that were pushed before and after that moment then change places.
  __extension__ using Entry = unsigned __int128;

  static Entry from_time(double time) { return static_cast<Entry>(std::bit_cast<uint64_t>(time)) << 64; }
  static double time_of(Entry entry) { return std::bit_cast<double>(static_cast<uint64_t>(entry >> 64)); }
  static Event event_of(Entry entry)
  {
    const auto low = static_cast<uint32_t>(entry);
    return {time_of(entry), low >> 28, low & (owners - 1)};
  }

  static constexpr size_t most_in_heap = 1024;

  /// The next events, in order: who works them off can ask for the memory of those to come.
  class Near {
  public:
    void open() { open_ = true; }
    bool is_open() const { return open_; }
    bool empty() const { return size_ == 0; }
    bool full() const { return size_ == most_near; }
    uint32_t size() const { return size_; }
    Entry operator[](uint32_t place) const { return ring_[(first_ + place) % most_near]; }
    Entry back() const { return (*this)[size_ - 1]; }
    void push_back(Entry entry) { ring_[(first_ + size_++) % most_near] = entry; }
    Entry pop_back() { return ring_[(first_ + --size_) % most_near]; }
    void pop_front()
    {
      ++first_;
      --size_;
    }
    void insert(Entry entry)
    {
      uint32_t place = size_++;
      for (; place > 0 && entry < (*this)[place - 1]; --place)
        ring_[(first_ + place) % most_near] = (*this)[place - 1];
      ring_[(first_ + place) % most_near] = entry;
    }

  private:
    std::array<Entry, most_near> ring_{};
    uint32_t first_ = 0;
    uint32_t size_  = 0;
    bool open_      = false; ///< it is used
  };

  Entry first() const
  {
    if (near_.is_open()) [[unlikely]]
      return near_[0];
    return heap_.front();
  }

  /// Where to split events in two: at their mean time, or by the order of their coming if that is no moment between them.
  class Middle {
  public:
    void add(Entry entry)
    {
      least_ = std::min(least_, entry);
      most_  = std::max(most_, entry);
      times_ += time_of(entry);
      ++count_;
    }
    double least_time() const { return time_of(least_); }
    double most_time() const { return time_of(most_); }
    double mean_time() const { return times_ / static_cast<double>(count_); }
    /// Of two events or more: there are some before it and some from it on.
    Entry entry() const
    {
      const Entry mean = from_time(mean_time());
      return least_ < mean && mean <= most_ ? mean : least_ + (most_ - least_ + 1) / 2;
    }

  private:
    Entry least_  = ~Entry{0};
    Entry most_   = 0;
    double times_ = 0;
    size_t count_ = 0;
  };

  /// Events in no order, in blocks: a vector that grows would hold them twice meanwhile, and a million clients' events are as much memory as they may take.
  class Pile {
  public:
    size_t size() const { return size_; }
    void push_back(Entry entry)
    {
      if (size_ % block == 0)
        blocks_.emplace_back(new Entry[block]);
      blocks_.back()[size_++ % block] = entry;
      middle_.add(entry);
    }
    const Middle& middle() const { return middle_; }
    /// Calls take(entry) for all; the pile is empty afterwards, and gives back its memory on the way.
    template <class Take> void give(Take take)
    {
      for (size_t i = 0; i < blocks_.size(); ++i) {
        const size_t used = std::min(block, size_ - i * block);
        for (size_t k = 0; k < used; ++k)
          take(blocks_[i][k]);
        blocks_[i].reset();
      }
      *this = {};
    }

  private:
    static constexpr size_t block = 256;
    std::vector<std::unique_ptr<Entry[]>> blocks_;
    size_t size_ = 0;
    Middle middle_;
  };

  /// All events from time `from` up to that of the bucket before this one.
  struct Bucket {
    Entry from;
    Pile events;
  };

  void rise(size_t at)
  {
    const Entry entry = heap_[at];
    while (at > 0) {
      const size_t parent = (at - 1) / 4;
      if (heap_[parent] <= entry)
        break;
      heap_[at] = heap_[parent];
      at        = parent;
    }
    heap_[at] = entry;
  }

  void sink(size_t at, Entry entry)
  {
    const size_t size = heap_.size();
    for (;;) {
      const size_t child = 4 * at + 1;
      if (child >= size)
        break;
      size_t least = child;
      if (child + 4 <= size) { // a comparison here is a coin toss: added up, not branched on
        const size_t left  = child + (heap_[child + 1] < heap_[child]);
        const size_t right = child + 2 + (heap_[child + 3] < heap_[child + 2]);
        least              = left + (right - left) * (heap_[right] < heap_[left]);
      } else {
        for (size_t i = child + 1; i < size; ++i)
          least = heap_[i] < heap_[least] ? i : least;
      }
      if (heap_[least] >= entry)
        break;
      heap_[at] = heap_[least];
      at        = least;
    }
    heap_[at] = entry;
  }

  void put_later(Entry entry)
  {
    auto bucket = later_.rbegin();
    while (std::next(bucket) != later_.rend() && entry >= std::next(bucket)->from)
      ++bucket;
    bucket->events.push_back(entry);
  }

  /// Moves the later events of the heap to a bucket of their own.
  void split_heap()
  {
    Middle middle;
    for (const Entry entry : heap_)
      middle.add(entry);
    Bucket bucket{middle.entry(), {}};
    const auto later = std::partition(heap_.begin(), heap_.end(), [&](Entry entry) { return entry < bucket.from; });
    std::for_each(later, heap_.end(), [&](Entry entry) { bucket.events.push_back(entry); });
    heap_.erase(later, heap_.end());
    later_.push_back(std::move(bucket));
    make_heap();
  }

  void refill()
  {
    Pile next = std::move(later_.back().events);
    later_.pop_back();
    while (next.size() >= most_in_heap) {
      const Middle middle = next.middle();
      if (!spread(next, middle))
        halve(next, middle.entry());
    }
    next.give([&](Entry entry) { heap_.push_back(entry); });
    make_heap();
  }

  /// Leaves the events before `from` and moves the others to a bucket of their own.
  void halve(Pile& events, Entry from)
  {
    Bucket bucket{from, {}};
    Pile sooner;
    events.give([&](Entry entry) { (entry < from ? sooner : bucket.events).push_back(entry); });
    later_.push_back(std::move(bucket));
    events = std::move(sooner);
  }

  /// Moves all but the nearest events to buckets of equal width, which cover twice the time to the mean; the last one has what comes after that,
  /// too. One pass instead of the many of halving, whose every comparison is a coin toss. False when these moments are too close to be told apart.
  bool spread(Pile& events, const Middle middle) // a copy: it is gone with the events
  {
    constexpr size_t parts = 16;
    const double least     = middle.least_time();
    const double width     = (middle.mean_time() - least) * 2 / parts;
    std::array<double, parts + 1> from;
    for (size_t part = 0; part < parts; ++part)
      from[part] = least + static_cast<double>(part) * width;
    from[parts] = std::numeric_limits<double>::infinity();
    if (!(from[1] > least) || middle.most_time() < from[1]) // a mean of many equal times may lie beyond them
      return false;
    std::array<Pile, parts> piles;
    const double parts_per_second = 1 / width;
    events.give([&](Entry entry) {
      const double time = time_of(entry);
      auto part         = static_cast<size_t>(std::min((time - least) * parts_per_second, parts - 1.0));
      while (time < from[part]) // by rounding
        --part;
      while (time >= from[part + 1])
        ++part;
      piles[part].push_back(entry);
    });
    for (size_t part = parts - 1; part > 0; --part)
      if (piles[part].size() > 0)
        later_.push_back({from_time(from[part]), std::move(piles[part])});
    events = std::move(piles[0]);
    return true;
  }

  void make_heap()
  {
    for (size_t at = (heap_.size() + 2) / 4; at-- > 0;)
      sink(at, heap_[at]);
  }

  Near near_;
  std::vector<Entry> heap_; ///< where near_ is used empty unless that is full
  std::vector<Bucket> later_; ///< latest first
  uint32_t pushed_ = 0;
};

} // namespace iocast
