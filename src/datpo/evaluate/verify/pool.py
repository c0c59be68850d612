"""Worker processes that compare answers under limits of time and memory, and survive whatever the answers do.

Each worker is a pair of processes (`worker`): one that compares and is ended by the kernel when an item takes too
long, and one that puts another in its place within milliseconds. So an item always gets a reply, no hung process
is left behind, and nothing depends on signals or on the main thread of this process: a pool may be used from any
thread. Workers end when this process does, however it ends: they read the end of their input.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

import datpo

Pair = tuple[str, str]  # a key and an answer

SECONDS = 5.0  # for one item
MEGABYTES = 1024  # of address space, for one comparing process
MOST_WORKERS = 16
START_SECONDS = 180.0  # a cold import of SymPy from a busy network disk
GRACE_SECONDS = 5.0  # beyond the limit, before this side stops waiting for a worker

_LOG = logging.getLogger(__name__)


class Pool:
    """A fixed number of workers, started when first needed.

    Args:
        workers: how many; by default one for each CPU this process may use.
        seconds: time limit for one item.
        megabytes: memory limit for one item.
        module: the module of this package whose `judge` compares.
    """

    def __init__(
        self,
        workers: int | None = None,
        seconds: float = SECONDS,
        megabytes: int = MEGABYTES,
        module: str = "compare",
    ) -> None:
        self.workers = workers or min(MOST_WORKERS, _cpus())
        self.seconds, self.megabytes, self.module = seconds, megabytes, module
        self._owner = os.getpid()
        self._closed = False
        self._threads = ThreadPoolExecutor(self.workers, thread_name_prefix="answer-checker")
        self._idle: SimpleQueue[_Worker | None] = SimpleQueue()
        for _ in range(self.workers):
            self._idle.put(None)  # a place for a worker yet to be started
        atexit.register(self.close)

    def judge(self, pairs: Sequence[Pair]) -> list[str]:
        """The verdict of the module's `judge` on each (key, answer), in order; `timeout` where it hit a limit.

        Raises:
            RuntimeError: the pool is closed, or a worker cannot be started at all.
        """
        if self._closed:
            raise RuntimeError("this pool of answer checkers is closed")
        if len(pairs) == 1:
            return [self._judge(pairs[0])]
        return list(self._threads.map(self._judge, pairs))

    def pids(self) -> list[int]:
        """The process ids of the idle workers (all of them, when no grading is under way)."""
        workers = [self._idle.get() for _ in range(self._idle.qsize())]
        for worker in workers:
            self._idle.put(worker)
        return [worker.pid for worker in workers if worker is not None]

    def close(self) -> None:
        """End the workers once they have finished what they are at; a closed pool stays closed."""
        if self._closed or os.getpid() != self._owner:
            return  # a forked copy of this process does not own the workers
        self._closed = True
        self._threads.shutdown()
        for _ in range(self.workers):
            worker = self._idle.get()
            if worker is not None:
                worker.close()
        atexit.unregister(self.close)

    def _judge(self, pair: Pair) -> str:
        worker = self._idle.get()
        try:
            for _ in range(2):  # a worker killed from outside is replaced, and its item tried once more
                worker = worker or _Worker(self.seconds, self.megabytes, self.module)
                reply = worker.ask(pair)
                if reply is not None:
                    return _verdict(reply, pair)
                worker.kill()
                worker = None
            return "timeout"
        finally:
            self._idle.put(worker)


def _cpus() -> int:
    """The CPUs this process may use: under Slurm fewer than there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _verdict(reply: str, pair: Pair) -> str:
    """The verdict in a worker's reply; a fault of the checker itself is logged and earns no reward."""
    if reply.startswith("error "):
        _LOG.warning("the answer checker failed on %r against %r: %s", pair[1][:200], pair[0][:200], reply[6:])
        return "wrong"
    return reply


class _Worker:
    """One pair of processes, and the pipes to it."""

    def __init__(self, seconds: float, megabytes: int, module: str) -> None:
        self.seconds = seconds
        source = str(Path(datpo.__file__).parents[1])
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # each would map memory of its own
        path = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")]))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "datpo.evaluate.verify.worker", str(seconds), str(megabytes), module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **threads, "PYTHONPATH": path},
            bufsize=0,
            start_new_session=True,  # so that both processes can be killed, and Ctrl-C is this side's to handle
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._unread = b""
        self._items = 0
        if self._reply(0, START_SECONDS) is None:
            self.kill()
            raise RuntimeError("an answer checker did not start; its own messages stand above")

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, pair: Pair) -> str | None:
        """The reply to one item; None if the worker is gone or does not answer."""
        self._items += 1
        line = json.dumps([self._items, *pair], ensure_ascii=False).encode(errors="replace") + b"\n"
        try:
            self._stdin.write(line)  # fits the pipe, which is empty: items are limited in length and go one by one
        except OSError:
            return None
        return self._reply(self._items, self.seconds + GRACE_SECONDS)

    def _reply(self, item: int, seconds: float) -> str | None:
        """The reply to item number `item` (0: "ready"), if it comes in time."""
        deadline = time.monotonic() + seconds
        poll = select.poll()
        poll.register(self._stdout, select.POLLIN | select.POLLHUP)
        while True:
            line, newline, rest = self._unread.partition(b"\n")
            if newline:
                self._unread = rest
                number, _, reply = line.decode(errors="replace").partition(" ")
                if number == str(item):
                    return reply
                continue  # a reply given twice: the worker died between replying and noting that it had
            left = deadline - time.monotonic()
            if left <= 0 or not poll.poll(1000 * left):
                return None
            more = os.read(self._stdout.fileno(), 65536)
            if not more:
                return None
            self._unread += more

    def close(self) -> None:
        """Let the worker end by itself: its input ends."""
        self._stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_SECONDS)
        self.kill()

    def kill(self) -> None:
        """End both processes at once."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._stdin.close()
        self._stdout.close()


_shared: dict[tuple[int, str], Pool] = {}
_shared_lock = threading.Lock()


def shared_pool(module: str = "compare") -> Pool:
    """The pool for a module that all users in this process share; a forked process gets one of its own."""
    key = os.getpid(), module
    with _shared_lock:
        if key not in _shared:
            _shared[key] = Pool(module=module)
        return _shared[key]
