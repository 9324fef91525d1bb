"""Every split of every labelled set is a partition of it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tasks.partition import Split

labels = arrays.arrays(np.uint8, st.integers(1, 120), elements=st.integers(0, 4))
splits = st.builds(
    Split,
    partition=st.sampled_from(["iid", "dirichlet"]),
    alpha=st.floats(1e-4, 1e4),
    validation_share=st.floats(0.0, 0.6),
    seed=st.integers(0, 2**63),
)


@given(labels, splits, st.data())
def test_clients_and_validation_are_disjoint_and_complete_and_no_client_is_empty(
    labels, split, data
):
    validation = split.validation(labels)
    rest = len(labels) - len(validation)
    if rest == 0:  # one example of each class, and a share that rounds up
        return
    parts = split.clients(labels, data.draw(st.integers(1, min(rest, 12))))
    assert min(len(part) for part in parts) >= 1
    together = np.concatenate([validation, *parts])
    assert np.sort(together).tolist() == list(range(len(labels)))


@given(labels, splits)
def test_the_validation_set_is_stratified(labels, split):
    kept = np.bincount(labels[split.validation(labels)], minlength=5)
    share = split.validation_share * np.bincount(labels, minlength=5)
    assert np.abs(kept - share).max() <= 0.5


@given(labels, splits)
def test_the_same_seed_gives_the_same_split(labels, split):
    again = Split(split.partition, split.alpha, split.validation_share, split.seed)
    if len(split.validation(labels)) < len(labels):
        first, second = split.clients(labels, 1), again.clients(labels, 1)
        assert [part.tolist() for part in first] == [part.tolist() for part in second]
    assert split.validation(labels).tolist() == again.validation(labels).tolist()
