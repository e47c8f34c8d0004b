"""Numbers for cv_plus_test.cpp: python3 plugins/outputs/test/cv_plus_reference.py (NumPy 1.24).

CV+ as Barber, Candes, Ramdas and Tibshirani (2021) define it, by sorting all n differences and sums.
"""
import math
import numpy as np

rows, folds, coverage = 43, 4, 0.8
i = np.arange(rows)
fold = i * 7 % folds
actual = 5 * np.sin(1.3 * i) + 0.1 * i
predicted = 5 * np.sin(1.3 * i + 0.2) + 0.1 * (i % 5)
residuals = np.abs(actual - predicted)

new = np.arange(5)
of_folds = np.stack([3 * np.cos(0.7 * new + 0.3 * k) + 0.05 * k * k for k in range(folds)])

alpha = 1 - coverage
below = of_folds[fold].T - residuals
above = of_folds[fold].T + residuals
lower = np.sort(below, 1)[:, math.floor(alpha * (rows + 1) + 1e-9) - 1]
upper = np.sort(above, 1)[:, math.ceil((1 - alpha) * (rows + 1) - 1e-9) - 1]
print("lower", ", ".join(repr(v) for v in lower))
print("upper", ", ".join(repr(v) for v in upper))
