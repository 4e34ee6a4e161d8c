// SPDX-License-Identifier: Apache-2.0
//
// iocast-queuefs: a file system in memory whose metadata operations take the time that a queueing network says, in real
// time. Who measures it knows the truth. It is mounted through FUSE, here or, with --serve and --connect, on other
// machines; kernel caches are off for files, so that each stat, create, open and unlink is one request.
#include "selftest/answers.hpp"
#include "selftest/network.hpp"
#include "selftest/stations.hpp"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <fstream>
#include <map>
#include <string>
#include <sys/statvfs.h>
#include <unistd.h>
#include <unordered_map>

namespace {
using namespace iocast;

/// Seconds that a kernel may remember directories: for good where nobody else changes them.
double remembered                     = 1e9;
constexpr double remembered_elsewhere = 1; ///< where other machines have them mounted too

struct Node {
  struct stat attributes {};
  std::map<std::string, fuse_ino_t> entries; ///< of a directory
  fuse_ino_t parent = 0;
  std::string bytes;  ///< of a file
  uint64_t known = 0; ///< how often the kernel has looked it up and not forgotten it
};

/// The one file system of this process.
struct FileSystem {
  FileSystem(const Platform& platform, uint64_t seed) : stations(platform, seed)
  {
    add(FUSE_ROOT_ID, S_IFDIR | 0755, 0);
  }

  Node& add(fuse_ino_t number, mode_t mode, fuse_ino_t parent)
  {
    Node& node               = nodes[number];
    node.parent              = parent;
    node.attributes.st_ino   = number;
    node.attributes.st_mode  = mode;
    node.attributes.st_nlink = S_ISDIR(mode) ? 2 : 1;
    node.attributes.st_uid   = getuid();
    node.attributes.st_gid   = getgid();
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    node.attributes.st_atim = node.attributes.st_mtim = node.attributes.st_ctim = now;
    return node;
  }

  void drop_if_gone(fuse_ino_t number)
  {
    const auto node = nodes.find(number);
    if (node != nodes.end() && node->second.known == 0 && node->second.attributes.st_nlink == 0)
      nodes.erase(node);
  }

