// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ONNX models from the command line: plans, prices, shardings, runs on simulated devices or MPI ranks, and checks against test data. See --help.

#include "arrays.hpp"
#include "sweep.hpp"

#include <gshard/io/plan/plan_file.hpp>
#include <gshard/onnx.hpp>
#include <gshard/report.hpp>
#include <gshard/sim/run/dry_run.hpp>
#include <gshard/sim/run/presets.hpp>

#if GSHARD_HAS_MPI
#include <gshard/cluster.hpp>

#include <mpi.h>
#endif

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <fstream>
#include <ios>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

namespace gs = gshard;

/// A model on a mesh, as the options state it.
struct request {
  std::string model, mesh = "x=1", machine, output = ".", annotated, plan, experts;
  std::vector<std::string> sizes, shardings, arrays;
  bool on_ranks = false;
  int repeats = 0;

  void add_to(CLI::App& command) {
    command.add_option("MODEL", model, "a file, model.onnx")->required();
    command.add_option("--mesh", mesh, "the mesh, with the extents of its axes: data=4,model=2");
    command.add_option("--size", sizes, "the extent of a named dim: batch=8");
    command.add_option("--in", shardings, "the sharding of an input: x=B@data,C,H,W");
    command.add_option("--experts", experts, "the mesh axis that shards the experts of a mixture");
  }
};

/// MPI, from the construction to the destruction, if it is used.
class ranks {
 public:
  explicit ranks([[maybe_unused]] bool used) {
#if GSHARD_HAS_MPI
    used_ = used;
    if (used_) MPI_Init(nullptr, nullptr);
#endif
  }
  ranks(const ranks&) = delete;
  ranks& operator=(const ranks&) = delete;
  ~ranks() {
#if GSHARD_HAS_MPI
    if (used_) MPI_Finalize();
#endif
  }

 private:
  [[maybe_unused]] bool used_ = false;
};

/// "name=rest"
std::pair<std::string, std::string> named(const std::string& text) {
  const std::size_t at = text.find('=');
  if (at == text.npos) throw gs::error("\"" + text + "\" is not NAME=VALUE");
  return {text.substr(0, at), text.substr(at + 1)};
}
gs::onnx::import_options options_of(const request& r) {
  gs::onnx::import_options options;
  for (const std::string& s : r.sizes) {
    const auto [name, number] = named(s);
    options.sizes[name] = std::stoll(number);
  }
  for (const std::string& s : r.shardings) options.shardings.insert(named(s));
  options.expert_axis = r.experts;
  return options;
}

int plan(const request& r) {
  const gs::onnx::model m = gs::onnx::read_model(r.model);
  const gs::onnx::imported_program p = gs::onnx::import_program(m, r.mesh, options_of(r));
  std::cout << gs::describe(p.program.plan());
  if (!r.plan.empty()) gs::save_plan(r.plan, p.program.plan(), gs::onnx::model_functions());
  return 0;
}

