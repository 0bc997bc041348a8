// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Computes the blocks that a reshard sends between all pairs of devices, splits them into messages, and packs them.

#include <gshard/core/base/interval.hpp>
#include <gshard/exec/kernel/move/copy.hpp>
#include <gshard/exec/kernel/view.hpp>
#include <gshard/exec/process/function_ref.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// A block of a tensor that is sent from one shard to another.
struct piece {
  std::size_t tensor = 0;
  kernel::placement from, to;  // global, in the sender's and the receiver's coordinates; they differ if a window wraps
  std::int64_t elements = 0;
};

inline void append(std::vector<piece>& to, const std::vector<piece>& more) { to.insert(to.end(), more.begin(), more.end()); }

/// The elements that two shards have in common: one piece, or none. If `to` wraps around the end of a dim, that dim may double the
/// number of pieces.
inline std::vector<piece> common(std::size_t tensor, const kernel::placement& from, const kernel::placement& to) {
  const auto rank = std::size_t(from.rank);
  const auto both = [&](std::size_t d, std::int64_t shift) {
    const interval has{from.offset[d], from.offset[d] + from.extent[d]}, wants{to.offset[d], to.offset[d] + to.extent[d]};
    return has.common(wants.shifted(-shift));
  };
  const auto wraps = [&](std::size_t d) { return to.offset[d] + to.extent[d] > from.global[d] && both(d, from.global[d]).size() > 0; };
  for (std::size_t d = 0; d < rank; ++d)  // most pairs of shards have nothing in common
    if (both(d, 0).size() == 0 && !wraps(d)) return {};
  std::vector<piece> found{{tensor, from, to, 1}};
  const auto cut = [&](piece& p, std::size_t d, std::int64_t shift) {
    const interval part = both(d, shift);
    p.from.offset[d] = part.begin;
    p.to.offset[d] = part.begin + shift;
    p.from.extent[d] = p.to.extent[d] = part.size();
    p.elements *= part.size();
  };
  for (std::size_t d = 0; d < rank; ++d) {
    const bool begin = both(d, 0).size() > 0, end = wraps(d);
    for (std::size_t k = 0; k < found.size(); k += begin && end ? 2 : 1) {
      if (begin && end) found.insert(found.begin() + std::ptrdiff_t(k), found[k]);
      if (begin) cut(found[k], d, 0);
      if (end) cut(found[k + (begin ? 1 : 0)], d, from.global[d]);
    }
  }
  return found;
}

inline bool equal(const kernel::placement& a, const kernel::placement& b) { return a.offset == b.offset && a.extent == b.extent; }

/// The exchanges of a reshard. In the first hop, members on one node that lack the same remote elements receive a share of them each. In
/// the second hop, they pass their shares on within the node. Therefore each element is sent to a node once.
enum class hop : std::uint8_t {
  only,    ///< One exchange of whole pieces.
  first,   ///< Whole pieces, or shares of them, from old shards.
  second,  ///< Shares of pieces, from new shards.
};

/// Share k of n of a piece: a block of dim d. It may be empty. A piece without dims is in the first share.
inline piece share_of(const piece& whole, std::size_t d, std::size_t k, std::size_t n) {
  piece p = whole;
  if (p.from.rank == 0) p.elements = k == 0 ? p.elements : 0;
  if (p.from.rank == 0 || p.elements == 0) return p;
  const std::int64_t extent = p.from.extent[d], block = (extent + std::int64_t(n) - 1) / std::int64_t(n);
  const std::int64_t begin = std::min(extent, std::int64_t(k) * block), size = std::min(extent, begin + block) - begin;
  p.from.offset[d] += begin;
  p.to.offset[d] += begin;
  p.from.extent[d] = p.to.extent[d] = size;
  p.elements = p.elements / extent * size;
  return p;
}
inline std::size_t longest_dim(const kernel::placement& p) {
  return std::size_t(std::max_element(p.extent.begin(), p.extent.begin() + p.rank) - p.extent.begin());
}
/// The outermost dim with more than one index, or the last dim. Blocks of it are contiguous.
inline std::size_t outermost_dim(const kernel::placement& p) {
  std::size_t d = 0;
  while (d + 1 < std::size_t(p.rank) && p.extent[d] == 1) ++d;
  return d;
}

/// A piece that a member of a group lacks.
struct lacked_piece {
  std::size_t member = 0;
  piece what;
};
using lacked_pieces = std::vector<lacked_piece>;

