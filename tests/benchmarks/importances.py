#!/usr/bin/env python3
"""How often permutation importance and SHAP values rank the five informative columns of friedman1 first, among ten.

    tests/benchmarks/importances.py [--program build/release/bin/workflow-runner] [--seeds 20]

Each seed has data, split and weights of its own: 1000 rows, of which 200 are explained.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

DOCUMENT = {
    "treadle": 1, "name": "friedman1",
    "data": {"use": "friedman1", "rows": 1000, "features": 10},
    "transforms": ["standardize"],
    "model": {"use": "mlp", "hidden": [32], "activation": "relu"},
    "optimizer": {"use": "adamw", "learning_rate": 0.01},
    "training": {"use": "standard", "epochs": 40, "batch_size": 32},
    "validation": {"use": "hold_out"}, "metrics": ["rmse"], "explain": True,
}


def first_five(names):
    return set(names[:5]) == {"x0", "x1", "x2", "x3", "x4"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default="build/release/bin/workflow-runner")
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    right = {"importance": 0, "shap": 0}
    with tempfile.TemporaryDirectory() as folder:
        document = pathlib.Path(folder) / "friedman1.json"
        for seed in range(options.seeds):
            document.write_text(json.dumps({**DOCUMENT, "seed": seed}))
            runs = pathlib.Path(folder) / str(seed)
            subprocess.run([options.program, "run", document, "-q", "-o", runs], check=True)
            (reasons,) = runs.glob("*/explain.json")
            target = json.loads(reasons.read_text())["targets"][0]
            right["importance"] += first_five([one["columns"][0] for one in target["importance"]["columns"]])
            right["shap"] += first_five([one["column"] for one in target["shap"]["mean_abs"]])
    for method, count in right.items():
        print(f"{method}: the five informative columns first in {count} of {options.seeds} seeds")


if __name__ == "__main__":
    main()
