// SPDX-License-Identifier: Apache-2.0
#include "profile/summary.hpp"

#include <fmt/format.h>

namespace iocast {

namespace {
/// Three significant digits and a unit: "12.3 us".
std::string readable(double seconds)
{
  for (const auto& [unit, scale] : {std::pair{"s ", 1.0}, std::pair{"ms", 1e-3}, std::pair{"us", 1e-6}})
    if (seconds >= scale)
      return fmt::format("{:.{}f} {}", seconds / scale, seconds / scale >= 99.95 ? 0 : seconds / scale >= 9.995 ? 1 : 2, unit);
  return fmt::format("{:.0f} ns", seconds * 1e9);
}
} // namespace

std::string summary_text(const nlohmann::ordered_json& run)
{
  std::string text;
  for (const auto& phase : run["phases"]) {
    const auto repeat = phase["repeat"].get<uint32_t>();
    text += fmt::format("{}{}: {} operations in {} on {} ranks, {:.0f}/s, balance {:.2f}, {} errors\n", phase["name"].get<std::string>(),
                        repeat ? fmt::format(" {}", repeat) : "", phase["operations"].get<uint64_t>(),
                        readable(phase["seconds"].get<double>()), run["placement"]["ranks"].get<uint64_t>(), phase["rate"].get<double>(),
                        phase["balance"].get<double>(), phase["errors"].get<uint64_t>());
    if (phase["latency"].empty())
      continue;
    text += fmt::format("  {:<14}{:>10}", "", "count");
    for (const char* column : {"mean", "q50", "q75", "q95", "q99", "max"})
      text += fmt::format("{:>11}", column);
    text += "\n";
    for (const auto& [tag, latency] : phase["latency"].items()) {
      const auto dot = tag.find('.');
      text += fmt::format("  {:<14}{:>10}", dot == std::string::npos ? tag : "  ." + tag.substr(dot + 1), latency["count"].get<uint64_t>());
      for (const char* column : {"mean", "q50", "q75", "q95", "q99", "max"})
        text += fmt::format("{:>11}", readable(latency[column].get<double>()));
      text += "\n";
    }
  }
  return text;
}

} // namespace iocast
