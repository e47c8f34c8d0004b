"""Numbers for outputs_test.cpp: python3 plugins/outputs/test/reference.py (scikit-learn 1.2, SciPy 1.10)."""
import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, logit
from sklearn.calibration import _SigmoidCalibration
from sklearn.isotonic import IsotonicRegression

rows, classes = 48, 3
i = np.arange(rows)[:, None]
logits = 4 * np.sin(1.7 * i + 2.3 * np.arange(classes)[None, :] + 0.1 * i * np.arange(classes)[None, :])
target = np.where(np.arange(rows) % 3 == 0, (np.arange(rows) // 3) % classes, logits.argmax(1))
weights = 0.5 + (np.arange(rows) % 4) / 2


def likelihood(scaled):
    return -(weights * log_softmax(scaled, axis=1)[np.arange(rows), target]).sum() / weights.sum()


one = minimize(lambda b: likelihood(logits * b[0]), [1.0], method="BFGS", options={"gtol": 1e-12})
print("temperature", 1 / one.x[0])
centered = logits - logits.mean(1, keepdims=True)
each = minimize(lambda b: likelihood(centered * b), np.ones(classes), method="BFGS", options={"gtol": 1e-12})
print("temperatures", 1 / each.x)

score = 3 * np.sin(1.3 * np.arange(rows)) + 0.5
label = (np.arange(rows) * 7 % 10 < 5 + 3 * np.sign(score)).astype(int)
binary = minimize(
    lambda b: (weights * np.logaddexp(0, np.where(label == 1, -1, 1) * score * b[0])).sum(), [1.0],
    method="BFGS", options={"gtol": 1e-12})
print("temperature of two classes", 1 / binary.x[0])
platt = _SigmoidCalibration().fit(score, label, sample_weight=weights)
print("platt", -platt.a_, -platt.b_)

p = np.round(expit(score), 2)
isotonic = IsotonicRegression(out_of_bounds="clip").fit(p, label, sample_weight=weights)
at = np.array([0.0, 0.07, 0.2, 0.33, 0.5, 0.61, 0.75, 0.9, 0.97, 1.0])
print("isotonic", ", ".join(repr(v) for v in isotonic.predict(at)))
