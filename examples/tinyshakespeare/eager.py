"""The network of gpt.json and its training by AdamW in eager PyTorch, for the figures of README.md.

    python3 eager.py tinyshakespeare.txt SEED [THREADS]

Prints the validation loss over the last tenth of the text, in windows of 64 that do not overlap, and the seconds a step.
"""

import math
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, LAYERS, HEADS, LENGTH, BATCH, STEPS = 128, 4, 4, 64, 12, 2000


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("future", torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1))

    def forward(self, x):
        rows, length, _ = x.shape
        q, k, v = (part.view(rows, length, HEADS, -1).transpose(1, 2) for part in self.project(x).chunk(3, -1))
        if hasattr(F, "scaled_dot_product_attention"):
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(-2, -1) / math.sqrt(WIDTH // HEADS)
            mixed = scores.masked_fill(self.future[:length, :length], -math.inf).softmax(-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(rows, length, WIDTH))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.feed_forward = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))


class Gpt(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.words, self.positions = nn.Embedding(vocabulary, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        for module in self.modules():
            if isinstance(module, (nn.Embedding, nn.Linear)):
                nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)
        for block in self.blocks:
            for added in (block.attention.out, block.feed_forward[2]):
                nn.init.normal_(added.weight, std=0.02 / math.sqrt(2 * LAYERS))

    def forward(self, tokens):
        x = self.words(tokens) + self.positions.weight[: tokens.shape[1]]
        return self.norm(self.blocks(x)) @ self.words.weight.T


def main():
    text = open(sys.argv[1], encoding="utf-8").read()
    torch.manual_seed(int(sys.argv[2]))
    torch.set_num_threads(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    characters = sorted(set(text))
    tokens = torch.tensor([characters.index(c) for c in text])
    border = int(0.9 * len(tokens))
    training, validation = tokens[:border], tokens[border - 1 :]
    model = Gpt(len(characters))
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0}], lr=1e-3, betas=(0.9, 0.99)
    )
    begin = time.perf_counter()
    for step in range(STEPS):
        warm = min(1, (step + 1) / 100)
        rate = 1e-4 + 0.5 * (1e-3 - 1e-4) * (1 + math.cos(math.pi * max(0, step - 100) / (STEPS - 100)))
        for group in optimizer.param_groups:
            group["lr"] = rate if warm == 1 else 1e-3 * warm
        starts = torch.randint(len(training) - LENGTH, (BATCH,))
        inputs = torch.stack([training[i : i + LENGTH] for i in starts])
        targets = torch.stack([training[i + 1 : i + 1 + LENGTH] for i in starts])
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    seconds = (time.perf_counter() - begin) / STEPS
    count = (len(validation) - 1) // LENGTH
    inputs = validation[: count * LENGTH].view(count, LENGTH)
    targets = validation[1 : count * LENGTH + 1].view(count, LENGTH)
    with torch.no_grad():
        losses = [
            F.cross_entropy(model(i).flatten(0, 1), t.flatten(), reduction="sum")
            for i, t in zip(inputs.split(64), targets.split(64))
        ]
    print(f"torch {torch.__version__} seed {sys.argv[2]} windows {count} "
          f"loss {sum(losses).item() / targets.numel():.4f} seconds_per_step {seconds:.5f}")


main()
