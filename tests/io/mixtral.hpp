// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A small Mixtral, written from the formulas of Hugging Face's library in plain loops: weights by their Hugging Face names, files, logits.

#include "scratch.hpp"
#include "stores.hpp"

#include <Eigen/Core>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace mixtral {

/// key_heads: the number of heads of keys and values; each has `queries` heads of queries.
struct config {
  std::size_t layers = 2, key_heads = 2, queries = 2, head = 4, model = 12, hidden = 10, experts = 4, words = 11;
  double rope_theta = 1e6, rms_norm_eps = 1e-5;
  std::size_t heads() const { return key_heads * queries; }
};

/// Row-major [rows, columns]; a vector has no columns.
struct weight {
  std::size_t rows = 0, columns = 0;
  std::vector<float> data{};

  float operator()(std::size_t r, std::size_t c) const { return data[r * columns + c]; }
  std::string shape() const { return "[" + std::to_string(rows) + (columns ? "," + std::to_string(columns) : "") + "]"; }
};
using weights = std::map<std::string, weight>;

/// Multiples of 1/128 up to 100/128, which F16 and BF16 hold exactly.
inline weights make(const config& c, std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  weights all;
  const auto add = [&](const std::string& name, std::size_t rows, std::size_t columns = 0) {
    weight w{rows, columns};
    for (std::size_t i = 0; i < rows * std::max<std::size_t>(columns, 1); ++i) w.data.push_back(float(int(random() % 201) - 100) / 128.0f);
    all[name] = w;
  };
  add("model.embed_tokens.weight", c.words, c.model);
  add("model.norm.weight", c.model);
  add("lm_head.weight", c.words, c.model);
  for (std::size_t i = 0; i < c.layers; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    add(layer + "input_layernorm.weight", c.model);
    add(layer + "post_attention_layernorm.weight", c.model);
    add(layer + "self_attn.q_proj.weight", c.heads() * c.head, c.model);
    add(layer + "self_attn.k_proj.weight", c.key_heads * c.head, c.model);
    add(layer + "self_attn.v_proj.weight", c.key_heads * c.head, c.model);
    add(layer + "self_attn.o_proj.weight", c.model, c.heads() * c.head);
    add(layer + "block_sparse_moe.gate.weight", c.experts, c.model);
    for (std::size_t e = 0; e < c.experts; ++e) {
      const std::string expert = layer + "block_sparse_moe.experts." + std::to_string(e) + ".";
      add(expert + "w1.weight", c.hidden, c.model);
      add(expert + "w2.weight", c.model, c.hidden);
      add(expert + "w3.weight", c.hidden, c.model);
    }
  }
  return all;
}

// ---- Files.

/// The bytes of a number that is exact in the type, neither subnormal nor out of range.
inline std::string bytes_of(float x, const std::string& type) {
  const auto text = [](auto word) { return std::string(reinterpret_cast<const char*>(&word), sizeof word); };
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (type == "F32") return text(x);
  if (type == "F64") return text(double(x));
  if (type == "BF16") return text(std::uint16_t(bits >> 16));
  if (type == "F16") {
    const std::uint32_t exponent = (bits >> 23) & 255u;
    return text(std::uint16_t((bits >> 16 & 0x8000u) | (exponent == 0 ? 0u : ((exponent - 127 + 15) << 10) | (bits >> 13 & 1023u))));
  }
  return text(std::int32_t(x));
}
inline std::size_t width_of(const std::string& type) { return type == "F64" ? 8 : type == "F32" || type == "I32" ? 4 : 2; }

/// A safetensors file of these tensors. `shapes` overrides the shapes of some.
inline std::string file_of(const weights& all, const std::string& type = "F32", const std::map<std::string, std::string>& shapes = {}) {
  std::string header = R"({"__metadata__":{"format":"pt"})", data;
  for (const auto& [name, w] : all) {
    const auto other = shapes.find(name);
    const std::size_t begin = data.size();
    for (const float x : w.data) data += bytes_of(x, type);
    header += ",\"" + name + R"(":{"dtype":")" + type + R"(","shape":)" + (other == shapes.end() ? w.shape() : other->second) +
              R"(,"data_offsets":[)" + std::to_string(begin) + "," + std::to_string(data.size()) + "]}";
  }
  header += "}";
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + data;
}

