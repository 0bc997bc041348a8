// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <istream>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Numeric cases as text: a program of the library's verbs, its extents and meshes, and the right numbers. tests/cases/README.md has the
// grammar.
namespace cases {

/// A case that cannot be parsed, or calls an unknown name.
struct bad_case : std::runtime_error {
  using runtime_error::runtime_error;
};

struct expression {
  enum class kind { number, text, list, name, call, member };
  kind what = kind::number;
  double number = 0;
  std::string word;                // name of a tensor, verb or member; the text
  std::vector<expression> parts;   // arguments, numbers of a list, or the owner of a member
  std::vector<std::string> named;  // the name of each argument, or ""
};

/// An input, or a parameter: x: f64[AB] = 0..11.
struct declared {
  std::string name, type, letters;
  bool parameter = false;
  int least = 0;     // int32: at least this, if the numbers are random
  char below = 0;    // int32: less than the extent of this letter
  bool given = false;
  expression data;   // if given: a number for all elements, or a list that repeats
};

struct line {
  enum class kind { input, assign, function, show, same, equal, near, unaffected, differentiable, update, error };
  kind what = kind::show;
  int number = 0;
  declared in;
  std::string name;                // the assigned, defined or varied name; the text of an error
  std::vector<std::string> names;  // parameters of a function
  expression left, right;
};

struct text_case {
  std::string file, title;
  int number = 0;  // line in the file
  std::vector<std::vector<std::pair<char, long>>> sizes;
  std::vector<std::vector<int>> meshes;
  int steps = 1;
  int most = 60;  // the number of shardings to try on a mesh
  std::vector<line> lines;

  std::string place() const { return file + ":" + std::to_string(number) + ": " + title; }
};

/// Reads the expressions and lines of cases.
class case_parser {
 public:
  explicit case_parser(std::string_view text) : text_(text) {}

  bool at_end() {
    skip();
    return at_ == text_.size() || text_[at_] == '#';
  }
  bool take(std::string_view word) {
    skip();
    if (text_.substr(at_, word.size()) != word) return false;
    if (is_letter(word.back()) && at_ + word.size() < text_.size() && is_letter(text_[at_ + word.size()])) return false;
    at_ += word.size();
    return true;
  }
  void need(std::string_view word) {
    if (!take(word)) fail("expected '" + std::string(word) + "'");
  }
  std::string name() {
    skip();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_letter(text_[at_])) ++at_;
    if (begin == at_) fail("expected a name");
    return std::string(text_.substr(begin, at_ - begin));
  }
  double number() {
    skip();
    for (const auto& [word, value] : {std::pair<std::string_view, double>{"-inf", -std::numeric_limits<double>::infinity()},
                                      {"inf", std::numeric_limits<double>::infinity()},
                                      {"nan", std::numeric_limits<double>::quiet_NaN()}})
      if (take(word)) return value;
    const std::string rest(text_.substr(at_));
    char* end = nullptr;
    double value = std::strtod(rest.c_str(), &end);
    std::size_t length = std::size_t(end - rest.c_str());
    // "0..11" is a range: the first dot does not belong to the number.
    if (const std::size_t dots = rest.find(".."); dots < length) {
      value = std::strtod(rest.substr(0, dots).c_str(), nullptr);
      length = dots;
    }
    if (length == 0) fail("expected a number");
    at_ += length;
    return value;
  }
  std::string quoted() {
    need("\"");
    const std::size_t end = text_.find('"', at_);
    if (end == std::string_view::npos) fail("a text does not end");
    const std::string word(text_.substr(at_, end - at_));
    at_ = end + 1;
    return word;
  }

  /// A number, a range or a list of them.
  expression data() {
    expression e;
    if (!take("[")) {
      const double first = number();
      if (!take("..")) {
        e.number = first;
        return e;
      }
      e.what = expression::kind::list;
      add_range(e, first, number());
      return e;
    }
    e.what = expression::kind::list;
    while (!take("]")) {
      const double first = number();
      if (take("..")) add_range(e, first, number());
      else e.parts.push_back(number_of(first));
    }
    return e;
  }

