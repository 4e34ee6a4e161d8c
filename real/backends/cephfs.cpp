// SPDX-License-Identifier: Apache-2.0
//
// cephfs: files in directories below one root of a Ceph file system, through libcephfs: no kernel and no FUSE daemon in
// between.
#include "input/error.hpp"
#include "real/backend.hpp"
#include "real/own_directory.hpp"
#include "real/remote_root.hpp"

#ifdef IOCAST_HAS_LIBRARY
#include "real/transfer_memory.hpp"

#include <algorithm>
#include <array>
#include <cephfs/libcephfs.h>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#endif

namespace iocast {
namespace {

const std::vector<Parameter> parameters{
    {"root", Unit::text, "", "the directory to work in, as a path in the file system; it exists and is empty"},
    {"conf", Unit::text, "",
     "Ceph's configuration; by default CEPH_CONF, else /etc/ceph/ceph.conf. The key is taken from a keyring only: the "
     "one that "
     "the configuration or CEPH_KEYRING names, else /etc/ceph/ceph.client.ID.keyring"},
    {"id", Unit::text, "admin", "the client's name, without \"client.\""},
    {"filesystem", Unit::text, "",
     "name of the file system, of a cluster that has several; by default its default one"},
    {"timeout", Unit::seconds, "30s", "how long to wait for monitors, and then for metadata servers, when connecting",
     1, 3600}};

#ifdef IOCAST_HAS_LIBRARY

/// Whole objects of any size pass through a buffer of this size.
constexpr size_t chunk = size_t{1} << 20;
/// libcephfs answers how much it moved with an int.
constexpr uint64_t most_at_once = uint64_t{1} << 30;
/// The offset that stands for where the file is at, which is the end of one that was opened with O_APPEND.
constexpr int64_t going_on = -1;

/// The root of the mount is the root of the workload, and its working directory: paths are relative to it.
class CephFs final : public RemoteRoot {
public:
  CephFs(const Parameters& given, const Client& client)
      : root_(given.text("root"))
      , conf_(given.text("conf"))
      , id_(given.text("id"))
      , filesystem_(given.text("filesystem"))
      , timeout_(fmt::format("{:.0f}", given.number("timeout")))
      , memory_(client)
  {
    memory_.reserve(chunk);
    files_.fill(-1);
  }

  ~CephFs() override
  {
    for (const int file : files_)
      if (file >= 0)
        ceph_close(mount_, file);
    if (mounted_)
      ceph_unmount(mount_);
    if (mount_)
      ceph_release(mount_);
  }

  void connect() override
  {
    if (root_.empty())
      throw InputError("The backend needs a directory to work in; name it with --cephfs.root DIR.");
    if (root_[0] != '/')
      throw InputError(fmt::format(
          "--cephfs.root takes a path from the file system's root on, such as /scratch/me; '{}' is none.", root_));
    configure();
    greet_monitors();
    mount();
    // Otherwise what is made would be open to all.
    const mode_t mask = ::umask(0);
    ::umask(mask);
    ceph_umask(mount_, mask);
    struct ceph_statx found;
    if (ceph_statx(mount_, "/", &found, CEPH_STATX_BASIC_STATS, 0) != 0)
      return;
    if (!S_ISDIR(found.stx_mode))
      throw InputError(fmt::format("'{}' is not a directory; --cephfs.root takes one.", root_));
    require_own(found.stx_uid, found.stx_gid, found.stx_mode, ::geteuid(), place(), true);
  }

  int mkdir(const Name& name) override { return answer(ceph_mkdir(mount_, name.dataset(), 0755)); }

  int create(const Name& name, uint64_t size, Stopwatch& watch) override
  {
    return write_whole(name, O_WRONLY | O_CREAT | O_TRUNC, size, watch);
  }

  int append(const Name& name, uint64_t size, Stopwatch& watch) override
  {
    return write_whole(name, O_WRONLY | O_APPEND, size, watch);
  }

  int stat(const Name& name, uint64_t& size) override
  {
    struct ceph_statx found;
    const int error = answer(ceph_statx(mount_, name.path(), &found, CEPH_STATX_BASIC_STATS, AT_SYMLINK_NOFOLLOW));
    if (error == 0)
      size = found.stx_size;
    return error;
  }

