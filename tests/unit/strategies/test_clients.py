import json

from strategies.clients import ASSUMED_ENVELOPE_BYTES, Client, Clients
from tests.unit.strategies.samples import board


def client(device_id, node_id=1, **fields):
    return Client(device_id, "fake", board(), 10, node_id, **fields)


def enrolled(*members):
    clients = Clients()
    for member in members:
        clients.enrol(member)
    return clients


def test_those_online_come_in_device_id_order():
    clients = enrolled(client("c", 1), client("a", 2), client("b", None))
    assert clients.online() == ["a", "c"]
    assert len(clients) == 3


def test_a_node_that_left_takes_its_client_offline():
    clients = enrolled(client("a", 1), client("b", 2))
    assert clients.unknown_nodes([2, 9, 7]) == [7, 9]
    assert clients.online() == ["b"]


def test_a_client_that_comes_back_on_another_node_keeps_what_is_known_of_it():
    clients = enrolled(client("a", 1, held_version=3, accepted=(2, "digest"), envelope_bytes=900))
    clients.unknown_nodes([])
    before = clients["a"].capacity, clients["a"].examples
    clients.enrol(Client("a", "other", board(memory=5e8), 20, 8))
    known = clients["a"]
    assert (known.node_id, known.profile) == (8, "other")
    assert (known.capacity, known.examples) == before  # a resumed server plans as one that went on
    assert (known.held_version, known.accepted, known.envelope_bytes) == (3, (2, "digest"), 900)


def test_a_client_that_was_asked_again_is_planned_with_what_it_says_now_also_after_a_restart():
    clients = enrolled(client("a", 1))
    clients.ask_again("a")
    restored = Clients()
    restored.restore(json.loads(json.dumps(clients.to_json())))
    for known in (clients, restored):
        known.enrol(Client("a", "other", board(memory=5e8), 20, 8))
        assert known["a"].capacity == board(memory=5e8)
        assert known["a"].examples == 20
        known.enrol(Client("a", "other", board(memory=6e8), 30, 9))
        assert known["a"].capacity == board(memory=5e8)


def test_clients_survive_json_but_are_offline_until_they_are_enrolled_again():
    clients = enrolled(client("b", 1, held_version=3, accepted=(2, "digest")), client("a", 2))
    restored = Clients()
    restored.restore(json.loads(json.dumps(clients.to_json())))
    assert restored.to_json() == clients.to_json()
    assert [entry["device_id"] for entry in restored.to_json()] == ["a", "b"]
    assert restored.online() == []
    assert restored["b"] == client("b", None, held_version=3, accepted=(2, "digest"))
    assert restored["a"].envelope_bytes == ASSUMED_ENVELOPE_BYTES


def test_a_client_to_be_asked_again_is_a_node_that_nobody_knows():
    clients = enrolled(client("a", 1), client("b", 2))
    clients.ask_again("a")
    assert clients.online() == ["b"]
    assert clients.unknown_nodes([1, 2]) == [1]
