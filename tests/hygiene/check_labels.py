#!/usr/bin/env python3
"""Every CTest test of a build has exactly one speed class."""

import json
import subprocess
import sys

import common
from common import Violation


def place(model, test):
    """File and line of add_test(), as CTest remembers them."""
    graph = model.get("backtraceGraph", {})
    node = (graph.get("nodes") or [{}])[test["backtrace"]] if "backtrace" in test else {}
    return (graph["files"][node["file"]] if "file" in node else "CTest"), node.get("line", 1)


def main(argv=None):
    p = common.parser(__doc__)
    p.add_argument("--ctest", default="ctest")
    p.add_argument("build", help="the build folder")
    args = p.parse_args(argv)
    classes = common.loadRules(args.rules)["labels"]["classes"]
    out = subprocess.run([args.ctest, "--test-dir", args.build, "--show-only=json-v1"], check=True, stdout=subprocess.PIPE)
    model, violations = json.loads(out.stdout), []
    for test in model["tests"]:
        labels = {l for p in test.get("properties", []) if p["name"] == "LABELS" for l in p["value"]}
        count = len(labels & set(classes))
        if count != 1:
            violations.append(Violation(*place(model, test), "labels", f"'{test['name']}' has "
                                        f"{'none' if count == 0 else 'more than one'} of the speed classes {', '.join(classes)}"))
    return common.finish(violations, f"labels of {len(model['tests'])} tests")


if __name__ == "__main__":
    sys.exit(main())