  int read(const Name& name, uint64_t size, Stopwatch& watch) override
  {
    const int file = ceph_open(mount_, name.path(), O_RDONLY | O_NOFOLLOW, 0);
    watch.lap();
    if (file < 0)
      return answer(file);
    for (uint64_t done = 0; done < size;) {
      const size_t wanted = std::min<uint64_t>(size - done, chunk);
      const int got       = ceph_read(mount_, file, memory_.received(done), static_cast<int64_t>(wanted), going_on);
      if (got != static_cast<int>(wanted))
        return give_up(file, got);
      done += wanted;
    }
    watch.lap();
    const int closed = ceph_close(mount_, file);
    watch.lap();
    return answer(closed);
  }

  int unlink(const Name& name) override { return answer(ceph_unlink(mount_, name.path())); }
  int rmdir(const Name& name) override { return answer(ceph_rmdir(mount_, name.dataset())); }
  bool serves(OpKind) const override { return true; }

  int readdir(const Name& name, uint64_t& entries) override
  {
    entries = 0;
    return answer(-for_names_in(name.dataset(), [&](const char*) { ++entries; }));
  }

  int open(const Name& name, uint8_t flags, Slot slot) override
  {
    const int access = (flags & for_writing ? O_RDWR : O_RDONLY) | (flags & make_it ? O_CREAT : 0) | O_NOFOLLOW;
    files_[slot]     = ceph_open(mount_, name.path(), access, 0666);
    return answer(files_[slot]);
  }

  int pwrite(Slot slot, const Op& op) override
  {
    return transfer(op, [&](uint64_t block, uint64_t done, int64_t size, int64_t at) {
      return ceph_write(mount_, files_[slot], memory_.sent(block * op.size) + done, size, at);
    });
  }

  int pread(Slot slot, const Op& op) override
  {
    return transfer(op, [&](uint64_t block, uint64_t done, int64_t size, int64_t at) {
      return ceph_read(mount_, files_[slot], memory_.received(block * op.size) + done, size, at);
    });
  }

  int fsync(Slot slot) override { return answer(ceph_fsync(mount_, files_[slot], 0)); }

  int close(Slot slot) override
  {
    const int closed = ceph_close(mount_, files_[slot]);
    files_[slot]     = -1;
    return answer(closed);
  }

  void prepare(Slot, const Op& op) override { memory_.prepare(op, op.size); }
  void reserve(uint64_t bytes) override { memory_.reserve(bytes); }
  const char* fetched() const override { return memory_.received(); }

  std::string place() const override { return fmt::format("The directory '{}' in CephFS", root_); }

  std::string lacks_room(const Footprint& footprint) override
  {
    struct statvfs room;
    if (const int error = ceph_statfs(mount_, "/", &room); error < 0)
      throw RunError(fmt::format("{} gives no answer on its free space: {}.", place(), std::strerror(-error)));
    // A cluster whose manager has not counted yet, or that has none, says 0. Its blocks are a unit to count in: small
    // objects share them.
    const double free = static_cast<double>(room.f_frsize) * static_cast<double>(room.f_bavail);
    if (room.f_blocks == 0 || static_cast<double>(footprint.peak_bytes) <= free)
      return "";
    return fmt::format("{} has {:.1f} MiB free, but the workload needs up to {:.1f} MiB; use smaller or fewer objects.",
                       place(), free / (1 << 20), static_cast<double>(footprint.peak_bytes) / (1 << 20));
  }

  nlohmann::ordered_json environment() override
  {
    int major = 0, minor = 0, patch = 0;
    nlohmann::ordered_json facts{{"type", "CephFS"}, {"libcephfs", ceph_version(&major, &minor, &patch)}};
    for (const char* setting :
         {"fsid", "mon_host", "ms_client_mode", "client_oc", "client_oc_size", "client_cache_size"})
      facts[setting] = configured(setting);
    // What is made inherits the root's layout; a directory without one of its own has that of the file system.
    std::array<char, 256> pool{};
    int unit = 0, count = 0, size = 0, number = -1;
    if (ceph_get_path_layout(mount_, "/", &unit, &count, &size, &number) == 0 && number >= 0) {
      ceph_get_pool_name(mount_, number, pool.data(), pool.size() - 1);
      facts["layout"] = {{"stripe_unit", unit}, {"stripe_count", count}, {"object_size", size}};
    } else {
      ceph_get_default_data_pool_name(mount_, pool.data(), pool.size() - 1);
      number = ceph_get_pool_id(mount_, pool.data());
    }
    facts["data_pool"]   = pool.data();
    facts["replication"] = ceph_get_pool_replication(mount_, number);
    return {{"service", facts}};
  }

private:
  int look_at(const char* path, Attributes& found) override
  {
    struct ceph_statx statx;
    const int error = -ceph_statx(mount_, path, &statx, CEPH_STATX_MODE | CEPH_STATX_SIZE, AT_SYMLINK_NOFOLLOW);
    if (error == 0)
      found = {statx.stx_mode, statx.stx_size};
    return answer(-error);
  }

