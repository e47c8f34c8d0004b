"""N-HiTS in PyTorch, for n_hits_test.cpp: prints the numbers that stand there. PyTorch 1.13.

Blocks after github.com/cchallu/n-hits (src/models/nhits/nhits.py): windows are reversed, pooled with
ceil_mode, and taken apart in that order. Treadle keeps the order of time, so the columns and rows of
weights that stand for steps of the window are reversed here.
"""
import math

import torch
from torch import nn
from torch.nn import functional as F

torch.set_default_dtype(torch.float64)


class Block(nn.Module):
    def __init__(self, steps, horizon, pool, downsample, mode, outputs, width, layers):
        super().__init__()
        self.steps, self.horizon, self.mode, self.outputs = steps, horizon, mode, outputs
        self.pool = nn.MaxPool1d(pool, stride=pool, ceil_mode=True)
        self.knots = max(horizon // downsample, 1)
        sizes = [math.ceil(steps / pool)] + [width] * layers
        self.fc = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.theta = nn.Linear(sizes[-1], steps + outputs * self.knots)

    def forward(self, reversed_window):  # [series, steps]
        x = self.pool(reversed_window.unsqueeze(1)).squeeze(1)
        for fc in self.fc:
            x = F.relu(fc(x))
        theta = self.theta(x)
        knots = theta[:, self.steps:].reshape(len(x), self.outputs, self.knots)
        if self.mode == "cubic":  # one output after the other, as images of one row
            forecast = torch.stack([F.interpolate(knots[:, None, k:k + 1, :], size=self.horizon,
                                                  mode="bicubic")[:, 0, 0]
                                    for k in range(self.outputs)], 1)
        else:
            forecast = F.interpolate(knots, size=self.horizon, mode=self.mode)
        return theta[:, :self.steps], forecast

    def in_order(self):
        """Parameters, and how their elements stand in the order of time."""
        def window_rows(x):
            return torch.cat([x[:self.steps].flip(0), x[self.steps:]])
        for i, fc in enumerate(self.fc):
            yield fc.weight, (lambda x: x.flip(1)) if i == 0 else (lambda x: x)
            yield fc.bias, lambda x: x
        yield self.theta.weight, window_rows
        yield self.theta.bias, window_rows


class NHits(nn.Module):
    def __init__(self, steps, horizon, pools, downsample, blocks, mode="linear", outputs=1,
                 level=None, width=3, layers=2):
        super().__init__()
        self.horizon = horizon
        self.level = level or [1] * outputs  # which outputs begin at the last value
        self.blocks = nn.ModuleList(
            Block(steps, horizon, pool, down, mode, outputs, width, layers)
            for pool, down, count in zip(pools, downsample, blocks) for _ in range(count))

    def forward(self, x):  # [series, steps] to [series, outputs, horizon]
        left = x.flip(-1)
        forecast = x[:, -1:, None] * torch.tensor(self.level, dtype=x.dtype).view(1, -1, 1)
        forecast = forecast.expand(-1, -1, self.horizon)
        for block in self.blocks:
            window, part = block(left)
            left, forecast = left - window, forecast + part
        return forecast


def show(name, steps, horizon, **settings):
    net = NHits(steps, horizon, **settings)
    parameters = [pair for block in net.blocks for pair in block.in_order()]
    for k, (p, order) in enumerate(parameters):
        filled = (0.5 * torch.sin(1.3 * torch.arange(p.numel()) + k)).view_as(p)
        p.data.copy_(order(filled))
    i = torch.arange(2.0 * steps * 2)
    x = (2 * torch.cos(0.37 * i) + 0.05 * i).view(2, steps, 2)  # windows of two channels
    series = x.transpose(1, 2).reshape(4, steps)
    # [B, channels, outputs, horizon] to [B, horizon, outputs, channels]
    out = net(series).view(2, 2, -1, horizon).permute(0, 3, 2, 1)
    print(name, sum(p.numel() for p in net.parameters()), "parameters")
    print(out.flatten().tolist())
    (out.flatten() * torch.cos(torch.arange(float(out.numel())))).sum().backward()
    print([(order(p.grad).flatten() * torch.cos(0.5 * torch.arange(p.numel()))).sum().item()
           for p, order in parameters])


if __name__ == "__main__":
    # Neither 7 steps nor 5 are multiples of the pools and of the knots' distances.
    odd = dict(steps=7, horizon=5, pools=[3, 2, 1], downsample=[3, 2, 1], blocks=[1, 2, 1])
    show("linear", **odd)
    show("nearest", mode="nearest", **odd)
    show("cubic of two quantiles", mode="cubic", outputs=2, **odd)
    show("location and scale", outputs=2, level=[1, 0], **odd)
    show("pools and knots beyond the ends", 6, 4, pools=[8, 4], downsample=[9, 3], blocks=[1, 1])
    defaults = NHits(120, 24, [2, 2, 1], [4, 2, 1], [1, 1, 1], width=512)
    print("120 steps, 24 of horizon:", sum(p.numel() for p in defaults.parameters()), "parameters")
