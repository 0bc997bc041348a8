// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/io/hugging_face.hpp>

#include <gshard/exec/program/executable.hpp>
#include <gshard/io/checkpoint.hpp>
#include <gshard/models/language_model.hpp>
#include <gshard/eager/reshard.hpp>
#include <gshard/train/adam.hpp>

#include "mixtral.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace gs = gshard;
namespace nn = gshard::nn;
using gs::in, gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"data">, gs::axis<"expert">>;

namespace {

constexpr mixtral::config small;
const std::vector<std::vector<int>> meshes{{1, 1}, {2, 2}, {3}, {2, 3}};

gs::parameter_store store_on(const std::vector<int>& devices, std::uint64_t seed = 1, gs::dtype type = gs::dtype::f32,
                             std::vector<stores::tensor_case> tensors = {}) {
  if (tensors.empty()) tensors = mixtral::parameters(small, type);
  gs::parameter_store store = stores::make(stores::simulated(devices), tensors, seed);
  stores::clear(store);
  return store;
}

/// The tensors of a file: "F32[11,12]" and bytes by name.
std::map<std::string, std::pair<std::string, std::string>> content(const std::string& path) {
  const gs::safetensors_reader file(path);
  std::map<std::string, std::pair<std::string, std::string>> all;
  for (const gs::array_info& a : file.arrays()) {
    std::string bytes(std::size_t(a.bytes()), ' ');
    file.read(a.name, std::as_writable_bytes(std::span(bytes)));
    all[a.name] = {gs::text_of(a), bytes};
  }
  return all;
}
std::map<std::string, std::pair<std::string, std::string>> expected(const mixtral::weights& all, const std::string& type) {
  std::map<std::string, std::pair<std::string, std::string>> texts;
  for (const auto& [name, w] : all) {
    texts[name].first = type + w.shape();
    for (const float x : w.data) texts[name].second += mixtral::bytes_of(x, type);
  }
  return texts;
}

// ---- A model.

constexpr std::size_t G = 4, T = 6;
const gs::dims extents{{'G', G}, {'B', 1}, {'T', T}, {'L', T}, {'M', std::int64_t(small.model)}, {'H', std::int64_t(small.key_heads)},
                       {'R', std::int64_t(small.queries)}, {'D', std::int64_t(small.head)}, {'F', std::int64_t(small.hidden)},
                       {'E', std::int64_t(small.experts)}, {'V', std::int64_t(small.words)}};

constexpr nn::moe_options slots{.routing = {.k = 2, .slots = gs::capacity::unlimited()}, .swiglu = true};
constexpr nn::moe_options in_groups{
    .routing = {.k = 2, .slots = gs::capacity::unlimited()}, .experts = gs::experts::in_groups(2), .swiglu = true};
constexpr nn::moe_options dropless{.routing = {.k = 2}, .experts = gs::experts::dropless(2), .swiglu = true};

constexpr nn::moe_options in_bf16(nn::moe_options moe) {
  moe.param_dtype = gs::dtype::bf16;
  return moe;
}
constexpr nn::moe_options slots_in_bf16 = in_bf16(slots), groups_in_bf16 = in_bf16(in_groups), dropless_in_bf16 = in_bf16(dropless);

constexpr nn::language_model_options options(const nn::moe_options& moe) {
  return {.layers = 2, .moe_every = 1, .moe = moe, .rotary_base = 1e6, .tied_head = false, .param_dtype = moe.param_dtype};
}
template <auto& Moe>
constexpr auto all_logits = [](auto& m, auto ids) {
  nn::routing_summary routing;
  return nn::language_model<"expert">(m, ids, options(Moe), routing);
};
constexpr auto decoding_step = [](auto& m, auto ids, auto position) {
  return nn::language_model_step<"expert">(m, ids, position, options(slots));
};
constexpr auto devices = gs::axes<"data", "expert">;
template <auto& Moe>
using whole = gs::program<all_logits<Moe>, mesh, in<"GBT", P<devices, none, none>, std::int32_t>>;
using decoding = gs::program<decoding_step, mesh, in<"GB", P<devices, none>, std::int32_t>, in<"", void, std::int32_t>>;

std::vector<std::int32_t> some_ids() {
  std::vector<std::int32_t> ids;
  for (std::size_t i = 0; i < G * T; ++i) ids.push_back(std::int32_t(1 + (i * i + i / T) % (small.words - 1)));
  return ids;
}
/// Compares logits [G,T,V] of ids [G,T] with those of the plain loops.
void compare(const std::vector<float>& found, const mixtral::weights& all, const std::vector<std::int32_t>& ids) {
  REQUIRE(found.size() == G * T * small.words);
  for (std::size_t g = 0; g < G; ++g) {
    const auto first = ids.begin() + std::ptrdiff_t(g * T);
    const std::vector<mixtral::vector> rows = mixtral::logits(small, all, {first, first + std::ptrdiff_t(T)});
    for (std::size_t t = 0; t < T; ++t)
      for (std::size_t v = 0; v < small.words; ++v)
        CHECK(double(found[(g * T + t) * small.words + v]) == doctest::Approx(rows[t][v]).epsilon(1e-4).scale(1));
  }
}

template <auto& Moe>
void compare_model(const std::vector<int>& shape, const std::string& path, const mixtral::weights& all) {
  const auto on = gs::simulate<mesh>(shape);
  gs::parameter_store store(on, 7);
  gs::executable<whole<Moe>> run(on, extents, store);
  gs::load_hugging_face(store, path);
  const std::vector<std::int32_t> ids = some_ids();
  compare(gs::to_global(run(ids)), all, ids);
  for (const auto& [name, entry] : store.saved()) {
    const bool is_weight = entry.value.rank() > 1 && !name.ends_with(".wg");
    CHECK(entry.value.type == (is_weight && Moe.param_dtype.is_set ? gs::dtype::bf16 : gs::dtype::f32));
  }
  const scratch dir;  // the files have BF16
  gs::save_hugging_face(store, dir / "saved", {.type = gs::dtype::bf16});
  CHECK(content(dir / "saved/model.safetensors") == expected(all, "BF16"));
}

}  // namespace

