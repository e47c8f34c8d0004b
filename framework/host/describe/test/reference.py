"""The figures of these tests by numpy, scipy and scikit-learn, written apart from Treadle's: prints reference.json.
Run: /usr/bin/python3 reference.py > reference.json   (Debian: python3-scipy, python3-sklearn)"""
import json

import numpy as np
from scipy import stats
from sklearn.cluster import KMeans
from sklearn.metrics import balanced_accuracy_score, roc_auc_score, silhouette_score

random = np.random.default_rng(20)
rows = 80


def nullable(values):
    return [[None if np.isnan(v) else float(v) for v in row] for row in values]


def floats(values):
    return np.asarray(values, dtype=float).tolist()


a = random.normal(1e6, 3, rows)
b = 0.7 * (a - 1e6) + random.normal(0, 2, rows)
c = np.round(random.exponential(2, rows))  # ties
d = np.full(rows, 4.25)
complete = np.stack([a, b, c, d], 1)
holes = complete.copy()
holes[random.random((rows, 4)) < 0.2] = np.nan
holes[:, 0] = complete[:, 0]


def pairwise(columns, correlation):
    count = columns.shape[1]
    matrix = np.eye(count)
    for i in range(count):
        for j in range(count):
            both = ~np.isnan(columns[:, i]) & ~np.isnan(columns[:, j])
            x, y = columns[both, i], columns[both, j]
            if i != j and np.ptp(x) > 0 and np.ptp(y) > 0:
                matrix[i, j] = correlation(x, y)[0]
            elif i != j:
                matrix[i, j] = 0
    return floats(matrix)


def summary(values):
    values = values[~np.isnan(values)]
    return {
        "min": values.min(), "max": values.max(), "mean": values.mean(), "std": values.std(),
        "quantiles": floats(np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95])),
        "histogram": np.histogram(values, 10)[0].tolist(), "distinct": len(np.unique(values))}


first = random.integers(0, 4, rows)
second = np.where(random.random(rows) < 0.6, first % 3, random.integers(0, 3, rows))
first_missing = np.where(random.random(rows) < 0.1, -1, first)


def corrected_v(x, y):
    both = (x >= 0) & (y >= 0)
    table = stats.contingency.crosstab(x[both], y[both]).count
    n = table.sum()
    phi2 = stats.chi2_contingency(table, correction=False)[0] / n
    r, k = table.shape
    phi2 = max(0, phi2 - (r - 1) * (k - 1) / (n - 1))
    return np.sqrt(phi2 / min(r - (r - 1) ** 2 / (n - 1) - 1, k - (k - 1) ** 2 / (n - 1) - 1))


def corrected_ratio(codes, numbers):
    both = (codes >= 0) & ~np.isnan(numbers)
    codes, numbers = codes[both], numbers[both]
    f = stats.f_oneway(*[numbers[codes == one] for one in np.unique(codes)])[0]
    n, k = len(numbers), len(np.unique(codes))
    # epsilon squared by the F statistic: (k-1)(F-1) / ((k-1)F + n-k)
    return np.sqrt(max(0, (k - 1) * (f - 1) / ((k - 1) * f + n - k)))


points = np.concatenate([random.normal(center, 0.4, (20, 2)) for center in ((0, 0), (4, 1), (1, 5))])
start = points[[0, 1, 2]]
fitted = KMeans(3, init=start, n_init=1, algorithm="lloyd", tol=0).fit(points)
singleton = np.concatenate([np.zeros(30, int), np.ones(29, int), [2]])
x, y = random.normal(0, 1, 50), random.normal(0.5, 1.5, 40)
truth, score = random.integers(0, 2, rows), np.round(random.normal(0, 1, rows), 1)
classes, guesses = random.integers(0, 3, rows), random.integers(0, 3, rows)
parts = random.integers(-1, 3, 40), random.integers(-1, 4, 30)
shares = [np.bincount(part + 1, minlength=5) / len(part) for part in parts]

print(json.dumps({
    "complete": nullable(complete), "holes": nullable(holes),
    "pearson": pairwise(complete, stats.pearsonr), "spearman": pairwise(complete, stats.spearmanr),
    "pearson_holes": pairwise(holes, stats.pearsonr), "spearman_holes": pairwise(holes, stats.spearmanr),
    "summaries": [summary(column) for column in holes[:, :3].T],
    "ranks": floats(stats.rankdata(c)),
    "first": first_missing.tolist(), "second": second.tolist(),
    "cramers_v": corrected_v(first_missing, second),
    "correlation_ratio": corrected_ratio(first_missing, holes[:, 1] + 2 * first),
    "ratio_numbers": [None if np.isnan(v) else v for v in holes[:, 1] + 2 * first],
    "points": floats(points), "centers": floats(fitted.cluster_centers_), "labels": fitted.labels_.tolist(),
    "inertia": fitted.inertia_, "silhouette": silhouette_score(points, fitted.labels_),
    "singleton": singleton.tolist(), "silhouette_singleton": silhouette_score(points, singleton),
    "x": floats(x), "y": floats(y), "ks": stats.ks_2samp(x, y).statistic,
    "truth": truth.tolist(), "score": floats(score), "auc": roc_auc_score(truth, score),
    "classes": classes.tolist(), "guesses": guesses.tolist(), "balanced_accuracy": balanced_accuracy_score(classes, guesses),
    "part_a": parts[0].tolist(), "part_b": parts[1].tolist(), "total_variation": np.abs(shares[0] - shares[1]).sum() / 2,
}, indent=None))
