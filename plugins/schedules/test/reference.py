"""The rates that schedules_test.cpp expects: `python3 reference.py` prints them.

Transcribes get_lr() of torch.optim.lr_scheduler (PyTorch 2.6), which computes each rate from the one
before it. The schedules under test are functions of the step alone: the two share no formula.
"""

import math

BASE = 0.8


class Scheduler:
    """What torch.optim.lr_scheduler.LRScheduler does for one parameter group."""

    def __init__(self):
        self.lr = self.base_lr = BASE
        self.last_epoch = -1
        self.step()

    def step(self):
        self.last_epoch += 1
        self.lr = self.get_lr()

    def restart(self):
        """SequentialLR calls step(0) of the scheduler whose milestone it is."""
        self.lr, self.last_epoch = self.base_lr, -1
        self.step()


class PolynomialLR(Scheduler):
    def __init__(self, total_iters, power):
        self.total_iters, self.power = total_iters, power
        super().__init__()

    def get_lr(self):
        if self.last_epoch == 0 or self.last_epoch > self.total_iters:
            return self.lr
        left = 1.0 - self.last_epoch / self.total_iters
        left_before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return self.lr * (left / left_before) ** self.power


class ExponentialLR(Scheduler):
    def __init__(self, gamma):
        self.gamma = gamma
        super().__init__()

    def get_lr(self):
        return self.lr if self.last_epoch == 0 else self.lr * self.gamma


class MultiStepLR(Scheduler):
    def __init__(self, milestones, gamma):
        self.milestones, self.gamma = milestones, gamma
        super().__init__()

    def get_lr(self):
        return self.lr * self.gamma ** self.milestones.count(self.last_epoch)


class LinearLR(Scheduler):
    def __init__(self, start_factor, end_factor, total_iters):
        self.start, self.end, self.total = start_factor, end_factor, total_iters
        super().__init__()

    def get_lr(self):
        if self.last_epoch == 0:
            return self.lr * self.start
        if self.last_epoch > self.total:
            return self.lr
        change = self.end - self.start
        return self.lr * (1.0 + change / (self.total * self.start + (self.last_epoch - 1) * change))


class CosineAnnealingLR(Scheduler):
    def __init__(self, t_max, eta_min=0.0):
        self.t_max, self.eta_min = t_max, eta_min
        super().__init__()

    def get_lr(self):
        if self.last_epoch == 0:
            return self.lr
        now = 1 + math.cos(math.pi * self.last_epoch / self.t_max)
        before = 1 + math.cos(math.pi * (self.last_epoch - 1) / self.t_max)
        return now / before * (self.lr - self.eta_min) + self.eta_min


class CosineAnnealingWarmRestarts(Scheduler):
    def __init__(self, t_0, t_mult, eta_min):
        self.t_i, self.t_mult, self.eta_min, self.t_cur = t_0, t_mult, eta_min, -1
        super().__init__()

    def get_lr(self):
        self.t_cur += 1
        if self.t_cur >= self.t_i:
            self.t_cur -= self.t_i
            self.t_i *= self.t_mult
        cosine = 1 + math.cos(math.pi * self.t_cur / self.t_i)
        return self.eta_min + (self.base_lr - self.eta_min) * cosine / 2


class OneCycleLR(Scheduler):
    def __init__(self, total_steps, pct_start=0.3, anneal_strategy="cos", div_factor=25.0,
                 final_div_factor=1e4, three_phase=False):
        initial = BASE / div_factor
        last = initial / final_div_factor
        up = pct_start * total_steps - 1
        if three_phase:
            self.phases = [(up, initial, BASE), (2 * pct_start * total_steps - 2, BASE, initial),
                           (total_steps - 1, initial, last)]
        else:
            self.phases = [(up, initial, BASE), (total_steps - 1, BASE, last)]
        self.anneal = {"cos": self.cos, "linear": self.linear}[anneal_strategy]
        super().__init__()

    @staticmethod
    def cos(start, end, pct):
        return end + (start - end) / 2.0 * (math.cos(math.pi * pct) + 1)

    @staticmethod
    def linear(start, end, pct):
        return (end - start) * pct + start

    def get_lr(self):
        start_step = 0.0
        for i, (end_step, start, end) in enumerate(self.phases):
            if self.last_epoch <= end_step or i == len(self.phases) - 1:
                return self.anneal(start, end,
                                   (self.last_epoch - start_step) / (end_step - start_step))
            start_step = end_step


class SequentialLR:
    def __init__(self, schedulers, milestones):
        self.schedulers, self.milestones, self.last_epoch = schedulers, milestones, 0

    @property
    def lr(self):
        return self.schedulers[sum(at <= self.last_epoch for at in self.milestones)].lr

    def step(self):
        self.last_epoch += 1
        index = sum(at <= self.last_epoch for at in self.milestones)
        if index > 0 and self.milestones[index - 1] == self.last_epoch:
            self.schedulers[index].restart()
        else:
            self.schedulers[index].step()


class Vaswani(Scheduler):
    """Attention Is All You Need, formula (3), as multiples of its largest value, which gets BASE."""

    def __init__(self, warmup_steps):
        self.warmup_steps = warmup_steps
        super().__init__()

    def get_lr(self):
        def rate(step):
            return 512**-0.5 * min(step**-0.5, step * self.warmup_steps**-1.5)

        return BASE * rate(self.last_epoch + 1) / rate(self.warmup_steps)


def show(name, scheduler, count=12):
    rates = []
    for _ in range(count):
        rates.append(f"{scheduler.lr:.16g}")
        scheduler.step()
    print(f"{name}: {', '.join(rates)}")


show("polynomial", PolynomialLR(10, 2.0), 11)
show("exponential", ExponentialLR(0.5), 6)
show("multi_step", MultiStepLR([3, 5, 9], 0.5))
show("cosine_restarts", CosineAnnealingWarmRestarts(4, 1, 0.2))
show("cosine_restarts, longer", CosineAnnealingWarmRestarts(2, 2, 0.0))
show("one_cycle", OneCycleLR(12))
show("one_cycle, linear", OneCycleLR(12, 0.25, "linear", 10.0, 100.0))
show("one_cycle, three phases", OneCycleLR(12, 0.4, three_phase=True))
show("inverse_square_root", Vaswani(4))
show("sequential", SequentialLR(
    [LinearLR(1.0, 0.25, 3), CosineAnnealingLR(4, 0.2), ExponentialLR(0.5)], [3, 7]))
show("warm-up", LinearLR(0.1, 1.0, 5), 6)
