// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Copies the pieces of new shards that a device already has.

#include <gshard/exec/collective/collective.hpp>
#include <gshard/exec/collective/step_moves.hpp>
#include <gshard/exec/kernel/threads.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// The pieces of their new shards that the held devices already have. Contiguous pieces are copied by memcpy.
class kept_pieces {
 public:
  kept_pieces() = default;  ///< None.
  /// `own`: the pieces, per held device.
  kept_pieces(const step_moves& moves, std::vector<std::vector<piece>> own) : own_(std::move(own)), runs_(own_.size()) {
    for (std::size_t i = 0; i < own_.size(); ++i) find_runs(moves, i);
  }

  std::int64_t bytes() const { return bytes_; }
  void copy(const step_moves& moves) const {
    constexpr std::int64_t worth_a_thread = 1 << 16;
    for (std::size_t i = 0; i < own_.size(); ++i) {
      for (const run& r : runs_[i])
        kernel::parallel_for(r.bytes, worth_a_thread, [&](std::int64_t begin, std::int64_t end) {
          std::memcpy(r.to + begin, r.from + begin, std::size_t(end - begin));
        });
      moves.copy(own_[i], i);
    }
  }

 private:
  struct run {
    const std::byte* from;
    std::byte* to;
    std::int64_t bytes;
  };
  std::vector<std::vector<piece>> own_;  // per held device: the pieces that are not contiguous
  std::vector<std::vector<run>> runs_;   // the contiguous pieces that must be copied
  std::int64_t bytes_ = 0;

  void find_runs(const step_moves& moves, std::size_t i) {
    const std::int64_t width = moves.width();
    for (const piece& x : own_[i]) bytes_ += x.elements * width;
    std::erase_if(own_[i], [&](const piece& x) {
      const bound_value &in = moves.sent(x.tensor), &out = moves.tensors()[x.tensor].out;
      if (!is_run(in.places[i], x.from) || !is_run(out.places[i], x.to)) return false;
      const std::byte* const from = in.data[i] + inside(in.places[i], x.from) * width;
      std::byte* const to = out.data[i] + inside(out.places[i], x.to) * width;
      if (from != to) runs_[i].push_back({from, to, x.elements * width});
      return true;
    });
  }
};

/// A step that moves nothing between devices.
class local_copy final : public collective {
 public:
  explicit local_copy(const step_moves& moves) : moves_(moves) {
    std::vector<std::vector<piece>> own;
    for (std::size_t i = 0; i < moves_.devices(); ++i) own.push_back(moves_.kept(i));
    kept_ = kept_pieces(moves_, std::move(own));
  }

  void start() override { kept_.copy(moves_); }
  bool advance() override { return true; }
  void finish() override {}
  void drop() override {}

 private:
  step_moves moves_;
  kept_pieces kept_;
};

}}}  // namespace gshard::v0::detail
