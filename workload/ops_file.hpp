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

/// Loads HDF5, once. @throws InputError in a build without it, and where it can't be loaded
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
  virtual ~Writer() = default;
  /// Chunk number `number`, in any order. @throws RunError
  virtual void put(uint64_t number, const Chunk& chunk) = 0;
  /// @throws RunError
  virtual void finish() = 0;
};

/// Reads a file.
class Reader {
public:
  virtual ~Reader()                                   = default;
  virtual const Index& index() const                  = 0;
  virtual const nlohmann::ordered_json& about() const = 0;
  /// Visits rows [first, end) in order. With `only` set to some columns the others are left at their defaults and not
  /// read.
  /// @throws InputError when the file is damaged, or has an operation that this program doesn't know
  virtual void visit(uint64_t first, uint64_t end, const std::function<void(const Row&)>& see,
                     const std::vector<Column>& only = {}) const = 0;
};

/// `about` says where the operations come from: the keys of docs/run-directory.md. @throws RunError
std::unique_ptr<Writer> new_file(const std::string& file, const Index& index, const nlohmann::ordered_json& about);

/// @throws InputError when there is no such file, when it was cut off, is of another format or version, or its columns
/// don't fit together
std::unique_ptr<Reader> open_file(const std::string& file);

/// Both, as the library with HDF5 has them (workload/hdf5/, input/own_library.hpp).
struct Library {
  decltype(&ops_file::new_file) make;
  decltype(&ops_file::open_file) open;
};

} // namespace ops_file
} // namespace iocast
