// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "real/name.hpp"
#include "real/stopwatch.hpp"
#include "workload/parameters.hpp"
#include "workload/pattern.hpp"

#include <functional>
#include <memory>
#include <mpi.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace iocast {

class Content;

/// What a place has beside its data: the manifest's file, key or table.
inline constexpr auto manifest_name = "iocast.manifest.json";
/// And the claim of the run that is there now, see claim.hpp.
inline constexpr auto claim_name = "iocast.claim.json";
/// Bytes of a manifest; longer ones are not iocast's.
inline constexpr size_t most_manifest = size_t{1} << 20;

/// What went wrong without an errno of its own.
enum : int {
  short_transfer = 100'000, ///< a transfer that ended early
  wrong_entries,            ///< a readdir that found another number of entries
  wrong_size,               ///< a stat that found another size
  wrong_content             ///< a read that fetched other bytes than were written
};
/// "No space left on device", "short read or write".
std::string error_text(int error);

/// Where an open object is kept: one of `most_open` numbers that the executor gives out.
using Slot               = uint32_t;
constexpr Slot most_open = 64;

/// A storage system as one rank sees it.
///
/// The operations are called inside the timed region: they do their calls and nothing else. They return 0 or an errno;
/// a failure that makes going on pointless (the root is gone, the disk is full) is thrown as RunError. create, read and
/// append call `watch.lap()` after each of their parts (see parts_of), the last one included.
class Backend {
public:
  virtual ~Backend() = default;

  /// Connects, once. @throws InputError when what the user named isn't there or can't be used, RunError otherwise
  virtual void connect() = 0;

  virtual int mkdir(const Name& name)                                   = 0;
  virtual int create(const Name& name, uint64_t size, Stopwatch& watch) = 0;
  /// `size` is what the workload expects (0: nothing) and becomes what is there.
  virtual int stat(const Name& name, uint64_t& size)                  = 0;
  virtual int read(const Name& name, uint64_t size, Stopwatch& watch) = 0;
  virtual int unlink(const Name& name)                                = 0;
  virtual int rmdir(const Name& name)                                 = 0;
  /// unlink() in the remains of an unfinished run, outside of the timed region. Where its dataset was, another user may
  /// have put a link since, which is not followed.
  virtual int remove_left(const Name& name) { return unlink(name); }

  /// Whether the backend has this operation. Those above it must have; the ones below are not to be had everywhere.
  virtual bool serves(OpKind kind) const { return kind <= OpKind::rmdir || kind == OpKind::think; }
  virtual int append(const Name& name, uint64_t size, Stopwatch& watch);
  /// `entries` is the number that the workload expects and becomes the number found.
  virtual int readdir(const Name& name, uint64_t& entries);
  /// `flags` as of OpFlag. The object stays in `slot` until close(), which empties the slot whatever it returns.
  virtual int open(const Name& name, uint8_t flags, Slot slot);
  virtual int pwrite(Slot slot, const Op& op);
  virtual int pread(Slot slot, const Op& op);
  virtual int fsync(Slot slot);
  virtual int close(Slot slot);
  /// Called before each pwrite and pread, outside of the timed region: memory for the access, and whatever else isn't
  /// the call. A run that verifies calls it before create, append (`offset` is then where it begins) and read too, for
  /// the content to be written and memory for what is fetched.
  virtual void prepare(Slot /*slot*/, const Op& /*op*/) {}
  /// Whether prepare_call() is to be called before each operation that names an object or dataset.
  virtual bool prepares_calls() const { return false; }
  /// Called right before such an operation, outside of the timed region: texts of requests and checksums, which are not
  /// the storage's work. The call that follows uses what was prepared, once; calls that were not prepared do all
  /// themselves.
  virtual void prepare_call(const Name& /*name*/, const Op& /*op*/) {}
  /// What the last read or pread fetched, its blocks one after the other; whole only when the run verifies.
  virtual const char* fetched() const { return nullptr; }
  /// Memory for accesses of this many bytes, before a clock runs; prepare() must do for larger ones.
  virtual void reserve(uint64_t /*bytes*/) {}
  /// Whether what is `shared` or `collective` is one call of all ranks of the group, which none may leave out: the
  /// executor then lets the ranks of a group meet before each such call, to learn whether one of them has to stop.
  virtual bool acts_together() const { return false; }
  /// Called by all ranks of the group after they opened an object together, outside of the timed region, with what came
  /// of it here. @return what came of it everywhere
  virtual int opened_together(Slot /*slot*/, int error) { return error; }

  /// Whether data outlives the process. If not, there is no manifest, and the functions below are never called.
  virtual bool keeps_data() const { return false; }
  /// Where the data is, for messages: "The directory '/scratch/x'".
  virtual std::string place() const { return ""; }
  /// True when the place holds nothing (a manifest apart).
  virtual bool empty() { return true; }
  /// @throws InputError when the place can't be written to
  virtual void check_writable() {}
  /// A sentence when the place can't hold what the workload needs at its peak; else nothing.
  virtual std::string lacks_room(const Footprint&) { return ""; }
  /// Bytes that are free at the place; nothing where that isn't known.
  virtual std::optional<double> free_bytes() { return std::nullopt; }
  /// Refuses an output directory within the place: the place would never be empty.
  virtual void check_outside(const std::string& /*option*/, const std::string& /*directory*/) {}
  /// The manifest's text; empty when there is none.
  virtual std::string read_manifest() { return ""; }
  virtual void write_manifest(const std::string& /*text*/) {}
  virtual void remove_manifest() {}

  // ---- the claim: one run at a time, see held_claim.hpp
  /// Makes what the place lies in (a schema, a bucket), unless it is there. @return whether it was made
  virtual bool make_place() { return false; }
  /// Removes that again, if nothing is in it.
  virtual void remove_place() {}
  /// Whether of two runs that make a claim at once only one succeeds.
  virtual bool claims_atomically() { return true; }
  /// The text of the claim, or nothing when there is none.
  virtual std::optional<std::string> read_claim() { return std::nullopt; }
  /// @return false when there is one already
  virtual bool make_claim(const std::string& /*text*/) { return true; }
  /// @return false when it isn't `found` any longer
  virtual bool replace_claim(const std::string& /*found*/, const std::string& /*text*/) { return true; }
  /// The same of the run's own, whose text has as many bytes.
  virtual bool renew_claim(const std::string& mine, const std::string& text) { return replace_claim(mine, text); }
  /// Unless it is another run's by now.
  virtual void remove_claim(const std::string& /*mine*/) {}
  /// Refuses what only looks like the place from here: every rank has to see the claim that the first has made. @throws
  /// InputError
  virtual void check_claim_is_seen(const std::string& /*text*/) {}
  /// Names of the objects and datasets that a dataset holds; empty when there is no such dataset.
  virtual std::vector<std::string> list(const std::string& /*dataset*/) { return {}; }

  /// Facts for run.json's "environment", from one rank.
  virtual nlohmann::ordered_json environment() { return nlohmann::ordered_json::object(); }
};

/// Who a backend object works for.
struct Client {
  uint32_t rank          = 0;
  uint64_t seed          = 0;
  MPI_Comm group         = MPI_COMM_SELF; ///< the ranks that this one shares objects with, see Pattern::group_of
  const Content* content = nullptr;       ///< what is to be written and read; null: whatever
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
  bool keeps_data = true; ///< as Backend::keeps_data() of its objects, for --list; the tests start a server for these
};

bool register_backend(BackendEntry entry);
const std::vector<BackendEntry>& backends();
/// @throws InputError with the nearest match
const BackendEntry& backend_named(const std::string& name);

} // namespace iocast
