// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/io/checkpoint.hpp>

#include <gshard/core/trace/einsum.hpp>
#include <gshard/exec/program/executable.hpp>
#include <gshard/exec/program/parameter_access.hpp>
#include <gshard/train/adafactor.hpp>
#include <gshard/train/adam.hpp>

#include "scratch.hpp"
#include "spoilt_stores.hpp"
#include "stores.hpp"

#include <Eigen/Core>
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace gs = gshard;

namespace {

const std::vector<std::vector<int>> meshes{{1}, {2}, {2, 3}};
constexpr gs::checkpoint_options everything{.scope = gs::checkpoint_scope::everything};

gs::parameter_store filled(const std::vector<int>& mesh, std::uint64_t seed = 1,
                           const std::vector<stores::tensor_case>& tensors = stores::usual()) {
  gs::parameter_store store = stores::make(stores::simulated(mesh), tensors, seed);
  stores::fill(store);
  return store;
}
gs::parameter_store empty(const std::vector<int>& mesh, std::uint64_t seed = 1,
                          const std::vector<stores::tensor_case>& tensors = stores::usual()) {
  gs::parameter_store store = stores::make(stores::simulated(mesh), tensors, seed);
  stores::clear(store);
  return store;
}

}  // namespace

TEST_CASE("checkpoint: saved on one mesh, loaded on another, in pieces of any size") {
  const scratch dir;
  for (const std::vector<int>& from : meshes)
    for (const std::vector<int>& to : meshes)
      for (std::uint64_t seed = 0; seed < 3; ++seed)
        for (const std::int64_t piece_bytes : {std::int64_t(1), std::int64_t(64), std::int64_t(1) << 26}) {
          CAPTURE(gs::detail::mesh_text(from));
          CAPTURE(gs::detail::mesh_text(to));
          CAPTURE(seed);
          CAPTURE(piece_bytes);
          const gs::checkpoint_options options{.scope = gs::checkpoint_scope::everything,
                                               .piece_bytes = piece_bytes};
          gs::save(filled(from, seed), dir / "f", {}, options);
          gs::parameter_store store = empty(to, seed + 100);
          gs::load(store, dir / "f", options);
          CHECK(stores::wrong(store) == 0);
        }
  CHECK(dir.entries() == 1);
}

TEST_CASE("checkpoint: all element types that files have; others are refused by name") {
  const scratch dir;
  const std::vector<stores::tensor_case> tensors{
      {"counts", gs::dtype::i64, {3, 2}}, {"half", gs::dtype::bf16, {5}}, {"flags", gs::dtype::boolean, {7}}, {"f16", gs::dtype::f16, {2}}};
  for (const std::vector<int>& to : meshes) {
    gs::save(filled({2}, 1, tensors), dir / "f");
    gs::parameter_store store = empty(to, 2, tensors);
    gs::load(store, dir / "f");
    CHECK(stores::wrong(store) == 0);
  }
  CHECK(gs::text_of(*gs::safetensors_reader(dir / "f").find("counts")) == "I64[3,2]");
  CHECK(complaint([&] { gs::save(filled({2}, 1, {{"waves", gs::dtype::c64, {4}}}), dir / "g"); }) ==
        "checkpoint: \"waves\" has elements of type std::complex<float>, which safetensors files lack: let a checkpointer save it");
}

