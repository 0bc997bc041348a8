// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Recognises the weight of an expert, which is zero for tokens that have not chosen it.

#include <gshard/onnx/file/constant.hpp>
#include <gshard/onnx/file/model.hpp>
#include <gshard/onnx/rewrite/graph_values.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx {

namespace rewriting {

/// The weight of one expert: zero for tokens that have not chosen it.
struct expert_weight {
  std::string choices;  ///< The indices of a TopK over experts.
  std::int64_t k = 0, expert = 0;
  friend bool operator==(const expert_weight&, const expert_weight&) = default;
};

/// Recognises the weights of experts.
class weight_finder {
 public:
  explicit weight_finder(const graph_values& all) : all_(all) {}

  /// The expert of a value [...,1], if it is the weight of one.
  std::optional<expert_weight> find(std::string value) const {
    value = all_.behind_casts(std::move(value));
    const model_node* n = all_.operator_of(value);
    bool removed_dim = false;  // it has been added again
    if (n && n->operation == "Unsqueeze" && all_.integers(*n, "axes", 1) == std::vector<std::int64_t>{-1}) {
      removed_dim = true;
      value = all_.behind_casts(all_.input(*n, 0));
      n = all_.operator_of(value);
    }
    if (!n) return std::nullopt;
    if (n->operation == "ReduceSum") {
      if ((all_.integer(*n, "keepdims", 1) == 0) != removed_dim) return std::nullopt;
      return sum_of_masked(*n);
    }
    if (n->operation == "Gather") {
      const model_tensor* const at = all_.tensor(all_.input(*n, 1));
      if (!at || at->elements() != 1 || !is_integer(at->type) || at->shape.size() != (removed_dim ? 0u : 1u)) return std::nullopt;
      return part_of_all(all_.input(*n, 0), all_.integer(*n, "axis", 0), constant_of(*at).integer(0));
    }
    if (n->operation == "Slice" && !removed_dim) {
      const auto starts = all_.integers(*n, "starts", 1), ends = all_.integers(*n, "ends", 2);
      const auto axes = all_.integers(*n, "axes", 3);
      if (starts.size() != 1 || ends.size() != 1 || axes.size() != 1) return std::nullopt;
      if (starts[0] < 0 || ends[0] < 1 || ends[0] - 1 != starts[0]) return std::nullopt;
      return part_of_all(all_.input(*n, 0), axes[0], starts[0]);
    }
    if (n->operation == "Split" && !removed_dim) {
      const auto sizes = all_.integers(*n, "split", 1);
      if (std::any_of(sizes.begin(), sizes.end(), [](std::int64_t size) { return size != 1; })) return std::nullopt;
      const auto at = std::find(n->outputs.begin(), n->outputs.end(), value) - n->outputs.begin();
      return sizes.size() == n->outputs.size() ? part_of_all(all_.input(*n, 0), all_.integer(*n, "axis", 0), at) : std::nullopt;
    }
    return std::nullopt;
  }

 private:
  const graph_values& all_;

  /// The TopK whose indices these are.
  std::optional<expert_weight> choices(std::string value) const {
    value = all_.behind_casts(std::move(value));
    const model_node* const n = all_.operator_of(value);
    if (!n || n->operation != "TopK" || n->outputs.size() < 2 || n->outputs[1] != value) return std::nullopt;
    const std::vector<std::int64_t> k = all_.integers(*n, "k", 1);
    if (k.size() != 1 || k[0] < 1 || all_.from_back(all_.integer(*n, "axis", -1), all_.input(*n, 0)) != -1) return std::nullopt;
    return expert_weight{value, k[0], -1};
  }
  /// 1 where a choice is this expert: Equal(choices, e).
  std::optional<expert_weight> mask(const std::string& value) const {
    const model_node* const n = all_.maker_behind_casts(value);
    if (!n || n->operation != "Equal") return std::nullopt;
    for (const std::size_t i : {0u, 1u}) {
      const std::optional<double> expert = all_.number(all_.input(*n, 1 - i));
      std::optional<expert_weight> found = choices(all_.input(*n, i));
      if (!expert || !(*expert >= 0 && *expert < 0x1p31) || !found) continue;
      found->expert = std::int64_t(*expert);
      return found;
    }
    return std::nullopt;
  }
  /// ReduceSum(Mul(weights, mask)) or ReduceSum(Where(mask, weights, 0)) over the choices.
  std::optional<expert_weight> sum_of_masked(const model_node& sum) const {
    const std::vector<std::int64_t> over = all_.integers(sum, "axes", 1);
    const model_node* const n = all_.maker_behind_casts(all_.input(sum, 0));
    if (!n || over.size() != 1) return std::nullopt;
    std::optional<expert_weight> found;
    if (n->operation == "Mul") {
      found = mask(all_.input(*n, 0));
      if (!found) found = mask(all_.input(*n, 1));
    } else if (n->operation == "Where" && all_.is_zero(all_.input(*n, 2))) {
      found = mask(all_.input(*n, 0));
    }
    return found && all_.from_back(over[0], found->choices) == -1 ? found : std::nullopt;
  }
  /// A column of the weights of all experts.
  std::optional<expert_weight> part_of_all(const std::string& value, std::int64_t axis, std::int64_t expert) const {
    const model_node* const n = all_.maker_behind_casts(value);
    if (!n || expert < 0) return std::nullopt;
    std::optional<expert_weight> found;
    if (n->operation == "ScatterElements" && n->inputs.size() == 3) {
      const model_attribute* const how = all_.attribute(*n, "reduction");
      if ((how && how->text != "none") || !all_.is_zero(all_.input(*n, 0))) return std::nullopt;
      found = choices(all_.input(*n, 1));
      if (found && all_.from_back(all_.integer(*n, "axis", 0), found->choices) != -1) return std::nullopt;
    } else if (n->operation == "ReduceSum" && all_.integer(*n, "keepdims", 1) == 0) {
      if (all_.integers(*n, "axes", 1) != std::vector<std::int64_t>{-2}) return std::nullopt;
      const model_node* const weighted = all_.maker_behind_casts(all_.input(*n, 0));
      if (!weighted || weighted->operation != "Mul") return std::nullopt;
      for (const std::string& factor : weighted->inputs) {
        const model_node* const hot = all_.maker_behind_casts(factor);
        if (!hot || hot->operation != "OneHot" || all_.integer(*hot, "axis", -1) != -1) continue;
        const model_tensor* const values = all_.tensor(all_.input(*hot, 2));
        const bool is_off_on = values && can_be_known(values->type) && values->elements() == 2 && constant_of(*values).real(0) == 0;
        if (is_off_on) found = choices(all_.input(*hot, 0));
      }
    }
    if (!found || all_.from_back(axis, found->choices) != -1) return std::nullopt;
    found->expert = expert;
    return found;
  }
};

}  // namespace rewriting

}}}  // namespace gshard::v0::onnx
