"""Trains the same network with `launch --processes 2` and with DistributedDataParallel over Gloo, both in
float64 from the same weights on the same batches in their order, and compares the mean training loss of each
epoch. Sums are added in another order, so losses differ in their last digits: 1e-9 is allowed."""
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.distributed
import torch.multiprocessing

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchmarks/peers"))
from networks import Mlp
from workload import read_safetensors

ROWS, FEATURES, CLASSES, BATCH, EPOCHS, PROCESSES = 640, 12, 4, 32, 20, 2
TRAINED = ROWS * 4 // 5
OPTIMIZERS = {
    "sgd": ({"use": "sgd", "learning_rate": 0.05, "momentum": 0.9},
            lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9)),
    "adam": ({"use": "adam", "learning_rate": 0.003},
             lambda parameters: torch.optim.Adam(parameters, lr=0.003)),
}


def document(folder, optimizer, epochs):
    return {
        "treadle": 1, "name": "ddp", "seed": 3, "precision": "float64",
        "data": {"use": "npy", "inputs": str(folder / "x.npy"), "target": str(folder / "y.npy")},
        "model": {"use": "mlp", "hidden": [32, 16], "activation": "relu"},
        "loss": {"use": "cross_entropy"}, "optimizer": optimizer,
        "training": {"use": "standard", "epochs": epochs, "batch_size": BATCH, "shuffle": False},
        "validation": {"use": "hold_out", "fraction": 0.2, "strategy": "chronological"},
        "resources": {"shards": PROCESSES, "workers": PROCESSES},
    }


def run(runner, folder, name, optimizer, epochs, launch):
    path = folder / f"{name}.json"
    path.write_text(json.dumps(document(folder, optimizer, epochs)))
    runs = folder / name
    command = [runner] + (["launch", "--processes", str(PROCESSES)] if launch else [])
    subprocess.run([*command, "run", path, "-o", runs, "--quiet"], check=True)
    return next(runs.iterdir())


def train(rank, folder, name, rendezvous):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=PROCESSES)
    x = torch.from_numpy(np.load(folder / "x.npy"))[:TRAINED]
    y = torch.from_numpy(np.load(folder / "y.npy"))[:TRAINED]
    network = Mlp(FEATURES, [32, 16], CLASSES).double()
    network.load_state_dict({key.removeprefix("net."): value
                             for key, value in read_safetensors(folder / "initial.safetensors").items()})
    network = torch.nn.parallel.DistributedDataParallel(network)
    optimizer = OPTIMIZERS[name][1](network.parameters())
    criterion = torch.nn.CrossEntropyLoss()
    own = BATCH // PROCESSES
    losses = []
    for _ in range(EPOCHS):
        total = torch.zeros((), dtype=torch.float64)
        for begin in range(rank * own, TRAINED, BATCH):
            optimizer.zero_grad()
            loss = criterion(network(x[begin:begin + own]), y[begin:begin + own])
            loss.backward()
            optimizer.step()
            total += loss.detach() * own
        torch.distributed.all_reduce(total)
        losses.append(total.item() / TRAINED)
    if rank == 0:
        (folder / f"{name}.losses").write_text(json.dumps(losses))


def main():
    runner = pathlib.Path(sys.argv[1]).resolve()
    worst = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        dice = np.random.default_rng(1)
        x = dice.normal(size=(ROWS, FEATURES))
        np.save(folder / "x.npy", x)
        np.save(folder / "y.npy", (x @ dice.normal(size=(FEATURES, CLASSES))).argmax(1).astype(np.int64))
        # A rate that moves no weight.
        still = run(runner, folder, "still", {"use": "sgd", "learning_rate": 1e-300}, 1, launch=False)
        (folder / "initial.safetensors").write_bytes((still / "model.safetensors").read_bytes())
        for name, (optimizer, _) in OPTIMIZERS.items():
            finished = run(runner, folder, f"treadle-{name}", optimizer, EPOCHS, launch=True)
            with open(finished / "history.csv", newline="", encoding="utf-8") as file:
                ours = [float(row["train_loss"]) for row in csv.DictReader(file)]
            torch.multiprocessing.spawn(train, (folder, name, folder / f"{name}.store"), PROCESSES)
            theirs = json.loads((folder / f"{name}.losses").read_text())
            assert len(ours) == len(theirs) == EPOCHS, (len(ours), len(theirs))
            difference = max(abs(a - b) / abs(b) for a, b in zip(ours, theirs))
            worst = max(worst, difference)
            print(f"{name}: {theirs[0]:.6f} to {theirs[-1]:.6f} in {EPOCHS} epochs,"
                  f" largest relative difference {difference:.1e}")
    if worst > 1e-9:
        sys.exit("the losses are not those of DistributedDataParallel")
    print("losses of two processes equal those of DistributedDataParallel")


if __name__ == "__main__":
    main()
