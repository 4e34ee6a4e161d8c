// SPDX-License-Identifier: Apache-2.0
//
// mpiio: files in directories below one root. Data moves through MPI-IO: objects that a group shares are opened by all
// its ranks together, collective accesses are MPI_File_*_at_all, and strided ones are one call through a file view.
// Names (mkdir, stat, unlink, ...) are POSIX's business, as MPI-IO has none of it.
#include "input/error.hpp"
#include "real/posix_root.hpp"
#include "real/transfer_memory.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fmt/format.h>
#include <sstream>
#include <unistd.h>

namespace iocast {
namespace {

constexpr uint64_t chunk = uint64_t{1} << 20; ///< bytes of a call that moves whole objects

/// The errno that says the same as an error code of MPI.
int errno_of(int code)
{
  if (code == MPI_SUCCESS)
    return 0;
  int kind = MPI_ERR_OTHER;
  MPI_Error_class(code, &kind);
  static constexpr std::array<std::pair<int, int>, 9> known{{{MPI_ERR_NO_SUCH_FILE, ENOENT},
                                                             {MPI_ERR_FILE_EXISTS, EEXIST},
                                                             {MPI_ERR_ACCESS, EACCES},
                                                             {MPI_ERR_NO_SPACE, ENOSPC},
                                                             {MPI_ERR_QUOTA, EDQUOT},
                                                             {MPI_ERR_READ_ONLY, EROFS},
                                                             {MPI_ERR_FILE_IN_USE, EBUSY},
                                                             {MPI_ERR_BAD_FILE, EINVAL},
                                                             {MPI_ERR_AMODE, EINVAL}}};
  for (const auto& [mpi, posix] : known)
    if (kind == mpi)
      return posix;
  return EIO;
}

class MpiIo final : public PosixRoot {
public:
  MpiIo(const Parameters& given, const Client& client)
      : PosixRoot(given.text("root"), "--mpiio.root", client.rank), group_(client.group), memory_(client)
  {
    memory_.reserve(chunk);
    read_hints(given.text("hints"));
  }

  ~MpiIo() override
  {
    if (info_ != MPI_INFO_NULL)
      MPI_Info_free(&info_);
    if (alone_ != MPI_COMM_NULL)
      MPI_Comm_free(&alone_);
  }

  void connect() override
  {
    PosixRoot::connect();
    MPI_Comm_size(group_, &group_size_);
    MPI_Comm_dup(MPI_COMM_SELF, &alone_);
    way_ = fmt::format("/proc/self/fd/{}/", root_fd());
    if (::access(way_.c_str(), X_OK) != 0)
      throw InputError(fmt::format("{} can't be reached as '{}' ({}); MPI-IO opens files by path, and by any other one "
                                   "it could be led elsewhere.",
                                   place(), way_, std::strerror(errno)));
    path_ = way_;
    for (const auto& [key, value] : hints_) {
      if (info_ == MPI_INFO_NULL)
        MPI_Info_create(&info_);
      MPI_Info_set(info_, key.c_str(), value.c_str());
    }
  }

  bool acts_together() const override { return true; }

  int create(const Name& name, uint64_t size, Stopwatch& watch) override
  {
    return whole(name, MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_EXCL, size, watch);
  }
  int append(const Name& name, uint64_t size, Stopwatch& watch) override
  {
    return whole(name, MPI_MODE_WRONLY | MPI_MODE_APPEND, size, watch);
  }
  int read(const Name& name, uint64_t size, Stopwatch& watch) override
  {
    return whole(name, MPI_MODE_RDONLY, size, watch);
  }

  int open(const Name& name, uint8_t flags, Slot slot) override
  {
    File& file    = files_[slot];
    file          = {};
    file.mode     = (flags & for_writing ? MPI_MODE_RDWR : MPI_MODE_RDONLY) | (flags & make_it ? MPI_MODE_CREATE : 0);
    file.together = flags & shared && group_size_ > 1;
    const int error =
        errno_of(MPI_File_open(file.together ? group_ : alone_, path_of(name), file.mode, info_, &file.handle));
    return file.together ? error : failed(error); // nobody may leave before all know, see opened_together()
  }

