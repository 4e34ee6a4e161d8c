// SPDX-License-Identifier: Apache-2.0
#include "real/processor.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <vector>

namespace iocast {

namespace {

std::string trimmed(const std::string& text)
{
  const auto first = text.find_first_not_of(" \t");
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

} // namespace

std::string processor_model(std::istream& cpuinfo)
{
  std::string implementer;
  std::vector<std::string> cores;
  for (std::string line; std::getline(cpuinfo, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos)
      continue;
    const auto key   = trimmed(line.substr(0, colon));
    const auto value = trimmed(line.substr(colon + 1));
    if ((key == "model name" || key == "cpu") && !value.empty())
      return value;
    if (key == "CPU implementer")
      implementer = value;
    if (key == "CPU part") {
      const auto core = fmt::format("CPU implementer {}, part {}", implementer, value);
      if (std::find(cores.begin(), cores.end(), core) == cores.end())
        cores.push_back(core);
    }
  }
  std::string all;
  for (const auto& core : cores)
    all += (all.empty() ? "" : "; ") + core;
  return all.empty() ? "unknown" : all;
}

} // namespace iocast
