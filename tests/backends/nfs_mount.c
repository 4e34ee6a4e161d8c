// SPDX-License-Identifier: Apache-2.0
//
// nfs_mount 'nfs://SERVER/EXPORT?version=4&nfsport=PORT' MOUNTPOINT mounts NFSv4 for servers.py, with libnfs, where the
// kernel has no client of its own. As that does, it keeps attributes and names for a while (here a second), and renames
// what is removed while somebody has it open; contents are not kept, what is written is with the server before the
// write returns, and a server that is away is waited for. cc nfs_mount.c -o nfs_mount $(pkg-config --cflags --libs
// fuse3 libnfs)
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <nfsc/libnfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char* address;
static struct nfs_context* server;
static unsigned connections;

/// An open file. All opens of an inode share one, under whichever of its names: they are one owner's to the server, and
/// closing one of them would close all.
struct file {
  char* path;
  uint64_t inode;
  unsigned opens;
  struct nfsfh* handle;
  unsigned connection; ///< that the handle is of
  struct file* next;   ///< of those that are open under their names
};

static struct file* files;

/// What is under this name from now on is another file.
static void forget_name(const char* path)
{
  for (struct file** at = &files; *at;)
    if (strcmp((*at)->path, path) == 0)
      *at = (*at)->next;
    else
      at = &(*at)->next;
}

static struct nfs_context* mounted(void)
{
  struct nfs_context* made = nfs_init_context();
  nfs_set_dircache(made, 0);
  struct nfs_url* where = nfs_parse_url_dir(made, address);
  return where && nfs_mount(made, where->server, where->path) >= 0 ? made : NULL;
}

/// Whether the connection was gone; then there is another, however long that took.
static int connected_again(void)
{
  struct nfs_stat_64 root;
  if (nfs_lstat64(server, "/", &root) >= 0)
    return 0;
  while (!(server = mounted()))
    usleep(100000);
  ++connections;
  return 1;
}

/// Whether this is another client to the server now. It forgets one that opened nothing for its lease, a minute and a
/// half; libnfs renews none, and calls the error ERANGE.
static int registered_again(void)
{
  static time_t before;
  if (time(NULL) < before + 2)
    return 0; // that was not the reason
  before = time(NULL);
  while (!(server = mounted()))
    usleep(100000);
  ++connections;
  return 1;
}

/// Asks until there is an answer, as a hard mount does.
#define ANSWER_OF(call)                                                                                                \
  ({                                                                                                                   \
    int answer;                                                                                                        \
    do                                                                                                                 \
      answer = (call);                                                                                                 \
    while ((answer == -EIO && connected_again()) || (answer == -ERANGE && registered_again()));                        \
    answer;                                                                                                            \
  })

static struct file* file_of(const struct fuse_file_info* info)
{
  return (struct file*)(uintptr_t)info->fh;
}

/// None when the server has no such file any longer.
static struct nfsfh* handle_of(const struct fuse_file_info* info)
{
  struct file* file = file_of(info);
  if (file->connection != connections) {
    file->handle = NULL;
    if (nfs_open(server, file->path, O_RDWR, &file->handle) < 0)
      file->handle = NULL;
    file->connection = connections;
  }
  return file->handle;
}

#define ANSWER_FOR(info, name, ...)                                                                                    \
  ANSWER_OF(handle_of(info) ? name(server, file_of(info)->handle __VA_OPT__(, ) __VA_ARGS__) : -ESTALE)

static int opened(int error, const char* path, struct nfsfh* handle, struct fuse_file_info* info)
{
  struct nfs_stat_64 found;
  if (error < 0 || (error = ANSWER_OF(nfs_fstat64(server, handle, &found))) < 0)
    return error;
  struct file* file = malloc(sizeof *file);
  *file             = (struct file){strdup(path), found.nfs_ino, 1, handle, connections, files};
  files             = file;
  info->fh          = (uintptr_t)file;
  info->direct_io   = 1;
  return 0;
}

static void* start(struct fuse_conn_info* connection, struct fuse_config* config)
{
  (void)connection;
  config->use_ino          = 1;
  config->attr_timeout     = 1;
  config->entry_timeout    = 1;
  config->negative_timeout = 0;
  return NULL;
}

static int get_attributes(const char* path, struct stat* out, struct fuse_file_info* info)
{
  struct nfs_stat_64 found;
  const int error = info ? ANSWER_FOR(info, nfs_fstat64, &found) : ANSWER_OF(nfs_lstat64(server, path, &found));
  if (error < 0)
    return error;
  memset(out, 0, sizeof *out);
  out->st_ino     = found.nfs_ino;
  out->st_mode    = (mode_t)found.nfs_mode;
  out->st_nlink   = found.nfs_nlink;
  out->st_uid     = (uid_t)found.nfs_uid;
  out->st_gid     = (gid_t)found.nfs_gid;
  out->st_size    = (off_t)found.nfs_size;
  out->st_blksize = 4096;
  out->st_blocks  = (blkcnt_t)found.nfs_blocks;
  out->st_mtim    = (struct timespec){(time_t)found.nfs_mtime, (long)found.nfs_mtime_nsec};
  return 0;
}

static int make_directory(const char* path, mode_t mode)
{
  return ANSWER_OF(nfs_mkdir2(server, path, (int)mode));
}
static int remove_directory(const char* path)
{
  return ANSWER_OF(nfs_rmdir(server, path));
}

