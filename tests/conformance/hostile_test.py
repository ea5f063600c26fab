#!/usr/bin/env python3
"""Runs `candela conform` on a plugin that does what no plugin may do, and counts what it costs.

usage: hostile_test.py CANDELA PLUGIN

Each deed is done in the instruction of one case of a tier: that case alone fails, with the deed's signal or reason, and
the total is what it is without one. Exit status: 0 held, 1 not.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

CASE = "primitives:binary/sub_f32:"
TIME_LIMIT = "5"
MOST_LATE_CRASHES = 3  # as often as a case that fails runs
# The reason of the case that fails. late_crash: of whichever case was running by then.
DEEDS = {
    "segfault": "the process died of SIGSEGV",
    "hang": f"no answer after {TIME_LIMIT} s",
    "stop": f"no answer after {TIME_LIMIT} s",
    "exit": "the process ended with status 0",
    "quick_exit": "the process ended with status 0",
    "abort": "the process died of SIGABRT",
    "throw": "threw: an exception of the vendor's",
    "throw_int": "threw something that is no std::exception",
    "guard_before": r"guard band of .* was written: byte -1",
    "guard_behind": r"guard band of .* was written: byte \d+",
    "change_input": r"byte 0 of the input .* was changed",
    "unknown_code": r"unknown code 999",
    "long_message": r"the process died of SIG\w+|beyond its capacity",
    "late_crash": "the process died of SIGSEGV",
    "close_files": "the process closed its connection",
    "write_files": "the process answered nonsense",
    "fork": "the backend forked, and returned in both processes",
}


def run(candela, plugin, deed, tier, query):
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        command = [candela, "conform", "--backend", plugin, "--option", f"deed={deed}", "--tier", tier, "--cases", query,
                   "--size", "quick", "--jobs", "1", "--time-limit", TIME_LIMIT, "--json", str(report)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240)
        return done, json.loads(report.read_text()) if report.exists() else None


def check_total(report, expected):
    counted = report["passed"] + sum(len(report[kind]) for kind in ("failed", "unsupported", "xfail"))
    problems = []
    if report["total"] != expected:
        problems.append(f"{report['total']} cases, there are {expected}")
    if counted > report["total"]:
        problems.append(f"{counted} outcomes of {report['total']} cases")
    return problems


def passed_but(calm, failed):
    """How many cases pass beside those that fail: a late crash may meet one that is unsupported without it."""
    unsupported = {each["case"] for each in calm["unsupported"]}
    return calm["passed"] - len({each["case"] for each in failed} - unsupported)


def check_failures(deed, reason, report, calm):
    failed = report["failed"]
    # The case that crashes late may pass, each time that it is repeated, and end the one behind it.
    most = MOST_LATE_CRASHES if deed == "late_crash" else 1
    if not 1 <= len(failed) <= most:
        return [f"{len(failed)} cases failed: {failed}"]
    wrong = [f"'{one['reason']}' is not '{reason}'" for one in failed if not re.search(reason, one["reason"])]
    if deed != "late_crash" and not failed[0]["case"].startswith(CASE):
        wrong.append(f"{failed[0]['case']} failed")
    if report["passed"] != passed_but(calm, failed):
        wrong.append(f"{report['passed']} passed, without the deed {calm['passed']}")
    return wrong


def main():
    candela, plugin = sys.argv[1:]
    problems = []
    _, calm = run(candela, plugin, "none", "primitives", "primitives:binary/*")
    problems += [f"without a deed: {one}" for one in calm["failed"]]
    if calm["total"] < 20 or calm["passed"] < 15:
        problems.append(f"only {calm['passed']} of {calm['total']} cases pass without a deed")
    for deed, reason in DEEDS.items():
        done, report = run(candela, plugin, deed, "primitives", "primitives:binary/*")
        wrong = check_total(report, calm["total"])
        if done.returncode != 1:
            wrong.append(f"exit status {done.returncode}")
        wrong += check_failures(deed, reason, report, calm)
        problems += [f"{deed}: {one}" for one in wrong]
        print(f"{deed}: {'ok' if not wrong else 'WRONG'}", flush=True)

    _, calm = run(candela, plugin, "none", "memory", "memory:*")
    _, report = run(candela, plugin, "leak", "memory", "memory:*")
    problems += [f"leak: {one}" for one in check_total(report, calm["total"])]
    failed = {one["case"]: one["reason"] for one in report["failed"]}
    if {"memory:leak/touched", "memory:leak/small"} - failed.keys():
        problems.append(f"leak: only {failed} failed")
    problems += [f"leak: {case} failed: {reason}" for case, reason in failed.items()
                 if not case.startswith("memory:leak/") or not reason.startswith("leak: ")]

    done, report = run(candela, plugin, "null_device", "memory", "memory:*")
    if done.returncode == 0 or "device_open succeeded without a device" not in done.stderr:
        problems.append(f"null_device: exit status {done.returncode}: {done.stderr}")

    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
