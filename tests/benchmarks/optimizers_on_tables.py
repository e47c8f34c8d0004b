#!/usr/bin/env python3
"""Optimizers beside AdamW on tables: each is tuned by the same search, and then trained on the same ten random splits.

    tests/benchmarks/optimizers_on_tables.py [--program build/release/bin/workflow-runner] [--data DIR] [--trials 20] [--repeats 10]
                                             [--only muon] [--tables friedman1,churn,digits]

Prints for each table and optimizer the mean of the splits' metric, the mean difference to AdamW in its favor, and the p value of
the paired t test with the variance of Nadeau and Bengio, "Inference for the Generalization Error" (2003), which takes into account
that training rows are shared: t = mean(d) / sqrt((1/k + n_test/n_train) var(d)), k - 1 degrees of freedom.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/judges/churn"))
TEST_SHARE = 0.25
NUMBERS = ["standardize"]
# Name: what differs from a plain document, the metric, whether more is better.
TABLES = {
    "friedman1": ({"data": {"use": "friedman1", "rows": 2000, "noise": 1}, "transforms": [{"use": "standardize", "target": True}],
                   "metrics": ["rmse"]}, "rmse", False),
    "churn": ({"data": {"use": "csv", "path": "churn.csv", "target": "left", "categorical": ["region", "plan"], "dates": ["signed"],
                        "columns": ["signed", "region", "plan", "tenure", "charge", "calls", "last_login", "discount"],
                        "missing": "nan"},
               "transforms": ["impute", "standardize", "one_hot"], "metrics": ["log_loss"]}, "log_loss", False),
    "digits": ({"data": {"use": "csv", "path": "digits.csv", "header": False, "task": "classification"}, "transforms": NUMBERS, "metrics": ["log_loss", "accuracy"]},
               "log_loss", False),
}
RATE = {"log_uniform": [1e-4, 1e-1]}
DECAY = {"log_uniform": [1e-4, 1e-1]}
OPTIMIZERS = {
    "adamw": {"learning_rate": RATE, "weight_decay": DECAY},
    "muon": {"learning_rate": RATE, "weight_decay": DECAY},
    "soap": {"learning_rate": RATE, "weight_decay": DECAY},
    "schedule_free_adamw": {"learning_rate": RATE, "weight_decay": DECAY},
    "adafactor": {"learning_rate": RATE, "weight_decay": DECAY},
}


def run(program, command, document, folder):
    path = folder / "document.json"
    path.write_text(json.dumps(document))
    runs = pathlib.Path(tempfile.mkdtemp(dir=folder))
    done = subprocess.run([program, command, str(path), "--quiet", "-o", str(runs)], text=True, capture_output=True)
    if done.returncode != 0:
        raise SystemExit(f"{command}: {done.stderr}")
    return json.loads((next(runs.iterdir()) / "result.json").read_text())


# What the search leaves as it is.
FIXED = {"muon": {"adjust_lr_fn": "match_rms_adamw"}}


def document_of(table, optimizer, epochs):
    optimizer = {**FIXED.get(optimizer["use"], {}), **optimizer}
    schedule = {} if optimizer["use"].startswith("schedule_free") else {"schedule": "cosine"}
    return {"treadle": 1, **schedule, "seed": 1, "model": {"use": "mlp", "hidden": [128, 128]}, "optimizer": optimizer,
            "training": {"use": "standard", "epochs": epochs, "batch_size": 64}, **table}


def folds_of(result, metric):
    return [next(value for name, value in fold["metrics"].items() if name == metric) for fold in result["fold_results"]]


def t_cdf(t, degrees):
    """By Simpson's rule: no SciPy is needed."""
    density = math.gamma((degrees + 1) / 2) / math.sqrt(degrees * math.pi) / math.gamma(degrees / 2)
    steps = 2000
    width = abs(t) / steps
    values = [density * (1 + (i * width) ** 2 / degrees) ** (-(degrees + 1) / 2) for i in range(steps + 1)]
    area = width / 3 * (values[0] + values[-1] + 4 * sum(values[1:-1:2]) + 2 * sum(values[2:-1:2]))
    return 0.5 + math.copysign(area, t)


def p_of(differences):
    k = len(differences)
    variance = statistics.variance(differences)
    if variance == 0:
        return 1.0
    t = statistics.mean(differences) / math.sqrt((1 / k + TEST_SHARE / (1 - TEST_SHARE)) * variance)
    return 2 * (1 - t_cdf(abs(t), k - 1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=str(ROOT / "build/release/bin/workflow-runner"))
    parser.add_argument("--data", default=os.environ.get("TREADLE_DATA", "."), help="the folder of digits.csv")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--only", default="")
    parser.add_argument("--tables", default=",".join(TABLES))
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="treadle-optimizers-"))
    program = str(pathlib.Path(options.program).resolve())
    names = [name for name in OPTIMIZERS if name == "adamw" or not options.only or name in options.only.split(",")]
    print(f"{options.trials} trials each, then {options.repeats} splits of {1 - TEST_SHARE:.0%} and {TEST_SHARE:.0%}, {options.epochs} epochs")
    for name in options.tables.split(","):
        table, metric, more_is_better = TABLES[name]
        table = json.loads(json.dumps(table))
        if name == "churn":
            import churn
            churn.write(folder / "churn.csv", 6000, 1, 0)
            table["data"]["path"] = str(folder / "churn.csv")
        elif "path" in table["data"]:
            table["data"]["path"] = str(pathlib.Path(options.data).resolve() / table["data"]["path"])
        print(f"\n{name}, {metric}\n{'':20} {'mean':>8} {'sd':>7} {'in favor':>9} {'p':>7}  best values of the search", flush=True)
        of_adamw = None
        for optimizer in names:
            searched = document_of(table, {"use": optimizer}, options.epochs)
            searched["validation"] = {"use": "hold_out", "fraction": TEST_SHARE}
            searched["search"] = {"tuner": {"use": "tpe"}, "objective": metric, "trials": options.trials,
                                  "space": {f"optimizer.{key}": range for key, range in OPTIMIZERS[optimizer].items()}}
            found = run(program, "tune", searched, folder)
            best = {key.removeprefix("optimizer."): value for key, value in found["search"]["trials"][found["search"]["best_trial"]]["params"].items()}
            final = document_of(table, {"use": optimizer, **best}, options.epochs)
            final["seed"] = 2
            final["validation"] = {"use": "repeated", "repeats": options.repeats,
                                   "splitter": {"use": "hold_out", "fraction": TEST_SHARE, "strategy": "random"}}
            values = folds_of(run(program, "run", final, folder), metric)
            if of_adamw is None:
                of_adamw = values
            sign = 1 if more_is_better else -1
            differences = [sign * (mine - its) for mine, its in zip(values, of_adamw)]
            compared = "" if optimizer == "adamw" else f"{statistics.mean(differences):9.4f} {p_of(differences):7.3f}"
            chosen = ", ".join(f"{key} {value:.2g}" for key, value in best.items())
            print(f"{optimizer:20} {statistics.mean(values):8.4f} {statistics.stdev(values):7.4f} {compared:17}  {chosen}", flush=True)


main()
