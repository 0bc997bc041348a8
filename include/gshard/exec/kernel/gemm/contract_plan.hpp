// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Plans an einsum as matrix products: which loops become m, n and k of gemm, which run around it, and which operands are packed. Operands
// are numbered a = 0, b = 1, out = 2.

#include <gshard/exec/kernel/loops.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace kernel { namespace detail {

/// One operand as a matrix for gemm: in place, or packed into scratch memory first (out: unpacked afterwards).
struct matrix_side {
  bool transposed = false;
  std::int64_t ld = 1;
  bool packed = false;
  loop_nest<2> pack;  // strides in the operand and in scratch
  std::int64_t size = 0;
};

struct gemm_plan {
  loop_nest<3> outer;  // loops that add to one block of the result are innermost
  std::int64_t m = 1, n = 1, k = 1;
  std::array<matrix_side, 3> side;
  double cost = 0;
};

/// Loops that together form one dim of a matrix, outermost first.
struct matrix_dim {
  loop_nest<3> loops;

  std::int64_t extent() const { return loops.iterations(); }
  bool single_loop(std::size_t operand) const {
    for (std::size_t i = 0; i + 1 < loops.count; ++i)
      if (loops.at[i].stride[operand] != loops.at[i + 1].extent * loops.at[i + 1].stride[operand])
        return false;
    return true;
  }
  std::int64_t stride(std::size_t operand) const {
    return loops.count == 0 ? 0 : loops.at[loops.count - 1].stride[operand];
  }
  bool has_unit_stride(std::size_t operand) const {
    for (std::size_t i = 0; i < loops.count; ++i)
      if (loops.at[i].stride[operand] == 1) return true;
    return false;
  }
};

inline void push_dim(loop_nest<2>& pack, const matrix_dim& dim, std::size_t operand, std::int64_t stride) {
  for (std::size_t i = dim.loops.count; i-- > 0;) {
    pack.push({dim.loops.at[i].extent, {dim.loops.at[i].stride[operand], stride}});
    stride *= dim.loops.at[i].extent;
  }
}

inline matrix_side packed_side(std::size_t operand, const matrix_dim& rows, const matrix_dim& cols,
                               bool transposed) {
  matrix_side side;
  side.size = rows.extent() * cols.extent();
  side.packed = true;
  side.transposed = transposed;
  side.ld = transposed ? rows.extent() : cols.extent();
  push_dim(side.pack, rows, operand, transposed ? 1 : side.ld);
  push_dim(side.pack, cols, operand, transposed ? side.ld : 1);
  merge_loops(side.pack);
  sort_loops(side.pack, operand == 2 ? 0 : 1);
  return side;
}

/// The operand in place if it is a matrix with a unit stride, otherwise packed.
inline matrix_side side_of(std::size_t operand, const matrix_dim& rows, const matrix_dim& cols) {
  const std::int64_t height = rows.extent(), width = cols.extent();
  matrix_side side;
  if (rows.single_loop(operand) && cols.single_loop(operand)) {
    if (width == 1 || cols.stride(operand) == 1) {
      side.ld = height == 1 ? width : rows.stride(operand);
      return side;
    }
    if (height == 1 || rows.stride(operand) == 1) {
      side.transposed = true;
      side.ld = width == 1 ? height : cols.stride(operand);
      return side;
    }
  }
  return packed_side(operand, rows, cols, rows.has_unit_stride(operand));
}

/// Estimated cycles of one call. Measured on the kernels of Eigen and similar libraries, which round extents up to complete tiles.
constexpr double gemm_cost(std::int64_t m, std::int64_t n, std::int64_t k, bool b_transposed) {
  const auto up = [](std::int64_t x, std::int64_t to) { return double((x + to - 1) / to * to); };
  const double rows = m == 1 ? 1 : up(m, m <= 4 ? 4 : 8), cols = up(n, n <= 16 ? 16 : 32);
  const double depth = double(k), area = double(m) * double(n);
  const double from_afar = cols * depth > 2e5 ? 0.8 : 0.0;
  const double pack_b = from_afar + (b_transposed ? 0.4 : m > 16 ? 0.2 : 0.0);
  return 80 + rows * cols * depth / 16 + pack_b * cols * depth + 0.1 * double(m) * depth + 0.25 * area;
}

