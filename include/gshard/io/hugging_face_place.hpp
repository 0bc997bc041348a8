// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Maps the parameters of nn::language_model to the tensors of Hugging Face's Mixtral: names and shapes of matrices.

#include <gshard/exec/process/error.hpp>
#include <gshard/io/array_info.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gshard { inline namespace v0 {

/// The place of a parameter in the files of Hugging Face's Mixtral: one tensor, or one for each expert. A tensor is a vector, or a matrix:
/// its rows are the outer dims of the parameter, its columns the others.
struct hugging_face_place {
  std::string name;         ///< The tensor's name. With experts, * is their number: "model.layers.0.block_sparse_moe.experts.*.w1.weight".
  int dims = 1;             ///< The number of dims of the parameter; with experts, of each expert.
  int row_dims = 1;         ///< The number of outermost dims that form the rows.
  bool experts = false;     ///< Each expert has a tensor. Experts are the dims of the parameter before its last two.
  bool transposed = false;  ///< The matrix has rows and columns exchanged.

  /// The tensors of a parameter with these extents. Throws `gshard::error` if it has another number of dims.
  std::vector<array_info> tensors(std::span<const std::int64_t> extents, array_type type) const {
    const auto rank = int(extents.size()), first = experts ? rank - dims : 0;
    if (experts ? first < 1 : rank != dims)
      throw error("\"" + name + "\": the parameter has " + std::to_string(rank) + " dims, not " + std::to_string(dims + int(experts)));
    const auto product = [&](int from, int to) {
      std::int64_t n = 1;
      for (const std::int64_t e : extents.subspan(std::size_t(from), std::size_t(to - from))) n *= e;
      return n;
    };
    std::vector<std::int64_t> shape{product(first, first + row_dims)};
    if (row_dims < dims) shape.push_back(product(first + row_dims, rank));
    if (transposed) std::swap(shape.front(), shape.back());
    if (!experts) return {{name, type, shape}};
    std::vector<array_info> all;
    const std::size_t star = name.find('*');
    for (std::int64_t e = 0; e < product(0, first); ++e)
      all.push_back({name.substr(0, star) + std::to_string(e) + name.substr(star + 1), type, shape});
    return all;
  }
};

/// hugging_face_place_of("model.layers.0.block_sparse_moe.wo"): the place of a parameter of nn::language_model in the files of Hugging
/// Face's Mixtral; layers without experts are as in Mistral. Nothing if they have no such parameter: biases, shared experts, caches of keys
/// and values, parameters of other models.
/// @see load_hugging_face, save_hugging_face
inline std::optional<hugging_face_place> hugging_face_place_of(std::string_view parameter) {
  struct row {
    std::string_view here, there;
    int dims, row_dims;
    bool experts = false, transposed = false;
  };
  static constexpr row of_model[]{{"model.embed_tokens.weight", "", 2, 1}, {"model.norm.weight", "", 1, 1}, {"lm_head.weight", "", 2, 1}};
  static constexpr row of_layer[]{{"input_layernorm.weight", "", 1, 1},
                                  {"post_attention_layernorm.weight", "", 1, 1},
                                  {"self_attn.q_proj.weight", "", 4, 3},
                                  {"self_attn.k_proj.weight", "", 3, 2},
                                  {"self_attn.v_proj.weight", "", 3, 2},
                                  {"self_attn.o_proj.weight", "", 4, 1},
                                  {"mlp.gate_proj.weight", "", 2, 1},
                                  {"mlp.up_proj.weight", "", 2, 1},
                                  {"mlp.down_proj.weight", "", 2, 1},
                                  {"block_sparse_moe.wg", "block_sparse_moe.gate.weight", 2, 1, false, true},
                                  {"block_sparse_moe.wi_gate", "block_sparse_moe.experts.*.w1.weight", 2, 1, true, true},
                                  {"block_sparse_moe.wo", "block_sparse_moe.experts.*.w2.weight", 2, 1, true, true},
                                  {"block_sparse_moe.wi", "block_sparse_moe.experts.*.w3.weight", 2, 1, true, true}};
  constexpr std::string_view layers = "model.layers.";
  std::size_t begin = 0;
  if (parameter.starts_with(layers)) {
    begin = std::min(parameter.find_first_not_of("0123456789", layers.size()), parameter.size());
    if (begin == layers.size() || begin == parameter.size() || parameter[begin++] != '.') return std::nullopt;
  }
  for (const row& r : begin == 0 ? std::span<const row>(of_model) : std::span<const row>(of_layer))
    if (parameter.substr(begin) == r.here)
      return hugging_face_place{std::string(parameter.substr(0, begin)).append(r.there.empty() ? r.here : r.there), r.dims, r.row_dims,
                                r.experts, r.transposed};
  return std::nullopt;
}

}}  // namespace gshard::v0
