// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/models/language_model.hpp>

#include <gshard/models/decode/beam_search.hpp>
#include <gshard/exec/program/parameter_access.hpp>
#include <gshard/eager/reshard.hpp>
#include <gshard/train/adam.hpp>

#include <Eigen/Core>
#include <doctest/doctest.h>

#include "../complaint.hpp"
#include "../exec/planned_program.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

namespace gs = gshard;
namespace nn = gshard::nn;
using gs::in, gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"data">, gs::axis<"expert">>;

namespace {

constexpr std::size_t G = 4, B = 2, T = 9, V = 11;
const gs::dims extents{{'G', G}, {'B', B}, {'T', T}, {'M', 16}, {'H', 2}, {'R', 2}, {'D', 4}, {'F', 24}, {'E', 3}, {'V', V}, {'L', T}};

template <bool Tied>
constexpr nn::language_model_options options{
    .layers = 2, .moe = {.routing = {.k = 2, .slots = gs::capacity{3}}, .swiglu = true}, .tied_head = Tied};

template <bool Tied>
constexpr auto train_step = [](auto& m, auto ids, auto labels, auto rate) {
  nn::routing_summary routing;
  const auto loss = nn::token_loss(nn::language_model<"expert">(m, ids, options<Tied>, routing), labels);
  gs::adam{}.minimize(m, m.objective(loss, 0.1), rate);
  return loss;
};
template <bool Tied>
constexpr auto all_logits = [](auto& m, auto ids) {
  nn::routing_summary routing;
  return nn::language_model<"expert">(m, ids, options<Tied>, routing);
};
template <bool Tied>
constexpr auto decoding_step = [](auto& m, auto ids, auto position) {
  const auto logits = nn::language_model_step<"expert">(m, ids, position, options<Tied>);
  return std::tuple{logits, nn::sample_token(m, logits)};
};
template <gs::fixed_string Letters>
using ids_of = in<Letters, P<gs::axes<"data", "expert">, none, none>, std::int32_t>;
using one_position = in<"GB", P<gs::axes<"data", "expert">, none>, std::int32_t>;
template <bool Tied>
using training = gs::program<train_step<Tied>, mesh, ids_of<"GBT">, ids_of<"GBT">, in<"">>;
template <bool Tied>
using whole = gs::program<all_logits<Tied>, mesh, ids_of<"GBT">>;
template <bool Tied>
using cached = gs::program<decoding_step<Tied>, mesh, one_position, in<"", void, std::int32_t>>;

/// A language in which each token determines the next one: 3 or 4 further, by its parity.
std::int32_t after(std::int32_t id) { return 1 + (id - 1 + 3 + id % 2) % (std::int32_t(V) - 1); }
struct batch {
  std::vector<std::int32_t> ids = std::vector<std::int32_t>(G * B * T), labels = ids;