TEST_CASE("checkpoint: the file is the same whatever the mesh, and holds whole tensors under their names") {
  const scratch dir;
  const gs::checkpoint_notes notes{{{"step", "3"}}, {{"vocabulary", std::string("a\0\xff", 3)}}};
  gs::save(filled({1}), dir / "f", notes, everything);
  for (const std::vector<int>& mesh : {std::vector<int>{2}, {7}, {2, 3}, {2, 1, 2}})
    for (const std::int64_t piece_bytes : {1, 1000}) {
      gs::save(filled(mesh, 5), dir / "g", notes,
               {.scope = gs::checkpoint_scope::everything, .piece_bytes = piece_bytes});
      CHECK(content_of(dir / "g") == content_of(dir / "f"));
    }

  const gs::safetensors_reader file(dir / "f");
  CHECK(file.arrays().size() == stores::usual().size() + 1);
  CHECK(file.metadata() == std::map<std::string, std::string>{{"gshard.seed", "0"}, {"gshard.steps", "0"}, {"step", "3"}});
  for (const stores::tensor_case& t : stores::usual()) {
    const gs::array_info* there = file.find(t.trainable ? t.name : "state:" + t.name);
    REQUIRE(there != nullptr);
    CHECK(there->type == gs::array_type_of(t.type));
    CHECK(there->shape == t.extents);
  }
  REQUIRE(file.find("blob:vocabulary") != nullptr);
  CHECK(gs::text_of(*file.find("blob:vocabulary")) == "U8[3]");
}

TEST_CASE("checkpoint: caches are in no file, and a load leaves them as they are") {
  const scratch dir;
  const std::vector<stores::tensor_case> tensors = stores::with_caches(stores::usual());
  for (const gs::checkpoint_options& options : {gs::checkpoint_options(), everything})
    for (const std::vector<int>& mesh : meshes) {
      gs::save(filled(mesh), dir / "without", {}, options);
      gs::save(filled(mesh, 2, tensors), dir / "with", {}, options);
      CHECK(content_of(dir / "with") == content_of(dir / "without"));
    }
  for (const std::vector<int>& mesh : meshes) {
    gs::parameter_store store = empty(mesh, 3, tensors);
    gs::load(store, dir / "without", everything);
    for (const stores::tensor_case& t : tensors) {
      if (!t.is_cache) continue;
      for (const auto& shard : store.find(t.name)->shards)
        CHECK(std::all_of(shard.data(), shard.data() + shard.size(), [](std::byte b) { return b == std::byte{}; }));
      store.forget(t.name);
    }
    CHECK(stores::wrong(store) == 0);
  }
}

TEST_CASE("checkpoint: parameters alone, from files with and without the state of optimizers") {
  const scratch dir;
  gs::save(filled({2}), dir / "parameters");
  gs::save(filled({2}), dir / "everything", {}, everything);
  CHECK(gs::safetensors_reader(dir / "parameters").arrays().size() == 6);
  for (const char* name : {"parameters", "everything"}) {
    gs::parameter_store store = empty({2, 3});
    gs::load(store, dir / name);
    for (const auto& [tensor, entry] : store.entries()) {
      CAPTURE(tensor);
      gs::parameter_store alone(store.cluster());
      stores::add(alone, {tensor, entry.value.type, entry.value.extents}, entry.value.layout, entry.value.positions);
      for (std::size_t i = 0; i < entry.shards.size(); ++i)
        std::memcpy(alone.find(tensor)->value.data[i], entry.value.data[i],
                    std::size_t(entry.value.bytes(i)));
      CHECK((entry.trainable ? stores::wrong(alone) : stores::written(alone)) == 0);
    }
  }
  const std::string said = complaint([&] { gs::load(empty({2}), dir / "parameters", everything); });
  CHECK(said == (dir / "parameters") +
                    ": does not fit the store: \"state:adam.m.bias\" is missing, "
                    "\"state:adam.m.decoder.wi\" is missing");
}

