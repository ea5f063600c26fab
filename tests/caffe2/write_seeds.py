#!/usr/bin/env python3
"""write_seeds.py FOLDER: nets to be damaged, each with its init net in front: every kind of field that a net has."""
import sys
from pathlib import Path

import cases
import caffe2_net

NAMES = ("conv_stride_pad", "conv_nhwc", "max_pool_caffe", "fc", "spatial_bn", "split", "reshape", "cast_by_name", "slice",
         "sparse_lengths_weighted_sum", "batch_one_hot", "channel_shuffle", "top_k", "resize_nearest")


def content_of(case):
    names = [f"in{i}" for i in range(len(case.operands))]
    outputs = [f"out{i}" for i in range(len(case.expected))]
    fills = [caffe2_net.fill(name, array) for name, array in zip(names, case.operands)]
    predict = caffe2_net.net([caffe2_net.op(case.type, names, outputs, **case.arguments)], names, outputs)
    return caffe2_net.net(fills, (), names) + predict


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    by_name = {case.name: case for case in cases.CASES}
    for name in NAMES:
        (folder / f"{name}.pb").write_bytes(content_of(by_name[name]))


if __name__ == "__main__":
    main()
