import asyncio, sys, time

async def many():
    left = iter(range(CALLS))

    async def some():
        for n in left:
            if await add(a=n, b=1) != n + 1: raise SystemExit("another answer")

    await asyncio.gather(*[some() for _ in range(AT_ONCE)])

def one():
    if add(a=1, b=2) != 3: raise SystemExit("another answer")

for line in sys.stdin:
    began = time.perf_counter()
    one() if line.strip() == "one" else asyncio.run(many())
    print(time.perf_counter() - began, flush=True)
