// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Kernels of maps, scaling and casts.

#include <gshard/core/ir/pointwise.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/exec/bind/checked_shard.hpp>
#include <gshard/exec/bind/local_step.hpp>
#include <gshard/exec/bind/pieces.hpp>
#include <gshard/exec/kernel/finite.hpp>
#include <gshard/exec/kernel/loops.hpp>
#include <gshard/exec/kernel/move/cast.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gshard { inline namespace v0 { namespace kernel {

namespace detail {
// Broadcast and strided operands are copied to unit stride, block by block. Therefore one loop of f serves all calls, and the compiler
// vectorizes it.
template <class T, class F>
void apply_row(const F& f, std::size_t operands, const T* const* in, const std::int64_t* stride, T* out, std::int64_t n) {
  constexpr std::int64_t most = 256;
  alignas(T) std::byte copies[pointwise::most_operands][std::size_t(most) * sizeof(T)];
  const auto copy_of = [&](std::size_t k) { return reinterpret_cast<T*>(copies[k]); };
  if (std::all_of(stride, stride + operands, [](std::int64_t s) { return s == 1; })) return f(in, out, n);
  for (std::size_t k = 0; k < operands; ++k)
    if (stride[k] == 0) std::fill_n(copy_of(k), std::min(n, most), *in[k]);
  for (std::int64_t begin = 0; begin < n; begin += most) {
    const std::int64_t count = std::min(most, n - begin);
    std::array<const T*, pointwise::most_operands> x{};
    for (std::size_t k = 0; k < operands; ++k) {
      x[k] = stride[k] == 1 ? in[k] + begin : copy_of(k);
      if (stride[k] == 0 || stride[k] == 1) continue;
      for (std::int64_t i = 0; i < count; ++i) copy_of(k)[i] = in[k][(begin + i) * stride[k]];
    }
    f(x.data(), out + begin, count);
  }
}
}  // namespace detail

/// out = f(in[0], ..., in[n_in - 1]) elementwise over the row-major result, for n_in <= 6. Each operand has strides over the dims of the
/// result, 0 where it is broadcast. Dims that are contiguous in all operands are merged, so that f gets the longest possible rows. `out`
/// may be an operand (in place) with the same strides.
/// F: a row_function<T>, or a callable of its signature.
template <class T, class F>
void apply_rows(const F& f, int n_in, const T* const* in, const index_array* in_stride, T* out,
                const index_array& extent, int rank) {
  constexpr std::size_t most = pointwise::most_operands;
  const auto operands = std::size_t(n_in);
  const index_array out_stride = row_major_strides(rank, extent);
  detail::loop_nest<most + 1> nest;
  for (std::size_t d = 0; d < std::size_t(rank); ++d) {
    detail::loop<most + 1> l{extent[d], {}};
    for (std::size_t o = 0; o < operands; ++o) l.stride[o] = in_stride[o][d];
    l.stride[most] = out_stride[d];
    nest.push(l);
  }
  if (nest.iterations() == 0) return;
  detail::merge_loops(nest);
  detail::sort_loops(nest, most);
  detail::parallel_nest<most>(nest, [&](detail::loop_nest<most + 1> part, const auto& first) {
    const auto row = part.take_innermost();
    detail::for_each_offset(part, [&](const auto& at) {
      std::array<const T*, most> x{};
      for (std::size_t o = 0; o < operands; ++o) x[o] = in[o] + first[o] + at[o];
      detail::apply_row(f, operands, x.data(), row.stride.data(), out + first[most] + at[most], row.extent);
    });
  });
}

}}}  // namespace gshard::v0::kernel