  explicit batch(int step) {
    for (std::size_t row = 0; row < G * B; ++row) {
      auto id = std::int32_t(1 + (row * 3 + std::size_t(step) * 7) % (V - 1));
      for (std::size_t t = 0; t < T; ++t) {
        ids[row * T + t] = id;
        id = after(id);
        labels[row * T + t] = t % 4 == 3 ? -1 : id;
      }
    }
  }
};

template <bool Tied>
std::vector<double> train(const gs::cluster<mesh>& on, gs::parameter_store store, int steps) {
  planned::executable<training<Tied>> run(on, extents, store);
  std::vector<double> losses;
  for (int i = 0; i < steps; ++i) {
    const batch b(i);
    losses.push_back(run(b.ids, b.labels, std::vector{5e-3f}).item());
  }
  return losses;
}

/// Greedy decoding with and without the cache gives the same logits at each position, and the same tokens.
template <bool Tied>
std::size_t compare_decoding(const std::vector<int>& devices) {
  const auto on = gs::simulate<mesh>(devices);
  gs::parameter_store store(on, 3);
  const std::vector<double> losses = train<Tied>(on, store, 40);
  CHECK(losses.front() == doctest::Approx(std::log(double(V))).epsilon(0.5));
  CHECK(losses.back() < 0.5 * losses.front());
  planned::executable<whole<Tied>> without(on, extents, store);
  planned::executable<cached<Tied>> with(on, extents, store);
  std::size_t right = 0;
  for (int turn = 0; turn < 2; ++turn) {  // the second one starts with a full cache
    std::vector<std::int32_t> now(G * B), sequence(G * B * T, 1);
    for (std::size_t row = 0; row < G * B; ++row) now[row] = std::int32_t(1 + (row + std::size_t(turn)) % (V - 1));
    for (std::size_t t = 0; t < T; ++t) {
      CAPTURE(t);
      for (std::size_t row = 0; row < G * B; ++row) sequence[row * T + t] = now[row];
      const planned::results made = with(now, std::vector{std::int32_t(t)});
      const std::vector<float> of_step = made.floats(), of_all = without(sequence).floats();
      const std::vector<std::int32_t> next = made.integers(1);
      for (std::size_t row = 0; row < G * B; ++row) {
        const float* const expected = &of_all[(row * T + t) * V];
        for (std::size_t v = 0; v < V; ++v) CHECK(of_step[row * V + v] == doctest::Approx(expected[v]).epsilon(1e-4));
        CHECK(next[row] == std::int32_t(std::max_element(expected, expected + V) - expected));
        right += next[row] == after(now[row]);
        now[row] = std::max(next[row], 1);
      }
    }
  }
  for (const std::size_t outside : {T, std::size_t(-1)}) {
    const std::string said = complaint([&] { with(std::vector<std::int32_t>(G * B, 1), std::vector{std::int32_t(outside)}); });
    CAPTURE(said);
    CHECK(said.find("id " + std::to_string(std::int32_t(outside)) + " at position 0 is outside a table of 9 rows") != said.npos);
    CHECK(said.find("([L=9], [1]) at language_model_test.cpp:") != said.npos);
    CHECK(said.ends_with("in \"position in the cache\""));
  }
  return right;
}

}  // namespace

TEST_CASE("language_model: ids outside the vocabulary, an odd head and a store of another model are errors that name dims and tensors") {
  const auto on = gs::simulate<mesh>({1, 2});
  const auto with = [](char letter, std::int64_t extent) {
    gs::dims d;
    for (const char c : {'G', 'B', 'T', 'M', 'H', 'R', 'D', 'F', 'E', 'V'}) d.set(c, c == letter ? extent : extents.find(c));
    return d;
  };
  gs::parameter_store store(on, 3);
  planned::executable<whole<true>> run(on, with('M', 16), store);
  for (const int outside : {int(V), -1}) {
    std::vector<std::int32_t> ids(G * B * T, 1);
    ids.back() = outside;
    const std::string said = complaint([&] { run(ids); });
    CAPTURE(said);
    CHECK(said.find("gather: id " + std::to_string(outside)) != said.npos);
    CHECK(said.find("is outside a table of 11 rows, in gather(parameter \"model.embed_tokens.weight\" [V=11,M=16], "
                    "input 0 [G=4,B=2,T=9]) at language_model_test.cpp:") != said.npos);
  }
  const std::string odd = complaint([&] { planned::executable<whole<true>> none_such(on, with('D', 5), gs::parameter_store(on, 3)); });
  CAPTURE(odd);
  CHECK(odd.starts_with("rotary: dim 'D' of extent 5 is not a multiple of 2, in reshape([G=4,B=2,T=9,H=2,R=2,D=5]) at "
                        "language_model_test.cpp:"));
  CHECK(odd.ends_with(" in \"attention\""));
  CHECK(complaint([&] { planned::executable<whole<true>> other(on, with('M', 8), store); }) ==
        "parameter \"model.embed_tokens.weight\": another program on this store has it as f32[11,16], this one as f32[11,8]");
}

