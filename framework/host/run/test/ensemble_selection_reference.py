"""Greedy ensemble selection (Caruana et al. 2004), written apart from Treadle's: prints the cases of
ensemble_selection_test.cpp. Run: python3 ensemble_selection_reference.py"""
import math


def numbers(seed, count):
    """A linear congruential generator, the same in C++: values in [0, 1)."""
    state, out = seed, []
    for _ in range(count):
        state = (1103515245 * state + 12345) % 2**31
        out.append(state / 2**31)
    return out


def select(candidates, targets, size):
    chosen, history = [], []
    for _ in range(size):
        def error(extra):
            members = chosen + [extra]
            mean = [sum(candidates[m][r] for m in members) / len(members) for r in range(len(targets))]
            return math.fsum((p - t) ** 2 for p, t in zip(mean, targets)) / len(targets)
        scores = [error(c) for c in range(len(candidates))]
        best = min(range(len(candidates)), key=lambda c: scores[c])
        chosen.append(best)
        history.append(scores[best])
    length = history.index(min(history)) + 1
    return {c: chosen[:length].count(c) / length for c in sorted(set(chosen[:length]))}, history[length - 1], chosen


rows, models = 12, 6
targets = numbers(1, rows)
noise = [numbers(10 + m, rows) for m in range(models)]
candidates = [[t + (0.2 + 0.1 * m) * (n - 0.5) for t, n in zip(targets, noise[m])] for m in range(models)]
for size in (1, 5, 20):
    weights, score, chosen = select(candidates, targets, size)
    print(size, weights, f"{score:.12f}", chosen)
