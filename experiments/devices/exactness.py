"""The planner against every set of layers, on random cases of up to twelve layers."""

from __future__ import annotations

from brute_force import brute_force, planned
from random_cases import random_case
from section import Say, Section

from strategies.planner import fit
from strategies.subsets import EXACT_LAYERS


def run(say: Say, cases: int) -> Section:
    """Plan as many cases, with 1 to 12 layers in turn.

    Args:
        say: takes a line for each number of layers.
        cases: of which each twelfth has twelve layers.
    """
    say(f"{'layers':>6}{'cases':>7}{'no plan':>9}{'equal':>7}")
    equal, unequal = 0, []
    for layers in range(1, EXACT_LAYERS + 1):
        seeds = range(layers - 1, cases, EXACT_LAYERS)
        none = same = 0
        for seed in seeds:
            case = random_case(seed, layers=layers)
            best = brute_force(**case)
            none += best is None
            if planned(fit, case) == best:
                same += 1
            else:
                unequal.append(seed)
        equal += same
        say(f"{layers:6}{len(seeds):7}{none:9}{same:7}")
    return Section(
        f"the best plan in every case, up to {EXACT_LAYERS} layers",
        f"{equal} of {cases}" + (f"; not with the seeds {unequal}" if unequal else ""),
        not unequal,
        {"cases": cases, "unequal_seeds": unequal},
    )
