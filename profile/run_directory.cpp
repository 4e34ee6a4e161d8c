// SPDX-License-Identifier: Apache-2.0
#include "profile/run_directory.hpp"

#include "input/error.hpp"
#include "profile/confidence.hpp"
#include "profile/steady_state.hpp"

#include <algorithm>
#include <boost/sort/spreadsort/float_sort.hpp>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <set>
#include <unistd.h>

namespace fs = std::filesystem;

namespace iocast {

namespace {
constexpr double ns = 1e-9;

nlohmann::ordered_json summary(const Histogram& histogram)
{
  nlohmann::ordered_json json{{"count", histogram.count()},
                              {"mean", histogram.mean_ns() * ns},
                              {"min", static_cast<double>(histogram.min_ns()) * ns},
                              {"q25", histogram.quantile_ns(0.25) * ns},
                              {"q50", histogram.quantile_ns(0.50) * ns},
                              {"q75", histogram.quantile_ns(0.75) * ns},
                              {"q95", histogram.quantile_ns(0.95) * ns},
                              {"q99", histogram.quantile_ns(0.99) * ns},
                              {"q999", histogram.quantile_ns(0.999) * ns},
                              {"max", static_cast<double>(histogram.max_ns()) * ns}};
  if (histogram.beyond() > 0)
    json["beyond_a_day"] = histogram.beyond();
  return json;
}

/// Calls visit(tag, histogram) for every operation ("create") and part ("create.open") that was seen; in an open loop
/// also for the time since the intended start ("create.response").
template <class Visit> void for_each_histogram(const PhaseRecorder& recorder, Visit visit)
{
  for (size_t k = 0; k < op_count; ++k) {
    const auto kind = static_cast<OpKind>(k);
    if (!recorder.has(kind) || recorder.of_kind(kind).whole.count() == 0)
      continue;
    const auto& of = recorder.of_kind(kind);
    const std::string tag(name_of(kind));
    visit(tag, of.whole);
    const auto parts = parts_of(kind);
    for (size_t i = 0; i < parts.size(); ++i)
      visit(tag + "." + std::string(parts[i]), of.parts[i]);
    if (of.response)
      visit(tag + ".response", *of.response);
  }
}

/// run.json is written whole. While it is short, this is done after each phase; with more phases, where what a kill
/// could cost is one of many, not oftener than this.
constexpr auto between_writes = std::chrono::seconds(1);
constexpr size_t few_phases   = 16;

/// Of more ranks or nodes the times are given as percentiles.
constexpr size_t most_listed = 10'000;

/// The shortest time over the longest, of those that had operations; 1 without any.
double balance_of(const std::vector<double>& seconds)
{
  const double shortest = shortest_working(seconds);
  return shortest > 0 ? shortest / *std::max_element(seconds.begin(), seconds.end()) : 1.0;
}

/// Of each node the mean of the times of its ranks that had operations: a rank may have had bad luck, of a node's ranks
/// together that is less likely.
std::vector<double> node_means(const PhaseResult& result)
{
  if (result.ranks_per_node == 0)
    return {};
  const auto& all    = result.rank_seconds;
  const size_t nodes = (all.size() + result.ranks_per_node - 1) / result.ranks_per_node;
  std::vector<double> means(nodes);
  std::vector<size_t> working(nodes);
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const size_t node = result.cyclic ? rank % nodes : rank / result.ranks_per_node;
    means[node] += all[rank];
    working[node] += all[rank] > 0;
  }
  for (size_t node = 0; node < nodes; ++node)
    means[node] /= static_cast<double>(std::max<size_t>(working[node], 1));
  return means;
}

/// The values at 0 %, 1 %, ... 100 %.
std::vector<double> percentiles(std::vector<double> values)
{
  boost::sort::spreadsort::float_sort(values.begin(), values.end()); // there may be a million
  std::vector<double> result;
  for (size_t percent = 0; percent <= 100; ++percent)
    result.push_back(values[percent * (values.size() - 1) / 100]);
  return result;
}

/// All of them; of many their percentiles, under a name that says so.
void list(nlohmann::ordered_json& json, const std::string& key, std::vector<double>&& values)
{
  if (values.size() <= most_listed)
    json[key] = values;
  else
    json[key + "_quantiles"] = percentiles(std::move(values));
}

nlohmann::ordered_json timeline_json(const PhaseRecorder& recorder)
{
  int64_t width = 0;
  for (size_t k = 0; k < op_count; ++k)
    if (recorder.has(static_cast<OpKind>(k)))
      width = std::max(width, recorder.of_kind(static_cast<OpKind>(k)).timeline.width_ns());
  nlohmann::ordered_json json{{"bin_seconds", static_cast<double>(width) * ns}};
  for (size_t k = 0; k < op_count; ++k) {
    const auto kind = static_cast<OpKind>(k);
    if (!recorder.has(kind) || recorder.of_kind(kind).whole.count() == 0)
      continue;
    Timeline timeline = recorder.of_kind(kind).timeline;
    timeline.set_width(width);
    size_t used = timeline.data().size();
    while (used > 0 && timeline.data()[used - 1].count == 0)
      --used;
    auto count = nlohmann::ordered_json::array();
    auto mean  = nlohmann::ordered_json::array();
    auto max   = nlohmann::ordered_json::array();
    for (size_t i = 0; i < used; ++i) {
      const auto& bin = timeline.data()[i];
      count.push_back(bin.count);
      mean.push_back(bin.count ? bin.sum_ns / static_cast<double>(bin.count) * ns : 0);
      max.push_back(static_cast<double>(bin.max_ns) * ns);
    }
    json[std::string(name_of(kind))] = {
        {"count", std::move(count)}, {"mean", std::move(mean)}, {"max", std::move(max)}};
  }
  return json;
}

/// What each kind of operation did: how many, how many a second of the phase, and where it moves data, bytes and bytes
/// a second.
nlohmann::ordered_json by_operation_json(const PhaseRecorder& recorder, double seconds)
{
  auto json = nlohmann::ordered_json::object();
  for (size_t k = 0; k < op_count; ++k) {
    const auto kind = static_cast<OpKind>(k);
    if (!recorder.has(kind) || recorder.of_kind(kind).whole.count() == 0)
      continue;
    const auto& of = recorder.of_kind(kind);
    auto& row      = json[std::string(name_of(kind))];
    row = {{"count", of.whole.count()}, {"rate", seconds > 0 ? static_cast<double>(of.whole.count()) / seconds : 0}};
    if (of.bytes > 0) {
      row["bytes"]            = of.bytes;
      row["bytes_per_second"] = seconds > 0 ? static_cast<double>(of.bytes) / seconds : 0;
    }
  }
  return json;
}

/// Utilisation is the time that accelerators compute over the phase's; without the first step, for which nothing can be
/// read ahead, it is the public benchmark's definition (DLIO's `au`, which leaves out that step).
nlohmann::ordered_json accelerators_json(const PhaseResult& result, const PhaseRecorder& recorder)
{
  const Accelerators& all = *result.accelerators;
  const double seconds    = result.seconds;
  auto a_second           = [&](double amount) { return seconds > 0 ? amount / seconds : 0; };
  const auto count        = static_cast<double>(all.count);
  double bytes            = 0;
  for (size_t k = 0; k < op_count; ++k)
    if (const auto kind = static_cast<OpKind>(k); recorder.has(kind))
      bytes += static_cast<double>(recorder.of_kind(kind).bytes);
  const double computed = all.compute_seconds / count;
  nlohmann::ordered_json json{
      {"count", all.count}, {"compute_seconds", all.compute_seconds}, {"utilisation", a_second(computed)}};
  if (all.checkpoints)
    json["stall_share"] = seconds > 0 ? 1 - computed / seconds : 0;
  else
    json["samples_per_second"] = a_second(static_cast<double>(all.samples));
  json["bytes_per_second"] = a_second(bytes);
  if (const double rest = seconds - result.first_step_seconds; all.steps > 1 && rest > 0)
    json["utilisation_after_first_step"] =
        computed * static_cast<double>(all.steps - 1) / static_cast<double>(all.steps) / rest;
  return json;
}

/// Whether two phases of one name did the same: the same operations and, unless something cut one of them short, as
/// many of each.
bool did_the_same(const nlohmann::ordered_json& a, const nlohmann::ordered_json& b)
{
  auto cut = [](const nlohmann::ordered_json& phase) {
    return phase["errors"] > 0 || phase.value("cut_ranks", uint64_t{0}) > 0 || phase.contains("until");
  };
  if (a["latency"].size() != b["latency"].size())
    return false;
  for (const auto& [operation, latency] : a["latency"].items()) {
    const auto same = b["latency"].find(operation);
    if (same == b["latency"].end() || (!cut(a) && !cut(b) && (*same)["count"] != latency["count"]))
      return false;
  }
  return true;
}

/// The rates of phases that were run several times, to their end; turns of an application that do something else each
/// time are no repeats.
nlohmann::ordered_json repeats_json(const nlohmann::ordered_json& phases)
{
  std::map<std::string, std::vector<double>> rates;
  std::map<std::string, const nlohmann::ordered_json*> first;
  std::set<std::string> turns;
  for (const auto& phase : phases)
    if (phase["repeat"] > 0 && !phase.value("interrupted", false)) {
      const auto name = phase["name"].get<std::string>();
      if (!did_the_same(*first.try_emplace(name, &phase).first->second, phase))
        turns.insert(name);
      rates[name].push_back(phase["rate"]);
    }
  std::erase_if(rates, [&](const auto& entry) { return turns.contains(entry.first); });
  auto json = nlohmann::ordered_json::object();
  for (const auto& [name, values] : rates)
    if (values.size() > 1) {
      const auto [mean, half_width] = mean_interval(values);
      json[name]                    = {{"count", values.size()}, {"rate", mean}, {"rate_half_width", half_width}};
    }
  return json;
}
} // namespace

