#!/usr/bin/env python3
"""The trace and the profile of a run say one thing, and what both say can be.

usage: check_trace.py CANDELA SCRATCH NATIVE EMULATED HOST MODEL [argument of `candela run`]...

Runs `candela run MODEL ... --repeat 2 --trace F --profile --json G` and holds of the trace that it is in Chrome's format,
that the slices of each track nest, that instructions lie within the run and take no longer than it on any engine, that
each instruction names its node, that devices have a process of their own, and that the profile counts what the trace
shows. NATIVE, EMULATED, HOST: which of these instructions there must be, yes or no.
"""
import collections
import json
import os
import subprocess
import sys

SLACK_US = 0.002  # times are written in microseconds, and read as doubles
complaints = []


def hold(condition, text):
    if not condition:
        complaints.append(text)


def readEvents(trace):
    hold(set(trace) == {"traceEvents", "displayTimeUnit"}, f"keys of the trace: {sorted(trace)}")
    names, slices = {}, []
    for event in trace["traceEvents"]:
        hold(isinstance(event.get("pid"), int) and isinstance(event.get("tid"), int), f"no pid or tid: {event}")
        if event["ph"] == "M":
            hold(event["name"] in ("process_name", "thread_name") and event["args"]["name"], f"metadata: {event}")
            key = event["pid"] if event["name"] == "process_name" else (event["pid"], event["tid"])
            names[key] = event["args"]["name"]
            continue
        hold(event["ph"] == "X" and event["name"] and event["cat"] in ("step", "instruction"), f"no slice: {event}")
        hold(event["ts"] >= 0 and event["dur"] >= 0, f"a time below 0: {event}")
        hold(event["pid"] in names and (event["pid"], event["tid"]) in names, f"a track without a name: {event}")
        slices.append(event)
    return names, slices


def holdNesting(slices):
    tracks = collections.defaultdict(list)
    for event in slices:
        tracks[event["pid"], event["tid"]].append(event)
    for track, events in tracks.items():
        open_ = []
        for event in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
            end = event["ts"] + event["dur"]
            while open_ and open_[-1]["ts"] + open_[-1]["dur"] <= event["ts"] + SLACK_US:
                open_.pop()
            hold(not open_ or end <= open_[-1]["ts"] + open_[-1]["dur"] + SLACK_US,
                 f"track {track}: '{event['name']}' overlaps '{open_[-1]['name'] if open_ else ''}'")
            open_.append(event)


def holdInstrs(names, slices, wanted):
    instrs = [e for e in slices if e["cat"] == "instruction"]
    steps = {e["args"]["step"]: e for e in slices if e["cat"] == "step"}
    for step in ("compile", "load", "run", "partition"):
        hold(step in steps, f"no step '{step}' among {sorted(steps)}")
    run = steps["run"]
    busy = collections.Counter()
    for event in instrs:
        args = event["args"]
        hold(args["instr"] > 0 and args["kind"] and args["operands"] and args["class"], f"an instruction: {args}")
        own = args["support"] == "native"
        hold(names[event["pid"]] == (args["on"] if own else "host"), f"{args} in process {names[event['pid']]}")
        hold(run["ts"] <= event["ts"] + SLACK_US, f"{args} is before the run")
        if args["clock"] == "host":  # a device's own may run at another speed
            hold(event["ts"] + event["dur"] <= run["ts"] + run["dur"] + SLACK_US, f"{args} is not in the run")
        if not (args["op"] or args["kind"] in ("copy", "fill")):
            hold(args["node"], f"no node of the model: {args}")
        busy[event["pid"], event["tid"]] += event["dur"]
    for track, time in busy.items():
        hold(time <= run["dur"] + SLACK_US, f"track {track} is busy for {time} us of {run['dur']}")
    for support, answer in wanted.items():
        has = any(e["args"]["support"] == support for e in instrs)
        hold(has == (answer == "yes"), f"{support} instructions: {has}, expected {answer}")
    hold(any(e["args"]["node"] for e in instrs), "no instruction names its node")
    return instrs


def holdProfile(profile, instrs):
    listed = profile["instructions"]
    count = collections.Counter((e["args"]["partition"], e["args"]["instr"]) for e in instrs)
    hold(count == {(p["partition"], p["instr"]): p["calls"] for p in listed}, "trace and profile count differently")
    total = sum(p["ms"] for p in listed)
    hold(abs(total - profile["instructions_ms"]) <= 1e-6 + 1e-9 * total, f"{total} is not {profile['instructions_ms']}")
    parts = sum(profile[key] for key in ("native_ms", "emulated_ms", "host_ms"))
    hold(abs(total - parts) <= 1e-6 + 1e-9 * total, f"the parts sum up to {parts}, not {total}")
    hold(abs(sum(p["share"] for p in listed) - 1) < 1e-6, "shares do not sum up to 1")
    hold(profile["run_ms"] > 0, "the run took no time")
    if profile["host_ms"] == 0:
        for step in ("upload", "download"):  # these devices use the caller's memory where it lies
            hold(profile["steps"].get(step, {}).get("bytes", 0) == 0, f"{step} of a value of the host: {profile['steps']}")


def main():
    candela, scratch, native, emulated, host, *arguments = sys.argv[1:]
    os.makedirs(scratch, exist_ok=True)
    tracePath, reportPath = os.path.join(scratch, "trace.json"), os.path.join(scratch, "report.json")
    done = subprocess.run([candela, "run", *arguments, "--repeat", "2", "--trace", tracePath, "--profile", "--json",
                           reportPath], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"candela run: exit status {done.returncode}: {done.stderr.strip()}")
    hold("profile  " in done.stdout, "no profile was printed")
    with open(tracePath, encoding="utf-8") as file:
        names, slices = readEvents(json.load(file))
    with open(reportPath, encoding="utf-8") as file:
        profile = json.load(file)["profile"]
    holdNesting(slices)
    instrs = holdInstrs(names, slices, {"native": native, "emulated": emulated, "host": host})
    holdProfile(profile, instrs)
    print(f"{len(slices)} slices, {len(instrs)} of them instructions, on {len(set(e['pid'] for e in slices))} processes")
    if complaints:
        sys.exit("\n".join(complaints[:20]))


if __name__ == "__main__":
    main()