  /// sum := product (+|- product)...
  expression whole() {
    expression e = product();
    while (true) {
      skip();
      if (take("+")) e = operation("add", std::move(e), product());
      else if (take("-")) e = operation("subtract", std::move(e), product());
      else return e;
    }
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw bad_case(why + " at column " + std::to_string(at_ + 1) + " of: " + std::string(text_));
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;

  static bool is_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  static expression number_of(double v) {
    expression e;
    e.number = v;
    return e;
  }
  static void add_range(expression& e, double first, double last) {
    if (!(last - first >= 0 && last - first < 1e6)) throw bad_case("a range has its smaller number first, and at most a million numbers");
    for (double v = first; v <= last; ++v) e.parts.push_back(number_of(v));
  }
  static expression operation(std::string verb, expression a, expression b) {
    expression e;
    e.what = expression::kind::call;
    e.word = std::move(verb);
    e.parts.push_back(std::move(a));
    e.parts.push_back(std::move(b));
    e.named = {"", ""};
    return e;
  }
  expression product() {
    expression e = primary();
    while (true) {
      if (take("*")) e = operation("multiply", std::move(e), primary());
      else if (take("/")) e = operation("divide", std::move(e), primary());
      else return e;
    }
  }
  expression primary() {
    skip();
    expression e;
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    if (take("(")) {
      e = whole();
      need(")");
    } else if (c == '"') {
      e.what = expression::kind::text;
      e.word = quoted();
    } else if (c == '[') {
      e.what = expression::kind::list;
      need("[");
      while (!take("]")) {
        e.parts.push_back(whole());
        if (take("..")) {
          const double first = e.parts.back().number;
          e.parts.pop_back();
          add_range(e, first, number());
        }
        take(",");
      }
    } else if (std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '-') {
      e.number = number();
    } else {
      e.what = expression::kind::name;
      e.word = name();
      if (e.word == "inf" || e.word == "nan") {
        e.what = expression::kind::number;
        e.number = case_parser(e.word).number();
      }
      if (take("(")) arguments(e);
    }
    while (text_.substr(at_, 1) == "." && text_.substr(at_, 2) != "..") {
      need(".");
      expression of;
      of.what = expression::kind::member;
      of.word = name();
      of.parts.push_back(std::move(e));
      e = std::move(of);
    }
    return e;
  }
  void arguments(expression& e) {
    e.what = expression::kind::call;
    while (!take(")")) {
      std::string key;
      const std::size_t before = at_;
      skip();
      if (at_ < text_.size() && std::isalpha(static_cast<unsigned char>(text_[at_])) != 0) {
        key = name();
        if (!take("=")) {
          key.clear();
          at_ = before;
        }
      }
      e.parts.push_back(whole());
      e.named.push_back(key);
      take(",");
    }
  }
};

namespace detail {

inline std::vector<int> mesh_of(const std::string& word) {
  std::vector<int> mesh;
  for (std::size_t at = 0; at < word.size(); ++at) {
    const std::size_t end = word.find('x', at);
    const std::string extent = word.substr(at, end - at);
    if (extent.empty() || extent.find_first_not_of("0123456789") != std::string::npos) throw bad_case("a mesh is 2 or 2x3, not " + word);
    mesh.push_back(std::stoi(extent));
    if (end == std::string::npos) break;
    at = end;
  }
  return mesh;
}

/// f(x, y) = ... defines a function; f(x, y) alone is a call.
inline bool defines_function(const std::string& text) {
  const std::size_t equal = text.find(" = "), open = text.find('('), close = text.find(')');
  return equal != std::string::npos && open < equal && close < equal && text.find_first_of(" \"[") > open && close == equal - 1;
}

inline line parse_line(const std::string& text) {
  line l;
  case_parser p(text);
  const auto rest = [&](line::kind what, auto read) {
    l.what = what;
    read();
    if (!p.at_end()) p.fail("unexpected text");
    return l;
  };
  if (p.take("error")) {
    rest(line::kind::error, [&] { l.name = p.quoted(); });
    if (l.name.empty()) p.fail("an error has a text");
    return l;
  }
  if (p.take("same")) return rest(line::kind::same, [&] { l.left = p.whole(); });
  if (p.take("differentiable")) return rest(line::kind::differentiable, [&] { l.left = p.whole(); });
  if (p.take("update")) return rest(line::kind::update, [&] { l.left = p.whole(); });
  const std::size_t colon = text.find(": "), equal = text.find(" = ");
  if (colon != std::string::npos && text.find_first_of("(\"") > colon) {
    l.what = line::kind::input;
    l.in.name = p.name();
    p.need(":");
    l.in.parameter = p.take("param");
    l.in.type = p.name();
    p.need("[");
    if (!p.take("]")) {
      l.in.letters = p.name();
      p.need("]");
    }
    if (p.take("from")) l.in.least = int(p.number());
    if (p.take("below")) l.in.below = p.name()[0];
    if (p.take("=")) {
      l.in.given = true;
      l.in.data = p.data();
    }
  } else if (defines_function(text)) {
    l.what = line::kind::function;
    l.name = p.name();
    p.need("(");
    while (!p.take(")")) {
      l.names.push_back(p.name());
      p.take(",");
    }
    p.need("=");
    l.left = p.whole();
  } else if (equal != std::string::npos && text.find_first_of("(\" ") == equal) {
    l.what = line::kind::assign;
    l.name = p.name();
    p.need("=");
    l.left = p.whole();
  } else {
    l.left = p.whole();
    if (p.take("unaffected")) {
      p.need("by");
      l.what = line::kind::unaffected;
      l.name = p.name();
    } else if (p.take("==")) {
      l.what = line::kind::equal;
    } else if (p.take("~")) {
      l.what = line::kind::near;
    }
    if (l.what == line::kind::equal || l.what == line::kind::near) l.right = p.whole();
  }
  if (!p.at_end()) p.fail("unexpected text");
  return l;
}

inline void read_sizes(text_case& c, case_parser& p) {
  c.sizes.emplace_back();
  while (!p.at_end()) {
    if (p.take("|")) {
      c.sizes.emplace_back();
      continue;
    }
    const char letter = p.name()[0];
    p.need("=");
    c.sizes.back().push_back({letter, long(p.number())});
  }
}

inline void read_line(text_case& c, const std::string& text, int number) {
  case_parser p(text);
  if (p.at_end()) return;
  if (p.take("sizes")) return read_sizes(c, p);
  if (p.take("meshes")) {
    while (!p.at_end()) c.meshes.push_back(mesh_of(p.name()));
    return;
  }
  for (const auto& [word, number_of_case] : {std::pair{"steps", &c.steps}, {"most", &c.most}}) {
    if (!p.take(word)) continue;
    *number_of_case = int(p.number());
    if (*number_of_case < 1 || !p.at_end()) p.fail(std::string(word) + " takes a number from 1 on");
    return;
  }
  c.lines.push_back(parse_line(text));
  for (std::size_t i = 0; i + 1 < c.lines.size(); ++i)
    if (c.lines[i].what == line::kind::error && c.lines.back().what == line::kind::error) p.fail("a second error");
  c.lines.back().number = number;
}

}  // namespace detail

/// The blocks of language "case" in a Markdown text. Their titles are the headings before them. Throws `bad_case` with the line of a fault.
inline std::vector<text_case> read_cases(std::istream& in, const std::string& file) {
  std::vector<text_case> found;
  std::string text, title;
  bool inside = false;
  for (int number = 1; std::getline(in, text); ++number) {
    if (text.starts_with("#") && !inside) title = text.substr(text.find_first_not_of("# "));
    const std::size_t begin = text.find_first_not_of(' '), end = text.find_last_not_of(" \r");
    const std::string trimmed = begin == std::string::npos ? "" : text.substr(begin, end + 1 - begin);
    if (trimmed == "```case" && !inside) {
      inside = true;
      found.emplace_back();
      found.back().file = file;
      found.back().title = title;
      found.back().number = number;
    } else if (trimmed == "```") {
      inside = false;
    } else if (inside) {
      try {
        detail::read_line(found.back(), text, number);
      } catch (const std::exception& e) {
        throw bad_case(file + ":" + std::to_string(number) + ": " + e.what());
      }
    }
  }
  for (text_case& c : found)
    if (c.sizes.empty()) c.sizes.emplace_back();
  return found;
}
inline std::vector<text_case> read_cases(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw bad_case("cannot read " + file);
  return read_cases(in, file.substr(file.rfind('/') + 1));
}

}  // namespace cases
