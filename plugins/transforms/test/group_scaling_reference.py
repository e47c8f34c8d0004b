"""Prints what group_scaling_test.cpp expects: scikit-learn's scalers, fitted group by group.

    /usr/bin/python3 group_scaling_reference.py
"""
import numpy as np
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

NAN = np.nan
groups = np.array([7, 7, 7, 7, 7, 2, 2, 2, 2, 40, 40, 40, 40, 40, 40])
values = np.array([
    [1000, 0.5], [1200, 0.25], [900, NAN], [1700, 1.5], [1100, 2.5],
    [0.1, -3], [0.15, -3], [0.05, -3], [0.4, -3],
    [-20, 1e6], [-22, 1e6 + 1], [-19.5, 1e6 + 4], [NAN, 1e6 - 2], [-30, 1e6], [-21, 1e6 + 40]])


def show(name, make):
    result = np.empty_like(values)
    for group in np.unique(groups):
        rows = groups == group
        result[rows] = make().fit_transform(values[rows])
    print(name, ", ".join("kNan" if np.isnan(x) else repr(float(x)) for x in result.ravel()), sep="\n    ")


show("standardize", StandardScaler)
show("min_max", lambda: MinMaxScaler((-1, 1)))
show("robust", RobustScaler)
show("robust 10 90", lambda: RobustScaler(quantile_range=(10, 90)))
print("robust of all rows", ", ".join(
    "kNan" if np.isnan(x) else repr(float(x)) for x in RobustScaler().fit_transform(values).ravel()), sep="\n    ")
