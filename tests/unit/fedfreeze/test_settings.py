import pytest
from pydantic import ValidationError

from fedfreeze.settings import Bytes, BytesPerS, Seconds, Settings


class Link(Settings):
    round_trip: Seconds = 0.1
    uplink: BytesPerS = 1e6
    buffer: Bytes = 0.0


def test_code_states_quantities_in_base_units_or_with_a_unit():
    assert Link(round_trip=2.5) == Link(round_trip="2500 ms")
    assert Link(uplink="8 kbit/s").uplink == 1000.0


def test_a_whole_number_is_no_quantity_because_it_may_be_one_whose_unit_was_forgotten():
    with pytest.raises(ValidationError, match='expected a quantity with its unit such as "60 s"'):
        Link(round_trip=2)


def test_a_quantity_below_zero_is_refused_in_code_too():
    with pytest.raises(ValidationError, match="greater than or equal to 0"):
        Link(round_trip=-1.0)


def test_json_holds_the_unit_and_python_the_number():
    link = Link(buffer=1.5)
    assert link.model_dump(mode="json", by_alias=True) == {
        "round-trip": "0.1 s",
        "uplink": "1000000 B/s",
        "buffer": "1.5 B",
    }
    assert link.model_dump() == {"round_trip": 0.1, "uplink": 1e6, "buffer": 1.5}


def test_settings_do_not_change():
    with pytest.raises(ValidationError, match="frozen"):
        Link().round_trip = 1.0
