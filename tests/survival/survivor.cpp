// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A small training that tests/survival/kills.sh and soak.sh kill and restart: a mixture of experts with random routing, dropout and Adam,
// on MPI ranks, with a checkpoint every few steps. Its last parameters and its losses show whether anything was lost.
#include <gshard/gshard.hpp>
#include <gshard/io.hpp>
#include <gshard/survive.hpp>

#include "mpi_objects.hpp"

#include <CLI/CLI.hpp>
#include <mpi.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace gs = gshard;
using gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"expert">>;

inline constexpr auto training_step = [](auto& m, auto x, auto y, auto rate) {
  auto wg = m.param("wg", "ME", gs::init::fan_in("M"));
  auto wi = m.param("wi", "EMH", P<"expert", none, none>{}, gs::init::fan_in("M"));
  auto wo = m.param("wo", "EHM", P<"expert", none, none>{}, gs::init::fan_in("H"));
  auto route = gs::top2_gating(gs::softmax(gs::einsum<"GSM,ME->GSE">(x, wg)), gs::capacity{2.0});
  auto h = gs::dropout(gs::relu(gs::einsum<"EGCM,EMH->EGCH">(gs::einsum<"GSEC,GSM->EGCM">(route.dispatch, x), wi)), 0.1);
  auto error = x + gs::einsum<"GSEC,GECM->GSM">(route.combine, gs::einsum<"EGCH,EHM->GECM">(h, wo)) - y;
  auto loss = gs::mean(error * error);
  gs::adam{}.minimize(m, loss + 0.01 * route.aux, rate);
  return loss;
};
using tokens = gs::in<"GSM", P<"expert", none, none>>;
using training = gs::program<training_step, mesh, tokens, tokens, gs::in<"">>;

// The position in the data: a generator of pseudo-random numbers. Checkpoints must contain its state.
struct stream {
  std::uint64_t state = 1;
  float next() {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return float(state >> 40) / float(1 << 24) - 0.5f;
  }
};

struct options {
  std::string checkpoint, losses, result, resources;
  std::uint32_t steps = 60, every = 5;
  int pause = 0;  // milliseconds
  bool per_host = false;
  gs::wait_deadlines deadlines;
};

options parse(int argc, char** argv) {
  options o;
  CLI::App app;
  app.add_option("--checkpoint", o.checkpoint)->required();
  app.add_option("--losses", o.losses);
  app.add_option("--result", o.result);
  app.add_option("--resources", o.resources);
  app.add_option("--steps", o.steps);
  app.add_option("--every", o.every);
  app.add_option("--pause", o.pause);
  app.add_flag("--per-host", o.per_host);
  app.add_option("--warn", o.deadlines.warn);
  app.add_option("--fail", o.deadlines.fail);
  app.parse(argc, argv);
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  if (const std::size_t at = o.checkpoint.find("%h"); at != std::string::npos) o.checkpoint.replace(at, 2, host);
  return o;
}

/// The resources of this process: "process step resident_KiB descriptors MPI_objects".
class resources {
 public:
  explicit resources(const options& o) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!o.resources.empty()) file_.open(o.resources + "." + std::to_string(rank), std::ios::app);
  }
  void write(std::uint32_t step) {
    if (!file_.is_open()) return;
    long pages = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> pages >> resident;
    const auto descriptors = std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
    file_ << ::getpid() << ' ' << step << ' ' << resident * (::sysconf(_SC_PAGESIZE) / 1024) << ' ' << descriptors << ' ' << mpi_objects
          << std::endl;
  }

 private:
  std::ofstream file_;
};

int train(const options& o) {
  const auto cluster = gs::on_mpi<mesh>(MPI_COMM_WORLD, {}, {.deadlines = o.deadlines});
  gs::parameter_store store(cluster, 42);
  const std::int64_t groups = 8, tokens_of_group = 16, model = 32;
  gs::executable<training> step(cluster, {{'G', groups}, {'S', tokens_of_group}, {'M', model}, {'E', 8}, {'H', 64}}, store);
  stream data;
  gs::stop_request stop;
  gs::checkpointer checkpoints(store, o.checkpoint, {.every_steps = o.every, .per_host = o.per_host});
  checkpoints.keep_state("data", [&] { return std::to_string(data.state); },
                         [&](std::string_view text) { std::from_chars(text.data(), text.data() + text.size(), data.state); });
  checkpoints.resume();
  resources held(o);
  std::ofstream losses;
  if (cluster.backend().leader() && !o.losses.empty()) losses.open(o.losses, std::ios::app);
  losses.precision(9);
  std::vector<float> x(std::size_t(groups * tokens_of_group * model)), y(x.size());
  const std::vector<float> rate(1, 0.01f);
  while (store.steps() < o.steps) {
    for (float& v : x) v = data.next();
    for (float& v : y) v = data.next();
    const float loss = step(x, y, rate).item();
    losses << store.steps() << ' ' << loss << std::endl;  // flushed: a kill loses no line
    std::this_thread::sleep_for(std::chrono::milliseconds(o.pause));
    if (store.steps() % 50 == 0) held.write(store.steps());
    if (!checkpoints.after_step()) return gs::wait_deadlines::restart_status;
  }
  if (!o.result.empty()) gs::save(store, o.result, {.scope = gs::checkpoint_scope::everything});
  checkpoints.finish();
  return 0;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int status = 1;
  try {
    status = train(parse(argc, argv));
  } catch (const std::exception& e) {
    std::cerr << "survivor: " << e.what() << std::endl;
  }
  if (status == 1) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Finalize();
  return status;
}
