// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "options.hpp"

#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/shape.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

// Subcommands that keep the elements: reshard, transpose, reshape.
namespace planning {

inline command reshard_command() {
  return {"reshard",
          "one tensor from one layout to another",
          "--mesh x=2,y=2,z=2 --from \"16@(x,z),8\" --to 16,8@x",
          {{"--from,--in", "shape before", option::takes::text, true}, {"--to,--out", "shape after", option::takes::text, true}},
          [](const arguments& a) {
            request r = detail::start(a, {a.tensor("from")});
            r.output = a.tensor("to");
            if (r.output->layout.partial && r.output->layout.pending != r.inputs[0].is.layout.pending)
              throw refusal("what is pending in \"" + a.text("from") + "\" is another reduction than in \"" + a.text("to") +
                            "\": leave it, or take it out");
            r.body = [](gs::builder&, std::span<const gs::symbol> in) { return std::vector{in[0]}; };
            return r;
          }};
}

inline command transpose_command() {
  return {
      "transpose",
      "the dims in another order: dim i of the result is dim perm[i] of the operand",
      "--mesh x=2 --perm 1,0 --in 8@x,6",
      {operand_option(),
       {"--perm,--permutation,--dims,--axes", "the dims of the operand in their new order (the last one first)"},
       output_option()},
      [](const arguments& a) {
        const shape x = a.tensor("in");
        std::vector<int> perm = a.dims("perm", x.rank());
        if (!a.has("perm")) std::reverse(perm.begin(), perm.end());
        if (perm.size() != x.extents.size())
          throw refusal("--perm " + a.text("perm") + " has " + std::to_string(perm.size()) + " dims: name all " + std::to_string(x.rank()));
        request r = detail::start(a, {x});
        r.body = [text = detail::equation_of(x.rank(), perm)](gs::builder&, std::span<const gs::symbol> in) {
          return std::vector{gs::einsum(text, in)};
        };
        return r;
      }};
}

namespace detail {

/// Reshapes from the first dim to the last. A dim that is too short is merged with the next one. A dim that is too long is split. Dims that
/// do not change, and blocks of the first dims, are not moved.
class reshaping {
 public:
  reshaping(gs::symbol x, std::vector<std::int64_t> from) : x_(x), now_(std::move(from)) {}

  gs::symbol to(const std::vector<std::int64_t>& wanted) {
    for (at_ = 0; at_ < wanted.size(); ++at_) make(wanted[at_]);
    while (now_.size() > wanted.size()) squeeze();
    return x_;
  }

 private:
  gs::symbol x_;
  std::vector<std::int64_t> now_;
  std::size_t at_ = 0;

  int at() const { return int(at_); }

  /// Makes dim at_ as long as `wanted`.
  void make(std::int64_t wanted) {
    while (at_ < now_.size() && now_[at_] == 1 && wanted != 1) squeeze();
    if (wanted == 1 && (at_ == now_.size() || now_[at_] != 1)) return expand();
    while (now_[at_] % wanted != 0) {
      const std::int64_t next = now_[at_ + 1], missing = wanted % now_[at_] == 0 ? wanted / now_[at_] : next;
      if (next == 1) {
        ++at_;
        squeeze();
        --at_;
        continue;
      }
      if (next % missing == 0 && next != missing && now_.size() < std::size_t(gs::max_rank)) split(at_ + 1, missing);
      merge();
    }
    if (now_[at_] != wanted) split(at_, wanted);
  }
  void squeeze() {
    x_ = gs::squeeze(x_, at());
    now_.erase(now_.begin() + at());
  }
  /// If the rank is at its limit, reduces it by one, so that another dim can be added.
  void make_room() {
    if (now_.size() < std::size_t(gs::max_rank)) return;
    const std::size_t here = at_;
    at_ = std::size_t(std::find(now_.begin() + at() + 1, now_.end(), 1) - now_.begin());
    if (at_ < now_.size()) {
      squeeze();
    } else {
      at_ = now_.size() - 2;
      merge();
    }
    at_ = here;
  }
  void expand() {
    make_room();
    x_ = gs::expand_dims(x_, at());
    now_.insert(now_.begin() + at(), 1);
  }
  void merge() {
    now_[at_] *= now_[at_ + 1];
    x_ = gs::merge_dims(x_, at());
    now_.erase(now_.begin() + at() + 1);
  }
  void split(std::size_t d, std::int64_t first) {
    make_room();
    const std::int64_t second = now_[d] / first;
    x_ = gs::split_dim(x_, int(d), first, second);
    now_[d] = first;
    now_.insert(now_.begin() + int(d) + 1, second);
  }
};

}  // namespace detail

inline command reshape_command() {
  return {"reshape",
          "the same elements, row by row, with other dims",
          "--mesh x=2 --in 6@x,4 --out 24@x",
          {operand_option(),
           {"--to,--shape", "the extents of the result, which lies as comes cheapest; one may be -1"},
           {"--out", "shape of the result with its layout"}},
          [](const arguments& a) {
            const shape x = a.tensor("in");
            if (a.has("to") == a.has("out")) throw refusal("say either --to 24, for a layout that comes cheapest, or --out 24@x");
            request r = detail::start(a, {x});
            std::vector<std::int64_t> wanted;
            detail::check_size(x, a.on.mesh);
            const std::int64_t elements = detail::elements_of(x.extents);
            if (r.output)
              wanted = r.output->extents;
            else if (a.text("to") != "scalar")
              wanted = parse_numbers("--to", a.text("to"));
            std::int64_t* open = nullptr;
            double given = 1;  // double, because the product may overflow an integer
            for (std::int64_t& e : wanted) {
              if (e == -1 && !open)
                open = &e;
              else if (e < 1)
                throw refusal("--to " + a.text("to") + ": extents are at least 1, but for one that may be -1");
              else
                given *= double(e);
            }
            if (open && given <= double(elements) && elements % std::int64_t(given) == 0)
              given *= double(*open = elements / std::int64_t(given));
            if (given != double(elements))
              throw refusal("\"" + text_of(x, a.on.mesh) + "\" has " + std::to_string(elements) + " elements, \"" +
                            a.text(r.output ? "out" : "to") + "\" has not: give both as many");
            if (wanted.size() > std::size_t(gs::max_rank)) throw refusal("--to " + a.text("to") + ": a tensor has at most 8 dims");
            r.body = [from = x.extents, wanted](gs::builder&, std::span<const gs::symbol> in) {
              return std::vector{detail::reshaping(in[0], from).to(wanted)};
            };
            return r;
          }};
}

}  // namespace planning
