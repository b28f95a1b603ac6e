"""What a model might write when it is asked: how many ships called at the harbour, year
by year? It has three tools, no network, and no files."""

import re

found = await search(words=["harbour", "ships"])
print("found", ", ".join(found))
texts = await asyncio.gather(*[read_note(name=name) for name in found])

ships = {}
for text in texts:
    year, count = re.search(r"note for (\d{4})", text), re.search(r"called: (\d+)", text)
    if year and count:
        ships[year[1]] = int(count[1])

picture = await plot(title="Ships that called", values=ships)
with open("ships.svg", "w") as f:
    f.write(picture)

best = max(ships, key=ships.get)
{"ships": ships, "best": best, "mean": round(sum(ships.values()) / len(ships), 1)}
