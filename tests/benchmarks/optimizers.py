#!/usr/bin/env python3
"""Validation losses, the time of a step and the time to a loss of several optimizers, on nanoGPT's model for a CPU.

    tests/benchmarks/optimizers.py [--program build/release/bin/workflow-runner] [--seeds 3] [--steps 1000] [--only muon,soap]

The document is examples/tinyshakespeare/gpt.json with another optimizer and schedule; rates are those of the reference runs. The text
is $TREADLE_DATA/tinyshakespeare.txt, or beside that example.
"""
import argparse
import csv
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
COSINE = {"use": "cosine", "min_rate": 0.1, "warmup": "100st"}
NO_DECAY = [{"parameters": ["*bias", "*norm*", "*ln_f*"], "weight_decay": 0}]
OPTIMIZERS = {
    "adamw 1e-3": ({"use": "adamw", "learning_rate": 1e-3, "betas": [0.9, 0.99], "weight_decay": 0.1, "groups": NO_DECAY}, 1e-4),
    "adamw 3e-3": ({"use": "adamw", "learning_rate": 3e-3, "betas": [0.9, 0.99], "weight_decay": 0.1, "groups": NO_DECAY}, 3e-4),
    "muon": ({"use": "muon", "learning_rate": 0.02, "adamw_learning_rate": 1e-3}, 2e-3),
    "soap": ({"use": "soap", "learning_rate": 3e-3}, 3e-4),
    "schedule_free_adamw": ({"use": "schedule_free_adamw", "learning_rate": 0.01, "warmup_steps": 100}, None),
    "adafactor": ({"use": "adafactor"}, None),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=str(ROOT / "build/release/bin/workflow-runner"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    text = pathlib.Path(os.environ.get("TREADLE_DATA", ROOT / "examples/tinyshakespeare")) / "tinyshakespeare.txt"
    original = json.loads((ROOT / "examples/tinyshakespeare/gpt.json").read_text())
    original["data"]["path"] = str(text)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="treadle-optimizers-"))

    def train(optimizer, least, seed):
        document = {**original, "seed": seed, "optimizer": optimizer}
        document.pop("schedule")
        if least is not None:
            document["schedule"] = {**COSINE, "min_rate": least}
        document["training"] = {"use": "standard", "max_steps": options.steps, "steps_per_epoch": 50, "batch_size": 12,
                                "clip": {"norm": 1}}
        path = folder / "document.json"
        path.write_text(json.dumps(document))
        runs = pathlib.Path(tempfile.mkdtemp(dir=folder))
        done = subprocess.run([options.program, "run", str(path), "--quiet", "-o", str(runs)], text=True, capture_output=True)
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        run = next(runs.iterdir())
        with open(run / "history.csv") as file:
            rows = list(csv.DictReader(file))
        phases = json.loads((run / "result.json").read_text())["time"]["phases"]
        return rows, sum(phases.get(name, 0) for name in ("forward", "backward", "update")) / options.steps

    chosen = [name for name in OPTIMIZERS if not options.only or any(name.startswith(one) for one in options.only.split(","))]
    print(f"{options.steps} steps, means over {options.seeds} seeds")
    print(f"{'':22} {'after half':>10} {'at the end':>10} {'ms a step':>10} {'steps to 2.0':>13} {'s to 2.0':>9}")
    for name in chosen:
        half, end, per_step, steps_to, seconds_to = [], [], [], [], []
        for seed in range(1, options.seeds + 1):
            rows, seconds = train(*OPTIMIZERS[name], seed)
            losses = [float(row["val_loss"]) for row in rows]
            half.append(losses[len(losses) // 2 - 1])
            end.append(losses[-1])
            per_step.append(1000 * seconds)
            first = next((i for i, loss in enumerate(losses) if loss <= 2), None)
            if first is not None:
                steps_to.append(50 * (first + 1))
                seconds_to.append(50 * (first + 1) * seconds)

        def mean(values, form):
            return form.format(statistics.mean(values)) if len(values) == options.seeds else "-"
        print(f"{name:22} {mean(half, '{:.3f}'):>10} {mean(end, '{:.3f}'):>10} {mean(per_step, '{:.2f}'):>10} "
              f"{mean(steps_to, '{:.0f}'):>13} {mean(seconds_to, '{:.2f}'):>9}", flush=True)


main()
