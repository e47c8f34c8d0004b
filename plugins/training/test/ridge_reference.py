"""Prints the weights of closed_form_test.cpp, by scikit-learn's Ridge.

    /usr/bin/python3 ridge_reference.py
"""
import numpy as np
from sklearn.linear_model import Ridge

i = np.arange(50 * 3)
x = (np.sin(1.3 * i) + 100 * (i % 3 == 0)).reshape(50, 3)  # a column far from 0
y = np.stack([x @ [1, -2, 0.5] + np.cos(2.1 * np.arange(50)), np.sin(0.7 * np.arange(50))], 1)
w = 0.5 + np.arange(50) % 4


def show(name, values):
    print(name, "{" + ", ".join(repr(float(v)) for v in np.ravel(values)) + "}")


for name, intercept, weights in (("bias", True, None), ("weighted", True, w), ("no bias", False, None)):
    ridge = Ridge(alpha=2.5, fit_intercept=intercept, solver="cholesky").fit(x, y, sample_weight=weights)
    show(name, ridge.coef_)
    if intercept:
        show(name, ridge.intercept_)
