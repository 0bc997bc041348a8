// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Runs imported programs with complete inputs, for commands and tests.

#include <gshard/exec/kernel/view.hpp>
#include <gshard/onnx/file/constant.hpp>
#include <gshard/onnx/program/import_program.hpp>
#include <gshard/runtime/runtime_executable.hpp>
#include <gshard/runtime/runtime_plan.hpp>
#include <gshard/runtime/runtime_tensor.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx {

/// The shards of this process of a complete tensor.
inline runtime_tensor scattered(const any_cluster& on, const tensor_text& text, const model_tensor& whole) {
  runtime_tensor t(on, text, whole.shape);
  const std::int64_t width = traits(whole.type).size, carried = size_of(t.type());
  for (std::size_t i = 0; i < t.local_shards(); ++i)
    kernel::for_each_run(t.place(i), [&](std::int64_t local, std::int64_t global, std::int64_t n) {
      element_access::to_carrier(whole.type, whole.data.data() + global * width, t.shard(i) + local * carried, n);
    });
  return t;
}

/// The bytes of a complete tensor, if this process has all of its shards: row-major, in the carrier of its type.
inline std::vector<std::byte> gathered(const runtime_tensor& t) {
  const std::int64_t width = size_of(t.type());
  std::vector<std::byte> all(std::size_t(t.size() * width));
  for (std::size_t i = 0; i < t.local_shards(); ++i)
    kernel::for_each_run(t.place(i), [&](std::int64_t local, std::int64_t global, std::int64_t n) {
      std::memcpy(all.data() + global * width, t.shard(i) + local * width, std::size_t(n * width));
    });
  return all;
}

/// The executable of an imported program with its weights. `plan`: the program's, or one that was read from a file. Collective.
inline runtime_executable loaded(const imported_program& p, const runtime_plan& plan, const any_cluster& on) {
  parameter_store store(on);
  runtime_executable run(plan, on, p.extents, store);
  load(p, store);
  return run;
}
/// The shards of complete inputs.
inline std::vector<runtime_tensor> scattered(const any_cluster& on, const runtime_plan& plan, const std::vector<model_tensor>& inputs) {
  if (inputs.size() != plan.inputs().size())
    throw error("the program has " + std::to_string(plan.inputs().size()) + " inputs, and gets " + std::to_string(inputs.size()));
  std::vector<runtime_tensor> all;
  for (std::size_t i = 0; i < inputs.size(); ++i) all.push_back(scattered(on, plan.inputs()[i], inputs[i]));
  return all;
}
/// Loads an imported program, and runs it once. Collective.
inline std::vector<runtime_tensor> run_once(const imported_program& p, const runtime_plan& plan, const any_cluster& on,
                                            const std::vector<model_tensor>& inputs) {
  return loaded(p, plan, on)(scattered(on, plan, inputs));
}
inline std::vector<runtime_tensor> run_once(const imported_program& p, const any_cluster& on, const std::vector<model_tensor>& inputs) {
  return run_once(p, p.program, on, inputs);
}

/// The tolerance of ONNX's own runner of its tests.
struct tolerance {
  double relative = 1e-3, absolute = 1e-7;
  double of_bf16 = 0x1p-7;  ///< Relative: a unit in the last place. ONNX 1.12 truncates numbers to bfloat16, later versions round.
};
/// The first difference between a result and the expected tensor as a sentence; empty if there is none. Integers must be equal.
inline std::string difference_of(const runtime_tensor& found, const model_tensor& expected, const tolerance& allowed = {}) {
  const extent_list extents(found.extents().begin(), found.extents().end());
  if (extents != expected.shape) return "has the shape " + text_of(extents) + ", and not " + text_of(expected.shape);
  if (traits(expected.type).carrier != found.type())
    return "has elements of type " + std::string(gshard::name(found.type())) + ", and not " + name(expected.type);
  const std::vector<std::byte> bytes = gathered(found);
  const bool is_complex_type = is_complex(expected.type);
  const std::int64_t parts = is_complex_type ? 2 : 1, n = expected.elements() * parts;
  const element part = expected.type == element::c64 ? element::f32 : expected.type == element::c128 ? element::f64 : expected.type;
  const std::int64_t width = traits(part).size, carried = size_of(traits(part).carrier);
  const double relative = part == element::bf16 ? std::max(allowed.relative, allowed.of_bf16) : allowed.relative;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::byte* const wanted = expected.data.data() + i * width;
    const std::byte* const got = bytes.data() + i * carried;
    if (!is_float(part)) {
      const element as = carried == 8 ? element::i64 : carried == 4 ? element::i32 : element::boolean;
      const std::int64_t a = element_access::integer_at(as, got), b = element_access::integer_at(part, wanted);
      if (a != b) return "has " + std::to_string(a) + " at element " + std::to_string(i) + ", and not " + std::to_string(b);
      continue;
    }
    const double a = element_access::real_at(part, got), b = element_access::real_at(part, wanted);
    const bool equal = a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= allowed.absolute + relative * std::abs(b);
    if (!equal || (std::isinf(b) && a != b))
      return "has " + std::to_string(a) + " at element " + std::to_string(i) + ", and not " + std::to_string(b);
  }
  return {};
}

}}}  // namespace gshard::v0::onnx
