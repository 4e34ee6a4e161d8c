// SPDX-License-Identifier: Apache-2.0
#include "profile/op_trace.hpp"

#include "input/error.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <numeric>
#include <unistd.h>
#include <utility>

namespace iocast {

// ---- a file without a name
// ----------------------------------------------------------------------------------------------

ScratchFile::~ScratchFile()
{
  if (fd_ >= 0)
    ::close(fd_);
}

void ScratchFile::check(bool good, const char* what) const
{
  if (!good)
    throw RunError(fmt::format("The trace's scratch file in '{}' can't be {}: {}. Set TMPDIR to a directory with room.",
                               std::getenv("TMPDIR") ? std::getenv("TMPDIR") : "/tmp", what, std::strerror(errno)));
}

uint64_t ScratchFile::append(const void* data, size_t bytes)
{
  if (fd_ < 0) {
    const char* directory = std::getenv("TMPDIR");
    std::string name      = std::string(directory ? directory : "/tmp") + "/iocast-trace-XXXXXX";
    fd_                   = ::mkstemp(name.data());
    check(fd_ >= 0, "made");
    ::unlink(name.c_str());
  }
  const uint64_t at = size_;
  write(at, data, bytes);
  size_ += bytes;
  return at;
}

void ScratchFile::write(uint64_t at, const void* data, size_t bytes)
{
  for (size_t done = 0; done < bytes;) {
    const ssize_t written =
        ::pwrite(fd_, static_cast<const char*>(data) + done, bytes - done, static_cast<off_t>(at + done));
    check(written > 0 || errno == EINTR, "written");
    done += written > 0 ? static_cast<size_t>(written) : 0;
  }
}

void ScratchFile::read(uint64_t at, void* data, size_t bytes) const
{
  for (size_t done = 0; done < bytes;) {
    const ssize_t got = ::pread(fd_, static_cast<char*>(data) + done, bytes - done, static_cast<off_t>(at + done));
    check(got > 0 || (got < 0 && errno == EINTR), "read");
    done += got > 0 ? static_cast<size_t>(got) : 0;
  }
}

// ---- operations as they happen
// ------------------------------------------------------------------------------------------

namespace {
constexpr size_t most_memory = size_t{64} << 20; ///< of the buffers of all ranks, unless there are very many

/// At the start of a block.
struct BlockHeader {
  uint64_t next;
  uint64_t bytes;
};
} // namespace

OpTrace::OpTrace(uint32_t ranks)
    : buffer_bytes_(static_cast<uint32_t>(std::clamp<size_t>(most_memory / ranks, 512, 1 << 20))), logs_(ranks)
{
  for (auto& log : logs_)
    log.buffer = std::make_unique<unsigned char[]>(buffer_bytes_);
}

void OpTrace::spill(Log& log)
{
  // A run that can't spill still closes what it has open, and traces that: the buffer has room again, come what may.
  const BlockHeader header{none, std::exchange(log.used, 0)};
  const std::lock_guard lock(scratch_mutex_);
  const uint64_t at = scratch_.append(&header, sizeof header);
  scratch_.append(log.buffer.get(), header.bytes);
  if (log.last_block == none)
    log.first_block = at;
  else
    scratch_.write(log.last_block, &at, sizeof at); // BlockHeader::next
  log.last_block = at;
}

uint64_t OpTrace::read_block(uint64_t at, std::vector<unsigned char>& block) const
{
  BlockHeader header;
  scratch_.read(at, &header, sizeof header);
  block.resize(header.bytes);
  scratch_.read(at + sizeof header, block.data(), block.size());
  return header.next;
}

// ---- the file
// -----------------------------------------------------------------------------------------------------------

nlohmann::ordered_json about_trace(const std::string& source, const nlohmann::ordered_json& workload,
                                   const Placement& placement, const Pattern& pattern, uint64_t seed)
{
  auto phases = nlohmann::ordered_json::array();
  for (const auto& phase : pattern.phases())
    phases.push_back({{"name", phase.name}, {"repeat", phase.repeat}});
  const auto footprint = pattern.footprint();
  return {{"source", source},
          {"tool", {{"name", source == "bench" ? "iocast-bench" : "iocast-sim"}, {"version", IOCAST_VERSION}}},
          {"seed", seed},
          {"workload", workload},
          {"placement", {{"ranks", placement.ranks}, {"ranks_per_node", placement.ranks_per_node}}},
          {"phases", phases},
          {"peak_objects", footprint.peak_objects},
          {"peak_bytes", footprint.peak_bytes}};
}

ops_file::Index trace_index(const Pattern& pattern, const std::vector<uint64_t>& counts)
{
  ops_file::Index index;
  index.first_row.resize(counts.size() + 1);
  std::partial_sum(counts.begin(), counts.end(), index.first_row.begin() + 1);
  for (uint32_t rank = 0; rank < counts.size(); ++rank)
    index.group.push_back(pattern.group_of(rank));
  return index;
}

void write_trace(const OpTrace& trace, const Pattern& pattern, const std::string& file,
                 const nlohmann::ordered_json& about)
{
  std::vector<uint64_t> counts;
  for (uint32_t rank = 0; rank < trace.ranks(); ++rank)
    counts.push_back(trace.count(rank));
  const auto writer = ops_file::new_file(file, trace_index(pattern, counts), about);
  std::vector<ops_file::Row> rows;
  uint64_t chunk = 0;
  auto put       = [&] {
    writer->put(chunk++, ops_file::pack(rows));
    rows.clear();
  };
  for (uint32_t rank = 0; rank < trace.ranks(); ++rank)
    trace.visit(rank, [&](const TracedOp& traced) {
      rows.push_back({traced, rank});
      if (rows.size() == ops_file::chunk_rows)
        put();
    });
  if (!rows.empty())
    put();
  writer->finish();
}

} // namespace iocast
