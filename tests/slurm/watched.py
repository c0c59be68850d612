"""Stands beside the trainings of a test: Python imports a copy of this file, named sitecustomize.py, by itself.

A training that is at work says so five times a second in beats.txt. While there is a file `stuck`, the one at work then
gets nowhere; one that finds a file `greedy` takes 3 GB, once.
"""

import ctypes
import os
import sys
import threading
import time

taken = bytearray()


def watch() -> None:
    sleep = ctypes.PyDLL(None).usleep  # unlike time.sleep it lets no other thread of Python run
    stuck = os.path.exists("stuck")  # then it is another one that is
    while True:
        with open("beats.txt", "a") as beats:
            beats.write(f"{os.getpid()} {os.environ.get('SLURM_JOB_ID', 0)} {time.time():.2f}\n")
        if os.path.exists("greedy"):
            os.remove("greedy")
            taken.extend(b"1" * 3_000_000_000)
        if os.path.exists("stuck") and not stuck:
            sleep(200_000)
        else:
            time.sleep(0.2)


if {"datpo", "train"} <= set(sys.orig_argv):
    threading.Thread(target=watch, daemon=True).start()
