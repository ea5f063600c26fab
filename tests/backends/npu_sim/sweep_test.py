#!/usr/bin/env python3
"""A sweep runs each combination once, goes on where it was stopped, and says what has no configuration.

usage: sweep_test.py CANDELA
"""
import csv as csv_format
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile

# A convolution of 16 bits is the NPU's with features.int16, and the host's without.
WIDE_MODEL = """graph @wide(%x: i16[1,16,12,12], %z: i8[1,16,12,12]) -> (%y: i64[1,16,12,12], %v: i32[1,16,12,12]) {
  %w = constant random(2) : i8[16,16,3,3]
  %y = conv_integer %x, %w, _, _ {group = 1, pads = [1, 1, 1, 1], strides = [1, 1]} : i64[1,16,12,12]
  %v = conv_integer %z, %w, _, _ {group = 1, pads = [1, 1, 1, 1], strides = [1, 1]} : i32[1,16,12,12]
}
"""
WIDE_SWEEP = """models = ["wide.cdl"]
batch_dim = ""
[vary]
"features.int16" = [0, 1]
"""
RATES = {"schema": "candela.host_rates/1", "machine": "M", "threads": 1,
         "rates": [{"op": "other", "start_ns": 5e6, "ns_per_byte": 0, "ns_per_mac": 0}]}
MODEL = """graph @sweep(%x: i8[1,16,6,6]) -> (%y: i32[1,16,6,6]) {
  %w = constant random(2) : i8[16,16,3,3]
  %y = conv_integer %x, %w, _, _ {group = 1, pads = [1, 1, 1, 1], strides = [1, 1]} : i32[1,16,6,6]
}
"""
SWEEP = """models = ["model.cdl"]
batch_dim = ""
[vary]
"array.rows+array.columns" = [8, 16, 512]
"dram.type" = ["HyperRAM-400", "LPDDR5-6400"]
"""
# Core plans anew for each memory, and compiles the same plan for many.
PRICES = """models = ["model.cdl"]
batch_dim = ""
[vary]
"dma.load_channels" = [1, 2]
"dram.type" = ["HyperRAM-400", "DDR4-2400", "LPDDR5-6400"]
"dram.width_bits" = [32, 64]
"""


def expect(isTrue, what):
    if not isTrue:
        sys.exit(f"sweep_test: {what}")


