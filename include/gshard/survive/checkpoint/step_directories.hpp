// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The directories of checkpoints in the directory of a run: their names, order and removal.

#include <gshard/exec/process/error.hpp>
#include <gshard/survive/checkpoint/manifest.hpp>
#include <gshard/survive/checkpoint/part_file.hpp>
#include <gshard/survive/files/directory.hpp>

#include <algorithm>
#include <charconv>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

inline const std::string manifest_file = "manifest.json", signature_file = "manifest.sig", latest_link = "latest",
                         finished_file = "finished";
inline constexpr std::string_view finished_begin = "finished at step ";

/// "step-0000000120", or "step-0000000120.1" if that name was taken when step 120 was saved.
struct step_name {
  std::uint32_t step = 0, again = 0;
  auto operator<=>(const step_name&) const = default;

  std::string text() const {
    const std::string digits = std::to_string(step);
    return "step-" + std::string(10 - digits.size(), '0') + digits + (again == 0 ? "" : "." + std::to_string(again));
  }
  static std::optional<step_name> parse(std::string_view text) {
    step_name n;
    const auto number = [](std::string_view digits, std::uint32_t& to) {
      const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), to);
      return code == std::errc() && end == digits.data() + digits.size();
    };
    if (!text.starts_with("step-") || text.size() < 15 || !number(text.substr(5, 10), n.step)) return std::nullopt;
    if (text.size() > 15 && (text[15] != '.' || !number(text.substr(16), n.again))) return std::nullopt;
    return n.text() == text ? std::optional(n) : std::nullopt;
  }
};

/// The checkpoints in a directory: finished ones with a manifest, and unfinished ones. A link or pipe with the name of a checkpoint or
/// manifest counts as well, so that resume() reports it as damaged.
struct found_steps {
  std::vector<step_name> finished, unfinished;  // ascending
};
inline found_steps find_steps(const directory& in) {
  found_steps found;
  for (const std::string& name : in.names())
    if (const auto step = step_name::parse(name))
      if (const auto own = in.find_sub(name); own || in.has_other_than_directory(name))
        (own && !own->has(manifest_file) ? found.unfinished : found.finished).push_back(*step);
  std::ranges::sort(found.finished);
  std::ranges::sort(found.unfinished);
  return found;
}

/// True for the files of a checkpoint, by their names and first bytes.
inline bool is_checkpoint_file(const directory& in, const std::string& name) {
  if (!in.has_file(name)) return false;
  if (directory::is_temporary_of(manifest_file, name) || directory::is_temporary_of(signature_file, name)) return true;
  std::size_t skipped = 0;
  std::vector<std::string_view> begins;
  if (name == manifest_file) begins = {manifest_begin};
  if (name == signature_file) begins = {"hmac-sha256 ", "ed25519 "};
  if (std::uint32_t number = 0; name.starts_with("part-") && name.ends_with(".bin")) {
    const std::string_view digits = std::string_view(name).substr(5, name.size() - 9);
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (name != part_name(number)) return false;
    begins = {part_begin, std::string_view("\0\0\0\0", 4)};  // zeros: the header was not written yet
    skipped = std::size_t(length_bytes);
  }
  if (begins.empty()) return false;
  const auto [file, size] = in.read(name);
  std::string content(std::min<std::size_t>(std::size_t(size), 64), ' ');
  read_at(file, in.path_of(name), 0, std::as_writable_bytes(std::span(content)));
  const std::string_view found = std::string_view(content).substr(std::min(skipped, content.size()));
  return size == 0 || std::ranges::any_of(begins, [&](std::string_view b) { return found.starts_with(b); });
}

/// Removes temporary files of the link and the end marker that killed processes have left.
inline void remove_temporaries(const directory& in) {
  for (const std::string& name : in.names())
    if ((directory::is_temporary_of(latest_link, name) && in.has_link(name)) ||
        (directory::is_temporary_of(finished_file, name) && in.has_file(name)))
      in.remove(name);
}

/// Removes a checkpoint, its manifest first. Other files in its directory stay; the directory then stays as well.
inline void remove_checkpoint(const directory& in, const step_name& step) {
  const std::string name = step.text();
  const std::optional<directory> own = in.find_sub(name);
  if (!own) return;
  const auto remove = [&](const std::string& file) {
    if (is_checkpoint_file(*own, file)) own->remove(file);
  };
  remove(manifest_file);
  if (own->has(manifest_file)) throw error(own->path_of(manifest_file) + ": cannot be removed, so the checkpoint stays");
  own->sync();
  for (const std::string& file : own->names()) remove(file);
  in.remove_directory(name);
}

/// Points `latest` to a checkpoint. Returns false and changes nothing if `latest` is anything but such a link.
inline bool point_latest(const directory& in, const step_name& step) {
  if (in.has(latest_link) && !(in.has_link(latest_link) && step_name::parse(in.target_of(latest_link)))) return false;
  in.link(latest_link, step.text());
  return true;
}

/// Removes the end marker of a run. Another file of this name stays.
inline void remove_finished(const directory& in) {
  if (in.has_file(finished_file) && in.text_of(finished_file, 4096).starts_with(finished_begin)) {
    if (!in.remove(finished_file)) throw_errno(in.path_of(finished_file), "cannot be removed");
    in.sync();
  }
}
inline void write_finished(const directory& in, std::uint32_t step) {
  if (in.has(finished_file) && !(in.has_file(finished_file) && in.text_of(finished_file, 4096).starts_with(finished_begin)))
    throw error(in.path_of(finished_file) + ": is not the end marker of a run; it is not overwritten");
  in.replace(finished_file, std::string(finished_begin) + std::to_string(step) + "\n");
}

}}}  // namespace gshard::v0::detail
