// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "real/backend.hpp"
#include "real/content.hpp"
#include "real/lookahead.hpp"
#include "real/open_objects.hpp"

#include <vector>

namespace iocast {

/// How an operation is carried out: by which calls of the backend, with what before and after them.
class Caller {
public:
  /// content: null where whatever is read is right
  Caller(Backend& backend, const Content* content);

  /// Nothing but its call.
  bool is_plain(const Op& op) const { return op.kind <= OpKind::rmdir && !content_ && !prepares_; }
  /// What a call needs beside the name, and all that must not be timed. @return an error, or 0
  int prepare(const Request& request);
  int call(Request& request);
  /// The access that was prepared for, or one like it.
  int access(const Op& op)
  {
    return op.kind == OpKind::pwrite ? backend_.pwrite(slot_, op) : backend_.pread(slot_, op);
  }
  /// After a call: what it changed, and whether it brought what it had to. together: all ranks of the group made it.
  int check(const Op& op, int error, bool together);
  /// The byte of the object that was wrong, or where the operation began.
  uint64_t wrong_at() const { return wrong_at_; }

  /// An OpKind::close for everything that is open.
  std::vector<Op> closes() const { return open_.closes(); }
  /// Closes what one of these closes, whatever the backend says.
  void give_up(const Op& close);

private:
  void prepare_content(const Name& name, Op op);

  Backend& backend_;
  const Content* content_;
  bool prepares_; ///< the backend prepares calls that name an object
  OpenObjects open_;
  Slot slot_         = 0; ///< of the object that the operation is about
  uint64_t found_    = 0; ///< what a stat or readdir found
  uint64_t wrong_at_ = 0;
};

} // namespace iocast
