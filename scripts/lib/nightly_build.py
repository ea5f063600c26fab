"""Builds beside the main one, each in a folder of its own, for the nightly tests that need other flags or another revision."""

import os
import subprocess


def jobs():
    """How many compilers at once: CANDELA_JOBS, or one for each processor."""
    return int(os.environ.get("CANDELA_JOBS") or os.cpu_count())


def configure(source, folder, definitions, environment=None):
    """Configures the source tree into the folder: RelWithDebInfo, no precompiled headers and no batches unless asked for."""
    values = {"CMAKE_BUILD_TYPE": "RelWithDebInfo", "CANDELA_PCH": "OFF", "CANDELA_UNITY": "OFF", **definitions}
    command = ["cmake", "-S", source, "-B", folder, "-G", "Ninja", "-Wno-dev"]
    command += [f"-D{name}={value}" for name, value in values.items()]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, **(environment or {})})


def build(folder, targets=(), keep_going=False):
    """Builds targets, or all; the exit status and the lines that were printed, which are printed here too."""
    command = ["cmake", "--build", folder, "-j", str(jobs())]
    command += ["--target", *targets] if targets else []
    command += ["--", "-k", "0"] if keep_going else []
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as run:
        for line in run.stdout:
            lines.append(line.rstrip("\n"))
            print(line, end="", flush=True)
    return run.returncode, lines


def backends(folder):
    """The targets of the backends that this build has."""
    said = subprocess.run(["cmake", "--build", folder, "--target", "help"], capture_output=True, text=True, check=True)
    names = {line.split(":")[0].strip() for line in said.stdout.splitlines()}
    return sorted(names & {f"candela_backend_{name}" for name in ("cpu", "npu_sim", "opencl", "opencl_primitives", "template")})
