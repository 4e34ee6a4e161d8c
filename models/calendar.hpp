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

/// The future event list. What comes next is in a 4-ary heap of 16-byte events (four children fill one cache line) that
/// stays small enough for the processor's cache; later events lie unsorted in piles, and the nearest of them is spread
/// over smaller ones until it is small when the heap has run dry. So a million clients that start at once cost little
/// more an event than a thousand. Sorted no sooner than needed, as in the quickheaps of Navarro & Paredes 2010; by
/// equal widths, as in the ladder queue of Tang, Goh & Thng 2005. Events at the same time come out in the order they
/// went in: first come, first served holds for constant times as well.
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

  /// Keeps the next few events in order from now on, for ahead(); that has its cost, which pays where memory is cold.
  /// To be called while there are no events.
  void look_ahead() { near_.open(); }
  bool empty() const { return heap_.empty() && near_.empty(); }
  size_t size() const
  {
    size_t events = near_.size() + heap_.size();
    for (const auto& pile : later_)
      events += pile.size();
    return events;
  }
  double next_time() const { return time_of(first()); }
  Event top() const { return event_of(first()); }
  /// Calls visit(event) for the event at `place` (0: the next; below most_near), if that many are in order.
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
    if (!later_.empty() && entry >= later_from_.back()) {
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
  /// One number to compare: the time's bits, which order as the times do because none is negative, then 32 bits that
  /// count the events pushed, then 4 bits of kind and 28 of who. The count starts again after 2^32 events; only events
  /// at one time that were pushed before and after that moment then change places.
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

  /// When the events of a pile come.
  struct Times {
    double least = std::numeric_limits<double>::infinity();
    double most  = 0;
    double sum   = 0;

    void add(double time)
    {
      least = std::min(least, time);
      most  = std::max(most, time);
      sum += time;
    }
  };

  /// Events in no order, in blocks: a vector that grows would hold them twice meanwhile, and a million clients' events
  /// are as much memory as they may take.
  class Pile {
  public:
    size_t size() const { return blocks_.size() * block - static_cast<size_t>(end_ - next_); }
    void push_back(Entry entry)
    {
      if (next_ == end_) [[unlikely]]
        grow();
      *next_++ = entry;
      times_.add(time_of(entry));
    }
    /// Of two events or more: some come before it and some from it on. Their mean time, or a place in the order of
    /// their coming if they come at one time.
    Entry middle()
    {
      const Entry mean = from_time(mean_time());
      Entry least      = ~Entry{0};
      Entry most       = 0;
      each(
          [&](Entry entry) {
            least = std::min(least, entry);
            most  = std::max(most, entry);
          },
          [](const auto&) {});
      return least < mean && mean <= most ? mean : least + (most - least + 1) / 2;
    }
    const Times& times() const { return times_; }
    double mean_time() const { return times_.sum / static_cast<double>(size()); }
    /// Calls take(entry) for all; the pile is empty afterwards, and gives back its memory on the way.
    template <class Take> void give(Take take)
    {
      each(take, [](auto& entries) { entries.reset(); });
      *this = {};
    }

  private:
    static constexpr size_t block = 256;

    [[gnu::noinline]] void grow()
    {
      blocks_.emplace_back(new Entry[block]);
      next_ = blocks_.back().get();
      end_  = next_ + block;
    }
    template <class Take, class After> void each(Take take, After after)
    {
      for (size_t i = 0; i < blocks_.size(); ++i) {
        const Entry* entries = blocks_[i].get();
        const size_t used    = i + 1 == blocks_.size() ? static_cast<size_t>(next_ - entries) : block;
        for (size_t k = 0; k < used; ++k)
          take(entries[k]);
        after(blocks_[i]);
      }
    }

    std::vector<std::unique_ptr<Entry[]>>
        blocks_;            // whoever moves a pile away does not use it again before it is made anew
    Entry* next_ = nullptr; ///< in the last block
    Entry* end_  = nullptr; ///< of the last block
    Times times_;
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
    // Halving by counting instead of branching: where an event belongs is a coin toss each time.
    const Entry* first = later_from_.data();
    for (size_t left = later_from_.size(); left > 1;) {
      const size_t half = left / 2;
      first += first[half - 1] > entry ? half : 0;
      left -= half;
    }
    later_[static_cast<size_t>(first - later_from_.data())].push_back(entry);
  }

  /// Before all others of them.
  void add_later(Entry from, Pile events)
  {
    later_from_.push_back(from);
    later_.push_back(std::move(events));
  }

  /// Moves the later events of the heap to a pile of their own.
  void split_heap()
  {
    Pile events;
    for (const Entry entry : heap_)
      events.push_back(entry);
    heap_.clear();
    halve(events);
    events.give([&](Entry entry) { heap_.push_back(entry); });
    make_heap();
  }

  void refill()
  {
    Pile next = std::move(later_.back());
    later_.pop_back();
    later_from_.pop_back();
    while (next.size() >= most_in_heap)
      if (!spread(next))
        halve(next);
    next.give([&](Entry entry) { heap_.push_back(entry); });
    make_heap();
  }

  /// Leaves the events before their middle and moves the others to a pile of their own.
  void halve(Pile& events)
  {
    const Entry from = events.middle();
    Pile sooner;
    Pile later;
    events.give([&](Entry entry) { (entry < from ? sooner : later).push_back(entry); });
    add_later(from, std::move(later));
    events = std::move(sooner);
  }

  /// Moves all but the nearest events to piles of equal width, which cover twice the time to the mean; the last one has
  /// what comes after that, too. One pass instead of the many of halving, whose every comparison is a coin toss. False
  /// when these moments are too close to be distinguished.
  bool spread(Pile& events)
  {
    constexpr size_t parts = 64;
    const double least     = events.times().least;
    const double width     = (events.mean_time() - least) * 2 / parts;
    std::array<double, parts + 1> from;
    for (size_t part = 0; part < parts; ++part)
      from[part] = least + static_cast<double>(part) * width;
    from[parts] = std::numeric_limits<double>::infinity();
    if (!(from[1] > least) || events.times().most < from[1]) // a mean of many equal times may lie beyond them
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
        add_later(from_time(from[part]), std::move(piles[part]));
    events = std::move(piles[0]);
    return true;
  }

  void make_heap()
  {
    for (size_t at = (heap_.size() + 2) / 4; at-- > 0;)
      sink(at, heap_[at]);
  }

  Near near_;
  std::vector<Entry> heap_;       ///< where near_ is used empty unless that is full
  std::vector<Pile> later_;       ///< what comes after the heap's events, latest first
  std::vector<Entry> later_from_; ///< where each of these begins; it ends where the one before it begins
  uint32_t pushed_ = 0;
};

} // namespace iocast
