// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Files that all processes of a cluster write or read, each its part.

#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/backend/backend.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/io/collective.hpp>
#include <gshard/io/file.hpp>

#include <fcntl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// A new file that all processes write, by the rules of atomic_file: it gets its name atomically, when all of it is on the disk. The leader
/// makes a temporary file that begins with a random text, and the others check that text. This finds processes whose path names another
/// file before data is written.
class shared_file {
 public:
  static constexpr std::size_t tag_bytes = 48;

  /// A file of `bytes`, at least tag_bytes, which the caller overwrites. Collective. Throws `gshard::error` on every process: if the file
  /// cannot be made; if a process does not see the leader's file.
  shared_file(backend& on, const std::string& path, std::int64_t bytes) : on_(&on), path_(path) {
    std::string tag, name;
    on_leader(on, [&] {
      made_.emplace(path);
      tag = new_tag();
      name = made_->temporary().substr(directory_of(path).size() * std::size_t(path.find('/') != path.npos));
      made_->append(as_bytes(tag));
      made_->resize(std::max(bytes, std::int64_t(tag_bytes)));
      if (on.processes() > 1) made_->sync();  // other nodes may open it
    });
    share(on, tag);
    share(on, name);
    temporary_ = path.find('/') == path.npos ? name : directory_of(path) + name;
    on.agree({}, problem_of([&] {
      if (!on.leader()) open(tag);
    }));
  }

  const std::string& path() const { return path_; }
  /// The path of the data until commit().
  const std::string& temporary() const { return temporary_; }

  /// Writes a part of the file. Throws on this process alone.
  void write(std::int64_t at, std::span<const std::byte> data) {
    if (made_) made_->patch(at, data);
    else write_at(*opened_, path_, at, data);
  }
  /// To be called when all processes have written their parts, or have a `problem`. finish() is called on the leader alone; then the file
  /// gets its name. Collective. Throws `gshard::error` on every process; the file then does not get its name.
  template <class F>
  void commit(process_error problem, F finish) {
    if (problem.empty()) problem = problem_of([&] {
      if (made_) made_->sync();
      else flush(*opened_, path_);
    });
    on_->agree({}, problem);
    opened_.reset();
    on_leader(*on_, [&] {
      finish();
      made_->commit();
    });
  }

 private:
  backend* on_;
  std::string path_, temporary_;
  std::optional<atomic_file> made_;     // on the leader
  std::optional<descriptor> opened_;  // on the others

  static std::span<const std::byte> as_bytes(const std::string& text) { return std::as_bytes(std::span(text)); }
  static std::string new_tag() {
    std::string tag = "unfinished ";
    for (std::random_device random; tag.size() < tag_bytes;) tag += "0123456789abcdef"[random() % 16];
    return tag;
  }
  void open(const std::string& tag) {
    std::string found(tag_bytes, ' ');
    opened_.emplace(open_file(temporary(), O_RDWR));
    if (opened_->get() >= 0) read_at(*opened_, path_, 0, std::as_writable_bytes(std::span(found)));
    if (found != tag) throw error(path_ + ": is not the leader's file on this process; the path must name the same file on all processes");
  }
};

/// The size of a file and a hash of some of its content, which differ between different files.
inline std::string content_text(const input_file& file) {
  constexpr std::int64_t blocks = 16, most = 4096;
  const std::int64_t n = std::min(file.size(), most), step = (file.size() - n) / (blocks - 1);
  std::vector<std::byte> samples(std::size_t(blocks * n));
  for (std::int64_t i = 0; i < blocks; ++i) {
    const std::int64_t at = i == blocks - 1 ? file.size() - n : i * step;
    file.read(at, std::span(samples).subspan(std::size_t(i * n), std::size_t(n)));
  }
  return std::to_string(file.size()) + " bytes with hash " + std::to_string(hash_of_bytes(samples));
}

/// Opens a file that all processes read; it may be copies of one file on several nodes. check(file) is called on every process. `call`:
/// text of the collective call. Collective. Throws `gshard::error` on every process: if one of them cannot open the file, or check throws;
/// if their files differ.
template <class F>
input_file open_for_all(backend& on, const std::string& call, const std::string& path, F check) {
  std::optional<input_file> file;
  std::string content;
  const process_error problem = problem_of([&] {
    file.emplace(path);
    check(*file);
    content = content_text(*file);
  });
  on.agree(std::vector<fact>{{"the call", call}, {"the file, whose path must name the same content on all processes", content}}, problem);
  return std::move(*file);
}

}}}  // namespace gshard::v0::detail
