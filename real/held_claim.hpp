// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "real/backend.hpp"
#include "real/claim.hpp"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace iocast {

/// How a run may come to a place that another has claimed.
struct ClaimOptions {
  bool take_over = false; ///< also from another host, after `Claim` has shown no sign of life for a while
  bool sole_user = false; ///< the user vouches that there is no other run, where the service has no atomic claim
};

/// Refuses a place that another run uses: one whose process lives, or can't be looked for and isn't given up by the
/// user. @return the claim's text, of a dead run, if there is one
/// @throws InputError
std::optional<std::string> refuse_if_claimed(Backend& backend, const ClaimOptions& options);

/// This run's claim on a place, from its making to the end of the object, with a sign of life every minute from a
/// thread of its own.
class HeldClaim {
public:
  /// `keeper` is connected, and used for nothing else; `on_loss` is called from that thread when another run has taken
  /// the place.
  /// @throws InputError when another run has the place, or was faster
  HeldClaim(std::unique_ptr<Backend> keeper, const ClaimOptions& options, std::function<void()> on_loss);
  ~HeldClaim();
  HeldClaim(const HeldClaim&)            = delete;
  HeldClaim& operator=(const HeldClaim&) = delete;

  /// As it stands at the place.
  std::string text();
  /// @throws RunError when another run has taken the place
  void check();
  /// Whether the run made what the place lies in (a schema, a bucket), when it began.
  bool made_place() const { return made_place_; }
  /// At its end what the place lies in goes too: iocast made it, and nothing is in it any longer.
  void leave_nothing() { leaves_nothing_ = true; }

private:
  void claim(const ClaimOptions& options);
  void show_life();

  std::unique_ptr<Backend> keeper_;
  std::function<void()> on_loss_;
  Claim claim_;
  std::string text_;
  bool made_place_     = false;
  bool leaves_nothing_ = false;
  std::atomic<bool> lost_{false};
  std::mutex mutex_; ///< of keeper_, text_ and ends_
  std::condition_variable changed_;
  bool ends_ = false;
  std::thread life_;
};

} // namespace iocast
