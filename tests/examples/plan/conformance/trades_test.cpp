// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Einsums for which our plan has fewer starts and the other one fewer bytes, or vice versa: no plan has both. Tries all plans.
#include "../requests.hpp"
#include "conformance.hpp"

#include <gshard/testing/all_shardings.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using conformance::traffic;
using namespace requests;

namespace {

constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();

/// All plans of an einsum of two operands. One start reshards both operands, so that any axes shard any factors. Sums are all-reduced or
/// scattered, some of each. Finally, results move. Before each step, axes with copies may shard for free. Bytes are those of the busiest
/// device. For a sum they are the fewest of any algorithm. Therefore no plan of the planner is cheaper than the best of these.
class all_plans {
 public:
  all_plans(const std::string& equation, const pl::request& r) : mesh_(r.mesh.extents.begin(), r.mesh.extents.begin() + r.mesh.rank()) {
    const std::size_t comma = equation.find(','), arrow = equation.find("->");
    const std::string a = equation.substr(0, comma), b = equation.substr(comma + 1, arrow - comma - 1);
    const std::string result = equation.substr(arrow + 2);
    for (const char c : result + a + b)
      if (letters_.find(c) == std::string::npos) letters_ += c;
    operands_ = {tensor_of(a, r.inputs[0].is.extents), tensor_of(b, r.inputs[1].is.extents)};
    result_ = tensor_of(result, r.output->extents);
    given_ = {r.inputs[0].is.layout, r.inputs[1].is.layout};
    wanted_ = r.output->layout;
  }

  /// The fewest bytes in at most this many starts (1 or 2).
  std::int64_t fewest(int starts) {
    // The least cost of resharding the operands, by the sharding of the computed result.
    std::map<std::string, made> ways;
    for (const gs::sharding& cuts : gshard::testing::all_shardings(int(letters_.size()), int(mesh_.size()), false)) {
      made m{layout_of(result_, cuts), 0, 0};
      for (std::size_t f = std::size_t(m.layout.rank); f < letters_.size(); ++f) m.pending |= cuts[int(f)].mask();
      std::vector<std::int64_t> bytes(devices(), 0);
      for (std::size_t i = 0; i < 2; ++i) add_lacking(bytes, operands_[i], given_[i], layout_of(operands_[i], cuts));
      m.bytes = *std::max_element(bytes.begin(), bytes.end());
      const auto [at, is_new] = ways.emplace(key(m.layout) + char('0' + (m.bytes > 0)) + std::to_string(m.pending), m);
      if (!is_new && m.bytes < at->second.bytes) at->second = m;
    }
    std::int64_t best = none;
    for (const auto& [name, m] : ways) {
      const int left = starts - (m.bytes > 0);
      if (left < 0) continue;
      if (const std::int64_t after = finish(m, left); after != none) best = std::min(best, m.bytes + after);
    }
    return best;
  }

 private:
  struct tensor {
    std::vector<int> factors;
    std::vector<std::int64_t> extents;
  };
  struct made {
    gs::sharding layout;
    std::uint32_t pending = 0;
    std::int64_t bytes = 0;
  };
  std::vector<int> mesh_;
  std::string letters_;  // the letters of the result first
  std::vector<tensor> operands_;
  tensor result_;
  std::vector<gs::sharding> given_;
  gs::sharding wanted_;

  std::size_t devices() const { return std::size_t(gs::device_count(mesh_)); }
  std::int64_t devices(std::uint32_t axes) const {
    std::int64_t n = 1;
    for (std::size_t a = 0; a < mesh_.size(); ++a)
      if ((axes >> a) & 1u) n *= mesh_[a];
    return n;
  }
  tensor tensor_of(const std::string& dims, const std::vector<std::int64_t>& extents) const {
    tensor t{{}, extents};
    for (const char c : dims) t.factors.push_back(int(letters_.find(c)));
    return t;
  }
  static gs::sharding layout_of(const tensor& t, const gs::sharding& cuts) {
    gs::sharding s = gs::sharding::replicated(int(t.factors.size()));
    for (std::size_t d = 0; d < t.factors.size(); ++d) s[int(d)] = cuts[t.factors[d]];
    return s;
  }
  static std::string key(const gs::sharding& s) {
    std::string text;
    for (int d = 0; d < s.rank; ++d) {
      for (int i = 0; i < s[d].size(); ++i) text += char('a' + s[d][i]);
      text += ',';
    }
    return text;
  }

  void add_lacking(std::vector<std::int64_t>& bytes, const tensor& t, const gs::sharding& from, const gs::sharding& to) const {
    for (std::size_t device = 0; device < bytes.size(); ++device) {
      const auto at = gs::coordinates_of(mesh_, int(device));
      std::int64_t wanted = 1, has = 1;
      for (int d = 0; d < to.rank; ++d) {
        const std::int64_t extent = t.extents[std::size_t(d)];
        const gs::interval goal = gs::block_of(extent, to[d], mesh_, at);
        wanted *= goal.size();
        has *= goal.common(gs::block_of(extent, from[d], mesh_, at)).size();
      }
      bytes[device] += 4 * (wanted - has);
    }
  }
  /// The bytes to move the result from one layout to another, on the busiest device.
  std::int64_t lacking(const gs::sharding& from, const gs::sharding& to) const {
    std::vector<std::int64_t> bytes(devices(), 0);
    add_lacking(bytes, result_, from, to);
    return *std::max_element(bytes.begin(), bytes.end());
  }
  std::int64_t shard(const gs::sharding& s) const {
    const std::vector<int> first(mesh_.size(), 0);
    std::int64_t n = 4;
    for (int d = 0; d < s.rank; ++d) n *= gs::block_of(result_.extents[std::size_t(d)], s[d], mesh_, first).size();
    return n;
  }

