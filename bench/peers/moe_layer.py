# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""usage: moe_layer.py [rounds]"""
from common import report, rounds, torch
from moe import FORMS

TOKENS = 2048


def run(model, hidden, experts, n):
    torch.manual_seed(1)
    make = lambda *shape: torch.randn(*shape)  # noqa: E731
    x, dy, wg = make(1, TOKENS, model), make(1, TOKENS, model), make(model, experts) * model**-0.5
    wi, wo = make(experts, model, hidden) * model**-0.5, make(experts, hidden, model) * hidden**-0.5
    size = f"M{model} F{hidden} E{experts}"
    results = []
    for name, form in FORMS.items():
        def forward():
            with torch.no_grad():
                return form(x, wg, wi, wo, 2 * TOKENS // experts)[0]

        def gradients():
            leaves = [t.requires_grad_() for t in (x, wg, wi, wo)]
            for t in leaves:
                t.grad = None
            form(x, wg, wi, wo, 2 * TOKENS // experts)[0].backward(dy)

        results.append(forward())
        report(f"moe forward {size}", f"PyTorch, {name}", forward, n)
        report(f"moe gradients {size}", f"PyTorch, {name}", gradients, n)
    for other in results[1:]:
        assert torch.allclose(results[0], other, atol=1e-4 * float(results[0].abs().max()))


if __name__ == "__main__":
    run(128, 512, 16, rounds())
    run(512, 2048, 8, rounds())
