"""``fedfreeze``: freeze per client by stability, importance, affinity and collaborative gain.

Source: the FedFreeze text. Before each round, for client i and layer l,

    S  mean relative movement over the last T rounds in which l was trained, over the learning rate
    I  moving average of ||grad_l|| / sqrt(n_l)
    R  1 if the board can train l and all above it, else 0
    G  moving average of the fall of the validation loss, shared among the layers that moved
    FS = a (1 - N(S)) + b (1 - N(I)) + c (1 - R) + d (1 - N(G))          (scores.py)

A layer with FS above the threshold is frozen for a window of w_l rounds, the present one included;
w_l grows by one while the loss keeps falling without it and is halved when it does not (window.py).
A layer that only memory, time or uplink keep frozen moves no window. S and I are the
client's own where it has measured them, else the fleet's. Guards: nothing is frozen by score in
the first ``warm-up-rounds``; the share of frozen parameters ramps up to ``max-frozen-share``;
layers that were never observed are not frozen; the last layer that can train always does; a layer
that nobody has trained for ``max-window`` rounds is thawed everywhere.

Dividing S by the learning rate keeps a decaying rate from freezing everything.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

from pydantic import Field

from fedfreeze import settings
from fedfreeze.layout import Layout
from fedfreeze.plan import Reason
from strategies.freeze import scores
from strategies.freeze.policy import Advice, ClientView, FreezePolicy, RoundOutcome, RoundView
from strategies.freeze.window import next_window, relative_fall


class FedFreezeSettings(settings.Settings):
    """``[freeze]`` of policy ``fedfreeze``."""

    policy: Literal["fedfreeze"] = "fedfreeze"
    threshold: settings.Share = Field(0.6, description="fused score above which a layer freezes")
    warm_up_rounds: settings.Natural = Field(5, description="rounds without freezing by score")
    ramp_rounds: settings.PositiveInt = Field(
        5, description="rounds after the warm-up until max-frozen-share is reached"
    )
    max_frozen_share: settings.Share = Field(
        0.7, description="largest share of the parameters that the score may freeze on a client"
    )
    max_window: settings.PositiveInt = Field(10, description="longest freeze window, in rounds")
    history: settings.PositiveInt = Field(5, description="observed rounds that stability averages")
    keep: settings.Share = Field(0.9, description="weight of the past in moving averages")
    loss_lag: settings.PositiveInt = Field(3, description="rounds between compared losses")
    patience: settings.Share = Field(
        0.5, description="share of its usual pace by which the loss may slow down unpunished"
    )
    stability_weight: settings.NonNegative = Field(
        0.3, description="a: weight of stability in the fused score"
    )
    importance_weight: settings.NonNegative = Field(0.3, description="b: weight of importance")
    affinity_weight: settings.NonNegative = Field(0.2, description="c: weight of resource affinity")
    gain_weight: settings.NonNegative = Field(0.2, description="d: weight of collaborative gain")


class FedFreeze(FreezePolicy):
    """See the module's docstring."""

    name: ClassVar[str] = "fedfreeze"
    Settings: ClassVar[type[settings.Settings]] = FedFreezeSettings
    settings: FedFreezeSettings

    def __init__(self, settings: FedFreezeSettings, layout: Layout) -> None:
        super().__init__(settings, layout)
        self._weights = scores.Weights(
            settings.stability_weight,
            settings.importance_weight,
            settings.affinity_weight,
            settings.gain_weight,
        )
        # "" is the fleet as a whole, beside the clients by device id.
        self._movement: dict[str, dict[str, list[float]]] = {"": {}}
        self._importance: dict[str, dict[str, float]] = {"": {}}
        self._gain: dict[str, float] = {}
        self._window: dict[str, int] = dict.fromkeys(layout.names, 1)
        self._frozen_until: dict[str, dict[str, int]] = {}
        self._last_trained: dict[str, int] = dict.fromkeys(layout.names, 0)
        self._losses: list[float] = []
        self._usual_fall: float | None = None

    # ---- server half

    def advise(self, view: RoundView, client: ClientView) -> Advice:
        """Freeze what a running window holds, then by score within the allowed share."""
        names = self.layout.names
        head = next(layer.name for layer in reversed(self.layout.layers) if layer.parameters)
        stability = {name: self._stability(client.device_id, name) for name in names}
        importance = {name: self._importance_of(client.device_id, name) for name in names}
        gains = {name: self._gain.get(name, 0.0) for name in names}
        known = [n for n in names if stability[n] is not None and importance[n] is not None]
        score = scores.fused(
            stability={n: s for n in known if (s := stability[n]) is not None},
            importance={n: i for n in known if (i := importance[n]) is not None},
            affinity={n: client.feasible[n] for n in known},
            gain={n: gains[n] for n in known},
            weights=self._weights,
        )
        frozen = self._held(view, client.device_id)
        room = self._allowed_share(view.number) * self.layout.parameter_count
        room -= sum(self.layout[name].parameter_count for name in frozen)
        for name in sorted(score, key=lambda n: (-score[n], names.index(n))):
            size = self.layout[name].parameter_count
            candidate = score[name] > self.settings.threshold and size <= room
            if not candidate or name in frozen or name == head or self._starved(view, name):
                continue
            room -= size
            frozen[name] = Reason(
                "score",
                f"score {score[name]:.3f} above {self.settings.threshold:g}, "
                f"frozen for {self._window[name]} round(s)",
            )
        return Advice(
            frozen=frozen,
            values={name: 1 - score.get(name, 0.0) for name in names},
            must_train=(head,),
            inputs={
                name: {
                    "stability": stability[name],
                    "importance": importance[name],
                    "affinity": int(client.feasible[name]),
                    "gain": self._gain.get(name),
                    "score": score.get(name),
                    "window": self._window[name],
                }
                for name in names
            },
        )

    def observe(self, outcome: RoundOutcome) -> None:
        """Update S, I, G and the windows from a merged round."""
        if not math.isfinite(outcome.validation_loss or 0.0):
            # A diverged model has no loss to learn from; NaN would stay in every average.
            outcome = replace(outcome, validation_loss=None)
        for name, movement in outcome.movement.items():
            self._remember("", name, movement, outcome.learning_rate)
            self._last_trained[name] = outcome.number
        for device_id, client in sorted(outcome.clients.items()):
            for name, measured in client.measures.items():
                self._remember(device_id, name, measured.movement, outcome.learning_rate)
                for who in ("", device_id):
                    table = self._importance.setdefault(who, {})
                    past = table.get(name, measured.gradient_norm)
                    keep = self.settings.keep
                    table[name] = keep * past + (1 - keep) * measured.gradient_norm
        for device_id, client in outcome.clients.items():
            timers = self._frozen_until.setdefault(device_id, {})
            for name in self.layout.names:
                reason = client.plan.frozen.get(name)
                if reason is not None and reason.code == "score":
                    timers[name] = outcome.number + self._window[name] - 1
                elif reason is None or reason.code != "window":
                    # Thawed before its time: others may have been frozen in its place.
                    timers.pop(name, None)
        self._learn_gain(outcome)
        self._learn_windows(outcome)
        if outcome.validation_loss is not None:
            self._losses = [*self._losses, outcome.validation_loss][-1 - self.settings.loss_lag :]

    def state(self) -> dict[str, Any]:
        """Everything that later advice depends on; later rounds do not change it."""
        return copy.deepcopy(
            {
                "movement": self._movement,
                "importance": self._importance,
                "gain": self._gain,
                "window": self._window,
                "frozen_until": self._frozen_until,
                "last_trained": self._last_trained,
                "losses": self._losses,
                "usual_fall": self._usual_fall,
            }
        )

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back :meth:`state`."""
        self._movement = {who: dict(table) for who, table in state["movement"].items()}
        self._importance = {who: dict(table) for who, table in state["importance"].items()}
        self._gain = dict(state["gain"])
        self._window = dict(state["window"])
        self._frozen_until = {who: dict(table) for who, table in state["frozen_until"].items()}
        self._last_trained = dict(state["last_trained"])
        self._losses = list(state["losses"])
        self._usual_fall = state["usual_fall"]

    # ---- parts of the server half

    def _stability(self, device_id: str, name: str) -> float | None:
        own = scores.stability(self._movement.get(device_id, {}).get(name, ()))
        return own if own is not None else scores.stability(self._movement[""].get(name, ()))

    def _importance_of(self, device_id: str, name: str) -> float | None:
        own = self._importance.get(device_id, {}).get(name)
        return own if own is not None else self._importance[""].get(name)

    def _allowed_share(self, number: int) -> float:
        after = number - self.settings.warm_up_rounds
        return self.settings.max_frozen_share * min(1.0, max(0, after) / self.settings.ramp_rounds)

    def _starved(self, view: RoundView, name: str) -> bool:
        return view.number - self._last_trained[name] > self.settings.max_window

    def _held(self, view: RoundView, device_id: str) -> dict[str, Reason]:
        held = {}
        for name, until in self._frozen_until.get(device_id, {}).items():
            if view.number <= until and not self._starved(view, name):
                held[name] = Reason("window", f"frozen through round {until}")
        return {name: held[name] for name in self.layout.names if name in held}

    def _remember(self, who: str, name: str, movement: float, learning_rate: float) -> None:
        """Keep one observation of S; a schedule that ends at rate 0 gives none."""
        rate_free = movement / learning_rate if learning_rate > 0 else math.inf
        if math.isfinite(rate_free):
            table = self._movement.setdefault(who, {})
            table[name] = [*table.get(name, []), rate_free][-self.settings.history :]

    def _learn_gain(self, outcome: RoundOutcome) -> None:
        if outcome.validation_loss is None or not self._losses:
            return
        total_weight = sum(client.weight for client in outcome.clients.values())
        total_square = sum(norm**2 for norm in outcome.step_norm.values())
        for name in self.layout.names:
            trained = sum(c.weight for c in outcome.clients.values() if name in c.plan.trained)
            step = outcome.step_norm.get(name, 0.0) ** 2
            self._gain[name] = scores.gain(
                self._gain.get(name, 0.0),
                loss_fall=self._losses[-1] - outcome.validation_loss,
                trained_share=trained / total_weight if total_weight else 0.0,
                step_share=step / total_square if total_square else 0.0,
                keep=self.settings.keep,
            )

    def _learn_windows(self, outcome: RoundOutcome) -> None:
        if outcome.validation_loss is None:
            return
        fall = relative_fall([*self._losses, outcome.validation_loss], lag=self.settings.loss_lag)
        if fall is None:
            return
        usual = self._usual_fall if self._usual_fall is not None else fall
        on_pace = fall >= (1 - self.settings.patience) * usual
        self._usual_fall = self.settings.keep * usual + (1 - self.settings.keep) * fall
        for name in self.layout.names:
            # Only what was frozen on purpose: others train what one board cannot afford.
            reasons = [client.plan.frozen.get(name) for client in outcome.clients.values()]
            if any(reason and reason.code in {"score", "window"} for reason in reasons):
                self._window[name] = next_window(
                    self._window[name], grow=on_pace, largest=self.settings.max_window
                )
