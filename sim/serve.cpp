// SPDX-License-Identifier: Apache-2.0
#include "sim/serve.hpp"
#include "input/error.hpp"
#include "sim/progress.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace iocast {
namespace {

/// A file in memory that a run writes to.
class Capture {
public:
  explicit Capture(const char* name) : descriptor_(memfd_create(name, MFD_CLOEXEC))
  {
    if (descriptor_ < 0)
      throw RunError(fmt::format("There is no memory for what a run prints: {}.", std::strerror(errno)));
  }
  Capture(const Capture&)            = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture() { close(descriptor_); }

  void become(int descriptor) const { dup2(descriptor_, descriptor); }

  std::string content() const
  {
    std::string text(static_cast<size_t>(lseek(descriptor_, 0, SEEK_END)), '\0');
    size_t done = 0;
    while (done < text.size()) {
      const auto got = pread(descriptor_, text.data() + done, text.size() - done, static_cast<off_t>(done));
      if (got <= 0)
        throw RunError(fmt::format("What a run printed can't be read: {}.", std::strerror(errno)));
      done += static_cast<size_t>(got);
    }
    return text;
  }

private:
  int descriptor_;
};

[[noreturn]] void run_here(const std::function<int(const std::vector<std::string>&)>& run,
                           const nlohmann::json& request, const Capture& out, const Capture& error)
{
  prctl(PR_SET_PDEATHSIG, SIGKILL); // who ends the server waits for no answer
  report_progress_to(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
  out.become(STDOUT_FILENO);
  error.become(STDERR_FILENO);
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  int code = 1;
  if (chdir(request["directory"].get<std::string>().c_str()) != 0)
    fmt::print(stderr, "iocast-sim: The directory '{}' can't be entered: {}.\n",
               request["directory"].get<std::string>(), std::strerror(errno));
  else
    code = run(request["arguments"].get<std::vector<std::string>>());
  std::fflush(nullptr);
  _exit(code);
}

} // namespace

int serve(const std::function<void(const std::vector<std::string>&)>& prepare,
          const std::function<int(const std::vector<std::string>&)>& run)
{
  std::string line;
  while (std::getline(std::cin, line)) {
    const auto request  = nlohmann::json::parse(line, nullptr, false);
    const bool complete = request.is_object() && request.contains("directory") && request.contains("arguments") &&
                          request["arguments"].is_array();
    if (!complete || !std::all_of(request["arguments"].begin(), request["arguments"].end(),
                                  [](const auto& one) { return one.is_string(); }))
      throw InputError("--serve reads lines of JSON objects with the keys 'directory' and 'arguments'; this is none: " +
                       line);
    prepare(request["arguments"].get<std::vector<std::string>>());
    const Capture out("out");
    const Capture error("error");
    const pid_t child = fork();
    if (child < 0)
      throw RunError(fmt::format("No process can be started: {}.", std::strerror(errno)));
    if (child == 0)
      run_here(run, request, out, error);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    const auto output = out.content();
    const auto errors = error.content();
    const nlohmann::json answer{{"code", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)},
                                {"out", output.size()},
                                {"err", errors.size()}};
    std::cout << answer.dump() << '\n' << output << errors << std::flush;
  }
  return 0;
}

} // namespace iocast
