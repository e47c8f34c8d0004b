"""Prints the numbers of reference.json: rules that libtorch has not, as their papers write them, by NumPy.

    /usr/bin/python3 reference.py > reference.json
"""
import json

import numpy as np

STEPS = 1000
RATE = 0.01
LAYERS = (12, 5)


def start(i):
    """As start() in precision_test.cpp: exact in single precision, too."""
    return ((37 * i + 11) % 64 - 31) / 32


def gradient(step, i):
    """As gradient() in precision_test.cpp."""
    return ((7919 * step * step + 104729 * i + 31 * step * i) % 1021 - 510) / 256


class Lion:
    """Chen et al. 2023, algorithm 2."""

    def __init__(self, betas, weight_decay):
        self.betas, self.decay = betas, weight_decay

    def step(self, t, p, g, state):
        m = state.setdefault("m", np.zeros_like(p))
        number = p.dtype.type
        b1, b2 = map(number, self.betas)
        c = b1 * m + (1 - b1) * g
        state["m"] = b2 * m + (1 - b2) * g
        return p - number(RATE) * (np.sign(c) + number(self.decay) * p)


class Lamb:
    """You et al. 2020, algorithm 2, with phi(x) = x."""

    def __init__(self, betas, eps, weight_decay):
        self.betas, self.eps, self.decay = betas, eps, weight_decay

    def step(self, t, p, g, state):
        number = p.dtype.type
        b1, b2 = map(number, self.betas)
        state["m"] = m = b1 * state.setdefault("m", np.zeros_like(p)) + (1 - b1) * g
        state["v"] = v = b2 * state.setdefault("v", np.zeros_like(p)) + (1 - b2) * g * g
        m_hat = m / (1 - b1 ** t)
        v_hat = v / (1 - b2 ** t)
        u = m_hat / (np.sqrt(v_hat) + number(self.eps)) + number(self.decay) * p
        ratio = np.linalg.norm(p) / np.linalg.norm(u)
        return p - number(RATE) * ratio * u


class RmsPropInside:
    """eps under the root."""

    def __init__(self, alpha, eps, momentum, centered):
        self.alpha, self.eps, self.momentum, self.centered = alpha, eps, momentum, centered

    def step(self, t, p, g, state):
        number = p.dtype.type
        a, mu = number(self.alpha), number(self.momentum)
        state["v"] = v = a * state.setdefault("v", np.zeros_like(p)) + (1 - a) * g * g
        if self.centered:
            state["a"] = mean = a * state.setdefault("a", np.zeros_like(p)) + (1 - a) * g
            v = v - mean * mean
        state["b"] = b = mu * state.setdefault("b", np.zeros_like(p)) + g / np.sqrt(v + number(self.eps))
        return p - number(RATE) * b


def train(rule, dtype):
    layers, states, first = [], [], 0
    for size in LAYERS:
        layers.append(np.array([start(first + i) for i in range(size)], dtype))
        states.append({})
        first += size
    for step in range(STEPS):
        first = 0
        for k, p in enumerate(layers):
            g = np.array([gradient(step, first + i) for i in range(len(p))], dtype)
            layers[k] = rule.step(step + 1, p, g, states[k])
            first += len(p)
    result = np.concatenate(layers)
    assert result.dtype == dtype
    return result.astype(np.float64)


CASES = [
    ("lion", Lion, {"betas": [0.9, 0.99], "weight_decay": 0.1}),
    ("lion", Lion, {"betas": [0.8, 0.95], "weight_decay": 0}),
    ("lamb", Lamb, {"betas": [0.9, 0.999], "eps": 1e-6, "weight_decay": 0.01}),
    ("lamb", Lamb, {"betas": [0.8, 0.95], "eps": 1e-3, "weight_decay": 0}),
    ("rmsprop", RmsPropInside, {"alpha": 0.99, "eps": 1e-8, "momentum": 0, "centered": False}),
    ("rmsprop", RmsPropInside, {"alpha": 0.9, "eps": 1e-3, "momentum": 0.9, "centered": True}),
]
out = []
for name, rule, parameters in CASES:
    exact = train(rule(**parameters), np.float64)
    single = train(rule(**parameters), np.float32)
    if name == "rmsprop":
        parameters = {**parameters, "eps_inside_root": True}
    out.append({"name": name, "parameters": parameters, "values": exact.tolist(),
                "float32_error": float(np.abs(single - exact).max())})
print("[" + ",\n ".join(json.dumps(case) for case in out) + "]")
