// SPDX-License-Identifier: Apache-2.0
#include "real/claim.hpp"

#include "input/error.hpp"
#include "profile/files.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <ctime>
#include <exception>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace iocast {

namespace {
int64_t now_seconds()
{
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string utc(int64_t seconds)
{
  const std::time_t time = seconds;
  std::tm parts{};
  std::array<char, 32> text{};
  if (!gmtime_r(&time, &parts) || std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts) == 0)
    return "an unknown time";
  return text.data();
}

std::string first_line(const std::string& file)
{
  std::string line;
  std::getline(std::ifstream(file), line);
  return line;
}

std::string this_host()
{
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string this_namespace()
{
  std::array<char, 64> link{};
  const ssize_t length = ::readlink("/proc/self/ns/pid", link.data(), link.size());
  return length > 0 ? std::string(link.data(), static_cast<size_t>(length)) : "";
}

int64_t seconds_up()
{
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return time.tv_sec;
}

/// 0 when there is no such process, or nothing but its exit code.
uint64_t start_ticks(int64_t process)
{
  const auto line = first_line(fmt::format("/proc/{}/stat", process));
  // The name of the program, in parentheses, may hold anything; the state is field 3, the start field 22.
  size_t at = line.rfind(')');
  if (at == line.npos || at + 2 >= line.size() || line[at + 2] == 'Z' || line[at + 2] == 'X')
    return 0;
  for (int field = 3; at != line.npos && field <= 22; ++field)
    at = line.find(' ', at + 1);
  return at == line.npos ? 0 : std::strtoull(line.c_str() + at + 1, nullptr, 10);
}
} // namespace

Claim Claim::of_this_process()
{
  const int64_t now = now_seconds();
  return {random_word(),
          this_host(),
          first_line("/proc/sys/kernel/random/boot_id"),
          this_namespace(),
          ::getpid(),
          start_ticks(::getpid()),
          now,
          now,
          first_line("/etc/machine-id")};
}

std::optional<Claim> Claim::parse(const std::string& text)
{
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object())
    return std::nullopt;
  const auto whole = [&](const char* key) { return json.at(key).get_ref<const int64_t&>(); };
  try {
    Claim claim{json.at("run"),       json.at("host"),  json.at("boot"),
                json.at("namespace"), whole("process"), json.at("process_ticks").get_ref<const uint64_t&>(),
                whole("began"),       whole("seen"),    json.value("machine", "")};
    if (claim.process > 0 && claim.process <= INT32_MAX && claim.began >= 0 && claim.seen >= 0)
      return claim;
  } catch (const nlohmann::json::exception&) { // a key is missing, or its value has another type
  }
  return std::nullopt;
}

std::string Claim::text() const
{
  const nlohmann::ordered_json json{{"schema_version", 1}, {"run", run},
                                    {"host", host},        {"machine", machine},
                                    {"boot", boot},        {"namespace", namespace_id},
                                    {"process", process},  {"process_ticks", process_ticks},
                                    {"began", began},      {"began_utc", utc(began)},
                                    {"seen", seen},        {"seen_utc", utc(seen)}};
  return json.dump(1) + "\n";
}

std::optional<bool> Claim::is_alive() const
{
  if (host != this_host())
    return std::nullopt;
  if (boot != first_line("/proc/sys/kernel/random/boot_id")) {
    // It was here before this machine was started, unless it gave a sign of life since: nodes of one image may have one
    // name and number.
    const bool same = !machine.empty() && machine == first_line("/etc/machine-id");
    return same && silent_for() > seconds_up() ? std::optional(false) : std::nullopt;
  }
  if (namespace_id != this_namespace())
    return std::nullopt;
  const uint64_t ticks = start_ticks(process);
  // Where /proc hides other users' processes, no more can be known than that there is one of this number.
  if (ticks == 0 && ::kill(static_cast<pid_t>(process), 0) != 0 && errno == EPERM)
    return std::nullopt;
  return ticks == process_ticks;
}

Claim Claim::renewed() const
{
  Claim result = *this;
  result.seen  = now_seconds();
  return result;
}

int64_t Claim::silent_for() const
{
  return now_seconds() - seen;
}

std::string Claim::owner() const
{
  return fmt::format("process {} on host '{}', which began at {} and gave its last sign of life at {}", process,
                     printable(host, 64), utc(began), utc(seen));
}

} // namespace iocast