def state_of(pid):
    """A letter; Z where it has ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "Z"


def stopped_child(sweep):
    """A file that says when a simulation of this sweep has ended, one that stands still; none beside Linux."""
    if not sys.platform.startswith("linux"):
        return None
    while True:
        expect(sweep.poll() is None, "the sweep ended before one of its simulations was stopped")
        for pid in map(int, pathlib.Path(f"/proc/{sweep.pid}/task/{sweep.pid}/children").read_text().split()):
            try:
                child = os.pidfd_open(pid)
                signal.pidfd_send_signal(child, signal.SIGSTOP)
            except ProcessLookupError:
                continue
            while state_of(pid) not in "TZ":
                os.sched_yield()
            if state_of(pid) != "T":
                continue
            # It ends with the sweep before it has a log.
            if os.readlink(f"/proc/{pid}/fd/2").endswith(".log"):
                return child
            signal.pidfd_send_signal(child, signal.SIGCONT)


def main():
    candela = sys.argv[1]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "model.cdl").write_text(MODEL)
        (folder / "sizes.toml").write_text(SWEEP)
        results = folder / "sizes.sweep"

        def sweep(*more):
            ended = subprocess.run([candela, "simulate", "--sweep", folder / "sizes.toml", *more], capture_output=True, text=True)
            expect(ended.returncode == 0, f"exit status {ended.returncode}: {ended.stderr}")
            return ended.stdout

        # Killed once one result is there: what was under way ends too, though it stands still, and the next run makes it whole.
        first = subprocess.Popen([candela, "simulate", "--sweep", folder / "sizes.toml", "--jobs", "1"], stdout=subprocess.DEVNULL)
        while first.poll() is None and len(list(results.glob("*.json"))) < 1:
            os.sched_yield()
        child = stopped_child(first)
        first.send_signal(signal.SIGKILL)
        first.wait()
        if child:
            hasEnded = bool(select.select([child], [], [], 60)[0])
            if not hasEnded:
                signal.pidfd_send_signal(child, signal.SIGKILL)  # or it would hold the test's own output open
            expect(hasEnded, "a simulation outlives the sweep that began it")
        said = sweep()
        expect("4 simulated, 2 refused" in said, said)
        csv = (results / "sweep.csv").read_bytes()
        rows = csv.decode().splitlines()
        expect(rows[0].startswith("id,model,batch,npu,array.rows,array.columns,dram.type,status,cycles,time_ms"), rows[0])
        expect(all(float(row.split(",")[9]) > 0 for row in rows if ",done," in row), csv.decode())
        expect(sum(",done," in row for row in rows) == 4, csv.decode())
        expect(sum("512 is outside of 4..256" in row for row in rows) == 2, csv.decode())
        page = (results / "sweep.html").read_text()
        expect("Pareto front" in page, "the page has no front")
        expect('<th class="n">DRAM, KB</th>' in page, "the page has no unit in a head")
        expect(all(f">{int(row.split(',')[8]):,}</td>" in page for row in rows if ",done," in row), "the page has not all cycles, by thousands")
        expect('data-k="host MACs"' not in page, "the page has a column in which all is 0")
        cycles = {tuple(row.split(",")[4:7]): int(row.split(",")[8]) for row in rows[1:] if ",done," in row}
        expect(cycles["16", "16", "LPDDR5-6400"] < cycles["8", "8", "LPDDR5-6400"], f"a larger array is not faster: {cycles}")

        # One result is lost and one is cut: both are made again, and the rows are the same.
        made = sorted(results.glob("*.json"))
        made[0].unlink()
        made[1].write_bytes(made[1].read_bytes()[:100])
        kept = made[2].stat().st_mtime_ns
        expect("2 of 4 were done before; going on" in sweep("--jobs", "1"), "what was there is not kept")
        expect((results / "sweep.csv").read_bytes() == csv, "the rows differ")
        expect(made[2].stat().st_mtime_ns == kept, "a result that was whole was made again")
        expect("model_only" not in rows[0], rows[0])
        name_what_has_no_hardware(candela, folder)
        compare_with_host(candela, folder)
        compare_with_runs_alone(candela, folder)
        lose_one_process(candela, folder)


def compare_with_runs_alone(candela, folder):
    """What simulations of one process take from each other changes nothing: a process of its own says the same."""
    (folder / "prices.toml").write_text(PRICES)
    command = [candela, "simulate", "--sweep", folder / "prices.toml"]
    ended = subprocess.run([*command, "--jobs", "1"], capture_output=True, text=True)
    expect(ended.returncode == 0, f"exit status {ended.returncode}: {ended.stderr}")
    listed = subprocess.run([*command, "--list", "--json", "-"], capture_output=True, text=True)
    jobs = json.loads(listed.stdout)["jobs"]
    expect(len(jobs) == 12, f"{len(jobs)} jobs")
    for job in jobs:
        swept = json.loads(pathlib.Path(job["result"]).read_text())
        words = [candela, *job["command"][1:]]
        words[words.index("--json") + 1] = "-"
        alone = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
        for report in (swept, alone):
            for key in ("compile_ms", "wall_ms", "command"):
                del report[key]
        expect(swept == alone, f"{job['id']}: {[key for key in alone if swept.get(key) != alone[key]]} differ from a run alone")
    expect(len({json.loads(pathlib.Path(job["result"]).read_text())["cycles"] for job in jobs}) > 4, "all configurations take as long")


def lose_one_process(candela, folder):
    """A simulation that is killed fails, and what its process had still to do is done by another one."""
    (folder / "lost.toml").write_text(PRICES + 'clock_mhz = [500, 501]\n')
    command = [candela, "simulate", "--sweep", folder / "lost.toml"]
    sweep = subprocess.Popen([*command, "--jobs", "1"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    child = stopped_child(sweep)
    if not child:
        sweep.communicate()
        return
    signal.pidfd_send_signal(child, signal.SIGKILL)
    said = sweep.communicate()[1]
    expect(sweep.returncode == 1 and "ended by signal 9" in said and "1 of them failed" in said, f"{sweep.returncode}: {said}")
    expect(len(list((folder / "lost.sweep").glob("*.json"))) == 23, "others were not done")
    again = subprocess.run(command, capture_output=True, text=True)
    expect(again.returncode == 0 and "23 of 24 were done before" in again.stdout, again.stdout + again.stderr)


def name_what_has_no_hardware(candela, folder):
    """A column says it, of the rows that have it."""
    (folder / "alone.toml").write_text('models = ["model.cdl"]\nbatch_dim = ""\n[vary]\n"array.rows" = [16, 24]\n')
    ended = subprocess.run([candela, "simulate", "--sweep", folder / "alone.toml"], capture_output=True, text=True)
    expect(ended.returncode == 0, ended.stderr)
    with open(folder / "alone.sweep" / "sweep.csv", newline="") as file:
        said = {row["array.rows"]: row["model_only"] for row in csv_format.DictReader(file)}
    expect(said == {"16": "", "24": "array.rows = 24"}, said)


def compare_with_host(candela, folder):
    """What a configuration leaves to the host is in its time, or it is not compared with one that leaves less."""
    (folder / "wide.cdl").write_text(WIDE_MODEL)
    (folder / "rates.json").write_text(json.dumps(RATES))

    def rows_of(text):
        (folder / "wide.toml").write_text(text)
        ended = subprocess.run([candela, "simulate", "--sweep", folder / "wide.toml"], capture_output=True, text=True)
        expect(ended.returncode == 0, f"exit status {ended.returncode}: {ended.stderr}")
        with open(folder / "wide.sweep" / "sweep.csv", newline="") as file:
            return {row["features.int16"]: row for row in csv_format.DictReader(file)}

    rows = rows_of(WIDE_SWEEP)
    expect(rows["0"]["host_steps"] == "1" and rows["1"]["host_steps"] == "0", rows)
    expect(rows["0"]["time_ms"] == "" and "leaves more to the host" in rows["0"]["why"], rows)
    expect(float(rows["1"]["time_ms"]) > 0 and rows["1"]["why"] == "", rows)
    expect(float(rows["0"]["device_ms"]) < float(rows["1"]["device_ms"]), f"the NPU's part alone is not shorter: {rows}")
    rows = rows_of('host_rates = "rates.json"\n' + WIDE_SWEEP)
    expect(rows["0"]["host_ms"] == "5" and rows["0"]["why"] == "", rows)
    expect(abs(float(rows["0"]["time_ms"]) - float(rows["0"]["device_ms"]) - 5) < 1e-4, rows)
    expect(float(rows["0"]["time_ms"]) > float(rows["1"]["time_ms"]), f"the host's time does not rank: {rows}")


if __name__ == "__main__":
    main()
