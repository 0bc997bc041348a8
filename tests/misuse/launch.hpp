// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

/// Starts cases on ranks, and observes how each rank ends. Each rank is a child of a process that the launcher started. That process waits
/// until all ranks have ended, so that the launcher kills none of them.
namespace launch {

using clock = std::chrono::steady_clock;
constexpr auto limit = std::chrono::seconds(10);  // the time limit of a case
inline void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(10)); }

inline std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
/// Writes a file atomically.
inline void write_file(const std::filesystem::path& path, const std::string& content) {
  const std::filesystem::path unfinished = path.string() + ".part";
  std::ofstream(unfinished, std::ios::binary) << content;
  std::filesystem::rename(unfinished, path);
}

/// How a rank ended.
struct rank_end {
  int status = -1;  // exit status; -1: ended by a signal, or not at all
  bool stopped = false;
  std::string text;  // written by the rank to stdout and stderr
};

/// The number of ranks that have ended.
inline int ended(const std::filesystem::path& dir) {
  int n = 0;
  for (const auto& file : std::filesystem::directory_iterator(dir))
    n += file.path().filename().string().starts_with("end.") && file.path().extension() != ".part" ? 1 : 0;
  return n;
}

/// Runs `child` in a child process, for the rank of this process. Stopped children continue after `seconds`, or are killed after all others
/// have ended.
template <class F>
void run_rank(const std::filesystem::path& dir, int ranks, double continue_after, F child) {
  const std::string unique = std::to_string(::getpid());
  const std::filesystem::path output = dir / ("output." + unique);
  const pid_t rank = ::fork();
  if (rank == 0) {
    const int to = ::open(output.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
    ::dup2(to, 1);
    ::dup2(to, 2);
    std::exit(child());
  }
  const clock::time_point began = clock::now();
  clock::time_point stopped_at{};
  int status = 0;
  for (;; pause()) {
    const pid_t seen = ::waitpid(rank, &status, WNOHANG | WUNTRACED);
    if (seen == rank && WIFSTOPPED(status)) {
      stopped_at = clock::now();
      continue;
    }
    if (seen == rank) break;
    const bool is_stopped = stopped_at != clock::time_point();
    if (is_stopped && continue_after > 0 && std::chrono::duration<double>(clock::now() - stopped_at).count() >= continue_after) {
      ::kill(rank, SIGCONT);
      stopped_at = {};
    }
    if (clock::now() - began >= limit || (is_stopped && ended(dir) == ranks - 1)) ::kill(rank, SIGKILL);
  }
  const bool was_stopped = stopped_at != clock::time_point();
  write_file(dir / ("end." + unique), WIFEXITED(status) ? std::to_string(WEXITSTATUS(status)) : was_stopped ? "stopped" : "signal");
  while (ended(dir) < ranks && clock::now() - began < limit) pause();
}

/// How each rank ended, and whether all ended in time.
struct outcome {
  std::vector<rank_end> ranks;
  bool in_time = false;
  double seconds = 0;
};

/// Runs a command that starts ranks with run_rank(dir, ...), until they have ended. Appends the launcher, which may need longer, to a list.
inline outcome run_all(const std::vector<std::string>& command, const std::filesystem::path& dir, int ranks,
                       std::vector<pid_t>& launchers) {
  const clock::time_point began = clock::now();
  const pid_t launcher = ::fork();
  if (launcher == 0) {
    ::setpgid(0, 0);
    const int to = ::open((dir / "launcher").c_str(), O_CREAT | O_WRONLY, 0600);
    ::dup2(to, 1);
    ::dup2(to, 2);
    std::vector<char*> arguments;
    for (const std::string& a : command) arguments.push_back(const_cast<char*>(a.c_str()));
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  launchers.push_back(launcher);
  while (ended(dir) < ranks && clock::now() - began < limit) pause();
  outcome o;
  o.seconds = std::chrono::duration<double>(clock::now() - began).count();
  for (const auto& file : std::filesystem::directory_iterator(dir)) {
    const std::string name = file.path().filename();
    if (!name.starts_with("end.") || name.ends_with(".part")) continue;
    const std::string end = content_of(file.path());
    const bool exited = end.find_first_not_of("0123456789") == end.npos;
    o.ranks.push_back({exited ? std::stoi(end) : -1, end == "stopped", content_of(dir / ("output." + name.substr(4)))});
  }
  o.in_time = int(o.ranks.size()) == ranks;
  return o;
}
/// Waits until the launchers have ended. Kills those that exceed the time limit of a case.
inline void wait_for(const std::vector<pid_t>& launchers) {
  const clock::time_point began = clock::now();
  for (const pid_t launcher : launchers)
    for (int status = 0; ::waitpid(launcher, &status, WNOHANG) == 0; pause())
      if (clock::now() - began > limit) ::kill(-launcher, SIGKILL);
}

}  // namespace launch
