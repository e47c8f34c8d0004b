"""The figures of these tests by numpy, scipy and scikit-learn, written apart from Treadle's: prints reference.json.
Run: /usr/bin/python3 reference.py > reference.json   (Debian: python3-scipy, python3-sklearn)"""
import itertools
import json
import math

import numpy as np
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.metrics import log_loss

random = np.random.default_rng(21)
rows = 60
x = np.column_stack([random.normal(0, 1, rows), random.normal(1, 2, rows), random.normal(0, 1, rows),
                     random.integers(0, 5, rows)]).astype(float)


def model(z):
    return z[:, 0] * z[:, 1] + np.sin(2 * z[:, 2]) + 0.5 * z[:, 0] + 0.1 * z[:, 3]


y = model(x) + random.normal(0, 0.5, rows)


class Model(RegressorMixin, BaseEstimator):
    def fit(self, z, target):
        self.is_fitted_ = True
        return self

    def predict(self, z):
        return model(np.asarray(z, dtype=float))


fitted = Model().fit(x, y)
importance = permutation_importance(fitted, x, y, scoring="neg_mean_squared_error", n_repeats=4000, random_state=1)


def dependence(column):
    found = partial_dependence(fitted, x, [column], kind="average", grid_resolution=12)
    grid = found["grid_values"] if "grid_values" in found else found["values"]
    return {"grid": grid[0].tolist(), "average": found["average"][0].tolist()}


def shapley(row):
    """Exact, interventional: all subsets, all rows as background."""
    count = x.shape[1]

    def value(known):
        z = x.copy()
        z[:, list(known)] = row[list(known)]
        return model(z).mean()

    values = []
    for column in range(count):
        others = [c for c in range(count) if c != column]
        total = 0.0
        for size in range(count):
            weight = math.factorial(size) * math.factorial(count - size - 1) / math.factorial(count)
            for known in itertools.combinations(others, size):
                total += weight * (value(known + (column,)) - value(known))
        values.append(total)
    return values


inside = random.exponential(2.0, 40)
outside = random.exponential(1.0, 160)
welch = stats.ttest_ind(inside, outside, equal_var=False, alternative="greater").pvalue

probabilities = random.dirichlet([1, 1, 1], 12)
classes = random.integers(0, 3, 12)

print(json.dumps({
    "x": x.tolist(), "y": y.tolist(),
    "importance": {"mean": importance.importances_mean.tolist(), "deviation": importance.importances.std(axis=1, ddof=1).tolist()},
    "dependence": {"0": dependence(0), "3": dependence(3)},
    "shapley": [shapley(row) for row in x[:8]],
    "inside": inside.tolist(), "outside": outside.tolist(), "welch": welch,
    "probabilities": probabilities.tolist(), "classes": classes.tolist(),
    "log_loss": log_loss(classes, probabilities, labels=[0, 1, 2]),
}))