TEST_CASE("checkpoint: metadata and blobs come back, with the tensors or alone") {
  const scratch dir;
  gs::checkpoint_notes notes{{{"step", "17"}, {"", ""}, {"sch\u00f6n", "\u6587"}},
                             {{"empty", ""}, {"all bytes", ""}}};
  for (int c = 0; c < 256; ++c) notes.blobs["all bytes"] += char(c);
  gs::save(filled({2}), dir / "f", notes);
  const gs::checkpoint_notes with = gs::load(empty({3}), dir / "f");
  CHECK(with.metadata == notes.metadata);
  CHECK(with.blobs == notes.blobs);
  const gs::checkpoint_notes alone = gs::load_notes(stores::simulated({2, 2}), dir / "f");
  CHECK(alone.metadata == notes.metadata);
  CHECK(alone.blobs == notes.blobs);
  CHECK(contains(complaint([&] { gs::load_notes(stores::simulated({1}), dir / "g"); }), "No such file"));
}

TEST_CASE("checkpoint: the number of finished steps goes with the state of optimizers") {
  const scratch dir;
  gs::parameter_store store = filled({2});
  store.set_steps(4000000000u);
  gs::save(store, dir / "everything", {{{"step", "3"}}, {}}, everything);
  gs::save(store, dir / "parameters");
  CHECK(gs::safetensors_reader(dir / "parameters").metadata().empty());
  for (const std::vector<int>& mesh : meshes) {
    gs::parameter_store found = empty(mesh);
    found.set_steps(7);
    gs::load(found, dir / "everything");
    gs::load(found, dir / "parameters");
    CHECK(found.steps() == 7);
    CHECK(gs::load(found, dir / "everything", everything).metadata == std::map<std::string, std::string>{{"step", "3"}});
    CHECK(found.steps() == 4000000000u);
  }
  CHECK(gs::load_notes(store.cluster(), dir / "everything").metadata == std::map<std::string, std::string>{{"step", "3"}});

  CHECK(complaint([&] { gs::save(store, dir / "g", {{{"gshard.steps", "3"}}, {}}); }) ==
        "checkpoint: metadata \"gshard.steps\" starts with a word that is reserved there");
  const auto write = [&](const std::map<std::string, std::string>& metadata) {
    gs::safetensors_writer file(dir / "f", {{"w", gs::array_type::f32, {1}}}, metadata);
    const float w = 1;
    file.write(std::as_bytes(std::span(&w, 1)));
    file.commit();
  };
  gs::parameter_store one = empty({1}, 1, {{"w", gs::dtype::f32, {1}}});
  one.set_steps(5);
  for (const char* steps : {"", "-1", "3x", "4294967296"}) {
    write({{"gshard.steps", steps}});
    CHECK(contains(complaint([&] { gs::load(one, dir / "f", everything); }), "not a number of steps"));
    CHECK(one.steps() == 5);
  }
  write({});  // as in older files
  gs::load(one, dir / "f", everything);
  CHECK(one.steps() == 0);
}

TEST_CASE("checkpoint: a training goes on with the seed that it was saved with") {
  const scratch dir;
  const auto with_seed = [](std::uint64_t seed, const std::vector<int>& mesh) {
    gs::parameter_store store(stores::simulated(mesh), seed);
    for (const stores::tensor_case& t : stores::usual()) stores::add(store, t, gs::sharding::replicated(int(t.extents.size())));
    stores::fill(store);
    return store;
  };
  constexpr std::uint64_t seed = 18446744073709551615u;  // the largest
  gs::save(with_seed(seed, {2}), dir / "everything", {}, everything);
  gs::save(with_seed(seed, {2}), dir / "parameters");
  for (const std::vector<int>& mesh : meshes) {
    gs::parameter_store same = with_seed(seed, mesh), other = with_seed(7, mesh);
    stores::clear(same);
    stores::clear(other);
    CHECK(complaint([&] { gs::load(other, dir / "everything", everything); }) ==
          dir / "everything" + ": was saved with seed 18446744073709551615, but the parameter store has seed 7; "
                               "checkpoint_options::other_seed takes it nevertheless");
    CHECK(stores::written(other) == 0);
    CHECK(gs::load(same, dir / "everything", everything).metadata.empty());
    CHECK(stores::wrong(same) == 0);
    gs::load(other, dir / "everything", {.scope = gs::checkpoint_scope::everything, .other_seed = true});
    CHECK(stores::wrong(other) == 0);
    CHECK(other.seed() == 7);
    // Parameters alone do not depend on a seed.
    for (const char* file : {"everything", "parameters"}) {
      stores::clear(other);
      gs::load(other, dir / file);
      CHECK(stores::written(other) > 0);
    }
  }
  CHECK(gs::load_notes(stores::simulated({1}), dir / "everything").metadata.empty());

  const auto write = [&](const std::map<std::string, std::string>& metadata) {
    gs::safetensors_writer file(dir / "f", {{"w", gs::array_type::f32, {1}}}, metadata);
    const float w = 1;
    file.write(std::as_bytes(std::span(&w, 1)));
    file.commit();
  };
  gs::parameter_store one = empty({1}, 1, {{"w", gs::dtype::f32, {1}}});
  write({{"gshard.seed", "18446744073709551616"}});
  CHECK(contains(complaint([&] { gs::load(one, dir / "f", everything); }), "not a seed"));
  write({{"gshard.steps", "3"}});  // as in older files
  gs::load(one, dir / "f", everything);
  CHECK(one.steps() == 3);
}

