#!/usr/bin/env python3
"""What pruning costs and saves: a search with `asha` beside the same search without it.

    tests/benchmarks/pruning.py build/release/bin/workflow-runner digits.csv --seeds 10

For each seed: the best validation loss of both, and the epochs that both trained. Prints a line per
seed and the medians. The spaces are those below; nothing is chosen by what comes out.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

DIGITS = {
    "treadle": 1,
    "name": "digits",
    "data": {"use": "csv", "path": "", "header": False, "target": -1, "task": "classification"},
    "transforms": ["standardize"],
    "model": {"use": "mlp", "hidden": [64]},
    "optimizer": {"use": "adamw", "learning_rate": 0.01},
    "training": {"use": "standard", "epochs": 27, "batch_size": 64},
    "search": {
        "tuner": {"use": "random"},
        "trials": 30,
        "space": {
            "optimizer.learning_rate": {"log_uniform": [1e-4, 1e-1]},
            "model.hidden": {"choice": [[32], [64], [128], [64, 64]]},
            "model.dropout": {"uniform": [0, 0.5]},
        },
    },
}

TRANSFORMER = {
    "treadle": 1,
    "name": "text",
    "data": {"use": "text", "path": "", "tokenizer": "characters"},
    "sequence": {"use": "packed", "length": 32, "stride": 32},
    "validation": {"use": "consecutive", "validation_size": 0.02},
    "model": {"use": "flow", "flow": [{"use": "graph", "name": "gpt", "builder": {
        "use": "gpt", "num_layers": 1, "num_heads": 2, "hidden_size": 32, "max_length": 32, "dropout": 0}}]},
    "loss": "cross_entropy",
    "optimizer": {"use": "adamw", "learning_rate": 0.003},
    "training": {"use": "standard", "epochs": 18, "steps_per_epoch": 30, "batch_size": 16},
    "search": {
        "tuner": {"use": "random"},
        "trials": 18,
        "space": {
            "optimizer.learning_rate": {"log_uniform": [1e-4, 1e-1]},
            "optimizer.weight_decay": {"log_uniform": [1e-4, 1]},
            "training.batch_size": {"choice": [8, 16, 32]},
        },
    },
}


def asha(epochs):
    """Three rungs, of which the last is a whole training: epochs / 9, epochs / 3, epochs."""
    return {"use": "asha", "reduction_factor": 3, "min_resource": epochs // 9}


def searched(runner, document, folder):
    path = pathlib.Path(folder) / "document.json"
    path.write_text(json.dumps(document))
    out = subprocess.run([runner, "tune", path, "-o", folder, "--json"], capture_output=True, text=True)
    if out.returncode != 0:
        raise SystemExit(out.stdout + out.stderr)
    run = json.loads(out.stdout)
    search = run["result"]["search"]
    best = search["trials"][search["best_trial"]]["values"][0]
    epochs = 0
    for line in (pathlib.Path(run["folder"]) / "history.csv").read_text().splitlines()[1:]:
        epochs += line.startswith("trials/")
    return best, epochs


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runner")
    parser.add_argument("data", help="a table whose last column is the class, or with --text a text")
    parser.add_argument("--text", action="store_true", help="searches for a small transformer")
    parser.add_argument("--seeds", type=int, default=10)
    arguments = parser.parse_args()
    losses, shares = [], []
    for seed in range(arguments.seeds):
        document = json.loads(json.dumps(TRANSFORMER if arguments.text else DIGITS))
        document["data"]["path"] = str(pathlib.Path(arguments.data).resolve())
        document["seed"] = seed
        with tempfile.TemporaryDirectory() as folder:
            whole, all_epochs = searched(arguments.runner, document, folder)
            document["search"]["pruner"] = asha(document["training"]["epochs"])
            pruned, epochs = searched(arguments.runner, document, folder)
        losses.append(pruned / whole)
        shares.append(epochs / all_epochs)
        print(f"seed {seed}: loss {whole:.5f} whole, {pruned:.5f} pruned ({losses[-1]:.3f}); "
              f"epochs {all_epochs}, {epochs} ({shares[-1]:.3f})", flush=True)
    print(f"median: loss {statistics.median(losses):.3f} of the whole search's, "
          f"epochs {statistics.median(shares):.3f}")


if __name__ == "__main__":
    main()