TEST_CASE("hugging_face: a loaded model computes what Mixtral does, on any mesh, with experts in groups and without slots") {
  const scratch dir;
  const mixtral::weights all = mixtral::make(small);
  set_content(dir / "model.safetensors", mixtral::file_of(all, "BF16"));
  for (const std::vector<int>& shape : std::vector<std::vector<int>>{{1, 1}, {2, 2}, {1, 4}}) compare_model<slots>(shape, dir / "", all);
  compare_model<in_groups>({2, 2}, dir / "model.safetensors", all);
  for (const std::vector<int>& shape : std::vector<std::vector<int>>{{1, 1}, {2, 2}}) compare_model<dropless>(shape, dir / "", all);
}

TEST_CASE("hugging_face: weights in BF16 are loaded into parameters in bf16, bit for bit, and compute what Mixtral does") {
  const scratch dir;
  const mixtral::weights all = mixtral::make(small);
  set_content(dir / "model.safetensors", mixtral::file_of(all, "BF16"));
  for (const std::vector<int>& shape : std::vector<std::vector<int>>{{1, 1}, {2, 2}}) compare_model<slots_in_bf16>(shape, dir / "", all);
  compare_model<groups_in_bf16>({2, 2}, dir / "", all);
  compare_model<dropless_in_bf16>({2, 2}, dir / "", all);
}