TEST_CASE("checkpoint: what does not fit is named, and nothing of the store changes") {
  const scratch dir;
  gs::save(filled({2}), dir / "f", {}, everything);
  struct misfit {
    std::vector<stores::tensor_case> tensors;
    std::string reason;
  };
  const std::vector<stores::tensor_case> usual = stores::usual();
  std::vector<misfit> cases;
  const auto change = [&](const std::string& reason, auto f) {
    cases.push_back({usual, reason});
    f(cases.back().tensors);
  };
  change("\"bias\" is F32[7] in the file and F32[8] here", [](auto& t) { t[0].extents = {8}; });
  change("\"bias\" is F32[7] in the file and F32[7,1] here", [](auto& t) { t[0].extents = {7, 1}; });
  change("\"bias\" is F32[7] in the file and F64[7] here", [](auto& t) { t[0].type = gs::dtype::f64; });
  change("\"bias\" is F32[7] in the file and I32[7] here", [](auto& t) { t[0].type = gs::dtype::i32; });
  change("\"bias\" in the file is unknown to the store", [](auto& t) { t.erase(t.begin()); });
  change("\"new\" is missing", [](auto& t) { t.push_back({"new", gs::dtype::f32, {1}}); });
  change("\"wide\" is missing, \"bias\" in the file is unknown to the store",
         [](auto& t) { t[0].name = "wide"; });
  change("\"state:adam.m.bias\" in the file is unknown to the store", [](auto& t) { t.erase(t.begin() + 6); });
  change("and 2 more", [](auto& t) {
    for (int i = 0; i < 10; ++i) t.push_back({"x" + std::to_string(i), gs::dtype::f32, {1}});
  });
  for (const misfit& c : cases) {
    gs::parameter_store store = empty({2, 3}, 9, c.tensors);
    const std::string said = complaint([&] { gs::load(store, dir / "f", everything); });
    CAPTURE(said);
    CHECK(said.starts_with((dir / "f") + ": does not fit the store: "));
    CHECK(contains(said, c.reason));
    CHECK(stores::written(store) == 0);
  }
}

TEST_CASE("checkpoint: no damage is loaded, not even in part") {
  const scratch dir;
  const std::vector<stores::tensor_case> tensors{{"a", gs::dtype::f32, {3, 2}}, {"b", gs::dtype::f64, {2}}};
  gs::save(filled({2}, 1, tensors), dir / "f", {{{"step", "3"}}, {{"blob", "bytes"}}});
  const std::string good = content_of(dir / "f");
  gs::parameter_store store = empty({2, 3}, 1, tensors);
  for (std::size_t at = 0; at < good.size(); ++at) {
    CAPTURE(at);
    std::string bad = good;
    bad[at] = char(bad[at] ^ (1 << at % 8));
    set_content(dir / "bad", bad);
    CHECK(complaint([&] { gs::load(store, dir / "bad"); }).starts_with((dir / "bad") + ": "));
    set_content(dir / "bad", good.substr(0, at));
    CHECK(complaint([&] { gs::load(store, dir / "bad"); }).starts_with((dir / "bad") + ": "));
    CHECK(stores::written(store) == 0);
  }
  gs::load(store, dir / "f");
  CHECK(stores::wrong(store) == 0);
}

