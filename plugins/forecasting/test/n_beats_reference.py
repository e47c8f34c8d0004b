"""N-BEATS in PyTorch, for n_beats_test.cpp: prints the numbers that stand there. PyTorch 1.13.

Blocks and bases after github.com/ServiceNow/N-BEATS (models/nbeats.py), with the paper's sum of
forecasts and times that go on from the window to the forecast.
"""
import math

import torch
from torch import nn

torch.set_default_dtype(torch.float64)
STEPS, HORIZON, WIDTH, LAYERS = 6, 4, 3, 2


class Block(nn.Module):
    def __init__(self, basis):
        super().__init__()
        self.basis = basis
        if basis == "generic":
            self.split = (STEPS, HORIZON)
        else:
            self.of_window = torch.stack([f(s) for f in self.functions(lambda s: s / STEPS, lambda s: (s - STEPS) / HORIZON) for s in [torch.arange(STEPS)]])
            self.of_forecast = torch.stack([f(s) for f in self.functions(lambda s: s / HORIZON, lambda s: s / HORIZON) for s in [torch.arange(HORIZON)]])
            self.split = (len(self.of_window), len(self.of_forecast))
        sizes = [STEPS] + [WIDTH] * LAYERS
        self.fc = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.theta = nn.Linear(WIDTH, sum(self.split))

    def functions(self, trend_time, season_time):
        if self.basis == "trend":
            return [lambda s, p=p: trend_time(s.double()) ** p for p in range(3)]
        return ([lambda s, f=f: torch.cos(2 * math.pi * f * season_time(s.double())) for f in range(2)] +
                [lambda s, f=f: torch.sin(2 * math.pi * f * season_time(s.double())) for f in range(1, 2)])

    def forward(self, x):
        for fc in self.fc:
            x = torch.relu(fc(x))
        window, forecast = self.theta(x).split(self.split, -1)
        if self.basis == "generic":
            return window, forecast
        return window @ self.of_window, forecast @ self.of_forecast


def show(stacks):
    """stacks: lists of blocks; a block may stand in one several times."""
    own = list(dict.fromkeys(block for stack in stacks for block in stack))
    parameters = [p for block in own for m in [*block.fc, block.theta] for p in (m.weight, m.bias)]
    for k, p in enumerate(parameters):
        p.data.copy_((0.5 * torch.sin(1.3 * torch.arange(p.numel()) + k)).view_as(p))
    i = torch.arange(24.0)
    x = (2 * torch.cos(0.37 * i) + 0.05 * i).view(2, STEPS, 2).transpose(1, 2)
    total = 0
    for stack in stacks:
        for block in stack:
            window, forecast = block(x)
            x, total = x - window, total + forecast
    out = total.transpose(1, 2)
    print(out.flatten().tolist())
    (out.flatten() * torch.cos(torch.arange(16.0))).sum().backward()
    print([(p.grad.flatten() * torch.cos(0.5 * torch.arange(p.numel()))).sum().item()
           for p in parameters])


show([[Block("generic"), Block("generic")], [Block("generic"), Block("generic")]])
show([[Block("trend")] * 3, [Block("seasonality")] * 3])
