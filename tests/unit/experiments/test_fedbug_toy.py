"""FedBug's toy against values that were computed by others, with other code."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[3] / "experiments" / "fedbug_toy"
MODULES = ("two_clients", "theory", "generalised", "claims")


@pytest.fixture(scope="module")
def toy():
    """The experiment's modules, which import each other by name."""
    sys.path.insert(0, str(FOLDER))
    try:
        yield {name: importlib.import_module(name) for name in MODULES}
    finally:
        sys.path.remove(str(FOLDER))
        for name in MODULES:
            sys.modules.pop(name, None)


def values(model):
    return [float(model.a[0]), float(model.b[0]), float(model.v[0])]


def test_the_first_seed_begins_and_goes_on_as_the_authors_notebooks_do(toy):
    start = toy["two_clients"].Model.drawn(1)
    assert values(start) == pytest.approx([1.09762701, 1.43037873, 1.2055267521], abs=1e-8)
    course = toy["two_clients"].play(start, rounds=2, frozen_steps=0)
    assert values(course[1]) == pytest.approx([1.0189316, 1.2918325605, 0.9653249323], abs=1e-7)
    assert values(course[2]) == pytest.approx([1.0229336783, 1.2443723541, 0.9046269777], abs=1e-9)
    course = toy["two_clients"].play(start, rounds=2, frozen_steps=10)
    expected = [
        [0.9649709888, 1.1331185369, 1.1989216052],
        [0.9002498554, 0.9852614166, 1.1955066293],
    ]
    for model, known in zip(course[1:], expected, strict=True):
        assert values(model) == pytest.approx(known, abs=1e-9)


@pytest.mark.parametrize(
    ("v", "expected"),
    [
        (0.5, {0: 0.97058824, 1: 0.95882353, 5: 0.91463327}),
        (1.0, {0: 0.75, 1: 0.725, 5: 0.6476225}),
        (1.5, {0: 0.58247423, 1: 0.56391753, 5: 0.52305827}),
    ],
)
def test_the_ratio_with_a_frozen_last_layer_is_the_exact_linearisation(toy, v, expected):
    for frozen_steps, known in expected.items():
        theory = toy["theory"].ratio_after_freezing(np.array([v]), frozen_steps, 0.05)
        assert theory[0] == pytest.approx(known, abs=1e-8)
        model = toy["two_clients"].Model(*(np.array([x]) for x in (1 / v + 1e-6, 1 / v - 1e-6, v)))
        steps = 2_000 if v < 1 else 500
        course = toy["two_clients"].play(
            model, rounds=1, frozen_steps=frozen_steps, steps=steps, rate=0.05
        )
        measured = toy["two_clients"].contraction(course, 0, 0)
        assert measured[0] == pytest.approx(known, abs=1e-5)


def test_the_deeper_toy_with_two_layers_and_one_feature_is_the_toy(toy):
    general, two = toy["generalised"], toy["two_clients"]
    weights = general.initial(general.Setting(), seed=3)
    a, b, v = weights[0][0, 0], weights[0][1, 0], weights[1][0, 0]
    for period in (0, 4):
        course = two.play(
            two.Model(np.array([a]), np.array([b]), np.array([v])),
            rounds=3,
            frozen_steps=period,
            steps=20,
            rate=0.05,
        )
        found = general.discrepancies(
            general.Setting(), 3, rounds=3, period=period, steps=20, rate=0.05
        )
        expected = [max(abs(m.a[0] * m.v[0] - 1), abs(m.b[0] * m.v[0] - 1)) for m in course[1:]]
        assert found == pytest.approx(expected, rel=1e-9)


def test_every_claim_that_theory_demands_holds_for_some_seeds(toy):
    claims = toy["claims"]
    checked = [
        claims.conservation(5),
        claims.contraction_of_fedavg(12),
        claims.faster_than_fedavg(5),
        claims.contraction_of_fedbug(5),
        claims.fedbabu(5),
        claims.negative_output(),
        claims.not_convex(),
    ]
    assert [claim.number for claim in checked if not claim.holds] == []
