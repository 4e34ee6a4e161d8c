// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "workload/ops_file.hpp"
#include "workload/pattern.hpp"

#include <mutex>
#include <string>
#include <vector>

namespace iocast {

/// A file without a name in $TMPDIR (or /tmp): it is gone with the process, however that ends. Made when first written
/// to.
class ScratchFile {
public:
  ScratchFile() = default;
  ~ScratchFile();
  ScratchFile(const ScratchFile&)            = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  /// @return where it went @throws RunError
  uint64_t append(const void* data, size_t bytes);
  void write(uint64_t at, const void* data, size_t bytes);
  void read(uint64_t at, void* data, size_t bytes) const;

private:
  void check(bool good, const char* what) const;
  int fd_        = -1;
  uint64_t size_ = 0;
};

/// Keeps the operations of some ranks, as they happen, until they are written to a file: about ten bytes each, in a
/// buffer a rank and beyond that in a scratch file. Memory doesn't grow with their number. Each rank may be added to by
/// a thread of its own.
class OpTrace {
public:
  explicit OpTrace(uint32_t ranks);

  /// @throws RunError when the scratch file can't be written
  void add(uint32_t rank, const TracedOp& traced)
  {
    Log& log       = logs_[rank];
    const auto end = log.codec.encode(traced, log.buffer.get() + log.used);
    log.used       = static_cast<uint32_t>(end - log.buffer.get());
    ++log.count;
    if (log.used + OpCodec::most_bytes > buffer_bytes_) [[unlikely]]
      spill(log);
  }

  uint32_t ranks() const { return static_cast<uint32_t>(logs_.size()); }
  uint64_t count(uint32_t rank) const { return logs_[rank].count; }
  /// Calls see(traced) for all operations of the rank, in order.
  template <class See> void visit(uint32_t rank, See see) const
  {
    const Log& log = logs_[rank];
    OpCodec codec;
    std::vector<unsigned char> block;
    auto see_all = [&](const unsigned char* at, const unsigned char* end) {
      for (TracedOp traced; at < end; see(static_cast<const TracedOp&>(traced)))
        at = codec.decode(at, traced);
    };
    for (uint64_t at = log.first_block; at != none;) {
      at = read_block(at, block);
      see_all(block.data(), block.data() + block.size());
    }
    see_all(log.buffer.get(), log.buffer.get() + log.used);
  }

private:
  static constexpr uint64_t none = UINT64_MAX;
  struct alignas(64) Log { // ranks that are threads share no cache line
    OpCodec codec;
    std::unique_ptr<unsigned char[]> buffer;
    uint32_t used        = 0;
    uint64_t count       = 0;
    uint64_t first_block = none;
    uint64_t last_block  = none;
  };
  void spill(Log& log);
  /// @return where the rank's next block is
  uint64_t read_block(uint64_t at, std::vector<unsigned char>& block) const;

  uint32_t buffer_bytes_;
  std::vector<Log> logs_;
  std::mutex scratch_mutex_;
  ScratchFile scratch_;
};

/// What the file's `about` says of a run; `source` is run.json's.
nlohmann::ordered_json about_trace(const std::string& source, const nlohmann::ordered_json& workload,
                                   const Placement& placement, const Pattern& pattern, uint64_t seed);
/// Groups of all ranks, and their first rows from their numbers of operations.
ops_file::Index trace_index(const Pattern& pattern, const std::vector<uint64_t>& counts);
/// Writes what all ranks have, in one process. @throws RunError
void write_trace(const OpTrace& trace, const Pattern& pattern, const std::string& file,
                 const nlohmann::ordered_json& about);

} // namespace iocast
