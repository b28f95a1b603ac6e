"""Takes the samples of bench/python: a line names one, the answer is milliseconds."""

import multiprocessing
import os
import subprocess
import sys
import time

from caisson import SandboxExecutor, sandbox_run


def nothing(n=0):
    return n


def large():
    return bytes(16 << 20)


def made(count):
    import numpy

    numpy.ones(count)


def huge(count):
    import numpy

    return numpy.ones(count)


CPUS = os.cpu_count()  # with less, what is measured is how long a call waits for its next share
call = sandbox_run(nothing, cpus=CPUS)
returned = sandbox_run(large, memory="1g", cpus=CPUS)
GIB = 1 << 27  # float64s
with_numpy = {"memory": "4g", "cpus": CPUS, "packages": ["numpy"], "max_result": "2g"}


def seconds(f, *args):
    begun = time.perf_counter()
    kept = f(*args)
    ended = time.perf_counter()
    del kept  # freeing it is no part of it
    return ended - begun


def gib_returned():
    """Take the time of a call that returns 1 GiB, but for what one that only makes it takes."""
    return seconds(sandbox_run(huge, **with_numpy), GIB) - seconds(sandbox_run(made, **with_numpy), GIB)


def gib_copied():
    return seconds(huge(GIB).copy)


def spawned():
    p = multiprocessing.get_context("spawn").Process(target=nothing)
    p.start()
    p.join()


def pooled():
    with multiprocessing.get_context("forkserver").Pool(2, maxtasksperchild=1) as pool:
        assert pool.map(nothing, range(1000), chunksize=1) == list(range(1000))


def mapped():
    with SandboxExecutor(4) as pool:
        assert list(pool.map(call, range(1000))) == list(range(1000))


SAMPLES = {
    "call of an empty function": call,
    "python3 -c pass": lambda: subprocess.run([sys.executable, "-c", "pass"], check=True),
    "multiprocessing, spawn": spawned,
    "16 MiB returned": returned,
    "1 GiB returned": gib_returned,
    "1 GiB copied": gib_copied,
    "map of 1,000 calls": mapped,
    "map of 1,000 by multiprocessing's Pool, forkserver, one task a process": pooled,
}


if __name__ == "__main__":
    for line in iter(sys.stdin.readline, ""):
        begun = time.perf_counter()
        try:
            taken = SAMPLES[line.strip()]()
            if not isinstance(taken, float):
                taken = time.perf_counter() - begun
            print(taken * 1000, flush=True)
        except Exception as e:
            print(f"{line.strip()}: {type(e).__name__}: {e}".replace("\n", " "), flush=True)
