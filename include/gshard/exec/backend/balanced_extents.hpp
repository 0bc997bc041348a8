// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Factors a number of devices into the extents of a mesh, as evenly as possible.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/ir/mesh.hpp>
#include <gshard/exec/backend/device_group.hpp>
#include <gshard/exec/process/error.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gshard { inline namespace v0 {

/// The extents of a mesh of `n_devices`. Fixed extents do not change. The quotient is factored over the `dynamic` ones as evenly as
/// possible, larger factors first: 8 over three axes is 2x2x2, 12 over two is 4x3. Throws `gshard::error` if the fixed extents do not
/// divide the number of devices.
std::vector<int> balanced_extents(int n_devices, std::span<const int> wanted);

#if GSHARD_HAS_BODIES

namespace detail {
/// Factors n into non-increasing factors of at most `cap`: the smallest possible first factor, then the smallest possible second one, and
/// so on. False if there are none.
inline bool factor_evenly(int n, int cap, std::span<int> factors) {
  if (factors.empty()) return n == 1;
  for (int f = 1; f <= n && f <= cap; ++f) {
    if (n % f != 0) continue;
    factors[0] = f;
    if (factor_evenly(n / f, f, factors.subspan(1))) return true;
  }
  return false;
}
}  // namespace detail

GSHARD_INLINE std::vector<int> balanced_extents(int n_devices, std::span<const int> wanted) {
  if (n_devices < 1) throw error("a mesh needs at least one device, not " + std::to_string(n_devices));
  std::vector<int> extents(wanted.begin(), wanted.end());
  std::size_t n_free = 0;
  for (int& extent : extents)
    if (extent == dynamic) {
      extent = 1;
      ++n_free;
    }
  const int fixed = device_count(extents);
  if (n_devices % fixed != 0 || (n_free == 0 && n_devices != fixed)) {
    throw error("a mesh of " + detail::mesh_text(wanted) + " cannot hold " + std::to_string(n_devices) +
                " devices: its fixed extents make " + std::to_string(fixed));
  }
  std::vector<int> factors(n_free);
  detail::factor_evenly(n_devices / fixed, n_devices, factors);
  for (std::size_t a = 0, next = 0; a < wanted.size(); ++a)
    if (wanted[a] == dynamic) extents[a] = factors[next++];
  return extents;
}

#endif

}}  // namespace gshard::v0
