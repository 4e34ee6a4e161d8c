// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "workload/pattern.hpp"

#include <cstring>
#include <limits>

namespace iocast {

/// The names of the dataset and object that an operation is about. What didn't change since the last operation isn't
/// formed again.
class Name {
public:
  explicit Name(const Pattern& pattern) : pattern_(pattern) {}

  void point_at(const Op& op)
  {
    if (op.dataset != dataset_) {
      dataset_length_ = static_cast<size_t>(pattern_.name_dataset(op.dataset, path_) - path_);
      dataset_        = op.dataset;
      object_         = none;
    }
    if (op.flags & whole) [[unlikely]] {
      std::memset(path_ + dataset_length_, 0, 2);
      object_ = none;
    } else if (op.object != object_) {
      path_[dataset_length_]                                                       = '/';
      *pattern_.name_object_in(op.dataset, op.object, path_ + dataset_length_ + 1) = '\0';
      object_                                                                      = op.object;
    }
  }

  /// "12_3"
  const char* dataset() const
  {
    std::memcpy(dataset_name_, path_, dataset_length_);
    dataset_name_[dataset_length_] = '\0';
    return dataset_name_;
  }
  /// "12_3/file-45"; the dataset's for an operation that is about it as a whole.
  const char* path() const { return path_; }
  /// "file-45"; "" for an operation that is about a whole dataset and can be about an object too (OpKind::stat).
  const char* object() const { return path_ + dataset_length_ + 1; }

private:
  static constexpr uint64_t none  = std::numeric_limits<uint64_t>::max();
  static constexpr size_t longest = 200; ///< of a dataset's or object's name, see Pattern

  const Pattern& pattern_;
  uint64_t dataset_      = none;
  uint64_t object_       = none;
  size_t dataset_length_ = 0;
  char path_[2 * longest + 2];
  mutable char dataset_name_[longest + 1]; ///< few ask for it
};

} // namespace iocast
