import numpy as np
import pytest

from strategies.methods import METHODS, method_for
from strategies.methods.fedavg import FedAvgSettings
from tests.unit.strategies.samples import stack


@pytest.mark.parametrize("rate", [1.0, 0.5, 1.5])
def test_fedavg_steps_by_the_mean_times_its_server_learning_rate(rate):
    method = method_for(FedAvgSettings(server_learning_rate=rate), stack())
    mean = np.array([2.0, -4.0])
    assert method.step("any", mean).tolist() == [2 * rate, -4 * rate]
    assert mean.tolist() == [2.0, -4.0]


@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_found_by_the_name_that_its_settings_carry(name):
    table = METHODS[name].Settings()
    method = method_for(table, stack())
    assert type(method) is METHODS[name]
    assert table.name == name
    method.restore(method.state())
