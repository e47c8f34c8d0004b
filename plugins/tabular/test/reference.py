"""Prints the numbers of values_test.cpp and networks_test.cpp. PyTorch 1.13.

    /usr/bin/python3 reference.py

TabNet is written after the package pytorch-tabnet 4, SAINT after the paper, with the norms in front
of each sublayer. Parameters come in the order of Treadle's networks.
"""
import math

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)


def show(name, values):
    values = torch.as_tensor(values).flatten().tolist()
    print(f"{name}: {{{', '.join(repr(v) for v in values)}}}")


def filled(k, shape):
    i = torch.arange(math.prod(shape), dtype=torch.float64)
    return (torch.sin(1.3 * i + k) / 2).view(shape).requires_grad_()


class Parameters:
    """Parameter k, element i: sin(1.3 i + k) / 2, in the order in which they are declared."""

    def __init__(self):
        self.all = []

    def __call__(self, *shape):
        self.all.append(filled(len(self.all), shape))
        return self.all[-1]


def counted_rows(rows, width):
    i = torch.arange(rows * width, dtype=torch.float64)
    return (2 * torch.cos(0.37 * i) + 0.05 * i).view(rows, width)


def report(name, result, parameters, loss=0):
    show(name, result)
    i = torch.arange(result.numel(), dtype=torch.float64)
    ((result.flatten() * torch.cos(i)).sum() + loss).backward()
    slopes = []
    for p in parameters.all:
        j = torch.arange(p.numel(), dtype=torch.float64)
        slopes.append((p.grad.flatten() * torch.cos(0.5 * j)).sum())
    show(name + " slopes", torch.stack(slopes))


def ghost_norm(x, weight, bias, size, momentum=0.02, running=None):
    parts = []
    for part in x.chunk(math.ceil(len(x) / size)):
        mean, var = running if running else (torch.zeros(x.shape[1]), torch.ones(x.shape[1]))
        parts.append(F.batch_norm(part, mean, var, weight, bias, True, momentum, 1e-5))
    return torch.cat(parts)


# --- Ghost batch norm

x = counted_rows(6, 2)
running = (torch.zeros(2), torch.ones(2))
show("ghost", ghost_norm(x, torch.ones(2), torch.zeros(2), 3, 0.02, running))
show("ghost mean", running[0])
show("ghost var", running[1])


def sparsemax(z):
    ordered = z.sort(-1, descending=True).values
    k = torch.arange(1, z.shape[-1] + 1)
    sums = ordered.cumsum(-1)
    support = (1 + k * ordered > sums).sum(-1, keepdim=True)
    tau = (sums.gather(-1, support - 1) - 1) / support
    return (z - tau).clamp_min(0)


# --- TabNet


def tabnet(x, n_d=3, n_a=2, n_steps=3, gamma=1.5, size=4, sparse=0.01, outputs=2):
    features, width = x.shape[1], 2 * (n_d + n_a)
    p = Parameters()

    def norm_of(n):
        return p(n), p(n)

    initial = norm_of(features)
    shared = []
    blocks = {}  # of each transformer: for each layer its map and norm

    def declare(name):
        own = []
        for i in range(2):
            if name == "initial":
                shared.append(p(width, features if i == 0 else n_d + n_a))
            own.append((shared[i], norm_of(width)))
        for i in range(2):
            own.append((p(width, n_d + n_a), norm_of(width)))
        blocks[name] = own

    declare("initial")
    attention = []
    for _ in range(n_steps):
        attention.append((p(features, n_a), norm_of(features)))
    for step in range(n_steps):
        declare(step)
    head = p(outputs, n_d), p(outputs)

    def transformed(name, y):
        for i, (weight, (scale, shift)) in enumerate(blocks[name]):
            new = F.glu(ghost_norm(y @ weight.t(), scale, shift, size))
            y = new if i == 0 else (y + new) * math.sqrt(0.5)
        return y

    x = F.batch_norm(x, None, None, *initial, True, 0.01, 1e-5)
    prior, total, penalty = 1, 0, 0
    a = transformed("initial", x)[:, n_d:]
    for step, (weight, (scale, shift)) in enumerate(attention):
        mask = sparsemax(prior * ghost_norm(a @ weight.t(), scale, shift, size))
        penalty = penalty - (mask * torch.log(mask + 1e-15)).sum() * sparse / n_steps
        prior = prior * (gamma - mask)
        out = transformed(step, mask * x)
        total = total + out[:, :n_d].relu()
        a = out[:, n_d:]
    return total @ head[0].t() + head[1], p, penalty