TEST_CASE("language_model: training lowers the loss, alike on any mesh") {
  const auto one = gs::simulate<mesh>({1, 1});
  const std::vector<double> expected = train<true>(one, gs::parameter_store(one, 3), 10);
  for (const std::vector<int>& devices : std::vector<std::vector<int>>{{2, 2}, {1, 3}, {4, 1}}) {
    const auto on = gs::simulate<mesh>(devices);
    const std::vector<double> losses = train<true>(on, gs::parameter_store(on, 3), 10);
    for (std::size_t i = 0; i < losses.size(); ++i) CHECK(losses[i] == doctest::Approx(expected[i]).epsilon(1e-4));
  }
}

TEST_CASE("language_model_step: greedy decoding with a cache is that without, token by token, and knows the language") {
  CHECK(compare_decoding<true>({1, 1}) > G * B * T);
  CHECK(compare_decoding<false>({2, 2}) > G * B * T);
}

namespace {

/// Options for training, with random numbers and with a bias of the router.
constexpr nn::language_model_options noisy{
    .layers = 2,
    .moe = {.routing = {.balance = gs::balance::bias(0.1), .jitter = 0.2, .gumbel = 1, .evaluation_slots = {3}}, .swiglu = true},
    .dropout = 0.2};
template <bool Evaluate>
constexpr auto noisy_logits = [](auto& m, auto ids) {
  nn::routing_summary routing;
  return nn::language_model<"expert">(m, ids, Evaluate ? nn::for_evaluation(noisy) : noisy, routing);
};
constexpr auto noisy_step = [](auto& m, auto ids, auto position) { return nn::language_model_step<"expert">(m, ids, position, noisy); };

}  // namespace

TEST_CASE("language_model_step: with options for training it draws nothing, keeps the router's bias, and has the logits of evaluation") {
  for (const std::vector<int>& devices : std::vector<std::vector<int>>{{1, 1}, {2, 2}}) {
    const auto on = gs::simulate<mesh>(devices);
    gs::parameter_store store(on, 3);
    planned::executable<gs::program<noisy_logits<false>, mesh, ids_of<"GBT">>> training(on, extents, store);
    planned::executable<gs::program<noisy_logits<true>, mesh, ids_of<"GBT">>> evaluated(on, extents, store);
    planned::executable<gs::program<noisy_step, mesh, one_position, in<"", void, std::int32_t>>> step(on, extents, store);
    const auto bias = [&] { return gs::to_global<float>(store, "model.layers.1.block_sparse_moe.bias"); };
    const std::vector<std::int32_t> ids = batch(1).ids;
    for (int i = 0; i < 3; ++i) training(ids);
    const std::vector<float> trained = bias();
    CHECK(*std::max_element(trained.begin(), trained.end()) > 0.05f);  // it chooses other experts than without the bias
    const std::vector<float> expected = evaluated(ids).floats();
    std::vector<std::int32_t> now(G * B);
    for (std::size_t t = 0; t < T; ++t) {
      CAPTURE(t);
      for (std::size_t row = 0; row < G * B; ++row) now[row] = ids[row * T + t];
      const std::vector<float> logits = step(now, std::array{std::int32_t(t)}).floats();
      CHECK(step(now, std::array{std::int32_t(t)}).floats() == logits);  // with another step number of the store
      for (std::size_t row = 0; row < G * B; ++row)
        for (std::size_t v = 0; v < V; ++v) CHECK(logits[row * V + v] == doctest::Approx(expected[(row * T + t) * V + v]).epsilon(1e-4));
    }
    CHECK(bias() == trained);
  }
}

