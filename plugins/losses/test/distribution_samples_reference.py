"""Prints what distribution_samples_test.cpp expects, computed by SciPy.

    /usr/bin/python3 distribution_samples_reference.py

For each distribution: mean, variance, the distribution function at the points of the test, and the
continuous ranked probability score (CRPS) of an observation, as the integral of
(F(x) - [x >= y])^2 (Gneiting & Raftery 2007).
"""
import numpy as np
from scipy import integrate, stats
from scipy.special import softmax

LEAST = 1e-6


def positive(x):
    return np.log1p(np.exp(x)) + LEAST


def show(name, mean, variance, cdf, points, observed, whole):
    if whole:
        grid = np.arange(0, 200_000)
        crps = ((cdf(grid) - (grid >= observed)) ** 2).sum()
    else:
        below = integrate.quad(lambda x: cdf(x) ** 2, -np.inf, observed, epsabs=1e-12, limit=500)[0]
        above = integrate.quad(lambda x: (cdf(x) - 1) ** 2, observed, np.inf, epsabs=1e-12, limit=500)[0]
        crps = below + above
    levels = ", ".join(repr(float(cdf(p))) for p in points)
    print(f"{name}: mean {float(mean)!r}, variance {float(variance)!r}, crps {float(crps)!r}")
    print(f"    {{{levels}}}")


points = (-1.5, 0.5, 1.0, 2.0, 3.5)
one = stats.norm(1.5, positive(0.3))
show("gaussian", one.mean(), one.var(), one.cdf, points, 2.0, False)
for raw in (6.0, 0.5):
    one = stats.t(2 + positive(raw), -1, positive(0.2))
    show(f"student_t {raw}", one.mean(), one.var(), one.cdf, (-4.0, -2.0, -1.0, -0.5, 1.0), 0.25, False)
for raw_mean, raw_dispersion, counts, observed in ((2.0, 0.5, (0, 1, 2, 4, 9), 3), (-3.0, 3.0, (0, 1, 2, 3, 4), 1),
                                                   (300.0, -4.0, (220, 270, 300, 330, 390), 280)):
    m, a = positive(raw_mean), positive(raw_dispersion)
    one = stats.nbinom(1 / a, 1 / (1 + a * m))
    show(f"negative_binomial {raw_mean} {raw_dispersion}", one.mean(), one.var(), one.cdf, counts, observed, True)
w = softmax([0.5, -0.5, 1.0])
m, s = np.array([-3.0, 0.5, 2.0]), positive(np.array([-1.0, 0.0, 0.5]))
mean = (w * m).sum()
show("gaussian_mixture", mean, (w * (s**2 + m**2)).sum() - mean**2,
     lambda x: (w * stats.norm(m, s).cdf(np.asarray(x)[..., None])).sum(-1), (-3.5, -2.5, 0.0, 1.5, 3.5), 0.75, False)
