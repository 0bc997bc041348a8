// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The extents of a program's dims, from the shapes of its inputs.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/ir/dim.hpp>
#include <gshard/exec/program/parameters.hpp>
#include <gshard/exec/tensor/tensor.hpp>
#include <gshard/exec/tensor/whole_array.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace gshard { inline namespace v0 { namespace detail {

/// The stated extents of a program, and those of its inputs. If an input has another extent than was stated or than an earlier input has,
/// `problem` says so.
struct inferred_extents {
  dims all;
  process_error problem;

  /// The shape of an input, -1 where it is not known. `letters`: its dims, in this order or reversed.
  void add(std::size_t input, std::string_view letters, std::span<const std::int64_t> shape, bool reversed = false);
  /// A range has no shape: it gives the extent of a single dim. A matrix gives the last dim of inputs of any rank.
  void add(std::size_t input, std::string_view letters, const array_layout& array);
};

/// True if these are the inputs of a program, each a tensor or an array of the input's element type.
template <class Program, class... Given>
inline constexpr bool are_inputs = [] {
  if constexpr (sizeof...(Given) == 0 || sizeof...(Given) != std::tuple_size_v<typename Program::inputs>) return false;
  else
    return []<class... Input>(std::tuple<Input...>*) {
      return ((distributed_tensor<Given> || is_whole_array<Given, typename Input::element>)&&...);
    }(static_cast<typename Program::inputs*>(nullptr));
}();
/// The same with extents, a store, or both before them.
template <class Program, class... Given>
inline constexpr bool gives_inputs = are_inputs<Program, Given...>;
template <class Program, class... Given>
inline constexpr bool gives_inputs<Program, dims, Given...> = gives_inputs<Program, Given...>;
template <class Program, class... Given>
inline constexpr bool gives_inputs<Program, parameter_store, Given...> = are_inputs<Program, Given...>;

/// The extents of a program's dims, from stated ones and from its inputs.
template <class Program, class... Given>
inferred_extents infer_extents(const dims& stated, const Given&... given) {
  inferred_extents found{stated, {}};
  const auto add = [&]<std::size_t I, class One>(std::index_sequence<I>, const One& one) {
    using input = std::tuple_element_t<I, typename Program::inputs>;
    if constexpr (!distributed_tensor<One>) {
      read_whole<typename input::element>(one, [&](const auto& array) { found.add(I, input::letters, array.layout); });
    } else {
      found.add(I, input::letters, one.extents(), input::is_column_major);
    }
  };
  const process_error thrown = problem_of([&] {  // an array may be an expression, which is computed here
    [&]<std::size_t... I>(std::index_sequence<I...>) { (add(std::index_sequence<I>{}, given), ...); }(std::index_sequence_for<Given...>{});
  });
  if (found.problem.empty()) found.problem = thrown;
  return found;
}

#if GSHARD_HAS_BODIES

GSHARD_INLINE void inferred_extents::add(std::size_t input, std::string_view letters, std::span<const std::int64_t> shape, bool reversed) {
  if (shape.size() != letters.size()) return;  // the run says so
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] < 0) continue;
    const char letter = letters[reversed ? shape.size() - 1 - d : d];
    if (const std::int64_t before = all.has(letter) ? all.find(letter) : shape[d]; before != shape[d] && problem.empty())
      problem = "executable: input " + std::to_string(input) + " (" + std::string(letters) + ") has extent " + std::to_string(shape[d]) +
                " along " + letter + ", which is " + std::to_string(before) + " elsewhere";
    all.set(letter, shape[d]);
  }
}

GSHARD_INLINE void inferred_extents::add(std::size_t input, std::string_view letters, const array_layout& array) {
  const std::size_t rank = letters.size();
  kernel::index_array shape;
  shape.fill(-1);
  if (rank == 1) shape[0] = array.size;
  else if (array.is_matrix && rank > 2) shape[rank - 1] = array.extent[1];
  else if (array.rank == int(rank)) shape = array.extent;
  add(input, letters, std::span<const std::int64_t>(shape.data(), rank));
}

#endif

}}}  // namespace gshard::v0::detail
