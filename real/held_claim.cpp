// SPDX-License-Identifier: Apache-2.0
#include "real/held_claim.hpp"

#include "input/error.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <fmt/format.h>

namespace iocast {

namespace {
constexpr auto between_signs     = std::chrono::seconds(60);
constexpr int64_t given_up_after = 300; ///< seconds without a sign of life
} // namespace

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
  if (const auto alive = claim->is_alive()) {
    if (*alive)
      throw InputError(fmt::format("{} is in use by another run, {}; wait for its end, or name another place.",
                                   backend.place(), claim->owner()));
    return text;
  }
  const int64_t silent = claim->silent_for();
  // A sign of life far in the future is a clock's that was set back since: it would never grow old.
  if (silent < given_up_after && silent > -given_up_after)
    throw InputError(fmt::format("{} is in use by another run, {}; wait for its end, or name another place. If it is "
                                 "dead, the place can be taken over with "
                                 "--take-over {} s from now.",
                                 backend.place(), claim->owner(), given_up_after - std::max<int64_t>(silent, 0)));
  if (!options.take_over)
    throw InputError(fmt::format("{} was claimed by another run, {}. From here nobody can see whether that process is "
                                 "dead; if it is, take the place over with "
                                 "--take-over.",
                                 backend.place(), claim->owner()));
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
  } catch (const std::exception& error) {
    // What is left says of itself that its process is dead.
    fmt::print(stderr, "iocast-bench: warning: {}\n", error.what());
  }
}

void HeldClaim::show_life()
{
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, between_signs, [this] { return ends_; })) {
    try {
      const auto text = claim_.renewed().text();
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
