// SPDX-License-Identifier: Apache-2.0
#include "workload/ops_file.hpp"

#include "input/error.hpp"
#include "input/own_library.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <zlib.h>

namespace iocast::ops_file {

namespace {
const Library& load()
{
  if (own_library::names("hdf5").empty())
    throw InputError(
        fmt::format("There is no HDF5, in which traces are kept: it is looked for in '{}'. If iocast was built "
                    "with libhdf5-dev, {}.",
                    own_library::place(), own_library::how_to_have_them));
  try {
    return *static_cast<const Library*>(own_library::symbol_of("hdf5", "iocast_hdf5"));
  } catch (const RunError& error) {
    throw InputError(fmt::format("HDF5 can't be loaded on this machine, in which traces are kept: {}.", error.what()));
  }
}

const Library& library()
{
  static const Library& loaded = load();
  return loaded;
}

uint64_t value_of(const Row& row, size_t column)
{
  const Op& op = row.traced.op;
  switch (static_cast<Column>(column)) {
    case Column::rank:
      return row.rank;
    case Column::kind:
      return static_cast<uint64_t>(op.kind);
    case Column::flags:
      return op.flags;
    case Column::count:
      return op.count;
    case Column::dataset:
      return op.dataset;
    case Column::object:
      return op.object;
    case Column::size:
      return op.size;
    case Column::offset:
      return op.offset;
    case Column::stride:
      return op.stride;
    case Column::start_ns:
      return static_cast<uint64_t>(row.traced.start_ns);
    case Column::duration_ns:
      return static_cast<uint64_t>(row.traced.ns);
    case Column::error:
      return static_cast<uint32_t>(row.traced.error);
  }
  return 0;
}

} // namespace

void require()
{
  library();
}

std::unique_ptr<Writer> new_file(const std::string& file, const Index& index, const nlohmann::ordered_json& about)
{
  return library().make(file, index, about);
}

std::unique_ptr<Reader> open_file(const std::string& file)
{
  return library().open(file);
}

Chunk pack(const std::vector<Row>& rows)
{
  constexpr int level = 4; // beyond it the random digits of times cost more time and hardly less space
  Chunk chunk;
  std::string shuffled;
  for (size_t column = 0; column < columns; ++column) {
    const size_t width = column_bytes[column];
    // First the lowest bytes of all values, then the next: what times have in common comes together.
    shuffled.assign(width * chunk_rows, '\0');
    for (size_t i = 0; i < rows.size(); ++i) {
      uint64_t value = value_of(rows[i], column);
      for (size_t byte = 0; byte < width; ++byte, value >>= 8)
        shuffled[byte * chunk_rows + i] = static_cast<char>(value);
    }
    uLongf length = compressBound(shuffled.size());
    chunk[column].resize(length);
    if (compress2(reinterpret_cast<Bytef*>(chunk[column].data()), &length,
                  reinterpret_cast<const Bytef*>(shuffled.data()), shuffled.size(), level) != Z_OK)
      throw RunError("Traced operations can't be compressed: zlib is out of memory.");
    chunk[column].resize(length);
    chunk[column].shrink_to_fit();
  }
  return chunk;
}

} // namespace iocast::ops_file
