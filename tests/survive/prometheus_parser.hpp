// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cctype>
#include <cstddef>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

/// A strict parser of Prometheus' text format: HELP, then TYPE, then all samples of a metric. Names, labels and numbers must have the right
/// format. No sample appears twice. Counters end in _total. Time stamps, which node exporter refuses, are errors. Throws
/// std::runtime_error.
class prometheus_parser {
 public:
  /// Samples by name and labels: R"(gshard_value{name="loss",process="0"})".
  std::map<std::string, double> samples;
  std::map<std::string, std::string> types;

  explicit prometheus_parser(const std::string& text) {
    if (text.empty() || text.back() != '\n') refuse("the last line has no end");
    std::size_t begin = 0;
    for (std::size_t end; begin < text.size(); begin = end + 1) {
      end = text.find('\n', begin);
      line_ = text.substr(begin, end - begin);
      at_ = 0;
      if (line_.rfind("# HELP ", 0) == 0) help();
      else if (line_.rfind("# TYPE ", 0) == 0) type();
      else sample();
    }
    if (!current_.empty() && !has_sample_) refuse("metric without samples: " + current_);
  }

 private:
  std::string line_, current_, helped_;
  std::size_t at_ = 0;
  bool has_sample_ = true;
  std::set<std::string> done_;

  [[noreturn]] void refuse(const std::string& why) const { throw std::runtime_error(why + " in: " + line_); }
  char peek() const { return at_ < line_.size() ? line_[at_] : '\0'; }
  void expect(char c) {
    if (peek() != c) refuse(std::string("expected ") + c + " at " + std::to_string(at_));
    ++at_;
  }
  std::string name(bool colons) {
    std::string s;
    const auto is_letter = [&](char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || (colons && c == ':'); };
    if (!is_letter(peek())) refuse("no name at " + std::to_string(at_));
    while (is_letter(peek()) || (peek() >= '0' && peek() <= '9')) s += line_[at_++];
    return s;
  }
  void help() {
    at_ = 7;
    if (!has_sample_) refuse("metric without samples: " + current_);
    helped_ = name(true);
    expect(' ');
    if (at_ == line_.size()) refuse("no help");
    for (; at_ < line_.size(); ++at_)
      if (line_[at_] == '\\') {
        ++at_;
        if (peek() != '\\' && peek() != 'n') refuse("a bad escape in help");
      }
    if (!done_.insert(helped_).second) refuse("a metric twice");
  }
  void type() {
    at_ = 7;
    current_ = name(true);
    if (current_ != helped_) refuse("TYPE does not follow HELP");
    expect(' ');
    const std::string kind = line_.substr(at_);
    if (kind != "gauge" && kind != "counter") refuse("type " + kind);
    const bool is_total = current_.size() > 6 && current_.substr(current_.size() - 6) == "_total";
    if ((kind == "counter") != is_total) refuse("a counter ends in _total, and nothing else");
    types[current_] = kind;
    has_sample_ = false;
  }
  void sample() {
    const std::string metric = name(true);
    if (metric != current_) refuse("a sample outside of its metric");
    std::map<std::string, std::string> labels;
    if (peek() == '{') {
      do {
        ++at_;
        const std::string key = name(false);
        if (key.rfind("__", 0) == 0) refuse("a reserved label");
        expect('=');
        expect('"');
        std::string value;
        for (; peek() != '"'; ++at_) {
          if (at_ >= line_.size()) refuse("a label without an end");
          value += line_[at_];
          if (line_[at_] == '\\') {
            ++at_;
            if (peek() != '\\' && peek() != '"' && peek() != 'n') refuse("a bad escape");
            value += line_[at_];
          }
        }
        expect('"');
        if (!labels.emplace(key, value).second) refuse("a label twice");
      } while (peek() == ',');
      expect('}');
    }
    expect(' ');
    const std::string number = line_.substr(at_);
    double x = 0;
    if (number != "NaN" && number != "+Inf" && number != "-Inf") {
      std::size_t used = 0;
      if (number.empty() || !(std::isdigit(static_cast<unsigned char>(number[0])) || number[0] == '-')) refuse("no number");
      x = std::stod(number, &used);
      if (used != number.size()) refuse("something after the number");
    }
    if (types[metric] == "counter" && !(x >= 0)) refuse("a negative counter");
    std::string key = metric;
    for (const auto& [k, v] : labels) key += (key == metric ? "{" : ",") + k + "=\"" + v + "\"";
    if (!labels.empty()) key += "}";
    if (!samples.emplace(key, x).second) refuse("a sample twice");
    has_sample_ = true;
  }
};
