// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "real/backend.hpp"

#include <sys/types.h>

namespace iocast {

/// A directory of a file system that a client library reaches without a mount: manifest and claim as files in it, from
/// a few calls of the library. Paths are relative to the directory; calls return 0 or an errno.
class RemoteRoot : public Backend {
public:
  bool keeps_data() const override { return true; }
  bool empty() override;
  /// Nothing but writing tells: permissions are the directory's, but also the client's in this file system.
  void check_writable() override;
  std::string read_manifest() override;
  void write_manifest(const std::string& text) override;
  void remove_manifest() override;
  std::optional<std::string> read_claim() override;
  bool make_claim(const std::string& text) override;
  bool replace_claim(const std::string& found, const std::string& text) override;
  bool renew_claim(const std::string& mine, const std::string& text) override;
  void remove_claim(const std::string& mine) override;
  std::vector<std::string> list(const std::string& dataset) override;

protected:
  struct Attributes {
    mode_t mode   = 0;
    uint64_t size = 0;
  };
  /// Of the name itself, where it is a link.
  virtual int look_at(const char* path, Attributes& found) = 0;
  /// Reads a file, at most 4096 bytes beyond `most_manifest` of it. Follows no link.
  virtual int read_text(const char* path, std::string& text) = 0;
  /// An empty one. @return EEXIST where there is anything of that name
  virtual int make_file(const char* path) = 0;
  /// Into a file that is there, from its beginning, as far as the storage keeps it. Follows no link.
  virtual int write_text(const char* path, const std::string& text) = 0;
  virtual int move_file(const char* from, const char* to)           = 0;
  virtual int link_file(const char* from, const char* to)           = 0;
  virtual int remove_file(const char* path)                         = 0;
  /// Calls for each entry of a directory, but not for itself and its parent.
  virtual int for_names_in(const char* directory, const std::function<void(const char*)>& call) = 0;

  std::string lower_place() const { return "t" + place().substr(1); }

private:
  std::optional<std::string> read_small(const char* name);
  int write_fresh(const char* name, const std::string& text);
  bool is_regular(const char* name);
};

/// "." and "..".
bool is_itself_or_parent(std::string_view name);

} // namespace iocast
