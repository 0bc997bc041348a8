// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "options.hpp"

#include <gshard/ops/along/cumsum.hpp>
#include <gshard/ops/along/sort.hpp>
#include <gshard/ops/index/gather.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

// Subcommands along one dim: sort, top-k, cumsum; and by index: gather, scatter.
namespace planning {

inline command sort_command() {
  return {"sort",
          "the elements along a dim in order, equal ones as they stood, and where they stood",
          "--mesh x=2 --in 4@x,100 --dim -1 --descending",
          {operand_option(), dim_option("the last"), {"--descending", "the largest first", option::takes::nothing}, output_option()},
          [](const arguments& a) {
            const shape x = a.tensor("in");
            request r = detail::start(a, {x});
            r.body = [at = a.dim("dim", x.rank(), -1), descending = a.has("descending")](gs::builder&, std::span<const gs::symbol> in) {
              const gs::sorted s = gs::sort(in[0], at, descending);
              return std::vector{s.values, s.ids};
            };
            return r;
          }};
}

inline command top_k_command() {
  return {"top-k",
          "the k largest elements along a dim, best first, and where they stood",
          "--mesh x=2 --in 4,100@x --k 4",
          {operand_option(),
           {"--k", "how many", option::takes::text, true},
           dim_option("the last"),
           {"--smallest", "the smallest ones", option::takes::nothing},
           output_option()},
          [](const arguments& a) {
            const shape x = a.tensor("in");
            const int at = a.dim("dim", x.rank(), -1);
            const std::int64_t extent = x.extents[std::size_t(at)];
            const std::int64_t k = a.number("k", {}, 1, std::numeric_limits<std::int32_t>::max());
            if (k > extent)
              throw refusal("--k " + a.text("k") + ": dim " + std::to_string(at) + " has " + std::to_string(extent) + " elements");
            request r = detail::start(a, {x});
            r.body = [at, k = int(k), largest = !a.has("smallest")](gs::builder&, std::span<const gs::symbol> in) {
              const gs::sorted s = gs::top_k(in[0], k, at, largest);
              return std::vector{s.values, s.ids};
            };
            return r;
          }};
}

inline command cumsum_command() {
  return {"cumsum",
          "running sums along a dim",
          "--mesh x=2 --in 8@x,6 --dim 0",
          {operand_option(),
           dim_option("the last"),
           {"--reverse", "from the end", option::takes::nothing},
           {"--exclusive", "without the element itself", option::takes::nothing},
           output_option()},
          [](const arguments& a) {
            const shape x = a.tensor("in");
            request r = detail::start(a, {x});
            r.body = [at = a.dim("dim", x.rank(), -1), exclusive = a.has("exclusive"), reverse = a.has("reverse")](
                         gs::builder&, std::span<const gs::symbol> in) { return std::vector{gs::cumsum(in[0], at, exclusive, reverse)}; };
            return r;
          }};
}

namespace detail {

inline option ids_option() {
  return {"--ids,--indices", "shape of the indices, whole numbers from 0", option::takes::text, true};
}

struct indexed {
  shape table, ids;
  int at = 0;
  std::vector<std::int64_t> rows;  // the extents of what each id picks
};
inline indexed read_indexed(const arguments& a) {
  indexed r{a.tensor("in"), a.tensor("ids"), 0, {}};
  r.at = a.dim("dim", r.table.rank(), 0);
  if (r.ids.layout.partial) throw refusal("--ids " + a.text("ids") + ": indices cannot be pending, leave the + out");
  if (r.table.rank() - 1 + r.ids.rank() > gs::max_rank) throw refusal("the result would have more than 8 dims: give --ids fewer");
  if (r.table.extents[std::size_t(r.at)] > std::numeric_limits<std::int32_t>::max())
    throw refusal("dim " + std::to_string(r.at) + " is longer than indices of 32 bits reach: make it smaller");
  r.rows = r.table.extents;
  r.rows.erase(r.rows.begin() + r.at);
  r.rows.insert(r.rows.begin() + r.at, r.ids.extents.begin(), r.ids.extents.end());
  return r;
}
inline request::operand ids_operand(const indexed& i) {
  return {i.ids, gs::dtype::i32, i.table.extents[std::size_t(i.at)]};
}

}  // namespace detail

inline command gather_command() {
  return {"gather",
          "the rows of a table that indices name, in place of its dim: an embedding",
          "--mesh x=2,y=2 --in 1000@x,64 --ids 8@y,16",
          {{"--in,--table", "shape of the table", option::takes::text, true}, detail::ids_option(), dim_option("0"), output_option()},
          [](const arguments& a) {
            const detail::indexed i = detail::read_indexed(a);
            request r = detail::start(a, {i.table});
            r.inputs.push_back(detail::ids_operand(i));
            r.body = [at = i.at](gs::builder&, std::span<const gs::symbol> in) { return std::vector{gs::gather(in[0], in[1], at)}; };
            return r;
          }};
}

inline command scatter_command() {
  return {"scatter",
          "a tensor to whose rows updates are added, each to that which its index names",
          "--mesh x=2,y=2 --in 1000@x,64 --ids 8@y,16 --updates 8@y,16,64",
          {{"--in,--table,--target", "shape of the tensor", option::takes::text, true},
           detail::ids_option(),
           {"--updates", "shape of the updates: that of the tensor, with the indices' dims in place of the dim", option::takes::text, true},
           dim_option("0"),
           output_option()},
          [](const arguments& a) {
            const detail::indexed i = detail::read_indexed(a);
            const shape updates = a.tensor("updates");
            if (updates.extents != i.rows)
              throw refusal("--updates " + a.text("updates") + ": its extents must be " + text_of(i.rows) +
                            ", those of the tensor with the indices' in place of dim " + std::to_string(i.at));
            request r = detail::start(a, {i.table, updates});
            r.inputs.insert(r.inputs.begin() + 1, detail::ids_operand(i));
            r.body = [at = i.at](gs::builder&, std::span<const gs::symbol> in) {
              return std::vector{gs::scatter_add(in[0], in[1], in[2], at)};
            };
            return r;
          }};
}

}  // namespace planning