TEST_CASE("hugging_face: decoding with caches, which a load leaves alone") {
  const scratch dir;
  const mixtral::weights all = mixtral::make(small, 2);
  set_content(dir / "model.safetensors", mixtral::file_of(all));
  const auto on = gs::simulate<mesh>({2, 2});
  gs::parameter_store store(on, 7);
  gs::executable<decoding> next(on, extents, store);
  gs::load_hugging_face(store, dir / "");
  const std::vector<std::int32_t> ids = some_ids();
  std::vector<float> found(G * T * small.words);
  for (std::size_t t = 0; t < T; ++t) {
    std::vector<std::int32_t> now;
    for (std::size_t g = 0; g < G; ++g) now.push_back(ids[g * T + t]);
    const std::vector<float> logits = gs::to_global(next(now, std::vector{std::int32_t(t)}));
    for (std::size_t i = 0; i < logits.size(); ++i) found[(i / small.words * T + t) * small.words + i % small.words] = logits[i];
  }
  compare(found, all, ids);
  gs::save_hugging_face(store, dir / "saved");
  CHECK(content(dir / "saved/model.safetensors") == expected(all, "F32"));
}

TEST_CASE("hugging_face: every element arrives, from files of any type to parameters of any type, sharding and device order") {
  const mixtral::weights all = mixtral::make(small);
  for (const char* const type : {"F32", "BF16", "F16", "F64"}) {
    const scratch dir;
    set_content(dir / "model.safetensors", mixtral::file_of(all, type));
    for (const gs::dtype of_store : {gs::dtype::f32, gs::dtype::bf16, gs::dtype::f16, gs::dtype::f64})
      for (const std::vector<int>& shape : meshes)
        for (std::uint64_t seed = 0; seed < 3; ++seed) {
          CAPTURE(type);
          CAPTURE(gs::cpp_name(of_store));
          CAPTURE(gs::detail::mesh_text(shape));
          CAPTURE(seed);
          gs::parameter_store store = store_on(shape, seed, of_store);
          gs::load_hugging_face(store, dir / "");
          CHECK(mixtral::wrong(store, small, all) == 0);
        }
  }
}

TEST_CASE("hugging_face: several files with an index, by directory and by the index") {
  const mixtral::weights all = mixtral::make(small);
  for (const std::size_t n : {1u, 2u, 5u}) {
    const scratch dir;
    mixtral::write_files(dir, all, n, "F16");
    for (const std::string& path : {dir / "", dir / "model.safetensors.index.json"}) {
      gs::parameter_store store = store_on({2, 2});
      gs::load_hugging_face(store, path);
      CHECK(mixtral::wrong(store, small, all) == 0);
    }
  }
}

TEST_CASE("hugging_face: saved names, shapes and bits are those that were loaded, on any mesh") {
  const mixtral::weights all = mixtral::make(small);
  const scratch dir;
  set_content(dir / "f", mixtral::file_of(all));
  std::string first;
  for (const std::vector<int>& shape : meshes)
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      gs::parameter_store store = store_on(shape, seed);
      gs::load_hugging_face(store, dir / "f");
      gs::save_hugging_face(store, dir / "saved");
      CHECK(content(dir / "saved/model.safetensors") == expected(all, "F32"));
      const std::string bytes = content_of(dir / "saved/model.safetensors");
      if (first.empty()) first = bytes;
      CHECK(bytes == first);
    }
  CHECK(gs::safetensors_reader(dir / "saved/model.safetensors").metadata() == std::map<std::string, std::string>{{"format", "pt"}});
}

