"""A run, and each of its rounds as five steps: ask, plan, send, train, merge."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import uuid
from collections.abc import Mapping
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
from fedfreeze.run_folder import RunFailure, RunState, RunStatus
from fedfreeze.wall_clock import SystemClock, WallClock
from server_app.checkpoint import Checkpoint, CheckpointFolder
from server_app.evaluation import Score, evaluate
from server_app.exchange import Exchange
from server_app.journal import Lines, decisions
from server_app.run_config import RunRequest
from server_app.totals import Totals
from strategies.enrolment import wait_for_nodes
from strategies.flower import FedFreeze
from strategies.round_result import RoundResult
from tasks.task import initial_arrays, load


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
        self.task = load(self.settings.task)
        layout = self.task.layout()
        fleet = request.fleet_toml or fleet_text(self.settings.fleet)
        self.fleet = fleet_from_text(fleet, "fleet.toml")
        self.exchange = Exchange(self.clock)
        self.strategy = FedFreeze(
            self.settings,
            layout,
            fleet=fleet,
            run=f"{self.folder.name}-{uuid.uuid4().hex[:12]}",
            state_dir=str(self.folder.simulated_boards),
            exchange=self.exchange,
        )
        split = self.settings.data
        self.validation = self.task.validation(
            partition=split.partition,
            alpha=split.alpha,
            validation_share=split.validation_share,
            seed=self.settings.seed,
            data_dir=None,
        )
        self.test = self.task.test(None)
        self.checkpoints = CheckpointFolder(self.folder.checkpoint, self._identity())
        self.rounds = Lines(self.folder.rounds)
        self.decisions = Lines(self.folder.decisions)
        self.totals = Totals()
        self.done = 0
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
        validation, test = self._evaluate()
        self.strategy.observe(validation.loss)
        self._write_down(validation, test, self.clock.now() - begin_s)

    # ---- what is written down

    def _begin(self) -> None:
        """Take up the checkpoint, or start afresh."""
        checkpoint = self.checkpoints.latest() if self.request.resume else None
        if checkpoint is not None:
            try:
                self.strategy.restore(checkpoint.state["strategy"], checkpoint.arrays)
                self.totals = Totals(**checkpoint.state["totals"])
            except (KeyError, TypeError, ValueError, FedFreezeError) as error:
                raise StateError(
                    f"{self.folder.checkpoint}: the checkpoint of round {checkpoint.number} cannot "
                    f"be taken up ({error!r:.200}); start a new run"
                ) from error
            self.done = checkpoint.number
            log(INFO, "resumed after round %d", self.done)
        else:
            self.strategy.publish(initial_arrays(self.task, self.settings.seed))
        self.rounds.cut_after(self.done)
        self.decisions.cut_after(self.done)
        self.folder.config.write_text(self._config_text(), encoding="utf-8")
        self._write_status("running")

    def _evaluate(self) -> tuple[Score, Score]:
        # One thread: the validation loss feeds decisions, and must not differ in its last bits.
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            arrays = self.strategy.published.arrays
            return (
                evaluate(self.task, arrays, self.validation),
                evaluate(self.task, arrays, self.test),
            )
        finally:
            torch.set_num_threads(threads)

    def _write_down(self, validation: Score, test: Score, wall_s: float) -> None:
        result = self.strategy.result
        assert result is not None, "a round was just merged"
        record = self._record(result, validation, test, wall_s)
        self.decisions.append(*decisions(result, self.strategy.layout))
        self.rounds.append(record)
        self.done = result.number
        self.checkpoints.save(
            Checkpoint(
                self.done,
                self.strategy.published.arrays,
                {"strategy": self.strategy.state(), "totals": self.totals.to_json()},
            )
        )
        self._write_status("running")
        log(
            INFO,
            "round %d/%d %s %.3f, %d used, %d failed, %d bytes up",
            self.done,
            self.settings.rounds,
            self.task.metric,
            test.score,
            len(result.used),
            len(result.failed),
            result.upload_bytes,
        )

    def _record(
        self, result: RoundResult, validation: Score, test: Score, wall_s: float
    ) -> dict[str, Any]:
        layout = self.strategy.layout
        dense = sum(t.nbytes for t in layout.tensors.values() if t.is_float) * len(result.answers)
        self.totals.add(result, dense, test.score, wall_s)
        record: dict[str, Any] = {
            "round": result.number,
            "rounds": self.settings.rounds,
            f"test_{self.task.metric}": test.score,
            "test_loss": test.loss,
            "validation_loss": validation.loss,
            f"validation_{self.task.metric}": validation.score,
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
            "dense_upload_bytes": dense,
            "simulated_s": result.simulated_s,
            "simulated_total_s": self.strategy.clock.now_s,
            "wall_s": wall_s,
        }
        if (share := result.frozen_share(layout)) is not None:
            record["frozen_share"] = share
        if (loss := result.train_loss()) is not None:
            record["train_loss"] = loss
        if result.failed:
            record["failures"] = dict(sorted(result.failed.items()))
        return record

    def _write_status(self, state: RunState, error: RunFailure | None = None) -> None:
        summary = {
            **self.totals.summary(self.task.metric),
            "simulated_s": self.strategy.clock.now_s,
        }
        self.folder.write_status(
            RunStatus(state, self.done, self.settings.rounds, error, summary if self.done else None)
        )

    def _config_text(self) -> str:
        versions = {name: importlib.metadata.version(name) for name in ("flwr", "torch", "numpy")}
        lines = [
            f"# run {self.folder.name}",
            f"# code {code_digest()}, layout {self.strategy.layout.fingerprint}",
            f"# {', '.join(f'{name} {version}' for name, version in versions.items())}",
            f"# data: {self.task.data_source(None)}",
        ]
        return "\n".join([*lines, strict_toml.write(self.settings)])

    def _identity(self) -> str:
        """Of everything that a checkpoint depends on; the number of rounds may grow."""
        settings: Mapping[str, Any] = self.settings.model_dump(mode="json", exclude={"rounds"})
        text = json.dumps([settings, self.strategy.layout.fingerprint], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]
