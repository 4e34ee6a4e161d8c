// SPDX-License-Identifier: Apache-2.0
#include "workload/op.hpp"

namespace iocast {

std::optional<OpKind> op_named(std::string_view name)
{
  for (size_t i = 0; i < op_count; ++i)
    if (op_names[i] == name)
      return static_cast<OpKind>(i);
  return std::nullopt;
}

std::span<const std::string_view> parts_of(OpKind kind)
{
  static constexpr std::array<std::string_view, 3> written{"open", "write", "close"};
  static constexpr std::array<std::string_view, 3> fetched{"open", "read", "close"};
  if (kind == OpKind::create || kind == OpKind::append)
    return written;
  if (kind == OpKind::read)
    return fetched;
  return {};
}

} // namespace iocast
