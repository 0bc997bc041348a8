// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/exec/kernel/window/sources.hpp>

#include "support.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

// Random windows between two tensors and the regions they need, and the elements they read, computed without the code under test.
namespace window_cases {

namespace ks = gshard::kernel;
using test::pick;

inline gshard::bound_window random_window(std::mt19937& gen, bool wraps, std::int64_t most_taps) {
  gshard::bound_window w;
  if (pick(gen, 0, 2) == 0) return w;
  w.stride = pick(gen, -2, 3);
  if (w.stride == 0) w.stride = 1;
  w.low = pick(gen, -4, 4);
  w.taps = pick(gen, 1, most_taps);
  w.step = pick(gen, 0, 4) == 0 ? -1 : pick(gen, 1, 2);
  w.dilation = pick(gen, 1, 2) == 1 ? 1 : pick(gen, 2, 3);
  w.wrap = wraps && pick(gen, 0, 2) == 0;
  return w;
}

struct window_case {
  ks::window_array windows{};
  ks::placement out, in;  // a random shard, and the region of the other tensor that it reads

  window_case(std::mt19937& gen, bool wraps, std::int64_t most_taps) : out(test::random_placement(gen)) {
    in = out;
    for (std::size_t d = 0; d < std::size_t(out.rank); ++d) {
      const auto& w = windows[d] = random_window(gen, wraps, most_taps);
      in.global[d] = w == gshard::bound_window{} ? out.global[d] : pick(gen, 1, 9);
      const auto r = gshard::reach(w, {out.offset[d], out.offset[d] + out.extent[d]}, in.global[d]);
      const std::int64_t before = pick(gen, 0, 1), after = pick(gen, 0, 1);  // it may hold more
      in.offset[d] = r.begin - before;
      in.extent[d] = r.size() + before + after;
      if (pick(gen, 0, 3) == 0 || !w.wrap) clip(d);
    }
  }

  /// Clips the region to the dim; with wrap, it becomes the whole dim.
  void clip(std::size_t d) {
    const std::int64_t begin = std::max<std::int64_t>(0, in.offset[d]), end = std::min(in.global[d], in.offset[d] + in.extent[d]);
    in.offset[d] = windows[d].wrap ? 0 : begin;
    in.extent[d] = windows[d].wrap ? in.global[d] : std::max<std::int64_t>(0, end - begin);
  }

  /// The linear index in the whole other tensor of the element that local index i of the shard reads at these taps, or -1.
  std::int64_t read(const ks::index_array& i, const ks::index_array& taps) const {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < std::size_t(out.rank); ++d) {
      const auto& w = windows[d];
      const std::int64_t p = w.stride * (out.offset[d] + i[d]) + w.low + w.step * taps[d];
      if (p % w.dilation != 0) return -1;
      std::int64_t q = p / w.dilation;
      while (w.wrap && q < 0) q += in.global[d];
      while (w.wrap && q >= in.global[d]) q -= in.global[d];
      if (q < 0 || q >= in.global[d]) return -1;
      at = at * in.global[d] + q;
    }
    return at;
  }

  /// The region's part of a whole tensor.
  template <class T>
  std::vector<T> region(const std::vector<T>& whole) const {
    std::vector<T> part;
    test::for_each_index(in.rank, in.extent, [&](const ks::index_array& i, std::int64_t) {
      std::int64_t at = 0;
      for (std::size_t d = 0; d < std::size_t(in.rank); ++d)
        at = at * in.global[d] + ((in.offset[d] + i[d]) % in.global[d] + in.global[d]) % in.global[d];
      part.push_back(whole[std::size_t(at)]);
    });
    return part;
  }
  std::int64_t whole_in() const { return ks::element_count(in.rank, in.global); }
  std::int64_t out_elements() const { return ks::element_count(out.rank, out.extent); }
};

}  // namespace window_cases
