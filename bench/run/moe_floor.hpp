// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/exec/kernel/gemm/gemm.hpp>
#include <gshard/exec/kernel/threads.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bench {

/// The mixture-of-experts layer of arXiv 2006.16668 as one would write it by hand for one device: top-2 gating with capacity 2S/E, tokens
/// sorted by expert, one pair of products per expert over just its tokens, no allocation while it runs. The baseline of gshard's layer. It
/// uses the same gemm, and divides experts and rows among threads in the same way.
class moe_floor {
 public:
  std::vector<float> x, wg, wi, wo, dy;              // [T,M] [M,E] [E,M,F] [E,F,M] [T,M]
  std::vector<float> y, dx, dwg, dwi, dwo;

  moe_floor(std::int64_t tokens, std::int64_t model, std::int64_t hidden, std::int64_t experts)
      : x(size(tokens * model)), wg(size(model * experts)), wi(size(experts * model * hidden)), wo(wi.size()), dy(x.size()), y(x.size()),
        dx(x.size()), dwg(wg.size()), dwi(wi.size()), dwo(wo.size()), T_(tokens), M_(model), F_(hidden), E_(experts), C_(2 * tokens / experts),
        gates_(size(T_ * E_)), weight_(size(2 * T_)), expert_(size(2 * T_)), row_(size(2 * T_)), start_(size(E_ + 1)), source_(size(2 * T_)),
        in_(size(2 * T_ * M_)), h_(size(2 * T_ * F_)), out_(in_.size()), din_(in_.size()), dh_(h_.size()), dout_(in_.size()), dweight_(size(2 * T_)),
        dgates_(gates_.size()) {}

  void forward() {
    gate();
    each(start_.back(), 32, [&](std::int64_t r) { std::copy_n(&x[size(source_[size(r)] / 2 * M_)], M_, &in_[size(r * M_)]); });
    each(E_, 1, [&](std::int64_t e) {
      const std::int64_t first = start_[size(e)], n = start_[size(e + 1)] - first;
      if (n == 0) return;
      float* const h = &h_[size(first * F_)];
      gemm(false, false, n, F_, M_, &in_[size(first * M_)], &wi[size(e * M_ * F_)], h);
      for (std::int64_t i = 0; i < n * F_; ++i) h[i] = std::max(h[i], 0.0f);
      gemm(false, false, n, M_, F_, h, &wo[size(e * M_ * F_)], &out_[size(first * M_)]);
    });
    each(T_, 32, [&](std::int64_t t) {
      float* const to = &y[size(t * M_)];
      std::fill_n(to, M_, 0.0f);
      for (std::int64_t k = 2 * t; k < 2 * t + 2; ++k) {
        if (row_[size(k)] < 0) continue;
        const float* const from = &out_[size(row_[size(k)] * M_)];
        const float w = weight_[size(k)];
        for (std::int64_t m = 0; m < M_; ++m) to[m] += w * from[m];
      }
    });
  }

  /// After forward: the gradients of sum(y * dy).
  void backward() {
    std::fill(dweight_.begin(), dweight_.end(), 0.0f);
    each(start_.back(), 32, [&](std::int64_t r) {
      const std::int64_t k = source_[size(r)];
      const float *const g = &dy[size(k / 2 * M_)], *const o = &out_[size(r * M_)], w = weight_[size(k)];
      float* const to = &dout_[size(r * M_)];
      float sum = 0;
      for (std::int64_t m = 0; m < M_; ++m) {
        sum += g[m] * o[m];
        to[m] = w * g[m];
      }
      dweight_[size(k)] = sum;
    });
    each(E_, 1, [&](std::int64_t e) {
      const std::int64_t first = start_[size(e)], n = start_[size(e + 1)] - first;
      const float *const h = &h_[size(first * F_)], *const dout = &dout_[size(first * M_)];
      float* const dh = &dh_[size(first * F_)];
      gemm(true, false, F_, M_, n, h, dout, &dwo[size(e * M_ * F_)]);
      gemm(false, true, n, F_, M_, dout, &wo[size(e * M_ * F_)], dh);
      for (std::int64_t i = 0; i < n * F_; ++i) dh[i] = h[i] > 0 ? dh[i] : 0;
      gemm(true, false, M_, F_, n, &in_[size(first * M_)], dh, &dwi[size(e * M_ * F_)]);
      gemm(false, true, n, M_, F_, dh, &wi[size(e * M_ * F_)], &din_[size(first * M_)]);
    });
    each(T_, 32, [&](std::int64_t t) {
      float* const to = &dx[size(t * M_)];
      std::fill_n(to, M_, 0.0f);
      for (std::int64_t k = 2 * t; k < 2 * t + 2; ++k)
        if (row_[size(k)] >= 0) {
          const float* const from = &din_[size(row_[size(k)] * M_)];
          for (std::int64_t m = 0; m < M_; ++m) to[m] += from[m];
        }
      gate_gradient(t);
    });
    gemm(true, false, M_, E_, T_, x.data(), dgates_.data(), dwg.data());
    gshard::kernel::gemm<float>(false, true, T_, M_, E_, 1, dgates_.data(), E_, wg.data(), E_, 1, dx.data(), M_);
  }

