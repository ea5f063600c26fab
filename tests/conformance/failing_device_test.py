#!/usr/bin/env python3
"""`candela run` on a device that fails at each of its calls in turn: an error that says what, and no crash.

usage: failing_device_test.py CANDELA PLUGIN
"""
import pathlib
import subprocess
import sys
import tempfile

MODEL = """graph @g(%a: f32[4], %b: f32[4]) -> (%new: f32[4]) {
  %new = add %a, %b
}
"""
FAULTS = {"device_lost": "the device is gone", "out_of_memory": "no memory is left", "timeout": "no answer in time",
          "unknown_code": "unknown code 999"}


def main():
    candela, plugin = sys.argv[1:]
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / "add.cdl"
        model.write_text(MODEL)
        for fault, message in FAULTS.items():
            failed = 0
            for at in range(1, 12):
                command = [candela, "run", str(model), "--backend", plugin, "--random", "1", "--option", f"shim={fault}",
                           "--option", f"shim_at={at}"]
                done = subprocess.run(command, capture_output=True, text=True, timeout=120)
                if done.returncode == 0:
                    continue
                failed += 1
                if done.returncode < 0 or message not in done.stderr:
                    problems.append(f"{fault} at {at}: exit status {done.returncode}: {done.stderr}")
            if failed == 0:
                problems.append(f"{fault}: no run failed")
            print(f"{fault}: {failed} of 11 runs failed", flush=True)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
