"""Sending messages and collecting replies, without ever waiting longer than asked.

Flower's ``send_and_receive`` polls every three seconds in deployment, and one of its pulls can
block for minutes while a slow board is still uploading. Here a thread pulls and the caller waits
for it no longer than the timeout.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from logging import WARNING

from flwr.app import Message
from flwr.common.logger import log
from flwr.serverapp import Grid

from fedfreeze.errors import RunError
from fedfreeze.messages import WORKER_DIED, printable
from fedfreeze.wall_clock import SystemClock, WallClock

POLL_S = 0.1

# Of a client's error, what is worth keeping: its last lines.
MOST_REASON = 500


class Exchange:
    """Callable as :data:`strategies.enrolment.Exchange` wants it.

    Raises:
        RunError: a simulation worker died; Ray would fail every later message in no time.
    """

    def __init__(self, clock: WallClock | None = None, poll_s: float = POLL_S) -> None:
        self._clock = clock or SystemClock()
        self._poll_s = poll_s

    def __call__(
        self, grid: Grid, messages: Sequence[Message], timeout_s: float
    ) -> tuple[list[Message], dict[int, str]]:
        """Send, and return the good replies and why each other node has none."""
        owner, failed = _pushed(grid, messages)
        good: list[Message] = []
        puller = _Puller(grid, set(owner), self._poll_s)
        end_s = self._clock.now() + timeout_s
        try:
            while owner and (left_s := end_s - self._clock.now()) > 0:
                for reply in puller.next(left_s):
                    # Errors made by the SuperLink carry its own node id: the message id decides.
                    node = owner.pop(reply.metadata.reply_to_message_id, None)
                    if node is None:
                        continue
                    if reply.has_error():
                        failed[node] = _reason(reply, node)
                    else:
                        good.append(reply)
        finally:
            puller.stop()
        failed.update(dict.fromkeys(owner.values(), f"no reply within {timeout_s:g} s"))
        return good, failed


def _pushed(grid: Grid, messages: Sequence[Message]) -> tuple[dict[str, int], dict[int, str]]:
    """The node that each message id belongs to, and the nodes that were not reached.

    Flower gives no id for a message that it did not take: a shorter list or None in its place.
    """
    # A list: a generator would be walked twice in deployment.
    ids = list(grid.push_messages(list(messages)))
    if len(ids) != len(messages):  # the grid has also noted each id in its message
        taken = set(ids)
        ids = [i if (i := m.metadata.message_id) in taken else "" for m in messages]
    owner: dict[str, int] = {}
    failed: dict[int, str] = {}
    for message_id, message in zip(ids, messages, strict=True):
        node = message.metadata.dst_node_id
        if message_id:
            owner[message_id] = node
        else:
            failed[node] = "the order was not taken; the node has left, or the order is too large"
            log(WARNING, "node %d: %s", node, failed[node])
    return owner, failed


class _Puller:
    """A daemon thread that pulls until everything came or it is told to stop."""

    def __init__(self, grid: Grid, waiting: set[str], poll_s: float) -> None:
        self._grid = grid
        self._waiting = waiting
        self._poll_s = poll_s
        self._arrived: queue.Queue[list[Message] | BaseException] = queue.Queue()
        self._stopped = threading.Event()
        threading.Thread(target=self._run, name="fedfreeze-pull", daemon=True).start()

    def next(self, timeout_s: float) -> list[Message]:
        """What came next; empty after ``timeout_s``."""
        try:
            arrived = self._arrived.get(timeout=timeout_s)
        except queue.Empty:
            return []
        if isinstance(arrived, BaseException):
            raise arrived
        return arrived

    def stop(self) -> None:
        self._stopped.set()

    def _run(self) -> None:
        try:
            while self._waiting and not self._stopped.is_set():
                replies = list(self._grid.pull_messages(sorted(self._waiting)))
                self._waiting -= {reply.metadata.reply_to_message_id for reply in replies}
                if replies:
                    self._arrived.put(replies)
                elif self._waiting:
                    self._stopped.wait(self._poll_s)
        except BaseException as error:  # noqa: BLE001 - handed to the waiting caller
            self._arrived.put(error)


def _last_lines(text: str) -> str:
    """The end of a traceback, by whole lines, about MOST_REASON characters; one line at least."""
    lines = text.strip().splitlines() or [""]
    kept: list[str] = []
    for line in reversed(lines):
        if kept and sum(map(len, kept)) + len(line) > MOST_REASON:
            break
        kept.insert(0, printable(line[-MOST_REASON:], MOST_REASON))
    return "\n".join(kept)


def _reason(reply: Message, node: int) -> str:
    reason = f"code {reply.error.code}: {_last_lines(reply.error.reason or 'no reason given')}"
    if reply.error.code == WORKER_DIED:
        raise RunError(
            f"a simulation worker died ({reason}); the machine may be out of memory: use fewer "
            "workers, then go on with --resume"
        )
    log(WARNING, "node %d failed: %s", node, reason)
    return reason
