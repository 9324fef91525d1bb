from strategies.round_result import RoundResult
from strategies.selection import Chosen, Offer, Prediction
from strategies.selection.log import offer_of, records_of, selection_record

OFFER = Offer(7, ("c", "a", "b"), {"a": Prediction(30.0, 5e7), "b": Prediction(70.0, 2e7)})
CHOSEN = Chosen(
    OFFER,
    ("a", "c"),
    rule="oort",
    why={"a": "exploit", "c": "explore"},
    scores={"a": 0.9, "b": 0.4},
    figures={"exploration": 0.8, "preferred_s": 41.5},
)


def test_a_record_says_who_was_there_who_was_asked_and_why():
    assert selection_record(CHOSEN) == {
        "round": 7,
        "selection": {
            "rule": "oort",
            "exploration": 0.8,
            "preferred_s": 41.5,
            "clients": {
                "a": {"why": "exploit", "score": 0.9, "modelled_s": 30.0, "work": 5e7},
                "b": {"score": 0.4, "modelled_s": 70.0, "work": 2e7},
                "c": {"why": "explore"},
            },
        },
    }


def test_what_was_offered_can_be_read_off_the_record():
    found = offer_of(selection_record(CHOSEN))
    assert found == Offer(7, ("a", "b", "c"), OFFER.predictions)


def test_a_rule_without_reasons_leaves_no_record():
    assert records_of(RoundResult(7)) == []