inline bool overlap(const kernel::placement& a, const kernel::placement& b) {
  for (std::size_t d = 0; d < std::size_t(a.rank); ++d)
    if (std::max(a.offset[d], b.offset[d]) >= std::min(a.offset[d] + a.extent[d], b.offset[d] + b.extent[d])) return false;
  return true;
}

/// Splits pieces of one shard at each other's ends, from dim d on, so that any two of them are equal or disjoint. Adds a list for each
/// block.
inline void split_at_ends(const lacked_pieces& pieces, std::size_t d, std::vector<lacked_pieces>& blocks) {
  if (d == std::size_t(pieces[0].what.from.rank)) return blocks.push_back(pieces);
  std::vector<std::int64_t> ends;
  for (const lacked_piece& p : pieces)
    for (const std::int64_t end : {p.what.from.offset[d], p.what.from.offset[d] + p.what.from.extent[d]}) ends.push_back(end);
  std::ranges::sort(ends);
  ends.erase(std::ranges::unique(ends).begin(), ends.end());
  for (std::size_t k = 0; k + 1 < ends.size(); ++k) {
    lacked_pieces within;
    for (lacked_piece p : pieces) {
      kernel::placement &from = p.what.from, &to = p.what.to;
      if (from.offset[d] > ends[k] || from.offset[d] + from.extent[d] < ends[k + 1]) continue;
      p.what.elements = p.what.elements / from.extent[d] * (ends[k + 1] - ends[k]);
      to.offset[d] += ends[k] - from.offset[d];
      from.offset[d] = ends[k];
      from.extent[d] = to.extent[d] = ends[k + 1] - ends[k];
      within.push_back(p);
    }
    if (!within.empty()) split_at_ends(within, d + 1, blocks);
  }
}

/// The blocks of one shard that a node lacks. Each lists the pieces of the members that lack it. These pieces are equal blocks of the
/// shard.
inline std::vector<lacked_pieces> blocks_of(const lacked_pieces& pieces) {
  std::vector<lacked_pieces> blocks;
  for (const lacked_piece& p : pieces) {
    const auto same = [&](const lacked_pieces& block) { return equal(block[0].what.from, p.what.from); };
    const auto known = std::ranges::find_if(blocks, same);
    if (known != blocks.end()) known->push_back(p);
    else blocks.push_back({p});
  }
  for (std::size_t k = 1; k < blocks.size(); ++k)
    for (std::size_t j = 0; j < k; ++j)
      if (overlap(blocks[j][0].what.from, blocks[k][0].what.from)) {
        blocks.clear();
        split_at_ends(pieces, 0, blocks);
        return blocks;
      }
  return blocks;
}

/// Uses the pieces that member `to` receives from member `from`.
using user_of_pieces = function_ref<void(std::size_t, std::size_t, const std::vector<piece>&)>;

/// Calls f(from, to, pieces) if member `to` of a group receives pieces of its new shard from member `from`, or keeps them (from == to). If
/// several members have the same old shard, a receiver among them uses its own. Otherwise the members on the receiver's node send
/// round-robin, or all if none is there. `node`: the node of each member. In the second hop, pieces have the coordinates of new shards. If
/// a member needs an element twice, through a window that wraps, the second hop copies it within the new shard.
inline void for_each_origin(std::size_t tensor, const std::vector<kernel::placement>& before, const std::vector<kernel::placement>& after,
                            const std::vector<int>& node, hop now, user_of_pieces f) {
  std::vector<char> counted(before.size(), 0);
  std::vector<std::size_t> holders, near, receivers;
  std::vector<std::pair<int, lacked_pieces>> lacked;  // by node
  for (std::size_t first = 0; first < before.size(); ++first) {
    if (counted[first]) continue;
    holders.clear();
    for (std::size_t m = first; m < before.size(); ++m)
      if (equal(before[m], before[first])) {
        holders.push_back(m);
        counted[m] = 1;
      }
    std::size_t turn = 0;
    lacked.clear();
    for (std::size_t to = 0; to < after.size(); ++to) {
      const std::vector<piece> both = common(tensor, before[first], after[to]);
      if (both.empty()) continue;
      near.clear();
      std::ranges::copy_if(holders, std::back_inserter(near), [&](std::size_t m) { return node[m] == node[to]; });
      const std::vector<std::size_t>& from = near.empty() ? holders : near;
      if (now != hop::only && near.empty()) {
        auto known = std::ranges::find(lacked, node[to], &std::pair<int, lacked_pieces>::first);
        if (known == lacked.end()) known = lacked.insert(known, {node[to], {}});
        for (const piece& p : both) known->second.push_back({to, p});
      } else if (now != hop::second) {
        f(equal(before[to], before[first]) ? to : from[turn++ % from.size()], to, both);
      }
    }
    for (const auto& [where, pieces] : lacked)
      for (const lacked_pieces& block : blocks_of(pieces)) {
        receivers.clear();  // entries of `block`: the first one of each member
        for (std::size_t k = 0; k < block.size(); ++k)
          if (k == 0 || block[k].member != block[receivers.back()].member) receivers.push_back(k);
        const std::size_t n = receivers.size();
        for (std::size_t k = 0; k < n; ++k) {
          const lacked_piece& got = block[receivers[k]];
          const piece share = share_of(got.what, longest_dim(got.what.from), k, n);
          if (share.elements == 0) continue;
          if (now == hop::first) f(holders[turn++ % holders.size()], got.member, std::vector{share});
          for (std::size_t other = 0; other < block.size() && now == hop::second; ++other) {
            if (other == receivers[k]) continue;
            piece passed = share_of(block[other].what, longest_dim(got.what.from), k, n);
            passed.from = share.to;
            f(got.member, block[other].member, std::vector{passed});
          }
        }
      }
  }
}

