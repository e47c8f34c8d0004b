"""Prints the means that losses_test.cpp expects, computed by PyTorch, scikit-learn and NumPy.

    /usr/bin/python3 reference.py
"""
import numpy as np
import torch
import torch.nn.functional as F
from sklearn.metrics import mean_pinball_loss
from sklearn.utils.class_weight import compute_class_weight


def wave(step, *sizes):
    """As wave() in losses_test.cpp."""
    return torch.sin(step * torch.arange(int(np.prod(sizes)), dtype=torch.float64)).view(sizes)


def show(name, value):
    print(f"{name:40} {float(value)!r}")


B, T, C = 4, 5, 3
logits = 2 * wave(1.3, B, T, C)
y = (torch.arange(B * T) * 7 % 5 % C).view(B, T)
t = torch.softmax(wave(0.7, B, T, C), -1)
labels = (torch.arange(B * T * C) * 7 % 5 % 2).double().view(B, T, C)
w = torch.tensor([0.5, 2, 1.25], dtype=torch.float64)
v = 0.25 * (torch.arange(B * T) % 4).double().view(B, T)  # 0 for every fourth position

columns = logits.movedim(-1, 1)  # PyTorch has the classes second
for tag, weight, smoothing in (("", None, 0.0), (" w", w, 0.0), (" s", None, 0.1), (" w s", w, 0.1)):
    show("cross_entropy" + tag, F.cross_entropy(columns, y, weight=weight, label_smoothing=smoothing))
    each = F.cross_entropy(columns, y, weight=weight, label_smoothing=smoothing, reduction="none")
    of_classes = torch.ones(B, T) if weight is None else weight[y]
    show("cross_entropy" + tag + " positions", (each * v).sum() / (of_classes * v).sum())
    show("distribution" + tag,
         F.cross_entropy(columns, t.movedim(-1, 1), weight=weight, label_smoothing=smoothing))
    each = F.cross_entropy(columns, t.movedim(-1, 1), weight=weight, label_smoothing=smoothing, reduction="none")
    show("distribution" + tag + " positions", (each * v).sum() / v.sum())
for tag, weight in (("", None), (" 2.5", torch.tensor(2.5, dtype=torch.float64)), (" w", w)):
    show("bce labels" + tag, F.binary_cross_entropy_with_logits(logits, labels, pos_weight=weight))
    each = F.binary_cross_entropy_with_logits(logits, labels, pos_weight=weight, reduction="none")
    show("bce labels" + tag + " positions", (each * v[..., None]).sum() / (C * v.sum()))
two = F.binary_cross_entropy_with_logits(logits[..., 0], (y > 0).double(), reduction="none")
show("bce classes", two.mean())
show("bce classes positions", (two * v).sum() / v.sum())
logs = F.log_softmax(logits, -1).view(-1, C)
show("kl_div", F.kl_div(logs, t.view(-1, C), reduction="batchmean"))
each = F.kl_div(logs, t.view(-1, C), reduction="none").sum(1)
show("kl_div positions", (each * v.view(-1)).sum() / v.sum())
hard = F.one_hot(y, C).double()
show("kl_div of sure targets", F.kl_div(logs, hard.view(-1, C), reduction="batchmean"))

x, target = logits, wave(0.4, B, T, C)
for name, loss in (("mse", F.mse_loss), ("l1", F.l1_loss), ("smooth_l1", F.smooth_l1_loss)):
    show(name, loss(x, target))
    each = loss(x, target, reduction="none")
    show(name + " positions", (each * v[..., None]).sum() / (C * v.sum()))

quantiles, width = (0.1, 0.5, 0.9), 2
outputs = 2 * wave(1.3, B, T, 3 * width).numpy().reshape(-1, 3, width)
numbers = wave(0.4, B, T, width).numpy().reshape(-1, width)
for tag, weights in (("", None), (" positions", v.numpy().reshape(-1))):
    show("quantile" + tag, np.mean([mean_pinball_loss(numbers, outputs[:, i], alpha=q, sample_weight=weights)
                                    for i, q in enumerate(quantiles)]))

a, b = x.reshape(-1, C).numpy(), target.reshape(-1, C).numpy()
for tag, weights in (("", np.ones(B * T)), (" positions", v.numpy().reshape(-1))):
    rs = []
    for k in range(C):
        covariance = np.cov(a[:, k], b[:, k], aweights=weights, ddof=0)
        rs.append(covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]))
    show("correlation" + tag, -np.mean(rs))
    shares = np.exp(a) / np.exp(a).sum(1, keepdims=True)
    returns = (shares * b).sum(1)
    mean = np.average(returns, weights=weights)
    show("sharpe" + tag, -mean / np.sqrt(np.average((returns - mean) ** 2, weights=weights)))

# Class weights, as class_weights_test.cpp has them.
kinds = np.array([0, 1, 1, 2, 1, 1, 0, 1, 1, 2, 1, 1])
for tag, y in (("", kinds), (" binary", (kinds > 0).astype(int))):
    balanced = compute_class_weight("balanced", classes=np.unique(y), y=y)
    print(f"{'balanced' + tag:40} {balanced.tolist()}")
    of_rows = torch.tensor(balanced)[y]
    if tag:
        each = F.binary_cross_entropy_with_logits(
            2 * wave(1.3, 12), torch.tensor(y).double(), weight=of_rows, reduction="sum")
        show("bce balanced", each / of_rows.sum())
        continue
    for smoothing in (0.0, 0.1):
        show(f"cross_entropy balanced {smoothing}", F.cross_entropy(
            2 * wave(1.3, 12, 3), torch.tensor(y), weight=torch.tensor(balanced), label_smoothing=smoothing))
