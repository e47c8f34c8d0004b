"""Prints what distribution_loss_test.cpp expects, computed by SciPy.

    /usr/bin/python3 distribution_reference.py
"""
import numpy as np
from scipy import optimize, stats
from scipy.special import log_softmax

ROWS, WIDTH, LEVELS = 5, 2, (0.1, 0.5, 0.95)
LEAST = 1e-6


def raw(parameters):
    """[ROWS, parameters, WIDTH], as raw() in the test."""
    return 2 * np.sin(1.3 * np.arange(ROWS * parameters * WIDTH)).reshape(ROWS, parameters, WIDTH)


def positive(x):
    return np.log1p(np.exp(x)) + LEAST


def show(name, distribution, log_density, targets):
    nll = -log_density(targets).mean()
    numbers = [nll, distribution["mean"].mean(), np.sqrt(distribution["variance"]).mean()]
    numbers += [q.mean() for q in distribution["quantiles"]]
    print(f"{name:24}" + ", ".join(repr(float(n)) for n in numbers))


y = np.sin(0.4 * np.arange(ROWS * WIDTH)).reshape(ROWS, WIDTH)
counts = (np.arange(ROWS * WIDTH) * 7 % 11).reshape(ROWS, WIDTH).astype(float)

p = raw(2)
one = stats.norm(p[:, 0], positive(p[:, 1]))
show("gaussian_nll", {"mean": one.mean(), "variance": one.var(), "quantiles": [one.ppf(q) for q in LEVELS]}, one.logpdf, y)

p = raw(3)
one = stats.t(2 + positive(p[:, 2]), p[:, 0], positive(p[:, 1]))
show("student_t_nll", {"mean": one.mean(), "variance": one.var(), "quantiles": [one.ppf(q) for q in LEVELS]}, one.logpdf, y)

p = raw(2)
mean, dispersion = positive(p[:, 0]), positive(p[:, 1])
one = stats.nbinom(1 / dispersion, 1 / (1 + dispersion * mean))
show("negative_binomial_nll", {"mean": one.mean(), "variance": one.var(), "quantiles": [one.ppf(q) for q in LEVELS]}, one.logpmf, counts)

p = raw(9)
logits, locations, scales = p[:, 0:3], p[:, 3:6], positive(p[:, 6:9])
weights = np.exp(log_softmax(logits, 1))


def density(values):
    return np.log((weights * stats.norm(locations, scales).pdf(values[:, None])).sum(1))


def quantile(level):
    result = np.empty((ROWS, WIDTH))
    for i in range(ROWS):
        for j in range(WIDTH):
            w, m, s = weights[i, :, j], locations[i, :, j], scales[i, :, j]
            result[i, j] = optimize.brentq(lambda x: (w * stats.norm(m, s).cdf(x)).sum() - level, -50, 50, xtol=1e-13)
    return result


mean = (weights * locations).sum(1)
show("gaussian_mixture_nll",
     {"mean": mean, "variance": (weights * (scales**2 + locations**2)).sum(1) - mean**2, "quantiles": [quantile(q) for q in LEVELS]}, density, y)
