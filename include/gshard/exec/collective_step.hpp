// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/comm/reduce.hpp>
#include <gshard/comm/rounds.hpp>
#include <gshard/exec/moves.hpp>
#include <gshard/exec/shards.hpp>
#include <gshard/pass/cost.hpp>
#include <gshard/tensor/buffer.hpp>
#include <gshard/tensor/cluster.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// A tensor before and after a step.
struct moved_tensor {
  bound_value in, out;
};

/// What the communication steps of an executor share, as they take turns: a reducer, and room for what is packed.
struct collective_room {
  reducer sums{small_sum_bytes};
  std::vector<buffer> packed;  // per held device

  void demand(std::size_t device, std::int64_t bytes) {
    if (packed.size() <= device) packed.resize(device + 1);
    if (packed[device].size() < bytes) packed[device] = buffer(bytes);
  }
};

/// A communication step (or slice) of a plan, bound to memory. The layouts of operands and results say what goes where: to every
/// device of the group those parts of its new shards which this one holds. A part that is one run of a shard is sent from there and
/// received there; others are packed before and unpacked after they are sent, in portions that fit into the cache. What a device keeps
/// is copied from shard to shard, while messages are under way. Allocates nothing once it is made.
class collective_step {
 public:
  /// axes: on the cluster. Elements of all tensors have one size.
  collective_step(op kind, const any_cluster& on, std::uint32_t axes, std::vector<moved_tensor> tensors, std::shared_ptr<collective_room> room)
      : kind_(kind), on_(on), axes_(axes), tensors_(std::move(tensors)), room_(std::move(room)), parts_(on.devices().size()) {
    if (!runs(kind)) throw error("executor: a plan step of kind " + std::string(name(kind)) + " cannot be run");
    bool reads = false;
    for (const moved_tensor& t : tensors_) {
      const kernel::placement first = place_of(t.in, 0);  // no shard is larger than the first
      most_ += kernel::element_count(first.rank, first.extent);
      reads = reads || !t.in.windows.empty() || !t.out.windows.empty() || !t.in.positions.empty() || !t.out.positions.empty();
    }
    stays_ = kind == op::slice || group(0).size() == 1 || (reads && nothing_moves());
    for (std::size_t i = 0; i < parts_.size(); ++i) prepare(i);
    for (std::size_t i = 0; i < parts_.size(); ++i) find_room(i);
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
  /// A portion where this device has it: in a shard, if it is one run of it, and else packed.
  struct block {
    std::vector<piece> pieces;
    std::int64_t bytes = 0;
    std::byte* run = nullptr;
    std::int64_t slot = 0;  // in the room

    std::byte* at(std::byte* room) const { return run ? run : room + slot; }
  };
  using blocks = std::vector<std::vector<block>>;  // per round and member of the group
  struct round {
    std::vector<std::span<const std::byte>> send;
    std::vector<std::span<std::byte>> recv;
  };
  struct part {
    std::size_t me = 0;      // among the members
    std::vector<piece> own;  // what the device has of its new shards
    blocks send, recv;
    std::vector<block> mine, sums;  // reduce_scatter, per round: what is added to what arrives, and where the sum goes
    std::array<round, 2> under_way;
    std::int64_t received = 0;      // bytes in all
  };

  op kind_;
  any_cluster on_;
  std::uint32_t axes_;
  std::vector<moved_tensor> tensors_;
  std::shared_ptr<collective_room> room_;
  std::vector<part> parts_;
  std::size_t rounds_ = 0;
  std::int64_t most_ = 0;  // elements of the largest shards on the mesh
  bool stays_ = false;     // nothing moves between devices of the mesh: all processes find the same, and none calls the backend
  std::array<std::vector<exchange_part>, 2> exchange_;
  std::vector<gather_part> gather_;
  template <class T>
  struct summed {
    std::vector<const T*> from;
    std::vector<T*> to;
  };
  std::tuple<summed<float>, summed<double>, summed<std::int32_t>> summed_;  // all_reduce, per held device
  std::vector<std::int64_t> elements_;

  std::int64_t width() const { return size_of(tensors_[0].in.type); }
  bool is_alone() const { return tensors_.size() == 1; }
  template <class F>
  void each(F f) {
    for (std::size_t i = 0; i < parts_.size(); ++i) f(i);
  }
  std::byte* packed(std::size_t i) { return room_->packed[i].data(); }

  device_group group(std::size_t i) const { return device_group(on_.on().extents(), axes_, on_.devices()[i]); }
  kernel::placement place_of(const bound_value& v, int device) const { return place(v, on_.on().extents(), device); }
  std::vector<kernel::placement> places_of(const bound_value& v, const device_group& group) const {
    std::vector<kernel::placement> places;
    for (int m = 0; m < group.size(); ++m) places.push_back(place_of(v, group.device(m)));
    return places;
  }

  /// Calls f(from, to, pieces) tensor by tensor.
  template <class F>
  void for_each_origin(const device_group& group, F f) const {
    for (std::size_t t = 0; t < tensors_.size(); ++t)
      detail::for_each_origin(t, places_of(tensors_[t].in, group), places_of(tensors_[t].out, group), f);
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
    const device_group members = group(i);
    const auto n = std::size_t(members.size());
    p.me = std::size_t(members.member());
    if (stays_ || kind_ == op::reduce_scatter)
      for (std::size_t t = 0; t < tensors_.size(); ++t) add(p.own, common(t, tensors_[t].in.places[i], tensors_[t].out.places[i]));
    if (stays_) return;
    if (kind_ == op::all_reduce) {
      std::int64_t bytes = 0;
      for (const moved_tensor& t : tensors_) bytes += t.in.bytes(i);
      elements_.push_back(bytes / width());
      return room_->demand(i, is_alone() ? 0 : bytes);
    }
    std::vector<std::vector<piece>> send(n), recv(n);
    if (kind_ == op::reduce_scatter) {
      for (std::size_t m = 0; m < n; ++m) {
        if (m == p.me) continue;
        for (std::size_t t = 0; t < tensors_.size(); ++t)
          add(send[m], common(t, tensors_[t].in.places[i], place_of(tensors_[t].out, members.device(int(m)))));
        recv[m] = p.own;
      }
    } else {
      for_each_origin(members, [&](std::size_t from, std::size_t to, const std::vector<piece>& both) {
        if (from == p.me) add(to == p.me ? p.own : send[to], both);
        else if (to == p.me) add(recv[from], both);
      });
    }
    make_rounds(i, members, send, recv);
  }
  static void add(std::vector<piece>& to, const std::vector<piece>& more) { to.insert(to.end(), more.begin(), more.end()); }

  void make_rounds(std::size_t i, const device_group& members, const std::vector<std::vector<piece>>& send,
                   const std::vector<std::vector<piece>>& recv) {
    part& p = parts_[i];
    const auto n = std::size_t(members.size());
    const std::int64_t most = bytes_per_round(n) / width();
    const auto portions = [&](const std::vector<piece>& pieces, std::size_t from, std::size_t to) {
      return portions_of(pieces, most, [&](const piece& b) {  // needs no packing on either side
        return kind_ != op::reduce_scatter && is_run(place_of(tensors_[b.tensor].in, members.device(int(from))), b.from) &&
               is_run(place_of(tensors_[b.tensor].out, members.device(int(to))), b.to);
      });
    };
    const auto put = [&](blocks& into, std::size_t m, std::vector<portion> made) {
      if (into.size() < made.size()) into.resize(made.size());
      for (std::vector<block>& of_round : into) of_round.resize(n);
      for (std::size_t r = 0; r < made.size(); ++r) into[r][m].pieces = std::move(made[r].pieces);
    };
    for (std::size_t m = 0; m < n; ++m) {
      if (m == p.me) continue;
      put(p.send, m, portions(send[m], p.me, m));
      put(p.recv, m, portions(recv[m], m, p.me));
    }
    if (kind_ == op::all_gather || kind_ == op::reduce_scatter)
      for (portion& b : portions(p.own, p.me, p.me)) p.mine.push_back({std::move(b.pieces)});
    if (kind_ == op::reduce_scatter) p.sums = p.mine;
    rounds_ = std::max({rounds_, p.send.size(), p.recv.size(), p.mine.size()});
  }

  /// Finds the place of every block: two rounds are under way at a time.
  void find_room(std::size_t i) {
    part& p = parts_[i];
    const auto members = std::size_t(group(i).size());
    for (blocks* b : {&p.send, &p.recv}) b->resize(rounds_, std::vector<block>(members));
    p.mine.resize(rounds_);
    p.sums.resize(rounds_);
    for (std::size_t k = 0; k < 2; ++k) {
      round& r = p.under_way[k];
      r.send.resize(members);
      r.recv.resize(members);
      exchange_[k].push_back({r.send, r.recv});
    }
    std::array<std::int64_t, 2> end{};
    std::vector<block*> of_odd_rounds;
    for (std::size_t r = 0; r < rounds_; ++r) {
      std::int64_t next = 0;
      const auto place = [&](block& b, bool of_result, bool may_be_run) {
        for (const piece& x : b.pieces) b.bytes += x.elements * width();
        if (b.bytes == 0) return;
        const bound_value& v = of_result ? tensors_[b.pieces[0].tensor].out : tensors_[b.pieces[0].tensor].in;
        const kernel::placement& what = of_result ? b.pieces[0].to : b.pieces[0].from;
        if (may_be_run && b.pieces.size() == 1 && is_run(v.places[i], what)) {
          b.run = v.data[i] + inside(v.places[i], what) * width();
          return;
        }
        b.slot = next;
        next += (b.bytes + 63) / 64 * 64;
        if (r % 2) of_odd_rounds.push_back(&b);
      };
      const bool sums = kind_ == op::reduce_scatter;
      for (block& b : p.send[r]) place(b, false, true);
      for (block& b : p.recv[r]) {
        place(b, true, !sums);
        p.received += b.bytes;
      }
      place(p.mine[r], false, true);
      place(p.sums[r], true, true);
      end[r % 2] = std::max(end[r % 2], next);
    }
    for (block* b : of_odd_rounds) b->slot += end[0];
    room_->demand(i, end[0] + end[1]);
  }

  void copy_own(std::size_t i) {
    for (const piece& b : parts_[i].own) {
      const auto& [in, out] = tensors_[b.tensor];
      const std::byte* const from = in.data[i] + inside(in.places[i], b.from) * width();
      std::byte* const to = out.data[i] + inside(out.places[i], b.to) * width();
      if (from != to)
        kernel::copy_block(from, kernel::row_major_strides(b.from.rank, in.places[i].extent), to,
                           kernel::row_major_strides(b.to.rank, out.places[i].extent), b.to.extent, b.to.rank, width());
    }
  }
  /// The block, packed if it has to be.
  std::byte* packed(std::size_t i, const block& b) {
    std::byte* const at = b.at(packed(i));
    if (b.run) return at;
    std::byte* next = at;
    for (const piece& x : b.pieces) {
      const bound_value& v = tensors_[x.tensor].in;
      pack(v.data[i], v.places[i], next, x.from, width());
      next += x.elements * width();
    }
    return at;
  }
  void unpack(std::size_t i, const block& b) {
    if (b.run) return;
    const std::byte* next = packed(i) + b.slot;
    for (const piece& x : b.pieces) {
      const bound_value& v = tensors_[x.tensor].out;
      detail::unpack(next, x.to, v.data[i], v.places[i], width());
      next += x.elements * width();
    }
  }

  template <class Meanwhile, class Took>
  void in_rounds(Meanwhile meanwhile, Took took) {
    const auto fill = [&](std::size_t r) -> std::span<const exchange_part> {
      each([&](std::size_t i) {
        part& p = parts_[i];
        round& now = p.under_way[r % 2];
        for (std::size_t m = 0; m < now.send.size(); ++m) {
          now.send[m] = {packed(i, p.send[r][m]), std::size_t(p.send[r][m].bytes)};
          now.recv[m] = {p.recv[r][m].at(packed(i)), std::size_t(p.recv[r][m].bytes)};
        }
      });
      return exchange_[r % 2];
    };
    detail::in_rounds(on_.on(), axes_, rounds_, fill, meanwhile, [&](std::size_t r) { each([&](std::size_t i) { took(i, r); }); });
  }

  void exchange() {
    each([&](std::size_t i) { on_.on().count(i, {1, parts_[i].received, 0, 0}); });
    move_in_rounds();
  }
  void move_in_rounds() {
    in_rounds([&] { each([&](std::size_t i) { copy_own(i); }); },
              [&](std::size_t i, std::size_t r) {
                for (const block& b : parts_[i].recv[r]) unpack(i, b);
              });
  }

  void all_gather() {
    if (rounds_ > 1) {
      each([&](std::size_t i) { on_.on().count(i, {0, 0, 1, parts_[i].received}); });
      return move_in_rounds();
    }
    gather_.clear();
    each([&](std::size_t i) {
      part& p = parts_[i];
      std::vector<std::span<std::byte>>& recv = p.under_way[0].recv;
      std::span<std::byte> own;
      if (rounds_ == 1) {
        own = {packed(i, p.mine[0]), std::size_t(p.mine[0].bytes)};
        for (std::size_t m = 0; m < recv.size(); ++m) recv[m] = {p.recv[0][m].at(packed(i)), std::size_t(p.recv[0][m].bytes)};
        recv[p.me] = own;
      }
      gather_.push_back({own, recv});
    });
    on_.on().all_gather(axes_, gather_);
    each([&](std::size_t i) {
      copy_own(i);
      if (rounds_ == 1)
        for (const block& b : parts_[i].recv[0]) unpack(i, b);
    });
  }

  void reduce_scatter() {
    each([&](std::size_t i) { on_.on().count(i, {1, parts_[i].received, 0, 0}); });
    with_element(tensors_[0].in.type, [&]<class T>(T*) {
      in_rounds([] {},
                [&](std::size_t i, std::size_t r) {
                  part& p = parts_[i];
                  const std::byte* const mine = packed(i, p.mine[r]);
                  const auto of = [&](std::size_t m) { return reinterpret_cast<const T*>(m == p.me ? mine : p.recv[r][m].at(packed(i))); };
                  reducer::combine(tensors_[0].in.layout.pending, p.recv[r].size(), p.sums[r].bytes / width(), of,
                                   reinterpret_cast<T*>(p.sums[r].at(packed(i))));
                  unpack(i, p.sums[r]);
                });
    });
  }

  /// Several tensors are summed as one, in a row.
  void all_reduce() {
    if (!is_alone())
      each([&](std::size_t i) {
        std::byte* next = packed(i);
        for (const moved_tensor& t : tensors_) {
          if (t.in.bytes(i) > 0) std::memcpy(next, t.in.data[i], std::size_t(t.in.bytes(i)));
          next += t.in.bytes(i);
        }
      });
    with_element(tensors_[0].in.type, [&]<class T>(T*) {
      auto& [from, to] = std::get<summed<T>>(summed_);
      from.clear();
      to.clear();
      each([&](std::size_t i) {
        from.push_back(reinterpret_cast<const T*>(is_alone() ? tensors_[0].in.data[i] : packed(i)));
        to.push_back(reinterpret_cast<T*>(is_alone() ? tensors_[0].out.data[i] : packed(i)));
      });
      room_->sums.all_reduce<T>(tensors_[0].in.layout.pending, on_.on(), axes_, from, to, elements_, most_);
    });
    if (is_alone()) return;
    each([&](std::size_t i) {
      const std::byte* next = packed(i);
      for (const moved_tensor& t : tensors_) {
        if (t.out.bytes(i) > 0) std::memcpy(t.out.data[i], next, std::size_t(t.out.bytes(i)));
        next += t.out.bytes(i);
      }
    });
  }
};

}}}  // namespace gshard::v0::detail
