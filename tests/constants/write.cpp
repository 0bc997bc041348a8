// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Writes random programs as source code, in which the compiler plans them: write_constants FIRST COUNT SOURCE
#define DOCTEST_CONFIG_IMPLEMENT  // of what tests share
#include "../exec/random_program_text.hpp"
#include "../exec/random_program_writer.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace {

using namespace random_program;

std::string name_of(int type) { return std::string(gs::name(gs::dtype(type))); }

/// "f64[A@x,B?]"
std::string tensor_text(const step& s, const std::string& axes) {
  std::string text = name_of(s.number[0]) + "[";
  const auto axis = [&](int a) { return axes.substr(std::size_t(a), 1); };
  for (int d = 0; d < s.layout.rank; ++d) {
    text += (d ? "," : "") + s.text.substr(std::size_t(d), 1);
    for (int i = 0; i < s.layout[d].size(); ++i) text += "@" + axis(s.layout[d][i]);
    if (s.layout.is_open(d)) text += "?";
  }
  if (s.layout.rank == 1) text += ",";
  return text + "]";
}

/// True if an einsum sums two letters that one operand alone has. The compiler may take them for misspelt.
bool sums_two_letters(const recipe& r) {
  return std::any_of(r.steps.begin(), r.steps.end(), [](const step& s) {
    if (s.what != verb::einsum) return false;
    const std::size_t arrow = s.text.find("->"), comma = std::min(s.text.find(','), arrow);
    const std::string first = s.text.substr(0, comma), second = s.text.substr(comma, arrow - comma), out = s.text.substr(arrow);
    int alone = 0;
    for (char c = 'a'; c <= 'z'; ++c) {
      const bool in_first = first.find(c) != first.npos, in_second = second.find(c) != second.npos;
      alone += in_first != in_second && out.find(c) == out.npos;
    }
    return alone > 1;
  });
}

/// A check of one program, and the program.
std::string code_of(std::uint32_t seed) {
  recipe r = written(seed);
  const std::string axes(run_graph::axis_letters);
  std::vector<std::string> mesh, texts, types;
  std::string mesh_text;
  for (std::size_t a = 0; a < r.on.mesh.size(); ++a) {
    const std::string axis = axes.substr(a, 1), extent = std::to_string(r.on.mesh[a]);
    const bool known = r.on.known_axes.find(axis) != std::string::npos;
    mesh.push_back("gs::axis<\"" + axis + (known ? "\", " + extent : "\"") + ">");
    mesh_text += (a ? "," : "") + axis + (known ? "=" + extent : "");
  }
  for (step& s : r.steps) {
    if (s.what != verb::input) continue;
    s.layout.partial = 0;  // there is no text for partial inputs
    const std::string spec = detail::spec(s.layout);
    types.push_back("gs::in<\"" + s.text + "\", " + detail::type_name(s.number[0]) + ", " + spec.substr(0, spec.size() - 2) + ">");
    texts.push_back("\"" + tensor_text(s, axes) + "\"");
  }
  const std::string name = "seed_" + std::to_string(seed);
  return "namespace " + name + " {\nconstexpr auto model = []([[maybe_unused]] auto& m, auto... inputs) {\n" +
         "    const std::array x{symbol(inputs)...};\n" + body_of(r, "std::array{", "}") + "};\n" +
         "using program = gs::program<model, gs::mesh<" + detail::joined(mesh) + ">, " + detail::joined(types) +
         (r.on.keep_pending ? ", gs::partial_outputs" : "") + ">;\n" + "const bool checked = constants::check(program::plan, " +
         std::to_string(seed) + ", {model, \"" + mesh_text + "\", {" + detail::joined(texts) + "}, {.compile = {.partial_outputs = " +
         detail::truth(r.on.keep_pending) + "}}});\n}\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const auto first = std::uint32_t(std::strtoul(argv[1], nullptr, 10)), count = std::uint32_t(std::strtoul(argv[2], nullptr, 10));
  std::ofstream to(argv[3]);
  to << "#include \"constants/check.hpp\"\nnamespace {\nusing gs::symbol;\nusing namespace gs;\n";
  for (std::uint32_t seed = first; seed < first + count; ++seed)
    if (!sums_two_letters(written(seed))) to << code_of(seed);
  to << "}\n";
  return to.flush() ? 0 : 1;
}
