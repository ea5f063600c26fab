"""The models that several nightly scripts measure: {name: (path, options of candela)}."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GENERATED = ("resnet50", "resnet50_int8", "mbv2", "mbv2_int8", "bert4", "bert4_int8")
TRAINED = {"ocr_detection": "x=1x3x736x992", "ocr_direction": "x=1x3x48x192", "ocr_recognition": "x=1x3x48x320"}


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
