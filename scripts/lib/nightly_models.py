"""The models that several nightly scripts measure: {name: (path, options of candela)}."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GENERATED = ("resnet50", "resnet50_int8", "mbv2", "mbv2_int8", "bert4", "bert4_int8")
TRAINED = {"ocr_detection": "x=1x3x736x992", "ocr_direction": "x=1x3x48x192", "ocr_recognition": "x=1x3x48x320"}


def add_arguments(parser, results):
    """The flags of a script that measures them; results: the name of its report, and of its page."""
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--models", type=pathlib.Path, help="what candela-gen-models wrote")
    parser.add_argument("--model", action="append", help="one of them; may be given again")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / f"benchmarks/results/{results}.json")
    parser.add_argument("--table", type=pathlib.Path, default=ROOT / f"docs/reference/{results}.md")


def tool(script, arguments):
    """The build's candela; exit status 2 without one."""
    candela = arguments.build / "bin/candela"
    if not candela.is_file():
        print(f"{script}: {candela} is missing; build it first", file=sys.stderr)
        sys.exit(2)
    return candela


def chosen(script, found, names):
    """Those of the names, all where there are none; exit status 2 for one that nobody knows."""
    for name in names or []:
        if name not in found:
            print(f"{script}: no model {name}; there are {', '.join(found)}", file=sys.stderr)
            sys.exit(2)
    return {name: found[name] for name in names or found}


def generated(build, made, folder):
    """The benchmark models; where `made` is none they are written into the folder first."""
    if not made:
        made = pathlib.Path(folder)
        subprocess.run([build / "bin/candela-gen-models", made], check=True, stdout=subprocess.DEVNULL)
    return {name: (made / f"{name}.onnx", ["--dim", "N=1"]) for name in GENERATED}


def trained():
    """The three trained models, at the sizes of their figures; fetched where they are missing."""
    fetched = subprocess.run([ROOT / "scripts/fetch_models"], stdout=subprocess.PIPE, text=True, check=True)
    found = dict(line.split("\t") for line in fetched.stdout.splitlines())
    return {name: (pathlib.Path(path), ["--shape", TRAINED[name]]) for name, path in found.items()}
