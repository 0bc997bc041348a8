// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Broadcasts texts from the leader, and runs functions on the leader alone.

#include <gshard/exec/backend/backend.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/exec/tensor/cluster.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace gshard { inline namespace v0 {

namespace detail {

/// Broadcasts the leader's text to every process. Collective.
inline void share(backend& on, std::string& text) {
  std::uint64_t size = text.size();
  on.broadcast(std::as_writable_bytes(std::span(&size, 1)));
  text.resize(size);
  on.broadcast(std::as_writable_bytes(std::span(text)));
}

/// Broadcasts the leader's table to every process. Collective.
inline void share(backend& on, std::map<std::string, std::string>& table) {
  std::uint64_t size = table.size();
  on.broadcast(std::as_writable_bytes(std::span(&size, 1)));
  auto mine = table.begin();
  std::map<std::string, std::string> all;
  for (std::uint64_t i = 0; i < size; ++i) {
    std::string key, value;
    if (on.leader()) {
      key = mine->first;
      value = mine->second;
      ++mine;
    }
    share(on, key);
    share(on, value);
    all.emplace_hint(all.end(), std::move(key), std::move(value));
  }
  table = std::move(all);
}

/// Runs `f` on the leader. If it throws, all processes throw a `gshard::error` of the same text. Collective.
template <class F>
void on_leader(backend& on, F f) {
  std::string bytes;
  if (on.leader()) bytes = problem_of(f).to_bytes();
  share(on, bytes);
  if (const process_error problem = process_error::from_bytes(bytes); !problem.empty()) problem.fail();
}

}  // namespace detail

/// on_leader(cluster, f): calls f() on the leader's process alone, for work that one process does for all: files, options, a vocabulary. If
/// f returns a std::string, every process gets it. Otherwise f returns nothing.
///
/// Collective over the cluster. Communicates: the string, and the text of an error.
///
/// Throws `gshard::error`, the same on every process, if f throws.
template <class F>
auto on_leader(const any_cluster& cluster, F f) {
  using result = std::invoke_result_t<F&>;
  static_assert(std::is_void_v<result> || std::is_same_v<result, std::string>,
                "gshard: the function of on_leader returns nothing or a std::string");
  if constexpr (std::is_void_v<result>) {
    detail::on_leader(cluster.backend(), f);
  } else {
    std::string text;
    detail::on_leader(cluster.backend(), [&] { text = f(); });
    detail::share(cluster.backend(), text);
    return text;
  }
}

}}  // namespace gshard::v0
