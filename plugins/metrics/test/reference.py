"""Prints the numbers that metrics_test.cpp expects, computed by scikit-learn.

    /usr/bin/python3 reference.py
"""
import numpy as np
from scipy.stats import entropy
from sklearn import metrics as m

ROWS = 60


def probabilities(classes):
    """As probabilities() in metrics_test.cpp: shares of small whole numbers, so ties are exact."""
    i, c = np.meshgrid(np.arange(ROWS), np.arange(classes), indexing="ij")
    shares = 1 + (5 * i + 7 * c) % 11 + 4 * (c == targets(classes)[:, None])
    return shares / shares.sum(axis=1, keepdims=True)


def targets(classes):
    i = np.arange(ROWS)
    return (i * 7 + i // 5) % classes


def show(name, value):
    print(f"{name:28} {value!r}")


def labels():
    """As reference_labels() in metrics_test.cpp: four labels a row."""
    i, c = np.meshgrid(np.arange(ROWS), np.arange(4), indexing="ij")
    y = ((7 * i + 3 * c + i // 5) % 3 == 0).astype(int)
    return y, ((5 * i + 7 * c) % 11 + 4 * y + 0.25) / 15


w = 0.25 * (1 + np.arange(ROWS) % 4)
v = 0.25 * (np.arange(ROWS) % 4)  # 0: padding
WEIGHTS = (("", None), (" weighted", w), (" padded", v))
for classes in (2, 3):
    y, p = targets(classes), probabilities(classes)
    guess = p.argmax(axis=1)
    for tag, weights in WEIGHTS:
        print(f"# {classes} classes{tag}")
        show("accuracy", m.accuracy_score(y, guess, sample_weight=weights))
        for name, score in (("precision", m.precision_score), ("recall", m.recall_score), ("f1", m.f1_score)):
            show(f"macro_{name}", score(y, guess, average="macro", sample_weight=weights))
        show("mean_iou", m.jaccard_score(y, guess, average="macro", sample_weight=weights))
        if classes == 2:
            show("auc", m.roc_auc_score(y, p[:, 1], sample_weight=weights))
        else:
            show("auc", m.roc_auc_score(y, p, multi_class="ovr", average="macro", sample_weight=weights))
        show("log_loss", m.log_loss(y, p, sample_weight=weights))
        show("perplexity", np.exp(m.log_loss(y, p, sample_weight=weights)))
        show("per class recall", m.recall_score(y, guess, average=None, sample_weight=weights).tolist())
        show("confusion", m.confusion_matrix(y, guess, sample_weight=weights).tolist())

print("# a class that never occurs among the rows, one that is never predicted")
show("macro_precision", m.precision_score([0, 0, 1, 3], [0, 1, 1, 1], average="macro", zero_division=0))
show("macro_recall", m.recall_score([0, 0, 1, 3], [0, 1, 1, 1], average="macro", zero_division=0))
show("macro_f1", m.f1_score([0, 0, 1, 3], [0, 1, 1, 1], average="macro", zero_division=0))
show("log_loss of sure errors", m.log_loss([0, 1], np.array([[0.0, 1.0], [0.25, 0.75]])))

y, p = labels()
for tag, weights in WEIGHTS:
    print(f"# labels{tag}")
    show("accuracy", m.accuracy_score(y, p > 0.5, sample_weight=weights))
    show("hamming_loss", m.hamming_loss(y, p > 0.5, sample_weight=weights))
    for name, score in (("precision", m.precision_score), ("recall", m.recall_score), ("f1", m.f1_score)):
        show(f"macro_{name}", score(y, p > 0.5, average="macro", sample_weight=weights))
print("# a label that never occurs, one that is never predicted")
rare, guess = np.array([[1, 0, 1], [1, 0, 0]]), np.array([[1, 0, 0], [0, 0, 0]])
for name, score in (("precision", m.precision_score), ("recall", m.recall_score), ("f1", m.f1_score)):
    show(f"macro_{name}", score(rare, guess, average="macro", zero_division=0))

t, p = probabilities(3)[::-1], probabilities(3)
for tag, weights in WEIGHTS:
    print(f"# distribution{tag}")
    show("log_loss", np.average(-(t * np.log(p)).sum(1), weights=weights))
    show("kl_div", np.average(entropy(t, p, axis=1), weights=weights))

i, k = np.meshgrid(np.arange(ROWS), np.arange(2), indexing="ij")
actual = 1000 + 3 * np.sin(0.7 * i + k)
predicted = actual + 0.5 * np.cos(1.9 * i - k)
for tag, weights in WEIGHTS:
    for width in (1, 2):
        a, p = actual[:, :width], predicted[:, :width]
        print(f"# {width} numbers{tag}")
        show("mse", m.mean_squared_error(a, p, sample_weight=weights))
        show("rmse", m.mean_squared_error(a, p, sample_weight=weights, squared=False))
        show("mae", m.mean_absolute_error(a, p, sample_weight=weights))
        show("r2", m.r2_score(a, p, sample_weight=weights))
    low, high = predicted - 0.3, predicted + 0.4
    for name, q, x in (("q0.1", 0.1, low), ("q0.5", 0.5, predicted), ("q0.9", 0.9, high)):
        show("pinball." + name, m.mean_pinball_loss(actual, x, alpha=q, sample_weight=weights))
    within = ((low <= actual) & (actual <= high)).mean(1)
    show("coverage", np.average(within, weights=weights))
