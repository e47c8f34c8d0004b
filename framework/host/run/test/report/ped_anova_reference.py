"""Importances of ped_anova_test.cpp, by the formulas of the two papers and nothing but the standard
library:  python3 framework/host/run/test/report/ped_anova_reference.py

Grids, kernels and bandwidths are those of Optuna 5 (optuna/importance/_ped_anova), written as sums
over kernels, one probability after the other."""

import bisect
import math


def phi(x):
    return 0.5 * math.erfc(-x / math.sqrt(2))


def linspace(low, high, n):
    return [low + (high - low) * i / (n - 1) for i in range(n)]


def grid_of(dimension):
    """The grid's points on the scale of the dimension, and that scale."""
    kind, low, high, step = dimension
    if kind == "choice":
        return list(range(len(low))), lambda value: value
    scale = math.log if kind.startswith("log") else float
    n = 50
    if kind == "log_int":
        n = min(n, math.ceil(math.log(high - low + 1) / math.log(2)) + 1)
    elif step:
        n = min(n, round((high - low) / step) + 1)
    return linspace(scale(low), scale(high), n), scale


def counts_of(dimension, values):
    grid, scale = grid_of(dimension)
    counts = [0] * len(grid)
    half = 0 if dimension[0] == "choice" else (grid[1] - grid[0]) / 2
    for value in values:
        counts[bisect.bisect_left(grid, scale(value) - half)] += 1
    return counts


def truncated(x, mu, sigma, n):
    inside = phi((n - 0.5 - mu) / sigma) - phi((-0.5 - mu) / sigma)
    return (phi((x + 0.5 - mu) / sigma) - phi((x - 0.5 - mu) / sigma)) / inside


def scott(counts):
    sample = sorted(x for x, count in enumerate(counts) for _ in range(count))
    n = len(sample)
    mean = sum(sample) / n
    deviation = math.sqrt(sum((x - mean) ** 2 for x in sample) / max(1, n - 1))
    used = [x for x, count in enumerate(counts) if count]
    cumulated = [sum(counts[: x + 1]) for x in used]
    first = used[bisect.bisect_left(cumulated, n // 4)]
    last = used[min(len(used) - 1, bisect.bisect_right(cumulated, n * 3 // 4))]
    return max(1.059 * min((last - first) / 1.34, deviation) * n ** -0.2, 0.5 / 1.64)


def density(dimension, values):
    counts = counts_of(dimension, values)
    n = len(counts)
    used = [x for x in range(n) if counts[x]]
    weights = [counts[x] for x in used] + [1]
    if dimension[0] == "choice":
        each = 1 / len(weights)
        kernels = [[each + (x == own) for x in range(n)] for own in used] + [[each] * n]
        kernels = [[p / sum(kernel) for p in kernel] for kernel in kernels]
    else:
        sigma = scott(counts)
        kernels = [[truncated(x, mu, sigma, n) for x in range(n)] for mu in used]
        kernels.append([truncated(x, (n - 1) / 2, n, n) for x in range(n)])
    return [
        sum(weight * kernel[x] for weight, kernel in zip(weights, kernels)) / sum(weights) + 1e-12
        for x in range(n)
    ]


def importances(space, trials, values):
    order = sorted(value for value in values if math.isfinite(value))
    bound = order[max(2, math.ceil(0.1 * len(order))) - 1]
    everyone = [t for t, value in zip(trials, values) if math.isfinite(value)]
    best = [t for t, value in zip(trials, values) if value <= bound]
    result = {}
    for name, dimension in space.items():
        has = [t[name] for t in everyone if name in t]
        best_has = [t[name] for t in best if name in t]
        result[name] = 0.0
        if not best_has or (dimension[0] == "choice" and len(dimension[1]) == 1):
            continue
        p, q = density(dimension, has), density(dimension, best_has)
        divergence = sum(a * (b / a - 1) ** 2 for a, b in zip(p, q))
        factor = (len(best_has) / len(best)) ** 2 / (len(has) / len(everyone))
        result[name] = factor * divergence
    whole = sum(result.values())
    return {name: share / whole for name, share in result.items()}, len(everyone), len(best)


def share(trial, dimension):
    """The same numbers as in the test: a fraction that wanders through [0, 1)."""
    return (trial * (37 + 10 * dimension) + 17 * dimension) % 101 / 101


def plain():
    space = {
        "batch": ("log_int", 8, 512, None),
        "dropout": ("uniform", 0.0, 0.5, 0.1),
        "layers": ("int", 1, 8, 1),
        "norm": ("choice", ["batch", "layer", "none"], None, None),
        "only": ("choice", [1], None, None),
        "rate": ("log_uniform", 1e-4, 1e-1, None),
        "size": ("int", 0, 98, 1),
        "width": ("uniform", -2.0, 6.0, None),
    }
    trials, values = [], []
    for i in range(60):
        trial = {
            "batch": round(math.exp(math.log(8) + share(i, 0) * math.log(64))),
            "dropout": 0.1 * int(6 * share(i, 1)),
            "layers": 1 + int(8 * share(i, 2)),
            "norm": int(3 * share(i, 3)),
            "only": 0,
            "rate": 1e-4 * math.exp(share(i, 4) * math.log(1e3)),
            "size": int(99 * share(i, 5)),
            "width": -2 + 8 * share(i, 6),
        }
        trials.append(trial)
        values.append(
            (math.log10(trial["rate"]) + 2) ** 2 + 0.05 * trial["layers"] + 0.3 * (trial["norm"] == 1)
            + 0.01 * trial["width"]
        )
    values[3] = math.nan
    values[7] = math.inf
    return space, trials, values


def conditional():
    space = {
        "momentum": ("uniform", 0.0, 0.99, None),
        "nesterov": ("choice", [False, True], None, None),
        "optimizer": ("choice", ["sgd", "adamw", "lion"], None, None),
        "rate": ("log_uniform", 1e-4, 1e-1, None),
    }
    trials, values = [], []
    for i in range(80):
        trial = {"optimizer": int(3 * share(i, 2)), "rate": 1e-4 * math.exp(share(i, 3) * math.log(1e3))}
        if trial["optimizer"] == 0:
            trial["momentum"] = 0.99 * share(i, 0)
        if trial["optimizer"] < 2:
            trial["nesterov"] = int(2 * share(i, 1))
        trials.append(trial)
        values.append(
            0.4 * abs(math.log10(trial["rate"]) + 2) + 0.2 * trial["optimizer"]
            + (1 - trial["momentum"] if "momentum" in trial else 0.2)
        )
    return space, trials, values


for name, case in (("plain", plain), ("conditional", conditional)):
    result, count, best = importances(*case())
    print(name, count, best)
    for dimension, number in result.items():
        print(f"  {dimension:10} {number:.12f}")
