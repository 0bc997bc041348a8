// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "run.hpp"

#include "model.hpp"

#include <gshard/all_kernels.hpp>
#include <gshard/exec/program/executor.hpp>
#include <gshard/exec/tensor/cluster.hpp>
#include <gshard/train/schedule.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace scaling {
namespace {

using translate::batch;

/// Sets an input of a program on one device.
template <class T>
void set_input(const gs::executor& e, std::size_t i, std::span<const T> values) {
  std::copy(values.begin(), values.end(), e.input(i).as<T>(0));
}
double scalar(const gs::executor& e, std::size_t output) { return double(e.output(output).as<float>(0)[0]); }

/// The executor of a plan for batches of one shape.
gs::executor& executor_for(std::map<std::size_t, std::unique_ptr<gs::executor>>& bound, std::size_t shape, const gs::plan_tables& plan,
                   const gs::any_cluster& on, const gs::dims& dims, gs::parameter_store store) {
  std::unique_ptr<gs::executor>& e = bound[shape];
  if (!e) {
    e = std::make_unique<gs::executor>(plan.view(), gs::all_kernels, on, dims, store);
    e->threads = 1;
  }
  return *e;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + std::ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Trains and validates one model.
class training {
 public:
  training(const configuration& c, const task_data& data, const sizes& s)
      : c_(c),
        data_(data),
        sizes_(s),
        train_plan_(training_plan(c)),
        validate_plan_(validation_plan(c)),
        batches_(data.train, data.buckets, c.seed),
        store_(on_, c.seed),
        rate_{s.peak_rate, s.warmup} {}

  void step() {
    const batch next = batches_.next();
    gs::executor& e = executor_for(train_, next.bucket, train_plan_, on_, dims(data_.buckets[next.bucket]), store_);
    set_input<std::int32_t>(e, 0, next.source);
    set_input<std::int32_t>(e, 1, next.target_in);
    set_input<std::int32_t>(e, 2, next.target_out);
    const auto rate = float(rate_(store_.steps()));
    set_input<float>(e, 3, std::span(&rate, 1));
    const std::clock_t begin = std::clock();
    const auto on_clock = std::chrono::steady_clock::now();
    e.run({.seed = c_.seed, .step = store_.steps()});
    if (next.bucket == 0) {
      step_seconds_.push_back(double(std::clock() - begin) / CLOCKS_PER_SEC);
      clock_seconds_.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - on_clock).count());
    }
    store_.set_steps(store_.steps() + 1);
    bytes_ = std::max(bytes_, e.arena_bytes());
    loss_ = scalar(e, training_output::loss);
    if (c_.is_dense()) return;
    const float* const load = e.output(training_output::load).as<float>(0);
    load_.resize(std::size_t(c_.experts));
    for (std::size_t i = 0; i < load_.size(); ++i) load_[i] += double(load[i]);
    refused_ += scalar(e, training_output::refused);
  }

  /// The validation loss in nats per target token.
  double validate(const validation_set& set) {
    gs::executor& e = executor_for(validate_, 0, validate_plan_, on_, dims(data_.validation_shape), store_);
    double nats = 0, tokens = 0;
    for (const batch& b : set.batches) {
      set_input<std::int32_t>(e, 0, b.source);
      set_input<std::int32_t>(e, 1, b.target_in);
      set_input<std::int32_t>(e, 2, b.target_out);
      e.run({.seed = c_.seed, .step = store_.steps()});
      nats += scalar(e, validation_output::nats);
      tokens += scalar(e, validation_output::tokens);
    }
    return tokens > 0 ? nats / tokens : 0;
  }

  /// The training loss, loads and step times since the last call, and the validation losses.
  nlohmann::json report() {
    nlohmann::json line{{"step", store_.steps()}, {"training_loss", loss_}, {"step_seconds", median(step_seconds_)}};
    for (const validation_set& v : data_.validation) line["validation"][v.name] = validate(v);
    if (!c_.is_dense()) {
      const double all = std::accumulate(load_.begin(), load_.end(), 0.0);
      std::vector<double> share;
      for (const double l : load_) share.push_back(all > 0 ? l * double(load_.size()) / all : 0);
      line["load"] = share;  // 1: an equal share
      line["refused"] = all + refused_ > 0 ? refused_ / (all + refused_) : 0;
    }
    std::fill(load_.begin(), load_.end(), 0.0);
    refused_ = 0;
    forget_times();
    return line;
  }

