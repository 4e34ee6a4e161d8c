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

} // namespace iocast