  /// The bytes from a computed result to the wanted one, or `none`.
  std::int64_t finish(const made& m, int starts) const {
    if (m.pending == 0) {
      const std::int64_t bytes = lacking(m.layout, wanted_);
      return bytes == 0 || starts >= 1 ? bytes : none;
    }
    std::int64_t best = none;
    for (const gs::sharding& there : gshard::testing::all_shardings(m.layout.rank, int(mesh_.size()), false)) {
      if (there.used() & m.pending) continue;
      const std::int64_t moved = lacking(m.layout, there);  // while sums are pending
      const int left = starts - (moved > 0);
      if (left < 1) continue;
      if (const std::int64_t after = complete(there, m.pending, left); after != none) best = std::min(best, moved + after);
    }
    return best;
  }
  /// Scatters the sums over some axes, all-reduces the others, then moves the result.
  std::int64_t complete(const gs::sharding& from, std::uint32_t pending, int starts) const {
    std::int64_t best = none;
    extend(from, pending, [&](const gs::sharding& to, std::uint32_t scattered) {
      const std::uint32_t whole = pending & ~scattered;
      const int left = starts - (scattered != 0) - (whole != 0);
      if (left < 0) return;
      const std::int64_t n = devices(whole), moved = lacking(to, wanted_);
      if (moved > 0 && left < 1) return;
      best = std::min(best, shard(to) * (devices(scattered) - 1) + 2 * (shard(to) * (n - 1) / n) + moved);
    });
    return best;
  }
  /// Calls f(layout, axes) for all layouts in which some of these axes shard dims further, after the existing axes.
  template <class F>
  void extend(const gs::sharding& s, std::uint32_t axes, const F& f, std::uint32_t added = 0) const {
    f(s, added);
    for (std::size_t a = 0; a < mesh_.size(); ++a) {
      if (!((axes >> a) & 1u) || ((added >> a) & 1u)) continue;
      for (int d = 0; d < s.rank; ++d) {
        gs::sharding t = s;
        t[d].push_back(int(a));
        extend(t, axes, f, added | (1u << a));
      }
    }
  }
};

struct trade {
  std::string_view mesh, equation, a, b, result;
  traffic theirs, ours;
  std::int64_t fewest = 0;  // with the starts of ours or theirs, whichever has fewer; 0: the bytes of that one
};

}  // namespace

TEST_CASE("conformance: where ours is more starts or more bytes than theirs, no plan is as good in both") {
  for (const trade& t : {
           trade{"x=2", "BAJK,BCJK->BAC", "8,24@x,16,32", "8,392@x,16,32", "8,24@x,392", {1, 3211264}, {2, 271872}},
           trade{"x=2", "BAJK,BCJK->BAC", "8,24@x,16,32", "8,395@x,16,32", "8,24@x,395", {1, 3244032}, {2, 272640}},
           trade{"x=2", "BAJK,BCJK->BAC", "8,24@x,64,32", "8,392,64@x,32", "8,24@x,392", {1, 12845056}, {2, 543744}},
           trade{"x=4,y=2", "AK,KC->AC", "16@x,64@y", "64@y,32@x", "16,32", {3, 3584}, {1, 10752}},
           trade{"x=4,y=2", "AK,KC->AC", "16@x,64@y", "64@y,32@x", "16@x,32", {3, 2432}, {2, 3584}},
           trade{"x=4,y=2", "AK,KC->AC", "16@x,64@y", "64@x,32@y", "16@y,32@x", {6, 3200}, {1, 4096}},
           trade{"x=2,xx=2,y=2,z=4", "AK,KC->AC", "16,64@(z,xx)", "64,32@(x,xx,y)", "16,32@(x,xx,y)", {2, 896}, {1, 3584}},
           trade{"x=2,xx=2,y=2,z=2,zz=2", "AK,KC->AC", "16,64@(z,zz,xx)", "64,32@(x,xx,y,zz)", "16,32@(x,xx,y,zz)", {2, 1664}, {1, 3584}},
           trade{"x=4,y=4,z=4,t=8", "AJK,JKC->AC", "16@x,32@z,64@t", "32@z,64@t,128@(x,y)", "16@x,128@(z,t)", {3, 4128}, {2, 32704}, 7136},
       }) {
    const pl::request r = einsum(std::string(t.mesh), std::string(t.equation), {std::string(t.a), std::string(t.b)}, std::string(t.result));
    CAPTURE(t.mesh);
    CAPTURE(t.a);
    CAPTURE(t.result);
    const pl::plan_facts f = facts(r);
    traffic ours;
    for (const pl::step_facts& s : f.steps) ours = ours + traffic{s.bytes > 0, s.bytes};
    CHECK(ours == t.ours);
    all_plans plans(std::string(t.equation), r);
    const std::int64_t fewest = plans.fewest(std::min(t.ours.steps, t.theirs.steps));
    CHECK(fewest > std::min(t.ours.bytes, t.theirs.bytes));
    CHECK(fewest == (t.fewest > 0 ? t.fewest : t.ours.steps < t.theirs.steps ? t.ours.bytes : t.theirs.bytes));
  }
}