  std::unordered_map<fuse_ino_t, Node> nodes;
  fuse_ino_t last = FUSE_ROOT_ID;
  Stations stations;
  Answers answers; // last: it ends first, while all others are still there
};

FileSystem* fs = nullptr;

/// Answers when the request has been served.
void answer_after(OpKind kind, Answers::Answer answer)
{
  const double now = now_seconds();
  const double due = fs->stations.serve(kind, now);
  if (due <= now)
    answer();
  else
    fs->answers.at(due, std::move(answer));
}

fuse_entry_param entry_of(fuse_ino_t number)
{
  Node& node = fs->nodes[number];
  ++node.known;
  fuse_entry_param entry{};
  entry.ino           = number;
  entry.attr          = node.attributes;
  entry.entry_timeout = entry.attr_timeout = S_ISDIR(node.attributes.st_mode) ? remembered : 0;
  return entry;
}

void lookup(fuse_req_t request, fuse_ino_t parent, const char* name)
{
  const auto& entries = fs->nodes[parent].entries;
  const auto found    = entries.find(name);
  if (found == entries.end()) {
    fuse_reply_err(request, ENOENT);
    return;
  }
  const auto entry = entry_of(found->second);
  fuse_reply_entry(request, &entry);
}

void forget(fuse_req_t request, fuse_ino_t number, uint64_t times)
{
  if (const auto node = fs->nodes.find(number); node != fs->nodes.end()) {
    node->second.known -= std::min(times, node->second.known);
    fs->drop_if_gone(number);
  }
  fuse_reply_none(request);
}

void getattr(fuse_req_t request, fuse_ino_t number, fuse_file_info*)
{
  const struct stat attributes = fs->nodes[number].attributes;
  if (S_ISDIR(attributes.st_mode))
    fuse_reply_attr(request, &attributes, remembered);
  else
    answer_after(OpKind::stat, [request, attributes] { fuse_reply_attr(request, &attributes, 0); });
}

void setattr(fuse_req_t request, fuse_ino_t number, struct stat* wanted, int which, fuse_file_info*)
{
  Node& node = fs->nodes[number];
  if (which & FUSE_SET_ATTR_MODE)
    node.attributes.st_mode = (node.attributes.st_mode & S_IFMT) | (wanted->st_mode & 07777);
  if (which & FUSE_SET_ATTR_SIZE) {
    node.bytes.resize(static_cast<size_t>(wanted->st_size));
    node.attributes.st_size = wanted->st_size;
  }
  if (which & FUSE_SET_ATTR_MTIME)
    node.attributes.st_mtim = wanted->st_mtim;
  fuse_reply_attr(request, &node.attributes, S_ISDIR(node.attributes.st_mode) ? remembered : 0);
}

/// A new file or directory. @return nothing when there is one of that name, which has been answered
std::optional<fuse_entry_param> made(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode)
{
  auto& entries = fs->nodes[parent].entries;
  if (entries.count(name)) {
    fuse_reply_err(request, EEXIST);
    return {};
  }
  const fuse_ino_t number = ++fs->last;
  entries[name]           = number;
  fs->add(number, mode, parent);
  if (S_ISDIR(mode))
    ++fs->nodes[parent].attributes.st_nlink;
  return entry_of(number);
}

void mkdir(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode)
{
  if (const auto entry = made(request, parent, name, S_IFDIR | mode))
    answer_after(OpKind::mkdir, [request, entry = *entry] { fuse_reply_entry(request, &entry); });
}

void create(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, fuse_file_info* file)
{
  file->direct_io = 1;
  if (const auto entry = made(request, parent, name, S_IFREG | mode))
    answer_after(OpKind::create,
                 [request, entry = *entry, file = *file] { fuse_reply_create(request, &entry, &file); });
}

void open(fuse_req_t request, fuse_ino_t, fuse_file_info* file)
{
  file->direct_io = 1;
  answer_after(OpKind::read, [request, file = *file] { fuse_reply_open(request, &file); });
}

void remove(fuse_req_t request, fuse_ino_t parent, const char* name, bool directory)
{
  auto& entries    = fs->nodes[parent].entries;
  const auto found = entries.find(name);
  const int error  = found == entries.end()                                   ? ENOENT
                     : directory && !fs->nodes[found->second].entries.empty() ? ENOTEMPTY
                                                                              : 0;
  if (error) {
    fuse_reply_err(request, error);
    return;
  }
  const fuse_ino_t number = found->second;
  entries.erase(found);
  fs->nodes[number].attributes.st_nlink = 0;
  if (directory)
    --fs->nodes[parent].attributes.st_nlink;
  fs->drop_if_gone(number);
  answer_after(directory ? OpKind::rmdir : OpKind::unlink, [request] { fuse_reply_err(request, 0); });
}

void unlink(fuse_req_t request, fuse_ino_t parent, const char* name)
{
  remove(request, parent, name, false);
}

void rmdir(fuse_req_t request, fuse_ino_t parent, const char* name)
{
  remove(request, parent, name, true);
}

void rename(fuse_req_t request, fuse_ino_t parent, const char* name, fuse_ino_t new_parent, const char* new_name,
            unsigned int flags)
{
  auto& from       = fs->nodes[parent].entries;
  auto& to         = fs->nodes[new_parent].entries;
  const auto found = from.find(name);
  if (flags != 0 || found == from.end()) {
    fuse_reply_err(request, flags != 0 ? EINVAL : ENOENT);
    return;
  }
  const fuse_ino_t number = found->second;
  if (const auto old = to.find(new_name); old != to.end() && old->second != number) {
    fs->nodes[old->second].attributes.st_nlink = 0;
    fs->drop_if_gone(old->second);
  }
  from.erase(name);
  to[new_name]             = number;
  fs->nodes[number].parent = new_parent;
  fuse_reply_err(request, 0);
}

void read(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset, fuse_file_info*)
{
  const std::string& bytes = fs->nodes[number].bytes;
  const size_t from        = std::min(static_cast<size_t>(offset), bytes.size());
  fuse_reply_buf(request, bytes.data() + from, std::min(size, bytes.size() - from));
}

void write(fuse_req_t request, fuse_ino_t number, const char* buffer, size_t size, off_t offset, fuse_file_info*)
{
  Node& node       = fs->nodes[number];
  const size_t end = static_cast<size_t>(offset) + size;
  if (node.bytes.size() < end)
    node.bytes.resize(end);
  std::memcpy(node.bytes.data() + offset, buffer, size);
  node.attributes.st_size   = static_cast<off_t>(node.bytes.size());
  node.attributes.st_blocks = (node.attributes.st_size + 511) / 512;
  fuse_reply_write(request, size);
}

void fsync(fuse_req_t request, fuse_ino_t, int, fuse_file_info*)
{
  fuse_reply_err(request, 0);
}

void readdir(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset, fuse_file_info*)
{
  const Node& node = fs->nodes[number];
  std::vector<std::pair<std::string, fuse_ino_t>> all{{".", number}, {"..", node.parent ? node.parent : number}};
  all.insert(all.end(), node.entries.begin(), node.entries.end());
  std::vector<char> buffer(size);
  size_t used = 0;
  for (size_t i = static_cast<size_t>(offset); i < all.size(); ++i) {
    const size_t more = fuse_add_direntry(request, buffer.data() + used, size - used, all[i].first.c_str(),
                                          &fs->nodes[all[i].second].attributes, static_cast<off_t>(i + 1));
    if (more > size - used)
      break;
    used += more;
  }
  fuse_reply_buf(request, buffer.data(), used);
}

void statfs(fuse_req_t request, fuse_ino_t)
{
  struct statvfs found {};
  found.f_bsize = found.f_frsize = 4096;
  found.f_blocks = found.f_bfree = found.f_bavail = 1 << 20;
  found.f_files = found.f_ffree = found.f_favail = 1 << 24;
  found.f_namemax                                = 255;
  fuse_reply_statfs(request, &found);
}

void write_log(const std::string& file, double began)
{
  std::ofstream out(file);
  out << "operation,arrival,start,finish\n"; // seconds since the mount
  for (const Served& one : fs->stations.served())
    out << fmt::format("{},{:.9f},{:.9f},{:.9f}\n", name_of(one.kind), one.arrival - began, one.start - began,
                       one.finish - began);
  if (!out.flush())
    throw RunError(fmt::format("The log '{}' can't be written: {}.", file, std::strerror(errno)));
}

/// Until it is unmounted.
void serve_here(const fuse_lowlevel_ops& operations, const std::string& mountpoint)
{
  std::string program = "iocast-queuefs", option = "-ofsname=iocast-queuefs,subtype=iocast";
  if (geteuid() == 0) // all others need a permission for it that hardly anybody has
    option += ",allow_other";
  char* arguments[]     = {program.data(), option.data(), nullptr};
  fuse_args given       = FUSE_ARGS_INIT(2, arguments);
  fuse_session* session = fuse_session_new(&given, &operations, sizeof operations, nullptr);
  if (!session || fuse_set_signal_handlers(session) != 0 || fuse_session_mount(session, mountpoint.c_str()) != 0)
    throw RunError(fmt::format(
        "The directory '{}' can't be a mount point of FUSE; /dev/fuse and the program fusermount3 are needed.",
        mountpoint));
  fuse_session_loop(session);
  fs->answers.end(); // through the session, which goes next
  fuse_session_unmount(session);
  fuse_remove_signal_handlers(session);
  fuse_session_destroy(session);
}

int run(int argc, char** argv)
{
  std::string name, mountpoint, log, serve, connect;
  uint64_t seed = 1;
  CLI::App app("iocast-queuefs is a file system in memory whose metadata operations take the time that a platform "
               "says; it stays until it is unmounted.");
  auto* platform = app.add_option("--platform", name,
                                  "whose routes are one visit each to a station that is first come, first served");
  app.add_option("--log", log, "what every request found, as CSV, when it is unmounted");
  app.add_option("--seed", seed, "seed of the service times")->capture_default_str();
  app.add_option("--serve", serve, "serve other machines at HOST:PORT until SIGTERM, instead of a mount here")
      ->needs(platform);
  app.add_option("--connect", connect, "mount what is served at HOST:PORT")->excludes(platform)->excludes("--serve");
  app.add_option("MOUNTPOINT", mountpoint, "an empty directory");
  CLI11_PARSE(app, argc, argv);
  if (mountpoint.empty() != !serve.empty())
    throw InputError(serve.empty() ? "Name the MOUNTPOINT, an empty directory."
                                   : "With --serve nothing is mounted here; leave the MOUNTPOINT out.");
  if (!connect.empty()) {
    mount_from(connect, mountpoint);
    return 0;
  }
  if (name.empty())
    throw InputError("Name the --platform whose times the file system takes, or a server to --connect to.");

  FileSystem file_system(open_platform(name), seed);
  fs = &file_system;
  fuse_lowlevel_ops operations{};
  operations.lookup  = lookup;
  operations.forget  = forget;
  operations.getattr = getattr;
  operations.setattr = setattr;
  operations.mkdir   = mkdir;
  operations.rmdir   = rmdir;
  operations.create  = create;
  operations.open    = open;
  operations.unlink  = unlink;
  operations.rename  = rename;
  operations.read    = read;
  operations.write   = write;
  operations.fsync   = fsync;
  operations.readdir = readdir;
  operations.statfs  = statfs;

  const double began = now_seconds();
  if (serve.empty())
    serve_here(operations, mountpoint);
  else {
    remembered = remembered_elsewhere;
    FuseServer(operations, serve).run();
    file_system.answers.end();
  }
  if (!log.empty())
    write_log(log, began);
  return 0;
}

} // namespace

int main(int argc, char** argv)
{
  try {
    return run(argc, argv);
  } catch (const InputError& error) {
    fmt::print(stderr, "iocast-queuefs: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "iocast-queuefs: {}\n", error.what());
    return 1;
  }
}