 private:
  std::int64_t T_, M_, F_, E_, C_;
  std::vector<float> gates_, weight_;
  std::vector<std::int64_t> expert_, row_, start_, source_;  // by choice: expert, sorted row or -1; by expert: first row; by row: choice
  std::vector<float> in_, h_, out_, din_, dh_, dout_, dweight_, dgates_;

  template <class F>
  static void each(std::int64_t n, std::int64_t grain, F f) {
    gshard::kernel::parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) f(i);
    });
  }
  static std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }
  static void gemm(bool ta, bool tb, std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b, float* c) {
    gshard::kernel::gemm<float>(ta, tb, m, n, k, 1, a, ta ? m : k, b, tb ? k : n, 0, c, n);
  }

  void gate() {
    gemm(false, false, T_, E_, M_, x.data(), wg.data(), gates_.data());
    std::fill(start_.begin(), start_.end(), 0);
    each(T_, 256, [&](std::int64_t t) {
      float* const g = &gates_[size(t * E_)];
      const float top = *std::max_element(g, g + E_);
      float sum = 0;
      for (std::int64_t e = 0; e < E_; ++e) sum += g[e] = std::exp(g[e] - top);
      for (std::int64_t e = 0; e < E_; ++e) g[e] /= sum;
      const std::int64_t first = std::max_element(g, g + E_) - g;
      std::int64_t second = first == 0 ? 1 : 0;
      for (std::int64_t e = 0; e < E_; ++e)
        if (e != first && g[e] > g[second]) second = e;
      expert_[size(2 * t)] = first;
      expert_[size(2 * t + 1)] = second;
      const float total = g[first] + g[second] + 1e-9f;
      weight_[size(2 * t)] = g[first] / total;
      weight_[size(2 * t + 1)] = g[second] / total;
    });
    // All first choices before any second one; no more than C tokens an expert.
    for (std::int64_t which = 0; which < 2; ++which)
      for (std::int64_t k = which; k < 2 * T_; k += 2) {
        std::int64_t& taken = start_[size(expert_[size(k)] + 1)];
        row_[size(k)] = taken < C_ ? taken++ : -1;
      }
    for (std::int64_t e = 0; e < E_; ++e) start_[size(e + 1)] += start_[size(e)];
    for (std::int64_t k = 0; k < 2 * T_; ++k) {
      if (row_[size(k)] < 0) continue;
      row_[size(k)] += start_[size(expert_[size(k)])];
      source_[size(row_[size(k)])] = k;
    }
  }

  void gate_gradient(std::int64_t t) {
    const float* const g = &gates_[size(t * E_)];
    float* const d = &dgates_[size(t * E_)];
    const std::int64_t a = expert_[size(2 * t)], b = expert_[size(2 * t + 1)];
    const float total = g[a] + g[b] + 1e-9f;
    const float da = row_[size(2 * t)] < 0 ? 0 : dweight_[size(2 * t)], db = row_[size(2 * t + 1)] < 0 ? 0 : dweight_[size(2 * t + 1)];
    const float mean = (da * g[a] + db * g[b]) / total;
    const float ga = (da - mean) / total, gb = (db - mean) / total, inner = ga * g[a] + gb * g[b];
    for (std::int64_t e = 0; e < E_; ++e) d[e] = g[e] * ((e == a ? ga : e == b ? gb : 0) - inner);
  }
};

}  // namespace bench