namespace {

constexpr auto beam_step = [](auto& m, auto ids, auto position, auto order) {
  const auto logits = nn::language_model_step<"expert">(m, ids, position, options<true>, order);
  return logits - gs::logsumexp<"GBV->GB">(logits);
};
constexpr auto beam_without_cache = [](auto& m, auto ids) {
  nn::routing_summary routing;
  const auto logits = nn::language_model<"expert">(m, ids, options<true>, routing);
  return logits - gs::logsumexp<"GBTV->GBT">(logits);
};
using cached_beams = gs::program<beam_step, mesh, one_position, in<"", void, std::int32_t>, one_position>;
using whole_beams = gs::program<beam_without_cache, mesh, ids_of<"GBT">>;

constexpr std::size_t beam_rows = 5;
const gs::dims beam_extents{{'G', G},  {'B', beam_rows}, {'T', T},  {'M', 16}, {'H', 2}, {'R', 2},
                            {'D', 4}, {'F', 24},        {'E', 3}, {'V', V},  {'L', T}};

/// Log probabilities [G,B,V] of a step, computed from all tokens so far of every row.
class whole_prefixes {
 public:
  whole_prefixes(const gs::cluster<mesh>& on, gs::parameter_store store) : run_(on, beam_extents, store), rows_(G * beam_rows * T) {}

  std::vector<float> operator()(const gs::beam_search& search) {
    const std::vector<std::int32_t> before = rows_;
    const auto t = std::size_t(search.position());
    for (std::size_t row = 0; row < G * beam_rows; ++row) {
      const std::size_t from = row - row % beam_rows + std::size_t(search.order()[row]);
      for (std::size_t k = 0; k < t; ++k) rows_[row * T + k] = before[from * T + k];
      rows_[row * T + t] = search.ids()[row];
    }
    const std::vector<float> all = run_(rows_).floats();
    std::vector<float> now;
    for (std::size_t row = 0; row < G * beam_rows; ++row)
      for (std::size_t v = 0; v < V; ++v) now.push_back(all[(row * T + t) * V + v]);
    return now;
  }

 private:
  planned::executable<whole_beams> run_;
  std::vector<std::int32_t> rows_;
};

}  // namespace

TEST_CASE("language_model: with a sharded sequence, losses and gradients are those of one device") {
  static constexpr auto step = [](auto& m, auto ids, auto labels, auto rate) {
    nn::routing_summary routing;
    constexpr nn::language_model_options in_ring{
        .moe = {.routing = {.k = 2, .slots = gs::capacity{3}}, .swiglu = true}, .sequence_axis = "seq"};
    const auto loss = nn::token_loss(nn::language_model<"data">(m, ids, in_ring, routing), labels);
    gs::adam{}.minimize(m, m.objective(loss, 0.1), rate);
    return loss;
  };
  const auto losses = [&]<int Devices>(std::integral_constant<int, Devices>, int data) {
    using ring = gs::mesh<gs::axis<"data">, gs::axis<"seq", Devices>>;
    using sequences = in<"GBT", P<"data", none, "seq">, std::int32_t>;
    const auto on = gs::simulate<ring>({data, Devices});
    planned::executable<gs::program<step, ring, sequences, sequences, in<"">>> run(on, extents, gs::parameter_store(on, 3));
    std::vector<double> all;
    for (int i = 0; i < 5; ++i) {
      const batch b(i);
      all.push_back(run(b.ids, b.labels, std::vector{5e-3f}).item());
    }
    return all;
  };
  const std::vector<double> one = losses(std::integral_constant<int, 1>{}, 1);
  for (const int data : {1, 2})
    for (std::size_t i = 0; const double loss : losses(std::integral_constant<int, 3>{}, data))
      CHECK(loss == doctest::Approx(one[i++]).epsilon(1e-4));
}

template <bool Tied>
constexpr auto prompt_step = [](auto& m, auto ids, auto position) {
  return nn::language_model_step<"expert">(m, ids, position, options<Tied>);
};

