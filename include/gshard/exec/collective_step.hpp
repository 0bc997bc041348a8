// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/comm/reduce.hpp>
#include <gshard/exec/shards.hpp>
#include <gshard/kernel/copy.hpp>
#include <gshard/tensor/buffer.hpp>
#include <gshard/tensor/cluster.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// A tensor before and after a step.
struct moved_tensor {
  bound_value in, out;
};

/// A communication step (or slice) of a plan, bound to memory. The layouts of operands and results say what goes where: to every
/// device of the group those parts of its new shards which this one holds. Parts that are not contiguous are packed before and
/// unpacked after the backend moves them.
class collective_step {
 public:
  /// axes: on the cluster. Elements of all tensors have one size.
  collective_step(op kind, const any_cluster& on, std::uint32_t axes, std::vector<moved_tensor> tensors, std::shared_ptr<reducer> sums)
      : kind_(kind), on_(on), axes_(axes), tensors_(std::move(tensors)), sums_(std::move(sums)), parts_(on.devices().size()) {
    if (!runs(kind)) throw error("executor: a plan step of kind " + std::string(name(kind)) + " cannot be run");
    bool reads = false;
    for (const moved_tensor& t : tensors_) {
      const kernel::placement first = place_of(t.in, 0);  // no shard is larger than the first
      most_ += kernel::element_count(first.rank, first.extent);
      reads = reads || !t.in.windows.empty() || !t.out.windows.empty() || !t.in.positions.empty() || !t.out.positions.empty();
    }
    for (std::size_t i = 0; i < parts_.size(); ++i) prepare(i);
    stays_ = kind == op::slice || (reads && nothing_moves());
  }

  void operator()() {
    if (stays_) return each([&](std::size_t i) { copy_own(i); });
    switch (kind_) {
      case op::all_reduce: return all_reduce();
      case op::reduce_scatter: return reduce_scatter();
      case op::all_gather: return all_gather();
      case op::all_to_all:
      case op::collective_permute: return exchange();
      default: return;
    }
  }
  static bool runs(op kind) {
    return kind == op::slice || (traits(kind).collective && kind != op::looped_einsum);
  }

 private:
  struct piece {
    std::size_t tensor = 0;
    kernel::placement from, to;  // in the whole tensor, as sender and receiver count; they differ where a window wraps
    std::int64_t elements = 0, offset = 0;
  };
  using pieces = std::vector<std::vector<piece>>;  // per member of the group
  struct part {
    pieces send, recv;
    std::vector<piece> own;  // what the device has of its new shards
    std::vector<std::int64_t> send_bytes, send_offset, recv_bytes, recv_offset, send_elements;
    buffer packed_in, packed_out;
  };

  op kind_;
  any_cluster on_;
  std::uint32_t axes_;
  std::vector<moved_tensor> tensors_;
  std::shared_ptr<reducer> sums_;
  std::vector<part> parts_;
  std::int64_t most_ = 0;  // elements of the largest shards on the mesh
  bool stays_ = false;     // nothing moves between devices of the mesh: all processes find the same, and none calls the backend

  std::int64_t width() const { return size_of(tensors_[0].in.type); }
  bool is_alone() const { return tensors_.size() == 1; }
  std::int64_t bytes_in(std::size_t i) const {
    std::int64_t bytes = 0;
    for (const moved_tensor& t : tensors_) bytes += t.in.bytes(i);
    return bytes;
  }
  template <class F>
  void each(F f) {
    for (std::size_t i = 0; i < parts_.size(); ++i) f(i);
  }

  kernel::placement place_of(const bound_value& v, int device) const { return place(v, on_.on().extents(), device); }

