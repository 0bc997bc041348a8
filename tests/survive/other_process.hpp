// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/exec/process/error.hpp>
#include <gshard/survive/files/directory_lock.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>

/// Runs f() in a child process. Returns its text, up to 4 KiB.
template <class F>
std::string in_child(F f) {
  int ends[2];
  if (::pipe(ends) != 0) throw gshard::error("no pipe");
  const pid_t child = ::fork();
  if (child == 0) {
    std::string text;
    const gshard::process_error problem = gshard::detail::problem_of([&] { text = f(); });
    if (!problem.empty()) text = "an exception: " + problem.text;
    [[maybe_unused]] const auto written = ::write(ends[1], text.data(), text.size());
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text(4096, ' ');
  std::size_t n = 0;
  for (ssize_t more = 1; more > 0 && n < text.size(); n += std::size_t(more > 0 ? more : 0))
    more = ::read(ends[0], text.data() + n, text.size() - n);
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return text.substr(0, n);
}

/// Another process that holds the lock of a directory until it is killed.
class other_run {
 public:
  /// `child_lives`: it has a child process that outlives it. `seconds`: it ends by itself after this time.
  explicit other_run(const std::string& path, bool child_lives = false, double seconds = 60) {
    int ends[2];
    if (::pipe(ends) != 0) throw gshard::error("no pipe");
    pid_ = ::fork();
    if (pid_ == 0) {
      gshard::detail::directory_lock::refusal why;
      const auto lock = gshard::detail::directory_lock::take(gshard::detail::directory::made(path), 0, why);
      pid_t child = 0;
      if (child_lives && (child = ::fork()) == 0) {
        ::close(ends[1]);
        ::sleep(60);
        ::_exit(0);
      }
      if (lock) [[maybe_unused]] const auto written = ::write(ends[1], &child, sizeof child);
      ::close(ends[1]);
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
      ::_exit(0);
    }
    ::close(ends[1]);
    locked_ = ::read(ends[0], &child_, sizeof child_) == ssize_t(sizeof child_);
    ::close(ends[0]);
  }
  other_run(const other_run&) = delete;
  other_run& operator=(const other_run&) = delete;
  ~other_run() {
    kill();
    if (child_ > 0) ::kill(child_, SIGKILL);
  }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
  }
  bool locked() const { return locked_; }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0, child_ = 0;
  bool locked_ = false;
};
