// SPDX-License-Identifier: Apache-2.0
#include "real/client_threads.hpp"

#include "input/error.hpp"
#include "real/stopwatch.hpp"

#include <fmt/format.h>
#include <system_error>
#include <utility>

namespace iocast {

ClientThreads::ClientThreads(size_t count, const std::function<void(size_t)>& prepare,
                             std::function<void(size_t, int64_t)> work)
    : work_(std::move(work))
{
  const auto live = [this, &prepare](size_t client) {
    Ticks::begin_thread();
    try {
      prepare(client);
    } catch (...) {
      keep_failure();
    }
    ++prepared_;
    prepared_.notify_all(); // `prepare` is not to be used from here on
    start_ns_.wait(0);
    if (start_ns_ > 0)
      try {
        sleep_until(start_ns_);
        work_(client, start_ns_);
      } catch (...) {
        keep_failure();
      }
    ++done_;
  };
  try {
    for (size_t client = 1; client < count; ++client)
      threads_.emplace_back(live, client);
    prepare(0);
  } catch (const std::system_error& error) {
    release();
    throw RunError(fmt::format("{} of {} clients have a thread, and there is none for another: {}. Ask for fewer with "
                               "--threads-per-rank, or raise the limit (ulimit -u).",
                               threads_.size() + 1, count, error.code().message()));
  } catch (...) {
    release();
    throw;
  }
  for (size_t ready = 0; (ready = prepared_) < threads_.size();)
    prepared_.wait(ready);
  if (failure_) {
    release();
    std::rethrow_exception(failure_);
  }
}

ClientThreads::~ClientThreads()
{
  release();
}

void ClientThreads::keep_failure()
{
  const std::lock_guard lock(mutex_);
  if (!failure_)
    failure_ = std::current_exception();
}

/// Ends the waiting, if it hasn't, and the threads.
void ClientThreads::release()
{
  if (start_ns_ == 0)
    start_at(-1);
  for (auto& thread : threads_)
    if (thread.joinable())
      thread.join();
}

void ClientThreads::start_at(int64_t start_ns)
{
  start_ns_ = start_ns;
  start_ns_.notify_all();
}

void ClientThreads::work(const std::function<void()>& meanwhile)
{
  constexpr int64_t nap_ns = 1'000'000;
  work_(0, start_ns_);
  while (done_ < threads_.size()) {
    sleep_until(now_ns() + nap_ns);
    meanwhile();
  }
  release();
  if (failure_)
    std::rethrow_exception(failure_);
}

} // namespace iocast
