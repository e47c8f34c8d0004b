"""Verdicts of the median, percentile and patient pruners in judging_pruners_test.cpp: the rules of
Optuna 5 (optuna/pruners/_percentile.py, _patient.py), restated with nothing but the standard
library, whose inclusive quantiles are those of numpy.nanpercentile:
python3 plugins/pruners/test/reference.py

Optuna counts steps from 0, so its step is the epoch less 1."""

from math import isnan, nan
from statistics import quantiles

complete = [
    [0.9, 0.8, 0.4, 0.35],
    [0.7, 0.75, nan, 0.3],
    [0.5, 0.6, 0.55],
    [1.2, 0.65, 0.5, 0.2],
    [0.8, nan, 0.45, 0.6],
    [0.6, 0.7],
]


def numbers(values):
    return [value for value in values if not isnan(value)]


def nanmin(values):
    return min(numbers(values), default=nan)


def nanpercentile(values, percentile):
    values = numbers(values)
    if not values:
        return nan
    inner = quantiles(values, n=100, method="inclusive") if len(values) > 1 else values * 99
    return [min(values), *inner, max(values)][percentile]


def is_first_in_interval(step, steps, warmup, interval):
    lower = (step - warmup) // interval * interval + warmup
    before = [s for s in steps if s != step]
    return (max(before) if before else -1) < lower


def percentile_prunes(own, percentile, startup=5, warmup=0, interval=1, least=1):
    if not complete or len(complete) < startup:
        return False
    step = len(own) - 1
    if step < warmup or not is_first_in_interval(step, range(len(own)), warmup, interval):
        return False
    if not numbers(own):
        return True
    others = [trial[step] for trial in complete if step < len(trial)]
    if len(others) < least:
        return False
    bound = nanpercentile(others, percentile)
    return nanmin(own) > bound


def patient_prunes(own, patience, min_delta):
    if len(own) <= patience + 1:
        return False
    before, after = own[: -patience - 1], own[-patience - 1 :]
    return nanmin(before) + min_delta < nanmin(after)


def percentiles():
    for percentile in (0, 10, 25, 50, 75, 90, 100):
        row = []
        for step in range(4):
            others = [trial[step] for trial in complete if step < len(trial)]
            row.append(round(nanpercentile(others, percentile), 6))
        print(f"percentile {percentile:3}: {row}")


def judged(warmup, interval, count=14):
    epochs = [e for e in range(1, count + 1)
              if e - 1 >= warmup and is_first_in_interval(e - 1, range(e), warmup, interval)]
    print(f"judged with warmup {warmup}, interval {interval}: {epochs}")


percentiles()
for warmup, interval in ((0, 1), (0, 3), (4, 1), (4, 3)):
    judged(warmup, interval)
for own in ([0.75], [0.76], [1.3, 0.7], [1.3, 0.71], [0.1, 0.9, 0.9], [0.9, 0.9, 0.475],
            [0.9, 0.9, 0.48], [nan, 0.5], [nan, nan, 0.9], [0.9, 0.9, 0.9, 0.33], [0.9, 0.9, 0.9, 0.32]):
    print(own, {p: percentile_prunes(own, p) for p in (10, 25, 50, 90)})
for own in ([3, 2, 1], [1, 2, 3], [1, 2, 3, 4], [4, 1, 2, 3, 4], [4, 1, 2, 3, 1.05], [1, 1, 1, 1]):
    print(own, {(p, d): patient_prunes(own, p, d) for p in (0, 1, 2) for d in (0, 0.1, 1)})
