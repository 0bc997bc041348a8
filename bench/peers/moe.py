# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The mixture-of-experts layer of arXiv 2006.16668 in PyTorch, three ways. Tokens x [G, S, M], capacity C places per expert and group,
the second expert always taken. All give the same numbers but for rounding."""
import torch
import torch.nn.functional as F


def route(x, wg, capacity):
    """Of both choices of every token [G, S, 2]: expert, place in it, weight (0 where the expert is full)."""
    gates = torch.softmax(x @ wg, -1)
    top, expert = gates.topk(2, -1)
    hot = F.one_hot(expert, wg.shape[1])  # [G, S, 2, E]
    first = hot[:, :, 0]
    before = torch.stack((first.cumsum(1) - first, hot[:, :, 1].cumsum(1) - hot[:, :, 1] + first.sum(1, keepdim=True).clamp(max=capacity)), 2)
    place = (before * hot).sum(-1)
    kept = place < capacity
    weight = top / (top.sum(-1, keepdim=True) + 1e-9) * kept
    return gates, first, expert, place, kept, weight


def balance(gates, first):
    return (gates.mean(1) * first.to(gates.dtype).mean(1)).sum(-1).mean() * gates.shape[-1]


def one_hot(x, wg, wi, wo, capacity):
    """As the paper writes it: dense [G, S, E, C] tensors."""
    gates, first, expert, place, kept, weight = route(x, wg, capacity)
    hot = F.one_hot(expert, wg.shape[1]).to(x.dtype).unsqueeze(-1) * F.one_hot(place.clamp(max=capacity - 1), capacity).to(x.dtype).unsqueeze(-2)
    combine = (hot * weight[..., None, None]).sum(2)
    dispatch = (hot * kept[..., None, None]).sum(2)
    h = torch.relu_(torch.einsum("egcm,emf->egcf", torch.einsum("gsec,gsm->egcm", dispatch, x), wi))
    return torch.einsum("gsec,gecm->gsm", combine, torch.einsum("egcf,efm->gecm", h, wo)), balance(gates, first)


class Take(torch.autograd.Function):
    """Rows of x by index; the gradient takes rows as well, since `back` names the rows (or the empty last one) that each row went to."""

    @staticmethod
    def forward(ctx, x, index, back):
        ctx.save_for_backward(back)
        return torch.cat((x, x.new_zeros(1, x.shape[1]))).index_select(0, index)

    @staticmethod
    def backward(ctx, grad):
        (back,) = ctx.saved_tensors
        padded = torch.cat((grad, grad.new_zeros(1, grad.shape[1])))
        return padded.index_select(0, back[0]) + padded.index_select(0, back[1]), None, None


def gather_weighted(out, slot, weight):
    padded = torch.cat((out, out.new_zeros(1, out.shape[1])))
    return padded.index_select(0, slot[0]) * weight[:, :1] + padded.index_select(0, slot[1]) * weight[:, 1:]


def batched(x, wg, wi, wo, capacity):
    """By index into [E, G * C, M], one batched product."""
    groups, length, model = x.shape
    experts = wg.shape[1]
    gates, first, expert, place, kept, weight = route(x, wg, capacity)
    group = torch.arange(groups).view(-1, 1, 1)
    rows = experts * groups * capacity
    slot = torch.where(kept, (expert * groups + group) * capacity + place, torch.full_like(place, rows)).view(-1, 2)
    tokens = groups * length
    token_of = torch.full((rows + 1,), tokens, dtype=torch.long)
    token_of[slot.t().reshape(-1)] = torch.arange(tokens).repeat(2)
    back = slot.t().contiguous()
    inside = Take.apply(x.reshape(tokens, model), token_of[:rows], back).view(experts, -1, model)
    out = torch.bmm(torch.relu_(torch.bmm(inside, wi)), wo).view(-1, model)
    return gather_weighted(out, back, weight.view(-1, 2)).view_as(x), balance(gates, first)


def ragged(x, wg, wi, wo, capacity):
    """Tokens sorted by expert, one pair of products for each over just its tokens."""
    groups, length, model = x.shape
    experts = wg.shape[1]
    gates, first, expert, place, kept, weight = route(x, wg, capacity)
    tokens = groups * length
    flat = torch.where(kept, expert, torch.full_like(expert, experts)).view(-1)
    order = flat.argsort(stable=True)
    counts = torch.bincount(flat, minlength=experts + 1)[:experts].tolist()
    rows = sum(counts)
    order = order[:rows]
    slot = torch.full((2 * tokens,), rows, dtype=torch.long)
    slot[order] = torch.arange(rows)
    back = slot.view(-1, 2).t().contiguous()
    inside = Take.apply(x.reshape(tokens, model), order // 2, back)
    parts = [torch.relu_(part @ a) @ b for part, a, b in zip(inside.split(counts), wi.unbind(), wo.unbind())]
    return gather_weighted(torch.cat(parts), back, weight.view(-1, 2)).view_as(x), balance(gates, first)


FORMS = {"one-hot": one_hot, "batched": batched, "ragged": ragged}
