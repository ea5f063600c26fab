#!/usr/bin/env python3
"""What `candela backends --next` advises is in order, and each query that it prints selects cases.

usage: check_next.py CANDELA PLUGIN RUNG FIRST MODEL... [-- argument of `candela backends`]...

RUNG: B1, B2, or "none" where nothing is left to do; FIRST: how the first row of all begins ("" where there is none).
"""
import json
import subprocess
import sys


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def holdList(found, name):
    rows = found["next"]
    keys = [(row["ms"], row["macs"], row["nodes"]) for row in rows]
    if keys != sorted(keys, reverse=True):
        sys.exit(f"{name}: not the heaviest first: {keys}")
    for row in rows:
        for field in ("why", "query", "rung", "kind", "types", "operand_class", "shapes", "now"):
            if not row[field]:
                sys.exit(f"{name}: {row['op']} has no {field}")
        if not 0 <= row["time_fraction"] <= 1 + 1e-9 or not 0 <= row["mac_fraction"] <= 1 + 1e-9 or row["nodes"] < 1:
            sys.exit(f"{name}: {row['op']} is {row['time_fraction']} of the time, {row['mac_fraction']} of the MACs")
    # Instructions are apart from each other; an op's row overlaps those of its parts.
    apart = sum(row["ms"] for row in rows if row["rung"] == "B1")
    if apart > (found["ms"] - found["native_ms"]) * (1 + 1e-9) + 1e-9:
        sys.exit(f"{name}: rows of the primitives take {apart} ms, all that is not native {found['ms'] - found['native_ms']}")
    return rows


def main():
    candela, plugin, rung, first, *rest = sys.argv[1:]
    split = rest.index("--") if "--" in rest else len(rest)
    models, more = rest[:split], rest[split + 1:]
    report = json.loads(run(candela, "backends", plugin, *more, "--json", "-", "--next", *models))
    if len(report["next"]) != 1:
        sys.exit(f"{len(report['next'])} backends were asked, not {plugin} alone")
    advice = report["next"][0]
    if [one["model"] for one in advice["models"]] != models:
        sys.exit(f"not about {models}")
    rows = holdList(advice, "all")
    for one in advice["models"]:
        holdList(one, one["model"])
    if {row["rung"] for row in rows} != {"B1B2": {"B1", "B2"}, "B2": {"B2"}, "none": set()}[rung]:
        sys.exit(f"rungs {sorted({row['rung'] for row in rows})}, expected {rung}")
    if rows and not rows[0]["op"].startswith(first):
        sys.exit(f"the heaviest row is {rows[0]['op']}, expected {first}")
    queries = sorted({row["query"] for row in rows} | {row["layout_query"] for row in rows if "layout_query" in row})
    cases = []
    for query in queries:  # --cases refuses a query that selects nothing
        cases += ["--cases", query]
    if cases:
        listed = run(candela, "conform", "--list", "--backend", plugin, *cases).split()
        print(f"{len(rows)} rows, {len(queries)} queries, {len(listed)} cases")
        if len(listed) < len(queries):
            sys.exit("a query selects nothing")


if __name__ == "__main__":
    main()
