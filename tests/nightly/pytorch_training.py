#!/usr/bin/env python3
"""Trains networks beside PyTorch from the same weights on the same batches: the losses of 100 steps have to be the same.

usage: tests/nightly/pytorch_training.py --package DIR [--backend B]... [--report FILE]

A multi-layer perceptron, a convolutional network with batch norms, two layers of a transformer and an LSTM are written by PyTorch's
exporter and trained by `candela.trainer` with Adam. A loss may be 1e-4 off, or as much of it where it is above 1. The time of a step is
the least of all, on one thread of both.

The exporter writes parameters of equal content as one initializer, which is then one parameter: here all begin apart.

Writes benchmarks/results/pytorch_training.json. Needs the Python package of a build (DIR is build/python), for the Python that this
runs with, and torch and NumPy of PyPI.

Exit status: 0 all agree, 1 some do not, 2 bad usage or nothing to run.
"""
import argparse
import io
import math
import pathlib
import sys
import time

import numpy as np
import torch
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402

STEPS = 100
BATCHES = 8  # that the steps take in turn
BATCH = 32
CLASSES = 10
TOLERANCE = 1e-4
RATE = 1e-3
THREADS = 1


class Perceptron(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, CLASSES))

    @staticmethod
    def sample(random):
        return random.standard_normal((BATCH, 20)).astype("float32")


class Convolutions(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(16, 32, 3, padding=1, stride=2, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
                         nn.Conv2d(32, 32, 3, padding=1, groups=32), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(32, CLASSES))

    @staticmethod
    def sample(random):
        return random.standard_normal((BATCH, 3, 16, 16)).astype("float32")


class Block(nn.Module):
    WIDTH, HEADS = 32, 4

    def __init__(self):
        super().__init__()
        self.before, self.after = nn.LayerNorm(self.WIDTH), nn.LayerNorm(self.WIDTH)
        self.queries, self.keys, self.values, self.out = (nn.Linear(self.WIDTH, self.WIDTH) for _ in range(4))
        self.wide, self.narrow = nn.Linear(self.WIDTH, 4 * self.WIDTH), nn.Linear(4 * self.WIDTH, self.WIDTH)

    def split(self, x):
        return x.reshape(BATCH, -1, self.HEADS, self.WIDTH // self.HEADS).transpose(1, 2)

    def forward(self, x):
        y = self.before(x)
        queries, keys, values = self.split(self.queries(y)), self.split(self.keys(y)), self.split(self.values(y))
        weights = (queries @ keys.transpose(2, 3) / math.sqrt(self.WIDTH // self.HEADS)).softmax(-1)
        x = x + self.out((weights @ values).transpose(1, 2).reshape(x.shape))
        return x + self.narrow(nn.functional.gelu(self.wide(self.after(x))))


class Transformer(nn.Module):
    LENGTH, WORDS = 12, 50

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(self.WORDS, Block.WIDTH)
        self.blocks = nn.Sequential(Block(), Block())
        self.scores = nn.Linear(Block.WIDTH, CLASSES)

    def forward(self, words):
        return self.scores(self.blocks(self.words(words)).mean(1))

    @classmethod
    def sample(cls, random):
        return random.integers(0, cls.WORDS, (BATCH, cls.LENGTH))


class Recurrence(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 24)
        self.scores = nn.Linear(24, CLASSES)

    def forward(self, x):
        return self.scores(self.lstm(x.transpose(0, 1))[0][-1])

    @staticmethod
    def sample(random):
        return random.standard_normal((BATCH, 10, 8)).astype("float32")


NETWORKS = {"mlp": Perceptron, "cnn_batch_norm": Convolutions, "transformer": Transformer, "lstm": Recurrence}


def exported(network, sample):
    """The network as an ONNX model, its norms as in inference, and none of them part of a convolution."""
    file = io.BytesIO()
    network.eval()
    torch.onnx.export(network, (torch.from_numpy(sample),), file, input_names=["x"], output_names=["scores"],
                      opset_version=17, dynamo=False, training=torch.onnx.TrainingMode.PRESERVE)
    network.train()
    return file.getvalue()


def by_torch(network, batches):
    """The loss of each step, and the seconds that it took."""
    optimizer = torch.optim.Adam(network.parameters(), lr=RATE)
    losses, seconds = [], []
    for step in range(STEPS):
        x, labels = (torch.from_numpy(each) for each in batches[step % BATCHES])
        began = time.perf_counter()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(network(x), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - began)
    return losses, seconds


def by_candela(candela, model, backend, batches):
    options = {"cpu.threads": THREADS} if backend == "cpu" else None
    with candela.trainer(model, backend, optimizer="adam", options=options) as trainer:
        losses, seconds = [], []
        for step in range(STEPS):
            x, labels = batches[step % BATCHES]
            began = time.perf_counter()
            losses.append(trainer.step(x, labels, learning_rate=RATE))
            seconds.append(time.perf_counter() - began)
        return losses, seconds


def compared(candela, name, backend):
    torch.manual_seed(1)
    random = np.random.default_rng(2)
    network = NETWORKS[name]()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += 0.02 * torch.randn(parameter.shape)
    batches = [(network.sample(random), random.integers(0, CLASSES, BATCH)) for _ in range(BATCHES)]
    model = exported(network, batches[0][0])
    wanted, torch_seconds = by_torch(network, batches)
    result = {"network": name, "backend": backend, "parameters": sum(each.numel() for each in network.parameters()),
              "steps": STEPS}
    try:
        losses, seconds = by_candela(candela, model, backend, batches)
    except candela.Error as error:
        return result | {"passed": False, "reason": str(error)}
    apart = [abs(a - b) / max(1, abs(b)) for a, b in zip(losses, wanted)]
    return result | {"passed": max(apart) <= TOLERANCE, "apart": max(apart), "first_loss": wanted[0], "last_loss": wanted[-1],
                     "milliseconds": round(1000 * min(seconds), 3),
                     "torch_milliseconds": round(1000 * min(torch_seconds), 3)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", type=pathlib.Path, required=True, help="a build's python folder")
    parser.add_argument("--backend", action="append", help="soft and cpu without it")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/pytorch_training.json")
    arguments = parser.parse_args()
    sys.path.insert(0, str(arguments.package))
    try:
        import candela
    except ImportError as error:
        print(f"pytorch_training: {arguments.package}: {error}", file=sys.stderr)
        return 2
    torch.set_num_threads(THREADS)
    candela.set_threads(THREADS)
    results = []
    for backend in arguments.backend or ["soft", "cpu"]:
        for name in NETWORKS:
            results.append(compared(candela, name, backend))
            print(results[-1], flush=True)
    passed = sum(result["passed"] for result in results)
    nightly_report.write(arguments.report, {
        "schema": "candela.pytorch_training/1", "date": nightly_report.now(), "machine": nightly_report.machine(),
        "versions": {"torch": torch.__version__, "numpy": np.__version__}, "threads": THREADS,
        "tolerance": TOLERANCE, "passed": passed, "total": len(results), "results": results})
    print(f"{passed} of {len(results)} agree; report {arguments.report}")
    return 0 if passed == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
