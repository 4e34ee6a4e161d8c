// SPDX-License-Identifier: Apache-2.0
//
// nfs: files in directories below one directory of an NFS server, through libnfs: no mount, no kernel's client and no
// cache of the client in between.
#include "input/error.hpp"
#include "real/backend.hpp"

#ifdef IOCAST_HAS_LIBRARY
#include "input/units.hpp"
#include "profile/files.hpp"
#include "real/own_directory.hpp"
#include "real/remote_root.hpp"
#include "real/transfer_memory.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>

#include <nfsc/libnfs.h> // needs the ones above
#endif

namespace iocast {
namespace {

const std::vector<Parameter> parameters{
    {"url", Unit::text, "",
     "the directory to work in, as nfs://HOST/PATH; it exists and is empty. NFSv4 is spoken unless ?version=3 follows; "
     "libnfs has more such options (nfsport, uid, gid), with & in between"}};

#ifdef IOCAST_HAS_LIBRARY

/// Reads of any size pass through a buffer of this size.
constexpr size_t chunk = size_t{1} << 20;
/// Bytes of a write. libnfs 4 has 4 KiB for a request of NFSv4, the file's handle (up to 128 bytes) included.
constexpr size_t most_with_short_handle = 3904;
constexpr size_t most_with_any_handle   = 3072;
/// What libnfs calls the owner of a file where the server sends a name and no number.
constexpr uint64_t nobody = 65534;
/// libnfs's answers where it could not form a request, and where the server has forgotten the client, as it does when
/// that opened nothing for its lease (often 90 s): libnfs renews none.
constexpr int not_sent  = -1;
constexpr int forgotten = -ERANGE;

struct Destroyed {
  void operator()(nfs_context* context) const { nfs_destroy_context(context); }
  void operator()(nfs_url* url) const { nfs_destroy_url(url); }
};
using Connection = std::unique_ptr<nfs_context, Destroyed>;

// libnfs 6 has these arguments in another order.
#ifdef LIBNFS_API_V2
int read_at(nfs_context* at, nfsfh* file, uint64_t offset, uint64_t size, char* bytes)
{
  return nfs_pread(at, file, bytes, size, offset);
}
int write_at(nfs_context* at, nfsfh* file, uint64_t offset, uint64_t size, const char* bytes)
{
  return nfs_pwrite(at, file, bytes, size, offset);
}
int write_on(nfs_context* at, nfsfh* file, uint64_t size, const char* bytes)
{
  return nfs_write(at, file, bytes, size);
}
#else
int read_at(nfs_context* at, nfsfh* file, uint64_t offset, uint64_t size, char* bytes)
{
  return nfs_pread(at, file, offset, size, bytes);
}
int write_at(nfs_context* at, nfsfh* file, uint64_t offset, uint64_t size, const char* bytes)
{
  return nfs_pwrite(at, file, offset, size, bytes);
}
/// Where the last one ended; for a file that was opened with O_APPEND at its end.
int write_on(nfs_context* at, nfsfh* file, uint64_t size, const char* bytes)
{
  return nfs_write(at, file, size, bytes);
}
#endif

class Nfs final : public RemoteRoot {
public:
  Nfs(const Parameters& given, const Client& client) : url_(given.text("url")), memory_(client)
  {
    memory_.reserve(chunk);
  }

  ~Nfs() override
  {
    for (nfsfh* file : files_)
      if (file && !lost_)
        nfs_close(connection_.get(), file);
  }

  void connect() override
  {
    if (url_.empty())
      throw InputError("The backend needs a directory to work in; name it with --nfs.url nfs://HOST/PATH.");
    ::umask(mask_ = ::umask(0));
    std::string words;
    const int error = mount(words);
    if (!connection_)
      throw InputError(fmt::format("--nfs.url takes an address such as nfs://HOST/PATH; '{}' is none.", url_));
    if (error == ENOENT)
      throw InputError(fmt::format("There is no directory '{}' at the NFS server {}; make it first.", path_, server_));
    if (error == EIO)
      throw InputError(fmt::format("No NFS server answers at '{}' (libnfs: {}).", url_, words));
    if (error != 0)
      throw InputError(
          fmt::format("The NFS server of '{}' refuses: {} (libnfs: {}).", url_, std::strerror(error), words));
    nfs_stat_64 found;
    if (ask(nfs_lstat64, "/", &found) != 0)
      return;
    if (!S_ISDIR(found.nfs_mode))
      throw InputError(fmt::format("'{}' is not a directory; --nfs.url takes one.", path_));
    const auto given = option("uid");
    const auto own   = given.empty() ? ::geteuid() : static_cast<uid_t>(std::atoll(given.c_str()));
    const auto owner = found.nfs_uid == nobody ? own : static_cast<uid_t>(found.nfs_uid);
    require_own(owner, static_cast<gid_t>(found.nfs_gid), static_cast<mode_t>(found.nfs_mode), own, place(), true);
  }

