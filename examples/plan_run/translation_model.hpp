// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/core/base/list.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/ir/mesh.hpp>
#include <gshard/core/program/compile.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/parameter_scope.hpp>
#include <gshard/models/transformer.hpp>
#include <gshard/moe/routing/routing.hpp>
#include <gshard/ops/rows/cross_entropy.hpp>
#include <gshard/train/adafactor.hpp>

#include <cstdint>
#include <string_view>

namespace plan_run {

namespace gs = gshard;

/// The translation models of arXiv 2006.16668 (section 4, appendix A.2): a Transformer with as many encoder as decoder layers, in which
/// every second feed-forward layer is a mixture of experts. The defaults are the model of 600 billion weights.
struct translation_model {
  int layers = 36;  ///< half of them in the encoder; if odd, the decoder has one more
  std::int64_t experts = 2048;
  std::int64_t groups = 2048;      ///< token groups; each is dispatched to the experts independently
  std::int64_t tokens = 4 << 20;   ///< tokens per step, half of them source
  std::int64_t sequence = 1024;    ///< tokens of a sentence, or of several in a row; not in the paper
  std::int64_t width = 1024, hidden = 8192, heads = 16, head_width = 128;
  std::int64_t source_words = 64000, target_words = 32000;
  double dropout = 0.1, capacity_factor = 2, balance_weight = 0.01, label_smoothing = 0.1;
  /// True: tokens are dispatched by products with one-hot matrices, as in the paper. False: by index.
  bool one_hot_products = true;

  constexpr bool operator==(const translation_model&) const = default;

  constexpr gs::dims dims() const {
    return {{'G', groups},     {'B', sentences()}, {'S', sequence}, {'T', sequence}, {'M', width},        {'F', hidden},      {'H', heads},
            {'D', head_width}, {'E', experts},     {'L', sequence}, {'V', source_words}, {'W', target_words}};
  }
  /// The number of source or target sentences per group.
  constexpr std::int64_t sentences() const {
    const std::int64_t n = tokens / 2 / groups / sequence;
    return n > 0 ? n : 1;
  }
  constexpr int encoder_layers() const { return layers / 2; }
  constexpr int decoder_layers() const { return layers - layers / 2; }
  /// The number of layers with experts: every second layer of encoder and decoder.
  constexpr int expert_layers() const { return encoder_layers() / 2 + decoder_layers() / 2; }
  /// The numbers of weights in all experts, and in all other layers. Biases, norms and gates are not counted.
  constexpr std::int64_t expert_weights() const { return expert_layers() * experts * 2 * width * hidden; }
  constexpr std::int64_t dense_weights() const {
    const std::int64_t attention = 4 * width * heads * head_width, feed_forward = 2 * width * hidden;
    return (layers + decoder_layers()) * attention + (layers - expert_layers()) * feed_forward + (source_words + 2 * target_words) * width;
  }
};

/// A training step of the model: loss, gradients and the update by Adafactor. Inputs: ids of source, target and next words.
constexpr gs::symbol training_step(const gs::parameter_scope& m, gs::symbol source, gs::symbol target, gs::symbol next,
                                   const translation_model& model) {
  const gs::nn::transformer_options o{.encoder_layers = model.encoder_layers(),
                                      .decoder_layers = model.decoder_layers(),
                                      .dropout = model.dropout,
                                      .moe = {.routing = {.slots = {model.capacity_factor}}}};
  gs::nn::routing_summary routing;
  const gs::symbol from = m.param("source", "VM", gs::init::fan_in("M")), to = m.param("target", "WM", gs::init::fan_in("M"));
  const gs::symbol source_mask = gs::nn::real_tokens(m, source), target_mask = gs::nn::real_tokens(m, target);
  const gs::symbol memory = gs::nn::encode<"expert">(m.scope("encoder"), from, source, source_mask, o, routing);
  const gs::symbol y = gs::nn::decode<"expert">(m.scope("decoder"), to, target, target_mask, memory, source_mask, o, routing);
  const gs::symbol logits = gs::einsum<"GBTM,MW->GBTW">(y, m.param("softmax", "MW", gs::init::fan_in("M")));
  const gs::symbol loss = gs::sum(gs::cross_entropy(logits, next, model.label_smoothing) * target_mask) / gs::sum(target_mask);
  gs::adafactor{}.minimize(m, m.objective(loss, model.balance_weight));
  return loss;
}

/// The annotations of the translation model. Groups of tokens are sharded over all axes except "model", experts over "expert" (by nn::moe).
/// Heads, hidden units and words are sharded over "model", if there is such an axis.
class translation_layout {
 public:
  explicit translation_layout(const gs::mesh_shape& mesh) : model_(mesh.find("model")) {
    for (int a = 0; a < mesh.rank(); ++a)
      if (a != model_) groups_.push_back(a);
  }
  /// Sharded along dim 0, the groups.
  gs::sharding tokens(int rank) const {
    gs::sharding s = gs::sharding::replicated(rank);
    s[0] = groups_;
    return s;
  }
  void shard_weights(gs::graph& g) const {
    if (model_ < 0) return;
    for (const gs::parameter& p : g.parameters) {
      gs::value& v = g.at(p.value);
      if (!p.trainable || v.rank() < 2) continue;
      for (int d = 0; d < v.rank(); ++d)
        if (const char letter = g.dims[std::size_t(v.dims[d])].letter; letter == 'H' || letter == 'F' || letter == 'V' || letter == 'W') {
          const gs::short_list before = v.layout[d];
          if (v.layout.open) v.layout = gs::sharding::replicated(v.rank());
          v.layout[d] = before;
          v.layout[d].push_back(model_);
        }
    }
  }
  /// Keeps gating where the tokens are, as the paper's users do.
  void keep_gating(gs::graph& g) const {
    for (const gs::node& n : g.nodes)
      if (n.kind == gs::op::one_hot) g.at(n.output()).layout = tokens(4);
  }

