// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "profile/files.hpp"
#include "real/backend.hpp"

namespace iocast {

/// A directory that a backend works in: what has to do with names, not with data, goes through POSIX calls relative to
/// a descriptor of it ("<dataset>/<object>"), so that the kernel doesn't walk the root's path again for each call.
///
/// Nobody else can exchange a step of such a path: the directory is the user's own (require_own), a dataset that is
/// there already ends the run (Executor::ask), and those that are made can't be written to by others. So timed calls
/// need no more protection, and make none of their own. What an unfinished run left may be incomplete, and is reached
/// through no link (remove_left).
class PosixRoot : public Backend {
public:
  /// `root` names the directory, or one directory by several mount points of its file system, separated by commas, over
  /// which ranks are spread in turn. `option` is what the user names it with: "--posix.root".
  PosixRoot(const std::string& root, std::string option, uint32_t rank);

  void connect() override;
  int mkdir(const Name& name) override;
  int stat(const Name& name, uint64_t& size) override;
  int unlink(const Name& name) override;
  int remove_left(const Name& name) override;
  int rmdir(const Name& name) override;
  int readdir(const Name& name, uint64_t& entries) override;
  bool serves(OpKind) const override { return true; }

  bool keeps_data() const override { return true; }
  std::string place() const override;
  bool empty() override;
  void check_writable() override;
  std::string lacks_room(const Footprint& footprint) override;
  std::optional<double> free_bytes() override;
  void check_outside(const std::string& option, const std::string& directory) override;
  std::string read_manifest() override;
  void write_manifest(const std::string& text) override;
  void remove_manifest() override;
  std::optional<std::string> read_claim() override;
  bool make_claim(const std::string& text) override;
  bool replace_claim(const std::string& found, const std::string& text) override;
  bool renew_claim(const std::string& mine, const std::string& text) override;
  void remove_claim(const std::string& mine) override;
  void check_claim_is_seen(const std::string& text) override;
  std::vector<std::string> list(const std::string& dataset) override;
  nlohmann::ordered_json environment() override;

protected:
  const std::string& root() const { return root_; }
  int root_fd() const { return root_fd_.number(); }
  /// Passes the error on, unless every later operation would fail too. @throws RunError
  int failed(int error) const;

private:
  std::vector<std::string> ways_; ///< all that lead to the directory
  std::string root_;              ///< this rank's
  std::string option_;
  FileDescriptor root_fd_;
  std::string left_in_; ///< the dataset that remove_left() was in last
  FileDescriptor left_; ///< its directory, if it is one
  int left_error_ = 0;  ///< why it isn't
};

} // namespace iocast
