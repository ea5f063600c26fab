"""What the nightly scripts share: their reports."""

import datetime
import json
import os


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def write(path, report):
    """Replaces the file as a whole, so that what was there survives a failure."""
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(report, indent=2) + "\n")
    os.replace(part, path)
