#!/usr/bin/env python3
"""The loop that people write with PyTorch: eager, or with --compile through torch.compile.

Prints a line of JSON as by-hand does: the mean training loss of each epoch, microseconds per step, the moment of the
first step's end (nanoseconds of CLOCK_MONOTONIC).
"""
import sys
import time

from workload import Workload, arguments, load_weights, not_here, report

import torch


def train(workload, network, epochs, shuffle):
    x, y = torch.from_numpy(workload.x), torch.from_numpy(workload.y)
    criterion = workload.criterion()
    optimizer = torch.optim.Adam(network.parameters(), lr=workload.learning_rate)
    rows = workload.training_rows
    losses, steps, first_step = [], 0, 0
    for _ in range(epochs):
        order = torch.randperm(rows) if shuffle else torch.arange(rows)
        total = 0.0
        for begin in range(0, rows, workload.batch_size):
            batch = order[begin:begin + workload.batch_size]
            optimizer.zero_grad(set_to_none=True)
            loss = criterion(network(x.index_select(0, batch)), y.index_select(0, batch))
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
            steps += 1
            if steps == 1:  # it allocates, and compiles, everything: it belongs to the start
                first_step = time.monotonic_ns()
        losses.append(total / rows)
    seconds = (time.monotonic_ns() - first_step) * 1e-9
    report(losses=losses, microseconds_per_step=seconds * 1e6 / max(steps - 1, 1), first_step=first_step)


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--compile", action="store_true", help="through torch.compile")
    options = parser.parse_args()
    if options.compile and not hasattr(torch, "compile"):
        not_here(f"torch {torch.__version__} has no torch.compile")
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    workload = Workload(options.folder, options.double)
    network = workload.network()
    if options.weights:
        load_weights(network, options.weights)
    if options.compile:
        network = compiled(network, workload)
    train(workload, network, options.epochs or workload.epochs, options.shuffle)


def compiled(network, workload):
    """Tries it on a batch, whose gradients are forgotten: a compiler or its headers may be missing."""
    network = torch.compile(network)
    try:
        network(torch.from_numpy(workload.x[:workload.batch_size])).sum().backward()
    except Exception as error:  # whatever the compiler's many parts throw
        not_here(f"torch.compile does not work here: {type(error).__name__}: {str(error).strip().splitlines()[0]}")
    network.zero_grad(set_to_none=True)
    return network


if __name__ == "__main__":
    sys.exit(main())