static int remove_file(const char* path)
{
  forget_name(path);
  return ANSWER_OF(nfs_unlink(server, path));
}

static int move(const char* from, const char* to, unsigned flags)
{
  if (flags)
    return -EINVAL;
  const int error = ANSWER_OF(nfs_rename(server, from, to));
  if (error < 0)
    return error;
  forget_name(to);
  for (struct file* file = files; file; file = file->next)
    if (strcmp(file->path, from) == 0) {
      free(file->path);
      file->path = strdup(to);
    }
  return 0;
}

static int join(const char* from, const char* to)
{
  return ANSWER_OF(nfs_link(server, from, to));
}

static int create_file(const char* path, mode_t mode, struct fuse_file_info* info)
{
  struct nfsfh* file = NULL;
  int error          = ANSWER_OF(nfs_open2(server, path, O_RDWR | O_CREAT | O_EXCL, (int)mode, &file));
  if (error == -EEXIST && !(info->flags & O_EXCL)) // another client was faster
    error = ANSWER_OF(nfs_open(server, path, O_RDWR | (info->flags & O_TRUNC), &file));
  return opened(error, path, file, info);
}

static int open_file(const char* path, struct fuse_file_info* info)
{
  struct nfs_stat_64 found;
  const int missing = ANSWER_OF(nfs_lstat64(server, path, &found));
  if (missing < 0)
    return missing;
  for (struct file* file = files; file; file = file->next)
    if (file->inode == found.nfs_ino) {
      const int error = info->flags & O_TRUNC ? ANSWER_OF(nfs_truncate(server, path, 0)) : 0;
      if (error < 0)
        return error;
      ++file->opens;
      info->fh        = (uintptr_t)file;
      info->direct_io = 1;
      return 0;
    }
  struct nfsfh* file = NULL;
  const int error    = ANSWER_OF(nfs_open(server, path, O_RDWR | (info->flags & O_TRUNC), &file));
  return opened(error, path, file, info);
}

static int set_size(const char* path, off_t size, struct fuse_file_info* info)
{
  return info ? ANSWER_FOR(info, nfs_ftruncate, (uint64_t)size) : ANSWER_OF(nfs_truncate(server, path, (uint64_t)size));
}

static int read_from(const char* path, char* data, size_t size, off_t offset, struct fuse_file_info* info)
{
  (void)path;
  return ANSWER_FOR(info, nfs_pread, (uint64_t)offset, size, data);
}

static int write_to(const char* path, const char* data, size_t size, off_t offset, struct fuse_file_info* info)
{
  (void)path;
  const size_t most = 3072; // libnfs 4.0 has 4 KiB for a message of NFSv4
  for (size_t done = 0; done < size;) {
    const size_t piece = size - done < most ? size - done : most;
    const int written  = ANSWER_FOR(info, nfs_pwrite, (uint64_t)offset + done, piece, (void*)(uintptr_t)(data + done));
    if (written < 0)
      return written;
    done += (size_t)written;
  }
  return (int)size;
}

static int synchronise(const char* path, int only_data, struct fuse_file_info* info)
{
  (void)path;
  (void)only_data;
  return ANSWER_FOR(info, nfs_fsync);
}

static int close_file(const char* path, struct fuse_file_info* info)
{
  (void)path;
  struct file* file = file_of(info);
  if (--file->opens > 0)
    return 0;
  for (struct file** at = &files; *at; at = &(*at)->next)
    if (*at == file) {
      *at = file->next;
      break;
    }
  const int error = file->handle && file->connection == connections ? nfs_close(server, file->handle) : 0;
  free(file->path);
  free(file);
  return error;
}

static int list(const char* path, void* out, fuse_fill_dir_t fill, off_t offset, struct fuse_file_info* info,
                enum fuse_readdir_flags flags)
{
  (void)offset;
  (void)info;
  (void)flags;
  struct nfsdir* directory = NULL;
  const int error          = ANSWER_OF(nfs_opendir(server, path, &directory));
  if (error < 0)
    return error;
  for (const struct nfsdirent* entry; (entry = nfs_readdir(server, directory));)
    fill(out, entry->name, NULL, 0, 0);
  nfs_closedir(server, directory);
  return 0;
}

static int room(const char* path, struct statvfs* out)
{
  return ANSWER_OF(nfs_statvfs(server, path, out));
}
static int change_mode(const char* path, mode_t mode, struct fuse_file_info* info)
{
  (void)info;
  return ANSWER_OF(nfs_chmod(server, path, (int)mode));
}

static const struct fuse_operations operations = {
    .init     = start,
    .getattr  = get_attributes,
    .mkdir    = make_directory,
    .rmdir    = remove_directory,
    .unlink   = remove_file,
    .rename   = move,
    .link     = join,
    .create   = create_file,
    .open     = open_file,
    .read     = read_from,
    .write    = write_to,
    .fsync    = synchronise,
    .release  = close_file,
    .readdir  = list,
    .statfs   = room,
    .truncate = set_size,
    .chmod    = change_mode,
};

int main(int argc, char** argv)
{
  if (argc != 3)
    return 2;
  address = argv[1];
  if (!(server = mounted())) {
    fprintf(stderr, "nfs_mount: %s can't be mounted.\n", address);
    return 1;
  }
  char* arguments[] = {argv[0], "-f", "-s", "-o", "fsname=nfs", argv[2], NULL};
  return fuse_main(6, arguments, &operations, NULL);
}
