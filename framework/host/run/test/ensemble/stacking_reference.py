"""Stacking by scipy's general optimizers, written apart from Treadle's: prints the cases of
stacking_test.cpp. Run: python3 stacking_reference.py"""
import numpy as np
from scipy.optimize import lsq_linear, minimize


def numbers(seed, count):
    """A linear congruential generator, the same in C++: values in [0, 1)."""
    state, out = seed, []
    for _ in range(count):
        state = (1103515245 * state + 12345) % 2**31
        out.append(state / 2**31)
    return np.array(out)


def stacked_numbers(x, y, weights):
    root = np.sqrt(weights)
    return lsq_linear(x * root[:, None], y * root, bounds=(0, np.inf), tol=1e-14).x


def stacked_classes(p, y, weights):
    """p: [members, rows, classes], y: [rows, classes]; the weights of the members and the intercept."""
    members, _, classes = p.shape
    logits = np.log(p)

    def loss(x):
        z = np.tensordot(x[:members], logits, 1) + x[members:]
        z -= z.max(1, keepdims=True)
        log_p = z - np.log(np.exp(z).sum(1, keepdims=True))
        penalty = ((x[:members] - 1 / members) ** 2).sum() + (x[members:] ** 2).sum()
        return -(weights[:, None] * y * log_p).sum() + penalty / 2

    start = np.r_[np.full(members, 1 / members), np.zeros(classes)]
    bounds = [(0, None)] * members + [(None, None)] * classes
    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10000, "maxfun": 10**6}
    return minimize(loss, start, method="L-BFGS-B", bounds=bounds, options=options).x


rows = 40
y = numbers(1, rows)
x = np.stack([y + (0.3 + 0.2 * m) * (numbers(10 + m, rows) - 0.7) for m in range(4)], 1)
weights = 0.5 + numbers(99, rows)
print("numbers", np.round(stacked_numbers(x, y, np.ones(rows)), 6).tolist())
print("weighted", np.round(stacked_numbers(x, y, weights), 6).tolist())

labels = (numbers(2, rows) * 3).astype(int)
one_hot = np.eye(3)[labels]
skill = [1.5, 0.75, 0.5, -1.0]  # the last one is wrong more often than not
scores = [skill[m] * one_hot + 2 * numbers(20 + m, 3 * rows).reshape(rows, 3) for m in range(4)]
p = np.stack([np.exp(s) / np.exp(s).sum(1, keepdims=True) for s in scores])
print("classes", np.round(stacked_classes(p, one_hot, weights), 5).tolist())

is_set = (numbers(3, 2 * rows).reshape(rows, 2) < 0.4).astype(float)
odds = [2 * is_set - 1 + 2 * numbers(30 + m, 2 * rows).reshape(rows, 2) for m in range(3)]
for label in range(2):
    set_p = np.stack([1 / (1 + np.exp(-o[:, label])) for o in odds])
    both = np.stack([1 - set_p, set_p], 2)
    target = np.stack([1 - is_set[:, label], is_set[:, label]], 1)
    # As two classes whose logits are half the log odds, with either sign.
    half = np.log(both[:, :, 1] / both[:, :, 0]) / 2
    x = stacked_classes(np.exp(np.stack([-half, half], 2)), target, np.ones(rows))
    print("label", label, np.round([*x[:3], x[4] - x[3]], 5).tolist())
