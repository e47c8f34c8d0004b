"""What scikit-learn makes of the cases of metric_cases.h.

    /usr/bin/python3 scikit_learn.py > scikit_learn.json

writes the cases that scikit_learn_test.cpp compares with, made with scikit-learn 1.2.1. The judge
tests/judges/metrics takes expected() for random ones.

Weights are multiples of 1/4: a function of scikit-learn that takes no weights gets each position 4
times its weight often.
"""
import json
import math
import sys
import warnings

import numpy as np
from sklearn import metrics as m
from sklearn.calibration import calibration_curve
from sklearn.exceptions import UndefinedMetricWarning

UNIT = 0.25
UNDEFINED = "undefined"


class Case:
    """A case as arrays, without the positions that have no weight."""

    def __init__(self, case):
        self.kind = case["kind"]
        self.classes = case.get("classes") or []
        self.values = np.array(case["values"], dtype=float)
        self.y = np.array(case["targets"], dtype=int if self.kind == "classes" else float)
        count = len(self.y)
        self.w = np.ones(count) if case.get("weights") is None else np.array(case["weights"], dtype=float)
        self.logits = None if case.get("logits") is None else np.array(case["logits"], dtype=float)
        self.decision = None if case.get("decision") is None else np.array(case["decision"])
        self.extras = {name: np.array(values, dtype=float) for name, values in (case.get("extras") or {}).items()}
        counted = self.w > 0
        for name in ("values", "y", "w", "logits", "decision"):
            if getattr(self, name) is not None:
                setattr(self, name, getattr(self, name)[counted])
        self.extras = {name: values[counted] for name, values in self.extras.items()}
        if self.kind == "classes":
            self.guess = self.values.argmax(1) if self.decision is None else self.decision
            self.is_of = np.arange(len(self.classes)) == self.y[:, None]
            self.is_guess = np.arange(len(self.classes)) == self.guess[:, None]
        elif self.kind == "labels":
            self.is_of = self.y > 0.5
            self.is_guess = self.values > 0.5 if self.decision is None else self.decision.astype(bool)

    @property
    def repeats(self):
        return np.round(self.w / UNIT).astype(int)

    def scores(self):
        """What classes are ranked by: log-odds of logits, else probabilities."""
        if self.logits is None:
            return self.values
        z = self.logits
        if self.kind == "labels":
            return z
        if z.shape[1] == 1:
            return np.concatenate([-z, z], axis=1)
        columns = [z[:, c] - np.logaddexp.reduce(np.delete(z, c, axis=1), axis=1) for c in range(z.shape[1])]
        return np.stack(columns, axis=1)