  /// What only some could open, none has open: it could not be closed together. Their handles are lost.
  int opened_together(Slot slot, int error) override
  {
    MPI_Allreduce(MPI_IN_PLACE, &error, 1, MPI_INT, MPI_MAX, group_);
    if (error != 0)
      files_[slot] = {};
    else
      files_[slot].path = path_; // for a handle of this rank's own, see prepare()
    return failed(error);
  }

  void prepare(Slot slot, const Op& op) override
  {
    memory_.prepare(op, std::min<uint64_t>(op.bytes(), INT_MAX));
    if (op.kind != OpKind::pwrite && op.kind != OpKind::pread)
      return;
    File& file = files_[slot];
    // A view is set by all that have opened the file. So a rank that accesses a shared file by itself, while the others
    // need not, does it through a handle of its own when views are in play.
    if (file.together && !(op.flags & collective) && (op.stride > 0 || file.has_view)) {
      if (file.own == MPI_FILE_NULL &&
          MPI_File_open(alone_, file.path.c_str(), file.mode & ~MPI_MODE_CREATE, info_, &file.own) != MPI_SUCCESS)
        throw RunError(fmt::format("The shared file '{}/{}' can't be opened by a rank for itself.", root(),
                                   file.path.substr(way_.size())));
      set_view(file.own, file.own_has_view, op);
      active_ = file.own;
    } else {
      set_view(file.handle, file.has_view, op);
      active_ = file.handle;
    }
  }

  void reserve(uint64_t bytes) override { memory_.reserve(bytes); }
  const char* fetched() const override { return memory_.received(); }

  int pwrite(Slot, const Op& op) override
  {
    return access(op, op.flags & collective ? &MPI_File_write_at_all : &MPI_File_write_at, memory_.sent());
  }

  int pread(Slot, const Op& op) override
  {
    return access(op, op.flags & collective ? &MPI_File_read_at_all : &MPI_File_read_at, memory_.received());
  }

  int fsync(Slot slot) override
  {
    File& file = files_[slot];
    if (file.own != MPI_FILE_NULL)
      MPI_File_sync(file.own);
    return failed(errno_of(MPI_File_sync(file.handle)));
  }

  int close(Slot slot) override
  {
    File& file = files_[slot];
    if (file.own != MPI_FILE_NULL)
      MPI_File_close(&file.own);
    const int code = MPI_File_close(&file.handle);
    return failed(errno_of(code));
  }

private:
  struct File {
    MPI_File handle   = MPI_FILE_NULL;
    MPI_File own      = MPI_FILE_NULL; ///< of this rank alone, for a shared object
    bool together     = false;
    bool has_view     = false; ///< other than all bytes
    bool own_has_view = false;
    int mode          = 0;
    std::string path;
  };

  /// "romio_cb_write=enable,cb_nodes=4"
  void read_hints(const std::string& text)
  {
    std::istringstream list(text);
    for (std::string hint; std::getline(list, hint, ',');) {
      const auto equals = hint.find('=');
      if (equals == 0 || equals == std::string::npos || equals > MPI_MAX_INFO_KEY ||
          hint.size() - equals > MPI_MAX_INFO_VAL)
        throw InputError(fmt::format(
            "--mpiio.hints can't be '{}'; it takes hints and their values, such as romio_cb_write=enable,cb_nodes=4.",
            text));
      hints_.emplace_back(hint.substr(0, equals), hint.substr(equals + 1));
    }
  }

  const char* path_of(const Name& name)
  {
    path_.resize(way_.size());
    path_ += name.path();
    return path_.c_str();
  }

  static void set_view(MPI_File handle, bool& has_view, const Op& op)
  {
    if (op.stride == 0 && !has_view)
      return;
    MPI_Datatype type = MPI_BYTE;
    if (op.stride > 0) {
      MPI_Type_create_hvector(static_cast<int>(op.count), static_cast<int>(std::min<uint64_t>(op.size, INT_MAX)),
                              static_cast<MPI_Aint>(op.stride), MPI_BYTE, &type);
      MPI_Type_commit(&type);
    }
    MPI_File_set_view(handle, op.stride > 0 ? static_cast<MPI_Offset>(op.offset) : 0, MPI_BYTE, type, "native",
                      MPI_INFO_NULL);
    has_view = op.stride > 0;
    if (has_view)
      MPI_Type_free(&type); // the file keeps it
  }

