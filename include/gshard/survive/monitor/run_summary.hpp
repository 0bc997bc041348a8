// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Sums over the steps of a run for its page: at most some hundred numbers per curve, for any number of steps.

#include <gshard/core/base/compiler.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

/// One step of one process. Numbers that are not known are NaN.
struct step_history {
  std::uint32_t step = 0;
  double time = 0;  ///< of its end, seconds since 1970
  double seconds = 0, waiting = 0, predicted = std::numeric_limits<double>::quiet_NaN(), resident = 0, arena = 0;
  std::vector<std::pair<std::uint16_t, double>> received;            ///< bytes by kind; the kind is an index of run_history::names
  std::vector<std::pair<std::uint16_t, double>> values;              ///< of the first process that gave this name
  std::vector<std::pair<std::uint16_t, std::vector<float>>> lists;  ///< of the first process that gave this name
};

namespace detail {

/// Mean, minimum and maximum of numbers. Numbers that are not finite are counted separately.
struct range_of {
  double sum = 0, low = std::numeric_limits<double>::infinity(), high = -low;
  std::uint64_t n = 0, others = 0;

  void add(double x) {
    if (!std::isfinite(x)) {
      ++others;
      return;
    }
    sum += x;
    ++n;
    low = std::min(low, x);
    high = std::max(high, x);
  }
  void add(const range_of& r) {
    sum += r.sum;
    n += r.n;
    others += r.others;
    low = std::min(low, r.low);
    high = std::max(high, r.high);
  }
  double mean() const { return n == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / double(n); }
};

/// Divides the steps of a run into at most `most` parts of equal length.
struct step_buckets {
  std::uint32_t first = 0, width = 1;
  std::size_t count = 0;

  step_buckets() = default;
  step_buckets(std::uint32_t begin, std::uint32_t last, std::size_t most) : first(begin) {
    const std::uint64_t all = std::uint64_t(last) - begin + 1;
    width = std::uint32_t((all + most - 1) / most);
    count = std::size_t((all + width - 1) / width);
  }
  std::size_t of(std::uint32_t step) const { return (step - first) / width; }
};

/// Lists of one name over time: columns of steps, rows of `group` elements.
class list_grid {
 public:
  std::size_t length = 0, group = 1;
  std::vector<std::vector<range_of>> cells;  // by column and row

  void add(std::size_t column, std::size_t columns, const std::vector<float>& list, std::size_t most_rows) {
    if (length == 0) group = std::max<std::size_t>(1, (list.size() + most_rows - 1) / most_rows);
    length = std::max(length, list.size());
    cells.resize(columns);
    while (length > group * most_rows) coarsen();
    cells[column].resize(std::max(cells[column].size(), (list.size() + group - 1) / group));
    for (std::size_t i = 0; i < list.size(); ++i) cells[column][i / group].add(list[i]);
  }

 private:
  void coarsen() {
    group *= 2;
    for (std::vector<range_of>& column : cells) {
      for (std::size_t i = 1; i < column.size(); ++i)
        if (i % 2 == 1) column[i / 2].add(column[i]);
        else column[i / 2] = column[i];
      column.resize((column.size() + 1) / 2);
    }
  }
};

/// Sums over the steps of a run. Each step is added once, in any order of processes. Memory depends on the numbers of processes, names and
/// list elements, but not of steps.
class run_summary {
 public:
  static constexpr std::size_t most_points = 800, most_columns = 160, most_rows = 128;

  /// Sums for one process, or for neighboring ones if there are many. By column.
  struct row {
    std::vector<range_of> compute, waiting, resident, arena, seconds;
    double most_memory = 0;
  };

  run_summary() = default;
  run_summary(std::uint32_t first_step, std::uint32_t last_step, std::size_t processes)
      : first(first_step), last(last_step), points(first, last, most_points), columns(first, last, most_columns), time(points.count),
        seconds(points.count), waiting(points.count), predicted(points.count), group((processes + most_rows - 1) / most_rows),
        steps_of(processes) {
    const std::vector<range_of> none(columns.count);
    if (group > 0) rows.assign((processes + group - 1) / group, {none, none, none, none, none});
  }

