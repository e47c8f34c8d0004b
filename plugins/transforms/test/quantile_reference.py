"""Prints the numbers of quantiles_test.cpp: scikit-learn's QuantileTransformer, and the bins and the
piecewise-linear encoding of the package rtdl_num_embeddings, written after its formulas.

    /usr/bin/python3 quantile_reference.py
"""
import numpy as np
from sklearn.preprocessing import QuantileTransformer

ROWS = 40
row = np.arange(ROWS, dtype=np.float64)
# A wave, a tail, five values with ties of different numbers.
train = np.stack([np.sin(1.3 * row), np.exp(3 * np.sin(0.7 * row)), (row * row % 11) // 2], 1)
seen = np.array([[-2.0, 0.01, 0], [-0.3, 0.5, 1], [0.0, 1.0, 2], [0.55, 7.5, 2.5], [1.0, 30.0, 5], [np.nan, np.nan, np.nan]])


def show(name, values):
    print(name, "{" + ", ".join(repr(float(v)) for v in np.asarray(values).ravel()) + "}")


for distribution in ("uniform", "normal"):
    for count in (9, 1000):
        made = QuantileTransformer(n_quantiles=count, output_distribution=distribution, subsample=10**9)
        show(f"{distribution} {count}", made.fit(train).transform(seen))


def encoded(x, edges):
    """The components of rtdl_num_embeddings' encoding: the first and the last have no outer end."""
    parts = [(x - a) / (b - a) for a, b in zip(edges[:-1], edges[1:])]
    if len(parts) == 1:
        return parts
    return [min(parts[0], 1)] + [min(max(p, 0), 1) for p in parts[1:-1]] + [max(parts[-1], 0)]


BINS = 6
for column in range(3):
    edges = np.unique(np.quantile(train[:, column], np.linspace(0, 1, BINS + 1)))
    show(f"edges {column}", edges)
    for x in seen[:-1, column]:
        show(f"  {x}", encoded(x, edges))
