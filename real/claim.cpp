// SPDX-License-Identifier: Apache-2.0
#include "real/claim.hpp"

#include "input/error.hpp"
#include "profile/files.hpp"

#include <array>
#include <chrono>
#include <ctime>
#include <exception>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace iocast {

namespace {
constexpr auto between_signs     = std::chrono::seconds(60);
constexpr int64_t given_up_after = 300; ///< seconds without a sign of life

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

std::string who(const Claim& claim)
{
  return fmt::format("process {} on host '{}', which began at {} and gave its last sign of life at {}", claim.process,
                     printable(claim.host, 64), utc(claim.began), utc(claim.seen));
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
          now};
}

std::optional<Claim> Claim::parse(const std::string& text)
{
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object())
    return std::nullopt;
  const auto whole = [&](const char* key) { return json.at(key).get_ref<const int64_t&>(); };
  try {
    return Claim{json.at("run"),       json.at("host"),  json.at("boot"),
                 json.at("namespace"), whole("process"), json.at("process_ticks").get_ref<const uint64_t&>(),
                 whole("began"),       whole("seen")};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

std::string Claim::text() const
{
  const nlohmann::ordered_json json{{"schema_version", 1},
                                    {"run", run},
                                    {"host", host},
                                    {"boot", boot},
                                    {"namespace", namespace_id},
                                    {"process", process},
                                    {"process_ticks", process_ticks},
                                    {"began", began},
                                    {"began_utc", utc(began)},
                                    {"seen", seen},
                                    {"seen_utc", utc(seen)}};
  return json.dump(1) + "\n";
}

bool Claim::is_near() const
{
  return host == this_host() && boot == first_line("/proc/sys/kernel/random/boot_id") &&
         namespace_id == this_namespace();
}

bool Claim::is_alive() const
{
  return start_ticks(process) == process_ticks;
}

std::optional<std::string> refuse_if_claimed(Backend& backend, const ClaimOptions& options)
{
  std::optional<std::string> text;
  // A claim is made and then written: it may be empty for a moment.
  for (int tries = 0; tries < 20; ++tries) {
    text = backend.read_claim();
    if (!text)
      return std::nullopt;
    if (Claim::parse(*text))
      break;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  const auto claim = Claim::parse(*text);
  if (!claim) {
    if (options.take_over)
      return text;
    throw InputError(fmt::format("{} has a claim '{}' that can't be read: another run was killed while it wrote it, or "
                                 "it is not iocast's. If no run is there, "
                                 "take the place over with --take-over.",
                                 backend.place(), claim_name));
  }
  if (claim->is_near()) {
    if (claim->is_alive())
      throw InputError(fmt::format("{} is in use by another run, {}; wait for its end, or name another place.",
                                   backend.place(), who(*claim)));
    return text;
  }
  const int64_t silent = now_seconds() - claim->seen;
  if (silent < given_up_after)
    throw InputError(fmt::format("{} is in use by another run, {}; wait for its end, or name another place. If it is "
                                 "dead, the place can be taken over with "
                                 "--take-over {} s from now.",
                                 backend.place(), who(*claim), given_up_after - std::max<int64_t>(silent, 0)));
  if (!options.take_over)
    throw InputError(fmt::format("{} was claimed by another run, {}. From here nobody can see whether that process is "
                                 "dead; if it is, take the place over with "
                                 "--take-over.",
                                 backend.place(), who(*claim)));
  return text;
}

HeldClaim::HeldClaim(std::unique_ptr<Backend> keeper, const ClaimOptions& options, std::function<void()> on_loss)
    : keeper_(std::move(keeper)), on_loss_(std::move(on_loss)), claim_(Claim::of_this_process()), text_(claim_.text())
{
  made_place_ = keeper_->make_place();
  try {
    claim(options);
  } catch (...) {
    if (made_place_)
      keeper_->remove_place();
    throw;
  }
  life_ = std::thread([this] { show_life(); });
}

void HeldClaim::claim(const ClaimOptions& options)
{
  if (!options.sole_user && !keeper_->claims_atomically())
    throw InputError(fmt::format("{} can't be claimed: its service lets two runs at once both believe that they were "
                                 "first. If there is no other run, say so with "
                                 "--sole-user.",
                                 keeper_->place()));
  const auto found = refuse_if_claimed(*keeper_, options);
  if (found ? keeper_->replace_claim(*found, text_) : keeper_->make_claim(text_))
    return;
  refuse_if_claimed(*keeper_, options);
  throw InputError(fmt::format("{} was claimed by another run a moment ago; wait for its end, or name another place.",
                               keeper_->place()));
}

HeldClaim::~HeldClaim()
{
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (life_.joinable())
    life_.join();
  try {
    if (lost_)
      return;
    keeper_->remove_claim(text_);
    if (leaves_nothing_)
      keeper_->remove_place();
  } catch (const std::exception&) {
    // What is left says of itself that its process is dead.
  }
}

void HeldClaim::show_life()
{
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, between_signs, [this] { return ends_; })) {
    try {
      Claim next      = claim_;
      next.seen       = now_seconds();
      const auto text = next.text();
      if (!keeper_->renew_claim(text_, text)) {
        lost_ = true;
        on_loss_();
        return;
      }
      text_ = text;
    } catch (const std::exception&) {
      // Whatever it was, the run itself meets it.
    }
  }
}

std::string HeldClaim::text()
{
  const std::lock_guard lock(mutex_);
  return text_;
}

void HeldClaim::check()
{
  const std::lock_guard lock(mutex_);
  try {
    if (!lost_ && keeper_->read_claim() == text_)
      return;
  } catch (const InputError& error) {
    throw RunError(error.what()); // it could be read when the run began
  }
  lost_ = true;
  throw RunError(fmt::format(
      "{} was taken over by another run while this one was in it; this one stops and leaves everything there as it is.",
      keeper_->place()));
}

} // namespace iocast
