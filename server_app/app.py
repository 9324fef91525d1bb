"""The Flower server: read the run config, run, and leave behind how it ended."""

from __future__ import annotations

import contextlib
from logging import ERROR
from pathlib import Path

from flwr.app import Context
from flwr.common.logger import log
from flwr.serverapp import Grid, ServerApp

from fedfreeze.errors import FedFreezeError
from fedfreeze.run_folder import RunFailure, RunFolder, RunStatus
from server_app.round import Run
from server_app.run_config import read

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """One run. Flower ends it as failed if this raises."""
    folder: RunFolder | None = None
    run: Run | None = None
    try:
        request = read(context.run_config)
        folder = request.folder
        run = Run(request, grid)
        run.play()
    except BaseException as error:
        if isinstance(error, FedFreezeError):
            for line in str(error).splitlines():
                log(ERROR, "%s", line)
        _leave_behind(error, run, folder, context.run_config.get("out-dir"))
        raise


def _leave_behind(
    error: BaseException, run: Run | None, folder: RunFolder | None, out_dir: object
) -> None:
    """Whoever follows the run reads this instead of a traceback, if the disk has room for it."""
    with contextlib.suppress(OSError):
        _write_failure(error, run, folder, out_dir)


def _write_failure(
    error: BaseException, run: Run | None, folder: RunFolder | None, out_dir: object
) -> None:
    if run is not None:
        run.fail(error)
        return
    if folder is None and isinstance(out_dir, str) and out_dir:
        folder = RunFolder(Path(out_dir))
    if folder is not None and folder.path.is_dir():
        folder.write_status(RunStatus("failed", 0, 0, RunFailure.of(error)))
