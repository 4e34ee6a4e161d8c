// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/job.hpp"
#include "models/page_cache.hpp"
#include "models/platform.hpp"
#include "models/ring.hpp"
#include "workload/op.hpp"

#include <list>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace iocast {

/// Who reads in turn through an instance of a cache, and what is on its way to it before anybody asks. What happens in
/// time is the system's business, which asks for next() after every plan() and arrived().
class ReadAhead {
public:
  /// Maximum number of streams of an instance: in all, and in addition for each reader. The least recently read are
  /// forgotten.
  static constexpr size_t fewest_streams    = 1024;
  static constexpr size_t streams_of_reader = 64;

  /// A reader's reads of an object, each beginning where the one before ended, or all of one size and as far apart.
  struct Stream {
    uint64_t key    = 0;
    uint64_t begin  = 0; ///< of the last one
    uint64_t end    = 0;
    uint64_t step   = 0; ///< from the beginning of the one before it, where both have one size
    uint64_t length = 0; ///< of all of them, bytes
    uint64_t looked = 0; ///< up to here it was seen to

    bool strides() const { return step > end - begin; }
  };
  struct Fetch {
    Op bytes; ///< as a pread
    uint64_t serial = 0;
    uint64_t epoch  = 0;
  };

  explicit ReadAhead(const CacheSpec& spec) : spec_(&spec) {}

  /// The reader reads the bytes from `begin` to `end` of the object. The stream that they go on with, or that they
  /// begin as they are the object's first ones; nullptr when neither: it may become one. Strides are those of three
  /// reads, as Lustre's client has it (stride_io_mode).
  Stream* read(uint64_t object, uint32_t reader, uint64_t begin, uint64_t end);
  /// Bytes that are wanted behind the stream: as many again as were read in turn, a piece at least.
  uint64_t window(const Stream& stream) const;

  /// Pages of the object, as much of it as they are, none of them on its way; false when there is no room for what is
  /// on its way already and these.
  bool plan(const Op& bytes, const std::vector<Pages>& pages);
  /// What begins to be fetched now, if anything.
  std::optional<Fetch> next();
  /// Pages of the block that are on their way.
  uint64_t coming(uint64_t block) const;
  /// False when none of the pages is on its way; otherwise the job waits for the first that is, and will be returned by
  /// an arrived() or a clear().
  bool wait(uint64_t block, uint64_t pages, JobId job);
  /// The pages need not come any more. Returns those that were on their way.
  uint64_t forget(uint64_t block, uint64_t pages);
  /// Pages of the block that come with this.
  uint64_t brings(const Fetch& fetch, uint64_t block) const;
  /// It was on its way when all was lost.
  bool has_lost(const Fetch& fetch) const { return fetch.epoch != epoch_; }
  /// It is there, and was not lost. Jobs that waited are appended to `freed`, first come, first.
  void arrived(const Fetch& fetch, std::vector<JobId>& freed);
  /// All is lost. Nobody waits any longer.
  void clear(std::vector<JobId>& freed);

  bool is_fetching() const { return fetching_ > 0; }
  /// Readers who read on where a stream had been forgotten, as there were too many. A lower bound: only the last ones
  /// are known.
  uint64_t interrupted() const { return interrupted_; }
  uint64_t pages() const { return coming_pages_; }
  /// What was planned has come, was forgotten, or is on its way; and so have those fetches that did not come.
  bool adds_up() const
  {
    return planned_ - gone_ == coming_pages_ && fetching_ + queue_.size() == fetches_.size() &&
           fetching_ <= spec_->at_once;
  }

private:
  struct Coming {
    Op bytes;
    std::vector<JobId> waiting;
  };
  /// Of a block, what one fetch brings; never nothing.
  struct Part {
    uint64_t serial;
    uint64_t pages;
  };

  const CacheSpec* spec_;
  static constexpr size_t most_forgotten = 1 << 16; ///< streams whose ends are known still

  std::list<Stream> streams_;                        ///< last used first
  std::unordered_set<uint32_t> readers_;             ///< all that have been there
  std::unordered_map<uint64_t, uint64_t> forgotten_; ///< by stream, where it would go on
  uint64_t interrupted_ = 0;
  std::unordered_map<uint64_t, std::list<Stream>::iterator> stream_of_; ///< by object and reader
  std::unordered_map<uint64_t, std::vector<Part>> coming_;              ///< by block
  std::unordered_map<uint64_t, Coming> fetches_;                        ///< by serial number
  Ring<uint64_t> queue_;                                                ///< that have not begun
  uint32_t fetching_     = 0;
  uint64_t serial_       = 0;
  uint64_t epoch_        = 0;
  uint64_t coming_pages_ = 0;
  uint64_t planned_      = 0; ///< pages
  uint64_t gone_         = 0;
};

/// How long objects are, as far as those are known that were made or written in the run.
class ObjectSizes {
public:
  /// The operation is done.
  void note(const Op& op);
  /// UINT64_MAX when it is not known.
  uint64_t of(const Op& op) const;

private:
  std::unordered_map<uint64_t, uint64_t> bytes_;
};

} // namespace iocast
