"""What the nightly scripts share: their reports."""

import datetime
import json
import os
import pathlib
import platform


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def write(path, report):
    """Replaces the file as a whole, so that what was there survives a failure."""
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(report, indent=2) + "\n")
    os.replace(part, path)


def machine():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return {"processor": next(names, platform.processor()), "cores": os.cpu_count(), "system": platform.platform()}