  int mkdir(const Name& name) override { return answer(ask(nfs_mkdir2, name.dataset(), 0755)); }

  int create(const Name& name, uint64_t size, Stopwatch& watch) override
  {
    nfsfh* file = nullptr;
    int error   = open_file(name.path(), O_WRONLY | O_CREAT | O_EXCL, file);
    if (error == EEXIST) // libnfs makes new ones only
      error = open_file(name.path(), O_WRONLY | O_TRUNC, file);
    return write_whole(error, file, size, watch);
  }

  int append(const Name& name, uint64_t size, Stopwatch& watch) override
  {
    nfsfh* file     = nullptr;
    const int error = open_file(name.path(), O_WRONLY | O_APPEND, file);
    return write_whole(error, file, size, watch);
  }

  int stat(const Name& name, uint64_t& size) override
  {
    nfs_stat_64 found;
    const int error = answer(ask(nfs_lstat64, name.path(), &found));
    if (error == 0)
      size = found.nfs_size;
    return error;
  }

  int read(const Name& name, uint64_t size, Stopwatch& watch) override
  {
    nfsfh* file = nullptr;
    int error   = open_file(name.path(), O_RDONLY, file);
    watch.lap();
    if (error != 0)
      return error;
    for (uint64_t done = 0; error == 0 && done < size;)
      error = moved(ask(read_at, file, done, std::min<uint64_t>(size - done, chunk), memory_.received(done)), done);
    watch.lap();
    error = close_file(file, error);
    watch.lap();
    return error;
  }

  int unlink(const Name& name) override { return answer(ask(nfs_unlink, name.path())); }
  int rmdir(const Name& name) override { return answer(ask(nfs_rmdir, name.dataset())); }
  bool serves(OpKind) const override { return true; }

  int readdir(const Name& name, uint64_t& entries) override
  {
    entries = 0;
    return answer(-for_names_in(name.dataset(), [&](const char*) { ++entries; }));
  }

  int open(const Name& name, uint8_t flags, Slot slot) override
  {
    const int access = flags & for_writing ? O_RDWR : O_RDONLY;
    int error        = flags & make_it ? open_file(name.path(), O_RDWR | O_CREAT | O_EXCL, files_[slot]) : EEXIST;
    if (error == EEXIST)
      error = open_file(name.path(), access, files_[slot]);
    return error;
  }

  int pwrite(Slot slot, const Op& op) override
  {
    return transfer(slot, op, [&](uint64_t block, uint64_t done, uint64_t size, uint64_t at) {
      const char* bytes = memory_.sent(block * op.size) + done;
      return write_some(size, [&](uint64_t most) { return ask(write_at, files_[slot], at, most, bytes); });
    });
  }

  int pread(Slot slot, const Op& op) override
  {
    return transfer(slot, op, [&](uint64_t block, uint64_t done, uint64_t size, uint64_t at) {
      return ask(read_at, files_[slot], at, std::min<uint64_t>(size, chunk), memory_.received(block * op.size) + done);
    });
  }

  int fsync(Slot slot) override { return files_[slot] ? answer(ask(nfs_fsync, files_[slot])) : EBADF; }

  int close(Slot slot) override
  {
    nfsfh* file = std::exchange(files_[slot], nullptr);
    return file ? answer(ask(nfs_close, file)) : EBADF;
  }

  void prepare(Slot, const Op& op) override { memory_.prepare(op, op.size); }
  void reserve(uint64_t bytes) override { memory_.reserve(bytes); }
  const char* fetched() const override { return memory_.received(); }

  std::string place() const override { return fmt::format("The directory '{}' at the NFS server {}", path_, server_); }

