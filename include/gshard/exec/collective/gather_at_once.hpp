// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A short all_gather.

#include <gshard/exec/backend/backend.hpp>
#include <gshard/exec/collective/block_rounds.hpp>
#include <gshard/exec/collective/collective.hpp>
#include <gshard/exec/collective/collective_in_rounds.hpp>
#include <gshard/exec/collective/local_copy.hpp>

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// An all_gather of at most one round is one all_gather call of the backend, which may have a faster algorithm. That call cannot be
/// asynchronous: it is in finish().
class gather_at_once final : public collective {
 public:
  explicit gather_at_once(exchanged_blocks what) : blocks_(std::move(what.blocks)), kept_(std::move(what.kept)) {
    for (std::size_t i = 0; i < blocks_.devices(); ++i) received_.emplace_back(blocks_.members(i));
  }

  void start() override {}
  bool advance() override { return true; }
  void finish() override {
    const bool any = blocks_.rounds() == 1;
    parts_.clear();
    for (std::size_t i = 0; i < blocks_.devices(); ++i) {
      std::span<std::byte> own;
      if (any) {
        for (std::size_t m = 0; m < received_[i].size(); ++m) received_[i][m] = blocks_.incoming(i, 0, m);
        own = received_[i][blocks_.me(i)] = blocks_.outgoing(i, 0, blocks_.me(i));
      }
      parts_.push_back({own, received_[i]});
    }
    blocks_.on().all_gather(blocks_.moves().axes(), parts_);
    kept_.copy(blocks_.moves());
    if (any) blocks_.unpack(0);
  }
  void drop() override {}

 private:
  block_rounds blocks_;
  kept_pieces kept_;
  std::vector<std::vector<std::span<std::byte>>> received_;  // by held device and member
  std::vector<gather_part> parts_;
};

}}}  // namespace gshard::v0::detail