struct matrix_dims {
  matrix_dim m, n, k;
};

/// The result transposed: without packing if it is a single contiguous column.
inline matrix_side turned(matrix_side side, const matrix_dim& m, const matrix_dim& n) {
  if (side.packed || side.transposed || n.extent() > 1 || m.stride(2) != 1)
    return packed_side(2, m, n, !side.transposed);
  side.transposed = true;
  side.ld = m.extent();
  return side;
}

/// The plan for these dims. `turn`: computes the transpose of the result, which may have a better shape.
inline gemm_plan plan_of(const matrix_dims& dims, loop_nest<3> outer, bool turn) {
  const auto& [m, n, k] = dims;
  gemm_plan plan;
  plan.m = m.extent(), plan.n = n.extent(), plan.k = k.extent();
  plan.side = {side_of(0, m, k), side_of(1, k, n), side_of(2, m, n)};
  if (turn) plan.side[2] = turned(plan.side[2], m, n);
  sort_loops(outer, 2);
  plan.outer = outer;
  plan.cost = plan.side[2].transposed ? gemm_cost(plan.n, plan.m, plan.k, !plan.side[0].transposed)
                                      : gemm_cost(plan.m, plan.n, plan.k, plan.side[1].transposed);
  bool sums_outside = false;
  for (std::size_t i = 0; i < outer.count; ++i) sums_outside = sums_outside || outer.at[i].stride[2] == 0;
  for (const matrix_side& side : plan.side)
    if (side.packed) plan.cost += 100 + 1.5 * double(side.size);
  // Libraries are slower if both factors are transposed, and zero rows are not skipped then.
  if (plan.side[2].packed && plan.side[2].transposed) plan.cost += 8 * double(plan.side[2].size);
  plan.cost *= double(outer.iterations());
  if (sums_outside && plan.side[2].packed) plan.cost = 1e300;  // the packed block would have to be kept
  return plan;
}

/// The plan with the lowest estimated cost. Every loop of the merged nest must belong to at least two operands.
inline gemm_plan plan_contraction(const loop_nest<3>& nest) {
  loop_nest<3> batch;
  std::array<loop_nest<3>, 3> classes;  // m is in a and out, n in b and out, k in a and b
  for (std::size_t i = 0; i < nest.count; ++i) {
    const loop<3>& l = nest.at[i];
    const bool a = l.stride[0] != 0, b = l.stride[1] != 0, out = l.stride[2] != 0;
    (a && b && out ? batch : classes[!b ? 0 : !a ? 1 : 2]).push(l);
  }
  // The matrix dim of a class has all loops of the class, in the order of one of its operands, or only one of them.
  constexpr std::array<std::array<std::size_t, 2>, 3> operands{{{0, 2}, {1, 2}, {0, 1}}};
  const auto options = [&](std::size_t c) { return classes[c].count < 2 ? 1 : classes[c].count + 2; };
  const auto choose = [&](std::size_t c, std::size_t option, loop_nest<3>& outer) {
    matrix_dim dim{classes[c]};
    if (option < 2) {
      sort_loops(dim.loops, operands[c][option]);
      return dim;
    }
    dim.loops = {};
    dim.loops.push(classes[c].at[option - 2]);
    for (std::size_t i = 0; i < classes[c].count; ++i)
      if (i != option - 2) outer.push(classes[c].at[i]);
    return dim;
  };
  gemm_plan best;
  best.cost = 1e301;
  for (std::size_t m = 0; m < options(0); ++m)
    for (std::size_t n = 0; n < options(1); ++n)
      for (std::size_t k = 0; k < options(2); ++k) {
        loop_nest<3> outer = batch;
        const matrix_dim md = choose(0, m, outer), nd = choose(1, n, outer), kd = choose(2, k, outer);
        for (bool turn : {false, true}) {
          const gemm_plan plan = plan_of({md, nd, kd}, outer, turn);
          if (plan.cost < best.cost) best = plan;
        }
      }
  return best;
}

}}}}  // namespace gshard::v0::kernel::detail