  std::string lacks_room(const Footprint& footprint) override
  {
    const auto free = free_bytes();
    if (!free || static_cast<double>(footprint.peak_bytes) <= *free)
      return "";
    return fmt::format("{} has {} free, but the workload needs up to {}; use smaller or fewer objects.", place(),
                       format_size(*free), format_size(static_cast<double>(footprint.peak_bytes)));
  }

  std::optional<double> free_bytes() override
  {
    struct statvfs room;
    if (ask(nfs_statvfs, "/", &room) != 0 || room.f_blocks == 0)
      return std::nullopt;
    return static_cast<double>(room.f_frsize) * static_cast<double>(room.f_bavail);
  }

  nlohmann::ordered_json environment() override
  {
    return {{"filesystem",
             {{"type", version_ == 3 ? "nfs" : "nfs4"}, {"source", server_ + ":" + path_}, {"client", "libnfs"}}}};
  }

private:
  /// Of the address: "3" for "version" in nfs://HOST/PATH?uid=1000&version=3. Empty where it has none.
  std::string option(const std::string& name) const
  {
    for (const char before : {'?', '&'})
      if (const auto at = url_.find(before + name + "="); at != std::string::npos) {
        const auto begin = at + name.size() + 2;
        return url_.substr(begin, url_.find('&', begin) - begin);
      }
    return "";
  }

  /// A connection of its own. @return 0 or an errno; without a connection where the address is none
  int mount(std::string& words)
  {
    files_.fill(nullptr);
    connection_.reset(nfs_init_context());
    nfs_context* context = connection_.get();
    nfs_set_version(context, 4);
    // Otherwise clients of one process are one to the server, and each new one ends the others.
    nfs4_set_client_name(context, ("iocast " + random_word()).c_str());
    nfs4_set_verifier(context, random_word().substr(0, 8).c_str()); // which is of 8 bytes
    const std::unique_ptr<nfs_url, Destroyed> url(nfs_parse_url_dir(context, url_.c_str()));
    if (!url) {
      connection_.reset();
      return EINVAL;
    }
    server_  = url->server;
    path_    = url->path;
    version_ = option("version") == "3" ? 3 : 4;
    nfs_set_dircache(context, 0); // every operation is the server's
    nfs_set_autoreconnect(context, 0);
    nfs_umask(context, static_cast<uint16_t>(mask_));
    const int error = nfs_mount(context, url->server, url->path);
    lost_           = error != 0;
    if (lost_ && nfs_get_error(context))
      words = nfs_get_error(context);
    return -error;
  }

  /// What a call of libnfs returns, on another connection where this one was lost.
  template <class Call, class... Arguments> int ask(Call call, Arguments... arguments)
  {
    if (std::string words; lost_ && mount(words) != 0)
      return -ECONNREFUSED;
    return call(connection_.get(), arguments...);
  }

  int open_file(const char* path, int flags, nfsfh*& file)
  {
    int returned = ask(nfs_open2, path, flags | O_NOFOLLOW, 0666, &file);
    if (returned == forgotten) {
      lost_    = true;
      returned = ask(nfs_open2, path, flags | O_NOFOLLOW, 0666, &file);
    }
    if (returned < 0)
      file = nullptr;
    return answer(returned);
  }

  /// As much as goes into one request. `write(most)` writes that many bytes. @return bytes, or a negative errno
  template <class Write> int write_some(uint64_t size, Write write)
  {
    const int written = write(std::min<uint64_t>(size, most_));
    if (written != not_sent || most_ == most_with_any_handle)
      return written;
    most_ = most_with_any_handle;
    return write(std::min<uint64_t>(size, most_));
  }

  /// After an open with this `error`, from the end of the file on.
  int write_whole(int error, nfsfh* file, uint64_t size, Stopwatch& watch)
  {
    watch.lap();
    if (error != 0)
      return error;
    for (uint64_t done = 0; error == 0 && done < size;) {
      const char* bytes = memory_.sent(done);
      error = moved(write_some(size - done, [&](uint64_t most) { return ask(write_on, file, most, bytes); }), done);
    }
    watch.lap();
    error = close_file(file, error);
    watch.lap();
    return error;
  }

  /// @return `error`, if it is one, or what closing came to
  int close_file(nfsfh* file, int error)
  {
    if (lost_)
      return error;
    const int closing = answer(ask(nfs_close, file));
    return error != 0 ? error : closing;
  }

