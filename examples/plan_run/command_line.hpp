// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "models.hpp"
#include "network_options.hpp"
#include "numbers.hpp"
#include "simulate.hpp"

#include <gshard/sim/run/dry_run.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plan_run {

/// The parsed command line.
struct command_line {
  std::string plan = "600B", mesh = "tpu-v3:32x32", axes, snake;
  translation_model model;
  gs::dry_run_options run;
  network_options network;
  std::string json, html, timeline, links_svg, links_csv;
  bool sweep = true, by_index = false;

  /// The axes of --axes. Without it: as many devices along "expert" as there are experts, the others along "data". Throws gshard::error if
  /// the axes make no mesh of `devices` devices. The message quotes the option.
  mesh_axes axes_on(int devices) const {
    mesh_axes m = axes.empty() ? default_axes(model, devices) : asked_axes(devices);
    if (snake.empty()) return m;
    m.snakes = split(snake, ',');
    for (const std::string& name : m.snakes)
      if (!m.has(name)) throw gs::error("--snake " + snake + ": '" + name + "' is none of the axes " + m.text());
    return m;
  }

 private:
  mesh_axes asked_axes(int devices) const {
    mesh_axes m;
    std::int64_t product = 1;
    for (const std::string& entry : split(axes, ',')) {
      const std::size_t equals = std::min(entry.find('='), entry.size());
      const std::string name = entry.substr(0, equals);
      const auto extent = parse_number<int>(std::string_view(entry).substr(std::min(equals + 1, entry.size())));
      if ((name != "data" && name != "expert" && name != "model") || !extent || *extent < 1)
        throw gs::error("--axes " + axes + ": '" + entry +
                        "' is no axis; wants axes called data, expert and model with their extents, as in data=2,expert=1024");
      if (m.has(name)) throw gs::error("--axes " + axes + ": names " + name + " twice");
      m.list.emplace_back(name, *extent);
      product = std::min<std::int64_t>(product * *extent, std::numeric_limits<int>::max());
    }
    if (!m.has("expert")) throw gs::error("--axes " + axes + ": has no axis called expert, over which experts are sharded");
    if (product != devices)
      throw gs::error("--axes " + axes + ": makes " + std::to_string(product) + " devices, " + mesh + " has " + std::to_string(devices));
    return m;
  }
};

/// The range of a number.
struct range {
  std::string words;
  double least = 0, most = std::numeric_limits<double>::max();
  bool more_than_least = false;

  bool has(double x) const { return (more_than_least ? x > least : x >= least) && x <= most; }
};
inline const range a_share{"a share above 0 and at most 1", 0, 1, true};
inline const range above_zero{"a number above 0", 0, std::numeric_limits<double>::max(), true};
inline const range at_least_zero{"a number of at least 0"};
inline range whole(int least) { return {"a whole number of at least " + std::to_string(least), double(least)}; }

