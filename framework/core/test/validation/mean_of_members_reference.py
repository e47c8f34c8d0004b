"""Prints what mean_of_members_test.cpp expects, computed by NumPy.

    /usr/bin/python3 mean_of_members_reference.py
"""
import numpy as np

MEMBERS, ROWS, WIDTH = 3, 4, 3
WEIGHTS = np.array([0.5, 0.2, 0.3])
EACH = np.array([[0.5, 0.1, 0.0], [0.2, 0.6, 1.0], [0.3, 0.3, 2.0]])  # [member, label or number]


def numbers():
    """[MEMBERS, ROWS, WIDTH], as numbers() in the test."""
    return 2 * np.sin(1.7 * np.arange(MEMBERS * ROWS * WIDTH)).reshape(MEMBERS, ROWS, WIDTH)


def show(name, *values):
    for value in values:
        print(name, "{" + ", ".join(repr(float(v)) for v in np.asarray(value).reshape(-1)) + "}")


def entropy(p):
    return -(p * np.log(p)).sum(-1)


p = np.exp(numbers())
p /= p.sum(-1, keepdims=True)
mean = np.einsum("m,mrc->rc", WEIGHTS, p)
total = entropy(mean)
aleatoric = np.einsum("m,mr->r", WEIGHTS, entropy(p))
# The mutual information as a mean of Kullback-Leibler divergences from the mean.
epistemic = np.einsum("m,mr->r", WEIGHTS, (p * np.log(p / mean)).sum(-1))
assert np.allclose(total, aleatoric + epistemic, atol=1e-12)
show("classes", total, aleatoric, epistemic)

p = 1 / (1 + np.exp(-numbers()))
shares = EACH / EACH.sum(0)
both = np.stack([p, 1 - p], -1)
mean = np.einsum("mc,mrck->rck", shares, both)
total = entropy(mean)
aleatoric = np.einsum("mc,mrc->rc", shares, entropy(both))
show("labels", total.mean(0), aleatoric.mean(0))

x = numbers()
deviations = 0.5 + np.abs(np.cos(np.arange(MEMBERS * ROWS * WIDTH))).reshape(x.shape)
mean = np.einsum("mc,mrc->rc", shares, x)
epistemic = np.sqrt(np.einsum("mc,mrc->rc", shares, (x - mean) ** 2))
aleatoric = np.sqrt(np.einsum("mc,mrc->rc", shares, deviations**2))
# The variance of the mixture of the members' distributions, from its moments.
total = np.sqrt(np.einsum("mc,mrc->rc", shares, x**2 + deviations**2) - mean**2)
show("numbers", mean.mean(0), total.mean(0), aleatoric.mean(0), epistemic.mean(0))
