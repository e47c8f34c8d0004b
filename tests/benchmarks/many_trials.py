#!/usr/bin/env python3
"""A thousand trials of a tiny model: what a second worker saves, and what ended trials leave in memory.

    tests/benchmarks/many_trials.py build/release/bin/workflow-runner --rounds 3

Prints the wall time of one worker and of two, in turns, and their ratio in each round; and RssAnon of
the process with one worker when 100 trials have ended, and before the last one has. The time between
trials is what tuner, journal and scheduling cost; with --rows and --epochs trials get longer:

    tests/benchmarks/many_trials.py build/release/bin/workflow-runner --trials 30 --rows 20000 --epochs 12
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

DOCUMENT = {
    "treadle": 1,
    "name": "many",
    "data": {"use": "moons", "rows": 200, "noise": 0.2},
    "model": {"use": "mlp", "hidden": [8]},
    "optimizer": {"use": "adamw", "learning_rate": 0.01},
    "training": {"use": "standard", "epochs": 5, "batch_size": 16},
    "validation": {"use": "hold_out", "fraction": 0.25},
    "search": {
        "tuner": {"use": "tpe"},
        "space": {
            "optimizer.learning_rate": {"log_uniform": [1e-4, 1e-1]},
            "optimizer.weight_decay": {"log_uniform": [1e-6, 1e-1]},
        },
    },
}


def anonymous_kibibytes(pid):
    try:
        for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1])
    except OSError:
        pass
    return 0


def ended_trials(journal):
    """The wall times of the trials that have ended, and that of the search."""
    jobs = [json.loads(line)["system_attr"]["treadle:job"]
            for line in journal.read_text().splitlines() if '"treadle:job"' in line]
    return [job["seconds"] for job in jobs], max(job["elapsed"] for job in jobs)


class Search:
    """One search: its wall time, its study, and RssAnon as its trials end."""

    def __init__(self, runner, trials, workers, epochs, rows):
        document = json.loads(json.dumps(DOCUMENT))
        document["search"]["trials"] = trials
        document["resources"] = {"workers": workers}
        document["training"]["epochs"] = epochs
        document["data"]["rows"] = rows
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            path = folder / "document.json"
            path.write_text(json.dumps(document))
            begin = time.monotonic()
            process = subprocess.Popen([runner, "tune", path, "-o", folder / "runs", "-q"])
            self.memory = {}
            while process.poll() is None:
                journal = next(iter(folder.glob("runs/*/search.journal")), None)
                ended = journal.read_text().count('"treadle:job"') if journal else 0
                if ended > max(self.memory, default=0):
                    self.memory[ended] = anonymous_kibibytes(process.pid)
                time.sleep(0.1)
            self.seconds = time.monotonic() - begin
            if process.returncode != 0:
                raise SystemExit(f"{runner} ended with {process.returncode}")
            run = next(iter(folder.glob("runs/*")))
            self.study = json.dumps(json.loads((run / "result.json").read_text())["search"])
            self.trial_seconds, self.searching = ended_trials(run / "search.journal")

    def memory_after(self, trials):
        """In MiB. Once all have ended, the best is trained and the report made."""
        last = max(number for number in self.memory if number < len(self.trial_seconds))
        return self.memory[min((number for number in self.memory if number >= trials), default=last)] / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runner")
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--rows", type=int, default=200)
    arguments = parser.parse_args()
    ratios = []
    for number in range(arguments.rounds):
        found = {}
        for workers in (1, 2) if number % 2 == 0 else (2, 1):
            found[workers] = Search(arguments.runner, arguments.trials, workers, arguments.epochs, arguments.rows)
        one, two = found[1], found[2]
        ratios.append(two.seconds / one.seconds)
        early, late = one.memory_after(arguments.trials // 10), one.memory_after(arguments.trials - 1)
        trial = statistics.mean(one.trial_seconds)
        between = (one.searching - sum(one.trial_seconds)) / arguments.trials
        print(f"round {number + 1}: {one.seconds:.2f} s with one worker, {two.seconds:.2f} s with two "
              f"({ratios[-1]:.3f}); {'the same study' if one.study == two.study else 'ANOTHER STUDY'}; "
              f"RssAnon {early:.1f} MiB after {arguments.trials // 10} trials, {late:.1f} after {arguments.trials} "
              f"(+{100 * (late / early - 1):.1f} %); a trial {1000 * trial:.1f} ms, "
              f"between two {1000 * between:.2f} ms ({100 * between / trial:.2f} %)", flush=True)
    print(f"median: two workers take {statistics.median(ratios):.3f} of the time of one")


if __name__ == "__main__":
    main()
