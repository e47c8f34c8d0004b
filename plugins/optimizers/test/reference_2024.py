"""Prints the numbers of reference_2024.json: Muon, SOAP, schedule-free AdamW and Adafactor by NumPy.

Written from the definitions and from the reference implementations (KellerJordan/Muon,
nikhilvyas/SOAP, facebookresearch/schedule_free, torch.optim.Adafactor), in float64.

    /usr/bin/python3 reference_2024.py > reference_2024.json
"""
import json

import numpy as np

STEPS = 50
RATE = 0.02
SCALE = 0.5  # of gradients, as accumulation and clipping have it
# name, role, shape
PARAMETERS = [
    ("hidden", "hidden", (4, 4)),
    ("twin", "hidden", (4, 4)),
    ("tall", "hidden", (6, 3)),
    ("kernel", "hidden", (3, 2, 2, 2)),
    ("stack", "stack", (2, 3, 3)),
    ("bias", "hidden", (5,)),
    ("table", "table", (3, 2)),
    ("output", "output", (3, 3)),
    ("tied", "tied", (2, 2)),
]


def start(i):
    return ((37 * i + 11) % 64 - 31) / 32


def gradient(step, i):
    return ((7919 * step * step + 104729 * i + 31 * step * i) % 1021 - 510) / 256


def rate_at(step):
    """A linear decay."""
    return RATE * (1 - step / (2 * STEPS))


def matrices(role, shape):
    """As n matrices, or nothing."""
    if role == "table" or len(shape) < (3 if role == "stack" else 2):
        return None
    n = shape[0] if role == "stack" else 1
    rest = shape[1:] if role == "stack" else shape
    return n, rest[0], int(np.prod(rest[1:]))


class AdamW:
    def __init__(self, betas, eps, decay):
        self.betas, self.eps, self.decay = betas, eps, decay
        self.m = self.v = 0.0
        self.t = 0

    def step(self, p, g, rate):
        b1, b2 = self.betas
        self.t += 1
        p = p - rate * self.decay * p
        self.m = b1 * self.m + (1 - b1) * g
        self.v = b2 * self.v + (1 - b2) * g * g
        return p - rate * (self.m / (1 - b1 ** self.t)) / (np.sqrt(self.v / (1 - b2 ** self.t)) + self.eps)


def zeropower(g):
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g.T if g.shape[0] > g.shape[1] else g
    x = x / (np.linalg.norm(x) + 1e-7)
    for _ in range(5):
        aa = x @ x.T
        x = a * x + (b * aa + c * aa @ aa) @ x
    return x.T if g.shape[0] > g.shape[1] else x


class Muon:
    def __init__(self, role, shape, options):
        o = {"momentum": 0.95, "nesterov": True, "weight_decay": 0, "cautious_weight_decay": False,
             "adjust_lr_fn": "original", "adamw_betas": [0.9, 0.95],
             "adamw_eps": 1e-8, "adamw_weight_decay": 0, **options}
        o.setdefault("adamw_learning_rate", 0.001 if o["adjust_lr_fn"] == "original" else 0.02)
        self.o = o
        self.layout = matrices(role, shape) if role in ("hidden", "stack") else None
        self.rest = AdamW(o["adamw_betas"], o["adamw_eps"], o["adamw_weight_decay"])
        self.m = np.zeros(shape)

    def step(self, p, g, rate):
        o = self.o
        if self.layout is None:
            return self.rest.step(p, g, rate * o["adamw_learning_rate"] / 0.02)
        mu = o["momentum"]
        self.m = mu * self.m + (1 - mu) * g
        u = (1 - mu) * g + mu * self.m if o["nesterov"] else self.m
        n, rows, columns = self.layout
        u = np.stack([zeropower(one) for one in u.reshape(n, rows, columns)])
        u = u * (np.sqrt(max(1, rows / columns)) if o["adjust_lr_fn"] == "original" else 0.2 * np.sqrt(max(rows, columns)))
        u = u.reshape(p.shape)
        shrinks = (u * p >= 0) if o["cautious_weight_decay"] else 1.0
        return p - rate * o["weight_decay"] * shrinks * p - rate * u


