// SPDX-License-Identifier: Apache-2.0
#include "real/gather_trace.hpp"

#include "real/agree.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

namespace iocast {

namespace {
using ops_file::Chunk;
using ops_file::chunk_rows;
using ops_file::Row;

constexpr int tag_rows  = 1;
constexpr int tag_sizes = 2;
constexpr int tag_bytes = 3;

/// The chunks of one rank, packed and waiting for their turn.
class PackedChunks {
public:
  void add(const Chunk& chunk)
  {
    Sizes sizes;
    std::string bytes;
    for (size_t column = 0; column < ops_file::columns; ++column) {
      sizes[column] = static_cast<uint32_t>(chunk[column].size());
      bytes += chunk[column];
    }
    const uint64_t at = scratch_.append(bytes.data(), bytes.size());
    chunks_.push_back({at, sizes});
  }
  using Sizes = std::array<uint32_t, ops_file::columns>;
  size_t count() const { return chunks_.size(); }
  Sizes sizes(size_t number) const { return chunks_[number].sizes; }
  std::string bytes(size_t number) const
  {
    const auto& [at, sizes] = chunks_[number];
    std::string bytes(std::accumulate(sizes.begin(), sizes.end(), size_t{0}), '\0');
    scratch_.read(at, bytes.data(), bytes.size());
    return bytes;
  }

private:
  struct Where {
    uint64_t at;
    Sizes sizes;
  };
  std::vector<Where> chunks_;
  ScratchFile scratch_;
};

Chunk unpacked(const PackedChunks::Sizes& sizes, const std::string& bytes)
{
  Chunk chunk;
  size_t at = 0;
  for (size_t column = 0; column < ops_file::columns; ++column) {
    chunk[column] = bytes.substr(at, sizes[column]);
    at += sizes[column];
  }
  return chunk;
}

/// Rows of a rank that lie in a chunk which begins with another rank's go to that rank: a chunk is compressed by one.
class Sharing {
public:
  Sharing(const ops_file::Index& index, const Cluster& cluster) : rank_(cluster.rank())
  {
    const uint32_t clients = index.ranks() / cluster.size();
    for (uint32_t client = 0; client <= index.ranks(); client += clients)
      first_.push_back(index.first_row[client]);
  }

