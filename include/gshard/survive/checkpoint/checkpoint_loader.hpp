// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Finds the newest valid checkpoint of a run, and loads it into a store.

#include <gshard/exec/backend/backend.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/exec/program/parameters.hpp>
#include <gshard/io/tensor_differences.hpp>
#include <gshard/survive/checkpoint/block_loader.hpp>
#include <gshard/survive/checkpoint/manifest.hpp>
#include <gshard/survive/checkpoint/part_file.hpp>
#include <gshard/survive/checkpoint/signature.hpp>
#include <gshard/survive/checkpoint/step_directories.hpp>
#include <gshard/survive/files/directory.hpp>
#include <gshard/survive/files/disks.hpp>
#include <gshard/survive/files/packets.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// The checkpoints on all disks of a run; the same on all processes. Collective. Throws `gshard::error` on
/// every process if a directory cannot be listed.
inline found_steps find_steps(backend& on, const disk_table& disks, const std::string& path) {
  texts mine;
  const process_error problem = problem_of([&] {
    const auto in = disks.is_first(this_process(on)) ? directory::find(path) : std::nullopt;
    const found_steps found = in ? find_steps(*in) : found_steps();
    for (const step_name& s : found.finished) mine.push_back("+" + s.text());
    for (const step_name& s : found.unfinished) mine.push_back("-" + s.text());
  });
  on.agree({}, problem);
  texts all;
  for (texts& of_process : gather_texts(on, mine)) all.insert(all.end(), of_process.begin(), of_process.end());
  share(on, all);
  found_steps found;
  for (const std::string& text : all)
    if (const auto step = step_name::parse(std::string_view(text).substr(1)))
      (text[0] == '+' ? found.finished : found.unfinished).push_back(*step);
  for (std::vector<step_name>* list : {&found.finished, &found.unfinished}) {  // a checkpoint is on several disks
    std::ranges::sort(*list);
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  std::erase_if(found.unfinished, [&](const step_name& s) { return std::ranges::binary_search(found.finished, s); });
  return found;
}

/// Loads one checkpoint. Its functions are collective, and throw `gshard::error` on every process. Only load() changes the store, after
/// everything is verified.
class checkpoint_loader {
 public:
  checkpoint_loader(parameter_store store, const disk_table& disks, std::string path)
      : store_(std::move(store)), on_(store_.cluster().backend()), disks_(disks), path_(std::move(path)) {}

  /// Reads the manifest, and the headers of the parts. If disks have different manifests, takes the most frequent one whose parts are all
  /// present. A disk may have missed a part of the run. Throws if there is no valid one.
  const manifest& read_manifest(const step_name& step, const std::optional<signing_key>& key, bool require_signature) {
    step_ = step;
    texts mine;  // the manifest and its signature, or a reason
    if (disks_.is_first(this_process(on_))) {
      std::string text, signature;
      const process_error problem = problem_of([&] {
        const directory own = directory::at(path_).sub(step.text());
        text = own.text_of(manifest_file, manifest::most_bytes);
        if (own.has(signature_file)) signature = own.text_of(signature_file, 1000);
      });
      mine = problem.empty() ? texts{"", text, signature} : texts{problem.text};
    }
    texts valid;  // each once, the most frequent first
    const std::vector<texts> all = gather_texts(on_, mine);
    on_leader(on_, [&] {
      std::string reason = "has no manifest";
      std::map<std::string, int> disks;
      for (const texts& found : all) {
        if (found.empty()) continue;
        const process_error problem =
            found.size() < 3 ? found[0] : problem_of([&] { check(found[1], found[2], key, require_signature); });
        if (!problem.empty()) reason = problem.text;
        else if (++disks[found[1]] == 1) valid.push_back(found[1]);
      }
      if (valid.empty()) throw error(reason);
      std::ranges::stable_sort(valid, std::greater(), [&](const std::string& text) { return disks[text]; });
    });
    share(on_, valid);
    std::string reason;
    for (const std::string& text : valid) {
      const process_error problem = problem_of([&] {
        on_.agree({}, problem_of([&] { manifest_ = parse_manifest(text); }));
        read_headers();
      });
      if (problem.empty()) return manifest_;
      if (reason.empty()) reason = problem.text;
    }
    throw error(reason);
  }

  /// The differences between the tensors of the checkpoint and of the store as text; empty if there are none.
  /// Local.
  std::string misfit() const {
    std::vector<described_tensor> here, there;
    for (const auto& [name, entry] : store_.saved())
      here.push_back({name, text_of(saved_tensor{name, entry.value.type, entry.value.extents, entry.trainable})});
    for (const saved_tensor& t : manifest_.tensors) there.push_back({t.name, text_of(t), "", " in the checkpoint"});
    return tensor_differences(here, there);
  }

  /// Reads and verifies all blocks. Throws if one of them cannot be read from any disk. The store must fit.
  void read() {
    std::vector<loaded_block> blocks;
    const process_error problem = problem_of([&] { blocks = find_blocks(); });
    on_.agree({}, problem);
    blocks_.emplace(store_, manifest_.tensors, std::move(blocks));
    for (;;) {
      const std::vector<std::vector<int>> readers = can_read();
      blocks_->reassign(readers);
      const std::map<std::size_t, std::string> bad = blocks_->read(in_);
      if (!on_.agree({}, {}, !bad.empty())) break;
      texts mine;
      for (const auto& [part, reason] : bad) mine.insert(mine.end(), {std::to_string(part), reason});
      std::vector<texts> all = gather_texts(on_, mine);
      texts lost;  // part, disk, reason
      for (std::size_t process = 0; process < all.size(); ++process)
        for (std::size_t i = 0; i + 1 < all[process].size(); i += 2)
          lost.insert(lost.end(), {all[process][i], std::to_string(disks_.disk_of(process)), all[process][i + 1]});
      share(on_, lost);
      for (std::size_t i = 0; i + 2 < lost.size(); i += 3) {
        const auto part = std::size_t(std::stoull(lost[i]));
        has_[part][std::size_t(std::stoull(lost[i + 1]))] = false;
        reason_[part] = lost[i + 2];
      }
      check_all_there();
    }
  }
  /// Moves the blocks of read() into the store.
  void load() {
    blocks_->scatter(std::int64_t(64) << 20);
    bytes_read_ += blocks_->bytes_read;
    store_.set_steps(manifest_.step);
    blocks_.reset();
  }
  /// The bytes of part files that this process has read.
  std::int64_t bytes_read() const { return bytes_read_ + (blocks_ ? blocks_->bytes_read : 0); }

 private:
  static std::string text_of(const saved_tensor& t) {
    return (t.trainable ? "a parameter " : "a state ") + std::string(gshard::name(t.type)) + extents_text(t.extents);
  }
  void check(const std::string& text, std::string signature, const std::optional<signing_key>& key, bool require_signature) const {
    if (key && (require_signature || !signature.empty())) {
      if (signature.empty()) throw error("its manifest is not signed");
      if (!key->accepts(text, signature)) throw error("the signature of its manifest is not one of this key");
    }
    if (const manifest m = parse_manifest(text); m.step != step_.step)
      throw error("its manifest is of step " + std::to_string(m.step) + ", its directory is not");
  }

  // Processes of a disk read the headers of the parts in turn. All processes then know all headers, and the disks of each part.
  void read_headers() {
    in_ = std::nullopt;
    problem_of([&] { in_ = directory::at(path_).sub(step_.text()); });
    const std::size_t me = this_process(on_), members = disks_.members(disks_.disk_of(me)).size(), parts = manifest_.parts.size();
    texts mine;  // part, header or nothing, reason
    for (std::size_t part = disks_.member(me); part < parts; part += members) {
      std::string header;
      const process_error problem = problem_of([&] {
        if (!in_) throw error(path_ + "/" + step_.text() + ": is not there");
        header = read_part_header(*in_, part_name(part), manifest_.parts[part]);
        bytes_read_ += std::int64_t(header.size());
      });
      mine.insert(mine.end(), {std::to_string(part), problem.empty() ? header : "", problem.text});
    }
    std::vector<texts> all = gather_texts(on_, mine);
    header_.assign(parts, "");
    reason_.assign(parts, "");
    has_.assign(parts, std::vector<bool>(disks_.disks(), false));
    texts shared(parts * 3);  // header, disks that have it, reason
    for (std::size_t process = 0; process < all.size(); ++process)
      for (std::size_t i = 0; i + 2 < all[process].size(); i += 3) {
        const auto part = std::size_t(std::stoull(all[process][i]));
        std::string& disks = shared[3 * part + 1];
        disks.resize(disks_.disks(), '-');
        if (all[process][i + 1].empty())
          shared[3 * part + 2] = all[process][i + 2];
        else {
          shared[3 * part] = std::move(all[process][i + 1]);
          disks[disks_.disk_of(process)] = '+';
        }
      }
    share(on_, shared);
    for (std::size_t part = 0; part < parts; ++part) {
      header_[part] = std::move(shared[3 * part]);
      reason_[part] = std::move(shared[3 * part + 2]);
      for (std::size_t disk = 0; disk < shared[3 * part + 1].size(); ++disk) has_[part][disk] = shared[3 * part + 1][disk] == '+';
    }
    check_all_there();
  }
  void check_all_there() const {
    for (std::size_t part = 0; part < has_.size(); ++part)
      if (std::ranges::find(has_[part], true) == has_[part].end())
        throw error(reason_[part].empty() ? part_name(part) + " is on no disk" : reason_[part]);
  }
  std::vector<loaded_block> find_blocks() {
    std::map<std::string, std::size_t, std::less<>> by_name;
    for (std::size_t i = 0; i < manifest_.tensors.size(); ++i) by_name[manifest_.tensors[i].name] = i;
    std::vector<loaded_block> blocks;
    for (std::size_t part = 0; part < header_.size(); ++part) {
      const process_error problem = problem_of([&] {
        for (stored_block& b : blocks_of_part(header_[part], manifest_.parts[part].bytes, manifest_.tensors, by_name))
          blocks.push_back({std::move(b), part, 0});
      });
      if (!problem.empty()) throw error(part_name(part) + ": " + problem.text);
      header_[part].clear();
    }
    if (const std::string problem = problem_of_blocks(manifest_.tensors, blocks); !problem.empty()) throw error(problem);
    return blocks;
  }
  // By part: the devices that can read it.
  std::vector<std::vector<int>> can_read() const {
    std::vector<std::vector<int>> all(has_.size());
    const int devices = device_count(on_.extents());
    for (std::size_t part = 0; part < has_.size(); ++part)
      for (int d = 0; d < devices; ++d)
        if (has_[part][disks_.disk_of(process_of(on_, d))]) all[part].push_back(d);
    return all;
  }

  parameter_store store_;
  backend& on_;
  const disk_table& disks_;
  std::string path_;
  step_name step_;
  manifest manifest_;
  std::optional<directory> in_;
  std::vector<std::string> header_, reason_;  // by part
  std::vector<std::vector<bool>> has_;        // by part and disk
  std::optional<block_loader> blocks_;
  std::int64_t bytes_read_ = 0;
};

}}}  // namespace gshard::v0::detail
