#!/usr/bin/env python3
"""Two processes beside one: wall and CPU time of a step, and how far more hosts would carry.

    scripts/benchmark --only mlp-large 1   # builds the workloads' plugins
    tests/benchmarks/processes.py build/release/bin/workflow-runner --rounds 7
    tests/benchmarks/processes.py build/release/bin/workflow-runner --hosts --latency 0.05 --bandwidth 1.25

Three ways in turn, every other round backwards: one worker; two workers in one process; two processes
with one worker each. All train two shards, so with the same bits. The time of a step is the difference
of two lengths of a training, in which start-up and the last save cancel. A spin test tells before and
after whether two cores are free (1.9 of 2); where they are not, only CPU times mean something.

--hosts computes, from a latency (ms, one way) and a bandwidth (GB/s), what 8, 64 and 512 hosts make of
the same steps, by the formula of exchange().
"""
import argparse
import json
import multiprocessing
import os
import pathlib
import random
import resource
import statistics
import struct
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORKLOADS = ["mlp-large", "lenet", "transformer"]
WAYS = ["1 worker", "2 workers", "2 processes"]


def spin(seconds):
    begin, count = time.process_time(), 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        count += 1
    return time.process_time() - begin


def free_cores(seconds=1.0):
    with multiprocessing.Pool(2) as pool:
        return sum(pool.map(spin, [seconds] * 2)) / seconds


def write_npy(path, kind, shape, values):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(values)


class Workload:
    def __init__(self, name, folder):
        self.name = name
        self.folder = folder / name
        self.folder.mkdir()
        self.document = json.loads((ROOT / "tests/benchmarks/workloads" / f"{name}.json").read_text())
        self.about = self.document["extensions"].pop("benchmark")
        self.document["resources"] = {"shards": 2}
        rows, row = self.about["rows"], self.about["row"]
        dice = random.Random(1)
        size = rows
        for one in row:
            size *= one
        block = struct.pack("<4096f", *(dice.gauss(0, 1) for _ in range(4096)))
        write_npy(self.folder / "x.npy", "<f4", [rows] + row, (block * (size // 4096 + 1))[:4 * size])
        classes = [dice.randrange(self.about["classes"]) for _ in range(rows)]
        write_npy(self.folder / "y.npy", "<i8", [rows], struct.pack(f"<{rows}q", *classes))
        training = self.document["training"]
        self.steps = -(-rows * 4 // 5 // training["batch_size"])  # a fifth validates

    def seconds(self, runner, way, epochs):
        """Wall and CPU time of a training."""
        self.document["training"]["epochs"] = epochs
        path = self.folder / "workflow.json"
        path.write_text(json.dumps(self.document))
        command = [runner, "run", path, "-o", self.folder / "runs", "--quiet"]
        if way == "2 processes":
            command = [runner, "launch", "--processes", "2"] + command[1:]
        environment = dict(os.environ, TREADLE_WORKERS="2" if way != "1 worker" else "1")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        begin = time.monotonic()
        subprocess.run(command, check=True, env=environment, cwd=self.folder, stdout=subprocess.DEVNULL)
        wall = time.monotonic() - begin
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def step(self, runner, way, epochs):
        short, long = (self.seconds(runner, way, count) for count in (epochs, 4 * epochs))
        return tuple((b - a) / (3 * epochs * self.steps) for a, b in zip(short, long))

    def gradient_bytes(self):
        model = next((self.folder / "runs").rglob("model.safetensors"))
        with open(model, "rb") as file:
            header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        return sum(part["data_offsets"][1] - part["data_offsets"][0]
                   for name, part in header.items() if name != "__metadata__")


def measure(runner, workload, rounds, epochs):
    times = {way: [] for way in WAYS}
    for number in range(rounds):
        for way in WAYS if number % 2 == 0 else reversed(WAYS):
            times[way].append(workload.step(runner, way, epochs))
    print(f"\n{workload.name}: {workload.about['is']}, 2 shards, {workload.gradient_bytes()} bytes of gradients")
    for way in WAYS:
        wall, cpu = ([one[i] * 1e6 for one in times[way]] for i in (0, 1))
        print(f"  {way:12} {statistics.median(wall):10.0f} us a step ({min(wall):.0f}-{max(wall):.0f}),"
              f" {statistics.median(cpu):.0f} us of CPU")
    for peer, goal in (("1 worker", 0.75), ("2 workers", 1.15)):
        ratios = [mine[0] / its[0] for mine, its in zip(times["2 processes"], times[peer])]
        cpu = [mine[1] / its[1] for mine, its in zip(times["2 processes"], times[peer])]
        print(f"  2 processes beside {peer}: {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
              f" of the wall time, goal {goal}; {statistics.median(cpu):.2f} of the CPU time")
    return statistics.median(one[0] for one in times["1 worker"])


def exchange(hosts, size, latency, bandwidth):
    """Seconds of an exchange: small gradients in one message, others in two rounds of slices."""
    if size <= 65536:
        return latency + (hosts - 1) * size / bandwidth
    return 3 * latency + 2 * (1 - 1 / hosts) * size / bandwidth


def carry(name, step, size, latency, bandwidth):
    print(f"\n{name}: {step * 1e3:.2f} ms a step on one core, {size / 1e6:.2f} MB of gradients")
    print("  hosts | one batch divided: ms, times as fast | a batch for each host: ms, of the ideal")
    for hosts in (2, 8, 64, 512):
        sent = exchange(hosts, size, latency, bandwidth)
        divided = step / hosts + sent
        each = step + sent
        print(f"  {hosts:5} | {divided * 1e3:8.2f} {step / divided:6.1f} | {each * 1e3:8.2f} {step / each:5.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runner", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--epochs", type=int, default=1, help="of the shorter training")
    parser.add_argument("--only", action="append", choices=WORKLOADS)
    parser.add_argument("--hosts", action="store_true")
    parser.add_argument("--latency", type=float, default=0.05, help="one way, ms")
    parser.add_argument("--bandwidth", type=float, default=1.25, help="GB/s")
    options = parser.parse_args()
    plugins = ROOT / "build/release/benchmarks/plugins/plugins"
    os.environ["TREADLE_PLUGIN_PATH"] = os.environ.get("TREADLE_PLUGIN_PATH", str(plugins))
    print(f"spin test before: {free_cores():.2f} of 2 cores")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.only or WORKLOADS:
            workload = Workload(name, pathlib.Path(folder))
            step = measure(options.runner, workload, options.rounds, options.epochs)
            if options.hosts:
                carry(name, step, workload.gradient_bytes(), options.latency / 1e3, options.bandwidth * 1e9)
    print(f"\nspin test after: {free_cores():.2f} of 2 cores")


if __name__ == "__main__":
    main()
