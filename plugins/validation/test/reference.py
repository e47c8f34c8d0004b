"""Digests of scikit-learn's splits, which split_reference.h has. Run with scikit-learn 1.2:

    python3 plugins/validation/test/reference.py > plugins/validation/test/split_reference.h

A digest is the sum over folds f, parts p (training 0, validation 1) and positions i of
(row + 1) (i + 1) (f + 1) (p + 1), modulo 2^61 - 1, of rows in ascending order.
"""

import random

import numpy as np
from sklearn.model_selection import (
    GroupKFold, LeaveOneGroupOut, LeaveOneOut, PredefinedSplit, StratifiedGroupKFold, TimeSeriesSplit)

MODULUS = 2**61 - 1


def digest(folds):
    total = 0
    for f, parts in enumerate(folds):
        for p, rows in enumerate(parts):
            for i, row in enumerate(sorted(int(r) for r in rows)):
                total += (row + 1) * (i + 1) * (f + 1) * (p + 1)
    return total % MODULUS


def numbers(values):
    return "{" + ", ".join(str(int(v)) for v in values) + "}"


chance = random.Random(20261126)
print("#pragma once\n\n#include <cstdint>\n#include <vector>\n")
print("// Written by reference.py.\n\nnamespace treadle::validation {\n")
print("struct TimeSeriesReference {")
print("  std::int64_t rows, folds, test_size, gap, max_train_size;  // 0: not given")
print("  std::uint64_t digest;\n};\n")
print("inline const std::vector<TimeSeriesReference> kTimeSeries = {")
cases = 0
while cases < 24:
    rows, folds = chance.randint(6, 200), chance.randint(2, 9)
    test, gap, most = chance.choice([0, 1, 3, 10]), chance.choice([0, 0, 1, 5]), chance.choice([0, 0, 2, 20])
    size = test or rows // (folds + 1)
    if size < 1 or rows - gap - folds * size <= 0:
        continue
    splitter = TimeSeriesSplit(folds, max_train_size=most or None, test_size=test or None, gap=gap)
    print(f"    {{{rows}, {folds}, {test}, {gap}, {most}, {digest(splitter.split(np.zeros(rows)))}U}},")
    cases += 1
print("};\n\nstruct GroupReference {")
print("  std::int64_t folds;\n  std::vector<std::int64_t> groups;\n  std::vector<std::int64_t> classes;")
print("  std::uint64_t group_k_fold, stratified_group_k_fold, leave_one_group_out;\n};\n")
print("inline const std::vector<GroupReference> kGroups = {")
cases = 0
while cases < 16:
    folds, count = chance.randint(2, 4), chance.randint(5, 9)
    # Of different sizes, as NumPy orders equal ones at random; in the order of their first rows, as
    # the folds of leave-one-group-out are here.
    sizes = chance.sample(range(1, 14), count)
    groups = [group for group, size in enumerate(sizes) for _ in range(size)]
    chance.shuffle(groups)
    names = {}
    groups = np.array([names.setdefault(g, len(names)) for g in groups])
    classes = np.array([chance.choice([0, 0, 1, 2]) for _ in groups])
    if np.bincount(classes, minlength=3).min() < folds:
        continue
    x = np.zeros(len(groups))
    print(f"    {{{folds}, {numbers(groups)}, {numbers(classes)},")
    print(f"     {digest(GroupKFold(folds).split(x, classes, groups))}U,"
          f" {digest(StratifiedGroupKFold(folds).split(x, classes, groups))}U,"
          f" {digest(LeaveOneGroupOut().split(x, classes, groups))}U}},")
    cases += 1
print("};\n\nstruct FoldsReference {")
print("  std::vector<std::int64_t> folds;  // of each row; -1: none\n  std::uint64_t digest;\n};\n")
print("inline const std::vector<FoldsReference> kPredefined = {")
for _ in range(8):
    folds = [chance.randint(-1, 3) for _ in range(chance.randint(10, 40))]
    print(f"    {{{numbers(folds)}, {digest(PredefinedSplit(folds).split())}U}},")
print("};\n\n// Of 17 rows.")
print(f"inline constexpr std::uint64_t kLeaveOneOut = {digest(LeaveOneOut().split(np.zeros(17)))}U;\n")
print("}  // namespace treadle::validation")
