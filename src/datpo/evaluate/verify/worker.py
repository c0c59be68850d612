"""The worker side of `pool`: compares a key and an answer per line of input, one line of reply each.

What compares is a module of this package by name: its `judge`, once its `WARM_UP` has been judged.

`serve` imports what comparing needs and then forks: the child compares, the parent waits. Before each item the child
asks the kernel to end it (SIGALRM, default action) should the item take too long; unlike an exception this also
ends a multiplication of huge integers. The parent then replies "timeout" for the item and forks the next child.
"""

from __future__ import annotations

import gc
import importlib
import json
import mmap
import os
import resource
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO

Judge = Callable[[str, str], str]  # a key and an answer -> a verdict

RECURSION = 5_000  # calls: a sum of 700 terms, the longest that is read, is nested as deep


def serve(seconds: float, megabytes: int, module: str) -> None:
    """Reply to every item of the input until it ends."""
    sys.setrecursionlimit(RECURSION)
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # whatever a library prints is no reply
    rules = importlib.import_module(f"datpo.evaluate.verify.{module}")
    for pair in rules.WARM_UP:  # loads SymPy and Math-Verify, so that no item pays for it
        rules.judge(*pair)
    gc.freeze()  # what children share with this process stays shared
    at_work = mmap.mmap(-1, 8)  # number of the item the child is at, 0 for none
    replies.write(b"0 ready\n")
    while True:
        child = os.fork()
        if child == 0:
            _compare_all(rules.judge, replies, at_work, seconds, megabytes)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status == 0:
            return  # the end of the input
        item = int.from_bytes(at_work[:], "little")
        if item:
            at_work[:] = bytes(8)
            replies.write(f"{item} timeout\n".encode())


def _compare_all(judge: Judge, replies: BinaryIO, at_work: mmap.mmap, seconds: float, megabytes: int) -> None:
    """Reply to items until the input ends or one of them ends this process."""
    with suppress(ValueError, OSError):  # macOS has no limit of address space
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})  # a mask is inherited from whoever started this
    # Unbuffered: what this process has not read is left for its successor.
    with os.fdopen(os.dup(0), "rb", buffering=0) as items:
        for line in items:
            item, gold, answer = json.loads(line)
            at_work[:] = int(item).to_bytes(8, "little")
            signal.setitimer(signal.ITIMER_REAL, seconds)
            reply = _reply(judge, gold, answer)
            signal.setitimer(signal.ITIMER_REAL, 0)
            replies.write(f"{item} {reply}\n".encode())
            at_work[:] = bytes(8)
            if reply == "timeout":
                os._exit(1)  # short of memory: start afresh


def _reply(judge: Judge, gold: str, answer: str) -> str:
    try:
        return judge(gold, answer)
    except MemoryError:
        return "timeout"
    except RecursionError:
        return "wrong"  # nested beyond reading
    except Exception as error:  # no item may end the service; the pool logs this
        return f"error {type(error).__name__}: {error}".replace("\n", " ")[:300]


if __name__ == "__main__":
    serve(float(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
