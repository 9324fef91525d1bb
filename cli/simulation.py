"""One simulated run from request to end, on a SuperLink of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import psutil
import tomli_w

from cli import bundle
from cli.flower import FlowerCommand
from cli.follow import Say, Submitted, follow
from cli.progress import without_colours
from cli.request import Request
from cli.superlink import SuperLink, private_superlink
from fedfreeze.errors import FedFreezeError
from fedfreeze.run_folder import RunFailure, RunFolder, writing

# A worker that has loaded torch and one small model; with less they would swap or be killed.
_WORKER_BYTES = 1_200_000_000


def default_workers(clients: int) -> int:
    """One for each core, as far as memory and clients go."""
    with contextlib.suppress(AttributeError):  # not on macOS
        cores = len(os.sched_getaffinity(0))
        return _workers(clients, cores, psutil.virtual_memory().available)
    return _workers(clients, os.cpu_count() or 1, psutil.virtual_memory().available)


def _workers(clients: int, cores: int, memory_bytes: int) -> int:
    """The smallest of the three limits, at least 1.

    >>> _workers(10, 4, 3_000_000_000)
    2
    """
    return max(1, min(clients, cores, memory_bytes // _WORKER_BYTES))


def federation(clients: int, workers: int, *, device: str) -> str:
    """Flower's words for the simulation's size.

    Cores are a count of places for Ray, so workers are not bound to the cores that exist.

    >>> federation(10, 2, device="cpu")
    'num-supernodes=10 client-resources-num-cpus=1 init-args-num-cpus=2'
    """
    words = f"num-supernodes={clients} client-resources-num-cpus=1 init-args-num-cpus={workers}"
    # Ray hides the GPU from workers that ask for none; a little less than a share rounds safely.
    return words + (f" client-resources-num-gpus={0.999 / workers:.3f}" if device == "cuda" else "")


def simulate(asked: Request, folder: RunFolder, workers: int, say: Say) -> RunFailure | None:
    """Run a request over simulated boards; go on from the checkpoint if there is one.

    Returns:
        None for a run that finished, else why it failed.

    Raises:
        ConfigError: its files cannot be written.
        RunError: it could not be started.
        KeyboardInterrupt: it was stopped; what it started has ended.
    """
    strategy = asked.strategy
    say(f"run        {folder.name}")
    size = f"{strategy.rounds} rounds, seed {strategy.seed}"
    say(f"strategy   {asked.stem}: task {strategy.task}, {size}")
    say(f"fleet      {strategy.fleet}: {asked.clients} boards, {workers} simulated at once")
    say(f"folder     {folder.path}")
    with writing(folder.path):
        resume = _prepare(folder)
        asked.save(folder)
    say("starting a SuperLink of its own")
    with private_superlink(folder.name) as superlink:
        try:
            words = federation(asked.clients, workers, device=strategy.local.device)
            failure = _submit_and_follow(asked, folder, superlink, words, say, resume=resume)
        except FedFreezeError:
            _keep_superlink_log(superlink, folder)
            raise
        finally:
            _strip_colours(folder.flower_log)
        if failure is not None:
            _keep_superlink_log(superlink, folder)
        return failure


def _prepare(folder: RunFolder) -> bool:
    """Clear what an earlier part of the run left that must not be read again.

    Returns:
        Whether there is a checkpoint to go on from; without one the run begins anew.
    """
    if folder.checkpoint.is_dir() and any(
        not path.name.startswith(".") for path in folder.checkpoint.iterdir()
    ):
        folder.status.unlink(missing_ok=True)
        return True
    for path in (folder.status, folder.config, folder.rounds, folder.decisions, folder.model):
        path.unlink(missing_ok=True)
    for path in (folder.checkpoint, folder.simulated_boards):
        shutil.rmtree(path, ignore_errors=True)
    return False


def _submit_and_follow(
    asked: Request, folder: RunFolder, superlink: SuperLink, words: str, say: Say, *, resume: bool
) -> RunFailure | None:
    at = superlink.workspace
    config = at.path / "run-config.toml"
    with writing(at.path):
        config.write_text(tomli_w.dumps(asked.run_config(folder, resume=resume)), encoding="utf-8")
        app = bundle.stage(at.app)
        if asked.task is not None:
            asked.task.stage(app)
        folder.flower_log.touch()
    flower = FlowerCommand(superlink.env, at.cwd)
    say("submitting the app")
    run_id = flower.submit(app, words, config)
    log = flower.follow_log(run_id, folder.flower_log)
    say("starting the server app")
    try:
        run = Submitted(run_id, folder, log, superlink.problem, superlink.server_app_is_gone)
        return follow(run, flower, say)
    finally:
        log.close(0)


def _keep_superlink_log(superlink: SuperLink, folder: RunFolder) -> None:
    with contextlib.suppress(OSError):
        shutil.copyfile(superlink.workspace.log, folder.superlink_log)


def _strip_colours(log: Path) -> None:
    if log.is_file():
        text = log.read_text(encoding="utf-8", errors="replace")
        log.write_text(without_colours(text), encoding="utf-8")
