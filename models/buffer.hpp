// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/flat_table.hpp"
#include "models/job.hpp"
#include "models/platform.hpp"
#include "models/ring.hpp"
#include "models/turns.hpp"

#include <limits>
#include <optional>
#include <unordered_map>
#include <vector>

namespace iocast {

/// Bytes that objects have in the instances of a buffer, and who waits until there are none. Only objects that have
/// some take memory.
class DirtyObjects {
public:
  void add(uint64_t key, uint64_t bytes, uint32_t instance);
  /// Jobs that need wait no longer are appended to `freed`, first come, first.
  void remove(uint64_t key, uint64_t bytes, uint32_t instance, std::vector<JobId>& freed);
  /// True when nothing is there that the job must wait for; otherwise it waits, and `instances` are those that must
  /// drain.
  bool wait(uint64_t key, Flush flush, uint32_t own, JobId job, std::vector<uint32_t>& instances);
  size_t size() const { return objects_.size(); }
  void prefetch(uint64_t key) const { objects_.prefetch(key); }

private:
  /// An object: in one instance, as most are, and nobody waits; or else as `several` says.
  struct Slot {
    uint64_t key      = 0;
    uint64_t bytes    = 0;
    uint32_t instance = 0;

    bool used() const { return bytes > 0; }
  };
  static constexpr uint32_t several = UINT32_MAX; ///< in place of an instance: see several_

  struct Part {
    uint32_t instance;
    uint64_t bytes;
  };
  struct Waiter {
    JobId job;
    Flush flush;
    uint32_t own; ///< instance

    bool waits_for(uint32_t instance) const
    {
      return flush == Flush::everywhere || (flush == Flush::object) == (instance == own);
    }
    bool waits_for_any(const std::vector<Part>& parts) const;
  };
  struct Dirty {
    std::vector<Part> parts; ///< none is empty
    std::vector<Waiter> waiting;
  };
  Dirty& of_several(Slot& slot);

  FlatTable<Slot> objects_;
  std::unordered_map<uint64_t, Dirty> several_;
};

/// What buffers did, over all of a name.
struct BufferSums {
  uint64_t entered = 0; ///< bytes
  uint64_t drained = 0;
  uint64_t held    = 0; ///< at this moment
  uint64_t peak    = 0; ///< most that one instance held
  uint64_t pieces  = 0; ///< drained
  uint64_t stopped = 0; ///< writes that had to wait for room
  double wait      = 0; ///< their seconds
};

/// Memory that takes writes and empties in the background: who is in, who waits for room, what drains next. What
/// happens in time is the system's business, which asks for next() after every call that isn't const.
class Buffer {
public:
  /// @param objects where it keeps what it has of each object; none when nobody will wait for single ones
  Buffer(const BufferSpec& spec, uint32_t number, BufferSums& sums, DirtyObjects* objects);

  /// True when all bytes of the write are in; otherwise the job waits and will be returned by a drained().
  bool enter(JobId job, const Op& write, double now);
  /// A piece that begins to drain now, if there is one.
  std::optional<Extent> next(double now);
  /// A piece of this epoch is out. Jobs that waited for that, for their own write's room or for a flush, are appended
  /// to `freed`.
  void drained(const Op& piece, uint64_t epoch, double now, std::vector<JobId>& freed);
  /// True when nothing is in; otherwise the job waits until all that is in now is out.
  bool flush(JobId job);
  /// All that is in drains, and waits for no more bytes.
  void empty();
  /// Somebody waits for some of it to be out: all of it drains, however little it is.
  void hurry() { urgent_ = true; }
  /// No more bytes join what is in of the object with this object_key(), and it lingers no longer.
  void close(uint64_t key);

  /// Asks for the cache lines that an entry or the drain of these bytes will need soon,
  void prefetch(const Op& bytes) const
  {
    if (objects_)
      objects_->prefetch(object_key(bytes));
    for (size_t at = 0; at < sizeof(Buffer); at += 64)
      __builtin_prefetch(reinterpret_cast<const char*>(this) + at);
  }
  /// and, when these have come, for what they refer to.
  void prefetch_contents() const
  {
    if (!ready_.empty())
      __builtin_prefetch(&ready_.front());
  }

  uint64_t held() const { return held_; }
  /// When the next extent has lingered long enough; infinity when none lingers.
  double due() const;
  /// What is in, counted in the other two ways: what has not drained of each epoch, and what went in and didn't come
  /// out.
  bool adds_up() const;
  double scheduled = std::numeric_limits<double>::infinity(); ///< time of the event that looks for what has lingered

private:
  struct Writer {
    JobId job = nobody;
    Op rest; ///< of its bytes
    double since = 0;
  };

  bool admit(Op& write, double now);
  void put(Op& write, uint64_t bytes, double now);
  Extent new_extent(const Op& write, double now);
  Turns& newest_ready();
  Extent& open_extent(const Op& write, double now);
  void close_at(uint64_t place);
  void forget_closed();
  bool open_is_due(double now) const;
  uint64_t newest_epoch() const { return first_epoch_ + epochs_.size(); }

  const BufferSpec* spec_;
  BufferSums* sums_;
  DirtyObjects* objects_; ///< of all instances, or null
  uint32_t number_;
  uint32_t draining_ = 0; ///< pieces
  uint64_t held_     = 0;
  uint64_t entered_  = 0;
  uint64_t drained_  = 0;
  uint64_t serial_   = 0;
  bool urgent_       = false; ///< until it is empty
  bool stopped_      = false; ///< nobody enters until so much has drained
  Ring<Writer> writers_;
  Ring<Turns> ready_;       ///< whole pieces, and those that nothing may join any more; what a flush waits for first
  Ring<Extent> open_;       ///< that adjacent bytes may join, oldest first; those with 0 bytes are gone
  uint64_t first_open_ = 0; ///< number of open_.front() among all that ever were there
  std::unordered_map<uint64_t, uint64_t> open_of_; ///< number of an object's open extent
  // Epochs are numbered by the flushes before.
  uint64_t newest_ = 0;   ///< bytes that are in since the last flush
  Ring<uint64_t> epochs_; ///< and of the epochs before, as long as some are in
  uint64_t first_epoch_ = 0;
  Ring<std::pair<uint64_t, JobId>> flushes_; ///< epoch that must be out, ascending
};

/// All instances of a buffer of the platform.
struct Buffers {
  const BufferSpec* spec;
  HugeVector<Buffer> instances;
  BufferSums sums;
  DirtyObjects objects;
  uint32_t first_instance;        ///< number of instance 0 among the instances of all buffers
  uint64_t pieces = 0;            ///< that ever were
  std::vector<uint64_t> to_stage; ///< by instance: bytes that are to come in before the first phase

  Buffers(const BufferSpec& buffer, uint32_t count, uint32_t first, bool by_object)
      : spec(&buffer), first_instance(first)
  {
    instances.reserve(count);
    for (uint32_t i = 0; i < count; ++i)
      instances.emplace_back(buffer, i, sums, by_object ? &objects : nullptr);
  }
  Buffers(const Buffers&)            = delete; // its instances point into it
  Buffers& operator=(const Buffers&) = delete;
};

} // namespace iocast