TEST_CASE("language_model_step: a prompt in one step, or in two, has the logits of all positions, and leaves the caches of single steps") {
  using prompt = gs::program<prompt_step<false>, mesh, ids_of<"GBT">, in<"", void, std::int32_t>>;
  const auto close = [](const std::vector<float>& some, const std::vector<float>& all, std::size_t first, std::size_t count) {
    double most = 0;
    for (std::size_t row = 0; row < G * B; ++row)
      for (std::size_t i = 0; i < count * V; ++i)
        most = std::max(most, std::fabs(double(some[row * count * V + i]) - double(all[(row * T + first) * V + i])));
    return most < 1e-4;
  };
  for (const std::vector<int>& devices : {std::vector{1, 1}, std::vector{2, 1}, std::vector{2, 2}, std::vector{1, 3}}) {
    const auto on = gs::simulate<mesh>(devices);
    gs::parameter_store store(on, 3);
    train<false>(on, store, 3);
    const batch of(5);
    planned::executable<whole<false>> without(on, extents, store);
    const std::vector<float> all = without(of.ids).floats();
    const auto part = [&](std::size_t first, std::size_t count) {
      std::vector<std::int32_t> ids;
      for (std::size_t row = 0; row < G * B; ++row)
        for (std::size_t t = first; t < first + count; ++t) ids.push_back(of.ids[row * T + t]);
      return ids;
    };
    for (const std::size_t cut : {std::size_t(1), std::size_t(4), T - 1}) {
      CAPTURE(cut);
      gs::dims first = extents, rest = extents;
      first.set('T', std::int64_t(cut));
      rest.set('T', std::int64_t(T - cut));
      planned::executable<prompt> begin(on, first, store), go_on(on, rest, store);
      planned::executable<cached<false>> one(on, extents, store);
      CHECK(close(begin(part(0, cut), std::vector{0}).floats(), all, 0, cut));
      CHECK(close(one(part(cut, 1), std::vector{std::int32_t(cut)}).floats(), all, cut, 1));
      CHECK(close(go_on(part(cut, T - cut), std::vector{std::int32_t(cut)}).floats(), all, cut, T - cut));
      for (const int outside : {-1, int(cut) + 1})  // the last position is T, and the cache has T positions
        CHECK_THROWS_AS(go_on(part(cut, T - cut), std::vector{std::int32_t(outside)}), gs::error);
    }
  }
}

TEST_CASE("language_model_step: beams with a cache are those that compute every prefix anew, on any mesh") {
  for (const std::size_t width : {std::size_t(1), std::size_t(2), std::size_t(4)}) {
    CAPTURE(width);
    std::vector<std::vector<std::int32_t>> beginnings(G * (beam_rows / width));  // of 1 to 3 tokens
    for (std::size_t s = 0; s < beginnings.size(); ++s)
      for (std::size_t i = 0; i < 1 + s % 3; ++i) beginnings[s].push_back(std::int32_t(1 + (s * 5 + i * 2) % (V - 1)));
    const gs::beam_options search_options{.width = width, .end = 4, .length_exponent = 1};
    std::vector<gs::beam_search> found;
    for (const std::vector<int>& devices : std::vector<std::vector<int>>{{1, 1}, {2, 1}, {1, 2}, {2, 2}}) {
      CAPTURE(devices);
      const auto on = gs::simulate<mesh>(devices);
      gs::parameter_store store(on, 3);
      planned::executable<cached_beams> step(on, beam_extents, store);
      whole_prefixes without_cache(on, store);
      gs::beam_search search(beginnings, {G, beam_rows}, search_options), whole = search;
      std::size_t changed = 0;  // rows that continue another one
      while (!search.done() && search.position() < std::int32_t(T)) {
        CAPTURE(search.position());
        const std::vector<float> with = step(search.ids(), std::array{search.position()}, search.order()).floats();
        const std::vector<float> without = without_cache(search);
        REQUIRE(with.size() == without.size());
        for (std::size_t i = 0; i < with.size(); ++i) CHECK(with[i] == doctest::Approx(without[i]).epsilon(1e-4));
        for (std::size_t row = 0; row < G * beam_rows; ++row) changed += std::size_t(search.order()[row]) != row % beam_rows;
        search.advance(with);
        whole.advance(without);
        REQUIRE(whole.order() == search.order());
        REQUIRE(whole.ids() == search.ids());
      }
      CHECK((changed > 0) == (width > 1));
      found.push_back(search);
      for (std::size_t s = 0; s < beginnings.size(); ++s) {
        REQUIRE(search.beam(s).size() == width);
        for (std::size_t k = 0; k < width; ++k) {
          CHECK(search.beam(s)[k].ids == found[0].beam(s)[k].ids);
          CHECK(search.beam(s)[k].ids == whole.beam(s)[k].ids);
          CHECK(search.beam(s)[k].score == doctest::Approx(found[0].beam(s)[k].score).epsilon(1e-4));
        }
      }
      CHECK_THROWS_AS(step(search.ids(), std::array{std::int32_t(0)}, std::vector<std::int32_t>(G * beam_rows, beam_rows)), gs::error);
    }
  }
}