  /// Adds what a call moved. @return 0 or an errno
  int moved(int returned, uint64_t& done)
  {
    if (returned <= 0)
      return returned == 0 ? short_transfer : answer(returned);
    done += static_cast<uint64_t>(returned);
    return 0;
  }

  /// Block by block. `call(block, done, size, at)` moves what a block still lacks after `done` bytes, or some of it.
  template <class Call> int transfer(Slot slot, const Op& op, Call call)
  {
    int error = files_[slot] ? 0 : EBADF;
    for (uint32_t block = 0; error == 0 && block < op.count; ++block)
      for (uint64_t done = 0; error == 0 && done < op.size;)
        error = moved(call(block, done, op.size - done, op.offset + block * op.stride + done), done);
    return error;
  }

  // ---- for manifest and claim

  int look_at(const char* path, Attributes& found) override
  {
    nfs_stat_64 about;
    const int error = -ask(nfs_lstat64, path, &about);
    if (error == 0)
      found = {static_cast<mode_t>(about.nfs_mode), about.nfs_size};
    return error;
  }

  int read_text(const char* path, std::string& text) override
  {
    nfsfh* file = nullptr;
    if (const int error = open_file(path, O_RDONLY, file); error != 0)
      return error;
    int got = 0;
    std::array<char, 4096> some;
    while (text.size() <= most_manifest && (got = ask(read_at, file, text.size(), some.size(), some.data())) > 0)
      text.append(some.data(), static_cast<size_t>(got));
    return close_file(file, got < 0 ? answer(got) : 0);
  }

  int make_file(const char* path) override
  {
    nfsfh* file     = nullptr;
    const int error = open_file(path, O_WRONLY | O_CREAT | O_EXCL, file);
    return error != 0 ? error : close_file(file, 0);
  }

  int write_text(const char* path, const std::string& text) override
  {
    nfsfh* file = nullptr;
    int error   = open_file(path, O_WRONLY, file);
    if (error != 0)
      return error;
    for (uint64_t done = 0; error == 0 && done < text.size();)
      error = moved(
          write_some(text.size() - done, [&](uint64_t most) { return ask(write_on, file, most, text.data() + done); }),
          done);
    return close_file(file, error); // which has it written to the server's storage
  }

  int move_file(const char* from, const char* to) override { return -ask(nfs_rename, from, to); }
  int link_file(const char* from, const char* to) override { return -ask(nfs_link, from, to); }
  int remove_file(const char* path) override { return -ask(nfs_unlink, path); }

  int for_names_in(const char* directory, const std::function<void(const char*)>& call) override
  {
    nfsdir* entries = nullptr;
    if (const int error = -ask(nfs_opendir, directory, &entries); error != 0)
      return error;
    while (const nfsdirent* entry = nfs_readdir(connection_.get(), entries))
      if (!is_itself_or_parent(entry->name))
        call(entry->name);
    nfs_closedir(connection_.get(), entries);
    return 0;
  }

  /// What libnfs returned as an errno, unless every later operation would fail too. @throws RunError
  int answer(int returned)
  {
    if (returned >= 0) [[likely]]
      return 0;
    const int error = -returned;
    lost_           = lost_ || error == EIO; // there is no other sign of it
    for (const int fatal : {ENOSPC, EDQUOT, EROFS, ESTALE})
      if (error == fatal)
        throw RunError(fmt::format("{} can't be used any longer: {}.", place(), std::strerror(error)));
    return error;
  }

  std::string url_;
  std::string server_;
  std::string path_;
  int version_ = 4;
  mode_t mask_ = 022; ///< of this process, for what is made
  Connection connection_;
  bool lost_   = false; ///< whether the connection is to be made again before it is used
  size_t most_ = most_with_short_handle;
  std::array<nfsfh*, most_open> files_{};
  TransferMemory memory_;
};

#endif

const bool registered =
    register_backend({"nfs",
                      "files in directories below one directory of an NFS server, through libnfs",
                      parameters,
                      {},
#ifdef IOCAST_HAS_LIBRARY
                      "",
                      [](const Parameters& given, const Client& client) { return std::make_unique<Nfs>(given, client); }
#else
                      "it was built without libnfs; install libnfs-dev, and build again.",
                      nullptr
#endif
    });

} // namespace
} // namespace iocast