  uint64_t begin() const { return first_[rank_]; }
  uint64_t end() const { return first_[rank_ + 1]; }
  /// The rows at the beginning of this rank's that belong to an earlier rank's chunk.
  uint64_t lent() const { return std::min(end() - begin(), (chunk_rows - begin() % chunk_rows) % chunk_rows); }
  /// Whoever has the first row of the chunk that `row` lies in.
  int owner(uint64_t row) const
  {
    return static_cast<int>(std::upper_bound(first_.begin(), first_.end(), row / chunk_rows * chunk_rows) -
                            first_.begin()) -
           1;
  }
  /// Numbers of the chunks whose first rows are `rank`'s: half open.
  std::pair<uint64_t, uint64_t> chunks(uint32_t rank) const
  {
    auto from = [](uint64_t row) { return (row + chunk_rows - 1) / chunk_rows; };
    return {from(first_[rank]), from(first_[rank + 1])};
  }
  std::pair<uint64_t, uint64_t> chunks() const { return chunks(rank_); }
  /// How many rows before `end` are `rank`'s.
  uint64_t rows_before(uint64_t end, uint32_t rank) const
  {
    return std::clamp(end, first_[rank], first_[rank + 1]) - first_[rank];
  }

private:
  std::vector<uint64_t> first_; ///< row of each rank, all its clients together, and the end
  uint32_t rank_;
};

void pack_mine(const Cluster& cluster, const OpTrace& mine, const Sharing& sharing, PackedChunks& packed)
{
  static_assert(std::is_trivially_copyable_v<Row>);
  const auto [first_chunk, end_chunk] = sharing.chunks();
  std::vector<Row> lent;
  std::vector<Row> rows;
  MPI_Request sent = MPI_REQUEST_NULL;
  auto send        = [&] {
    MPI_Isend(lent.data(), static_cast<int>(lent.size() * sizeof(Row)), MPI_BYTE, sharing.owner(sharing.begin()),
                     tag_rows, cluster.comm(), &sent);
  };
  auto see = [&](const Row& row) {
    if (lent.size() < sharing.lent()) {
      lent.push_back(row);
      if (lent.size() == sharing.lent())
        send();
      return;
    }
    rows.push_back(row);
    if (rows.size() == chunk_rows) {
      packed.add(ops_file::pack(rows));
      rows.clear();
    }
  };
  const auto failed = failure_of([&] {
    for (uint32_t client = 0; client < mine.ranks(); ++client)
      mine.visit(client, [&](const TracedOp& traced) { see({traced, cluster.rank() * mine.ranks() + client}); });
  });
  // Whatever has failed, what others wait for comes.
  if (sent == MPI_REQUEST_NULL && sharing.lent() > 0) {
    lent.resize(sharing.lent());
    send();
  }
  if (first_chunk < end_chunk) { // the last one may go on with rows of the ranks behind
    for (uint32_t other = cluster.rank() + 1; other < cluster.size(); ++other) {
      std::vector<Row> theirs(sharing.rows_before(end_chunk * chunk_rows, other));
      if (theirs.empty())
        continue;
      MPI_Recv(theirs.data(), static_cast<int>(theirs.size() * sizeof(Row)), MPI_BYTE, static_cast<int>(other),
               tag_rows, cluster.comm(), MPI_STATUS_IGNORE);
      rows.insert(rows.end(), theirs.begin(), theirs.end());
    }
  }
  MPI_Wait(&sent, MPI_STATUS_IGNORE);
  auto failure = failed;
  if (!failure && !rows.empty())
    failure = failure_of([&] { packed.add(ops_file::pack(rows)); });
  settle(cluster, failure);
}
} // namespace

void gather_trace(const Cluster& cluster, const OpTrace& mine, const Pattern& pattern, const std::string& file,
                  const nlohmann::ordered_json& about)
{
  std::vector<uint64_t> own;
  for (uint32_t client = 0; client < mine.ranks(); ++client)
    own.push_back(mine.count(client));
  std::vector<uint64_t> counts(cluster.size() * own.size());
  const auto clients = static_cast<int>(own.size());
  MPI_Allgather(own.data(), clients, MPI_UINT64_T, counts.data(), clients, MPI_UINT64_T, cluster.comm());
  const auto index = trace_index(pattern, counts);
  const Sharing sharing(index, cluster);
  PackedChunks packed;
  pack_mine(cluster, mine, sharing, packed);

  std::unique_ptr<ops_file::Writer> writer;
  agree(cluster, [&] {
    if (cluster.is_first())
      writer = ops_file::new_file(file, index, about);
  });
  std::optional<Failure> failure;
  if (!cluster.is_first()) {
    for (size_t number = 0; number < packed.count(); ++number) {
      const auto sizes = packed.sizes(number);
      std::string bytes(std::accumulate(sizes.begin(), sizes.end(), size_t{0}), '\0');
      if (auto unread = failure_of([&] { bytes = packed.bytes(number); }); unread && !failure)
        failure = unread;
      MPI_Send(sizes.data(), static_cast<int>(sizes.size()), MPI_UINT32_T, 0, tag_sizes, cluster.comm());
      MPI_Send(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, 0, tag_bytes, cluster.comm());
    }
  } else {
    auto put = [&](uint64_t number, const PackedChunks::Sizes& sizes, const std::string& bytes) {
      if (!failure)
        failure = failure_of([&] { writer->put(number, unpacked(sizes, bytes)); });
    };
    for (uint32_t rank = 0; rank < cluster.size(); ++rank) {
      const auto [first, end] = sharing.chunks(rank);
      for (uint64_t number = first; number < end; ++number) {
        if (rank == 0) {
          if (!failure)
            failure = failure_of([&] { put(number, packed.sizes(number), packed.bytes(number)); });
          continue;
        }
        PackedChunks::Sizes sizes;
        MPI_Recv(sizes.data(), static_cast<int>(sizes.size()), MPI_UINT32_T, static_cast<int>(rank), tag_sizes,
                 cluster.comm(), MPI_STATUS_IGNORE);
        std::string bytes(std::accumulate(sizes.begin(), sizes.end(), size_t{0}), '\0');
        MPI_Recv(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, static_cast<int>(rank), tag_bytes,
                 cluster.comm(), MPI_STATUS_IGNORE);
        put(number, sizes, bytes);
      }
    }
    if (!failure)
      failure = failure_of([&] { writer->finish(); });
  }
  settle(cluster, failure);
}

} // namespace iocast
