// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Binds operations along a dim to kernels: reductions, softmax, layer norm, cross entropy, running sums and sorting.

#include <gshard/exec/bind/local_step.hpp>
#include <gshard/kernel/rows/argmax.hpp>
#include <gshard/kernel/rows/cross_entropy.hpp>
#include <gshard/kernel/rows/cumsum.hpp>
#include <gshard/kernel/rows/layer_norm.hpp>
#include <gshard/kernel/rows/reduce.hpp>
#include <gshard/kernel/rows/softmax.hpp>
#include <gshard/kernel/rows/sort.hpp>
#include <gshard/ops/along/cumsum.hpp>
#include <gshard/ops/along/sort.hpp>
#include <gshard/ops/reduce/argmax.hpp>
#include <gshard/ops/reduce/reduce.hpp>
#include <gshard/ops/rows/cross_entropy.hpp>
#include <gshard/ops/rows/layer_norm.hpp>
#include <gshard/ops/rows/softmax.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace gshard { inline namespace v0 { namespace detail {

template <class T>
action bind(kernel_of<op::reduce>, const local_step<T>& step) {
  return [r = kernel::reduction_kernel<T>(step.n.attr.combine, step.in_dims(0), step.out_dims()), x = step.in(0),
          y = step.out()](const run_context&) { r.run(x, y); };
}

template <class T>
action bind(kernel_of<op::argmax>, const local_step<T>& step) {
  const int dim = step.n.attr.dim;
  check_indices("argmax", step.in_line(0).whole);
  return [k = kernel::first_equal<T>(step.in_dims(0), step.in_dims(1), step.n.rule.in[0][dim], step.in_place(0).offset[std::size_t(dim)]),
          x = step.in(0), best = step.in(1), y = step.out_ids()](const run_context&) { k.run(x, best, y); };
}

template <class T>
action bind(kernel_of<op::softmax>, const local_step<T>& step) {
  return [x = step.in(0), y = step.out(), rows = step.rows(), cols = step.cols()](const run_context&) {
    kernel::softmax<T>(x, y, rows, cols);
  };
}

template <class T>
action bind(kernel_of<op::softmax_grad>, const local_step<T>& step) {
  return [y = step.in(0), dy = step.in(1), dx = step.out(), rows = step.rows(), cols = step.cols()](const run_context&) {
    kernel::softmax_grad<T>(y, dy, dx, rows, cols);
  };
}

template <class T>
action bind(kernel_of<op::layer_norm>, const local_step<T>& step) {
  return [x = step.in(0), gamma = step.in(1), beta = step.in(2), y = step.out(), rows = step.rows(), cols = step.cols(),
          epsilon = T(own<layer_norm_attributes>(step.n).epsilon)](const run_context&) {
    kernel::layer_norm<T>(x, gamma, beta, y, rows, cols, epsilon);
  };
}

template <class T>
action bind(kernel_of<op::layer_norm_grad>, const local_step<T>& step) {
  return [x = step.in(0), gamma = step.in(1), dy = step.in(2), dx = step.out(0), dgamma = step.out(1), dbeta = step.out(2),
          rows = step.rows(), cols = step.cols(), epsilon = T(own<layer_norm_attributes>(step.n).epsilon)](const run_context&) {
    kernel::layer_norm_grad<T>(x, gamma, dy, dx, dgamma, dbeta, rows, cols, epsilon);
  };
}

template <class T>
action bind(kernel_of<op::cross_entropy>, const local_step<T>& step) {
  return [logits = step.in(0), labels = step.ids(1), loss = step.out(), rows = step.rows(), cols = step.cols(),
          smoothing = T(own<cross_entropy_attributes>(step.n).smoothing)](const run_context&) {
    kernel::cross_entropy<T>(logits, labels, loss, rows, cols, smoothing);
  };
}

template <class T>
action bind(kernel_of<op::cross_entropy_grad>, const local_step<T>& step) {
  return [logits = step.in(0), labels = step.ids(1), dloss = step.in(2), log_sum = step.in_or_null(3), dlogits = step.out(),
          l = step.last_line(step.in_value(0)), smoothing = T(own<cross_entropy_attributes>(step.n).smoothing)](const run_context&) {
    kernel::cross_entropy_grad<T>(logits, labels, dloss, log_sum, dlogits, l.outer, {l.first, l.n, l.whole}, smoothing);
  };
}

template <class T>
action bind(kernel_of<op::block_cross_entropy>, const local_step<T>& step) {
  return [logits = step.in(0), labels = step.ids(1), log_sum = step.out(0), target = step.out(1), l = step.last_line(step.in_value(0)),
          block = step.last_line(step.out_value(0)).first,
          smoothing = T(own<cross_entropy_attributes>(step.n).smoothing)](const run_context&) {
    kernel::block_cross_entropy<T>(logits, labels, log_sum, target, l.outer, {l.first, l.n, l.whole}, smoothing, block);
  };
}

template <class T>
action bind(kernel_of<op::cumsum>, const local_step<T>& step) {
  return [x = step.in(0), carry = step.in_or_null(1), y = step.out(), l = step.in_line(0),
          a = own<cumsum_attributes>(step.n)](const run_context&) {
    kernel::cumsum<T>(x, carry, y, l.outer, l.n, l.inner, a.exclusive, a.reverse);
  };
}

template <class T>
action bind(kernel_of<op::block_sum>, const local_step<T>& step) {
  return [x = step.in(0), y = step.out(), l = step.in_line(0)](const run_context&) {
    kernel::block_sum<T>(x, y, l.outer, l.n, l.inner);
  };
}

template <class T>
action bind(kernel_of<op::top_k>, const local_step<T>& step) {
  const auto a = own<sort_attributes>(step.n);
  const auto l = step.in_line(0);
  check_indices("sort or top_k", l.whole);
  if (a.count > l.whole) throw error("top_k: " + std::to_string(a.count) + " of " + std::to_string(l.whole) + " elements are asked for");
  return [x = step.in(0), ids = step.n.inputs > 1 ? step.ids(1) : nullptr, y = step.out(0), y_ids = step.out_ids(1), l,
          k = step.out_line(0).n, descending = a.descending, nan_first = a.nan_first](const run_context&) {
    kernel::top_k<T>(x, ids, l.first, y, y_ids, l.outer, l.n, l.inner, k, descending, nan_first);
  };
}
template <class T>
action bind(kernel_of<op::sort>, const local_step<T>& step) {
  return bind(kernel_of<op::top_k>{}, step);
}

template <class T>
action bind(kernel_of<op::scatter_along>, const local_step<T>& step) {
  return [ids = step.ids(0), dy = step.in(1), y = step.out(), from = step.in_line(0), to = step.out_line()](const run_context&) {
    kernel::scatter_along<T>(ids, dy, y, to.outer, from.n, to.inner, to.first, to.n);
  };
}

}}}  // namespace gshard::v0::detail
