// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace iocast {

/// Which process uses a place, as it is written down there.
struct Claim {
  std::string run;          ///< random: tells two claims apart
  std::string host;         ///< its name
  std::string boot;         ///< the kernel's boot_id
  std::string namespace_id; ///< of process numbers: a container counts for itself
  int64_t process        = 0;
  uint64_t process_ticks = 0; ///< its start, in the kernel's ticks since boot: numbers of processes are used again
  int64_t began          = 0; ///< seconds since 1970
  int64_t seen           = 0; ///< the last sign of life
  std::string machine;        ///< its number, by /etc/machine-id; empty in claims of earlier versions

  static Claim of_this_process();
  /// Nothing when the text is no claim.
  static std::optional<Claim> parse(const std::string& text);
  std::string text() const;

  /// Whether its process is there; nothing where that can't be seen, as on another machine.
  std::optional<bool> is_alive() const;
  /// The same one with a sign of life at this moment.
  Claim renewed() const;
  /// Seconds since the last sign of life.
  int64_t silent_for() const;
  /// Its process, its host and its times, as part of a sentence.
  std::string owner() const;
};

} // namespace iocast