/// Prints the model as a C++ header. Its namespace is the name of the file.
int write_cpp(const request& r) {
  const gs::onnx::model m = gs::onnx::read_model(r.model);
  std::string name = r.model.substr(r.model.find_last_of('/') + 1);
  name = name.substr(0, name.find('.'));
  for (char& c : name)
    if ((c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9')) c = '_';
  std::cout << gs::onnx::cpp_of(gs::onnx::import_program(m, r.mesh, options_of(r)), name);
  return 0;
}

std::vector<int> extents_of(const gs::mesh_shape& mesh) {
  std::vector<int> all;
  for (int a = 0; a < mesh.rank(); ++a) {
    if (mesh.static_extent(a) == gs::dynamic) throw gs::error("the mesh axis \"" + std::string(mesh.name(a)) + "\" has no extent");
    all.push_back(mesh.static_extent(a));
  }
  return all;
}

int price(const request& r) {
  const gs::onnx::model m = gs::onnx::read_model(r.model);
  const gs::onnx::imported_program p = gs::onnx::import_program(m, r.mesh, options_of(r));
  const gs::plan_view& plan = p.program.plan();
  const std::vector<int> axes = extents_of(p.program.mesh());
  const gs::run_record record = gs::dry_run(plan, plan.bind(p.extents, axes), gs::parse_hardware(r.machine));
  std::cout << gs::describe(record, plan);
  return 0;
}

/// Searches shardings, prints them, and writes them as annotations of the model.
int shard(const request& r) {
  const gs::onnx::model m = gs::onnx::read_model(r.model);
  gs::onnx::import_options options = options_of(r);
  options.annotations = false;
  const gs::onnx::imported_program p = gs::onnx::import_program(m, r.mesh, options);
  const gs::hardware on = gs::parse_hardware(r.machine);
  const gs::onnx::found_shardings found = gs::onnx::find_shardings(p, {.on = on.device, .memory_limit = on.memory});
  gs::graph chosen = p.program.graph();
  found.choice.apply_to(chosen);
  const gs::plan_tables made = gs::compile(chosen, p.program.mesh(), found.choice.compile);
  std::cout << gs::describe(found.choice.view(), made.view());
  const gs::onnx::mapped_file file(r.model);
  std::ofstream to(r.annotated, std::ios::binary);
  const std::string bytes = gs::onnx::annotated_model(file.bytes(), p.program.mesh(), "gshard", found.tensors);
  to.write(bytes.data(), std::streamsize(bytes.size()));
  if (!to.flush()) throw gs::error(r.annotated + ": cannot be written");
  return 0;
}

gs::any_cluster cluster_of(const request& r, const gs::mesh_shape& mesh) {
#if GSHARD_HAS_MPI
  if (r.on_ranks) return gs::on_mpi(MPI_COMM_WORLD, mesh);
#endif
  if (r.on_ranks) throw gs::error("gshard-onnx was built without MPI");
  return gs::simulate(mesh, extents_of(mesh));
}

/// Runs a program this often. Prints the median time, and what the busiest device of the first process receives in a run.
void print_speed(gs::runtime_executable& program, const std::vector<gs::runtime_tensor>& inputs, int repeats) {
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    program(inputs);
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
  const gs::executor& run = program.executor();
  if (!run.cluster().backend().leader()) return;
  std::cout << "median of " << repeats << " runs: " << times[std::size_t(repeats / 2)] << " ms\n";
  std::set<std::string_view> seen;
  for (const gs::node& step : program.program().plan().steps)
    if (gs::traits(step.kind).collective && seen.insert(gs::name_of(step)).second) {
      const gs::received_count& all = run.received(step.kind);
      std::cout << "  " << gs::name_of(step) << ": " << all.calls / (repeats + 1) << " steps, " << all.bytes / (repeats + 1) << " bytes\n";
    }
}

int run(const request& r) {
  const gs::onnx::model m = gs::onnx::read_model(r.model);
  gs::onnx::import_options options = options_of(r);
  std::map<std::string, gs::onnx::model_tensor> given;
  for (const std::string& a : r.arrays) {
    const auto [name, path] = named(a);
    for (const gs::onnx::model_value& v : m.graph.inputs)
      if (v.name == name) given[name] = arrays::read_npy(path, v.type);
    if (!given.contains(name)) throw gs::error("the model has no input \"" + name + "\"");
    options.shapes[name] = given[name].shape;
  }
  const gs::onnx::imported_program p = gs::onnx::import_program(m, r.mesh, options);
  std::vector<gs::onnx::model_tensor> inputs;
  for (const gs::onnx::imported_port& in : p.inputs) {
    if (!given.contains(in.name)) throw gs::error("the input \"" + in.name + "\" has no array: --npy " + in.name + "=FILE");
    inputs.push_back(given[in.name]);
  }
  const gs::runtime_plan plan = r.plan.empty() ? gs::runtime_plan(p.program) : gs::read_plan(r.plan, gs::onnx::model_functions());
  const gs::any_cluster on = cluster_of(r, plan.mesh());
  gs::runtime_executable program = gs::onnx::loaded(p, plan, on);
  const std::vector<gs::runtime_tensor> given_shards = gs::onnx::scattered(on, plan, inputs), results = program(given_shards);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string path = r.output + "/output_" + std::to_string(i) + ".npy";
    const std::vector<std::byte> bytes = arrays::whole(results[i]);
    if (!on.backend().leader()) continue;
    arrays::write_npy(path, results[i], bytes);
    std::cout << path << ": " << p.outputs[i].name << ' ' << results[i].text() << '\n';
  }
  if (r.repeats > 0) print_speed(program, given_shards, r.repeats);
  return 0;
}

int check(const std::vector<std::string>& folders, const gs::onnx::check_options& how) {
  int status = 0;
  for (const std::string& folder : folders) {
    const gs::onnx::check_result r = sweeping::check_folder(folder, how);
    std::cout << folder << ": " << sweeping::text_of(r) << '\n';
    if (r.what != gs::onnx::check_result::outcome::passed) status = 1;
  }
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("ONNX models as gshard programs");
  app.require_subcommand(1);
  request r;
  CLI::App* const planning = app.add_subcommand("plan", "prints the plan of a model on a mesh");
  r.add_to(*planning);
  planning->add_option("--file", r.plan, "also writes the plan to this file, for gshard-plan and run");
  CLI::App* const pricing = app.add_subcommand("price", "prints the time and memory of a run on a machine");
  r.add_to(*pricing);
  pricing->add_option("--machine", r.machine, "the machine, such as tpu-v3:2x2")->required();
  CLI::App* const sharding = app.add_subcommand("shard", "searches shardings, and writes them as annotations of the model");
  r.add_to(*sharding);
  sharding->add_option("--machine", r.machine, "the machine, such as tpu-v3:2x2")->required();
  sharding->add_option("--output", r.annotated, "the file of the annotated model, in the folder of its external data")->required();
  CLI::App* const exporting = app.add_subcommand("export", "prints a model as a C++ header");
  r.add_to(*exporting);
  CLI::App* const running = app.add_subcommand("run", "runs a model on simulated devices or MPI ranks");
  r.add_to(*running);
  running->add_option("--npy", r.arrays, "the array of an input: x=FILE.npy");
  running->add_option("--plan", r.plan, "the file of a plan, in place of planning");
  running->add_option("--repeat", r.repeats, "runs this often more, and prints the median time and what a device receives");
  running->add_flag("--mpi", r.on_ranks, "runs on the ranks of mpirun, in place of simulated devices");
  running->add_option("--output", r.output, "the folder of the results, output_0.npy and so on");
  std::vector<std::string> folders;
  gs::onnx::check_options how{.plan = sweeping::read_again};
  const auto add_check_options = [&](CLI::App& command) {
    command.add_option("--most", how.most, "the most shardings on a mesh");
    command.add_option("--relative", how.tolerance.relative, "the allowed relative difference");
    command.add_option("--absolute", how.tolerance.absolute, "the allowed absolute difference");
  };
  CLI::App* const checking = app.add_subcommand("check", "checks folders with model.onnx and test_data_set_0");
  checking->add_option("FOLDER", folders, "the folders")->required();
  add_check_options(*checking);
  std::string root;
  CLI::App* const sweeping_all = app.add_subcommand("sweep", "checks all folders of ONNX's test data, and prints a table");
  sweeping_all->add_option("ROOT", root, "the folder that has node/, pytorch-operator/ and so on")->required();
  add_check_options(*sweeping_all);
  CLI11_PARSE(app, argc, argv);
  try {
    if (*planning) return plan(r);
    if (*pricing) return price(r);
    if (*sharding) return shard(r);
    if (*exporting) return write_cpp(r);
    if (*running) {
      const ranks all(r.on_ranks);
      return run(r);
    }
    if (*checking) return check(folders, how);
    return sweeping::sweep(root, how);
  } catch (const std::exception& e) {
    std::cerr << "gshard-onnx: " << e.what() << '\n';
    return 2;
  }
}
