// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace iocast {

/// Runs commands for another program for as long as that one keeps standard input open. Each runs in a fork of this
/// process, which is already linked and set up: that takes longer than a small simulation. `prepare` gets the arguments
/// before, in this process: what it keeps, runs find.
///
/// A request is a line {"directory": "/where/to/run", "arguments": ["--platform", ...]}. The answer is a line {"code":
/// 0, "out": 1234, "err": 0}, exit status (128 + signal for a run that one ended) and sizes, followed by the bytes that
/// the run wrote to standard output and error. Before it there are lines of progress (sim/progress.hpp) if the run is
/// long.
/// @return exit status @throws InputError for what is no request
int serve(const std::function<void(const std::vector<std::string>&)>& prepare,
          const std::function<int(const std::vector<std::string>&)>& run);

} // namespace iocast
