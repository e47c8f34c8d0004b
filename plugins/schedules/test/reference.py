"""The rates that schedules_test.cpp expects: `/usr/bin/python3 reference.py` prints them.

Those of torch.optim.lr_scheduler, step by step, by PyTorch 1.13 (Debian's python3-torch). It has no
inverse square root, whose formula stands here.
"""

import warnings

import torch
from torch.optim.lr_scheduler import (CosineAnnealingLR, CosineAnnealingWarmRestarts, ExponentialLR,
                                      LinearLR, MultiStepLR, OneCycleLR, PolynomialLR, SequentialLR)

BASE = 0.8
warnings.filterwarnings("ignore")  # no optimizer steps here; SequentialLR calls step(epoch)


def show(name, make, count=12):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=BASE)
    scheduler = make(optimizer)
    rates = []
    for _ in range(count):
        rates.append(f"{optimizer.param_groups[0]['lr']:.16g}")
        try:
            scheduler.step()
        except ValueError:  # OneCycleLR takes no step beyond its last
            break
    print(f"{name}: {', '.join(rates)}")


def vaswani(warmup):
    """Attention Is All You Need, formula (3), as multiples of its largest value."""
    def rate(step):
        return 512**-0.5 * min(step**-0.5, step * warmup**-1.5)

    return lambda update: rate(update + 1) / rate(warmup)


show("polynomial", lambda o: PolynomialLR(o, 10, 2.0), 11)
show("exponential", lambda o: ExponentialLR(o, 0.5), 6)
show("multi_step", lambda o: MultiStepLR(o, [3, 5, 9], 0.5))
show("cosine_restarts", lambda o: CosineAnnealingWarmRestarts(o, 4, 1, 0.2))
show("cosine_restarts, longer", lambda o: CosineAnnealingWarmRestarts(o, 2, 2, 0.0))
show("one_cycle", lambda o: OneCycleLR(o, BASE, 12))
show("one_cycle, linear", lambda o: OneCycleLR(
    o, BASE, 12, pct_start=0.25, anneal_strategy="linear", div_factor=10.0, final_div_factor=100.0))
show("one_cycle, three phases", lambda o: OneCycleLR(o, BASE, 12, pct_start=0.4, three_phase=True))
show("inverse_square_root", lambda o: torch.optim.lr_scheduler.LambdaLR(o, vaswani(4)))
show("sequential", lambda o: SequentialLR(
    o, [LinearLR(o, 1.0, 0.25, 3), CosineAnnealingLR(o, 4, 0.2), ExponentialLR(o, 0.5)], [3, 7]))
show("warm-up", lambda o: LinearLR(o, 0.1, 1.0, 5), 6)
