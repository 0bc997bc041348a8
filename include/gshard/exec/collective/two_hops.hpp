// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Moves that reach a node once, and are then passed on within it.

#include <gshard/exec/collective/collective.hpp>

#include <memory>
#include <utility>

namespace gshard { inline namespace v0 { namespace detail {

/// A sequence of two collectives: between nodes, then within nodes. The second one runs in finish().
class two_hops final : public collective {
 public:
  two_hops(std::unique_ptr<collective> first, std::unique_ptr<collective> second) : first_(std::move(first)), second_(std::move(second)) {}

  void start() override { first_->start(); }
  bool advance() override { return first_->advance(); }
  void finish() override {
    finish_both([this] { first_->finish(); },
                [this] {
                  second_->start();
                  second_->finish();
                });
  }
  void drop() override { first_->drop(); }

 private:
  std::unique_ptr<collective> first_, second_;
};

}}}  // namespace gshard::v0::detail