  int read_text(const char* path, std::string& text) override
  {
    const int file = ceph_open(mount_, path, O_RDONLY | O_NOFOLLOW, 0);
    int got        = file;
    std::array<char, 4096> some;
    while (got >= 0 && text.size() <= most_manifest &&
           (got = ceph_read(mount_, file, some.data(), some.size(), going_on)) > 0)
      text.append(some.data(), static_cast<size_t>(got));
    if (file >= 0)
      ceph_close(mount_, file);
    return answer(got);
  }

  int make_file(const char* path) override
  {
    const int file = ceph_open(mount_, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
    return file < 0 ? -file : -ceph_close(mount_, file);
  }

  int write_text(const char* path, const std::string& text) override
  {
    const int file = ceph_open(mount_, path, O_WRONLY | O_NOFOLLOW, 0);
    int error      = file;
    for (size_t done = 0; error >= 0 && done < text.size(); done += static_cast<size_t>(error))
      error = ceph_write(mount_, file, text.data() + done, static_cast<int64_t>(text.size() - done), going_on);
    if (error >= 0)
      error = ceph_fsync(mount_, file, 0);
    if (file >= 0)
      ceph_close(mount_, file);
    return error < 0 ? -error : 0;
  }

  int move_file(const char* from, const char* to) override { return -ceph_rename(mount_, from, to); }
  int link_file(const char* from, const char* to) override { return -ceph_link(mount_, from, to); }
  int remove_file(const char* path) override { return -ceph_unlink(mount_, path); }

  int for_names_in(const char* directory, const std::function<void(const char*)>& call) override
  {
    ceph_dir_result* stream = nullptr;
    if (const int error = -ceph_opendir(mount_, directory, &stream); error != 0)
      return error;
    // Each name ends with a zero.
    std::array<char, 32768> some;
    int got = 0;
    while ((got = ceph_getdnames(mount_, stream, some.data(), some.size())) > 0)
      for (int at = 0; at < got; at += static_cast<int>(std::strlen(&some[static_cast<size_t>(at)])) + 1)
        if (const char* name = &some[static_cast<size_t>(at)]; !is_itself_or_parent(name))
          call(name);
    ceph_closedir(mount_, stream);
    return -got;
  }

  void configure()
  {
    if (const int error = ceph_create(&mount_, id_.c_str()); error < 0)
      throw RunError(fmt::format("libcephfs can't be used: {}.", std::strerror(-error)));
    // Without a file, CEPH_ARGS may still say all that is needed.
    const int error = ceph_conf_read_file(mount_, conf_.empty() ? nullptr : conf_.c_str());
    if (error < 0 && !(error == -ENOENT && conf_.empty()))
      throw InputError(fmt::format("Ceph's configuration{} can't be read: {}.",
                                   conf_.empty() ? "" : fmt::format(" '{}'", conf_), std::strerror(-error)));
    ceph_conf_parse_env(mount_, nullptr);
    ceph_conf_set(mount_, "client_mount_timeout", timeout_.c_str());
  }

  void greet_monitors()
  {
    switch (const int error = -ceph_init(mount_); error) {
      case 0:
        return;
      case ENOENT:
        throw InputError(
            "Ceph's configuration names no monitors; name another one with --cephfs.conf FILE or in CEPH_CONF.");
      case ETIMEDOUT:
        throw InputError(
            fmt::format("Ceph's monitors at {} gave no answer within {} s.", configured("mon_host"), timeout_));
      case EPERM:
      case EACCES:
        throw InputError(fmt::format("Ceph does not take the credentials of client.{}: {}; its key is taken from a "
                                     "keyring, which the configuration or "
                                     "CEPH_KEYRING names.",
                                     id_, std::strerror(error)));
      default:
        throw InputError(fmt::format("The Ceph cluster can't be connected to: {}.", std::strerror(error)));
    }
  }

  void mount()
  {
    const auto where = filesystem_.empty() ? std::string("the cluster's default file system")
                                           : fmt::format("a file system '{}' of the cluster", filesystem_);
    if (!filesystem_.empty())
      ceph_select_filesystem(mount_, filesystem_.c_str());
    const int error = -ceph_mount(mount_, root_.c_str());
    mounted_        = error == 0;
    if (error == ENOENT)
      throw InputError(fmt::format("There is no directory '{}' in {}; make it first.", root_, where));
    if (error == ETIMEDOUT)
      throw InputError(fmt::format("No metadata server of {} answered within {} s.", where, timeout_));
    if (error != 0)
      throw InputError(fmt::format("The directory '{}' in {} can't be mounted by client.{}: {}.", root_, where, id_,
                                   std::strerror(error)));
  }

  std::string configured(const char* setting) const
  {
    std::array<char, 1024> value{};
    ceph_conf_get(mount_, setting, value.data(), value.size() - 1);
    return value.data();
  }

  int write_whole(const Name& name, int access, uint64_t size, Stopwatch& watch)
  {
    const int file = ceph_open(mount_, name.path(), access | O_NOFOLLOW, 0666);
    watch.lap();
    if (file < 0)
      return answer(file);
    for (uint64_t done = 0; done < size;) {
      const size_t wanted = std::min<uint64_t>(size - done, chunk);
      const int written   = ceph_write(mount_, file, memory_.sent(done), static_cast<int64_t>(wanted), going_on);
      if (written != static_cast<int>(wanted))
        return give_up(file, written);
      done += wanted;
    }
    watch.lap();
    const int closed = ceph_close(mount_, file);
    watch.lap();
    return answer(closed);
  }

  /// Block by block. `call(block, done, size, at)` moves what a block still lacks after `done` bytes, or some of it.
  template <class Call> int transfer(const Op& op, Call call)
  {
    for (uint32_t block = 0; block < op.count; ++block)
      for (uint64_t done = 0; done < op.size;) {
        const int moved = call(block, done, static_cast<int64_t>(std::min(op.size - done, most_at_once)),
                               static_cast<int64_t>(op.offset + block * op.stride + done));
        if (moved <= 0)
          return moved == 0 ? short_transfer : answer(moved);
        done += static_cast<uint64_t>(moved);
      }
    return 0;
  }

  int give_up(int file, int moved)
  {
    ceph_close(mount_, file);
    return moved < 0 ? answer(moved) : short_transfer;
  }

  /// What libcephfs returned as an errno, unless every later operation would fail too. @throws RunError
  int answer(int returned) const
  {
    if (returned >= 0) [[likely]]
      return 0;
    const int error = -returned;
    struct ceph_statx root;
    if (error == ENOENT && ceph_statx(mount_, "/", &root, CEPH_STATX_NLINK, 0) == 0 && root.stx_nlink == 0)
      throw RunError(fmt::format("{} was removed while the run was in it.", place()));
    if (error == ESHUTDOWN)
      throw RunError(fmt::format("{} can't be used any longer: the cluster has shut this client out.", place()));
    for (const int fatal : {ENOSPC, EDQUOT, EROFS, ESTALE, ENOTCONN})
      if (error == fatal)
        throw RunError(fmt::format("{} can't be used any longer: {}.", place(), std::strerror(error)));
    return error;
  }

  std::string root_;
  std::string conf_;
  std::string id_;
  std::string filesystem_;
  std::string timeout_; ///< seconds, as libcephfs takes settings
  ceph_mount_info* mount_ = nullptr;
  bool mounted_           = false;
  std::array<int, most_open> files_;
  TransferMemory memory_;
};

#endif

const bool registered = register_backend(
    {"cephfs",
     "files in directories below one root of a Ceph file system, through libcephfs",
     parameters,
     {},
#ifdef IOCAST_HAS_LIBRARY
     "",
     [](const Parameters& given, const Client& client) { return std::make_unique<CephFs>(given, client); }
#else
     "it was built without libcephfs; install libcephfs-dev, and build again.",
     nullptr
#endif
    });

} // namespace
} // namespace iocast
