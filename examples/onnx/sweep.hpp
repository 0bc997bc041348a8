// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Checks all models of a tree of ONNX's test data, and prints a table.

#include <gshard/io/plan/plan_file.hpp>
#include <gshard/onnx.hpp>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sweeping {

namespace gs = gshard;
using outcome = gs::onnx::check_result::outcome;

inline std::string text_of(const gs::onnx::check_result& r) {
  switch (r.what) {
    case outcome::passed:
      return "passed, " + std::to_string(r.runs) + " runs" + (r.is_known ? ", computed while importing" : "");
    case outcome::refused:
      return "refused: " + r.text;
    case outcome::wrong:
      return "WRONG: " + r.text;
  }
  return {};
}

/// Test data that contradict their model.
struct contradiction {
  std::string_view model, why;
};
inline constexpr contradiction contradictions[]{
    {"node/test_adam_multiple", "the data were made with epsilon = 0.01, which the model does not state"},
};

/// The plan of a program, written as a file and read.
inline gs::runtime_plan read_again(const gs::onnx::imported_program& p) {
  static const gs::plan_functions functions = gs::onnx::model_functions();
  return gs::parse_plan(gs::plan_text(p.program.plan(), functions), "a plan", functions);
}

/// All data sets of a folder with a model.onnx.
inline gs::onnx::check_result check_folder(const std::string& folder, const gs::onnx::check_options& options) {
  gs::onnx::check_result all;
  try {
    const gs::onnx::model m = gs::onnx::read_model(folder + "/model.onnx");
    for (int i = 0; std::filesystem::exists(folder + "/test_data_set_" + std::to_string(i)); ++i) {
      const gs::onnx::check_result r = gs::onnx::check_data_set(m, folder + "/test_data_set_" + std::to_string(i), options);
      all.runs += r.runs;
      all.is_known = r.is_known;
      if (r.what != outcome::passed) {
        all.what = r.what;
        all.text = r.text;
        return all;
      }
    }
  } catch (const gs::error& e) {
    all.what = outcome::refused;
    all.text = e.what();
  }
  return all;
}

struct counts {
  int passed = 0, refused = 0, wrong = 0, known = 0, contradictory = 0;
};

inline void print(const std::string& folder, const counts& c) {
  std::cout << folder << ": " << c.passed + c.refused + c.wrong + c.contradictory << " models, " << c.passed << " passed (" << c.known
            << " computed while importing), " << c.refused << " refused, " << c.contradictory << " with contradictory data, " << c.wrong
            << " wrong\n";
}

inline int sweep(const std::string& root, const gs::onnx::check_options& how) {
  std::map<std::string, counts> table;
  std::vector<std::string> folders;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root))
    if (entry.path().filename() == "model.onnx") folders.push_back(entry.path().parent_path().string());
  std::sort(folders.begin(), folders.end());
  long runs = 0;
  for (const std::string& folder : folders) {
    const gs::onnx::check_result r = check_folder(folder, how);
    const std::filesystem::path path(folder);
    counts& c = table[path.parent_path().filename().string()];
    const std::string name = path.parent_path().filename().string() + '/' + path.filename().string();
    const auto listed =
        std::find_if(std::begin(contradictions), std::end(contradictions), [&](const contradiction& one) { return one.model == name; });
    if (r.what == outcome::wrong && listed != std::end(contradictions)) {
      ++c.contradictory;
      std::cout << name << ": contradictory: " << listed->why << std::endl;
      continue;
    }
    (r.what == outcome::passed ? c.passed : r.what == outcome::refused ? c.refused : c.wrong) += 1;
    c.known += r.what == outcome::passed && r.is_known;
    runs += r.runs;
    std::cout << name << ": " << text_of(r) << std::endl;
  }
  std::cout << '\n';
  counts all;
  for (const auto& [name, c] : table) {
    print(name, c);
    all.passed += c.passed, all.refused += c.refused, all.wrong += c.wrong, all.known += c.known, all.contradictory += c.contradictory;
  }
  print("all", all);
  std::cout << runs << " runs\n";
  return all.wrong == 0 ? 0 : 1;
}

}  // namespace sweeping
