// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace iocast {

/// An open file or directory, closed with its owner.
class FileDescriptor {
public:
  FileDescriptor() = default;
  explicit FileDescriptor(int number) : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept
  {
    std::swap(number_, other.number_);
    return *this;
  }
  ~FileDescriptor();

  /// @return 0, or an errno: what network file systems say of all that was written
  int close();

  int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

private:
  int number_ = -1;
};

/// The functions below act in an open directory, whatever its path leads to by now, and follow no symbolic link;
/// `shown` is its path, for messages.

/// Makes a file that didn't exist, for writing. @throws RunError
FileDescriptor make_file_in(int directory, const std::string& shown, const std::string& name);
/// All of `text`, or nothing: what was written of it is taken back when there is no room. @throws RunError
void append_whole(const FileDescriptor& file, const std::string& shown, std::string_view text);
/// Replaces the file so that a reader sees the old content or the new, never a part, through a file of a random name
/// (see is_stand_in).
/// @throws RunError
void write_atomically_in(int directory, const std::string& shown, const std::string& name, std::string_view text);
/// Whether an entry of the directory is a file that stands in for that of this name for a moment, and may have been
/// left by a killed process: name.RANDOM.new or .old.
bool is_stand_in(int directory, const std::string& entry, const std::string& name);
/// The content of a regular file of at most `most` bytes; empty when there is none of that name. @throws InputError
/// when it is anything else
std::string read_small_file_in(int directory, const std::string& shown, const std::string& name, size_t most);

/// 16 hexadecimal digits that nobody can foretell.
std::string random_word();

} // namespace iocast