/// Writes n files and their index to a directory, with the tensors distributed in turn.
inline void write_files(const scratch& dir, const weights& all, std::size_t n, const std::string& type = "F32") {
  std::vector<weights> parts(n);
  std::string map;
  std::size_t i = 0;
  for (const auto& [name, w] : all) {
    map += (map.empty() ? "" : ",") + ("\"" + name) + R"(":"part-)" + std::to_string(i % n) + ".safetensors\"";
    parts[i++ % n][name] = w;
  }
  for (i = 0; i < n; ++i) set_content(dir / ("part-" + std::to_string(i) + ".safetensors"), file_of(parts[i], type));
  set_content(dir / "model.safetensors.index.json", R"({"metadata":{"total_size":1},"weight_map":{)" + map + "}}");
}

// ---- Logits.

using vector = std::vector<double>;

inline vector multiply(const weight& w, const vector& x) {
  vector y(w.rows, 0);
  for (std::size_t r = 0; r < w.rows; ++r)
    for (std::size_t c = 0; c < w.columns; ++c) y[r] += double(w(r, c)) * x[c];
  return y;
}
inline vector rms_norm(const weight& w, const vector& x, double epsilon) {
  double squares = 0;
  for (const double v : x) squares += v * v;
  vector y;
  for (std::size_t i = 0; i < x.size(); ++i) y.push_back(x[i] / std::sqrt(squares / double(x.size()) + epsilon) * double(w.data[i]));
  return y;
}
/// x * cos + rotate_half(x) * sin for each head, where rotate_half(a, b) = (-b, a), and angle i is the angle of i mod head / 2.
inline void rotate(vector& x, std::size_t position, const config& c) {
  const std::size_t half = c.head / 2;
  for (std::size_t at = 0; at < x.size(); at += c.head) {
    const vector old(x.begin() + std::ptrdiff_t(at), x.begin() + std::ptrdiff_t(at + c.head));
    for (std::size_t i = 0; i < c.head; ++i) {
      const double angle = double(position) * std::pow(c.rope_theta, -2.0 * double(i % half) / double(c.head));
      x[at + i] = old[i] * std::cos(angle) + (i < half ? -old[i + half] : old[i - half]) * std::sin(angle);
    }
  }
}
inline vector softmax(vector x) {
  const double most = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (double& v : x) sum += v = std::exp(v - most);
  for (double& v : x) v /= sum;
  return x;
}

inline vector attend(const config& c, const vector& q, const std::vector<vector>& keys, const std::vector<vector>& values) {
  vector y(c.heads() * c.head, 0);
  for (std::size_t h = 0; h < c.heads(); ++h) {
    const std::size_t shared = h / c.queries;
    vector scores;
    for (const vector& k : keys) {
      double s = 0;
      for (std::size_t d = 0; d < c.head; ++d) s += q[h * c.head + d] * k[shared * c.head + d];
      scores.push_back(s / std::sqrt(double(c.head)));
    }
    scores = softmax(scores);
    for (std::size_t t = 0; t < values.size(); ++t)
      for (std::size_t d = 0; d < c.head; ++d) y[h * c.head + d] += scores[t] * values[t][shared * c.head + d];
  }
  return y;
}

/// The output of the two most probable experts, with weights that sum to 1.
inline vector experts_of(const config& c, const weights& all, const std::string& moe, const vector& x) {
  const vector gates = softmax(multiply(all.at(moe + "gate.weight"), x));
  std::vector<std::size_t> order(c.experts);
  for (std::size_t e = 0; e < c.experts; ++e) order[e] = e;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return gates[a] > gates[b]; });
  vector y(c.model, 0);
  for (std::size_t k = 0; k < 2; ++k) {
    const std::string expert = moe + "experts." + std::to_string(order[k]) + ".";
    vector inner = multiply(all.at(expert + "w1.weight"), x);
    const vector up = multiply(all.at(expert + "w3.weight"), x);
    for (std::size_t f = 0; f < c.hidden; ++f) inner[f] = inner[f] / (1 + std::exp(-inner[f])) * up[f];
    const vector out = multiply(all.at(expert + "w2.weight"), inner);
    for (std::size_t m = 0; m < c.model; ++m) y[m] += gates[order[k]] / (gates[order[0]] + gates[order[1]]) * out[m];
  }
  return y;
}

