"""The networks of the workloads, with the parameter names that they have in Treadle and in the loop by hand."""
import math

import torch
from torch import nn
from torch.nn import functional as F


class Mlp(nn.Module):
    def __init__(self, features, hidden, outputs):
        super().__init__()
        widths = [features, *hidden, outputs]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = F.relu(layer(x))
        return self.layers[-1](x)


class LeNet(nn.Module):
    def __init__(self, channels, height, width, outputs):
        super().__init__()
        pooled = [(side // 2 - 4) // 2 for side in (height, width)]
        self.conv1 = nn.Conv2d(channels, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.linear1 = nn.Linear(16 * pooled[0] * pooled[1], 120)
        self.linear2 = nn.Linear(120, 84)
        self.output = nn.Linear(84, outputs)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.linear1(torch.flatten(x, 1)))
        return self.output(F.relu(self.linear2(x)))


class Lstm(nn.Module):
    def __init__(self, features, hidden, outputs):
        super().__init__()
        self.lstm = nn.LSTM(features, hidden, batch_first=True)
        self.output = nn.Linear(hidden, outputs)

    def forward(self, x):
        _, (last, _) = self.lstm(x)
        return self.output(last[0])


def attention(q, k, v):
    if hasattr(F, "scaled_dot_product_attention"):  # not in 1.13
        return F.scaled_dot_product_attention(q, k, v)
    return torch.softmax((q / math.sqrt(q.size(-1))) @ k.transpose(-2, -1), -1) @ v


class EncoderLayer(nn.Module):
    def __init__(self, width, heads, feed_forward):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm1 = nn.LayerNorm(width)
        self.linear1 = nn.Linear(width, feed_forward)
        self.linear2 = nn.Linear(feed_forward, width)
        self.norm2 = nn.LayerNorm(width)

    def forward(self, x):
        rows, length, width = x.shape
        qkv = self.qkv(x).view(rows, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = attention(qkv[0], qkv[1], qkv[2]).transpose(1, 2).reshape(rows, length, width)
        x = self.norm1(x + self.out(mixed))
        return self.norm2(x + self.linear2(F.relu(self.linear1(x))))


class Encoder(nn.Module):
    def __init__(self, length, features, width, heads, feed_forward, layers, outputs):
        super().__init__()
        self.input = nn.Linear(features, width)
        self.positions = nn.Parameter(torch.randn(length, width) * 0.02)
        self.layers = nn.ModuleList(EncoderLayer(width, heads, feed_forward) for _ in range(layers))
        self.output = nn.Linear(width, outputs)

    def forward(self, x):
        x = self.input(x) + self.positions
        for layer in self.layers:
            x = layer(x)
        return self.output(x.mean(1))


NETWORKS = {
    "mlp": lambda model, row, outputs: Mlp(row[0], model["hidden"], outputs),
    "lenet": lambda model, row, outputs: LeNet(*row, outputs),
    "lstm": lambda model, row, outputs: Lstm(row[1], model["hidden"], outputs),
    "encoder": lambda model, row, outputs: Encoder(
        *row, model["width"], model["heads"], model["feed_forward"], model["layers"], outputs),
}


def make_network(model, row, outputs):
    """What a document describes under `model`, for rows of the shape `row`."""
    return NETWORKS[model["use"]](model, row, outputs)
