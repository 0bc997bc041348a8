# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The training step of bench/run/transformer_step.cpp in PyTorch, with the experts by index ("ragged").
usage: transformer_step.py [steps [processes [ranks that it is compared with]]]"""
import json
import resource
import sys

from common import THREADS, report, rounds, torch
from moe import FORMS

LAYERS, MODEL, HIDDEN, EXPERTS, HEADS, VOCABULARY, SEQUENCES, LENGTH = 6, 256, 1024, 8, 8, 8192, 32, 32
nn, F = torch.nn, torch.nn.functional


def weight(*shape):
    return nn.Parameter(torch.randn(*shape) * shape[-2] ** -0.5)


class Attention(nn.Module):
    def __init__(self, crosses):
        super().__init__()
        self.crosses = crosses
        self.query = weight(MODEL, MODEL) if crosses else None
        self.rest = weight(MODEL, 2 * MODEL if crosses else 3 * MODEL)
        self.out = weight(MODEL, MODEL)

    def forward(self, x, memory=None, bias=None):
        if self.crosses:
            q = x @ self.query
            k, v = (memory @ self.rest).chunk(2, -1)
        else:
            q, k, v = (x @ self.rest).chunk(3, -1)
        q, k, v = (t.view(t.shape[0], -1, HEADS, MODEL // HEADS).transpose(1, 2) for t in (q, k, v))
        scores = (q * (MODEL // HEADS) ** -0.5) @ k.transpose(-1, -2)
        seen = torch.softmax(scores if bias is None else scores + bias, -1) @ v
        return seen.transpose(1, 2).reshape(x.shape) @ self.out


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.wi, self.wo = weight(MODEL, HIDDEN), weight(HIDDEN, MODEL)
        self.bi, self.bo = nn.Parameter(torch.zeros(HIDDEN)), nn.Parameter(torch.zeros(MODEL))

    def forward(self, x):
        return torch.relu_(x @ self.wi + self.bi) @ self.wo + self.bo, 0.0


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.wg, self.wi, self.wo = weight(MODEL, EXPERTS), weight(EXPERTS, MODEL, HIDDEN), weight(EXPERTS, HIDDEN, MODEL)

    def forward(self, x):
        tokens = x.reshape(1, -1, MODEL)
        y, aux = FORMS["ragged"](tokens, self.wg, self.wi, self.wo, 2 * tokens.shape[1] // EXPERTS)
        return y.view_as(x), aux


class Layer(nn.Module):
    def __init__(self, index, decodes):
        super().__init__()
        self.attention = Attention(False)
        self.cross = Attention(True) if decodes else None
        self.forward_part = Experts() if index % 2 else FeedForward()
        self.norms = nn.ModuleList(nn.LayerNorm(MODEL) for _ in range(3 if decodes else 2))

    def forward(self, x, memory=None, bias=None):
        x = x + self.attention(self.norms[0](x), bias=bias)
        if self.cross is not None:
            x = x + self.cross(self.norms[1](x), memory)
        y, aux = self.forward_part(self.norms[-1](x))
        return x + y, aux


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(VOCABULARY, MODEL) * MODEL**-0.5)
        self.positions = nn.ParameterList(nn.Parameter(torch.randn(LENGTH, MODEL) * 0.02) for _ in range(2))
        self.stacks = nn.ModuleList(nn.ModuleList(Layer(i, decodes) for i in range(LAYERS)) for decodes in (False, True))
        self.norms = nn.ModuleList(nn.LayerNorm(MODEL) for _ in range(2))

    def forward(self, source, target, following):
        causal = torch.full((LENGTH, LENGTH), float("-inf")).triu(1)
        aux, memory = 0.0, None
        for ids, position, stack, norm, bias in zip((source, target), self.positions, self.stacks, self.norms, (None, causal)):
            x = F.embedding(ids, self.table) * MODEL**0.5 + position
            for layer in stack:
                x, more = layer(x, memory, bias)
                aux = aux + more
            memory = norm(x)
        logits = memory.reshape(-1, MODEL) @ self.table.t()
        return F.cross_entropy(logits, following.reshape(-1), label_smoothing=0.1) + 0.01 * aux


def train(rank, processes, n, case):
    """Steps of one of `processes` processes, each with its share of the sequences; rank 0 reports."""
    torch.manual_seed(1)
    net = Transformer()
    if processes > 1:
        torch.distributed.init_process_group("gloo", init_method="tcp://127.0.0.1:29517", rank=rank, world_size=processes)
        net = nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, betas=(0.9, 0.98), eps=1e-9)
    batch = [torch.randint(VOCABULARY, (SEQUENCES, LENGTH)).chunk(processes)[rank] for _ in range(3)]
    losses = []

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = net(*batch)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))

    side = "PyTorch" if processes * THREADS == 1 else f"PyTorch, {processes} processes" if processes > 1 else f"PyTorch, {THREADS} threads"
    report(f"transformer step, {case}", side, step, n, prints=rank == 0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if rank == 0:
        print(json.dumps({"case": f"transformer memory, {case}", "side": side, "peak MiB": round(peak), "first loss": losses[0],
                          "last loss": losses[-1], "parameters": sum(p.numel() for p in net.parameters())}), flush=True)


if __name__ == "__main__":
    processes = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    case = f"{sys.argv[3] if len(sys.argv) > 3 else processes} ranks"
    if processes == 1:
        train(0, 1, rounds(), case)
    else:
        torch.multiprocessing.spawn(train, (processes, rounds(), case), processes)