TEST_CASE("checkpoint: wherever saving fails, the old file stays, and nothing else") {
  const scratch dir;
  gs::parameter_store store = filled({2});
  gs::save(store, dir / "f", {{{"step", "1"}}, {}});
  const std::string before = content_of(dir / "f");
  for (std::size_t bytes = 0; bytes < before.size(); bytes += 13) {
    std::string said;
    {
      const small_disk disk(bytes);
      said = complaint([&] { gs::save(store, dir / "f", {{{"step", "2"}}, {}}, {.piece_bytes = 8}); });
    }
    CAPTURE(bytes);
    CHECK(contains(said, "File too large"));
    CHECK(content_of(dir / "f") == before);
    CHECK(dir.entries() == 1);
  }
  CHECK(contains(complaint([&] { gs::save(store, dir / "none/f"); }), "No such file or directory"));
  CHECK(contains(complaint([&] { gs::save(store, dir / "f/g"); }), "Not a directory"));
  CHECK(contains(complaint([&] { gs::save(store, dir / "f", {{{"k", "\xff"}}, {}}); }), "is not UTF-8"));
  CHECK(content_of(dir / "f") == before);
  CHECK(dir.entries() == 1);
}

TEST_CASE("checkpoint: names that mean something else, and partial sums, are refused") {
  const scratch dir;
  for (const char* name : {"state:w", "blob:w"}) {
    gs::parameter_store store = filled({2}, 1, {{name, gs::dtype::f32, {2}}});
    CHECK(contains(complaint([&] { gs::save(store, dir / "f"); }), "a word that is reserved"));
  }
  gs::parameter_store named = filled({2}, 1, {{"__metadata__", gs::dtype::f32, {2}}});
  CHECK(contains(complaint([&] { gs::save(named, dir / "f"); }), "\"__metadata__\" occurs twice"));
  gs::parameter_store pending(stores::simulated({2}));
  gs::sharding layout = gs::sharding::replicated(1);
  layout.partial = 1;
  stores::add(pending, {"w", gs::dtype::f32, {2}}, layout);
  CHECK(complaint([&] { gs::save(pending, dir / "f"); }) == "checkpoint: \"w\" is a partial sum");
  CHECK(dir.entries() == 0);
}

TEST_CASE("checkpoint: weights from another tool") {
  const scratch dir;
  const std::string header = R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  const std::uint64_t length = header.size();
  const float values[] = {1.5F, -2};
  std::string content(reinterpret_cast<const char*>(&length), sizeof length);
  set_content(dir / "f",
              content + header + std::string(reinterpret_cast<const char*>(values), sizeof values));
  gs::parameter_store store = empty({1}, 1, {{"w", gs::dtype::f32, {2}}});
  CHECK(contains(complaint([&] { gs::load(store, dir / "f"); }), "has no digest"));
  gs::load(store, dir / "f", {.verify = false});
  CHECK(store.find("w")->value.as<float>(0)[0] == 1.5F);
  CHECK(store.find("w")->value.as<float>(0)[1] == -2.0F);
}

TEST_CASE("checkpoint: NaN and infinities are refused and named, in any element of any tensor, unless they are asked for") {
  const auto exists = [](const std::string& path) { return std::filesystem::exists(path); };
  for (const std::vector<int>& mesh : meshes) {
    const scratch dir;
    spoilt_stores::check_not_finite(stores::simulated(mesh), dir / "f", exists);
    spoilt_stores::check_allowed(stores::simulated(mesh), dir / "g");
  }
}

