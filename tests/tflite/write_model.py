#!/usr/bin/env python3
"""write_model.py NAME FILE [--flatc FLATC]: writes a model of models.py or cases.py.
write_model.py --seeds DIR [--flatc FLATC]: those that tests mutate."""
import argparse
import sys
import tempfile
from pathlib import Path

import models
import tflite_model

SEEDS = ("chosen", "repeated", "signed", "custom", "custom_open_key", "conv_2d_i8_relu6", "depthwise_conv_2d_u8", "fully_connected_i4",
         "transpose_conv_same", "strided_slice_masks", "split_v", "space_to_batch_nd_i8", "one_hot", "dynamic_update_slice",
         "resize_nearest_aligned_7", "mean_i8", "mirror_pad_reflect", "unsorted_segment_max", "concatenation_u8")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="?")
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--seeds", type=Path)
    parser.add_argument("--flatc", default="flatc")
    arguments = parser.parse_args()
    if arguments.seeds:
        tflite_model.write_models({name: models.text_of(name) for name in SEEDS}, arguments.seeds, arguments.flatc)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        tflite_model.write_models({"model": models.text_of(arguments.name)}, Path(folder), arguments.flatc)
        arguments.file.write_bytes((Path(folder) / "model.tflite").read_bytes())
    return 0


if __name__ == "__main__":
    sys.exit(main())
