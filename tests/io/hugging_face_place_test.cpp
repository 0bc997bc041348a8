// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/io/hugging_face_place.hpp>

#include "../complaint.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace gs = gshard;

namespace {

using numbers = std::vector<std::int64_t>;

/// "name[shape] name[shape]", or nothing if the parameter has no counterpart.
std::string tensors(const std::string& parameter, const numbers& extents) {
  const auto place = gs::hugging_face_place_of(parameter);
  std::string text;
  if (place)
    for (const gs::array_info& a : place->tensors(extents, gs::array_type::bf16))
      text += (text.empty() ? "" : " ") + a.name + " " + gs::text_of(a);
  return text;
}

}  // namespace

TEST_CASE("hugging_face_place: names and shapes are those of Mixtral") {
  CHECK(tensors("model.embed_tokens.weight", {11, 12}) == "model.embed_tokens.weight BF16[11,12]");
  CHECK(tensors("lm_head.weight", {11, 12}) == "lm_head.weight BF16[11,12]");
  CHECK(tensors("model.norm.weight", {12}) == "model.norm.weight BF16[12]");
  CHECK(tensors("model.layers.0.input_layernorm.weight", {12}) == "model.layers.0.input_layernorm.weight BF16[12]");
  CHECK(tensors("model.layers.31.post_attention_layernorm.weight", {12}) == "model.layers.31.post_attention_layernorm.weight BF16[12]");
  CHECK(tensors("model.layers.1.self_attn.q_proj.weight", {2, 3, 4, 12}) == "model.layers.1.self_attn.q_proj.weight BF16[24,12]");
  CHECK(tensors("model.layers.1.self_attn.k_proj.weight", {2, 4, 12}) == "model.layers.1.self_attn.k_proj.weight BF16[8,12]");
  CHECK(tensors("model.layers.1.self_attn.v_proj.weight", {2, 4, 12}) == "model.layers.1.self_attn.v_proj.weight BF16[8,12]");
  CHECK(tensors("model.layers.1.self_attn.o_proj.weight", {12, 2, 3, 4}) == "model.layers.1.self_attn.o_proj.weight BF16[12,24]");
  CHECK(tensors("model.layers.1.mlp.gate_proj.weight", {10, 12}) == "model.layers.1.mlp.gate_proj.weight BF16[10,12]");
  CHECK(tensors("model.layers.1.mlp.up_proj.weight", {10, 12}) == "model.layers.1.mlp.up_proj.weight BF16[10,12]");
  CHECK(tensors("model.layers.1.mlp.down_proj.weight", {12, 10}) == "model.layers.1.mlp.down_proj.weight BF16[12,10]");
  const std::string moe = "model.layers.0.block_sparse_moe.";
  CHECK(tensors(moe + "wg", {12, 8}) == moe + "gate.weight BF16[8,12]");
  CHECK(tensors(moe + "wi_gate", {2, 12, 10}) == moe + "experts.0.w1.weight BF16[10,12] " + moe + "experts.1.w1.weight BF16[10,12]");
  CHECK(tensors(moe + "wo", {2, 10, 12}) == moe + "experts.0.w2.weight BF16[12,10] " + moe + "experts.1.w2.weight BF16[12,10]");
  CHECK(tensors(moe + "wi", {2, 12, 10}) == moe + "experts.0.w3.weight BF16[10,12] " + moe + "experts.1.w3.weight BF16[10,12]");
}

TEST_CASE("hugging_face_place: experts in groups are numbered through") {
  const auto all = gs::hugging_face_place_of("model.layers.0.block_sparse_moe.wi")->tensors(numbers{2, 3, 12, 10}, gs::array_type::f32);
  REQUIRE(all.size() == 6);
  CHECK(all[5].name == "model.layers.0.block_sparse_moe.experts.5.w3.weight");
}

TEST_CASE("hugging_face_place: other parameters have none") {
  for (const char* const name :
       {"", "model.norm", "model.norm.weight.", "decoder.model.norm.weight", "model.layers.norm.weight", "model.layers.0",
        "model.layers.0.", "model.layers.x.input_layernorm.weight", "model.layers..input_layernorm.weight",
        "model.layers.0.model.norm.weight", "input_layernorm.weight", "model.layers.0.block_sparse_moe.bi",
        "model.layers.0.block_sparse_moe.shared.0.wi", "model.layers.0.block_sparse_moe.expert_of",
        "model.layers.0.self_attn.key_cache", "encoder.0.self.wq"}) {
    CAPTURE(name);
    CHECK(!gs::hugging_face_place_of(name));
  }
}

TEST_CASE("hugging_face_place: a parameter of another number of dims is refused") {
  CHECK(complaint([] { tensors("model.layers.1.self_attn.q_proj.weight", {24, 12}); }) ==
        "\"model.layers.1.self_attn.q_proj.weight\": the parameter has 2 dims, not 4");
  CHECK(complaint([] { tensors("model.layers.1.block_sparse_moe.wo", {12, 10}); }) ==
        "\"model.layers.1.block_sparse_moe.experts.*.w2.weight\": the parameter has 2 dims, not 3");
}
