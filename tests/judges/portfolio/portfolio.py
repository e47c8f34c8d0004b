"""portfolio.py RUNNER [--splits N] [--time T]: of digits, breast_cancer, friedman1 and the churn table of the judge of that name, N
splits (10) into training and test rows; for each what `auto` finds in T (30s) with all families, with trees and with networks alone.
In three of four tables all families are to be as good as the better of the two, less 0.2 points, and none may take longer than T by
more than a fifth and 10 s."""
import argparse
import csv
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
from sklearn import datasets

FAMILIES = {"all": None, "trees": "trees", "networks": "linear,mlp,resnet,mlp_plr,tabm"}
SLACK = 0.2  # points


def churn():
    path = pathlib.Path(__file__).resolve().parents[1] / "churn/churn.py"
    spec = importlib.util.spec_from_file_location("churn", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    keep = [i for i, name in enumerate(module.COLUMNS) if name not in ("customer_id", "ticket_no")]
    return [module.COLUMNS[i] for i in keep], [[row[i] for i in keep] for row in module.table(12000, 1, 1)]


def loaded(data, names=None):
    target = [names[int(y)] if names is not None else y for y in data.target]
    return [f"x{i}" for i in range(data.data.shape[1])] + ["y"], [[*x, y] for x, y in zip(data.data, target)]


def friedman():
    x, y = datasets.make_friedman1(1500, 10, noise=1.0, random_state=1)
    return [f"x{i}" for i in range(10)] + ["y"], [[*row, value] for row, value in zip(x, y)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("runner")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--time", default="30s")
    options = parser.parse_args()
    runner = str(pathlib.Path(options.runner).resolve())
    seconds = float(options.time.removesuffix("s"))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="treadle-portfolio-"))
    digits, cancer = datasets.load_digits(), datasets.load_breast_cancer()
    tables = {"digits": (loaded(digits, [f"c{i}" for i in range(10)]), "accuracy", []),
              "breast_cancer": (loaded(cancer, ["malignant", "benign"]), "accuracy", []),
              "friedman1": (friedman(), "r2", []),
              "churn": (churn(), "auc", ["--set", 'metrics=["auc", "log_loss"]'])}

    def write(path, columns, rows):
        with open(path, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(rows)

    def measure(name, columns, rows, metric, extra, seed, families):
        order = np.random.default_rng(seed).permutation(len(rows))
        cut = len(rows) * 7 // 10
        train, test, made = folder / "train.csv", folder / "test.csv", folder / f"{name}-{seed}-{families}"
        write(train, columns, [rows[i] for i in order[:cut]])
        write(test, columns, [rows[i] for i in order[cut:]])
        command = [runner, "auto", train, "--target", columns[-1], "--time", options.time, "--seed", seed, "-o", made, "--quiet", *extra]
        if FAMILIES[families]:
            command += ["--families", FAMILIES[families]]
        begun = time.monotonic()
        done = subprocess.run(list(map(str, command)), cwd=folder, text=True, capture_output=True)
        took = time.monotonic() - begun
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        evaluated = subprocess.run([runner, "evaluate", str(next(made.iterdir())), str(test), "--json"], cwd=folder, text=True,
                                   capture_output=True, check=True)
        return 100 * json.loads(evaluated.stdout)["metrics"][metric], took

    good, longest = 0, 0.0
    for name, ((columns, rows), metric, extra) in tables.items():
        found = {families: [] for families in FAMILIES}
        for seed in range(1, options.splits + 1):
            for families, values in found.items():
                value, took = measure(name, columns, rows, metric, extra, seed, families)
                values.append(value)
                longest = max(longest, took)
        means = {families: np.mean(values) for families, values in found.items()}
        holds = means["all"] >= max(means["trees"], means["networks"]) - SLACK
        good += holds
        print(("holds: " if holds else "below: ") + f"{name}, {metric} in points: "
              + ", ".join(f"{families} {mean:.2f}" for families, mean in means.items()), flush=True)
    in_time = longest <= 1.2 * seconds + 10
    print(("holds: " if in_time else "FAILS: ") + f"the longest took {longest:.1f} s of {options.time}")
    print(("holds: " if good >= 3 else "FAILS: ") + f"in {good} of 4 tables")
    sys.exit(0 if good >= 3 and in_time else 1)


main()