  /// The times of the steps with the shortest sequences since the last call of `forget_times`.
  const std::vector<double>& step_seconds() const { return step_seconds_; }
  const std::vector<double>& clock_seconds() const { return clock_seconds_; }
  void forget_times() {
    step_seconds_.clear();
    clock_seconds_.clear();
  }

  std::int64_t arena_bytes() const { return bytes_; }
  std::int64_t parameter_count() const {
    std::int64_t n = 0;
    for (const auto& [name, e] : store_.entries())
      if (e.trainable) n += std::accumulate(e.value.extents.begin(), e.value.extents.end(), std::int64_t(1), std::multiplies<>());
    return n;
  }

 private:
  configuration c_;
  const task_data& data_;
  sizes sizes_;
  gs::plan_tables train_plan_, validate_plan_;
  translate::batch_stream batches_;
  gs::any_cluster on_ = gs::on_one_device<gs::mesh<gs::axis<"expert">>>();
  gs::parameter_store store_;
  gs::inverse_square_root rate_;
  std::map<std::size_t, std::unique_ptr<gs::executor>> train_, validate_;
  std::vector<double> step_seconds_;  // CPU time of this process, without other programs
  std::vector<double> clock_seconds_;
  std::vector<double> load_;
  double loss_ = 0, refused_ = 0;
  std::int64_t bytes_ = 0;

  gs::dims dims(const translate::bucket& b) const { return sizes_.dims(b, data_.vocabulary, std::max<std::int64_t>(1, c_.experts)); }
};

}  // namespace

void run(const configuration& c, const task_data& data, const sizes& s, const run_length& length, const std::filesystem::path& results) {
  std::ofstream file(results);
  if (!file) throw std::runtime_error(results.string() + ": cannot be written");
  const auto write = [&](const nlohmann::json& line) {
    file << line.dump() << std::endl;
    if (!file) throw std::runtime_error(results.string() + ": could not be written to its end");
  };
  training t(c, data, s);
  nlohmann::json size = size_of_runs(s);
  size["pieces"] = data.vocabulary;
  for (std::int64_t step = 1; step <= length.steps; ++step) {
    t.step();
    if (step == 1)
      write({{"name", c.name()}, {"task", name_of(c.data)}, {"layers", c.layers}, {"experts", c.experts}, {"capacity", c.capacity},
             {"balance", c.balance}, {"policy", name_of(c.choice)}, {"seed", c.seed},
             {"parameters", t.parameter_count()}, {"steps", length.steps}, {"pairs", data.training_pairs}, {"languages", data.languages},
             {"terms", data.terms}, {"size", size}});
    if (step % length.validate_every != 0 && step != length.steps) continue;
    const nlohmann::json line = t.report();
    write(line);
    std::cout << c.name() << ": step " << step << ", validation " << line["validation"].dump() << std::endl;
  }
  write({{"finished", true}, {"arena_bytes", t.arena_bytes()}});
}

void print_step_times(std::span<const configuration> models, const task_data& data, const sizes& s, int rounds, std::ostream& out) {
  std::vector<std::unique_ptr<training>> all;
  for (const configuration& c : models) all.push_back(std::make_unique<training>(c, data, s));
  for (int round = 0; round <= rounds; ++round)
    for (const auto& t : all) {
      const std::size_t wanted = t->step_seconds().size() + 10;
      while (t->step_seconds().size() < wanted) t->step();
      if (round == 0) t->forget_times();
    }
  const translate::bucket& shape = data.buckets.front();
  out << "Median of " << 10 * rounds << " steps of each model, in turn, on one core. Batches: " << shape.sequences << " pairs of "
      << shape.source_length << " + " << shape.target_length << " positions.\n";
  const double first = median(all.front()->step_seconds());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double core = median(all[i]->step_seconds()), clock = median(all[i]->clock_seconds());
    char line[240];
    std::snprintf(line, sizeof line, "%-44s core %7.1f ms (%4.2f of the first)   clock %7.1f ms   %6.2f M parameters\n", models[i].name().c_str(),
                  1e3 * core, core / first, 1e3 * clock, double(all[i]->parameter_count()) / 1e6);
    out << line << std::flush;
  }
}

}  // namespace scaling
