"""Prints the figures that tables_test.cpp and boosted_trees_test.cpp compare with, by scikit-learn 1.2.

    /usr/bin/python3 tables_reference.py [folder of the data]
"""
import sys
import warnings

import numpy as np
from sklearn.datasets import make_friedman1, make_moons
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

warnings.filterwarnings("ignore")

# Friedman #1, noise of 1: 2000 rows to train on, 500 to test, the mean over five draws.
models = {
    "ridge": lambda s: make_pipeline(StandardScaler(), Ridge(1.0)),
    "RBF": lambda s: make_pipeline(StandardScaler(), RBFSampler(gamma=0.05, n_components=1024, random_state=s), Ridge(0.1)),
    "gradient boosting": lambda s: HistGradientBoostingRegressor(random_state=s),
    "MLP": lambda s: make_pipeline(StandardScaler(), MLPRegressor((64, 64), learning_rate_init=0.005, max_iter=30, batch_size=64, random_state=s)),
}
for name, make in models.items():
    errors = []
    for seed in range(5):
        x, y = make_friedman1(2500, 10, noise=1.0, random_state=seed)
        predicted = make(seed).fit(x[:2000], y[:2000]).predict(x[2000:])
        errors.append(np.sqrt(np.mean((predicted - y[2000:]) ** 2)))
    print(f"{name:20} rmse {np.mean(errors):.3f} ± {np.std(errors):.3f}")

# Two moons, noise of 0.3: four folds, the mean over five draws.
scores = []
for seed in range(5):
    x, y = make_moons(2000, noise=0.3, random_state=seed)
    folds = StratifiedKFold(4, shuffle=True, random_state=seed)
    scores.append(cross_val_score(HistGradientBoostingClassifier(random_state=seed), x, y, cv=folds).mean())
print(f"moons, gradient boosting: accuracy {np.mean(scores):.3f}")

# Ridge regression of one column per class, five folds.
folder = sys.argv[1] if len(sys.argv) > 1 else "/work/shared/data"
table = np.loadtxt(f"{folder}/breast_cancer.csv", delimiter=",", skiprows=1)
x, y = table[:, :-1], table[:, -1].astype(int)
shares = []
for seed in range(5):
    for train, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(x, y):
        model = make_pipeline(StandardScaler(), Ridge(1.0)).fit(x[train], np.eye(2)[y[train]])
        shares.append(np.mean(model.predict(x[test]).argmax(1) == y[test]))
print(f"breast cancer, ridge: accuracy {np.mean(shares):.4f}")
