// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Measured times of a cluster: collectives by bytes, products by shape, and other operations by memory traffic.

#include <gshard/core/ir/op.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 {

/// A function given by points, linear between them. A curve without points is not measured.
struct measured_curve {
  static constexpr int most = 8;
  std::array<double, most> at{};  ///< increasing
  std::array<double, most> value{};
  int count = 0;

  constexpr bool operator==(const measured_curve&) const = default;
  constexpr bool known() const { return count > 0; }
  constexpr void add(double x, double y) {
    at[std::size_t(count)] = x;
    value[std::size_t(count++)] = y;
  }
  /// Constant before the first point and after the last point.
  constexpr double clamped(double x) const { return x >= at[std::size_t(count - 1)] ? value[std::size_t(count - 1)] : before_last(x); }
  /// Constant before the first point. After the last point, the line through the last two points continues, if it rises.
  constexpr double extended(double x) const {
    const auto last = std::size_t(count - 1);
    if (x <= at[last]) return before_last(x);
    if (count == 1) return at[0] > 0 ? value[0] * x / at[0] : value[0];
    const double slope = (value[last] - value[last - 1]) / (at[last] - at[last - 1]);
    return value[last] + (slope > 0 ? slope : 0) * (x - at[last]);
  }

 private:
  constexpr double before_last(double x) const {
    if (x <= at[0]) return value[0];
    std::size_t k = 1;
    while (at[k] < x) ++k;
    return value[k - 1] + (value[k] - value[k - 1]) * (x - at[k - 1]) / (at[k] - at[k - 1]);
  }
};

/// The position of a group of devices: on one node, one device on each of several nodes, or several devices on several nodes.
enum class group_reach : std::uint8_t { within_node, between_nodes, both, count_ };

constexpr group_reach reach_of(std::int64_t members, std::int64_t nodes) {
  return nodes <= 1 ? group_reach::within_node : nodes == members ? group_reach::between_nodes : group_reach::both;
}

/// The time of a local operation: a start, and the bytes that it reads and writes.
struct operation_time {
  double start = 0, per_byte = 0;

  constexpr bool operator==(const operation_time&) const = default;
  constexpr bool known() const { return start > 0 || per_byte > 0; }
  constexpr double seconds(std::int64_t bytes) const { return start + per_byte * double(bytes); }
};

/// Times that `gshard-calibrate` measures. Without an entry, the rates of the machine apply. @see machine
struct measured_times {
  /// The number of kinds of collectives: `op` from all_gather to collective_permute.
  static constexpr std::size_t kinds = std::size_t(op::collective_permute.move);

  /// Seconds of a collective, by kind and reach of its groups. Within a node they are a function of the bytes that a device receives;
  /// otherwise of the bytes that a node receives from others.
  std::array<std::array<measured_curve, std::size_t(group_reach::count_)>, kinds> collectives{};
  /// Seconds per addition or multiplication in a product of matrices, by its smallest extent: alone, and in batches.
  measured_curve product{}, batched_product{};
  std::array<operation_time, most_operations> operations{};  ///< by number
  double run_start = 0;  ///< seconds of a run in addition to its steps
  /// The share of a collective's time that overlaps with computing steps; below 0 if overlap slows both down.
  double hidden = 1;

  constexpr bool operator==(const measured_times&) const = default;

  /// The curve of a collective. Kinds without a curve use that of all_to_all: permutes, ragged exchanges and looped einsums.
  constexpr const measured_curve& collective(op_ref kind, group_reach reach) const {
    const bool is_listed = kind->move > 0 && kind->move <= int(kinds);
    const auto curve_of = [&](op_ref k) -> const measured_curve& {
      return collectives[std::size_t(k->move - 1)][std::size_t(reach)];
    };
    return is_listed && curve_of(kind).known() ? curve_of(kind) : curve_of(op::all_to_all);
  }
  constexpr measured_curve& collective(op_ref kind, group_reach reach) {
    return collectives[std::size_t(kind->move - 1)][std::size_t(reach)];
  }
  /// The curve of products in batches, otherwise the curve of single products.
  constexpr const measured_curve& products(bool batched) const { return batched && batched_product.known() ? batched_product : product; }
  constexpr const operation_time& operation(op_ref kind) const { return operations[std::size_t(measured_as(kind)->id)]; }
  /// True if the local operations of a program are measured.
  constexpr bool has_operations() const { return product.known(); }
};

}}  // namespace gshard::v0