  bool empty() const { return records == 0; }

  /// Steps outside of first and last are ignored.
  void add(std::size_t process, const step_history& s) {
    if (s.step < first || s.step > last || process >= steps_of.size()) return;
    ++records;
    ++steps_of[process];
    const std::size_t i = points.of(s.step), c = columns.of(s.step);
    time[i].add(s.time);
    seconds[i].add(s.seconds);
    waiting[i].add(s.waiting);
    if (std::isfinite(s.predicted)) predicted[i].add(s.predicted);
    for (const auto& [name, x] : s.values) values.try_emplace(name, points.count).first->second[i].add(x);
    for (const auto& [name, x] : s.received) {
      received.try_emplace(name, points.count).first->second[i].add(x);
      bytes += x;
    }
    total += s.seconds;
    waited += s.waiting;
    ended = std::max(ended, s.time);
    begun = std::min(begun, s.time - s.seconds);
    row& r = rows[process / group];
    r.compute[c].add(s.seconds - s.waiting);
    r.waiting[c].add(s.waiting);
    r.seconds[c].add(s.seconds);
    r.resident[c].add(s.resident);
    r.arena[c].add(s.arena);
    r.most_memory = std::max(r.most_memory, s.resident);
    for (const auto& [name, list] : s.lists) lists[name].add(c, columns.count, list, most_rows);
  }
  /// The largest number of steps of a process.
  std::uint64_t steps() const { return steps_of.empty() ? 0 : *std::max_element(steps_of.begin(), steps_of.end()); }

  std::uint32_t first = 0, last = 0;
  step_buckets points, columns;
  std::vector<range_of> time, seconds, waiting, predicted;            // by point, of all processes
  std::map<std::uint16_t, std::vector<range_of>> values, received;  // by name, then by point
  double total = 0, waited = 0, bytes = 0;                            // of all steps
  double ended = 0, begun = std::numeric_limits<double>::infinity();  // seconds since 1970
  std::uint64_t records = 0;
  std::size_t group = 0;  // processes in a row
  std::vector<row> rows;
  std::map<std::uint16_t, list_grid> lists;

 private:
  std::vector<std::uint64_t> steps_of;
};

/// Finds the records of a process that count. If a step is repeated after a restart, its last record counts. All records are first given to
/// see(), in their order. Memory grows with the number of restarts.
class repeated_steps {
 public:
  void see(std::uint64_t record, std::uint32_t step) {
    if (starts_.empty() || step <= last_) starts_.push_back({record, step});
    first_ = std::min(first_, step);
    last_ = step;
  }
  /// A skipped step: the next step has the same number.
  void see_skipped(std::uint64_t record, std::uint32_t step) {
    if (step > last_) return;
    starts_.push_back({record, step});
    last_ = std::int64_t(step) - 1;
  }
  bool empty() const { return last_ < first_; }
  std::uint32_t first() const { return first_; }
  std::uint32_t last() const { return std::uint32_t(last_); }  // of the last record: the largest step that counts

  /// True if a record counts. Call it after all calls of see(), with records in ascending order.
  bool counts(std::uint64_t record, std::uint32_t step) {
    if (next_ == 0) {  // each start gets the smallest step of itself and all later starts
      for (std::size_t i = starts_.size(); i-- > 1;) starts_[i - 1].second = std::min(starts_[i - 1].second, starts_[i].second);
      next_ = 1;
    }
    while (next_ < starts_.size() && starts_[next_].first <= record) ++next_;
    return next_ >= starts_.size() || step < starts_[next_].second;
  }

 private:
  std::vector<std::pair<std::uint64_t, std::uint32_t>> starts_;  // record and step
  std::uint32_t first_ = std::numeric_limits<std::uint32_t>::max();
  std::int64_t last_ = -1;
  std::size_t next_ = 0;
};

}  // namespace detail
}}  // namespace gshard::v0