/// The logits at each position of a sequence.
inline std::vector<vector> logits(const config& c, const weights& all, const std::vector<std::int32_t>& ids) {
  const auto add = [](vector& x, const vector& y) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  };
  std::vector<vector> xs;
  for (const std::int32_t id : ids) {
    const float* const row = &all.at("model.embed_tokens.weight").data[std::size_t(id) * c.model];
    xs.emplace_back(row, row + c.model);
  }
  for (std::size_t i = 0; i < c.layers; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".", attention = layer + "self_attn.";
    std::vector<vector> keys, values;
    for (std::size_t t = 0; t < xs.size(); ++t) {
      const vector a = rms_norm(all.at(layer + "input_layernorm.weight"), xs[t], c.rms_norm_eps);
      vector q = multiply(all.at(attention + "q_proj.weight"), a);
      keys.push_back(multiply(all.at(attention + "k_proj.weight"), a));
      values.push_back(multiply(all.at(attention + "v_proj.weight"), a));
      rotate(q, t, c);
      rotate(keys.back(), t, c);
      add(xs[t], multiply(all.at(attention + "o_proj.weight"), attend(c, q, keys, values)));
    }
    const weight& norm = all.at(layer + "post_attention_layernorm.weight");
    for (vector& x : xs) add(x, experts_of(c, all, layer + "block_sparse_moe.", rms_norm(norm, x, c.rms_norm_eps)));
  }
  std::vector<vector> result;
  for (const vector& x : xs) result.push_back(multiply(all.at("lm_head.weight"), rms_norm(all.at("model.norm.weight"), x, c.rms_norm_eps)));
  return result;
}

// ---- Parameters of gshard.

inline std::vector<stores::tensor_case> parameters(const config& c, gshard::dtype type = gshard::dtype::f32) {
  const auto list = [&](std::initializer_list<std::size_t> extents) { return std::vector<std::int64_t>(extents.begin(), extents.end()); };
  std::vector<stores::tensor_case> all{{"model.embed_tokens.weight", type, list({c.words, c.model})},
                                       {"model.norm.weight", type, list({c.model})},
                                       {"lm_head.weight", type, list({c.words, c.model})}};
  for (std::size_t i = 0; i < c.layers; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    const auto add = [&](const std::string& name, std::initializer_list<std::size_t> extents) {
      all.push_back({layer + name, type, list(extents)});
    };
    add("input_layernorm.weight", {c.model});
    add("post_attention_layernorm.weight", {c.model});
    add("self_attn.q_proj.weight", {c.key_heads, c.queries, c.head, c.model});
    add("self_attn.k_proj.weight", {c.key_heads, c.head, c.model});
    add("self_attn.v_proj.weight", {c.key_heads, c.head, c.model});
    add("self_attn.o_proj.weight", {c.model, c.key_heads, c.queries, c.head});
    add("block_sparse_moe.wg", {c.model, c.experts});
    add("block_sparse_moe.wi_gate", {c.experts, c.model, c.hidden});
    add("block_sparse_moe.wi", {c.experts, c.model, c.hidden});
    add("block_sparse_moe.wo", {c.experts, c.hidden, c.model});
  }
  return all;
}

/// The element of a parameter at a row-major index, from the weights.
inline float element(const config& c, const weights& all, const std::string& name, std::size_t at) {
  if (const auto same = all.find(name); same != all.end()) return same->second.data[at];  // the same memory order
  const std::size_t dot = name.rfind('.');
  const std::string moe = name.substr(0, dot + 1), last = name.substr(dot + 1);
  if (last == "wg") return all.at(moe + "gate.weight")(at % c.experts, at / c.experts);
  const std::size_t size = c.model * c.hidden, columns = last == "wo" ? c.model : c.hidden;
  const std::string there = last == "wi_gate" ? "w1" : last == "wo" ? "w2" : "w3";
  return all.at(moe + "experts." + std::to_string(at / size) + "." + there + ".weight")(at % columns, at % size / columns);
}

/// The number of elements in a store that differ from the weights.
inline int wrong(const gshard::parameter_store& store, const config& c, const weights& all) {
  int n = 0;
  for (const auto& [name, entry] : store.entries())
    for (std::size_t i = 0; i < entry.value.places.size(); ++i)
      gshard::kernel::for_each_element(entry.value.places[i], [&, &name = name, &entry = entry](std::size_t global, std::size_t local) {
        gshard::detail::with_element(entry.value.type, [&]<class T>(T*) {
          if constexpr (!gshard::detail::is_complex_number<T>)
            n += static_cast<float>(entry.value.as<const T>(i)[local]) != element(c, all, name, global);
        });
      });
  return n;
}

}  // namespace mixtral
