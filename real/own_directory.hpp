// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "profile/files.hpp"

#include <string>
#include <sys/types.h>

namespace iocast {

/// Opens a directory; a path with a symbolic link in it leads nowhere (ELOOP, or ENOTDIR). @return none, with errno
FileDescriptor open_without_links(const std::string& path);

/// Refuses a directory in which another user could put a link, or rename what this process makes: one that another user
/// owns, and one that others may write to, unless it is sticky. `of_root`: root's is trusted, too. `shown`: its place,
/// "The directory 'X'".
/// @throws InputError
void require_own(int directory, const std::string& shown, bool of_root);
/// The same by what is known of the directory. `own`: the user that files of this process have in it.
void require_own(uid_t owner, gid_t group, mode_t mode, uid_t own, const std::string& shown, bool of_root);

} // namespace iocast
