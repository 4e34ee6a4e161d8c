// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "workload/op.hpp"

#include <cstdint>

namespace iocast {

/// An operation as it happened. Times are nanoseconds since the start of the run.
struct TracedOp {
  Op op;
  int64_t start_ns = 0;
  int64_t ns       = 0; ///< from the start to the answer
  int32_t error    = 0; ///< 0, or the error number

  bool operator==(const TracedOp&) const = default;
};

/// Writes and reads the operations of one rank in about ten bytes each: what differs from the operation before, in
/// groups of seven bits. A pattern, an executor and a simulated rank hold one each, so it remembers one operation only.
class OpCodec {
public:
  static constexpr size_t most_bytes = 2 + 8 * 10 + 5;

  /// Writes at `out`, where there is room for most_bytes. @return the end
  unsigned char* encode(const TracedOp& traced, unsigned char* out)
  {
    const Op& op         = traced.op;
    unsigned char* begin = out;
    out += 2;
    uint8_t changed = 0;
    auto put_signed = [&](uint8_t bit, uint64_t difference) {
      if (difference == 0)
        return;
      changed |= bit;
      out = put(out, difference << 1 ^ (difference >> 63 ? ~uint64_t{0} : 0));
    };
    put_signed(of_dataset, op.dataset - before_.dataset);
    put_signed(of_object, op.object - before_.object);
    put_signed(of_size, op.size - before_.size);
    put_signed(of_offset, op.offset - (before_.offset + before_.size));
    if (op.count != before_.count || op.stride != before_.stride) {
      changed |= of_blocks;
      out = put(put(out, op.count), op.stride);
    }
    if (op.flags != before_.flags) {
      changed |= of_flags;
      *out++ = op.flags;
    }
    if (traced.error != 0) {
      changed |= of_error;
      out = put(out, static_cast<uint32_t>(traced.error));
    }
    const uint64_t gap = static_cast<uint64_t>(traced.start_ns - end_ns_);
    out                = put(out, gap << 1 ^ (gap >> 63 ? ~uint64_t{0} : 0));
    out                = put(out, static_cast<uint64_t>(traced.ns));
    begin[0]           = static_cast<unsigned char>(op.kind);
    begin[1]           = changed;
    remember(traced);
    return out;
  }

  /// Reads what encode() wrote. @return the end
  const unsigned char* decode(const unsigned char* in, TracedOp& traced)
  {
    Op& op                = traced.op;
    op                    = before_;
    op.kind               = static_cast<OpKind>(in[0]);
    const uint8_t changed = in[1];
    in += 2;
    op.offset += before_.size;
    auto get_signed = [&](uint8_t bit, uint64_t& value) {
      if (changed & bit)
        value += difference(in);
    };
    get_signed(of_dataset, op.dataset);
    get_signed(of_object, op.object);
    get_signed(of_size, op.size);
    get_signed(of_offset, op.offset);
    if (changed & of_blocks) {
      op.count  = static_cast<uint32_t>(get(in));
      op.stride = get(in);
    }
    if (changed & of_flags)
      op.flags = *in++;
    traced.error    = changed & of_error ? static_cast<int32_t>(get(in)) : 0;
    traced.start_ns = end_ns_ + static_cast<int64_t>(difference(in));
    traced.ns       = static_cast<int64_t>(get(in));
    remember(traced);
    return in;
  }

private:
  enum Changed : uint8_t {
    of_dataset = 1,
    of_object  = 2,
    of_size    = 4,
    of_offset  = 8,
    of_blocks  = 16,
    of_flags   = 32,
    of_error   = 64
  };

  void remember(const TracedOp& traced)
  {
    before_ = traced.op;
    end_ns_ = traced.start_ns + traced.ns;
  }

  static unsigned char* put(unsigned char* out, uint64_t value)
  {
    for (; value >= 128; value >>= 7)
      *out++ = static_cast<unsigned char>(value | 128);
    *out++ = static_cast<unsigned char>(value);
    return out;
  }
  static uint64_t get(const unsigned char*& in)
  {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const unsigned char byte = *in++;
      value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128)
        return value;
    }
  }
  static uint64_t difference(const unsigned char*& in)
  {
    const uint64_t coded = get(in);
    return coded >> 1 ^ (coded & 1 ? ~uint64_t{0} : 0);
  }

  Op before_;
  int64_t end_ns_ = 0;
};

} // namespace iocast