TEST_CASE("hugging_face: numbers of half precision survive a way through float parameters, bit for bit") {
  for (const auto& [type, name] : {std::pair{gs::dtype::bf16, "BF16"}, {gs::dtype::f16, "F16"}}) {
    const scratch dir;
    const mixtral::weights all = mixtral::make(small);
    std::string file = mixtral::file_of(all, name);
    std::mt19937_64 random(5);
    std::size_t data = 0;
    for (const auto& [tensor, w] : all) data += 2 * w.data.size();
    for (std::size_t i = file.size() - data; i < file.size(); i += 2) {  // any bits except NaN and infinities
      file[i] = char(random());
      file[i + 1] = char(random() & (type == gs::dtype::bf16 ? 0xbeu : 0xbbu));
    }
    set_content(dir / "model.safetensors", file);
    gs::parameter_store store = store_on({2, 2});
    gs::load_hugging_face(store, dir / "");
    gs::save_hugging_face(store, dir / "saved", {.type = type});
    const auto saved = content(dir / "saved/model.safetensors");
    const gs::safetensors_reader original(dir / "model.safetensors", {.verify = false});
    CHECK(saved.size() == all.size());
    for (const gs::array_info& a : original.arrays()) {
      std::string bytes(std::size_t(a.bytes()), ' ');
      original.read(a.name, std::as_writable_bytes(std::span(bytes)));
      CHECK(saved.at(a.name) == std::pair{gs::text_of(a), bytes});
    }
  }
}

TEST_CASE("hugging_face: a save to several files, which a load reads") {
  const mixtral::weights all = mixtral::make(small);
  const scratch dir;
  set_content(dir / "f", mixtral::file_of(all));
  gs::parameter_store store = store_on({2, 2});
  gs::load_hugging_face(store, dir / "f");
  gs::save_hugging_face(store, dir / "saved", {.file_bytes = 3000});
  const std::string index = content_of(dir / "saved/model.safetensors.index.json");
  std::size_t bytes = 0, found = 0;
  for (const auto& [name, w] : all) bytes += 4 * w.data.size();
  CHECK(contains(index, "\"total_size\": " + std::to_string(bytes)));
  const std::size_t files = std::size_t(std::distance(std::filesystem::directory_iterator(dir / "saved"), {})) - 1;
  REQUIRE(files > 5);
  for (std::size_t i = 1; i <= files; ++i) {
    const auto digits = [](std::size_t n) { return std::string(n < 10 ? "0000" : "000") + std::to_string(n); };
    const std::string file = "model-" + digits(i) + "-of-" + digits(files) + ".safetensors";
    std::size_t of_file = 0;
    for (const auto& [name, tensor] : content(dir / ("saved/" + file))) {
      CHECK(tensor == expected(all, "F32").at(name));
      CHECK(contains(index, "\"" + name + "\": \"" + file + "\""));
      of_file += tensor.second.size();
      ++found;
    }
    CHECK(of_file <= 3000);
  }
  CHECK(found == all.size());
  gs::parameter_store again = store_on({3});
  gs::load_hugging_face(again, dir / "saved");
  CHECK(mixtral::wrong(again, small, all) == 0);

  const std::string irreplaceable = ", a model that this one cannot replace in one step; save to another directory";
  CHECK(complaint([&] { gs::save_hugging_face(store, dir / "saved"); }) ==
        (dir / "saved") + ": has model.safetensors.index.json" + irreplaceable);
  gs::save_hugging_face(store, dir / "one");
  CHECK(complaint([&] { gs::save_hugging_face(store, dir / "one", {.file_bytes = 1}); }) ==
        (dir / "one") + ": has model.safetensors" + irreplaceable);
  gs::save_hugging_face(store, dir / "one");
  CHECK(contains(complaint([&] { gs::save_hugging_face(store, dir / "none/deeper"); }), "No such file or directory"));
  CHECK(contains(complaint([&] { gs::save_hugging_face(store, dir / "f"); }), (dir / "f") + "/model.safetensors"));
}