/// Reads the arguments into `c`, which must outlive the parser.
class command_parser {
 public:
  explicit command_parser(command_line& c) : c_(c) {
    app_.name("examples/run.sh");
    app_.footer("Models: " + model_names() + ", from arXiv 2006.16668.\n"
                "Hardware: a preset and its chips, as in tpu-v3:32x32, tpu-v4:8x8x16, slingshot-11:64.\n"
                "A config file has lines such as layers = 24.");
    app_.set_config("--config", "", "read options from a file of lines such as `layers = 24`; those of the command line come first");
    app_.allow_config_extras(CLI::config_extras_mode::error);
    text("", "--plan", c.plan, "the model whose training step is planned; the options of the group Model change it")->capture_default_str();
    text("", "--mesh", c.mesh, "the hardware")->capture_default_str();
    text("", "--axes", c.axes,
         "axes of the mesh of devices, major to minor: experts are sharded over expert, heads and hidden units over model, groups over all "
         "others; without it expert=N, or data=M,expert=N. Their order is their mapping: row-major over the torus, the last axis takes the "
         "cores of a chip, then the last dimensions");
    text("", "--json", c.json, "write the run as JSON to this file");
    text("", "--html", c.html, "write a report to this file, which a browser shows");
    text("", "--timeline", c.timeline, "write a timeline to this file, which Perfetto shows");
    text("", "--links-svg", c.links_svg, "draw the bytes over every link to this file");
    text("", "--links-csv", c.links_csv, "write them as a table to this file");
    app_.add_flag_callback("--no-sweep", [&c] { c.sweep = false; }, "do not compare with other meshes");

    using model = translation_model;
    of_model("--layers", &model::layers, 3, "half of them in the encoder");
    of_model("--experts", &model::experts, 1, "of a layer");
    of_model("--groups", &model::groups, 1, "of tokens; at least one for each device");
    of_model("--tokens", &model::tokens, 1, "of a step, source and target");
    of_model("--sequence", &model::sequence, 1, "tokens of a sentence");
    of_model("--width", &model::width, 1, "of the model");
    of_model("--hidden", &model::hidden, 1, "units of a feed-forward layer");
    of_model("--heads", &model::heads, 1, "of attention");
    of_model("--head-width", &model::head_width, 1, "of keys and values");
    of_model("--source-words", &model::source_words, 1, "of the vocabulary");
    of_model("--target-words", &model::target_words, 1, "of the vocabulary");
    number<double>("Model", "--capacity", [this](double x) { changes_.push_back([x](model& m) { m.capacity_factor = x; }); },
                   "places of all experts for each token", above_zero);
    app_.add_flag("--by-index", c.by_index, "tokens go to experts by index, not by products with one-hot matrices as in the paper")
        ->group("Model");

    network_options& net = c.network;
    number("Network", "--link-bytes", net.link_bytes, "bytes a second of a link, one way", above_zero);
    number("Network", "--hop", net.hop, "seconds from a chip to its neighbor", at_least_zero);
    number("Network", "--launch", net.launch, "seconds until a collective has started", at_least_zero);
    text("Network", "--rings", net.rings, "dimensions of the torus whose ends are joined: all, none, or such as 0,1");
    choice("Network", "--ties", net.ties, {{"one-way", gs::tie_policy::one_way}, {"split", gs::tie_policy::split}},
           "where messages go that are as far both ways round a ring");
    choice("Network", "--gather", net.gather,
           {{"one-way", gs::gather_scheme::one_way}, {"both-ways", gs::gather_scheme::both_ways},
            {"all-links", gs::gather_scheme::all_links}, {"streamed", gs::gather_scheme::streamed}},
           "how gathers and sums use the links");
    choice("Network", "--exchange", net.exchange,
           {{"by-dimension", gs::all_to_all_scheme::by_dimension}, {"all-orders", gs::all_to_all_scheme::all_orders},
            {"direct", gs::all_to_all_scheme::direct}},
           "how all-to-alls use them");
    text("Network", "--snake", c.snake, "axes whose devices are neighbors one after the other, as expert or data,expert");

    gs::efficiency& share = c.run.share;
    gs::faults& faults = c.run.faults;
    choice("Simulation", "--recompute", c.run.activations,
           {{"never", gs::recompute::never}, {"when-needed", gs::recompute::when_needed}, {"always", gs::recompute::always}},
           "which layers' activations are made again for the gradient");
    number("Simulation", "--products", share.products, "share of the peak that large matrix products reach", a_share);
    number("Simulation", "--batched-products", share.batched_products, "the same of many small products", a_share);
    number("Simulation", "--memory-rate", share.memory, "share of the memory's rate", a_share);
    number("Simulation", "--all-to-all", share.all_to_all, "share of the links in all-to-alls", a_share);
    app_.add_option("--straggler", stragglers_, "DEVICE:FACTOR, a device that takes so many times as long; more than one may be given")
        ->group("Simulation");
    app_.add_option("--dead", dead_, "a dead device")->group("Simulation");
    app_.add_option("--slow-link", slow_links_,
                    "FROM-TO:FACTOR, a link between neighboring chips, of whose bytes a second this share is left; 0: it is dead")
        ->group("Simulation");
    number("Simulation", "--jitter", faults.jitter, "every step of a device takes up to this share longer", at_least_zero);
    number("Simulation", "--seed", faults.seed, "of the jitter", whole(0));
    number("Simulation", "--timeout", faults.timeout, "seconds after which a device gives up waiting for a dead one", at_least_zero);
    app_.add_flag("--overlap", c.run.overlap, "collectives overlap with independent computation")->group("Simulation");
    app_.add_flag("--report-only", c.run.report_only, "report what does not fit into memory instead of giving up")->group("Simulation");
  }
  command_parser(const command_parser&) = delete;
  command_parser& operator=(const command_parser&) = delete;

