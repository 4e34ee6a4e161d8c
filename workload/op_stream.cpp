// SPDX-License-Identifier: Apache-2.0
#include "workload/op_stream.hpp"

#include "input/error.hpp"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>

namespace iocast {

OpStreamWriter::OpStreamWriter(const std::string& directory, uint32_t rank)
{
  const auto name = fmt::format("{}/ops.{}", directory, rank);
  file_.reset(std::fopen(name.c_str(), "w"));
  if (!file_)
    throw RunError(fmt::format("The operation stream '{}' can't be written: {}.", name, std::strerror(errno)));
}

void OpStreamWriter::write(const Op& op)
{
  fmt::print(file_.get(), "{} {} {} {} {} {} {} {}\n", name_of(op.kind), op.dataset, op.object, op.size, op.offset,
             op.count, op.stride, op.flags);
}

} // namespace iocast
