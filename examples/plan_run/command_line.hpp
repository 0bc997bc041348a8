// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "models.hpp"
#include "simulate.hpp"

#include <gshard/comm/simulator/dry_run.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace plan_run {

/// What the program is asked for.
struct command_line {
  std::string plan = "600B", mesh = "tpu-v3:32x32", axes;
  gs::nn::translation_model model;
  gs::dry_run_options run;
  std::vector<std::string> stragglers, slow_links;
  double link_bytes = 0;
  std::string json, html, timeline;
  bool sweep = true, by_index = false;

  /// The axes that were asked for, or as many devices along "expert" as there are experts, the others along "data".
  mesh_axes axes_on(int devices) const {
    if (axes.empty()) {
      int expert = devices;
      while (expert > model.experts && expert % 2 == 0) expert /= 2;
      return make_axes(devices / expert, expert, 1);
    }
    mesh_axes m;
    for (std::size_t at = 0; at < axes.size();) {
      const std::size_t end = std::min(axes.find(',', at), axes.size());
      const std::string entry = axes.substr(at, end - at), name = entry.substr(0, entry.find('='));
      int extent = 0;
      if (name.size() < entry.size()) extent = std::atoi(entry.c_str() + name.size() + 1);
      if ((name != "data" && name != "expert" && name != "model") || extent < 1)
        throw gs::error("--axes " + axes + ": wants axes called data, expert and model with their extents, as in data=2,expert=1024");
      m.list.emplace_back(name, extent);
      at = end + 1;
    }
    return m;
  }
};

/// Reads the arguments into `c`, which must outlive the parser.
class command_parser {
 public:
  explicit command_parser(command_line& c) : c_(c) {
    app_.footer("Models: " + model_names() + ", from arXiv 2006.16668.\n"
                "Hardware: a preset and its chips, as in tpu-v3:32x32, tpu-v4:8x8x16, slingshot-11:64.\n"
                "A config file has lines such as layers = 24.");
    app_.set_config("--config", "", "read options from a file of lines such as `layers = 24`; those of the command line come first");
    app_.add_option("--plan", c.plan, "the model whose training step is planned; the options of the group Model change it")
        ->capture_default_str();
    app_.add_option("--mesh", c.mesh, "the hardware")->capture_default_str();
    app_.add_option("--axes", c.axes,
                    "axes of the mesh of devices, major to minor: experts are cut over expert, heads and hidden units over model, groups "
                    "over all others; without it expert=N, or data=M,expert=N");
    app_.add_option("--json", c.json, "write the run as JSON to this file");
    app_.add_option("--html", c.html, "write a report to this file, which a browser shows");
    app_.add_option("--timeline", c.timeline, "write a timeline to this file, which Perfetto shows");
    app_.add_flag("!--no-sweep", c.sweep, "do not compare with other meshes");

    number("--layers", &gs::nn::translation_model::layers, "half of them in the encoder");
    number("--experts", &gs::nn::translation_model::experts, "of a layer");
    number("--groups", &gs::nn::translation_model::groups, "of tokens; at least one for each device");
    number("--tokens", &gs::nn::translation_model::tokens, "of a step, source and target");
    number("--sequence", &gs::nn::translation_model::sequence, "tokens of a sentence");
    number("--width", &gs::nn::translation_model::width, "of the model");
    number("--hidden", &gs::nn::translation_model::hidden, "units of a feed-forward layer");
    number("--heads", &gs::nn::translation_model::heads, "of attention");
    number("--head-width", &gs::nn::translation_model::head_width, "of keys and values");
    number("--source-words", &gs::nn::translation_model::source_words, "of the vocabulary");
    number("--target-words", &gs::nn::translation_model::target_words, "of the vocabulary");
    number("--capacity", &gs::nn::translation_model::capacity_factor, "places of all experts for each token");
    app_.add_flag("--by-index", c.by_index, "tokens go to experts by index, not by products with one-hot matrices as in the paper")
        ->group("Model");

    gs::efficiency& share = c.run.share;
    const std::map<std::string, gs::recompute> ways{
        {"never", gs::recompute::never}, {"when-needed", gs::recompute::when_needed}, {"always", gs::recompute::always}};
    run("--recompute", c.run.activations, "which layers' activations are made again for the gradient")
        ->transform(CLI::CheckedTransformer(ways));
    run("--products", share.products, "share of the peak that large matrix products reach");
    run("--batched-products", share.batched_products, "the same of many small products");
    run("--memory-rate", share.memory, "share of the memory's rate");
    run("--all-to-all", share.all_to_all, "share of the links in all-to-alls");
    run("--link-bytes", c.link_bytes, "bytes a second of a link, one way; 0: the preset's");
    run("--straggler", c.stragglers, "DEVICE:FACTOR, a device that takes so many times as long; more than one may be given");
    run("--dead", c.run.faults.dead_devices, "a dead device");
    run("--slow-link", c.slow_links,
        "FROM-TO:FACTOR, a link between neighbouring chips, of whose bytes a second this share is left; 0: it is dead");
    run("--jitter", c.run.faults.jitter, "every step of a device takes up to this share longer");
    run("--seed", c.run.faults.seed, "of the jitter");
    app_.add_flag("--overlap", c.run.overlap, "collectives go on while steps compute that do not need them")->group("Simulation");
    app_.add_flag("--report-only", c.run.report_only, "report what does not fit into memory instead of giving up")->group("Simulation");
  }
  command_parser(const command_parser&) = delete;
  command_parser& operator=(const command_parser&) = delete;

  /// Throws CLI::ParseError, and CLI::Success where help was asked for.
  void parse(int argc, const char* const* argv) {
    app_.parse(argc, argv);
    const auto known = find_model(c_.plan);
    if (!known) throw CLI::ValidationError("--plan", "there is no model " + c_.plan + "; there are " + model_names());
    c_.model = *known;
    for (const auto& [option, set] : numbers_)
      if (option->count() > 0) set();
    c_.model.one_hot_products = !c_.by_index;
    for (const std::string& s : c_.stragglers) {
      const std::size_t colon = s.find(':');
      const double factor = colon == s.npos ? 0 : std::atof(s.c_str() + colon + 1);
      if (!(factor > 0)) throw CLI::ValidationError("--straggler", "wants DEVICE:FACTOR, as 17:2, not " + s);
      c_.run.faults.stragglers.push_back({std::atoi(s.c_str()), factor});
    }
    for (const std::string& s : c_.slow_links) {
      gs::link_fault f;
      if (std::sscanf(s.c_str(), "%d-%d:%lf", &f.from, &f.to, &f.factor) != 3)
        throw CLI::ValidationError("--slow-link", "wants FROM-TO:FACTOR, as 0-1:0.5, not " + s);
      c_.run.faults.links.push_back(f);
    }
  }
  int exit(const CLI::Error& e) const { return app_.exit(e); }

 private:
  command_line& c_;
  CLI::App app_{"Plans a training step of a mixture-of-experts Transformer for a TPU mesh, and says what it takes and holds."};
  std::vector<std::pair<CLI::Option*, std::function<void()>>> numbers_;

  template <class T>
  void number(const std::string& name, T gs::nn::translation_model::*member, const std::string& what) {
    const auto given = std::make_shared<T>();
    CLI::Option* o = app_.add_option(name, *given, what)->group("Model")->check(CLI::PositiveNumber);
    numbers_.emplace_back(o, [this, given, member] { c_.model.*member = *given; });
  }
  template <class T>
  CLI::Option* run(const std::string& name, T& to, const std::string& what) {
    return app_.add_option(name, to, what)->group("Simulation");
  }
};

}  // namespace plan_run