class SoapMatrix:
    """One matrix, or a vector (no bases)."""

    def __init__(self, shape, o, bases=True):
        self.o = o
        self.sides = [bases and len(shape) == 2 and s <= o["max_precond_dim"] for s in shape]
        self.gg = [np.zeros((s, s)) for s in shape]
        self.q = None
        self.m, self.v = np.zeros(shape), np.zeros(shape)
        self.t = 0

    def project(self, x):
        if self.sides[0]:
            x = self.q[0].T @ x
        return x @ self.q[1] if len(self.sides) > 1 and self.sides[1] else x

    def project_back(self, x):
        if self.sides[0]:
            x = self.q[0] @ x
        return x @ self.q[1].T if len(self.sides) > 1 and self.sides[1] else x

    def update_preconditioner(self, g):
        b = self.o["betas"][1]
        if self.q is not None:
            self.m = self.project_back(self.m)
        if self.sides[0]:
            self.gg[0] = b * self.gg[0] + (1 - b) * g @ g.T
        if len(self.sides) > 1 and self.sides[1]:
            self.gg[1] = b * self.gg[1] + (1 - b) * g.T @ g
        if self.q is None:
            self.q = [np.linalg.eigh(m + 1e-30 * np.eye(len(m)))[1][:, ::-1] for m in self.gg]
        if self.t > 0 and self.t % self.o["precondition_frequency"] == 0:
            for axis, has in enumerate(self.sides):
                if not has:
                    continue
                m, q = self.gg[axis], self.q[axis]
                order = np.argsort(-np.diag(q.T @ m @ q))
                self.v = np.take(self.v, order, axis)
                self.q[axis] = np.linalg.qr(m @ q[:, order])[0]
        if self.t > 0:
            self.m = self.project(self.m)

    def step(self, p, g, rate):
        if self.q is None:
            self.update_preconditioner(g)
            return p
        b1, b2 = self.o["betas"]
        h = self.project(g)
        self.t += 1
        self.m = b1 * self.m + (1 - b1) * h
        self.v = b2 * self.v + (1 - b2) * h * h
        size = rate * np.sqrt(1 - b2 ** self.t) / (1 - b1 ** self.t)
        p = p - size * self.project_back(self.m / (np.sqrt(self.v) + self.o["eps"]))
        p = p + p * (-rate * self.o["weight_decay"])
        self.update_preconditioner(g)
        return p


class Soap:
    def __init__(self, role, shape, options):
        o = {"betas": [0.95, 0.95], "eps": 1e-8, "weight_decay": 0.01, "precondition_frequency": 10,
             "max_precond_dim": 10000, **options}
        self.layout = matrices(role, shape)
        n = self.layout[0] if self.layout else 1
        self.parts = [SoapMatrix(self.layout[1:] if self.layout else shape, o, self.layout is not None)
                      for _ in range(n)]

    def step(self, p, g, rate):
        if self.layout is None:
            return self.parts[0].step(p, g, rate)
        ps, gs = p.reshape(self.layout), g.reshape(self.layout)
        return np.stack([part.step(x, y, rate) for part, x, y in zip(self.parts, ps, gs)]).reshape(p.shape)


class ScheduleFree:
    def __init__(self, role, shape, options):
        self.o = {"betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0, "warmup_steps": 0, "r": 0,
                  "weight_lr_power": 2, **options}
        self.z = None
        self.v = np.zeros(shape)
        self.k = 0
        self.lr_max, self.weight_sum = -1.0, 0.0

    def step(self, y, g, rate):
        o = self.o
        b1, b2 = o["betas"]
        if self.z is None:
            self.z = y.copy()
        k, warmup = self.k, o["warmup_steps"]
        lr = rate * ((k + 1) / warmup if k < warmup else 1.0)
        self.lr_max = max(lr, self.lr_max)
        weight = (k + 1) ** o["r"] * self.lr_max ** o["weight_lr_power"]
        self.weight_sum += weight
        c = weight / self.weight_sum
        self.v = b2 * self.v + (1 - b2) * g * g
        u = g / (np.sqrt(self.v / (1 - b2 ** (k + 1))) + o["eps"]) + o["weight_decay"] * y
        y = y + c * (self.z - y)
        y = y + lr * (b1 * (1 - c) - 1) * u
        self.z = self.z - lr * u
        self.k += 1
        return y

    def evaluated(self, y):
        return y + (1 - 1 / self.o["betas"][0]) * (self.z - y)


