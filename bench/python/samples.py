"""Takes the samples of bench/python: a line names one, the answer is milliseconds."""

import multiprocessing
import subprocess
import sys
import time

from caisson import SandboxExecutor, sandbox_run


def nothing(n=0):
    return n


def large():
    return bytes(16 << 20)


call = sandbox_run(nothing)
returned = sandbox_run(large, memory="1g")


def spawned():
    p = multiprocessing.get_context("spawn").Process(target=nothing)
    p.start()
    p.join()


def pooled():
    with multiprocessing.get_context("forkserver").Pool(2, maxtasksperchild=1) as pool:
        assert pool.map(nothing, range(200), chunksize=1) == list(range(200))


def mapped():
    with SandboxExecutor(4) as pool:
        assert list(pool.map(call, range(200))) == list(range(200))


SAMPLES = {
    "call of an empty function": call,
    "python3 -c pass": lambda: subprocess.run([sys.executable, "-c", "pass"], check=True),
    "multiprocessing, spawn": spawned,
    "16 MiB returned": returned,
    "map of 200 calls": mapped,
    "map of 200 by multiprocessing's Pool, forkserver, one task a process": pooled,
}


if __name__ == "__main__":
    for line in iter(sys.stdin.readline, ""):
        begun = time.perf_counter()
        try:
            SAMPLES[line.strip()]()
            print((time.perf_counter() - begun) * 1000, flush=True)
        except Exception as e:
            print(f"{line.strip()}: {type(e).__name__}: {e}".replace("\n", " "), flush=True)
