// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Lists of texts as bytes, for exchange between processes.

#include <gshard/exec/backend/backend.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/io/collective.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

using texts = std::vector<std::string>;

inline std::string packed(const texts& list) {
  std::string bytes;
  for (const std::string& text : list) {
    const std::uint64_t size = text.size();
    bytes.append(reinterpret_cast<const char*>(&size), sizeof size).append(text);
  }
  return bytes;
}
inline texts unpacked(std::string_view bytes) {
  texts list;
  while (!bytes.empty()) {
    std::uint64_t size = 0;
    if (bytes.size() < sizeof size) throw error("a packet between processes is damaged");
    std::memcpy(&size, bytes.data(), sizeof size);
    bytes.remove_prefix(sizeof size);
    if (size > bytes.size()) throw error("a packet between processes is damaged");
    list.emplace_back(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return list;
}

/// On the leader: the lists of all processes, by rank. On other processes: empty. Collective.
inline std::vector<texts> gather_texts(backend& on, const texts& mine) {
  const std::string bytes = packed(mine);
  std::vector<texts> all;
  for (const std::vector<std::byte>& packet : on.gather_to_leader(std::as_bytes(std::span(bytes))))
    all.push_back(unpacked({reinterpret_cast<const char*>(packet.data()), packet.size()}));
  if (!on.leader()) all.clear();
  return all;
}
/// Gives every process the leader's list. Collective.
inline void share(backend& on, texts& list) {
  std::string bytes = packed(list);
  share(on, bytes);
  if (!on.leader()) list = unpacked(bytes);
}

}}}  // namespace gshard::v0::detail
