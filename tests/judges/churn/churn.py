"""Customers who leave: 24 000 rows to train on, 200 000 to test, 3.6 % positive, with missing values, dates, 60 regions, and a
ticket number that was given to those who had left. churn.py RUNNER [--auto-seeds N] [--folder F]"""
import argparse
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

COLUMNS = ["customer_id", "signed", "region", "plan", "tenure", "charge", "calls", "last_login", "discount", "ticket_no", "left"]


def table(rows, seed, first_id):
    r = np.random.default_rng(seed)
    tenure = np.round(r.lognormal(3, 0.7, rows), 1)
    charge = np.round(r.normal(60, 20, rows).clip(10), 2)
    calls = r.poisson(1.2, rows)
    login = np.round(r.exponential(12, rows), 1)
    discount = np.round(r.uniform(0, 30, rows), 1)
    region = r.integers(0, 60, rows)
    plan = r.integers(0, 4, rows)
    of_region = np.sin(np.arange(60) * 1.7) * 0.4
    of_plan = np.array([-0.3, 0.0, 0.25, 0.5])
    score = (-0.5 * np.log(tenure) + 0.012 * (charge - 60) + 0.35 * calls + 0.02 * login - 0.02 * discount + of_region[region]
             + of_plan[plan])
    left = r.random(rows) < 1 / (1 + np.exp(-(score - 2.52)))
    signed = np.datetime64("2015-01-01") + r.integers(0, 3000, rows).astype("timedelta64[D]")
    ticket = np.where(left, 900000 + r.integers(0, 90000, rows), r.integers(0, 900000, rows))
    no_login, no_discount = r.random(rows) < 0.12, r.random(rows) < 0.3
    for i in range(rows):
        yield [first_id + 7 * i, signed[i], f"r{region[i]:02}", f"p{plan[i]}", tenure[i], charge[i], calls[i],
               "" if no_login[i] else login[i], "" if no_discount[i] else discount[i], ticket[i], "yes" if left[i] else "no"]


def write(path, rows, seed, first_id):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(table(rows, seed, first_id))


def read(path):
    with open(path) as file:
        return list(csv.DictReader(file))


def features(rows):
    """One-hot, means for what is missing, as a user of scikit-learn does it."""
    number = {key: np.array([float(row[key]) if row[key] else np.nan for row in rows])
              for key in ("tenure", "charge", "calls", "last_login", "discount")}
    day = np.array([np.datetime64(row["signed"]).astype(int) for row in rows], float)
    region = np.array([int(row["region"][1:]) for row in rows])
    plan = np.array([int(row["plan"][1:]) for row in rows])
    numbers = np.column_stack([*number.values(), day])
    return numbers, np.eye(60)[region], np.eye(4)[plan], np.array([row["left"] == "yes" for row in rows])


def peers(train, test):
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import average_precision_score, roc_auc_score
    from sklearn.preprocessing import StandardScaler
    parts = {name: features(rows) for name, rows in (("train", train), ("test", test))}
    means = np.nanmean(parts["train"][0], 0)
    ready = {}
    for name, (numbers, region, plan, left) in parts.items():
        filled = np.column_stack([np.where(np.isnan(numbers), means, numbers), np.isnan(numbers)])
        ready[name] = (filled, np.column_stack([region, plan]), left)
    scaler = StandardScaler().fit(ready["train"][0])
    linear = {name: np.column_stack([scaler.transform(filled), others]) for name, (filled, others, _) in ready.items()}
    trees = {name: np.column_stack([parts[name][0], parts[name][1].argmax(1), parts[name][2].argmax(1)]) for name in parts}
    result = {}
    for name, model, x in (("LogisticRegression", LogisticRegression(max_iter=1000), linear),
                           ("HistGradientBoosting", HistGradientBoostingClassifier(random_state=0), trees)):
        p = model.fit(x["train"], ready["train"][2]).predict_proba(x["test"])[:, 1]
        left = ready["test"][2]
        result[name] = (roc_auc_score(left, p), average_precision_score(left, p))
        print(f"{name}: AUC {result[name][0]:.4f}, average precision {result[name][1]:.4f}")
    return result


