"""PatchTST in PyTorch, written after github.com/yuqinie98/PatchTST (PatchTST_supervised), for
patch_tst_test.cpp: prints the numbers that stand there. PyTorch 1.13.

    python3 patch_tst_reference.py            the numbers of the test
    python3 patch_tst_reference.py --time N   seconds a step on ETTh1's sizes, one thread, N steps
"""
import sys
import time

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.scale = heads, (width // heads) ** -0.5
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.out, self.dropout = nn.Linear(width, width), nn.Dropout(dropout)

    def forward(self, x, before):
        b, p, d = x.shape
        q = self.q(x).view(b, p, self.heads, -1).transpose(1, 2)
        k = self.k(x).view(b, p, self.heads, -1).permute(0, 2, 3, 1)
        v = self.v(x).view(b, p, self.heads, -1).transpose(1, 2)
        scores = torch.matmul(q, k) * self.scale
        if before is not None:
            scores = scores + before
        mixed = torch.matmul(torch.softmax(scores, -1), v)
        return self.dropout(self.out(mixed.transpose(1, 2).contiguous().view(b, p, d))), scores


class BatchNorm(nn.BatchNorm1d):
    def forward(self, x):
        return super().forward(x.transpose(1, 2)).transpose(1, 2)


class EncoderLayer(nn.Module):
    def __init__(self, width, heads, inner, dropout):
        super().__init__()
        self.attention = Attention(width, heads, dropout)
        self.dropout1, self.norm1 = nn.Dropout(dropout), BatchNorm(width)
        self.ff = nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Dropout(dropout),
                                nn.Linear(inner, width))
        self.dropout2, self.norm2 = nn.Dropout(dropout), BatchNorm(width)

    def forward(self, x, before):
        mixed, scores = self.attention(x, before)
        x = self.norm1(x + self.dropout1(mixed))
        return self.norm2(x + self.dropout2(self.ff(x))), scores


class RevIN(nn.Module):
    """After github.com/ts-kim/RevIN: its numbers are those of the last window that was scaled."""

    def __init__(self, channels, affine, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(channels)) if affine else None
        self.bias = nn.Parameter(torch.zeros(channels)) if affine else None

    def scale(self, x):
        self.mean = x.mean(1, keepdim=True).detach()
        self.std = torch.sqrt(x.var(1, keepdim=True, unbiased=False) + self.eps).detach()
        x = (x - self.mean) / self.std
        return x if self.weight is None else x * self.weight + self.bias

    def unscale(self, x):
        if self.weight is not None:
            x = (x - self.bias) / (self.weight + self.eps * self.eps)
        return x * self.std + self.mean


class PatchTst(nn.Module):
    def __init__(self, steps, horizon, patch, stride, width, heads, inner, layers, dropout,
                 affine_channels=0):
        super().__init__()
        self.revin = RevIN(affine_channels, affine_channels > 0)
        self.patch, self.stride = patch, stride
        patches = (steps - patch) // stride + 2
        self.pad = nn.ReplicationPad1d((0, stride))
        self.embedding = nn.Linear(patch, width)
        self.positions = nn.Parameter(torch.empty(patches, width).uniform_(-0.02, 0.02))
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(EncoderLayer(width, heads, inner, dropout)
                                    for _ in range(layers))
        self.head = nn.Linear(width * patches, horizon)

    def forward(self, x):  # [B, steps, channels]
        z = self.pad(self.revin.scale(x).transpose(1, 2)).unfold(-1, self.patch, self.stride)
        b, c, p, _ = z.shape
        z = self.dropout(self.embedding(z).view(b * c, p, -1) + self.positions)
        scores = None
        for layer in self.layers:
            z, scores = layer(z, scores)
        z = z.view(b, c, p, -1).transpose(2, 3).flatten(2)
        return self.revin.unscale(self.head(z).transpose(1, 2))

    def in_order(self):
        """(name, tensors that stand one below the other) as treadle's patch_tst has them."""
        if self.revin.weight is not None:
            yield "revin.weight", [self.revin.weight]
            yield "revin.bias", [self.revin.bias]
        yield "embedding.weight", [self.embedding.weight]
        yield "embedding.bias", [self.embedding.bias]
        yield "embedding.positions", [self.positions]
        for i, layer in enumerate(self.layers):
            a, ff = layer.attention, layer.ff
            for name, modules in (("in", [a.q, a.k, a.v]), ("out", [a.out]),
                                  ("norm1", [layer.norm1]), ("linear1", [ff[0]]),
                                  ("linear2", [ff[3]]), ("norm2", [layer.norm2])):
                yield f"layers.{i}.{name}_weight", [m.weight for m in modules]
                yield f"layers.{i}.{name}_bias", [m.bias for m in modules]
        yield "head.weight", [self.head.weight]
        yield "head.bias", [self.head.bias]


def numbers(affine):
    torch.set_default_dtype(torch.float64)
    net = PatchTst(20, 3, 4, 2, 4, 2, 6, 2, 0.0, affine_channels=2 if affine else 0)
    for k, (_, parts) in enumerate(net.in_order()):
        count = sum(part.numel() for part in parts)
        values = 0.5 * torch.sin(1.3 * torch.arange(count) + k)
        for part, some in zip(parts, values.split([part.numel() for part in parts])):
            part.data.copy_(some.view_as(part))
    if affine:  # its inverse divides by it
        net.revin.weight.data.add_(1)
    i = torch.arange(80.0)
    x = (2 * torch.cos(0.37 * i) + 0.05 * i).view(2, 20, 2)

    out = net(x)
    print("with affine RevIN" if affine else "without", "in training", out.flatten().tolist())
    (out.flatten() * torch.cos(torch.arange(12.0))).sum().backward()
    for name, parts in net.in_order():
        grad = torch.cat([part.grad.flatten() for part in parts])
        print(f'{{"{name}", {(grad * torch.cos(0.5 * torch.arange(grad.numel()))).sum().item()!r}}},')
    net.eval()
    print("in evaluation", net(x).flatten().tolist())


def timing(steps):
    torch.set_num_threads(1)
    net = PatchTst(336, 96, 16, 8, 16, 4, 128, 3, 0.3)
    adam = torch.optim.Adam(net.parameters(), 1e-4)
    x, y = torch.randn(128, 336, 7), torch.randn(128, 96, 7)
    for step in range(steps + 1):
        if step == 1:
            begin, cpu = time.perf_counter(), time.process_time()
        adam.zero_grad()
        nn.functional.mse_loss(net(x), y).backward()
        adam.step()
    print(f"{(time.perf_counter() - begin) / steps:.3f} s a step, "
          f"{(time.process_time() - cpu) / steps:.3f} s of the processor")


if sys.argv[1:2] == ["--time"]:
    timing(int(sys.argv[2]))
else:
    numbers(affine=False)
    numbers(affine=True)