 private:
  int model_;
  gs::short_list groups_;
};

/// The plan of a training step of the model, made when it is called. Experts are sharded over the mesh axis "expert", which must exist.
/// Heads, hidden units and words are sharded over an axis "model", if there is one. Groups are sharded over all other axes. The plan is the
/// same for any number of experts. It is the same for any number of groups and devices if a group keeps its number of sentences: dynamic
/// extents of the mesh are bound later.
// Not constexpr, so that only its callers pay for it. The functions that it calls are constexpr.
inline gs::plan_tables plan_of(const translation_model& model, const gs::mesh_shape& mesh) {
  gs::builder b;
  b.mesh = mesh;
  b.options.sparse_one_hot = !model.one_hot_products;
  for (const gs::dims bound = model.dims(); const char letter : {'B', 'S', 'T', 'M', 'F', 'H', 'D', 'L', 'V', 'W'})
    b.options.known.set(letter, bound.find(letter));
  const gs::parameter_scope m(b);
  const translation_layout layout(mesh);
  const auto ids = [&](std::string_view letters) {
    const gs::symbol s{&b, b.add_value(b.dims_of(letters, letters), gs::dtype::i32)};
    b.program.at(s.id).layout = layout.tokens(s.rank());
    b.program.inputs.push_back({gs::tensor_name(letters), s.id});
    return s;
  };
  const gs::symbol source = ids("GBS"), target = ids("GBT"), next = ids("GBT");
  const gs::symbol loss = training_step(m, source, target, next, model);
  if (!b.failed()) b.program.outputs.push_back({gs::tensor_name("loss"), loss.id});
  layout.shard_weights(b.program);
  layout.keep_gating(b.program);
  gs::compile_options options;
  options.known = b.options.known;
  options.uneven = true;
  return gs::compile(b.program, mesh, options);
}

}  // namespace plan_run