namespace {

template <gs::dtype Stored>
constexpr auto step_with_cache_in = [](auto& m, auto ids, auto position, auto order) {
  return nn::language_model_step<"expert">(
      m, ids, position, {.layers = 2, .moe = {.routing = {.evaluation_slots = {3}}, .swiglu = true}, .cache_dtype = Stored}, order);
};
template <gs::dtype Stored>
using cache_in = gs::program<step_with_cache_in<Stored>, mesh, one_position, in<"", void, std::int32_t>, one_position>;

}  // namespace

TEST_CASE("language_model_step: caches in bf16 hold the rounded numbers of float ones, and logits differ by as much, on any mesh") {
  std::vector<float> first;
  for (const std::vector<int>& devices : std::vector<std::vector<int>>{{1, 1}, {2, 1}, {1, 3}, {2, 2}}) {
    CAPTURE(devices);
    const auto on = gs::simulate<mesh>(devices);
    gs::parameter_store in_float(on, 3), in_bf16(on, 3);
    planned::executable<cache_in<gs::dtype::f32>> full(on, extents, in_float);
    planned::executable<cache_in<gs::dtype::bf16>> stored(on, extents, in_bf16);
    std::vector<std::int32_t> now(G * B), order(G * B);
    std::vector<float> all;
    double largest = 0;
    for (std::size_t t = 0; t < T; ++t) {
      for (std::size_t row = 0; row < G * B; ++row) {
        now[row] = std::int32_t(1 + (row * 5 + t * t) % (V - 1));
        order[row] = std::int32_t((row + t / 3) % B);  // rows are permuted as well
      }
      const std::vector<float> expected = full(now, std::array{std::int32_t(t)}, order).floats(),
                               logits = stored(now, std::array{std::int32_t(t)}, order).floats();
      for (std::size_t i = 0; i < logits.size(); ++i) {
        const double error = std::abs(double(logits[i]) - double(expected[i]));
        largest = std::max(largest, error);
        CHECK(error < 0x1p-6 * (1 + std::abs(double(expected[i]))));  // bf16 has 8 bits
      }
      all.insert(all.end(), logits.begin(), logits.end());
    }
    CHECK(largest > 0);
    // Keys and values of the first layer depend only on the embeddings.
    for (const std::string name : {"model.layers.0.self_attn.key_cache", "model.layers.0.self_attn.value_cache"}) {
      const std::vector<float> numbers = gs::to_global<float>(in_float, name);
      const std::vector<gs::bfloat16> rounded = gs::to_global<gs::bfloat16>(in_bf16, name);
      CHECK(std::equal(numbers.begin(), numbers.end(), rounded.begin(), rounded.end(),
                       [](float number, gs::bfloat16 r) { return gs::bfloat16(number) == r; }));
    }
    if (first.empty()) first = all;
    for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i] == doctest::Approx(first[i]).epsilon(1e-2));
  }
}

TEST_CASE("language_model_step: beams of width 1 are greedy decoding") {
  const auto on = gs::simulate<mesh>({2, 2});
  planned::executable<cached_beams> step(on, beam_extents, gs::parameter_store(on, 3));
  planned::executable<cached<true>> greedy(on, beam_extents, gs::parameter_store(on, 3));
  std::vector<std::vector<std::int32_t>> expected;
  for (std::size_t row = 0; row < G * beam_rows; ++row) expected.push_back({std::int32_t(1 + row % (V - 1))});
  gs::beam_search search(expected, {G, beam_rows}, {.width = 1, .excluded = {}});
  std::vector<std::int32_t> now = search.ids();
  for (std::int32_t t = 0; t < std::int32_t(T); ++t) {
    search.advance(step(search.ids(), std::array{t}, search.order()).floats());
    now = greedy(now, std::array{t}).integers(1);
    for (std::size_t row = 0; row < now.size(); ++row) expected[row].push_back(now[row]);
  }
  for (std::size_t row = 0; row < now.size(); ++row) CHECK(search.best(row).ids == expected[row]);
}

