#!/usr/bin/env python3
"""junit_to_json.py IN.xml OUT.json: CTest's JUnit report as the JSON that benchmarks/results/ keeps."""

import datetime
import json
import os
import sys
import xml.etree.ElementTree as ElementTree


def main(source, target):
    # Where no test was selected, CTest writes no report.
    cases = ElementTree.parse(source).getroot().iter("testcase") if os.path.isfile(source) else []
    tests = [{"name": c.get("name"), "passed": c.get("status") == "run", "seconds": round(float(c.get("time", 0)), 3)}
             for c in cases]
    report = {
        "schema": "candela.nightly_tests.v1",
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "total": len(tests),
        "passed": sum(t["passed"] for t in tests),
        "tests": sorted(tests, key=lambda t: t["name"]),
    }
    with open(target, "w", encoding="utf-8") as file:
        json.dump(report, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
