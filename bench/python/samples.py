"""Takes the samples of bench/python: a line names one, the answer is milliseconds."""

import concurrent.futures
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


def pooled(n):
    context = multiprocessing.get_context("forkserver")
    # The forkserver pool, with a new process for each task; max_tasks_per_child is of Python 3.11.
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context, max_tasks_per_child=1) as pool:
        assert list(pool.map(nothing, range(n))) == list(range(n))


def mapped(n):
    with SandboxExecutor(4) as pool:
        assert list(pool.map(call, range(n))) == list(range(n))


SAMPLES = {
    "call of an empty function": call,
    "python3 -c pass": lambda: subprocess.run([sys.executable, "-c", "pass"], check=True),
    "multiprocessing, spawn": spawned,
    "16 MiB returned": returned,
    **{f"map of {n} calls": lambda n=n: mapped(n) for n in (20, 1000)},
    **{f"map of {n} by ProcessPoolExecutor, one task a process": lambda n=n: pooled(n) for n in (20, 1000)},
}


if __name__ == "__main__":
    for line in iter(sys.stdin.readline, ""):
        begun = time.perf_counter()
        try:
            SAMPLES[line.strip()]()
            print((time.perf_counter() - begun) * 1000, flush=True)
        except Exception as e:
            print(f"{line.strip()}: {type(e).__name__}: {e}".replace("\n", " "), flush=True)
