// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "progress.hpp"

#include <doctest/doctest.h>

namespace tr = translate;

TEST_CASE("progress: a training of minutes goes by the clock") {
  const tr::training_length length{60, 0};
  CHECK(length.share(1000, 15) == 0.25);
  CHECK(length.seconds_left(1000, 15) == 45);
  CHECK(length.share(1, 61) == 1);
  CHECK(length.seconds_left(1, 61) == 0);
}

TEST_CASE("progress: a training of steps goes by the steps, whatever the minutes are") {
  const tr::training_length length{60, 200};
  CHECK(length.share(50, 600) == 0.25);
  CHECK(length.seconds_left(50, 600) == 1800);
  CHECK(length.share(199, 1e6) < 1);
  CHECK(length.share(200, 1) == 1);
  CHECK(length.seconds_left(200, 1) == 0);
  CHECK(length.seconds_left(0, 0) == 0);
}
