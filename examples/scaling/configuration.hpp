// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The runs of the scaling experiment: the model and the task of each.

#include <gshard/models/transformer.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

namespace scaling {

namespace gs = gshard;

enum class task : std::uint8_t { iso_codes, catalogues };
constexpr const char* name_of(task t) { return t == task::iso_codes ? "iso-codes" : "catalogues"; }

/// How a token chooses its two experts. random, always, threshold and sampled are rules for the second one, @see gs::choice. bias:
/// balanced by a bias of the choice, instead of the auxiliary loss (arXiv 2408.15664). Experts do not choose tokens here, because experts
/// of the decoder would see later tokens.
enum class policy : std::uint8_t { random, always, threshold, sampled, bias };
constexpr const char* name_of(policy p) {
  constexpr const char* names[] = {"random", "always", "threshold", "sampled", "bias"};
  return names[int(p)];
}

/// One run: a model, a task and a seed. All models compute equally many operations per token.
struct configuration {
  task data = task::iso_codes;
  int layers = 2;            ///< layers of the encoder, and of the decoder; every second one has experts
  std::int64_t experts = 0;  ///< per layer; 0: the dense model
  double capacity = 2;       ///< capacity factor: slots per expert, in equal shares of the tokens
  double balance = 0.1;      ///< weight of the auxiliary loss, which is 1 when all experts have equal loads
  policy choice = policy::random;
  std::uint64_t seed = 1;

  bool is_dense() const { return experts == 0; }
  /// The weight on the paper's scale, on which equal loads have the loss 1 / E^2.
  double auxiliary_weight() const { return balance * double(experts * experts); }

  /// "catalogues-2x2-E32-c1.25-b0.1-random-s1": the name of its files.
  std::string name() const {
    char text[160];
    if (is_dense())
      std::snprintf(text, sizeof text, "%s-%dx%d-dense-s%d", name_of(data), layers, layers, int(seed));
    else
      std::snprintf(text, sizeof text, "%s-%dx%d-E%d-c%g-b%g-%s-s%d", name_of(data), layers, layers, int(experts), capacity, balance,
                    name_of(choice), int(seed));
    return text;
  }

  /// The options of training, or of validation: without dropout and noise, and always with the second expert.
  gs::nn::transformer_options options(bool training) const {
    gs::nn::transformer_options o{.encoder_layers = layers, .decoder_layers = layers, .dropout = training ? 0.1 : 0, .moe = {}};
    o.moe.routing.slots = gs::capacity{capacity};
    o.moe.routing.training = training;
    o.moe.routing.k = 2;
    o.moe.routing.choice = choice == policy::random      ? gs::choice::random_second()
                           : choice == policy::threshold ? gs::choice::second_above(0.5)
                           : choice == policy::sampled   ? gs::choice::sampled_second
                                                         : gs::choice::top_k;
    if (choice == policy::bias) o.moe.routing.balance = gs::balance::bias();
    o.dense = is_dense();
    return o;
  }
};

/// Appends a run unless the list has it.
inline void add(std::vector<configuration>& runs, const configuration& c) {
  for (const configuration& r : runs)
    if (r.name() == c.name()) return;
  runs.push_back(c);
}

/// All runs of a task, the most important first: experts, then depths, then other settings one at a time with 32 experts.
inline std::vector<configuration> runs_of(task data, int seeds = 3) {
  constexpr std::int64_t experts[] = {0, 2, 8, 32, 128};
  std::vector<configuration> runs;
  for (const int layers : {2, 4})
    for (int seed = 1; seed <= seeds; ++seed)
      for (const std::int64_t e : experts) add(runs, {.data = data, .layers = layers, .experts = e, .seed = std::uint64_t(seed)});
  for (const double capacity : {1.0, 1.25, 2.0}) add(runs, {.data = data, .experts = 32, .capacity = capacity});
  for (const double balance : {0.0, 0.01, 0.1, 1.0}) add(runs, {.data = data, .experts = 32, .balance = balance});
  for (const policy choice : {policy::random, policy::always, policy::threshold, policy::sampled, policy::bias})
    add(runs, {.data = data, .experts = 32, .choice = choice});
  return runs;
}

/// The runs of both tasks. With `only`: the runs whose name contains one of its texts. Throws if a text is in no name.
inline std::vector<configuration> select_runs(int seeds, const std::vector<std::string>& only = {}) {
  std::vector<configuration> all = runs_of(task::iso_codes, seeds);
  for (const configuration& r : runs_of(task::catalogues, seeds)) all.push_back(r);
  if (only.empty()) return all;
  const auto has = [](const configuration& r, const std::string& text) { return r.name().find(text) != std::string::npos; };
  for (const std::string& text : only)
    if (std::none_of(all.begin(), all.end(), [&](const configuration& r) { return has(r, text); })) {
      std::string message = "--only: no run has '" + text + "' in its name; the runs are";
      for (const configuration& r : all) message += "\n  " + r.name();
      throw std::runtime_error(message);
    }
  std::erase_if(all, [&](const configuration& r) { return std::none_of(only.begin(), only.end(), [&](const auto& t) { return has(r, t); }); });
  return all;
}

}  // namespace scaling