result, p, penalty = tabnet(counted_rows(8, 5))
report("tabnet", result, p, penalty)
show("tabnet penalty", penalty)


# --- Intersample attention


def heads_of(y, heads):
    return y.view(len(y), heads, -1).transpose(0, 1)


def intersample(x, weight, out, bias, heads):
    q, k, v = (heads_of(y, heads) for y in (x @ weight.t()).chunk(3, -1))
    mixed = torch.softmax(q @ k.transpose(1, 2) / math.sqrt(q.shape[-1]), -1) @ v
    return mixed.transpose(0, 1).flatten(1) @ out.t() + bias


def intersample_by_references(x, stored, weight, out, bias, heads):
    """Each row by itself, among itself and the stored rows."""
    return torch.cat(
        [intersample(torch.cat([stored, row[None]]), weight, out, bias, heads)[-1:] for row in x]
    )


p = Parameters()
layer = p(3 * 2 * 3, 4), p(4, 2 * 3), p(4)
x = counted_rows(6, 4) / 4
report("intersample", intersample(x, *layer, 2), p)
with torch.no_grad():
    show("by references", intersample_by_references(x[:2] * 0.5, x[-5:], *layer, 2))
    show("by few", intersample_by_references(x[:2] * 0.5, x[:3], *layer, 2))


# --- SAINT


def saint(numbers, categories, tables, d=4, heads=2, row_head=3, hidden=6, outputs=2):
    p = Parameters()
    rows, features = numbers.shape
    n = 1 + features + categories.shape[1]
    first = p(features, 100), p(features, 100)
    second = p(features, 100, d), p(features, d)
    embedded = [p(t, d) for t in tables]
    cls = p(d)

    def norm_of(m):
        return p(m), p(m)

    def feed_forward(m, inner):
        return norm_of(m), (p(inner, m), p(inner)), (p(inner, m), p(inner)), (p(m, inner), p(m))

    columns = norm_of(d), p(3 * heads * 16, d), p(3 * heads * 16), p(d, heads * 16), p(d)
    columns_ff = feed_forward(d, 4 * d)
    between = norm_of(n * d), (p(3 * heads * row_head, n * d), p(n * d, heads * row_head), p(n * d))
    between_ff = feed_forward(n * d, n * d)
    last = norm_of(d)
    dense = p(hidden, d), p(hidden)
    head = p(outputs, hidden), p(outputs)

    def fed(y, ff):
        z = F.layer_norm(y, (y.shape[-1],), *ff[0])
        return y + F.linear(F.gelu(F.linear(z, *ff[1])) * F.linear(z, *ff[2]), *ff[3])

    y = (numbers[:, :, None] * first[0] + first[1]).relu()
    y = torch.einsum("bfh,fhd->bfd", y, second[0]) + second[1]
    y = torch.cat([y] + [e[categories[:, i]][:, None] for i, e in enumerate(embedded)], 1)
    y = torch.cat([cls.expand(rows, 1, d), y], 1)

    z = F.layer_norm(y, (d,), *columns[0])
    q, k, v = (
        t.view(rows, n, heads, 16).transpose(1, 2)
        for t in F.linear(z, columns[1], columns[2]).chunk(3, -1)
    )
    mixed = torch.softmax(q @ k.transpose(2, 3) / 4, -1) @ v
    y = y + F.linear(mixed.transpose(1, 2).flatten(2), columns[3], columns[4])
    y = fed(y, columns_ff).flatten(1)
    y = y + intersample(F.layer_norm(y, (n * d,), *between[0]), *between[1], heads)
    y = fed(y, between_ff).view(rows, n, d)[:, 0]
    y = F.linear(F.layer_norm(y, (d,), *last), *dense).relu()
    return F.linear(y, *head), p


categories = torch.tensor([[0, 1], [2, 0], [1, 1], [2, 1], [0, 0]])
report("saint", *saint(counted_rows(5, 3), categories, (3, 2)))