  /// Throws CLI::ParseError, or CLI::Success if help was requested.
  void parse(int argc, const char* const* argv) {
    app_.parse(argc, argv);
    const auto known = find_model(c_.plan);
    if (!known) throw CLI::ValidationError("--plan", "there is no model " + c_.plan + "; there are " + model_names());
    c_.model = *known;
    for (const auto& change : changes_) change(c_.model);
    c_.model.one_hot_products = !c_.by_index;
    gs::faults& faults = c_.run.faults;
    for (const std::string& s : dead_) {
      const auto device = parse_number<int>(s);
      if (!device || *device < 0) throw CLI::ValidationError("--dead", "wants the number of a device, not " + s);
      faults.dead_devices.push_back(*device);
    }
    for (const std::string& s : stragglers_) {
      const std::size_t colon = std::min(s.find(':'), s.size());
      const auto device = parse_number<int>(s.substr(0, colon));
      const auto factor = parse_number<double>(s.substr(std::min(colon + 1, s.size())));
      if (!device || *device < 0 || !factor || *factor <= 0)
        throw CLI::ValidationError("--straggler", "wants DEVICE:FACTOR, as 17:2, not " + s);
      faults.stragglers.push_back({*device, *factor});
    }
    for (const std::string& s : slow_links_) {
      const std::size_t dash = std::min(s.find('-'), s.size()), colon = std::min(s.find(':', dash), s.size());
      const auto from = parse_number<int>(s.substr(0, dash));
      const auto to = parse_number<int>(s.substr(std::min(dash + 1, s.size()), colon - dash - 1));
      const auto factor = parse_number<double>(s.substr(std::min(colon + 1, s.size())));
      if (!from || !to || !factor || *from < 0 || *to < 0 || *factor < 0 || *factor > 1)
        throw CLI::ValidationError("--slow-link", "wants FROM-TO:FACTOR with a factor from 0 to 1, as 0-1:0.5, not " + s);
      faults.links.push_back({*from, *to, *factor});
    }
  }
  int exit(const CLI::Error& e) const { return app_.exit(e); }
  std::string help() const { return app_.help(); }

 private:
  command_line& c_;
  CLI::App app_{"Plans a training step of a mixture-of-experts Transformer for a TPU mesh, and says what it takes and holds."};
  std::vector<std::function<void(translation_model&)>> changes_;  // applied to the model that --plan names
  std::vector<std::string> stragglers_, dead_, slow_links_;

  CLI::Option* text(const std::string& group, const std::string& name, std::string& to, const std::string& what) {
    return app_.add_option(name, to, what)->group(group.empty() ? "Options" : group);
  }
  /// Adds an option with one value. `read` returns false if it rejects the value.
  CLI::Option* value(const std::string& group, const std::string& name, const std::string& what, const std::string& wanted,
                     std::function<bool(const std::string&)> read) {
    const auto take = [name, wanted, read](const std::string& s) {
      if (!read(s)) throw CLI::ValidationError(name, "wants " + wanted + ", not " + s);
    };
    return app_.add_option_function<std::string>(name, take, what)->group(group);
  }
  template <class T>
  void number(const std::string& group, const std::string& name, std::function<void(T)> set, const std::string& what, const range& in) {
    value(group, name, what, in.words, [set, in](const std::string& s) {
      const auto n = parse_number<T>(s);
      if (!n || !in.has(double(*n))) return false;
      set(*n);
      return true;
    })->type_name("NUMBER");
  }
  template <class T>
  void number(const std::string& group, const std::string& name, T& to, const std::string& what, const range& in) {
    number<T>(group, name, [&to](T n) { to = n; }, what, in);
  }
  template <class T>
  void number(const std::string& group, const std::string& name, std::optional<T>& to, const std::string& what, const range& in) {
    number<T>(group, name, [&to](T n) { to = n; }, what, in);
  }
  template <class T>
  void of_model(const std::string& name, T translation_model::*member, int least, const std::string& what) {
    number<T>("Model", name, [this, member](T n) { changes_.push_back([=](translation_model& m) { m.*member = n; }); }, what,
              whole(least));
  }
  template <class T>
  void choice(const std::string& group, const std::string& name, T& to, const std::vector<std::pair<std::string, T>>& values,
              const std::string& what) {
    std::string names, wanted;
    for (std::size_t i = 0; i < values.size(); ++i) {
      names += (i == 0 ? "" : "|") + values[i].first;
      wanted += (i == 0 ? "" : i + 1 == values.size() ? " or " : ", ") + values[i].first;
    }
    value(group, name, what, wanted, [&to, values](const std::string& s) {
      for (const auto& [word, meant] : values)
        if (word == s) {
          to = meant;
          return true;
        }
      return false;
    })->type_name(names);
  }
};

}  // namespace plan_run
