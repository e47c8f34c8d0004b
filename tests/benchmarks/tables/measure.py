#!/usr/bin/env python3
"""`workflow-runner auto` by repeated stratified five-fold cross-validation, beside scikit-learn's tuned
random forest, SVM and MLP where scikit-learn is installed.

    python3 tests/benchmarks/tables/measure.py --data FOLDER --runner build/release/bin/workflow-runner \
        --sets iris,wine,breast_cancer,digits --seeds 5 --auto="--trials 30"

The rows of a fold are the same for all of them: a part of each class in turn, in an order that is drawn
by the seed. Each training file is written, and given to `auto`; the model it leaves is evaluated on the
test file. friedman1 (1000 rows, ten columns, noise 1) and ETTh1 (OT from the last 24 hours of all
columns) are regressions, measured by RMSE: five random folds, and the last fifth of the hours.
"""
import argparse
import csv
import json
import math
import pathlib
import random
import shlex
import statistics
import subprocess
import sys
import tempfile
import time


class Table:
    """Rows of numbers, with a target that is a class or a number."""

    def __init__(self, names, rows, targets, is_classes):
        self.names, self.rows, self.targets, self.is_classes = names, rows, targets, is_classes

    def write(self, path, chosen):
        with open(path, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(self.names + ["target"])
            for i in chosen:
                writer.writerow(self.rows[i] + [self.targets[i]])


def read_classes(path, skipped):
    with open(path, newline="") as file:
        lines = list(csv.reader(file))[skipped:]
    rows = [[float(field) for field in line[:-1]] for line in lines]
    names = [f"x{i}" for i in range(len(rows[0]))]
    return Table(names, rows, [f"class_{int(float(line[-1]))}" for line in lines], True)


def friedman1(count=1000, seed=0):
    draw = random.Random(seed)
    rows = [[draw.random() for _ in range(10)] for _ in range(count)]
    targets = [10 * math.sin(math.pi * x[0] * x[1]) + 20 * (x[2] - 0.5) ** 2 + 10 * x[3] + 5 * x[4] + draw.gauss(0, 1)
               for x in rows]
    return Table([f"x{i}" for i in range(10)], rows, targets, False)


def lagged_etth1(path, lags=24, every=4):
    with open(path, newline="") as file:
        lines = list(csv.reader(file))
    names, values = lines[0][1:], [[float(field) for field in line[1:]] for line in lines[1:]]
    rows, targets = [], []
    for t in range(lags, len(values), every):
        rows.append([value for lag in range(1, lags + 1) for value in values[t - lag]])
        targets.append(values[t][names.index("OT")])
    return Table([f"{name}_{lag}" for lag in range(1, lags + 1) for name in names], rows, targets, False)


def table_named(name, folder):
    if name == "friedman1":
        return friedman1()
    if name == "etth1":
        return lagged_etth1(folder / "ETTh1.csv")
    files = {"iris": ("iris.csv", 1), "wine": ("wine_data.csv", 1), "breast_cancer": ("breast_cancer.csv", 1),
             "digits": ("digits.csv", 0)}
    file, skipped = files[name]
    return read_classes(folder / file, skipped)


def folds_of(name, table, seed, count=5):
    """Pairs of training and test rows."""
    total = len(table.rows)
    if name == "etth1":
        cut = total * 4 // 5
        return [(list(range(cut)), list(range(cut, total)))]
    order = list(range(total))
    random.Random(seed).shuffle(order)
    if table.is_classes:
        order.sort(key=lambda i: table.targets[i])  # stable: shuffled within each class
    parts = [order[k::count] for k in range(count)]
    return [(sorted(i for other in parts if other is not part for i in other), sorted(part)) for part in parts]


def measure_auto(runner, options, table, training, test, seed, folder):
    table.write(folder / "train.csv", training)
    table.write(folder / "test.csv", test)
    begin = time.monotonic()
    done = subprocess.run([runner, "auto", "train.csv", "--target", "target", "--seed", str(seed), "--json", *options],
                          cwd=folder, capture_output=True, text=True)
    seconds = time.monotonic() - begin
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    outcome = json.loads(done.stdout)
    done = subprocess.run([runner, "evaluate", outcome["folder"], "test.csv", "--json"], cwd=folder, capture_output=True,
                          text=True, check=True)
    metrics = json.loads(done.stdout)["metrics"]
    search = outcome["result"]["search"]
    best = search["trials"][search["best_trial"]]
    model = best["params"].get("model", {})
    return metrics["accuracy" if table.is_classes else "rmse"], seconds, json.dumps(model)


def peers_for(table):
    """scikit-learn's models with grids that are usual for tables of this size; empty without it."""
    try:
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
        from sklearn.model_selection import GridSearchCV
        from sklearn.neural_network import MLPClassifier, MLPRegressor
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVC, SVR
    except ImportError:
        return {}
    forest, vectors, network = ((RandomForestClassifier, SVC, MLPClassifier) if table.is_classes else
                                (RandomForestRegressor, SVR, MLPRegressor))

    def tuned(model, grid):
        step = type(model).__name__.lower()
        return GridSearchCV(make_pipeline(StandardScaler(), model), {f"{step}__{key}": grid[key] for key in grid}, cv=5)

    return {
        "forest": lambda seed: tuned(forest(n_estimators=300, random_state=seed), {"max_features": ["sqrt", 0.5, 1.0]}),
        "SVM": lambda seed: tuned(vectors(), {"C": [0.1, 1, 10, 100], "gamma": ["scale", 0.001, 0.01, 0.1]}),
        "MLP": lambda seed: tuned(network(max_iter=1000, random_state=seed),
                                  {"hidden_layer_sizes": [(64,), (128,), (64, 64)], "alpha": [1e-4, 1e-2, 1]}),
    }


def measure_peer(make, table, training, test, seed):
    model = make(seed).fit([table.rows[i] for i in training], [table.targets[i] for i in training])
    predicted = model.predict([table.rows[i] for i in test])
    actual = [table.targets[i] for i in test]
    if table.is_classes:
        return sum(a == p for a, p in zip(actual, predicted)) / len(test)
    return math.sqrt(sum((a - p) ** 2 for a, p in zip(actual, predicted)) / len(test))


def shown(values, is_classes):
    scale = 100 if is_classes else 1
    spread = statistics.stdev(values) if len(values) > 1 else 0
    return f"{scale * statistics.mean(values):.2f} ± {scale * spread:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True, help="the folder with iris.csv, wine_data.csv …")
    parser.add_argument("--runner", default="workflow-runner")
    parser.add_argument("--sets", default="iris,wine,breast_cancer,digits,friedman1,etth1")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--folds", type=int, default=5, help="how many of the five folds are measured")
    parser.add_argument("--auto", default="--time 60s", help="further options of auto")
    parser.add_argument("--without-peers", action="store_true")
    arguments = parser.parse_args()
    runner = str(pathlib.Path(arguments.runner).resolve()) if "/" in arguments.runner else arguments.runner
    print("| table | auto | s a fit | models | " + "scikit-learn |\n|---|---|---|---|---|", flush=True)
    for name in arguments.sets.split(","):
        table = table_named(name, arguments.data)
        peers = {} if arguments.without_peers else peers_for(table)
        scores, seconds, models = [], [], []
        others = {peer: [] for peer in peers}
        for seed in range(arguments.seeds):
            for training, test in folds_of(name, table, seed)[:arguments.folds]:
                with tempfile.TemporaryDirectory() as folder:
                    score, taken, model = measure_auto(runner, shlex.split(arguments.auto), table, training, test, seed,
                                                       pathlib.Path(folder))
                scores.append(score)
                seconds.append(taken)
                models.append(model)
                print(f"  {name} seed {seed}: {score:.4f} in {taken:.1f} s by {model}", file=sys.stderr, flush=True)
                for peer, make in peers.items():
                    others[peer].append(measure_peer(make, table, training, test, seed))
        beside = "; ".join(f"{peer} {shown(values, table.is_classes)}" for peer, values in others.items())
        print(f"| {name} | {shown(scores, table.is_classes)} | {statistics.mean(seconds):.1f} (at most "
              f"{max(seconds):.1f}) | {len(set(models))} kinds | {beside or 'not installed'} |", flush=True)


if __name__ == "__main__":
    main()
