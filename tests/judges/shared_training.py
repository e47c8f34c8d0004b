"""What judges of trainings by several processes share: a document, its bits, and the processes at work."""
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNNER = ROOT / "build/release/bin/workflow-runner"
SHARDS = 4
PLACES = ("TREADLE_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK")


def build(*options):
    """The product, with what these options of scripts/setup install."""
    for command in (["scripts/setup", *options], ["scripts/configure"]):
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    jobs = subprocess.run(["scripts/jobs"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
    subprocess.run(["cmake", "--build", "build/release", "--target", "product", "-j", jobs, "--", "--quiet"], cwd=ROOT, check=True)


def environment():
    """Without the place of a launcher that started the judge."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TREADLE_", "SLURM_", "OMPI_", "PMI"))}
    return kept | {"OMP_NUM_THREADS": "1"}


def write_document(path, epochs, every="40st"):
    """Dropout, batch normalization and clipping, so that most of what could differ does."""
    path.write_text(json.dumps({
        "treadle": 1, "name": "shared", "seed": 5,
        "data": {"use": "moons", "rows": 600, "noise": 0.2},
        "transforms": [{"use": "standardize"}],
        "validation": {"use": "hold_out", "fraction": 0.2},
        "model": {"use": "mlp", "hidden": [32], "norm": "batch", "dropout": 0.2},
        "optimizer": {"use": "adamw", "learning_rate": 0.003},
        "training": {"use": "standard", "epochs": epochs, "batch_size": 32, "clip": {"norm": 1.0},
                     "checkpoint": {"every": every}},
        "resources": {"shards": SHARDS, "workers": 1},
    }))
    return path


def run_in(output):
    """The run in a folder of runs; None: there is none yet."""
    runs = sorted(pathlib.Path(output).glob("*/")) if pathlib.Path(output).is_dir() else []
    return runs[-1] if runs else None


def bits(run):
    """Of the weights, and of the history without its last column, the seconds."""
    digest = hashlib.sha256((run / "model.safetensors").read_bytes())
    for line in (run / "history.csv").read_text().splitlines():
        digest.update(line.rpartition(",")[0].encode())
    return digest.hexdigest()[:16]


def rows(run):
    try:
        return max(len((run / "history.csv").read_text().splitlines()) - 1, 0)
    except OSError:
        return 0


def await_rows(output, count, process, seconds=120):
    """Until the run has so many rows of history. False: the process ended before, or it took too long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        run = run_in(output)
        if run and rows(run) >= count:
            return True
        if process.poll() is not None:
            return False
        time.sleep(0.01)
    return False


def ranks(output):
    """Processes by rank: those of the runner that have `output` among their words, or resume a run in it."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if not words[0].endswith("workflow-runner") or words[1:2] == ["launch"]:
                continue
            if not any(word.startswith(str(output)) for word in words):
                continue
            variables = dict(one.split("=", 1) for one in (entry / "environ").read_bytes().decode(errors="replace").split("\0")
                             if "=" in one)
            if (entry / "stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                continue
        except (OSError, IndexError):
            continue
        rank = next((variables[name] for name in PLACES if name in variables), None)
        if rank is not None:
            found[int(rank)] = int(entry.name)
    return found


def await_ranks(output, count, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = ranks(output)
        if len(found) >= count:
            return found
        time.sleep(0.005)
    return ranks(output)


def await_end(pids, seconds):
    """How long until all these processes had ended; None: some live on."""
    begin = time.monotonic()
    left = set(pids)
    while time.monotonic() < begin + seconds:
        left = {pid for pid in left if is_alive(pid)}
        if not left:
            return time.monotonic() - begin
        time.sleep(0.005)
    return None


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def kill(pid, number=signal.SIGKILL):
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


class Verdict:
    """Counts what holds, prints what does not."""

    def __init__(self, name):
        self.name, self.held, self.broken = name, 0, []

    def expect(self, holds, claim, details=""):
        if holds:
            self.held += 1
        else:
            self.broken.append(claim)
            print(f"  FAILED: {claim} {details}".rstrip(), flush=True)
        return holds

    def end(self):
        print(f"{self.name}: {self.held} claims hold, {len(self.broken)} do not")
        sys.exit(1 if self.broken else 0)
