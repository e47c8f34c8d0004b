"""Densities of the Parzen estimators in tpe_test.cpp, by the formulas of Optuna 5 and nothing but the
standard library:  python3 plugins/tuners/test/reference.py"""

import math


def phi(x):
    return 0.5 * math.erfc(-x / math.sqrt(2))


def sigmas(mus, low, high):
    """Of each observation: the larger distance to a neighbour, the prior's mean among them."""
    order = sorted((mu, i) for i, mu in enumerate(mus + [0.5 * (low + high)]))
    least = (high - low) / min(100.0, len(mus) + 2)
    result = []
    for number, mu in enumerate(mus):
        at = order.index((mu, number))
        gaps = [abs(order[i][0] - mu) for i in (at - 1, at + 1) if 0 <= i < len(order)]
        result.append(min(max(max(gaps), least), high - low))
    return result


def kernels(mus, low, high):
    return list(zip(mus + [0.5 * (low + high)], sigmas(mus, low, high) + [high - low]))


def truncated(x, mu, sigma, low, high):
    inside = phi((high - mu) / sigma) - phi((low - mu) / sigma)
    return math.exp(-0.5 * ((x - mu) / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi)) / inside


def stepped(left, right, mu, sigma, low, high):
    inside = phi((high - mu) / sigma) - phi((low - mu) / sigma)
    return (phi((right - mu) / sigma) - phi((left - mu) / sigma)) / inside


def categorical(x, observed, choices, n):
    share = 1 / (n + 1)
    if observed is None:
        return 1 / choices
    return (share + (x == observed)) / (1 + choices * share)


def normalized(weights):
    weights = weights + [1.0]
    return [w / sum(weights) for w in weights]


def show(name, value):
    print(f"{name:<24} {value!r}")


# The table of the test: x uniform [0, 10], rate log_uniform [1e-4, 1], layers int [1, 6],
# width log_int [4, 512], even uniform [0, 1] step 0.25, kind of 3 choices.
rows = [(1.0, 1e-3, 2, 16, 0.25, 0), (4.0, 2e-2, 5, 128, 0.75, 2), (9.5, 5e-1, 2, 300, 0.5, 2)]
n = len(rows)
x = kernels([r[0] for r in rows], 0, 10)
rate = kernels([math.log(r[1]) for r in rows], math.log(1e-4), math.log(1))
layers = kernels([float(r[2]) for r in rows], 0.5, 6.5)
width = kernels([math.log(r[3]) for r in rows], math.log(3.5), math.log(512.5))
even = kernels([r[4] for r in rows], -0.125, 1.125)
weights = normalized([0.5, 1.0, 1.0])

show("deviations x", [s for _, s in x])
show("deviations rate", [s for _, s in rate])
show("deviations layers", [s for _, s in layers])


def density(point):
    total = 0.0
    for k, weight in enumerate(weights):
        observed = rows[k][5] if k < n else None
        total += (
            weight
            * truncated(point[0], *x[k], 0, 10)
            * truncated(math.log(point[1]), *rate[k], math.log(1e-4), math.log(1))
            * stepped(point[2] - 0.5, point[2] + 0.5, *layers[k], 0.5, 6.5)
            * stepped(math.log(point[3] - 0.5), math.log(point[3] + 0.5), *width[k], math.log(3.5),
                      math.log(512.5))
            * stepped(point[4] - 0.125, point[4] + 0.125, *even[k], -0.125, 1.125)
            * categorical(point[5], observed, 3, n))
    return math.log(total)


for point in [(1.0, 1e-3, 2, 16, 0.25, 0), (5.0, 1e-2, 6, 4, 1.0, 1), (10.0, 1e-4, 1, 512, 0.0, 2)]:
    show(f"log density {point}", density(point))


# Of gp_test.cpp: three points of a number and a choice.
def matern(squared):
    r = math.sqrt(5 * squared)
    return (1 + r + r * r / 3) * math.exp(-r)


def solve(matrix, right):
    """Gaussian elimination; also the logarithm of the determinant."""
    rows = [list(row) + [b] for row, b in zip(matrix, right)]
    log_determinant = 0.0
    for i in range(len(rows)):
        log_determinant += math.log(rows[i][i])
        for j in range(i + 1, len(rows)):
            factor = rows[j][i] / rows[i][i]
            rows[j] = [a - factor * b for a, b in zip(rows[j], rows[i])]
    result = [0.0] * len(rows)
    for i in reversed(range(len(rows))):
        known = sum(rows[i][j] * result[j] for j in range(i + 1, len(rows)))
        result[i] = (rows[i][-1] - known) / rows[i][i]
    return result, log_determinant


def kernel(a, b):
    return 1.5 * matern(4 * (a[0] - b[0]) ** 2 + 0.5 * (a[1] != b[1]))


points = [(0.1, 0), (0.5, 1), (0.9, 1)]
values = [0.5, -1.0, 0.3]
covariance = [[kernel(a, b) + 0.01 * (a == b) for b in points] for a in points]
alpha, log_determinant = solve(covariance, values)
fit = sum(a * b for a, b in zip(alpha, values))
show("log likelihood", -0.5 * fit - 0.5 * log_determinant - 1.5 * math.log(2 * math.pi))
for point in [(0.5, 1), (0.3, 0)]:
    cross = [kernel(point, p) for p in points]
    solved, _ = solve(covariance, cross)
    show(f"mean, variance {point}", (sum(a * b for a, b in zip(cross, alpha)),
                                     1.5 - sum(a * b for a, b in zip(cross, solved))))
for mean, variance, best in [(0.5, 0.04, 0.6), (1, 0.01, 0)]:
    z = (best - mean) / math.sqrt(variance)
    density = math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    show("log improvement", math.log(math.sqrt(variance) * (density + z * phi(z))))