nlohmann::ordered_json phase_to_json(PhaseResult result, const PhaseRecorder& recorder, Detail detail)
{
  nlohmann::ordered_json json;
  json["name"]          = result.name;
  json["repeat"]        = result.repeat;
  json["start_seconds"] = result.start_seconds;
  json["seconds"]       = result.seconds;
  json["operations"]    = recorder.operations();
  json["errors"]        = recorder.errors();
  json["rate"]          = result.seconds > 0 ? static_cast<double>(recorder.operations()) / result.seconds : 0;
  json["by_operation"]  = by_operation_json(recorder, result.seconds);
  json["balance"]       = balance_of(result.rank_seconds);
  auto node_seconds     = node_means(result);
  if (node_seconds.size() > 1)
    json["node_balance"] = balance_of(node_seconds);
  json["responding_seconds"]   = recorder.responding_seconds();
  json["think_asked_seconds"]  = result.think_asked_seconds;
  json["think_actual_seconds"] = result.think_actual_seconds;
  if (result.most_seconds > 0) {
    json["most_seconds"] = result.most_seconds;
    json["cut_ranks"]    = result.cut_ranks;
  }
  if (const auto steady = steady_state(recorder, result.rank_seconds))
    json["steady_state"] = {{"begin", steady->begin_seconds},
                            {"end", steady->end_seconds},
                            {"operations", steady->operations},
                            {"rate", steady->rate},
                            {"rate_half_width", steady->rate_half_width}};
  if (result.accelerators)
    json["accelerators"] = accelerators_json(result, recorder);
  auto latency = nlohmann::ordered_json::object();
  for_each_histogram(recorder,
                     [&](const std::string& tag, const Histogram& histogram) { latency[tag] = summary(histogram); });
  json["latency"] = std::move(latency);
  auto errors     = nlohmann::ordered_json::object();
  for (size_t k = 0; k < op_count; ++k)
    if (const auto kind = static_cast<OpKind>(k); recorder.has(kind) && recorder.of_kind(kind).errors > 0)
      errors[std::string(name_of(kind))] = recorder.of_kind(kind).errors;
  json["errors_by_operation"] = errors;
  if (detail == Detail::brief)
    return json;
  json["timeline"] = timeline_json(recorder);
  auto slowest     = nlohmann::ordered_json::array();
  for (const auto& slow : recorder.slow())
    slowest.push_back({{"op", name_of(slow.kind)},
                       {"rank", slow.rank},
                       {"start", static_cast<double>(slow.start_ns) * ns},
                       {"seconds", static_cast<double>(slow.ns) * ns},
                       {"dataset", slow.dataset},
                       {"object", slow.object}});
  json["slowest"] = std::move(slowest);
  list(json, "rank_seconds", std::move(result.rank_seconds));
  if (node_seconds.size() > 1)
    list(json, "node_seconds", std::move(node_seconds));
  return json;
}