TEST_CASE("hugging_face: a trained model is saved without the state of its optimizer, and continues") {
  constexpr auto step = [](auto& m, auto ids, auto labels, auto rate) {
    nn::routing_summary routing;
    const auto loss = nn::token_loss(nn::language_model<"expert">(m, ids, options(slots), routing), labels);
    gs::adam{}.minimize(m, m.objective(loss, 0.01), rate);
    return loss;
  };
  using sequences = in<"GBT", P<devices, none, none>, std::int32_t>;
  const scratch dir;
  const mixtral::weights all = mixtral::make(small);
  set_content(dir / "f", mixtral::file_of(all));
  const auto on = gs::simulate<mesh>({2, 2});
  const auto one = gs::simulate<mesh>({1, 1});
  gs::parameter_store store(on, 7), other(one, 8);
  gs::executable<gs::program<step, mesh, sequences, sequences, in<"">>> train(on, extents, store);
  gs::load_hugging_face(store, dir / "f");
  for (int i = 0; i < 3; ++i) train(some_ids(), some_ids(), std::vector{1e-3f});
  gs::save_hugging_face(store, dir / "saved");
  CHECK(content(dir / "saved/model.safetensors").size() == all.size());
  gs::executable<whole<slots>> here(on, extents, store), there(one, extents, other);
  gs::load_hugging_face(other, dir / "saved");
  const std::vector<float> x = gs::to_global(here(some_ids())), y = gs::to_global(there(some_ids()));
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(x[i] == doctest::Approx(y[i]).epsilon(1e-4).scale(1));
  CHECK(store.steps() == 3);
}

TEST_CASE("hugging_face: files that do not fit are refused by tensor, parameter and file, and the store stays") {
  const scratch dir;
  const mixtral::weights all = mixtral::make(small);
  gs::parameter_store store = store_on({2, 2});
  const std::string path = dir / "f", unfit = path + ": does not fit the store: ";
  const auto loading = [&](const std::string& file) {
    set_content(path, file);
    const std::string said = complaint([&] { gs::load_hugging_face(store, path); });
    CHECK(stores::written(store) == 0);
    return said;
  };
  const std::string q = "model.layers.1.self_attn.q_proj.weight", w2 = "model.layers.0.block_sparse_moe.experts.3.w2.weight";
  mixtral::weights fewer = all;
  fewer.erase(w2);
  CHECK(loading(mixtral::file_of(fewer)) == unfit + "\"" + w2 + "\" of parameter \"model.layers.0.block_sparse_moe.wo\" is missing");
  fewer = all;
  std::swap(fewer.at(w2).rows, fewer.at(w2).columns);
  CHECK(loading(mixtral::file_of(fewer, "BF16")) ==
        unfit + "\"" + w2 + "\" of parameter \"model.layers.0.block_sparse_moe.wo\" is BF16[10,12] in " + path + " and F32[12,10] here");
  CHECK(loading(mixtral::file_of(all, "F32", {{q, "[2,2,4,12]"}})) ==
        unfit + "\"" + q + "\" of parameter \"" + q + "\" is F32[2,2,4,12] in " + path + " and F32[16,12] here");
  mixtral::weights more = all;
  more["model.layers.2.input_layernorm.weight"] = {12, 0, std::vector<float>(12)};
  CHECK(loading(mixtral::file_of(more)) == unfit + "\"model.layers.2.input_layernorm.weight\" in " + path +
                                                 " is unknown to the store; all programs must be bound to the store before it is loaded");
  const std::string integers = loading(mixtral::file_of(all, "I32"));
  CHECK(integers.starts_with(unfit + "\"lm_head.weight\" of parameter \"lm_head.weight\" is I32[11,12], not F32, F64, F16 or BF16, in " +
                             path + " and F32[11,12] here, \""));
  CHECK(integers.ends_with(", and 33 more"));
  CHECK(loading(mixtral::file_of(all).substr(0, 4000)).starts_with(path + ": is truncated: "));
  const std::string whole = mixtral::file_of(all);
  for (const std::size_t less : {1u, 40u}) {  // the last tensor is cut off
    const std::string cut = loading(whole.substr(0, whole.size() - less));
    CHECK(cut.starts_with(path + ": the header: its tensors have "));
    CHECK(cut.ends_with(": \"model.norm.weight\" is cut off"));
  }
  CHECK(contains(loading(whole + "x"), path + ": the header: its tensors have "));
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string file = whole;
    file.replace(file.find(from), from.size(), to);  // of the same length, so that the header's length stays
    return loading(file);
  };
  CHECK(changed(R"("dtype":"F32")", R"("dtype":"F31")") ==
        path + ": the header: \"lm_head.weight\" has dtype \"F31\", which is not one of F32, F64, I32, I64, F16, BF16, BOOL, U8");
  CHECK(changed("[11,12]", "[1,112]") ==
        path + ": the header: \"lm_head.weight\" is F32[1,112], but its data_offsets are 0 and 528");
  CHECK(changed("model.norm.weight", "model.norm.weighT")
            .starts_with(unfit + "\"model.norm.weight\" of parameter \"model.norm.weight\" is missing, "));
  CHECK(changed("layers.1.input_layernorm", "layers.0.input_layernorm") ==
        path + ": the header: \"model.layers.0.input_layernorm.weight\" occurs twice");
  CHECK(contains(changed(R"("data_offsets":[0,)", R"("data_offsets":[9,)"), path + ": the header: \"lm_head.weight\" is F32[11,12], but"));
  CHECK(contains(changed("{", "["), path + ": the header: "));
  CHECK(contains(loading(std::string(8, '\xff') + whole.substr(8)),
                 path + ": is no safetensors file: its header would have 18446744073709551615 bytes, more than "));
  CHECK(contains(loading(std::string("\0\0\0\0\0\0\0\x80", 8) + whole.substr(8)),
                 path + ": is no safetensors file: its header would have 9223372036854775808 bytes"));
  CHECK(contains(loading(std::string(8, '\0')), path + ": the header: does not start with {"));
  for (const char* const garbage : {"", "{}", "not a safetensors file"}) CHECK(loading(garbage).starts_with(path + ": "));
  set_content(path, mixtral::file_of(all));
  gs::load_hugging_face(store, path);
  CHECK(mixtral::wrong(store, small, all) == 0);
}

