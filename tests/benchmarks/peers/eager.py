#!/usr/bin/env python3
"""The loop that people write with PyTorch: eager, with --compile through torch.compile, or with --capture as a CUDA graph.

Prints a line of JSON as by-hand does: the mean training loss of each epoch, microseconds per step, the moment of the
first step's end (nanoseconds of CLOCK_MONOTONIC).
"""
import sys
import time

from workload import Workload, arguments, load_weights, not_here, report

import torch


def train(workload, network, epochs, shuffle, device, capture):
    x, y = torch.from_numpy(workload.x).to(device), torch.from_numpy(workload.y).to(device)
    criterion = workload.criterion()
    on_host = device.type == "cpu"
    optimizer = torch.optim.Adam(network.parameters(), lr=workload.learning_rate, **({} if on_host else {"capturable": capture}))
    rows = workload.training_rows

    def step(inputs, targets):
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(network(inputs), targets)
        loss.backward()
        optimizer.step()
        return loss

    if capture:
        step = Captured(step, optimizer, network)
    losses, steps, first_step = [], 0, 0
    for _ in range(epochs):
        order = (torch.randperm(rows) if shuffle else torch.arange(rows)).to(device)
        total = 0.0 if on_host else torch.zeros((), dtype=torch.float64, device=device)
        for begin in range(0, rows, workload.batch_size):
            batch = order[begin:begin + workload.batch_size]
            loss = step(x.index_select(0, batch), y.index_select(0, batch))
            total += (loss.item() if on_host else loss.detach()) * len(batch)
            steps += 1
            if steps == 1:  # it allocates, and compiles, everything: it belongs to the start
                first_step = time.monotonic_ns()
        losses.append(float(total) / rows)
    seconds = (time.monotonic_ns() - first_step) * 1e-9
    report(losses=losses, microseconds_per_step=seconds * 1e6 / max(steps - 1, 1), first_step=first_step)


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--compile", metavar="MODE", help="through torch.compile in this mode")
    parser.add_argument("--device", default="cpu", type=torch.device)
    parser.add_argument("--capture", action="store_true", help="whole steps as CUDA graphs, one for each size of batch")
    options = parser.parse_args()
    if options.compile and not hasattr(torch, "compile"):
        not_here(f"torch {torch.__version__} has no torch.compile")
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    workload = Workload(options.folder, options.double)
    network = workload.network()
    if options.weights:
        load_weights(network, options.weights)
    if options.device.type == "cuda" and not torch.cuda.is_available():
        not_here("PyTorch finds no CUDA device")
    if options.capture and options.device.type != "cuda":
        not_here("CUDA graphs are for CUDA devices")
    network = network.to(options.device)
    if options.compile:
        network = compiled(network, workload, options.compile, options.device)
    train(workload, network, options.epochs or workload.epochs, options.shuffle, options.device, options.capture)


class Captured:
    """A step as a CUDA graph, as PyTorch's documentation shows it: warm-up on another stream, static inputs."""

    def __init__(self, step, optimizer, network):
        self.step, self.optimizer, self.network = step, optimizer, network
        self.graphs = {}

    def __call__(self, inputs, targets):
        if len(inputs) not in self.graphs:
            self.graphs[len(inputs)] = self.record(inputs, targets)
        graph, x, y, loss = self.graphs[len(inputs)]
        x.copy_(inputs)
        y.copy_(targets)
        graph.replay()
        return loss

    def record(self, inputs, targets):
        """Warming up trains: weights and moments are put back."""
        before = [p.detach().clone() for p in self.network.parameters()]
        moments = {k: {n: v.clone() for n, v in s.items()} for k, s in self.optimizer.state.items()}
        x, y = inputs.clone(), targets.clone()
        beside = torch.cuda.Stream()
        beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(beside):
            for _ in range(3):
                self.step(x, y)
        torch.cuda.current_stream().wait_stream(beside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss = self.step(x, y)
        with torch.no_grad():
            for parameter, old in zip(self.network.parameters(), before):
                parameter.copy_(old)
                for name, value in self.optimizer.state[parameter].items():
                    if parameter in moments:
                        value.copy_(moments[parameter][name])
                    else:
                        value.zero_()
        return graph, x, y, loss


def compiled(network, workload, mode, device):
    """Tries it on a batch, whose gradients are forgotten: a compiler or its headers may be missing."""
    network = torch.compile(network, mode=mode)
    try:
        network(torch.from_numpy(workload.x[:workload.batch_size]).to(device)).sum().backward()
    except Exception as error:  # whatever the compiler's many parts throw
        not_here(f"torch.compile does not work here: {type(error).__name__}: {str(error).strip().splitlines()[0]}")
    network.zero_grad(set_to_none=True)
    return network


if __name__ == "__main__":
    sys.exit(main())
