"""Prints the margins that trees_test.cpp compares with, by XGBoost 1.7.4 (Debian's python3-xgboost).

    /usr/bin/python3 xgboost_reference.py
"""
import numpy as np
import xgboost

ROWS = 300
i = np.arange(ROWS * 4, dtype=np.float64)
x = np.sin(i * 1.3).astype(np.float32).reshape(ROWS, 4)
x[::7, 1] = np.nan
known = np.nan_to_num(x.astype(np.float64))
number = 3 * known[:, 0] * known[:, 1] + np.abs(known[:, 2])
weights = np.arange(ROWS) % 3 + 0.5
common = {"tree_method": "hist", "nthread": 1, "verbosity": 0, "base_score": 0.5}


def show(name, labels, base, parameters, rounds):
    margins = np.broadcast_to(base, (ROWS, np.size(base))).astype(np.float32)
    matrix = xgboost.DMatrix(x, labels, weight=weights, base_margin=margins, nthread=1)
    booster = xgboost.train({**common, **parameters}, matrix, rounds)
    predicted = booster.predict(matrix, output_margin=True).reshape(ROWS, -1)
    print(name, ", ".join(f"{value:.9g}" for value in predicted[[0, 1, 7, 150, 299]].ravel()))


shares = lambda classes, count: np.array([weights[classes == c].sum() for c in range(count)]) / weights.sum()
show("numbers", number, np.average(number, weights=weights), {}, 10)
show("leaves", number, np.average(number, weights=weights),
     {"max_depth": 0, "max_leaves": 5, "grow_policy": "lossguide", "learning_rate": 0.5, "reg_lambda": 0.25,
      "reg_alpha": 0.5, "gamma": 0.1, "min_child_weight": 9, "max_bin": 16, "max_delta_step": 0.3}, 10)
two = (number > 0.5).astype(int)
second = shares(two, 2)[1]
show("two classes", two, np.log(second / (1 - second)), {"objective": "binary:logistic", "max_depth": 3}, 10)
three = (number > 0).astype(int) + (number > 0.8)
show("three classes", three, np.log(shares(three, 3)),
     {"objective": "multi:softprob", "num_class": 3, "max_depth": 3}, 5)