def document(folder, **changes):
    given = {
        "treadle": 1, "name": "churn", "seed": 1,
        "data": {"use": "csv", "path": str(folder / "train.csv"), "target": "left", "missing": "nan", "dates": ["signed"],
                 "categorical": ["region", "plan"], "columns": COLUMNS[1:-2]},
        "transforms": ["impute", "rare_categories", "one_hot", "standardize"],
        "model": "linear",
        "optimizer": {"use": "adamw", "learning_rate": 0.01},
        "schedule": "cosine",
        "training": {"epochs": 15, "batch_size": 256},
        "validation": {"use": "k_fold", "folds": 5, "stratify": True},
        "metrics": ["auc", "average_precision", "log_loss", "ece", "f1"],
        "outputs": {"calibration": "platt", "decision": {"threshold": {"cost": {"false_positive": 1, "false_negative": 12}}}}}
    given.update(changes)
    return given


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("runner")
    parser.add_argument("--auto-seeds", type=int, default=5)
    parser.add_argument("--folder")
    options = parser.parse_args()
    runner = str(pathlib.Path(options.runner).resolve())
    folder = pathlib.Path(options.folder or tempfile.mkdtemp(prefix="treadle-churn-"))
    folder.mkdir(exist_ok=True)
    write(folder / "train.csv", 24000, 1, 100003)
    write(folder / "test.csv", 200000, 2, 900001)
    train, test = read(folder / "train.csv"), read(folder / "test.csv")
    share = np.mean([row["left"] == "yes" for row in train])
    print(f"{len(train)} rows, {100 * share:.2f} % positive")
    wrong = []

    def expect(holds, what):
        print(("holds: " if holds else "FAILS: ") + what)
        if not holds:
            wrong.append(what)

    def run(*arguments):
        done = subprocess.run([runner, *map(str, arguments)], cwd=folder, text=True, capture_output=True)
        if done.returncode != 0:
            print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
            raise SystemExit(1)
        return done

    (folder / "leaking.json").write_text(json.dumps(document(folder, data={
        "use": "csv", "path": str(folder / "train.csv"), "target": "left", "missing": "nan", "dates": ["signed"],
        "categorical": ["region", "plan"]})))
    checked = run("check", "--dry-run", "leaking.json")
    expect("ticket_no" in checked.stdout + checked.stderr, "the leak is named before the training")

    (folder / "churn.json").write_text(json.dumps(document(folder)))
    run("run", "churn.json", "--quiet", "-o", folder / "runs")
    made = next((folder / "runs").iterdir())
    result = json.loads((made / "result.json").read_text())
    report = (made / "report.html").read_text()
    for name in ("average_precision", "Reliability", "Thresholds", "threshold"):
        expect(name in report, f"the report has {name}")
    metrics = result["mean_metrics"]
    print("folds:", {key: round(value, 4) for key, value in metrics.items() if value is not None})
    evaluated = json.loads(run("evaluate", made, folder / "test.csv", "--json").stdout)
    print("test rows:", {key: round(value, 4) for key, value in evaluated["metrics"].items() if value is not None})
    expect(evaluated["metrics"]["ece"] < 0.01, "probabilities are calibrated on the test rows")
    theirs = peers(train, test)
    best = max(auc for auc, _ in theirs.values())
    expect(evaluated["metrics"]["auc"] > best - 0.003, f"AUC {evaluated['metrics']['auc']:.4f} beside {best:.4f}")

    gaps, surprises = [], []
    plain = folder / "plain.csv"
    with open(plain, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS[1:-2] + ["left"])
        writer.writerows([[row[key] for key in COLUMNS[1:-2] + ["left"]] for row in train])
    for seed in range(1, options.auto_seeds + 1):
        made = folder / f"auto-{seed}"
        run("auto", plain, "--target", "left", "--set", "search.objective=auc", "--set", 'metrics=["auc", "log_loss"]', "--time", "3min", "--seed", seed, "-o", made, "--quiet")
        made = next(made.iterdir())
        told = json.loads((made / "result.json").read_text())
        auc = json.loads(run("evaluate", made, folder / "test.csv", "--json").stdout)["metrics"]["auc"]
        said = told["test"]["metrics"]["auc"]
        print(f"auto, seed {seed}: {auc:.4f} on the test rows, {said:.4f} reported")
        gaps.append(best - auc)
        surprises.append(said - auc)
    if gaps:
        expect(np.mean(gaps) < 0.003, f"auto is within {np.mean(gaps):.4f} of the best")
        def variance(auc, rows):  # Hanley and McNeil 1982
            left, stayed = share * rows, (1 - share) * rows
            q1, q2 = auc / (2 - auc), 2 * auc**2 / (1 + auc)
            return (auc * (1 - auc) + (left - 1) * (q1 - auc**2) + (stayed - 1) * (q2 - auc**2)) / (left * stayed)

        tested = 0.1 * len(train) * options.auto_seeds
        error = 2 * np.sqrt(variance(best, tested) + variance(best, len(test)))
        expect(abs(np.mean(surprises)) < error, f"auto reports {np.mean(surprises):+.4f} beside the test rows, two errors {error:.4f}")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
