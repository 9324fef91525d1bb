"""A run, and each of its rounds as five steps: ask, plan, send, train, merge."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from logging import INFO, WARNING
from typing import Any

import torch
from flwr.app import ArrayRecord, ConfigRecord
from flwr.common.logger import log
from flwr.serverapp import Grid
from safetensors.numpy import save

from device_profiles.fleet import fleet_from_text, fleet_text
from fedfreeze import strict_toml
from fedfreeze.code_digest import code_digest
from fedfreeze.errors import FedFreezeError, FleetError, StateError
from fedfreeze.messages import NO_TEXT, SIMULATED
from fedfreeze.run_folder import RunFailure, RunState, RunStatus
from fedfreeze.wall_clock import SystemClock, WallClock
from server_app import attendance_records
from server_app.checkpoint import Checkpoint, CheckpointFolder
from server_app.evaluation import Score, evaluate, predict, score
from server_app.exchange import Exchange
from server_app.journal import Lines, decisions
from server_app.prediction_errors import PredictionErrors
from server_app.run_config import RunRequest
from server_app.totals import DenseBytes, Totals
from strategies.enrolment import wait_for_nodes
from strategies.flower import FedFreeze
from strategies.round_result import RoundResult
from tasks.loading import load
from tasks.rehearsal import rehearse
from tasks.spread import Viewpoints, spread, viewpoints


@dataclass(frozen=True)
class Scores:
    """How well the published model does; decisions may read ``validation`` alone."""

    validation: Score
    test: Score
    spread: Mapping[str, float]


class Run:
    """One run on one grid, from its start or from its last checkpoint.

    Raises:
        ConfigError: the task or the fleet does not exist.
        StateError: ``resume`` finds no checkpoint that reads back, or one of another strategy.
    """

    def __init__(self, request: RunRequest, grid: Grid, clock: WallClock | None = None) -> None:
        self.request = request
        self.settings = request.strategy
        self.folder = request.folder
        self.grid = grid
        self.clock = clock or SystemClock()
        self.task = load(self.settings.task, self.settings.options)
        self.data_dir = request.data_dir
        layout = self.task.layout()
        rehearse(self.task, self.data_dir)
        self.task.check_division(self.settings.split, self.data_dir)
        fleet = request.fleet_toml or fleet_text(self.settings.fleet)
        self.fleet = fleet_from_text(fleet, "fleet.toml")
        self.exchange = Exchange(self.clock)
        self.strategy = FedFreeze(
            self.settings,
            layout,
            fleet=fleet,
            run=f"{self.folder.name}-{uuid.uuid4().hex[:12]}",
            state_dir=str(self.folder.simulated_boards),
            data_dir=self.data_dir or NO_TEXT,
            exchange=self.exchange,
        )
        self.validation = self.task.validation(self.settings.split, self.data_dir)
        self.test = self.task.test(self.data_dir)
        self.checkpoints = CheckpointFolder(self.folder.checkpoint, self._identity())
        self.rounds = Lines(self.folder.rounds)
        self.decisions = Lines(self.folder.decisions)
        self.totals = Totals()
        self.prediction_errors = PredictionErrors()
        self.done = 0
        self.weights = ""
        self._seen: tuple[Viewpoints | None] | None = None
        self._begun = False

    # ---- the run

    def play(self, until: int | None = None) -> None:
        """Every round that is left, or those up to ``until``; then the final model.

        Raises:
            FleetError: too few nodes, or too few of them answer.
            RunError: a simulation worker died.
        """
        last = self.settings.rounds if until is None else until
        if not self._begun:
            self._begin()
            self._begun = True
        online = wait_for_nodes(
            self.grid,
            minimum=self.request.min_nodes,
            wanted=self.fleet.size,
            timeout_s=self.request.start_timeout_s,
            clock=self.clock,
        )
        if online < self.fleet.size:
            log(
                WARNING,
                "%d of the %d boards of this fleet take part; for all of them in a simulation: "
                '--federation-config "num-supernodes=%d client-resources-num-cpus=1"',
                online,
                self.fleet.size,
                self.fleet.size,
            )
        for number in range(self.done + 1, last + 1):
            self._play_round(number)
        if self.done >= self.settings.rounds:
            if self.strategy.published.version == 0:
                raise FleetError(
                    f"no update was merged in {self.done} round(s), so the model is as it began; "
                    f"{self.folder.rounds} says for each round who failed, was late or sat out"
                )
            self.folder.model.write_bytes(save(dict(self.strategy.published.arrays)))
            self._write_status("finished")
            log(INFO, "run %s is finished: %s", self.folder.name, self.folder.path)

    def fail(self, error: BaseException) -> None:
        """Leave behind why the run ended."""
        self._write_status("failed", RunFailure.of(error))

    def _play_round(self, number: int) -> None:
        begin_s = self.clock.now()
        # 1 ask, 2 plan, 3 send
        orders = self.strategy.configure_train(number, ArrayRecord(), ConfigRecord(), self.grid)
        # 4 train
        timeout_s = self.settings.clients.round_timeout
        replies, failed = self.exchange(self.grid, orders, timeout_s) if orders else ([], {})
        devices = self.strategy.devices()
        self.strategy.note_failures({devices[node]: why for node, why in failed.items()})
        # 5 merge
        self.strategy.aggregate_train(number, replies)
        scores = self._evaluate()
        self.strategy.observe(scores.validation.loss)
        self._write_down(scores, self.clock.now() - begin_s)

    # ---- what is written down

    def _begin(self) -> None:
        """Take up the checkpoint, or start afresh."""
        checkpoint = self.checkpoints.latest() if self.request.resume else None
        if checkpoint is not None:
            try:
                self.strategy.restore(
                    checkpoint.state["strategy"], checkpoint.arrays, checkpoint.memory
                )
                self.totals = Totals(**checkpoint.state["totals"])
            except (KeyError, TypeError, ValueError, FedFreezeError) as error:
                raise StateError(
                    f"{self.folder.checkpoint}: the checkpoint of round {checkpoint.number} cannot "
                    f"be taken up ({error!r:.200}); start a new run"
                ) from error
            self.done, self.weights = checkpoint.number, checkpoint.state["weights"]
            log(INFO, "resumed after round %d", self.done)
        else:
            arrays, self.weights = self.task.initial(self.settings.seed)
            self.strategy.publish(arrays)
        self.rounds.cut_after(self.done)
        self.decisions.cut_after(self.done)
        self.prediction_errors.add(self.decisions.read())
        self.folder.config.write_text(self._config_text(), encoding="utf-8")
        self._write_status("running")

    def _evaluate(self) -> Scores:
        # One thread: the validation loss feeds decisions, and must not differ in its last bits.
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            arrays = self.strategy.published.arrays
            outputs = predict(self.task, arrays, self.test.inputs)
            targets = self.test.targets
            seen = self._viewpoints()
            return Scores(
                validation=evaluate(self.task, arrays, self.validation),
                test=score(self.task, outputs, targets),
                spread={} if seen is None else spread(seen, outputs, targets),
            )
        finally:
            torch.set_num_threads(threads)

    def _viewpoints(self) -> Viewpoints | None:
        """What stands for the clients in the test half; boards with data of their own are unknown.

        Simulated clients are as many as the nodes, which do not change.
        """
        if self._seen is None:
            devices = self.strategy.clients.ids()
            if not all(device.startswith(SIMULATED) for device in devices):
                return None
            count = len(devices)
            self._seen = (viewpoints(self.task, self.settings.split, count, self.data_dir),)
        return self._seen[0]

    def _write_down(self, scores: Scores, wall_s: float) -> None:
        result = self.strategy.result
        assert result is not None, "a round was just merged"
        record = self._record(result, scores, wall_s)
        decided = decisions(result, self.strategy.layout)
        self.decisions.append(*decided)
        self.prediction_errors.add(decided)
        self.rounds.append(record)
        self.done = result.number
        self.checkpoints.save(
            Checkpoint(
                self.done,
                self.strategy.published.arrays,
                {
                    "strategy": self.strategy.state(),
                    "totals": self.totals.to_json(),
                    "weights": self.weights,
                },
                self.strategy.published.memory(),
            )
        )
        self._write_status("running")
        log(
            INFO,
            "round %d/%d %s %.3f, %d used, %d failed, %d bytes up",
            self.done,
            self.settings.rounds,
            self.task.metric.name,
            scores.test.headline,
            len(result.used),
            len(result.failed),
            result.upload_bytes,
        )

    def _record(self, result: RoundResult, scores: Scores, wall_s: float) -> dict[str, Any]:
        layout = self.strategy.layout
        dense = DenseBytes.of(result, layout)
        self.totals.add(result, dense, scores.test.headline, wall_s)
        record: dict[str, Any] = {
            "round": result.number,
            "rounds": self.settings.rounds,
            **{f"test_{name}": value for name, value in scores.test.values.items()},
            "test_loss": scores.test.loss,
            **scores.spread,
            "validation_loss": scores.validation.loss,
            **{f"validation_{name}": value for name, value in scores.validation.values.items()},
            "clients_asked": len(result.asked),
            "clients_used": len(result.used),
            "clients_failed": len(result.failed),
            "clients_late": len(result.late),
            "clients_sat_out": len(result.sat_out),
            "void": result.void,
            "learning_rate": self.strategy.learning_rate(result.number),
            "upload_bytes": result.upload_bytes,
            "upload_packet_bytes": result.upload_packet_bytes,
            "download_bytes": result.download_bytes,
            "dense_upload_bytes": dense.upload,
            "dense_download_bytes": dense.download,
            "simulated_s": result.simulated_s,
            "simulated_total_s": self.strategy.clock.now_s,
            "wall_s": wall_s,
        }
        record |= attendance_records.of_round(result, self._modelled_energy_j)
        if (share := result.frozen_share(layout)) is not None:
            record["frozen_share"] = share
        if (loss := result.train_loss()) is not None:
            record["train_loss"] = loss
        if (norm := result.residual_norm()) is not None:
            record["residual_norm"] = norm
        if (ratio := result.residual_ratio()) is not None:
            record["residual_ratio"] = ratio
        if result.residual_warnings:
            record["residual_warnings"] = dict(sorted(result.residual_warnings.items()))
        if result.untrainable:
            record["untrainable_layers"] = result.untrainable
        if result.sat_out:
            record["sat_out"] = dict(sorted(result.sat_out.items()))
        if result.failed:
            record["failures"] = dict(sorted(result.failed.items()))
        return record

    def _write_status(self, state: RunState, error: RunFailure | None = None) -> None:
        summary = {
            **self.totals.summary(self.task.metric.name),
            "simulated_s": self.strategy.clock.now_s,
            **self.prediction_errors.summary(),
        }
        if self._modelled_energy_j is not None:
            summary["modelled_energy_total_j"] = self._modelled_energy_j
        self.folder.write_status(
            RunStatus(state, self.done, self.settings.rounds, error, summary if self.done else None)
        )

    @property
    def _modelled_energy_j(self) -> float | None:
        """Of the simulated boards so far."""
        return self.strategy.attendance.modelled_energy_total_j

    def _config_text(self) -> str:
        versions = {name: importlib.metadata.version(name) for name in ("flwr", "torch", "numpy")}
        lines = [
            f"# run {self.folder.name}",
            f"# code {code_digest()}, layout {self.strategy.layout.fingerprint}",
            f"# {', '.join(f'{name} {version}' for name, version in versions.items())}",
            f"# data: {self.task.dataset(self.data_dir).source}",
            f"# initial weights: {self.weights}",
        ]
        return "\n".join([*lines, strict_toml.write(self.settings)])

    def _identity(self) -> str:
        """Of everything that a checkpoint depends on; the number of rounds may grow."""
        settings: Mapping[str, Any] = self.settings.model_dump(mode="json", exclude={"rounds"})
        data = self.task.dataset(self.data_dir).fingerprint
        text = json.dumps([settings, self.strategy.layout.fingerprint, data], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]