TEST_CASE("checkpoint: copies that differ are refused in a checkpoint of everything") {
  const scratch dir;
  for (const std::vector<int>& mesh : meshes) spoilt_stores::check_copies(stores::simulated(mesh), dir / "f");
}

namespace {
inline constexpr gs::adam adam{.shard_state_over = "x"};
inline constexpr gs::adafactor adafactor{.relative = false, .shard_state_over = "x"};
/// A step of training with a parameter in bf16. The optimizer's state has the remainder of its master value.
template <const auto& Optimizer>
inline constexpr auto bf16_step = [](auto& m, auto x, auto rate) {
  const auto w = m.param("w", "MH", gs::P<"y", gs::none>{}, gs::init::fan_in("M"), gs::dtype::bf16);
  const auto y = gs::einsum<"BM,MH->BH">(x, gs::cast<float>(w));
  const auto loss = gs::mean(y * y);
  Optimizer.minimize(m, loss, rate);
  return loss;
};
using plane = gs::mesh<gs::axis<"x">, gs::axis<"y">>;
template <const auto& Optimizer>
struct bf16_training {
  gs::executable<gs::program<bf16_step<Optimizer>, plane, gs::in<"BM", gs::P<"x", gs::none>>, gs::in<"">>> run;

  explicit bf16_training(const std::vector<int>& mesh) : bf16_training(gs::simulate<plane>(mesh)) {}
  explicit bf16_training(const gs::cluster<plane>& on) : run(on, {{'B', 6}, {'M', 6}, {'H', 4}}, gs::parameter_store(on, 1)) {}
  gs::parameter_store& store() { return run.executor().store(); }
  void train(int steps) {
    std::vector<float> x(36);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i * i % 13) - 6;
    for (int t = 0; t < steps; ++t) run(x, std::vector{0.004f});
  }
  std::vector<float> weights() {
    const std::vector<gs::bfloat16> w = gs::to_global<gs::bfloat16>(store(), "w");
    return {w.begin(), w.end()};
  }
};

template <const auto& Optimizer>
void check_bf16_training(const std::string& rest, const std::string& moment) {
  const scratch dir;
  const std::vector<std::vector<int>> shapes{{1, 1}, {2, 2}, {3, 1}, {1, 3}};
  for (const std::vector<int>& from : shapes) {
    bf16_training<Optimizer> saved(from);
    saved.train(3);
    gs::save(saved.store(), dir / "f", {}, everything);
    bf16_training<Optimizer> same(from);  // on the same mesh, training continues with the same bits
    gs::load(same.store(), dir / "f", everything);
    for (const std::vector<int>& to : shapes) {
      CAPTURE(gs::detail::mesh_text(from));
      CAPTURE(gs::detail::mesh_text(to));
      bf16_training<Optimizer> loaded(to);
      gs::load(loaded.store(), dir / "f", everything);
      CHECK(loaded.weights() == saved.weights());
      for (const std::string& state : {rest, moment})
        CHECK(gs::to_global<float>(loaded.store(), state) == gs::to_global<float>(saved.store(), state));
      CHECK(gs::to_global<float>(loaded.store(), rest) != std::vector<float>(24));
    }
    saved.train(2);
    same.train(2);
    CHECK(same.weights() == saved.weights());
    CHECK(gs::to_global<float>(same.store(), rest) == gs::to_global<float>(saved.store(), rest));
  }
}
}  // namespace

TEST_CASE("checkpoint: parameters in bf16 and the rests of their master values, saved on one mesh, have the same bits on another") {
  check_bf16_training<adam>("adam.rest.w", "adam.m.w");
  check_bf16_training<adafactor>("adafactor.rest.w", "adafactor.r.w");
}