  template <class Call, class Memory> int access(const Op& op, Call call, Memory memory)
  {
    if (op.bytes() > INT_MAX)
      return EFBIG; // for one call of MPI
    MPI_Status status;
    const int code = call(active_, op.stride > 0 ? 0 : static_cast<MPI_Offset>(op.offset), memory,
                          static_cast<int>(op.bytes()), MPI_BYTE, &status);
    return outcome(code, status, op.bytes());
  }

  int outcome(int code, const MPI_Status& status, uint64_t wanted) const
  {
    if (code != MPI_SUCCESS)
      return failed(errno_of(code));
    int moved = 0;
    MPI_Get_count(&status, MPI_BYTE, &moved);
    return moved >= 0 && static_cast<uint64_t>(moved) == wanted ? 0 : short_transfer;
  }

  /// Opens an object for this client alone. One that is to be made and is there is emptied, as POSIX does with O_TRUNC,
  /// for which MPI-IO has no mode.
  int open_alone(const Name& name, int mode, MPI_File& file)
  {
    const int opened = MPI_File_open(alone_, path_of(name), mode, info_, &file);
    if (!(mode & MPI_MODE_EXCL) || errno_of(opened) != EEXIST)
      return opened;
    const int there = MPI_File_open(alone_, path_of(name), mode & ~MPI_MODE_EXCL, info_, &file);
    if (there != MPI_SUCCESS)
      return there;
    const int emptied = MPI_File_set_size(file, 0);
    if (emptied != MPI_SUCCESS)
      MPI_File_close(&file);
    return emptied;
  }

  /// open, transfer, close
  int whole(const Name& name, int mode, uint64_t size, Stopwatch& watch)
  {
    MPI_File file;
    const int opened = open_alone(name, mode, file);
    watch.lap();
    if (opened != MPI_SUCCESS)
      return failed(errno_of(opened));
    int error = 0;
    for (uint64_t done = 0; done < size && error == 0; done += chunk) {
      const auto wanted = static_cast<int>(std::min(size - done, chunk));
      MPI_Status status;
      const int code = mode == MPI_MODE_RDONLY ? MPI_File_read(file, memory_.received(done), wanted, MPI_BYTE, &status)
                                               : MPI_File_write(file, memory_.sent(done), wanted, MPI_BYTE, &status);
      error          = outcome(code, status, static_cast<uint64_t>(wanted));
    }
    if (error != 0) {
      MPI_File_close(&file);
      return error;
    }
    watch.lap();
    const int closed = MPI_File_close(&file);
    watch.lap();
    return failed(errno_of(closed));
  }

  MPI_Comm group_;
  int group_size_ = 1;
  MPI_Comm alone_ = MPI_COMM_NULL; ///< of this client: others of the rank open files at the same time, and two may not
                                   ///< do so on one communicator
  TransferMemory memory_;
  std::vector<std::pair<std::string, std::string>> hints_;
  MPI_Info info_ = MPI_INFO_NULL;
  std::array<File, most_open> files_;
  MPI_File active_ = MPI_FILE_NULL; ///< what the next access goes through
  std::string way_;                 ///< to the root, whatever its path leads to by now
  std::string path_;
};

const bool registered = register_backend(
    {"mpiio",
     "files in directories below one root, data through MPI-IO",
     {{"root", Unit::text, "",
       "the directory to work in; it exists and is empty; A,B,C: it is mounted thrice, and rank r goes through the (r "
       "mod 3)th"},
      {"hints", Unit::text, "", "hints for opening files, as MPI_Info has them: KEY=VALUE,KEY=VALUE"}},
     {},
     "",
     [](const Parameters& given, const Client& client) { return std::make_unique<MpiIo>(given, client); }});

} // namespace
} // namespace iocast
