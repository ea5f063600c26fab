#!/usr/bin/env python3
"""Run a sweep of `candela simulate` on a Dask cluster.

    scripts/sweep_dask.py sizes.toml                                  # a cluster of this machine's cores
    scripts/sweep_dask.py sizes.toml --scheduler tcp://head:8786      # one that is there already

The same file, jobs and results as `candela simulate --sweep sizes.toml`: each job is one command that writes one file, named
by what the result depends on. So a job may run twice, anywhere, and what is there already is kept. Workers see the folder
of the sweep, the models and the command under the same names as this machine (a shared file system). In the end the
command itself writes sweep.csv and sweep.html. Needs dask.distributed (Debian: python3-distributed).
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def is_done(result):
    """A result that is whole, or a refusal, which would be the same again."""
    if pathlib.Path(result).with_suffix(".refused").exists():
        return True
    try:
        return "cycles" in json.loads(pathlib.Path(result).read_text())
    except (OSError, ValueError):
        return False


def run(job):
    """One job on a worker; what `candela simulate --sweep` does with it. Returns its id and how it ended."""
    result = pathlib.Path(job["result"])
    if is_done(result):
        return job["id"], "kept"
    ended = subprocess.run(job["command"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if ended.returncode == 0:
        return job["id"], "done"
    if ended.returncode == 2:  # it refuses the model or the configuration
        with tempfile.NamedTemporaryFile(dir=result.parent, delete=False) as file:
            file.write(ended.stderr)
        os.replace(file.name, result.with_suffix(".refused"))
        return job["id"], "refused"
    raise RuntimeError(f"{' '.join(job['command'])}: ended with {ended.returncode}: {ended.stderr.decode(errors='replace')}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sweep", metavar="FILE.toml")
    parser.add_argument("--scheduler", help="address of a Dask scheduler; without it a cluster of this machine's cores")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes of that cluster (%(default)s)")
    parser.add_argument("--candela", default=str(ROOT / "build/bin/candela"), help="the command (%(default)s)")
    arguments = parser.parse_args()
    try:
        from dask.distributed import Client, LocalCluster, as_completed
    except ImportError:
        sys.exit("sweep_dask: dask.distributed is missing; Debian has it as python3-distributed")
    candela = str(pathlib.Path(arguments.candela).resolve())
    listed = subprocess.run([candela, "simulate", "--sweep", arguments.sweep, "--list", "--json", "-"], stdout=subprocess.PIPE)
    if listed.returncode:
        return listed.returncode
    jobs = json.loads(listed.stdout)["jobs"]
    here = pathlib.Path.cwd()
    for job in jobs:  # workers stand elsewhere
        job["command"][0] = candela
        job["command"] = [str(here / word) if (here / word).is_file() else word for word in job["command"]]
        at = job["command"].index("--json") + 1
        job["result"] = job["command"][at] = str(here / job["result"])
    left = [job for job in jobs if not is_done(job["result"])]
    print(f"{arguments.sweep}: {len(jobs)} simulations, {len(left)} left")
    cluster = None if arguments.scheduler else LocalCluster(n_workers=arguments.workers, threads_per_worker=1, dashboard_address=None)
    failed = []
    with Client(arguments.scheduler or cluster) as client:
        futures = [client.submit(run, job, key=f"candela-{job['id']}", retries=2) for job in left]
        for number, future in enumerate(as_completed(futures), 1):
            if future.status == "error":
                failed.append(future.exception())
                continue
            name, how = future.result()
            print(f"  {number}/{len(left)} {name} {how}", flush=True)
    if cluster:
        cluster.close()
    for error in failed:
        print(f"error: {error}", file=sys.stderr)
    return 1 if failed else subprocess.run([candela, "simulate", "--sweep", arguments.sweep]).returncode


if __name__ == "__main__":
    sys.exit(main())
