// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace iocast {

/// Refuses before anything is done. @throws InputError when this process may not do so
void check_may_drop_caches();

/// Has the kernel of this node write back what is dirty, then forget the pages, names and attributes that it caches of
/// files (proc(5), /proc/sys/vm/drop_caches). What file systems keep for themselves, as Lustre's locks, stays. @throws
/// RunError
void drop_caches();

} // namespace iocast
