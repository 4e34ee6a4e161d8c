// SPDX-License-Identifier: Apache-2.0
#include "real/caller.hpp"

#include "real/agree.hpp"

#include <cerrno>

namespace iocast {

Caller::Caller(Backend& backend, const Content* content)
    : backend_(backend), content_(content), prepares_(backend.prepares_calls())
{
}

int Caller::prepare(const Request& request)
{
  const Op& op = request.op;
  if (op.kind == OpKind::open) {
    const auto slot = open_.free_slot();
    slot_           = slot.value_or(0);
    return slot ? 0 : EMFILE;
  }
  if (op.kind < OpKind::open) {
    found_ = op.size;
    if (op.bytes() > 0 && content_)
      prepare_content(request.name, op);
    if (prepares_)
      backend_.prepare_call(request.name, op);
    return 0;
  }
  const auto slot = open_.find(op.dataset, op.object);
  if (!slot)
    return EBADF; // opening it has failed
  slot_ = *slot;
  if (is_access(op.kind))
    backend_.prepare(slot_, op);
  return 0;
}

/// Of a compound operation.
void Caller::prepare_content(const Name& name, Op op)
{
  if (op.kind == OpKind::append)
    backend_.stat(name, op.offset); // if there is no such object, the append will say so
  backend_.prepare(slot_, op);
}

int Caller::call(Request& request)
{
  const Op& op     = request.op;
  const Name& name = request.name;
  switch (op.kind) {
    case OpKind::create:
      return backend_.create(name, op.size, request.watch);
    case OpKind::stat:
      return backend_.stat(name, found_);
    case OpKind::read:
      return backend_.read(name, op.size, request.watch);
    case OpKind::unlink:
      return backend_.unlink(name);
    case OpKind::mkdir:
      return backend_.mkdir(name);
    case OpKind::rmdir:
      return backend_.rmdir(name);
    case OpKind::append:
      return backend_.append(name, op.size, request.watch);
    case OpKind::readdir:
      return backend_.readdir(name, found_);
    case OpKind::open:
      return backend_.open(name, op.flags, slot_);
    case OpKind::pwrite:
      return backend_.pwrite(slot_, op);
    case OpKind::pread:
      return backend_.pread(slot_, op);
    case OpKind::fsync:
      return backend_.fsync(slot_);
    case OpKind::close:
      return backend_.close(slot_);
    case OpKind::phase:
    case OpKind::think:
      break;
  }
  return EINVAL;
}

int Caller::check(const Op& op, int error, bool together)
{
  wrong_at_ = op.offset;
  if (op.kind == OpKind::open) {
    if (together)
      error = backend_.opened_together(slot_, error);
    if (error == 0)
      open_.opened(slot_, op);
  } else if (op.kind == OpKind::close && error != EBADF) {
    open_.closed(slot_);
  }
  if (error != 0)
    return error;
  if (op.kind == OpKind::readdir && found_ != op.size)
    return wrong_entries;
  if (!content_)
    return 0;
  if (op.kind == OpKind::stat && op.size > 0 && found_ != op.size)
    return wrong_size;
  if (op.kind == OpKind::read || op.kind == OpKind::pread)
    if (const auto wrong = content_->first_wrong(backend_.fetched(), op)) {
      wrong_at_ = *wrong;
      return wrong_content;
    }
  return 0;
}

void Caller::give_up(const Op& close)
{
  const Slot slot = *open_.find(close.dataset, close.object);
  open_.closed(slot);
  failure_of([&] { backend_.close(slot); });
}

} // namespace iocast
