// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Binds elementwise operations to kernels: functions of the user, scaling, casts, random numbers, dropout and Adam.

#include <gshard/base/random.hpp>
#include <gshard/exec/bind/finite.hpp>
#include <gshard/exec/bind/local_step.hpp>
#include <gshard/exec/memory/buffer_reuse.hpp>
#include <gshard/kernel/elementwise/adam.hpp>
#include <gshard/kernel/elementwise/dropout.hpp>
#include <gshard/kernel/elementwise/feedback.hpp>
#include <gshard/kernel/elementwise/pointwise.hpp>
#include <gshard/kernel/move/cast.hpp>
#include <gshard/kernel/move/fill.hpp>
#include <gshard/ops/random/dropout.hpp>
#include <gshard/ops/random/random.hpp>
#include <gshard/optim/adam.hpp>
#include <gshard/optim/gradient_wire.hpp>
#include <gshard/trace/map.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

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

template <class T>
action bind(kernel_of<op::dropout>, const local_step<T>& step) {
  return [x = step.in(0), y = step.out(), at = step.out_place(), rate = own<dropout_attributes>(step.n).rate,
          key = std::uint32_t(step.n.attr.key)](const run_context& run) {
    kernel::dropout<T>(x, y, at, rate, random_key{run.seed, run.step, key});
  };
}

template <class T>
action bind(kernel_of<op::random>, const local_step<T>& step) {
  return [y = step.out(), at = step.out_place(), normal = own<random_attributes>(step.n).normal,
          key = std::uint32_t(step.n.attr.key)](const run_context& run) {
    const random_key of_run{run.seed, run.step, key};
    if (normal) kernel::fill_normal<T>(y, at, 1, of_run);
    else kernel::fill_uniform<T>(y, at, of_run);
  };
}

template <class T>
action bind(kernel_of<op::feedback>, const local_step<T>& step) {
  return [residual = step.out(0), g = step.in(1), sent = step.out(1), count = step.out_elements(1)](const run_context&) {
    kernel::round_with_feedback<T>(residual, g, sent, count);
  };
}

/// An update checks its results. If one is not finite, it looks for the cause: first in the gradient.
template <class T>
action bind(kernel_of<op::adam>, const local_step<T>& step) {
  const std::string name = "parameter \"" + std::string(updated_name(step.n, step.plan.plan)) + "\"";
  return [p = step.out(0), m = step.out(1), v = step.out(2), g = step.in(3), rate = step.in(4), skipped = step.in_or_null(5),
          count = step.out_elements(), a = own<adam_attributes>(step.n), checks = step.n.attr.if_not_finite != not_finite::ignore,
          gradient = checked(step, step.in_value(3), "adam: the gradient of " + name),
          updated = checked(step, step.out_value(0), "adam: " + name + " after its update"),
          square = checked(step, step.out_value(2), "adam: the second moment of " + name)](const run_context& run) {
    if (skipped && *skipped != T(0)) return;
    const bool finite =
        kernel::adam<T>(p, g, m, v, count, double(*rate), a.beta1, a.beta2, a.epsilon, a.weight_decay, std::int64_t(run.step) + 1);
    if (!finite && checks) gradient.report(run) || updated.report(run) || square.report(run);
  };
}

}}}  // namespace gshard::v0::detail
