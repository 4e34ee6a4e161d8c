// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "workload/op_codec.hpp"

#include <array>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace iocast {

/// ops.h5: every operation of every rank, as columns of equal length in an HDF5 file that any HDF5 tool opens; see
/// docs/run-directory.md. The rows of a rank lie together, in their order.
namespace ops_file {

/// Refuses traces in a build without HDF5. @throws InputError
void require();

/// The columns, in the order in which a chunk holds them.
enum class Column : uint8_t {
  rank,
  kind,
  flags,
  count,
  dataset,
  object,
  size,
  offset,
  stride,
  start_ns,
  duration_ns,
  error
};
constexpr std::array<std::string_view, 12> column_names{"rank", "kind",   "flags",  "count",    "dataset",     "object",
                                                        "size", "offset", "stride", "start_ns", "duration_ns", "error"};
constexpr std::array<uint8_t, 12> column_bytes{4, 1, 1, 4, 8, 8, 8, 8, 8, 8, 8, 4};
constexpr size_t columns = column_names.size();

/// Rows of a chunk: what is compressed, read and written at once.
constexpr uint64_t chunk_rows = 16384;

struct Row {
  TracedOp traced;
  uint32_t rank = 0;
};

/// At most chunk_rows rows, each column shuffled and deflated as HDF5's filters do it: whoever has the rows can
/// compress them, and whoever has the file only stores what comes.
using Chunk = std::array<std::string, columns>;
Chunk pack(const std::vector<Row>& rows);

/// Which rows are whose.
struct Index {
  std::vector<uint64_t> first_row; ///< of each rank, and the end
  std::vector<uint32_t> group;     ///< of each rank, see Pattern::group_of

  uint32_t ranks() const { return static_cast<uint32_t>(group.size()); }
  uint64_t rows() const { return first_row.back(); }
};

/// Writes a file; it has its name only once it is whole.
class Writer {
public:
  /// `about` says where the operations come from: the keys of docs/run-directory.md. @throws RunError
  Writer(std::string file, const Index& index, const nlohmann::ordered_json& about);
  ~Writer();
  Writer(const Writer&)            = delete;
  Writer& operator=(const Writer&) = delete;

  /// Chunk number `number`, in any order. @throws RunError
  void put(uint64_t number, const Chunk& chunk);
  /// @throws RunError
  void finish();

private:
  struct Handles;
  std::string file_;
  std::unique_ptr<Handles> handles_;
};

/// Reads a file.
class Reader {
public:
  /// @throws InputError when there is no such file, when it was cut off, is of another format or version, or its
  /// columns don't fit together
  explicit Reader(std::string file);
  ~Reader();
  Reader(Reader&&) noexcept;
  Reader(const Reader&)            = delete;
  Reader& operator=(const Reader&) = delete;

  const Index& index() const { return index_; }
  const nlohmann::ordered_json& about() const { return about_; }
  /// Visits rows [first, end) in order. With `only` set to some columns the others are left at their defaults and not
  /// read.
  /// @throws InputError when the file is damaged, or has an operation that this program doesn't know
  void visit(uint64_t first, uint64_t end, const std::function<void(const Row&)>& see,
             const std::vector<Column>& only = {}) const;

private:
  struct Handles;
  [[noreturn]] void fail(const std::string& what) const;

  std::string file_;
  std::unique_ptr<Handles> handles_;
  Index index_;
  nlohmann::ordered_json about_;
  std::array<int, 256> kinds_{}; ///< of the file's codes; -1 for a name that this program doesn't know
  std::array<std::string, 256> kind_names_;
};

} // namespace ops_file
} // namespace iocast
