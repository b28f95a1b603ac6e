"""Reads a table of sales and writes a report in Markdown.

    report.py SALES.csv REPORT.md

Rows that cannot be read are counted and named, not dropped in silence.
"""

import csv
import statistics
import sys
from collections import defaultdict
from decimal import Decimal, InvalidOperation
from pathlib import Path


def read(path):
    """Yields (row, None) for a sale, and (None, complaint) for a bad row."""
    with open(path, newline="", encoding="utf-8") as file:
        for number, row in enumerate(csv.DictReader(file), start=2):
            try:
                sale = {
                    "month": row["date"][:7],
                    "region": row["region"] or "unknown",
                    "product": row["product"],
                    "value": int(row["quantity"]) * Decimal(row["unit_price"]),
                }
            except (ValueError, InvalidOperation):
                yield None, f"line {number}: quantity {row['quantity']!r}, price {row['unit_price']!r}"
                continue
            yield sale, None


def total_by(sales, key):
    totals = defaultdict(Decimal)
    for sale in sales:
        totals[sale[key]] += sale["value"]
    return totals


def table(head, totals, order):
    yield f"| {head} | turnover |"
    yield "|---|---:|"
    for name, value in sorted(totals.items(), key=order):
        yield f"| {name} | {value:,.2f} |"
    yield ""


def report(sales, complaints):
    turnover = sum(sale["value"] for sale in sales)
    by_value = lambda item: (-item[1], item[0])  # noqa: E731
    yield "# Sales"
    yield ""
    yield f"{len(sales)} sales, turnover {turnover:,.2f}, median {statistics.median(s['value'] for s in sales):,.2f}"
    yield ""
    yield from table("region", total_by(sales, "region"), by_value)
    yield from table("product", total_by(sales, "product"), by_value)
    yield from table("month", total_by(sales, "month"), lambda item: item[0])
    yield f"{len(complaints)} rows could not be read:"
    yield from (f"- {c}" for c in complaints)


def main(source, target):
    sales, complaints = [], []
    for sale, complaint in read(source):
        if sale is None:
            complaints.append(complaint)
        else:
            sales.append(sale)
    text = "\n".join(report(sales, complaints)) + "\n"
    Path(target).write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main(*sys.argv[1:])
