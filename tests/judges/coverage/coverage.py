"""coverage.py RUNNER [--seeds N]: for each kind of conformal stage the mean coverage over N splits (20) of tables
and of a series, and of ETTh1 in $TREADLE_DATA where it is there; and the ECE of three overconfident models before and after temperature."""
import argparse
import csv
import json
import os
import pathlib
import subprocess
import tempfile

import numpy as np
from sklearn import datasets

COVERAGE, TOLERANCE = 0.9, 0.02


def write(path, columns, rows):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)
    return {"use": "csv", "path": str(path), "target": columns[-1]}


def table(path, loaded, names=None):
    target = [names[int(y)] if names is not None else y for y in loaded.target]
    columns = [f"x{i}" for i in range(loaded.data.shape[1])] + ["y"]
    return write(path, columns, [[*x, y] for x, y in zip(loaded.data, target)])


def friedman(path):
    x, y = datasets.make_friedman1(1500, 10, noise=1.0, random_state=1)
    return write(path, [f"x{i}" for i in range(10)] + ["y"], [[*row, value] for row, value in zip(x, y)])


class Judge:
    def __init__(self, runner, folder):
        self.runner, self.folder, self.wrong = runner, folder, []

    def expect(self, holds, what):
        print(("holds: " if holds else "FAILS: ") + what, flush=True)
        if not holds:
            self.wrong.append(what)

    def run(self, document):
        path = self.folder / "document.json"
        path.write_text(json.dumps(document))
        runs = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        done = subprocess.run([self.runner, "run", str(path), "--quiet", "-o", str(runs)], text=True, capture_output=True)
        if done.returncode != 0:
            raise SystemExit(f"{done.stderr}\n{json.dumps(document)}")
        return json.loads((next(runs.iterdir()) / "result.json").read_text())

    def coverage(self, name, metric, seeds, document, holds=True):
        """Of the test rows, which no stage has seen."""
        shares = []
        for seed in range(1, seeds + 1):
            result = self.run({**document, "treadle": 1, "name": "covers", "seed": seed, "metrics": [metric]})
            numbers = result["test"]["metrics"]
            shares.append(np.mean([value for key, value in numbers.items() if key.startswith(metric) and "width" not in key
                                   and "size" not in key]))
        mean = float(np.mean(shares))
        found = f"{name}: {mean:.4f} of {seeds} splits, from {min(shares):.3f} to {max(shares):.3f}"
        if holds:
            self.expect(abs(mean - COVERAGE) <= TOLERANCE, found)
        else:
            print("       " + found, flush=True)

    def calibration(self, name, document, holds=True):
        outputs = {"calibration": "temperature"}
        result = self.run({**document, "treadle": 1, "name": "confident", "metrics": ["ece"], "outputs": outputs})
        after = result["mean_metrics"]["ece"]
        before = result["outputs"]["metrics_without"]["ece"]
        found = f"{name}: ECE {before:.4f} before, {after:.4f} after temperature"
        if holds:
            self.expect(after <= before / 2, found)
        else:
            print("       " + found, flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("runner")
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="treadle-coverage-"))
    judge = Judge(str(pathlib.Path(options.runner).resolve()), folder)
    folds = {"use": "k_fold", "folds": 5, "test_fraction": 0.3}
    split = {"use": "hold_out", "fraction": 0.1, "test_fraction": 0.3}
    conformal = {"conformal": {"coverage": COVERAGE}}
    network = {"transforms": ["standardize"], "model": {"use": "mlp", "hidden": [32]},
               "optimizer": {"use": "adamw", "learning_rate": 0.01}, "training": {"epochs": 15, "batch_size": 32}}
    numbers = {**network, "transforms": [{"use": "standardize", "target": True}]}
    quantiles = {"use": "quantile", "quantiles": [0.05, 0.5, 0.95]}

    for name, data, validation, outputs in (
            ("diabetes, folds", table(folder / "diabetes.csv", datasets.load_diabetes()), folds, conformal),
            ("friedman1, one split", friedman(folder / "friedman1.csv"), split, {**conformal, "fraction": 0.4})):
        common = {**numbers, "data": data, "validation": validation, "outputs": outputs}
        judge.coverage(f"{name}, residual", "interval_coverage", options.seeds, common)
        judge.coverage(f"{name}, quantiles", "interval_coverage", options.seeds, {**common, "loss": quantiles})
    # A set has the likeliest class at least, so only a model that errs in more than a tenth of the rows has sets to be measured.
    for name, load, columns, validation, fraction in (("breast_cancer, folds", datasets.load_breast_cancer, slice(8, 10), folds, {}),
                                                      ("digits, one split", datasets.load_digits, slice(18, 30), split, {"fraction": 0.5})):
        loaded = load()
        loaded.data = loaded.data[:, columns]
        data = table(folder / f"{name}.csv", loaded, [f"c{i}" for i in loaded.target_names])
        for kind in ({"score": "aps"}, {"score": "lac"}, {"score": "aps", "by": "class"}):
            judge.coverage(f"{name}, {kind}", "set_coverage", options.seeds,
                           {**network, "data": data, "validation": validation,
                            "outputs": {"conformal": {"coverage": COVERAGE, **kind}, **fraction}})
    chronological = {"use": "hold_out", "strategy": "chronological", "fraction": 0.2, "test_fraction": 0.2}
    common = {**numbers, "data": {"use": "ar_series", "length": 6000, "window": 24}, "validation": chronological,
              "outputs": conformal, "training": {"epochs": 4, "batch_size": 128}}
    judge.coverage("an autoregressive series, residual", "interval_coverage", options.seeds, common)
    judge.coverage("an autoregressive series, quantiles", "interval_coverage", options.seeds, {**common, "loss": quantiles})
    drifting = pathlib.Path(os.environ.get("TREADLE_DATA", "/nowhere")) / "ETTh1.csv"
    if drifting.exists():  # not exchangeable, so nothing is promised
        data = {"use": "csv", "path": str(drifting), "columns": ["OT"], "target": "OT", "time": "date"}
        windows = {"use": "windows", "lookback": 24, "horizon": 4}
        judge.coverage("ETTh1, which drifts, residual", "interval_coverage", 1, {**common, "data": data, "sequence": windows}, holds=False)

    long = {**network, "model": {"use": "mlp", "hidden": [128]}, "training": {"epochs": 250, "batch_size": 32}}
    folds = {"use": "k_fold", "folds": 5}
    loaded = datasets.load_digits()
    loaded.data = loaded.data[:, 18:30]
    data = table(folder / "few.csv", loaded, [f"c{i}" for i in loaded.target_names])
    judge.calibration("digits, 12 columns", {**long, "data": data, "validation": folds}, holds=False)
    residual = {"use": "flow", "flow": [{"use": "graph", "builder": {"use": "residual_mlp"}}]}
    trees = {"model": {"use": "gradient_boosted_trees", "max_depth": 8}, "training": {"use": "boosting", "epochs": 200}}
    for name, classes, model in (("mlp", 2, {}), ("residual_mlp", 3, {"model": residual}), ("trees", 4, trees)):
        x, y = datasets.make_classification(800, 20, n_informative=5, n_classes=classes, flip_y=0.2, random_state=1)
        data = write(folder / f"{classes}.csv", [f"x{i}" for i in range(20)] + ["y"], [[*row, f"c{value}"] for row, value in zip(x, y)])
        document = {**long, "data": data, "validation": folds, **model}
        if name == "trees":
            document.pop("optimizer")
        judge.calibration(f"{name}, {classes} noisy classes", document)
    raise SystemExit(1 if judge.wrong else 0)


main()