TEST_CASE("hugging_face: files of an index that do not fit are refused by file and tensor, and the store stays") {
  const mixtral::weights all = mixtral::make(small);
  gs::parameter_store store = store_on({2, 2});
  const scratch dir;
  const std::string index = dir / "model.safetensors.index.json", part = dir / "part-1.safetensors";
  const auto loading = [&](auto spoil) {
    mixtral::write_files(dir, all, 3);
    spoil();
    const std::string said = complaint([&] { gs::load_hugging_face(store, dir / ""); });
    CHECK(stores::written(store) == 0);
    return said;
  };
  CHECK(loading([&] { std::filesystem::remove(part); }) ==
        part + ": is missing, but " + index + " places \"model.embed_tokens.weight\" there");
  CHECK(loading([&] { set_content(part, content_of(part).substr(0, content_of(part).size() - 1)); }).ends_with("\" is cut off"));
  CHECK(loading([&] { set_content(part, content_of(dir / "part-0.safetensors")); }) ==
        part + ": has \"lm_head.weight\", which the index does not place there");
  CHECK(loading([&] { set_content(index, content_of(index).substr(1)); }) == index + ": is not JSON");
  CHECK(loading([&] {
          mixtral::weights without = all;
          without.erase("model.norm.weight");
          mixtral::write_files(dir, without, 3);
        }) == (dir / "") + ": does not fit the store: \"model.norm.weight\" of parameter \"model.norm.weight\" is missing");
  mixtral::write_files(dir, all, 3);
  gs::load_hugging_face(store, dir / "");
  CHECK(mixtral::wrong(store, small, all) == 0);
}