def defined(compute):
    """The value, or UNDEFINED where scikit-learn raises or warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            value = float(compute())
        except (ValueError, UndefinedMetricWarning, RuntimeWarning, UserWarning):
            return UNDEFINED
    return UNDEFINED if math.isnan(value) else value


def average(values, weights):
    """The mean of those that are defined."""
    pairs = [(value, weight) for value, weight in zip(values, weights) if value != UNDEFINED and weight > 0]
    if not pairs:
        return UNDEFINED
    return np.average([value for value, _ in pairs], weights=[weight for _, weight in pairs])


def class_score(score, divisor):
    """`score(actual, predicted, options, **more)` of a class, or its average. `divisor(actual, predicted)`: with the sum of
    these weights at 0, an average has no meaning."""

    def compute(case, options):
        chosen, how = choice(case, options)
        if chosen is not None:
            return defined(lambda: score(case.is_of[:, chosen], case.is_guess[:, chosen], options, sample_weight=case.w))
        actual, guessed = case.is_of.sum(), case.is_guess.sum()
        if divisor(actual, guessed) == 0 or how == "weighted" and actual == 0:
            return UNDEFINED
        of_all = (case.y, case.is_guess) if case.kind == "labels" else (case.y, case.guess)
        return score(*of_all, options, sample_weight=case.w, labels=np.flatnonzero(occurring(case)), average=how,
                     zero_division=0)

    return compute


def occurring(case):
    return np.ones(len(case.classes), bool) if case.kind == "labels" else (case.is_of | case.is_guess).any(0)


def specificity(case, options):
    chosen, how = choice(case, options)
    if chosen is not None:
        return defined(lambda: m.recall_score(~case.is_of[:, chosen], ~case.is_guess[:, chosen], sample_weight=case.w))
    occur = occurring(case)
    # [negatives that are right, negatives] of each class
    tables = m.multilabel_confusion_matrix(case.is_of, case.is_guess, sample_weight=case.w)[occur]
    right, negatives, positives = tables[:, 0, 0], tables[:, 0].sum(1), tables[:, 1].sum(1)
    if negatives.sum() == 0:
        return UNDEFINED
    if how == "micro":
        return right.sum() / negatives.sum()
    each = np.divide(right, negatives, out=np.zeros_like(right), where=negatives > 0)
    weights = positives if how == "weighted" else np.ones(len(each))
    return np.average(each, weights=weights) if weights.sum() > 0 else UNDEFINED


def choice(case, options):
    """The class, or how to average."""
    if "class" in options:
        return case.classes.index(options["class"]), None
    if "average" not in options and case.kind == "classes" and len(case.classes) == 2:
        return 1, None
    return None, options.get("average", "macro")


def average_precision(case, options):
    chosen, how = choice(case, options)
    scores = case.scores()
    one = lambda c: defined(lambda: m.average_precision_score(case.is_of[:, c], scores[:, c], sample_weight=case.w))
    if chosen is not None:
        return one(chosen)
    if how == "micro":
        return defined(lambda: m.average_precision_score(case.is_of.ravel(), scores.ravel(),
                                                         sample_weight=np.repeat(case.w, scores.shape[1])))
    supports = (case.is_of * case.w[:, None]).sum(0)
    return average([one(c) for c in range(scores.shape[1])], supports if how == "weighted" else (supports > 0) * 1.0)


def auc(case, options):
    scores = case.scores()
    columns = [1] if len(case.classes) == 2 else range(len(case.classes))
    return average([defined(lambda c=c: m.roc_auc_score(case.is_of[:, c], scores[:, c], sample_weight=case.w))
                    for c in columns], np.ones(len(case.classes)))


def mcc(case, options):
    if len(np.unique(case.y)) == 1:
        return UNDEFINED
    return m.matthews_corrcoef(case.y, case.guess, sample_weight=case.w)


def balanced_accuracy(case, options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of classes that are predicted only, which it leaves out
        return m.balanced_accuracy_score(case.y, case.guess, sample_weight=case.w)


def cohen_kappa(case, options):
    weights = options.get("weights", "none")
    return defined(lambda: m.cohen_kappa_score(case.y, case.guess, labels=range(len(case.classes)),
                                               weights=None if weights == "none" else weights, sample_weight=case.w))


def brier(case, options):
    columns = [1] if len(case.classes) == 2 else range(len(case.classes))
    return sum(m.brier_score_loss(case.is_of[:, c], case.values[:, c], sample_weight=case.w, pos_label=True)
               for c in columns)


def top_k(case, options):
    scores = case.values.copy()
    scores[np.arange(len(scores)), case.guess] = 2
    classes = scores.shape[1]
    if classes == 2:  # k is 1
        return m.accuracy_score(case.y, case.guess, sample_weight=case.w)
    # scikit-learn takes the last of equals first.
    return m.top_k_accuracy_score(classes - 1 - case.y, scores[:, ::-1], k=options.get("k", 2),
                                  labels=np.arange(classes), sample_weight=case.w)


def bins_of(case, options):
    """Rows of confidence, accuracy and weight, for bins that have some."""
    confidence = np.repeat(case.values[np.arange(len(case.y)), case.guess], case.repeats)
    right = np.repeat(case.guess == case.y, case.repeats)
    bins = options.get("bins", 15)
    if options.get("strategy", "uniform") == "uniform":
        accuracy, mean = calibration_curve(right, confidence, n_bins=bins, pos_label=True)
        inner = np.linspace(0, 1, bins + 1)[1:-1]
    else:
        # scikit-learn interpolates between confidences; this takes those that occur (inverted_cdf).
        ascending = np.sort(confidence)
        inner = ascending[[-(-i * len(ascending) // bins) - 1 for i in range(1, bins)]]
        accuracy = mean = None
    index = np.searchsorted(inner, confidence)
    counts = np.bincount(index, minlength=bins)
    some = counts > 0
    if accuracy is None:
        accuracy = np.bincount(index, right, minlength=bins)[some] / counts[some]
        mean = np.bincount(index, confidence, minlength=bins)[some] / counts[some]
    return np.stack([mean, accuracy, counts[some] * UNIT], axis=1)


def ece(case, options):
    confidence, accuracy, weight = bins_of(case, options).T
    return np.average(np.abs(confidence - accuracy), weights=weight)


def reliability(case, options):
    return bins_of(case, options).tolist()


def score_histogram(case, options):
    of = [np.histogram(case.values[case.y == c, 1], bins=20, range=(0, 1), weights=case.w[case.y == c])[0] for c in (0, 1)]
    edges = np.arange(21) / 20
    return np.stack([edges[:-1], edges[1:], *of], axis=1).tolist()


def thresholds(case, options):
    p, y, w = case.values[:, 1], case.y, case.w

    def row(threshold):
        guess = p >= threshold
        tn, fp, fn, tp = m.confusion_matrix(y, guess, labels=[0, 1], sample_weight=w).ravel()
        number = lambda compute: "nan" if defined(compute) == UNDEFINED else defined(compute)
        correlation = lambda: m.matthews_corrcoef(y, guess, sample_weight=w) if len(np.unique(y)) == 2 else math.nan
        cells = [threshold, tp, fp, tn, fn, number(lambda: m.precision_score(y, guess, sample_weight=w)),
                 number(lambda: m.recall_score(y, guess, sample_weight=w)),
                 number(lambda: m.f1_score(y, guess, sample_weight=w)), number(correlation)]
        if "costs" in options:
            cells.append(fp * options["costs"]["false_positive"] + fn * options["costs"]["false_negative"])
        return [cell if isinstance(cell, str) else float(cell) for cell in cells]

    rows = [row(i / 20) for i in range(1, 20)]
    candidates = [row(threshold) for threshold in np.unique(p)[::-1]]
    if y.any():
        rows.append(max(candidates, key=lambda cells: cells[7]))
    if len(np.unique(y)) == 2:
        rows.append(max(candidates, key=lambda cells: cells[8]))
    return rows


def numbers_mean(each):
    return lambda case, options: np.average(each(case).mean(1), weights=case.w)


def deviations(case):
    with np.errstate(all="ignore"):
        percent = np.abs((case.values - case.y) / case.y) * 100
        percent = np.where(np.abs(case.y) < 1e-10, np.abs(case.values - case.y) * 100, percent)
    return np.where(np.isfinite(percent), percent, 100)


def deviation(case, options):
    each = deviations(case)
    weights = np.broadcast_to(case.w[:, None], each.shape)
    return {"deviation": np.average(each, weights=weights),
            "deviation_quality": np.average(np.maximum(0, 100 - each), weights=weights),
            "deviation_failures": weights[each > 100].sum()}


def deviation_buckets(case, options):
    index = np.searchsorted([10, 20, 30, 40, 50, 100], deviations(case))
    weights = np.broadcast_to(case.w[:, None], index.shape)
    return [[count] for count in np.bincount(index.ravel(), weights.ravel(), minlength=7).tolist()]


def quantile_coverage(case, options):
    names = [f"q{level:g}" for level in options.get("quantiles", [0.1, 0.5, 0.9])]
    of = lambda name: case.extras.get(name, case.values)
    share = lambda met: np.average(met.mean(1), weights=case.w)
    values = {"quantile_coverage." + name: share(case.y <= of(name)) for name in names}
    if len(names) > 1:
        values["quantile_coverage"] = share((of(names[0]) <= case.y) & (case.y <= of(names[-1])))
    return values


VALUES = {
    "accuracy": lambda case, options: m.accuracy_score(
        case.is_of if case.kind == "labels" else case.y, case.is_guess if case.kind == "labels" else case.guess,
        sample_weight=case.w),
    "precision": class_score(lambda y, guess, options, **more: m.precision_score(y, guess, **more),
                             lambda actual, guessed: guessed),
    "recall": class_score(lambda y, guess, options, **more: m.recall_score(y, guess, **more),
                          lambda actual, guessed: actual),
    "f1": class_score(lambda y, guess, options, **more: m.f1_score(y, guess, **more),
                      lambda actual, guessed: actual + guessed),
    "f_beta": class_score(lambda y, guess, options, **more: m.fbeta_score(y, guess, beta=options.get("beta", 2), **more),
                          lambda actual, guessed: actual + guessed),
    "specificity": specificity, "average_precision": average_precision, "auc": auc,
    "mcc": mcc, "balanced_accuracy": balanced_accuracy, "cohen_kappa": cohen_kappa, "brier": brier,
    "top_k_accuracy": top_k, "ece": ece,
    "mape": lambda case, options: m.mean_absolute_percentage_error(case.y, case.values, sample_weight=case.w),
    "deviation": deviation, "quantile_coverage": quantile_coverage,
}
TABLES = {"reliability": reliability, "score_histogram": score_histogram, "thresholds": thresholds,
          "deviation": deviation_buckets}
TABLE_NAMES = {"deviation": "deviation_buckets"}


def value_name(document):
    return document["use"] + ("." + document["class"] if "class" in document else "")


def expected(case, document):
    """{"values": {name: number or "undefined"}, "tables": {name: rows}} of all but curves."""
    arrays = Case(case)
    use = document["use"]
    result = {"values": {}, "tables": {}}
    if use in VALUES:
        value = VALUES[use](arrays, document) if len(arrays.y) else UNDEFINED
        if isinstance(value, dict):
            result["values"] = {name: float(number) for name, number in value.items()}
        else:
            result["values"][value_name(document)] = value if value == UNDEFINED else float(value)
    if use in TABLES:
        result["tables"][TABLE_NAMES.get(use, use)] = TABLES[use](arrays, document) if len(arrays.y) else []
    return result


def documents(kind, classes, names):
    """A document for each metric and each of its choices."""
    if kind == "numbers":
        return [{"use": "mape"}, {"use": "deviation"}, {"use": "quantile_coverage"},
                {"use": "quantile_coverage", "quantiles": [0.9]}]
    averages = [{"average": how} for how in ("macro", "micro", "weighted")]
    scores = ("precision", "recall", "f1", "f_beta", "specificity", "average_precision")
    found = [{"use": use, **more} for use in scores for more in [{}, {"class": names[0]}, *averages]]
    found += [{"use": "f_beta", "beta": 0.5}, {"use": "accuracy"}]
    if kind == "labels":
        return found
    found += [{"use": use} for use in ("auc", "mcc", "balanced_accuracy", "brier", "curves")]
    found += [{"use": "cohen_kappa", "weights": weights} for weights in ("none", "linear", "quadratic")]
    found += [{"use": "top_k_accuracy", "k": k} for k in range(1, classes)]
    for use in ("ece", "reliability"):
        found += [{"use": use}, {"use": use, "bins": 5}, {"use": use, "bins": 7, "strategy": "quantile"}]
    if classes == 2:
        found += [{"use": "score_histogram"}, {"use": "thresholds"},
                  {"use": "thresholds", "costs": {"false_positive": 1, "false_negative": 2.5}}]
    return found


def random_case(random, kind=None, rows=None):
    """Weights, ties, absent classes, one class only, padding, decisions and logits come and go."""
    kind = kind or random.choice(["classes", "classes", "classes", "labels", "numbers"])
    rows = rows or int(random.integers(1, 60))
    steps = int(random.choice([0, 0, 2, 5]))
    rows = -(-rows // steps) * steps if steps else rows
    weights = None
    if random.random() < 0.6 or steps:
        weights = (random.integers(0 if random.random() < 0.7 else 1, 9, rows) * UNIT).tolist()
    case = {"kind": kind, "weights": weights, "steps": steps}
    if kind == "numbers":
        width = int(random.integers(1, 4))
        y = np.round(random.normal(size=(rows, width)), 1) * random.choice([1, 100])
        values = y + np.round(random.normal(size=y.shape), 1) * random.choice([0.1, 1])
        case["extras"] = {"q0.1": np.round(values - 0.5, 1).tolist(), "q0.9": np.round(values + 0.5, 1).tolist()}
        return {**case, "values": values.tolist(), "targets": y.tolist(), "metrics": documents(kind, 0, [])}
    classes = int(random.integers(2, 7))
    names = ["class " + chr(ord("a") + c) for c in range(classes)]
    ties = random.random() < 0.5
    if kind == "labels":
        occur = random.random(classes) * random.choice([0.0, 1.0], classes, p=[0.2, 0.8])
        y = (random.random((rows, classes)) < occur).astype(int)
        z = random.normal(size=y.shape) + y
        if ties:
            z = z[random.integers(0, rows, rows)]
        values = 1 / (1 + np.exp(-z))
        decision = (values > 0.3).astype(int)
    else:
        occurring = np.flatnonzero(random.random(classes) < random.choice([0.2, 0.7, 1.0]))
        y = random.choice(occurring if len(occurring) else [int(random.integers(classes))], rows)
        z = random.normal(size=(rows, classes)) + (np.arange(classes) == y[:, None]) * random.choice([0, 1, 5])
        if ties:
            z = z[random.integers(0, rows, rows)]
        values = np.exp(z) / np.exp(z).sum(1, keepdims=True)
        decision = random.integers(0, classes, rows)
    kinds = random.random()
    if kinds < 0.25:
        case["logits"] = z.tolist()
    elif ties:
        # Small whole numbers and their shares: the same bits however they are computed.
        whole = 1 + np.clip(np.round(2 * z), 0, 6)
        values = whole / 8 if kind == "labels" else whole / whole.sum(1, keepdims=True)
    if kinds > 0.8:
        case["decision"] = decision.tolist()
    return {**case, "classes": names, "values": values.tolist(), "targets": y.tolist(),
            "metrics": documents(kind, classes, names)}


def stored_cases():
    """Short ones, each with a name for what is special about it."""
    i = np.arange(24)
    w = (UNIT * (1 + i % 4)).tolist()
    padding = (UNIT * (i % 4)).tolist()
    three = 1 + (5 * i[:, None] + 7 * np.arange(3)) % 11 + 4.0 * (np.arange(3) == ((i * 7 + i // 5) % 3)[:, None])
    three = three / three.sum(1, keepdims=True)
    two = (1 + (7 * i + 3) % 15) / 16
    two = np.stack([1 - two, two], 1)
    of_two, of_three = (i * 7 + i // 5) % 2, (i * 7 + i // 5) % 3
    labels = ((7 * i[:, None] + 3 * np.arange(3) + i[:, None] // 5) % 4 == 0).astype(int)
    scores = ((5 * i[:, None] + 7 * np.arange(3)) % 11 + 4 * labels + 0.25) / 16
    numbers = np.stack([np.round(3 * np.sin(0.7 * i), 2), np.zeros(24)], 1)
    guesses = numbers + np.round(np.cos(1.9 * i), 2)[:, None]
    case = lambda name, kind, classes, values, targets, **more: {
        "name": name, "kind": kind, "classes": list("abcdef"[:classes]), "values": np.round(values, 6).tolist(),
        "targets": targets.tolist(), **more, "metrics": documents(kind, classes, list("abcdef"[:classes]))}
    logits = np.log(three) + np.sin(1.7 * i[:, None] + np.arange(3))  # no two alike: rounding orders equal ones
    sure = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    cases = [
        case("two classes", "classes", 2, two, of_two),
        case("two classes with weights", "classes", 2, two, of_two, weights=w),
        case("two classes with padding", "classes", 2, two, of_two, weights=padding, steps=4),
        case("two classes, rows without weight", "classes", 2, two, of_two, weights=(UNIT * (two[:, 1] < 0.8)).tolist()),
        case("two classes, all ties", "classes", 2, np.full((24, 2), 0.5), of_two),
        case("two classes, one class only", "classes", 2, two, np.ones(24, int)),
        case("two classes decided for", "classes", 2, two, of_two, decision=(two[:, 1] >= 0.25).astype(int).tolist()),
        case("three classes", "classes", 3, three, of_three),
        case("three classes with weights", "classes", 3, three, of_three, weights=w),
        case("three classes with padding", "classes", 3, three, of_three, weights=padding, steps=6),
        case("three classes, one absent", "classes", 3, three, 2 * of_two),
        case("three classes, one nowhere", "classes", 3, three * [1, 0, 1] / (three * [1, 0, 1]).sum(1, keepdims=True), 2 * of_two),
        case("three classes with logits", "classes", 3, sure, of_three, logits=np.round(logits, 6).tolist()),
        case("three classes, no weight", "classes", 3, three, of_three, weights=[0] * 24),
        case("labels", "labels", 3, scores, labels),
        case("labels with weights", "labels", 3, scores, labels, weights=w),
        case("labels, one absent", "labels", 3, scores, labels * [1, 0, 1]),
        case("numbers", "numbers", 0, guesses, numbers),
        case("numbers with padding", "numbers", 0, guesses, numbers, weights=padding, steps=3),
    ]
    for one in cases:
        if one["kind"] == "numbers":
            one["extras"] = {"q0.1": np.round(guesses - 0.4, 2).tolist(), "q0.9": np.round(guesses + 0.5, 2).tolist()}
        one["metrics"] = [document for document in one["metrics"] if document["use"] != "curves"]
        one["expected"] = [expected(one, document) for document in one["metrics"]]
    return cases


if __name__ == "__main__":
    lines = [json.dumps(case) for case in stored_cases()]
    sys.stdout.write("[\n" + ",\n".join(lines) + "\n]\n")