/// The offset of a block in the shard with placement `home`, in elements.
inline std::int64_t inside(const kernel::placement& home, const kernel::placement& what) {
  if (kernel::element_count(what.rank, what.extent) == 0) return 0;
  return kernel::offset_of(what, home, kernel::row_major_strides(home.rank, home.extent));
}

/// True if the block is contiguous in the shard with placement `home`.
inline bool is_run(const kernel::placement& home, const kernel::placement& what) {
  std::size_t d = std::size_t(home.rank);
  while (d > 0 && what.extent[d - 1] == home.extent[d - 1]) --d;
  for (d = d > 0 ? d - 1 : 0; d > 0; --d)
    if (what.extent[d - 1] != 1) return false;
  return true;
}

/// Splits a piece along its outermost dims into contiguous pieces of at most `most` elements.
inline void split_piece(const piece& whole, std::int64_t most, std::vector<piece>& into) {
  if (whole.elements <= most) return into.push_back(whole);
  std::size_t d = 0;
  while (whole.from.extent[d] == 1) ++d;
  const std::int64_t extent = whole.from.extent[d], row = whole.elements / extent, rows = std::max<std::int64_t>(1, most / row);
  for (std::int64_t at = 0; at < extent; at += rows) {
    piece p = whole;
    p.from.offset[d] += at;
    p.to.offset[d] += at;
    p.from.extent[d] = p.to.extent[d] = std::min(rows, extent - at);
    p.elements = row * p.from.extent[d];
    split_piece(p, most, into);
  }
}

/// The pieces that one device sends to another in one message.
struct portion {
  std::vector<piece> pieces;
  std::int64_t elements = 0;
};

/// Splits a list of pieces into portions of at most `most` elements. Pieces for which goes_whole(piece) are not split. Sender and
/// receiver compute the same portions.
inline std::vector<portion> portions_of(const std::vector<piece>& pieces, std::int64_t most, function_ref<bool(const piece&)> goes_whole) {
  std::vector<piece> parts;
  for (const piece& p : pieces) split_piece(p, goes_whole(p) ? p.elements : most, parts);
  std::vector<portion> made;
  for (const piece& p : parts) {
    if (made.empty() || made.back().elements + p.elements > most) made.emplace_back();
    made.back().pieces.push_back(p);
    made.back().elements += p.elements;
  }
  return made;
}

/// Copies a block from a shard to a packed buffer; `unpack` copies it back.
inline void pack(const std::byte* shard, const kernel::placement& home, std::byte* row, const kernel::placement& what, std::int64_t width) {
  kernel::copy_block(shard + inside(home, what) * width, kernel::row_major_strides(home.rank, home.extent), row,
                     kernel::row_major_strides(what.rank, what.extent), what.extent, what.rank, width);
}
inline void unpack(const std::byte* row, const kernel::placement& what, std::byte* shard, const kernel::placement& home,
                   std::int64_t width) {
  kernel::copy_block(row, kernel::row_major_strides(what.rank, what.extent), shard + inside(home, what) * width,
                     kernel::row_major_strides(home.rank, home.extent), what.extent, what.rank, width);
}

}}}  // namespace gshard::v0::detail