TEST_CASE("hugging_face: parameters that have no place are named") {
  const scratch dir;
  set_content(dir / "f", mixtral::file_of(mixtral::make(small)));
  const auto both = [&](gs::parameter_store store) {
    const std::string loading = complaint([&] { gs::load_hugging_face(store, dir / "f"); });
    CHECK(complaint([&] { gs::save_hugging_face(store, dir / "saved"); }) == loading);
    return loading;
  };
  const auto with = [&](const stores::tensor_case& one) {
    std::vector<stores::tensor_case> tensors = mixtral::parameters(small);
    tensors.push_back(one);
    return both(store_on({2}, 1, gs::dtype::f32, tensors));
  };
  CHECK(with({"model.layers.0.block_sparse_moe.bi", gs::dtype::f32, {4, 10}}) ==
        "parameter \"model.layers.0.block_sparse_moe.bi\": files of Hugging Face's Mixtral have no place for it");
  CHECK(with({"model.layers.0.mlp.up_proj.weight", gs::dtype::i32, {2, 2}}) ==
        "parameter \"model.layers.0.mlp.up_proj.weight\": its elements are int32, not floating-point numbers");
  CHECK(with({"model.layers.0.mlp.up_proj.weight", gs::dtype::f32, {2, 2, 2}}) ==
        "\"model.layers.0.mlp.up_proj.weight\": the parameter has 3 dims, not 2");
  // Five experts in two groups have slots for six.
  std::vector<stores::tensor_case> grouped = mixtral::parameters(small);
  grouped.push_back({"model.layers.9.block_sparse_moe.wg", gs::dtype::f32, {3, 5}});
  grouped.push_back({"model.layers.9.block_sparse_moe.wi", gs::dtype::f32, {2, 3, 3, 4}});
  CHECK(both(store_on({2}, 1, gs::dtype::f32, grouped)) == "parameter \"model.layers.9.block_sparse_moe.wi\": has 6 experts, but the "
                                                           "router has 5: the number of groups divides that of experts");
  CHECK(both(gs::parameter_store(stores::simulated({2}))) ==
        "the parameter store is empty: bind the model's programs to it before its weights are loaded or saved");
  CHECK(!std::filesystem::exists(dir / "saved"));
}

TEST_CASE("hugging_face: numbers that a type cannot hold are refused, as are NaN and infinities") {
  const scratch dir;
  mixtral::weights all = mixtral::make(small);
  all.at("model.norm.weight").data[5] = 70000;
  set_content(dir / "f", mixtral::file_of(all));
  CHECK(complaint([&] { gs::load_hugging_face(store_on({2}, 1, gs::dtype::f16), dir / "f"); }) ==
        "tensor \"model.norm.weight\": has 70000, more than an element of type gshard::half can hold");
  gs::parameter_store store = store_on({2});
  gs::load_hugging_face(store, dir / "f");
  CHECK(complaint([&] { gs::save_hugging_face(store, dir / "saved", {.type = gs::dtype::f16}); }) ==
        "tensor \"model.norm.weight\": has 70000, more than an element of type gshard::half can hold");
  CHECK(!std::filesystem::exists(dir / "saved/model.safetensors"));
  for (const std::int64_t bytes : {std::int64_t(0), std::int64_t(-1), std::numeric_limits<std::int64_t>::min()})
    CHECK(complaint([&] { gs::save_hugging_face(store, dir / "none", {.file_bytes = bytes}); }) ==
          "hugging_face_options::file_bytes is " + std::to_string(bytes) + ": a file has at least one byte");
  CHECK(!std::filesystem::exists(dir / "none"));
  CHECK(complaint([&] { gs::save_hugging_face(store, dir / "saved", {.type = gs::dtype::i32}); }) ==
        "hugging_face_options::type is int32, not a type of floating-point numbers");
  all.at("model.norm.weight").data[5] = std::numeric_limits<float>::infinity();
  set_content(dir / "f", mixtral::file_of(all));
  gs::load_hugging_face(store, dir / "f");
  CHECK_THROWS_AS(gs::save_hugging_face(store, dir / "saved"), gs::not_finite_error);
  gs::save_hugging_face(store, dir / "saved", {.type = gs::dtype::bf16, .allow_not_finite = true});
  CHECK(content(dir / "saved/model.safetensors") == expected(all, "BF16"));
}