namespace gshard { inline namespace v0 { namespace detail {

/// The result of an optimizer's update, for errors: a parameter, or a state of the optimizer, whose name ends with that of the parameter.
inline std::string text_of_update(std::string_view name) {
  const std::string_view prefix = "adafactor.";
  const bool is_state = name.starts_with(prefix) && name.size() > prefix.size() + 2 && name[prefix.size() + 1] == '.';
  if (!is_state) return "parameter \"" + std::string(name) + "\" after its update";
  return "adafactor: the gradient of parameter \"" + std::string(name.substr(prefix.size() + 2)) + "\", in its state \"" +
         std::string(name) + "\"";
}

template <class T>
action bind(kernel_of<op::map>, const local_step<T>& step) {
  const bound_value& y = step.out_value(0);
  const auto& extent = y.places[step.device].extent;
  std::array<const T*, sharding_rule::most_in> x{};
  std::array<kernel::index_array, sharding_rule::most_in> stride{};
  for (int i = 0; i < step.n.inputs; ++i) {
    const auto at = std::size_t(i);
    x[at] = step.in(i);
    const kernel::index_array own = kernel::row_major_strides(step.in_value(i).rank(), step.in_place(i).extent);
    const short_list& factors = step.n.rule.in[at];
    for (int d = 0; d < factors.size(); ++d) stride[at][std::size_t(step.n.rule.out[0].find(factors[d]))] += own[std::size_t(d)];
  }
  const row_function<T> f = row_of<T>(*step.n.attr.function);
  if (is_elementwise(step.n)) {
    const auto count = std::size_t(step.n.inputs);
    return action::elementwise(step.out_elements(), [=, r = step.out()](const run_context&, std::int64_t begin, std::int64_t end) {
      std::array<const T*, sharding_rule::most_in> from{};
      for (std::size_t i = 0; i < count; ++i) from[i] = x[i] + begin;
      f(from.data(), r + begin, end - begin);
    });
  }
  if (step.n.attr.if_not_finite != not_finite::ignore) {  // an update of an optimizer: each part is checked while it is in the cache
    const std::string_view name = updated_name(step.n, step.plan.plan);
    return [=, r = step.out(), count = step.n.inputs, rank = y.rank(),
            all = checked(step, y, text_of_update(name))](const run_context& run) {
      std::atomic<bool> finite = true;
      const auto checked_row = [&](const T* const* from, T* to, std::int64_t n) {
        constexpr std::int64_t most = 4096 / sizeof(T);
        std::array<const T*, sharding_rule::most_in> part{};
        for (std::int64_t i = 0; i < n; i += most) {
          for (std::size_t k = 0; k < std::size_t(count); ++k) part[k] = from[k] + i;
          const std::int64_t m = std::min(most, n - i);
          f(part.data(), to + i, m);
          for (std::size_t k = 0; n - i > most && k < std::size_t(count); ++k)  // loads the next part during the check
            kernel::prefetch(part[k] + most);
          if (!kernel::all_finite(to + i, m)) finite.store(false, std::memory_order_relaxed);
        }
      };
      kernel::apply_rows<T>(checked_row, count, x.data(), stride.data(), r, extent, rank);
      if (!finite) all.report(run);
    };
  }
  return [=, r = step.out(), count = step.n.inputs, rank = y.rank()](const run_context&) {
    kernel::apply_rows<T>(f, count, x.data(), stride.data(), r, extent, rank);
  };
}

template <class T>
action bind(kernel_of<op::scale>, const local_step<T>& step) {
  const attributes& a = step.n.attr;
  double factor = a.factor;
  if (const double power = own<scale_attributes>(a).power; power != 0) {
    double over = 1;
    for (int i = 0; i < a.dims.size(); ++i) over *= double(step.plan.sizes.dim(a.dims[i]));
    factor *= std::pow(over, power);
  }
  return action::elementwise(step.out_elements(), [x = step.in(0), y = step.out(), by = element_from<T>(factor)](
                                                      const run_context&, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) y[i] = product(by, x[i]);
  });
}

/// T: the element type of the operand.
template <class T>
action bind(kernel_of<op::cast>, const local_step<T>& step) {
  const auto how = with_element(step.out_value(0).type, []<class To>(To*) {
    return kernel::conversion{&kernel::detail::convert_row<T, To>, sizeof(T), sizeof(To)};
  });
  return [how, count = step.out_elements(), x = step.in_value(0).data[step.device], y = step.out_value(0).data[step.device],
          imaginary = own<cast_attributes>(step.n).imaginary](const run_context&) { kernel::cast(how, x, y, count, imaginary); };
}

}}}  // namespace gshard::v0::detail
