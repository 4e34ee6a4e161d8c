// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "real/backend.hpp"
#include "real/brake.hpp"
#include "real/held_claim.hpp"
#include "real/watchdog.hpp"

#include <map>
#include <string>
#include <vector>

namespace iocast {

/// The command line, as given.
struct Options {
  std::string workload = "md-workbench";
  std::vector<std::string> settings; ///< "key=value"
  std::string backend = "posix";
  std::map<std::string, std::map<std::string, std::string>> backend_options; ///< by backend, then by parameter
  std::string out;
  std::string dump_ops;
  bool trace                = false;
  uint32_t threads_per_rank = 1;
  std::string label;
  uint64_t seed           = 1;
  bool json               = false;
  bool quiet              = false;
  bool dry_run            = false;
  uint32_t ranks          = 0; ///< of a dry run; 0: those that a launcher started, else one
  uint32_t ranks_per_node = 0; ///< likewise; 0: all
  bool no_time_limits     = false;
  bool verify             = false;
  std::string drop_caches; ///< "phase" or "run": before each of its phases, or once before the first; empty: never
  bool sweep = false;
  ClaimOptions claim;
  Brake brake;
  Patience patience{60, 0};
  std::string list;
  std::string describe;
  bool help    = false;
  bool version = false;
  std::string help_text;
  std::vector<std::string> command; ///< with the values of secret options hidden

  /// Only tells something about the program: needs no MPI.
  bool informs() const { return help || version || !list.empty() || !describe.empty(); }
};

/// @throws InputError
Options parse_options(int argc, char** argv);

/// The parameters of the chosen backend. @throws InputError
Parameters backend_parameters(const Options& options, const BackendEntry& entry);

} // namespace iocast
