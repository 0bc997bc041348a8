// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A run that is interrupted and resumed has the losses and parameters of an undisturbed one, bit for bit.
#include <gshard/gshard.hpp>
#include <gshard/survive/checkpoint/checkpointer.hpp>

#include "../io/shared_scratch.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace gs = gshard;
using gs::P, gs::none;

namespace {

constexpr auto regression = [](auto& m, auto x, auto y, auto rate) {
  auto h = gs::einsum<"BM,MH->BH">(x, m.param("w1", "MH", P<none, "model">{}, gs::init::fan_in("M")));
  h = gs::dropout(gs::relu(h), 0.3);
  auto error = gs::einsum<"BH,HO->BO">(h, m.param("w2", "HO", gs::init::fan_in("H"))) - y;
  auto loss = gs::mean(error * error);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
using mesh = gs::mesh<gs::axis<"data">, gs::axis<"model">>;
using training = gs::program<regression, mesh, gs::in<"BM", P<"data", none>>, gs::in<"BO", P<"data", none>>, gs::in<"">>;

/// A stream of batches. Their order depends on a generator that continues from batch to batch.
struct batches {
  std::mt19937_64 random{7};

  std::vector<float> next(std::size_t n) {
    std::vector<float> x(n);
    for (float& v : x) v = float(random() % 1000) / 500 - 1;
    return x;
  }
  std::string save() const {
    std::ostringstream text;
    text << random;
    return text.str();
  }
  void restore(std::string_view text) { std::istringstream(std::string(text)) >> random; }
};

/// Trains to step `last`, and appends the losses. Resumes from a checkpoint of step `from` or later, or from none if that is 0. Ends
/// without finish() if `last` is odd.
std::vector<std::string> train(const gs::any_cluster& on, const std::string& directory, std::uint32_t from, std::uint32_t last,
                               std::vector<float>& losses) {
  gs::parameter_store store(on, 42);
  gs::executable<training> step(on, {{'B', 12}, {'M', 5}, {'H', 9}, {'O', 1}}, store);
  batches data;
  gs::checkpointer checkpoints(store, directory, {.every_steps = 2});
  checkpoints.keep_state("data", [&] { return data.save(); }, [&](std::string_view t) { data.restore(t); });
  const auto resumed = checkpoints.resume();
  CHECK(bool(resumed) == (from > 0));
  if (resumed) CHECK(resumed->step >= from);
  CHECK(store.steps() == (resumed ? resumed->step : 0));
  losses.resize(store.steps());
  const float rate = 0.05f;
  while (store.steps() < last) {
    const std::vector<float> x = data.next(12 * 5), y = data.next(12);
    losses.push_back(step(x, y, std::span(&rate, 1)).item());
    checkpoints.after_step();
  }
  if (last % 2 == 0) checkpoints.finish();
  while (checkpoints.in_flight()) checkpoints.after_step();  // the next start finds it
  std::vector<std::string> tensors;
  for (const auto& [name, entry] : store.entries())
    for (std::size_t i = 0; i < entry.value.data.size(); ++i)
      tensors.push_back(name + std::string(reinterpret_cast<const char*>(entry.value.data[i]), std::size_t(entry.value.bytes(i))));
  return tensors;
}

}  // namespace

TEST_CASE("resume, mpi: Adam, dropout and the data go on with the same bits") {
  const gs::any_cluster on = gs::on_mpi<mesh>(MPI_COMM_WORLD);
  const shared_scratch dir;
  std::vector<float> undisturbed, losses;
  const auto whole = train(on, dir / "undisturbed", 0, 20, undisturbed);
  train(on, dir / "run", 0, 1, losses);
  train(on, dir / "run", 0, 5, losses);
  train(on, dir / "run", 4, 8, losses);
  train(on, dir / "run", 8, 13, losses);  // after finish()
  CHECK(train(on, dir / "run", 12, 20, losses) == whole);
  CHECK(losses == undisturbed);
  CHECK(undisturbed.front() != undisturbed.back());
}