  /// What two shards of a tensor have in common: one piece, or none, and for every dim in which `to` goes on at the start of the
  /// tensor, as many again.
  static std::vector<piece> common(std::size_t tensor, const kernel::placement& from, const kernel::placement& to) {
    std::vector<piece> found{{tensor, from, to, 1, 0}};
    for (std::size_t d = 0; d < std::size_t(from.rank); ++d) {
      std::vector<piece> next;
      for (const piece& p : found)
        for (const std::int64_t shift : {std::int64_t(0), from.global[d]}) {
          if (shift > 0 && to.offset[d] + to.extent[d] <= from.global[d]) continue;
          const interval has{from.offset[d], from.offset[d] + from.extent[d]}, wants{to.offset[d], to.offset[d] + to.extent[d]};
          const interval both = has.common(wants.shifted(-shift));
          if (both.size() == 0) continue;
          piece q = p;
          q.from.offset[d] = both.begin;
          q.to.offset[d] = both.begin + shift;
          q.from.extent[d] = q.to.extent[d] = both.size();
          q.elements *= both.size();
          next.push_back(q);
        }
      found = std::move(next);
    }
    return found;
  }
  static bool equal(const kernel::placement& a, const kernel::placement& b) { return a.offset == b.offset && a.extent == b.extent; }

  std::vector<kernel::placement> places_of(const bound_value& v, const device_group& group) const {
    std::vector<kernel::placement> places;
    for (int m = 0; m < group.size(); ++m) places.push_back(place_of(v, group.device(m)));
    return places;
  }
  bool nothing_moves() const {
    const std::span<const int> mesh = on_.on().extents();
    for (int device = 0; device < device_count(mesh); ++device) {
      const device_group group(mesh, axes_, device);
      bool moves = false;
      if (group.member() == 0) for_each_origin(group, [&](std::size_t from, std::size_t to, const auto&) { moves = moves || from != to; });
      if (moves) return false;
    }
    return true;
  }

  void prepare(std::size_t i) {
    part& p = parts_[i];
    const auto add = [](std::vector<piece>& to, const std::vector<piece>& more) { to.insert(to.end(), more.begin(), more.end()); };
    if (kind_ == op::slice)
      for (std::size_t t = 0; t < tensors_.size(); ++t) add(p.own, common(t, tensors_[t].in.places[i], tensors_[t].out.places[i]));
    if (kind_ == op::slice) return;
    if (kind_ == op::all_reduce || kind_ == op::all_gather) p.packed_in = buffer(is_alone() ? 0 : bytes_in(i));
    if (kind_ == op::all_reduce) return;
    const device_group group(on_.on().extents(), axes_, on_.devices()[i]);
    const auto members = std::size_t(group.size()), me = std::size_t(group.member());
    p.send.resize(members);
    if (kind_ == op::reduce_scatter) {
      for (std::size_t t = 0; t < tensors_.size(); ++t)
        for (std::size_t m = 0; m < members; ++m)
          add(p.send[m], common(t, tensors_[t].in.places[i], place_of(tensors_[t].out, group.device(int(m)))));
    } else {
      p.recv.resize(members);
      for_each_origin(group, [&](std::size_t from, std::size_t to, const std::vector<piece>& both) {
        if (from == me) add(p.send[to], both);
        if (to == me) add(p.recv[from], both);
        if (from == me && to == me) add(p.own, both);
      });
      chain(p.recv, p.recv_bytes, p.recv_offset);
      p.packed_out = buffer(p.recv_offset.back() + p.recv_bytes.back());
    }
    if (kind_ == op::all_gather) return;
    chain(p.send, p.send_bytes, p.send_offset);
    if (kind_ == op::reduce_scatter) {
      p.own = p.send[me];
      for (piece& b : p.own) b.offset -= p.send_offset[me];
      p.packed_out = buffer(is_alone() ? 0 : p.send_bytes[me]);
    }
    for (const std::int64_t bytes : p.send_bytes) p.send_elements.push_back(bytes / width());
    p.packed_in = buffer(p.send_offset.back() + p.send_bytes.back());
  }

