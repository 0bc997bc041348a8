// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/collective/collective.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <type_traits>

namespace gs = gshard;

static_assert(std::is_abstract_v<gs::detail::collective>);
static_assert(!std::is_copy_constructible_v<gs::detail::collective>);

TEST_CASE("collective: calls and destruction reach the kind") {
  struct kind final : gs::detail::collective {
    explicit kind(std::string& l) : log(l) {}
    ~kind() override { log += '.'; }
    void start() override { log += 's'; }
    bool advance() override { return !(log += 'a').empty(); }
    void finish() override { log += 'f'; }
    void drop() override { log += 'd'; }
    std::string& log;
  };
  std::string log;
  {
    const std::unique_ptr<gs::detail::collective> step = std::make_unique<kind>(log);
    step->start();
    CHECK(step->advance());
    step->finish();
    step->start();
    step->drop();
  }
  CHECK(log == "safsd.");
}
