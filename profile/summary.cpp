// SPDX-License-Identifier: Apache-2.0
#include "profile/summary.hpp"

#include <fmt/format.h>

namespace iocast {

namespace {
constexpr const char* quantities[] = {"mean", "q50", "q75", "q95", "q99", "max"};

/// A rate of a few operations a second has digits after the point, so that it is no 0.
std::string number_text(double rate)
{
  return fmt::format(fmt::runtime(rate < 10 ? "{:.3g}" : "{:.0f}"), rate);
}

/// A rate with the half width of its interval, where that says something.
std::string rate_with_interval(double rate, double half_width)
{
  if (half_width >= rate)
    return fmt::format("{} operations/s, with an interval wider than that", number_text(rate));
  if (half_width < rate / 1000)
    return fmt::format("{} operations/s +- less than 0.1 %", number_text(rate));
  return fmt::format("{} +- {} operations/s", number_text(rate), number_text(half_width));
}

/// Requested and reached precision of --until.
std::string until_text(const nlohmann::ordered_json& until)
{
  const auto& estimates = until["estimates"];
  if (estimates.empty())
    return "  --until: the phase was too short for any estimate; give it more operations\n";
  std::string text = fmt::format("  after a warm-up of {}, {} operations:\n",
                                 duration_text(until["warm_up"].get<double>()), until["operations"].get<uint64_t>());
  for (const auto& [name, one] : estimates.items()) {
    const auto value = one["value"].get<double>(), half = one["half_width"].get<double>();
    text += fmt::format(
        "    {:<13} {:>11} +- {:.1f} %{}\n", name, name == "rate" ? number_text(value) + "/s" : duration_text(value),
        value > 0 ? 100 * half / value : 0,
        one["met"].get<bool>() ? ""
                               : fmt::format(", not the requested {:.3g} %", 100 * one["requested"].get<double>()));
  }
  if (!until["met"].get<bool>())
    text += "    the phase ended before its results were so exact; give it more operations\n";
  return text;
}

std::string accelerators_text(const nlohmann::ordered_json& of)
{
  const auto count = of["count"].get<uint64_t>();
  std::string text = fmt::format("  {} accelerator{}: utilisation {:.1f} %", count, count == 1 ? "" : "s",
                                 100 * of["utilisation"].get<double>());
  if (of.contains("stall_share"))
    return text + fmt::format(", stalled {:.1f} % of the time\n", 100 * of["stall_share"].get<double>());
  if (of.contains("utilisation_after_first_step"))
    text += fmt::format(" ({:.1f} % after the first step)", 100 * of["utilisation_after_first_step"].get<double>());
  return text + fmt::format(", {} samples/s, {}\n", number_text(of["samples_per_second"].get<double>()),
                            bandwidth_text(of["bytes_per_second"].get<double>()));
}

/// Of links; nothing where none of them was busy for a tenth of the phase.
std::string busiest_text(const nlohmann::ordered_json& links)
{
  std::string text;
  for (const auto& link : links)
    if (const auto busy = link["busy"].get<double>(); busy >= 0.1)
      text += fmt::format("{} {} {:.0f} %", text.empty() ? "  busiest links:" : ",", link["name"].get<std::string>(),
                          100 * busy);
  return text.empty() ? text : text + "\n";
}

/// Instances that have at least twice their even share of a station's bytes.
std::string shares_text(const nlohmann::ordered_json& shares)
{
  std::string text;
  for (const auto& [station, most] : shares.items())
    if (const auto share = most["share"].get<double>(); share * most["instances"].get<double>() >= 2)
      text += fmt::format("  {} {} has {:.0f} % of the bytes of all {}\n", station, most["instance"].get<uint64_t>(),
                          100 * share, most["instances"].get<uint64_t>());
  return text;
}
} // namespace

std::string duration_text(double seconds)
{
  if (seconds == 0)
    return "0s";
  auto digits = [](double value) { return value < 10 ? 2 : value < 100 ? 1 : 0; };
  for (const auto& [unit, scale] : {std::pair{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}})
    if (seconds < 999.5 * scale)
      return fmt::format("{:.{}f}{}", seconds / scale, digits(seconds / scale), unit);
  return fmt::format("{:.{}f}s", seconds, digits(seconds));
}

std::string bandwidth_text(double bytes_per_second)
{
  for (const auto& [unit, scale] : {std::pair{"TB/s", 1e12}, {"GB/s", 1e9}, {"MB/s", 1e6}, {"kB/s", 1e3}})
    if (bytes_per_second >= 0.9995 * scale)
      return fmt::format("{:.3g} {}", bytes_per_second / scale, unit);
  return fmt::format("{:.3g} B/s", bytes_per_second);
}

std::string rate_text(double per_second)
{
  return per_second < 9999.5 ? fmt::format("{:.4g} ops/s", per_second) : fmt::format("{:.0f} ops/s", per_second);
}

std::string phase_title(const std::string& name, uint64_t repeat)
{
  return repeat > 0 ? fmt::format("{} {}", name, repeat) : name;
}

std::string summary_text(const nlohmann::ordered_json& run)
{
  auto counted = [&](const char* key, const char* word) {
    const auto count = run["placement"][key].get<uint64_t>();
    return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
  };
  std::string text = fmt::format("{} with {} on {}\n", run["workload"]["name"].get<std::string>(),
                                 counted("ranks", "rank"), counted("nodes", "node"));
  for (const auto& phase : run["phases"]) {
    const auto title = phase_title(phase["name"].get<std::string>(), phase["repeat"].get<uint64_t>());
    text += fmt::format(
        "\n{}: {} operations/s, {} operations in {}, balance {:.2f}{}, errors {}{}\n", title,
        number_text(phase["rate"].get<double>()), phase["operations"].get<uint64_t>(),
        duration_text(phase["seconds"].get<double>()), phase["balance"].get<double>(),
        phase.contains("node_balance") ? fmt::format(" (nodes {:.2f})", phase["node_balance"].get<double>()) : "",
        phase["errors"].get<uint64_t>(), phase.value("interrupted", false) ? ", interrupted" : "");
    if (const auto cut = phase.value("cut_ranks", uint64_t{0}); cut > 0)
      text += fmt::format("  after {}, {} of {} had not done all\n", duration_text(phase["most_seconds"].get<double>()),
                          cut, counted("ranks", "rank"));
    if (phase.contains("steady_state")) {
      const auto& steady = phase["steady_state"];
      text += fmt::format("  steady from {} to {}: {}\n", duration_text(steady["begin"].get<double>()),
                          duration_text(steady["end"].get<double>()),
                          rate_with_interval(steady["rate"].get<double>(), steady["rate_half_width"].get<double>()));
    }
    if (phase.contains("accelerators"))
      text += accelerators_text(phase["accelerators"]);
    if (phase.contains("network"))
      text += busiest_text(phase["network"]["busiest"]);
    if (phase.contains("network") && phase["network"].contains("shares"))
      text += shares_text(phase["network"]["shares"]);
    if (phase.contains("until"))
      text += until_text(phase["until"]);
    if (phase.contains("swept"))
      text += fmt::format("  swept: {} objects and datasets of an unfinished run were removed\n",
                          phase["swept"].get<uint64_t>());
    if (phase["latency"].empty())
      continue;
    text += fmt::format("  {:<13} {:>11}", "operation", "count");
    for (const char* key : quantities)
      text += fmt::format(" {:>8}", key);
    text += fmt::format(" {:>14} {:>11}\n", "per second", "bandwidth");
    for (const auto& [tag, latency] : phase["latency"].items()) {
      const auto dot  = tag.find('.');
      const auto name = dot == std::string::npos ? tag : "  " + tag.substr(dot);
      text += fmt::format("  {:<13} {:>11}", name, latency["count"].get<uint64_t>());
      for (const char* key : quantities)
        text += fmt::format(" {:>8}", duration_text(latency[key].get<double>()));
      const auto row = phase["by_operation"].value(tag, nlohmann::ordered_json::object()); // none of a part
      text +=
          fmt::format(" {:>14} {:>11}\n", row.empty() ? "" : rate_text(row["rate"].get<double>()),
                      row.contains("bytes_per_second") ? bandwidth_text(row["bytes_per_second"].get<double>()) : "");
    }
  }
  if (run.contains("repeats"))
    for (const auto& [name, of] : run["repeats"].items())
      text += fmt::format("\n{}, {} repeats: {}\n", name, of["count"].get<uint64_t>(),
                          rate_with_interval(of["rate"].get<double>(), of["rate_half_width"].get<double>()));
  return text;
}

} // namespace iocast
