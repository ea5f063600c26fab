"""The inputs of `candela run --random SEED`, bit for bit; README.md § Random inputs is the definition."""
import math

import numpy as np


def splitmix64(x):
    """The finaliser of splitmix64 after one step of its counter, for an array of uint64."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def random_input(seed, shape, first=0):
    """f32 values in [-1, 1); element i in row-major order is number first + i of the seed's sequence."""
    counter = np.arange(math.prod(shape), dtype=np.uint64) + np.uint64((seed + first) % 2**64)
    bits = (splitmix64(counter) >> np.uint64(40)).astype(np.float32)
    return (bits * np.float32(2**-24) * np.float32(2) - np.float32(1)).reshape(shape)