RunDirectory::RunDirectory(std::string path, Detail detail) : path_(std::move(path)), detail_(detail)
{
  if (path_.empty())
    return;
  std::error_code error;
  if (fs::exists(path_, error))
    throw InputError(
        fmt::format("The output directory '{}' exists already; name a new one, nothing is overwritten.", path_));
  if (!fs::create_directories(path_, error))
    throw RunError(fmt::format("The output directory '{}' can't be made: {}.", path_, error.message()));
  directory_ = FileDescriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory_)
    throw RunError(fmt::format("The output directory '{}' can't be opened: {}.", path_, std::strerror(errno)));
}

void RunDirectory::begin(nlohmann::ordered_json header)
{
  json_           = std::move(header);
  json_["status"] = "running";
  json_["phases"] = nlohmann::ordered_json::array();
  if (!path_.empty()) {
    log_ = make_file_in(directory_.number(), path_, "latency.hlog");
    append_whole(log_, path_ + "/latency.hlog",
                 "#[HdrHistogram log, format version 1.3; values in nanoseconds; tag = phase.operation[.part]]\n"
                 "#[StartTime: 0.000 (seconds since the start of the run)]\n"
                 "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n");
  }
  write();
}

void RunDirectory::reserve(uint64_t bytes)
{
  reserved_ = path_.empty() ? 0 : bytes;
  if (const int error = take_room(); error == ENOSPC || error == EDQUOT) {
    ::rmdir(path_.c_str()); // so that the same command begins anew
    throw RunError(fmt::format("The output directory '{}' has no room for the results, up to {} bytes: {}. Nothing was "
                               "measured.",
                               path_, bytes, std::strerror(error)));
  }
}