  /// Calls f(from, to, pieces) where member `to` gets what its shard after has in common with the one before of member `from`, tensor by
  /// tensor. Where several members hold the same shard, one that needs it takes its own, and the others take turns.
  template <class F>
  void for_each_origin(const device_group& group, F f) const {
    for (std::size_t t = 0; t < tensors_.size(); ++t)
      for_each_origin(t, places_of(tensors_[t].in, group), places_of(tensors_[t].out, group), f);
  }
  template <class F>
  static void for_each_origin(std::size_t tensor, const std::vector<kernel::placement>& before,
                              const std::vector<kernel::placement>& after, F f) {
    std::vector<char> counted(before.size(), 0);
    for (std::size_t first = 0; first < before.size(); ++first) {
      if (counted[first]) continue;
      std::vector<std::size_t> holders;
      for (std::size_t m = first; m < before.size(); ++m)
        if (equal(before[m], before[first])) {
          holders.push_back(m);
          counted[m] = 1;
        }
      std::size_t turn = 0;
      for (std::size_t to = 0; to < after.size(); ++to) {
        const std::vector<piece> both = common(tensor, before[first], after[to]);
        if (both.empty()) continue;
        if (equal(before[to], before[first])) f(to, to, both);
        else f(holders[turn++ % holders.size()], to, both);
      }
    }
  }

  void chain(pieces& blocks, std::vector<std::int64_t>& bytes, std::vector<std::int64_t>& offset) const {
    std::int64_t next = 0;
    for (std::vector<piece>& of_member : blocks) {
      offset.push_back(next * width());
      for (piece& b : of_member) {
        b.offset = next * width();
        next += b.elements;
      }
      bytes.push_back(next * width() - offset.back());
    }
  }

  /// Copies `what` between a shard that lies at `home` and a contiguous block.
  void pack(const std::byte* shard, const kernel::placement& home, std::byte* block, const kernel::placement& what) const {
    kernel::copy_block(shard + inside(home, what), kernel::row_major_strides(home.rank, home.extent), block,
                       kernel::row_major_strides(what.rank, what.extent), what.extent, what.rank, width());
  }
  void unpack(const std::byte* block, const kernel::placement& what, std::byte* shard, const kernel::placement& home) const {
    kernel::copy_block(block, kernel::row_major_strides(what.rank, what.extent), shard + inside(home, what),
                       kernel::row_major_strides(home.rank, home.extent), what.extent, what.rank, width());
  }
  std::int64_t inside(const kernel::placement& home, const kernel::placement& what) const {
    if (kernel::element_count(what.rank, what.extent) == 0) return 0;
    const kernel::index_array stride = kernel::row_major_strides(home.rank, home.extent);
    std::int64_t at = 0;
    for (std::size_t d = 0; d < std::size_t(home.rank); ++d) at += (what.offset[d] - home.offset[d]) * stride[d];
    return at * width();
  }

  void copy_own(std::size_t i) {
    for (const piece& b : parts_[i].own) {
      const auto& [in, out] = tensors_[b.tensor];
      kernel::copy_block(in.data[i] + inside(in.places[i], b.from), kernel::row_major_strides(b.from.rank, in.places[i].extent),
                         out.data[i] + inside(out.places[i], b.to), kernel::row_major_strides(b.to.rank, out.places[i].extent), b.to.extent,
                         b.to.rank, width());
    }
  }
  void pack_all(std::size_t i) {
    part& p = parts_[i];
    for (const auto& to : p.send)
      for (const piece& b : to) pack(tensors_[b.tensor].in.data[i], tensors_[b.tensor].in.places[i], p.packed_in.data() + b.offset, b.from);
  }
  void unpack_all(std::size_t i) {
    for (const auto& from : parts_[i].recv) unpack_all(i, from);
  }
  void unpack_all(std::size_t i, const std::vector<piece>& from) {
    for (const piece& b : from)
      unpack(parts_[i].packed_out.data() + b.offset, b.to, tensors_[b.tensor].out.data[i],
             tensors_[b.tensor].out.places[i]);
  }
  /// The shards of all operands, one after another.
  const std::byte* in_one_row(std::size_t i) {
    if (is_alone()) return tensors_[0].in.data[i];
    std::byte* next = parts_[i].packed_in.data();
    for (const moved_tensor& t : tensors_) {
      if (t.in.bytes(i) > 0) std::memcpy(next, t.in.data[i], std::size_t(t.in.bytes(i)));
      next += t.in.bytes(i);
    }
    return parts_[i].packed_in.data();
  }

