"""What the server and the boards of a small run hold."""

from client_app.store import BoardStore


def model_of(run):
    """The published model, as bytes by tensor."""
    return {name: array.tobytes() for name, array in run.strategy.published.arrays.items()}


def held_by(run, index):
    """The stored state of one board."""
    store = BoardStore(
        run.folder.path / "simulated-boards",
        f"sim-{index:04d}",
        run=run.strategy.run,
        fingerprint=run.strategy.layout.fingerprint,
    )
    return store.load()