/// @return 0, or an errno
int RunDirectory::take_room()
{
  if (reserved_ == 0)
    return 0;
  const auto name = fmt::format(".room.{}", random_word());
  room_           = make_file_in(directory_.number(), path_, name);
  ::unlinkat(directory_.number(), name.c_str(), 0);
  return ::fallocate(room_.number(), 0, 0, static_cast<off_t>(reserved_)) == 0 ? 0 : errno;
}

void RunDirectory::add_phase(PhaseResult result, const PhaseRecorder& recorder, const nlohmann::ordered_json& more)
{
  room_.close();
  if (!path_.empty()) {
    std::string lines;
    for_each_histogram(recorder, [&](const std::string& tag, const Histogram& histogram) {
      lines += fmt::format("Tag={}.{},{:.3f},{:.3f},{:.3f},{}\n", result.name, tag, result.start_seconds,
                           result.seconds, static_cast<double>(histogram.max_ns()) * 1e-6, histogram.encode());
    });
    append_whole(log_, path_ + "/latency.hlog", lines);
  }
  json_["phases"].push_back(phase_to_json(std::move(result), recorder, detail_));
  json_["phases"].back().update(more);
  if (json_["phases"].size() <= few_phases || std::chrono::steady_clock::now() - written_ >= between_writes)
    write();
  if (reserved_ > 0)
    take_room(); // if it can't, what was measured is there nevertheless
}

void RunDirectory::end(const std::string& status, const nlohmann::ordered_json& more)
{
  room_.close();
  json_["status"] = status;
  json_.update(more);
  if (const auto repeats = repeats_json(json_["phases"]); !repeats.empty())
    json_["repeats"] = repeats;
  write();
}

void RunDirectory::write()
{
  if (path_.empty())
    return;
  // The log first: a run.json never speaks of a phase whose histograms aren't there.
  if (::fsync(log_.number()) != 0)
    throw RunError(fmt::format("The file '{}/latency.hlog' can't be written: {}.", path_, std::strerror(errno)));
  write_atomically_in(directory_.number(), path_, "run.json", json_.dump(1) + "\n");
  written_ = std::chrono::steady_clock::now();
}

} // namespace iocast
