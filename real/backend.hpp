// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "real/name.hpp"
#include "real/stopwatch.hpp"
#include "workload/parameters.hpp"
#include "workload/pattern.hpp"

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace iocast {

/// What a transfer reports that ended early without an error of its own.
constexpr int short_transfer = 100'000;
/// "No space left on device", "short read or write".
std::string error_text(int error);

/// A storage system as one rank sees it.
///
/// The operations are called inside the timed region: they do their calls and nothing else. They return 0 or an errno; a
/// failure that makes going on pointless (the root is gone, the disk is full) is thrown as RunError.
/// create and read call `watch.lap()` after each of their parts (see parts_of), the last one included.
class Backend {
public:
  virtual ~Backend() = default;

  /// Connects, once. @throws InputError when what the user named isn't there or can't be used, RunError otherwise
  virtual void open() = 0;

  virtual int mkdir(const Name& name)                                      = 0;
  virtual int create(const Name& name, uint64_t size, Stopwatch& watch)    = 0;
  virtual int stat(const Name& name)                                       = 0;
  virtual int read(const Name& name, uint64_t size, Stopwatch& watch)      = 0;
  virtual int unlink(const Name& name)                                     = 0;
  virtual int rmdir(const Name& name)                                      = 0;

  /// Whether data outlives the process. If not, there is no manifest, and the functions below are never called.
  virtual bool keeps_data() const { return false; }
  /// Where the data is, for messages: "The directory '/scratch/x'".
  virtual std::string place() const { return ""; }
  /// True when the place holds nothing (a manifest apart).
  virtual bool empty() { return true; }
  /// @throws InputError when the place can't be written to, or can't hold what the workload needs at its peak
  virtual void check_room(const Footprint&) {}
  /// Refuses an output directory within the place: the place would never be empty.
  virtual void check_outside(const std::string& /*option*/, const std::string& /*directory*/) {}
  /// The manifest's text; empty when there is none.
  virtual std::string read_manifest() { return ""; }
  virtual void write_manifest(const std::string& /*text*/) {}
  virtual void remove_manifest() {}
  /// Names of the objects that a dataset holds; empty when there is no such dataset.
  virtual std::vector<std::string> list(const std::string& /*dataset*/) { return {}; }

  /// Facts for run.json's "environment", from one rank.
  virtual nlohmann::ordered_json environment() { return nlohmann::ordered_json::object(); }
};

/// Who a backend object works for.
struct Client {
  uint32_t rank = 0;
  uint64_t seed = 0;
};

/// One entry of the registry; a backend registers itself from its own file in real/backends/. Its parameters become the
/// options --NAME.PARAMETER.
struct BackendEntry {
  std::string name;
  std::string summary;
  std::vector<Parameter> parameters;
  std::vector<std::string> secrets; ///< parameters that are never written anywhere
  std::string unavailable;          ///< why it can't be used, with the package to install; empty when it can
  std::function<std::unique_ptr<Backend>(const Parameters&, const Client&)> make;
};

bool register_backend(BackendEntry entry);
const std::vector<BackendEntry>& backends();
/// @throws InputError with the nearest match
const BackendEntry& backend_named(const std::string& name);

} // namespace iocast
