"""The tool as functions: answers, rows, progress, errors, Ctrl-C."""

import os
import subprocess
import tempfile
import unittest
import unittest.mock

import numpy as np

import candela
import common

DIGITS = os.path.join(common.DIGITS, "digits.onnx")
INTEGERS = os.path.join(common.DIGITS, "digits_int8.onnx")


SMALL_DEVICE = """
name = "small"
clock_mhz = 1
profiles = ["FP32"]
[matrix]
macs_per_cycle = 16
[vector]
elements_per_cycle = 4
[[memory]]
name = "dram"
gb_per_s = 0.008
"""


def arrays(name):
    return np.load(os.path.join(common.DIGITS, name))


class Answers(unittest.TestCase):
    def test_inspect(self):
        with open(DIGITS, "rb") as file:
            content = file.read()
        for model in (DIGITS, candela.load(DIGITS), content):
            found = candela.inspect(model)
            self.assertEqual((found.kind, found.succeeded), ("ONNX model", True))
            self.assertIn({"op": "Conv", "count": 3}, found.rows())
        self.assertEqual(candela.inspect(os.path.join(common.DIGITS, "test_images.npy")).kind, "tensor")

    def test_bench(self):
        found = candela.bench(DIGITS, backend=["template", "soft"], dims={"N": 2}, repeat=3, rows=0)
        self.assertEqual((found.backends[0], found.latency_ms["runs"]), ("template", 3))
        self.assertIn("Conv_0", [row["node"] for row in found.rows()])
        self.assertEqual(found.report["schema"], "candela.bench/1")

    def test_quantize(self):
        with tempfile.TemporaryDirectory() as folder:
            output = os.path.join(folder, "digits_int8.onnx")
            found = candela.quantize(DIGITS, data={"images": arrays("train_images.npy")[:64]}, scale=1 / 16, output=output,
                                     run_on="soft", compare=4)
            self.assertEqual((found.samples, found.output), (64, output))
            self.assertLess(found.weight_bytes, found.weight_bytes_before / 3)
            self.assertTrue(found.rows())
            right = candela.compile(output)(arrays("test_images.npy")[:64]).argmax(1) == arrays("test_labels.npy")[:64]
            self.assertGreater(right.mean(), 0.9)

    @unittest.skipUnless(common.built("npu_sim"), "npu_sim is not built")
    def test_simulate(self):
        found = candela.simulate(INTEGERS, npu="gem16", dims={"N": 1}, inputs={"images": arrays("test_images.npy")[:1]},
                                 verify=True)
        self.assertEqual((found.npu, found.succeeded), ("gem16", True))
        self.assertGreater(found.cycles, 1000)
        self.assertEqual(found.rows()[0]["name"], "Conv_0")

    def test_estimate(self):
        with tempfile.TemporaryDirectory() as folder:
            device = os.path.join(folder, "small.toml")
            with open(device, "w", encoding="utf-8") as file:
                file.write(SMALL_DEVICE)
            found = candela.estimate(DIGITS, device=device, dims={"N": 1})
            self.assertEqual((found.npu, found.source), ("small", "rates of " + device))
            self.assertEqual(sum(row["cycles"] for row in found.rows()), found.cycles)
            self.assertAlmostEqual(found.time_ms, found.cycles / 1000)

    def test_conform(self):
        found = candela.conform("template", tier="queue")
        self.assertTrue(found.conformant and found.succeeded)
        self.assertEqual(found.failed, [])
        self.assertEqual(len(found.rows()), found.total)


class Failures(unittest.TestCase):
    def test_texts_are_those_of_the_tool(self):
        tool = candela.tool.executable()
        calls = ((["inspect", "nowhere.onnx"], lambda: candela.inspect("nowhere.onnx")),
                 (["bench", DIGITS, "--seconds", "x"], lambda: candela.bench(DIGITS, seconds="x")),
                 (["bench", DIGITS, "--nothing"], lambda: candela.bench(DIGITS, nothing=True)),
                 (["conform", "--backend", "nobody"], lambda: candela.conform("nobody")))
        for arguments, call in calls:
            said = subprocess.run([tool, *arguments], capture_output=True, text=True).stderr
            with self.assertRaises(candela.InvalidArgumentError) as raised:
                call()
            self.assertEqual(f"error: {raised.exception}", said.strip())

    def test_names_that_there_are_not(self):
        with self.assertRaisesRegex(AttributeError, "no attribute 'nothing'"):
            candela.nothing


class Children(unittest.TestCase):
    def in_place_of_the_tool(self, script):
        """A program that says what the test needs, which the tool says after seconds of work alone."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "candela")
        with open(path, "w") as file:
            file.write(f"#!/bin/sh\n{script}\n")
        os.chmod(path, 0o755)
        return unittest.mock.patch("candela.tool.executable", return_value=path)

    def test_progress_is_passed_on(self):
        told = []
        with self.in_place_of_the_tool("""printf 'one\\ntwo\\n' >&2; echo '{"kind": "nothing"}'"""):
            found = candela.inspect("file", progress=told.append)
        self.assertEqual((told, found.kind, found.rows()), (["one", "two"], "nothing", []))

    def test_an_exception_of_progress_stops_it(self):
        told = []

        def stop(line):
            told.append(line)
            raise KeyError("enough")

        with self.in_place_of_the_tool("echo $$ >&2; tail -f /dev/null"), self.assertRaises(KeyError):
            candela.inspect("file", progress=stop)
        self.assertFalse(os.path.exists(f"/proc/{told[0]}"))

    def test_one_that_crashes(self):
        with self.in_place_of_the_tool("echo 'half an answer'; kill -SEGV $$"):
            with self.assertRaisesRegex(candela.InternalError, "candela ended by signal 11"):
                candela.inspect("file")

    def test_one_that_is_killed_within_its_answer(self):
        with self.in_place_of_the_tool("""echo '{"kind": '; kill -KILL $$"""):
            with self.assertRaisesRegex(candela.InternalError, "candela ended by signal 9: it gave no whole answer"):
                candela.inspect("file")

    def test_one_that_does_not_start(self):
        with unittest.mock.patch("candela.tool.executable", return_value="/nowhere/candela"):
            with self.assertRaises(FileNotFoundError):
                candela.inspect("file")

    def test_ctrl_c_stops_it(self):
        """The tool would measure for two minutes."""
        status, out, errors = common.run_python(f"""
import glob, os, signal, threading, time, candela
def children():
    texts = []
    for path in glob.glob("/proc/self/task/*/children"):
        with open(path) as file:
            texts += file.read().split()
    return texts
def interrupt():
    while not children(): time.sleep(0.01)
    print(children()[0], flush=True)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
try:
    candela.bench({DIGITS!r}, dims={{"N": 1}}, seconds=120)
except KeyboardInterrupt:
    print("interrupted")
""")
        child, _, said = out.partition("\n")
        self.assertEqual((status, said, errors), (0, "interrupted\n", ""))
        self.assertFalse(os.path.exists(f"/proc/{child}"))


if __name__ == "__main__":
    common.main()