TEST_CASE("sample_token: frequencies are softmax(logits / temperature), with every sharding the same tokens") {
  constexpr auto draw = [](auto& m, auto logits) { return nn::sample_token(m, logits, 2); };
  using program = gs::program<draw, mesh, in<"GBV", P<"data", none, none>>>;
  constexpr std::size_t draws = 6000, words = 3;
  std::vector<float> logits(draws * words);
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = float(i % words) * 2;
  std::vector<std::int32_t> expected;
  for (const std::vector<int>& devices : std::vector<std::vector<int>>{{1, 1}, {2, 2}}) {
    const auto on = gs::simulate<mesh>(devices);
    planned::executable<program> run(on, {{'G', 60}, {'B', 100}, {'V', words}}, gs::parameter_store(on));
    const std::vector<std::int32_t> drawn = run(logits).integers(0);
    if (expected.empty()) expected = drawn;
    CHECK(drawn == expected);
    const double total = 1 + std::exp(1.0) + std::exp(2.0);
    for (std::int32_t v = 0; v < std::int32_t(words); ++v)
      CHECK(double(std::count(drawn.begin(), drawn.end(), v)) / draws == doctest::Approx(std::exp(double(v)) / total).epsilon(0.08));
  }
}

TEST_CASE("token_loss: the mean over labels that are not negative, and 0 with gradient 0 if all are") {
  constexpr auto with_gradient = [](auto&, auto logits, auto labels) {
    const gs::symbol loss = nn::token_loss(logits, labels);
    return std::tuple{loss, gs::gradients(loss, std::array<gs::symbol, 1>{logits})[0]};
  };
  using program = gs::program<with_gradient, mesh, in<"GTV", P<"data", none, "expert">>, in<"GT", P<"data", none>, std::int32_t>>;
  constexpr std::size_t rows = 6, words = 5;
  std::vector<float> logits(rows * words);
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = float((i * 7) % 11) / 4;
  for (const std::vector<int>& devices : std::vector<std::vector<int>>{{1, 1}, {2, 2}, {3, 1}}) {
    const auto on = gs::simulate<mesh>(devices);
    planned::executable<program> run(on, {{'G', 3}, {'T', 2}, {'V', words}}, gs::parameter_store(on));
    for (std::size_t labelled = 0; labelled <= rows; ++labelled) {
      CAPTURE(labelled);
      std::vector<std::int32_t> labels(rows, -1);
      for (std::size_t r = 0; r < labelled; ++r) labels[rows - 1 - r] = std::int32_t(r % words);
      double expected = 0;
      std::vector<double> expected_gradient(rows * words, 0);
      for (std::size_t r = 0; r < rows; ++r) {
        if (labels[r] < 0) continue;
        const float* const row = &logits[r * words];
        double total = 0;
        for (std::size_t v = 0; v < words; ++v) total += std::exp(double(row[v]));
        expected += (std::log(total) - double(row[labels[r]])) / double(labelled);
        for (std::size_t v = 0; v < words; ++v)
          expected_gradient[r * words + v] = (std::exp(double(row[v])) / total - (std::int32_t(v) == labels[r])) / double(labelled);
      }
      const planned::results found = run(logits, labels);
      CHECK(found.item() == doctest::Approx(expected).epsilon(1e-5));
      const gs::testing::array& g = found.all[1];
      for (std::size_t i = 0; i < g.size(); ++i) CHECK(g[i] == doctest::Approx(expected_gradient[i]).epsilon(1e-4));
    }
  }
}