  template <class Byte>
  static std::vector<std::span<Byte>> blocks(Byte* row, const std::vector<std::int64_t>& bytes, const std::vector<std::int64_t>& offset) {
    std::vector<std::span<Byte>> all;
    for (std::size_t j = 0; j < bytes.size(); ++j) all.emplace_back(row + offset[j], std::size_t(bytes[j]));
    return all;
  }

  void all_gather() {
    std::vector<gather_part> parts;
    std::vector<std::vector<std::span<std::byte>>> recv;
    each([&](std::size_t i) { recv.push_back(blocks(parts_[i].packed_out.data(), parts_[i].recv_bytes, parts_[i].recv_offset)); });
    each([&](std::size_t i) { parts.push_back({{in_one_row(i), std::size_t(bytes_in(i))}, recv[i]}); });
    on_.on().all_gather(axes_, parts);
    each([&](std::size_t i) { unpack_all(i); });
  }

  void exchange() {
    std::vector<exchange_part> parts;
    std::vector<std::vector<std::span<const std::byte>>> send;
    std::vector<std::vector<std::span<std::byte>>> recv;
    each([&](std::size_t i) {
      pack_all(i);
      const part& p = parts_[i];
      send.push_back(blocks<const std::byte>(p.packed_in.data(), p.send_bytes, p.send_offset));
      recv.push_back(blocks(parts_[i].packed_out.data(), p.recv_bytes, p.recv_offset));
    });
    each([&](std::size_t i) { parts.push_back({send[i], recv[i]}); });
    on_.on().exchange(axes_, parts);
    each([&](std::size_t i) { unpack_all(i); });
  }

  void all_reduce() {
    const auto row = [&](std::size_t i) { return is_alone() ? tensors_[0].out.data[i] : parts_[i].packed_in.data(); };
    each([&](std::size_t i) {
      const std::byte* const from = in_one_row(i);
      if (bytes_in(i) > 0 && from != row(i)) std::memcpy(row(i), from, std::size_t(bytes_in(i)));
    });
    with_element(tensors_[0].in.type, [&]<class T>(T*) {
      std::vector<T*> data;
      std::vector<std::int64_t> n;
      each([&](std::size_t i) {
        data.push_back(reinterpret_cast<T*>(row(i)));
        n.push_back(bytes_in(i) / width());
      });
      sums_->all_reduce<T>(tensors_[0].in.layout.pending, on_.on(), axes_, data, n, most_);
    });
    if (is_alone()) return;
    each([&](std::size_t i) {
      const std::byte* next = row(i);
      for (const moved_tensor& t : tensors_) {
        if (t.out.bytes(i) > 0) std::memcpy(t.out.data[i], next, std::size_t(t.out.bytes(i)));
        next += t.out.bytes(i);
      }
    });
  }

  void reduce_scatter() {
    each([&](std::size_t i) { pack_all(i); });
    with_element(tensors_[0].in.type, [&]<class T>(T*) {
      std::vector<const T*> data;
      std::vector<T*> result;
      std::vector<std::span<const std::int64_t>> counts;
      each([&](std::size_t i) {
        data.push_back(reinterpret_cast<const T*>(parts_[i].packed_in.data()));
        result.push_back(reinterpret_cast<T*>(is_alone() ? tensors_[0].out.data[i] : parts_[i].packed_out.data()));
        counts.push_back(parts_[i].send_elements);
      });
      sums_->reduce_scatter<T>(tensors_[0].in.layout.pending, on_.on(), axes_, data, counts, result);
    });
    if (!is_alone()) each([&](std::size_t i) { unpack_all(i, parts_[i].own); });
  }
};

}}}  // namespace gshard::v0::detail
