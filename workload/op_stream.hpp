// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "workload/op.hpp"

#include <cstdio>
#include <memory>
#include <string>

namespace iocast {

/// Writes the operations that an executor really carries out, one file a rank, one line an operation: kind, dataset,
/// object, size, offset, count, stride, flags. The real and the simulated executor both write through this, so equal
/// files mean equal streams.
class OpStreamWriter {
public:
  /// Opens `directory`/ops.<rank>. @throws RunError
  OpStreamWriter(const std::string& directory, uint32_t rank);
  void write(const Op& op);

private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;
};

} // namespace iocast
