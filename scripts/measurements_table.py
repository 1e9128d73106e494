#!/usr/bin/env python3
"""Writes the table of docs/measurements/summary.json into README.md, between its two markers.

    measurements_table.py            rewrites README.md
    measurements_table.py --check    exits 1 where README.md differs from the figures

The file is a flat list of figures, each with name, value, unit, card, toolkit, date, commit and
command (what repeats it).
"""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- measurements -->\n", "<!-- end of measurements -->\n"
FIELDS = ["name", "value", "unit", "card", "toolkit", "date", "commit", "command"]


def table(figures):
    if not figures:
        return "No figures are recorded yet.\n"
    rows = ["| what | value | card | toolkit | date, commit | repeat it with |", "|---|---|---|---|---|---|"]
    for figure in figures:
        if list(figure) != FIELDS:
            sys.exit(f"summary.json: a figure has {list(figure)}, not {FIELDS}")
        rows.append(
            "| {name} | {value} {unit} | {card} | {toolkit} | {date}, {commit} | `{command}` |".format(
                **figure
            )
        )
    return "\n".join(rows) + "\n"


def main():
    readme = ROOT / "README.md"
    text = readme.read_text()
    figures = json.loads((ROOT / "docs/measurements/summary.json").read_text())
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    updated = head + BEGIN + table(figures) + END + tail
    if "--check" not in sys.argv:
        readme.write_text(updated)
    elif updated != text:
        sys.exit("README.md differs from docs/measurements/summary.json; run scripts/measurements_table.py")


if __name__ == "__main__":
    main()
