// SPDX-License-Identifier: Apache-2.0
//
// In place of ops_file.cpp where HDF5 is missing: everything but traces works.
#include "input/error.hpp"
#include "workload/ops_file.hpp"

namespace iocast::ops_file {

void require()
{
  throw InputError("This build has no HDF5, in which traces are kept; install the Debian package libhdf5-dev and build "
                   "iocast again.");
}

struct Writer::Handles {};
struct Reader::Handles {};

Chunk pack(const std::vector<Row>&)
{
  require();
  return {};
}

Writer::Writer(std::string, const Index&, const nlohmann::ordered_json&)
{
  require();
}
Writer::~Writer() = default;
void Writer::put(uint64_t, const Chunk&) {}
void Writer::finish() {}

Reader::Reader(std::string)
{
  require();
}
Reader::Reader(Reader&&) noexcept = default;
Reader::~Reader()                 = default;
void Reader::visit(uint64_t, uint64_t, const std::function<void(const Row&)>&, const std::vector<Column>&) const {}

} // namespace iocast::ops_file
