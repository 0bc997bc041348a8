// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "options.hpp"

#include <gshard/ops/window/concat.hpp>
#include <gshard/ops/window/pad.hpp>
#include <gshard/ops/window/reverse.hpp>
#include <gshard/ops/window/roll.hpp>
#include <gshard/ops/window/slice.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

// Subcommands that move elements: slice, pad, reverse, roll, concat.
namespace planning {

namespace detail {

inline std::string of_dim(const char* what, std::int64_t number, std::size_t d, const shape& x) {
  return std::string(what) + " " + std::to_string(number) + " of dim " + std::to_string(d) + ", whose extent is " +
         std::to_string(x.extents[d]);
}

}  // namespace detail

inline command slice_command() {
  return {"slice",
          "x[start:stop:stride] in every dim",
          "--mesh x=2 --in 8@x,6 --start 0,2 --stop 8,6 --stride 2,1",
          {operand_option(),
           {"--start,--starts,--begin", "the first index of every dim; with --dims, of these (0)"},
           {"--stop,--stops,--limit,--limits,--end", "the index behind the last one (the extent)"},
           {"--stride,--strides,--step", "the distance of the indices (1)"},
           dims_option("the dims that the numbers are for; all others stay whole"),
           output_option()},
          [](const arguments& a) {
            const shape x = a.tensor("in");
            const std::vector<std::int64_t> zeros(x.extents.size(), 0), ones(x.extents.size(), 1);
            for (const char* key : {"start", "stop", "stride"}) a.check_dims_said(key, x.rank());
            const auto start = a.per_dim("start", zeros, -most_of_window, most_of_window);
            const auto stop = a.per_dim("stop", x.extents, -most_of_window, most_of_window);
            const auto stride = a.per_dim("stride", ones, 1, most_of_window);
            std::vector<gs::dim_range> ranges;
            for (std::size_t d = 0; d < x.extents.size(); ++d) {
              const auto inside = [&](const char* what, std::int64_t n) {
                if (n < -x.extents[d] || n > x.extents[d]) throw refusal(detail::of_dim(what, n, d, x) + ", is outside it");
                return n < 0 ? n + x.extents[d] : n;
              };
              const std::int64_t from = inside("--start", start[d]), to = inside("--stop", stop[d]);
              if (from >= to)
                throw refusal(detail::of_dim("--start", start[d], d, x) + ", leaves nothing before --stop " + std::to_string(stop[d]));
              if (from == 0 && to == x.extents[d] && stride[d] == 1) continue;
              ranges.push_back({int(d), from, to, stride[d]});
            }
            request r = detail::start(a, {x});
            r.body = [ranges](gs::builder&, std::span<const gs::symbol> in) { return std::vector{gs::slice(in[0], ranges)}; };
            return r;
          }};
}

inline command pad_command() {
  return {"pad",
          "elements before, after and between those of every dim",
          "--mesh x=2 --in 8@x,6 --low 1,0 --high 1,2 --value 0.5",
          {operand_option(),
           {"--low,--before,--edge-padding-low", "so many before every dim; with --dims, before these; negative ones take away (0)"},
           {"--high,--after,--edge-padding-high", "so many after every dim (0)"},
           {"--interior,--interior-padding", "so many between every two elements (0)"},
           {"--value,--fill", "what they are (0)"},
           dims_option("the dims that the numbers are for"),
           output_option()},
          [](const arguments& a) {
            const shape x = a.tensor("in");
            const std::vector<std::int64_t> zeros(x.extents.size(), 0);
            const auto low = a.per_dim("low", zeros, -most_of_window, most_of_window);
            const auto high = a.per_dim("high", zeros, -most_of_window, most_of_window);
            const auto interior = a.per_dim("interior", zeros, 0, most_of_window - 1);
            std::vector<gs::dim_padding> paddings;
            for (std::size_t d = 0; d < x.extents.size(); ++d) {
              if (low[d] == 0 && high[d] == 0 && interior[d] == 0) continue;
              if (double(x.extents[d]) * double(1 + interior[d]) > 1e15)
                throw refusal("--interior " + a.text("interior") + " is too large for these extents");
              paddings.push_back({int(d), int(low[d]), int(high[d]), int(interior[d])});
            }
            request r = detail::start(a, {x});
            r.body = [paddings, value = a.real("value", 0)](gs::builder&, std::span<const gs::symbol> in) {
              return std::vector{gs::pad(in[0], paddings, value)};
            };
            return r;
          }};
}

inline command reverse_command() {
  return {"reverse",
          "the last element of a dim first",
          "--mesh x=2 --in 8@x,6 --dims 0",
          {operand_option(), dims_option("the dims that are reversed (all)"), output_option()},
          [](const arguments& a) {
            const shape x = a.tensor("in");
            request r = detail::start(a, {x});
            r.body = [dims = a.dims("dims", x.rank())](gs::builder&, std::span<const gs::symbol> in) {
              return std::vector{gs::reverse(in[0], dims)};
            };
            return r;
          }};
}

inline command roll_command() {
  return {"roll",
          "every element moved towards the end of a dim, those that fall off to its start",
          "--mesh x=2 --in 8@x,6 --dims 0 --shift 3",
          {operand_option(),
           {"--shift,--shifts", "how far; negative numbers move towards the start", option::takes::text, true},
           dims_option("the dims that the numbers are for (one number per dim)"),
           output_option()},
          [](const arguments& a) {
            const shape x = a.tensor("in");
            a.check_dims_said("shift", x.rank());
            const auto shift = a.per_dim("shift", std::vector<std::int64_t>(x.extents.size(), 0), -most_of_window, most_of_window);
            std::vector<gs::dim_shift> shifts;
            for (std::size_t d = 0; d < shift.size(); ++d)
              if (const auto by = int(shift[d] % x.extents[d]); by != 0) shifts.push_back({int(d), by});
            request r = detail::start(a, {x});
            r.body = [shifts](gs::builder&, std::span<const gs::symbol> in) { return std::vector{gs::roll(in[0], shifts)}; };
            return r;
          }};
}

inline command concat_command() {
  return {"concat",
          "tensors one after the other along a dim",
          "--mesh x=2 --dim 0 --in 8@x,6 --in 4@x,6",
          {operands_option("shape of an operand; once per operand, at most " + std::to_string(gs::sharding_rule::most_in)), dim_option("0"),
           output_option()},
          [](const arguments& a) {
            const std::vector<shape> parts = a.tensors("in");
            if (parts.size() > std::size_t(gs::sharding_rule::most_in))
              throw refusal("concat takes at most " + std::to_string(gs::sharding_rule::most_in) + " operands, not " + std::to_string(parts.size()));
            const int at = a.dim("dim", parts[0].rank(), 0);
            for (const shape& s : parts) {
              if (s.rank() != parts[0].rank())
                throw refusal("\"" + text_of(s, a.on.mesh) + "\" has " + std::to_string(s.rank()) + " dims, the first operand " +
                              std::to_string(parts[0].rank()) + ": give all operands the same number of dims");
              for (int d = 0; d < s.rank(); ++d)
                if (d != at && s.extents[std::size_t(d)] != parts[0].extents[std::size_t(d)])
                  throw refusal("dim " + std::to_string(d) + " of \"" + text_of(s, a.on.mesh) +
                                "\" differs from that of the first operand: only dim " + std::to_string(at) + " may");
            }
            request r = detail::start(a, parts);
            r.body = [at](gs::builder&, std::span<const gs::symbol> in) {
              return std::vector{gs::concat(gs::list_view<gs::symbol>(in.data(), in.size()), at)};
            };
            return r;
          }};
}

}  // namespace planning
