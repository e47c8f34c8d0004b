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


def select(candidates, targets, size, initial=0):
    chosen, history = [], []
    for step in range(size):
        def error(extra):
            members = chosen + [extra]
            mean = [sum(candidates[m][r] for m in members) / len(members) for r in range(len(targets))]
            return math.fsum((p - t) ** 2 for p, t in zip(mean, targets)) / len(targets)
        scores = [error(c) for c in range(len(candidates))]
        if step == 0:
            by_score = sorted(range(len(candidates)), key=lambda c: scores[c])
        best = by_score[step] if step < initial else min(range(len(candidates)), key=lambda c: scores[c])
        chosen.append(best)
        history.append(scores[best])
    first = max(initial - 1, 0)
    length = history.index(min(history[first:]), first) + 1
    return {c: chosen[:length].count(c) / length for c in sorted(set(chosen[:length]))}, history[length - 1], chosen


rows, models = 12, 6
targets = numbers(1, rows)
noise = [numbers(10 + m, rows) for m in range(models)]
candidates = [[t + (0.2 + 0.1 * m) * (n - 0.5) for t, n in zip(targets, noise[m])] for m in range(models)]
for size, initial in ((1, 0), (5, 0), (20, 0), (10, 4)):
    weights, score, chosen = select(candidates, targets, size, initial)
    print(size, initial, weights, f"{score:.12f}", chosen)
