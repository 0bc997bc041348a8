// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Finds which processes see the same directory, and gives each process a neighbor on another disk.

#include <gshard/exec/backend/backend.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/io/collective.hpp>
#include <gshard/io/file.hpp>
#include <gshard/survive/files/directory.hpp>
#include <gshard/survive/files/packets.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// The disks of a run, each with the processes that see its directory.
class disk_table {
 public:
  disk_table() = default;
  /// All processes see one directory.
  explicit disk_table(const backend& on) : disk_(std::size_t(on.processes()), 0), members_(1) {
    for (std::size_t p = 0; p < disk_.size(); ++p) members_[0].push_back(p);
  }
  /// first[p]: the first process that sees the same directory as process p.
  explicit disk_table(const std::vector<std::size_t>& first) {
    std::map<std::size_t, std::size_t> number;
    for (std::size_t p = 0; p < first.size(); ++p) {
      const auto [at, is_new] = number.emplace(first[p], members_.size());
      if (is_new) members_.emplace_back();
      disk_.push_back(at->second);
      members_[at->second].push_back(p);
    }
  }

  std::size_t disks() const { return members_.size(); }
  std::size_t disk_of(std::size_t process) const { return disk_[process]; }
  const std::vector<std::size_t>& members(std::size_t disk) const { return members_[disk]; }
  /// True for the process that makes the manifest of a disk.
  bool is_first(std::size_t process) const { return members_[disk_[process]][0] == process; }
  /// The index of a process among the processes of its disk.
  std::size_t member(std::size_t process) const {
    const std::vector<std::size_t>& all = members_[disk_[process]];
    return std::size_t(std::ranges::find(all, process) - all.begin());
  }
  /// The process on the next disk that keeps a copy of the part of `process`; itself if there is one disk.
  std::size_t neighbor(std::size_t process) const {
    if (disks() == 1) return process;
    const std::vector<std::size_t>& next = members_[(disk_[process] + 1) % disks()];
    return next[member(process) % next.size()];
  }

 private:
  std::vector<std::size_t> disk_;                  // by process
  std::vector<std::vector<std::size_t>> members_;  // by disk
};

/// Removes the empty files that a process made in find_disks before it was killed.
inline void remove_old_marks(const directory& in, const std::string& mine) {
  constexpr std::string_view begin = ".disk-";
  for (const std::string& name : in.names()) {
    if (!name.starts_with(begin) || name.starts_with(mine) || name.size() < begin.size() + 18 || name[begin.size() + 16] != '-') continue;
    if (!are_hex_digits(name.substr(begin.size(), 16)) || !are_hex_digits(name.substr(begin.size() + 17)) || !in.has_file(name)) continue;
    if (in.read(name).second == 0) in.remove(name);
  }
}

/// Finds which processes see the same directory: every process makes a file there and looks for the files of others. This works for any
/// arrangement of hosts, mounts and paths. The directory is made if it is missing. Collective. Throws `gshard::error` on every process if
/// one of them cannot use its directory.
inline disk_table find_disks(backend& on, const std::string& path) {
  const std::size_t me = this_process(on), processes = std::size_t(on.processes());
  std::string token;
  if (on.leader()) token = random_digits(16);
  share(on, token);
  const std::string begin = ".disk-" + token + "-";
  std::uint64_t first = me;
  process_error problem = problem_of([&] { directory::made(path).create(begin + std::to_string(me)); });
  problem = problem_of([&] {
    on.agree({}, problem);  // all have made their files
    problem = problem_of([&] {
      const directory in = directory::at(path);
      for (std::size_t p = 0; p < first; ++p)
        if (in.has(begin + std::to_string(p))) first = p;
    });
    on.agree({}, problem);  // all have looked
  });
  problem_of([&] {
    const directory in = directory::at(path);
    in.remove(begin + std::to_string(me));
    if (problem.empty() && first == me) remove_old_marks(in, begin);
  });
  if (!problem.empty()) problem.fail();
  const auto packets = on.gather_to_leader(std::as_bytes(std::span(&first, 1)));
  std::vector<std::uint64_t> all(processes);
  for (std::size_t p = 0; p < packets.size(); ++p) std::memcpy(&all[p], packets[p].data(), sizeof(std::uint64_t));
  on.broadcast(std::as_writable_bytes(std::span(all)));
  return disk_table(std::vector<std::size_t>(all.begin(), all.end()));
}

}}}  // namespace gshard::v0::detail
