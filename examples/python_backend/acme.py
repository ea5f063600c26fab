#!/usr/bin/env python3
"""A device that computes float32 with NumPy; the host does the rest.

usage: acme.py FOLDER     writes FOLDER/libcandela_acme.so and prints its path
"""

import sys

import numpy as np

import candela

BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "min": np.minimum, "max": np.maximum}
UNARY = {"neg": np.negative, "abs": np.abs, "floor": np.floor, "sqrt": np.sqrt, "rcp": np.reciprocal, "exp": np.exp,
         "log": np.log}
REDUCE = {"sum": (np.sum, 0), "prod": (np.prod, 1), "max": (np.max, -np.inf), "min": (np.min, np.inf)}


class Acme(candela.Backend):
    name = "acme"
    description = "floats by NumPy"

    def copy(self, x):
        return x

    def fill(self, value):
        return value

    def binary(self, fn, a, b):
        return BINARY[fn](a, b)

    def unary(self, fn, x):
        return UNARY[fn](x)

    def compare(self, fn, a, b):
        return a == b if fn == "eq" else a < b

    def select(self, cond, a, b):
        return np.where(cond, a, b)

    def reduce(self, fn, x):
        function, of_nothing = REDUCE[fn]
        return function(x, axis=1, initial=of_nothing)

    def matmul(self, a, b):
        return a @ b


if __name__ == "__main__":
    print(Acme.plugin(sys.argv[1]))