class Adafactor:
    def __init__(self, role, shape, options):
        self.o = {"beta2_decay": -0.8, "eps1": np.finfo(np.float64).eps, "eps2": 1e-3, "d": 1,
                  "weight_decay": 0, **options}
        self.rows = np.zeros(shape[:-1] + (1,))
        self.columns = np.zeros(shape[:-2] + (1,) + shape[-1:])
        self.variance = np.zeros(shape)
        self.t = 0

    def step(self, p, g, rate):
        o = self.o
        self.t += 1
        w = self.t ** o["beta2_decay"]
        alpha = max(o["eps2"], np.sqrt(np.mean(p * p))) * min(rate, 1 / np.sqrt(self.t))
        if o["weight_decay"]:
            p = p * (1 - rate * o["weight_decay"])
        if g.ndim > 1:
            self.rows += w * ((g * g).mean(-1, keepdims=True) - self.rows)
            self.columns += w * ((g * g).mean(-2, keepdims=True) - self.columns)
            v = self.rows @ self.columns / np.maximum(self.rows.mean(-2, keepdims=True), o["eps1"])
        else:
            self.variance += w * (g * g - self.variance)
            v = self.variance
        u = g / np.sqrt(np.maximum(v, o["eps1"] ** 2))
        return p - alpha * u / max(1.0, np.sqrt(np.mean(u * u)) / o["d"])


def train(rule, options):
    values, evaluated, first = [], [], 0
    for name, role, shape in PARAMETERS:
        size = int(np.prod(shape))
        p = np.array([start(first + i) for i in range(size)]).reshape(shape)
        one = rule(role, shape, options)
        for step in range(STEPS):
            g = SCALE * np.array([gradient(step, first + i) for i in range(size)]).reshape(shape)
            p = one.step(p, g, rate_at(step))
        values += p.ravel().tolist()
        evaluated += (one.evaluated(p) if hasattr(one, "evaluated") else p).ravel().tolist()
        first += size
    return values, evaluated


CASES = [
    ("muon", Muon, {}),
    ("muon", Muon, {"nesterov": False, "momentum": 0.8, "weight_decay": 0.1, "adamw_weight_decay": 0.2,
                    "adamw_learning_rate": 0.01, "adamw_betas": [0.8, 0.99]}),
    ("muon", Muon, {"adjust_lr_fn": "match_rms_adamw", "weight_decay": 0.3, "cautious_weight_decay": True}),
    ("soap", Soap, {"max_precond_dim": 4}),
    ("soap", Soap, {"max_precond_dim": 4, "betas": [0.8, 0.9], "precondition_frequency": 3, "weight_decay": 0}),
    ("soap", Soap, {"max_precond_dim": 1}),
    ("schedule_free_adamw", ScheduleFree, {}),
    ("schedule_free_adamw", ScheduleFree, {"betas": [0.95, 0.99], "weight_decay": 0.1, "warmup_steps": 20,
                                           "r": 1, "weight_lr_power": 1}),
    ("adafactor", Adafactor, {}),
    ("adafactor", Adafactor, {"weight_decay": 0.1, "d": 0.5, "beta2_decay": -0.5, "eps1": 0.5, "eps2": 0.8}),
]
out = []
for name, rule, options in CASES:
    values, evaluated = train(rule, options)
    case = {"name": name, "parameters": options, "values": [round(x, 12) for x in values]}
    if hasattr(rule, "evaluated"):
        case["evaluated"] = [round(x, 12) for x in evaluated]
    out.append(case)
print("[" + ",\n ".join(json.dumps(case) for case in out) + "]")
