#!/usr/bin/env python3
"""Median regrets of tuners after 100 trials, beside Optuna's where Python has it.

    tests/benchmarks/regrets.py build/release/tests/treadle-plugin-tuners-tests

Prints a table: the median of 20 seeds, with the quartiles. "lag 4" is the default of a search: a
suggestion sees the results of the trials up to the fourth before it, and those between as running.
Optuna is asked in the same way (ask and tell); "tpe, 5's defaults" is its TPE with the options that
Optuna 5 has by default. Debian has it as python3-optuna, for /usr/bin/python3.
"""
import argparse
import math
import os
import re
import statistics
import subprocess
import sys
import warnings

TRIALS = 100
LAGS = (1, 4)
# What `tpe` is to reach with the default lag.
GOALS = {"Branin": 0.030, "Hartmann6": 0.176, "Sphere10": 10.5, "Rosenbrock10": 2383}


def branin(x):
    inner = x[1] - 5.1 / (4 * math.pi**2) * x[0] ** 2 + 5 / math.pi * x[0] - 6
    return inner**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x[0]) + 10


def hartmann6(x):
    a = [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
    p = [[1312, 1696, 5569, 124, 8283, 5886], [2329, 4135, 8307, 3736, 1004, 9991],
         [2348, 1451, 3522, 2883, 3047, 6650], [4047, 8828, 8732, 5743, 1091, 381]]
    return -sum(
        alpha * math.exp(-sum(a[i][j] * (x[j] - 1e-4 * p[i][j]) ** 2 for j in range(6)))
        for i, alpha in enumerate([1.0, 1.2, 3.0, 3.2]))


def sphere(x):
    return sum(v * v for v in x)


def rosenbrock(x):
    return sum(100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2 for i in range(len(x) - 1))


FUNCTIONS = {
    "Branin": (branin, [(-5, 10), (0, 15)], 0.39788735772973816),
    "Hartmann6": (hartmann6, [(0, 1)] * 6, -3.32236801141551),
    "Sphere10": (sphere, [(-5, 5)] * 10, 0),
    "Rosenbrock10": (rosenbrock, [(-5, 5)] * 10, 0),
}


def quantile(values, share):
    values = sorted(values)
    at = share * (len(values) - 1)
    below = math.floor(at)
    return values[below] + (at - below) * (values[min(below + 1, len(values) - 1)] - values[below])


def of_treadle(program):
    """{(function, tuner, lag): (text, seeds)}, by the program of the plugin's tests."""
    out = subprocess.run(
        [program, "--gtest_also_run_disabled_tests", "--gtest_filter=Regrets.DISABLED_Table"],
        capture_output=True, text=True, check=True).stdout
    pattern = r"(\w+) (\w+) lag (\d), (\d+) seeds: median (\S+) \[(\S+) (\S+)\], (\S+) ms a trial"
    found = {}
    for function, tuner, lag, seeds, median, low, high, _ in re.findall(pattern, out):
        found[function, tuner, int(lag)] = (float(median), float(low), float(high), int(seeds))
    return found


def of_optuna(optuna, function, seed, lag, options):
    value, bounds, minimum = FUNCTIONS[function]
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed, **options))
    space = {f"x{d:02}": optuna.distributions.FloatDistribution(low, high) for d, (low, high) in enumerate(bounds)}
    best = math.inf
    running = []

    def tell():
        nonlocal best
        trial = running.pop(0)
        result = value([trial.params[name] for name in space])
        best = min(best, result)
        study.tell(trial, result)

    for _ in range(TRIALS):
        if len(running) == lag:
            tell()
        running.append(study.ask(space))
        if lag == 1:
            tell()
    while running:
        tell()
    return best - minimum


def import_optuna():
    try:
        import optuna
    except ImportError:
        return None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    return optuna


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="treadle-plugin-tuners-tests")
    parser.add_argument("--seeds", type=int, default=20, help="of Optuna; the program has its own")
    arguments = parser.parse_args()
    optuna = import_optuna()
    if optuna is None and sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
    rows = of_treadle(arguments.program)
    if optuna is None:
        print("Optuna is not installed (Debian: python3-optuna)")
    else:
        variants = {f"Optuna {optuna.__version__} tpe": {},
                    f"Optuna {optuna.__version__} tpe, 5's defaults": {"multivariate": True, "constant_liar": True}}
        for function in FUNCTIONS:
            for name, options in variants.items():
                for lag in LAGS:
                    print(f"{function}: {name}, lag {lag} …", file=sys.stderr, flush=True)
                    regrets = [of_optuna(optuna, function, seed, lag, options) for seed in range(arguments.seeds)]
                    rows[function, name, lag] = (statistics.median(regrets), quantile(regrets, 0.25),
                                                 quantile(regrets, 0.75), arguments.seeds)
    print(f"| function | tuner | seeds | {' | '.join(f'lag {lag}' for lag in LAGS)} | goal, lag {LAGS[-1]} |")
    print("|---|---|---|" + "---|" * (len(LAGS) + 1))
    for function, tuner in dict.fromkeys((function, tuner) for function, tuner, _ in sorted(
            rows, key=lambda row: list(FUNCTIONS).index(row[0]))):
        cells = ["{:.4g} [{:.4g} {:.4g}]".format(*rows[function, tuner, lag][:3]) for lag in LAGS]
        median, *_, seeds = rows[function, tuner, LAGS[-1]]
        goal = GOALS[function]
        verdict = f"{goal} {'reached' if median <= goal else 'MISSED'}" if tuner == "tpe" else ""
        print(f"| {function} | {tuner} | {seeds} | {' | '.join(cells)} | {verdict} |")


if __name__ == "__main__":
    main()
