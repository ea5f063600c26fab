"""Forks, signals, and interpreters that end while something is in flight: refused by name, never a crash, never a hang."""

import os
import unittest

import numpy as np

import candela
import common

BEGIN = """
import os, sys, threading
import numpy as np
import candela, common
x = np.zeros((1, 1024, 1024), np.float32)
session = common.compile_text(common.LONG)
"""


class Fork(unittest.TestCase):
    def in_child(self, body):
        """What `body` returns or raises in a child of fork, as text."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                told = str(body())
            except BaseException as error:
                told = f"{type(error).__name__}: {error}"
            os.write(writing, told.encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as file:
            told = file.read()
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        return told

    def test_what_the_parent_made_is_refused(self):
        for backend in common.built("soft", "cpu"):
            session = common.compile_text(common.TWO, backend)
            x = np.ones((2, 3), np.float32)
            future = session.submit([x, x])
            refused = "InvalidArgumentError: the session was made before this process was forked: make it in the child"
            self.assertEqual(self.in_child(lambda: session(x, x)), refused)
            self.assertEqual(self.in_child(lambda: session.submit([x, x])), refused)
            self.assertIn("the request was made before", self.in_child(future.result))
            self.assertEqual(future.result()[0][0, 0], 2)
            self.assertEqual(session(x, x)[0][0, 0], 2)

    def test_a_device_of_the_parent(self):
        device = candela.Device("template")
        tensor = candela.Tensor((2, 3), "f32", device)
        self.assertIn("the device was made before", self.in_child(lambda: candela.Tensor((2, 3), "f32", device)))
        self.assertIn("the tensor was made before", self.in_child(tensor.numpy))

    def test_a_child_makes_its_own(self):
        common.compile_text(common.TWO, "cpu").close()
        x = np.ones((2, 3), np.float32)
        self.assertEqual(self.in_child(lambda: common.compile_text(common.TWO, "cpu")(x, x)[0][0, 0]), "2.0")

    def test_a_child_that_ends_as_an_interpreter(self):
        status, out, errors = common.run_python(BEGIN + """
small = common.compile_text(common.TWO)
future = session.submit([x])
child = os.fork()
if child == 0:
    del session, future
    sys.exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
future.cancel()
""")
        self.assertEqual((status, out, errors), (0, "3\n", ""))


class End(unittest.TestCase):
    def ends(self, program, expected="", status=0):
        self.assertEqual(common.run_python(BEGIN + program), (status, expected, ""))

    def test_requests_in_flight(self):
        self.ends("futures = [session.submit([x]) for _ in range(8)]\nprint('end')\n", "end\n")

    def test_requests_that_nobody_holds(self):
        self.ends("for _ in range(8): session.submit([x])\ndel session, x\nprint('end')\n", "end\n")

    def test_runs_of_daemons(self):
        self.ends("""
started = threading.Barrier(3)
def work():
    started.wait()
    while True:
        try:
            session(x)
        except candela.CancelledError:
            return
for _ in range(2): threading.Thread(target=work, daemon=True).start()
started.wait()
print('end')
""", "end\n")

    def test_daemons_that_wait(self):
        self.ends("""
started = threading.Barrier(2)
def work():
    future = session.submit([x])
    started.wait()
    try:
        future.result()
    except candela.CancelledError:
        pass
threading.Thread(target=work, daemon=True).start()
started.wait()
print('end')
""", "end\n")

    def test_after_the_end_nothing_begins(self):
        self.ends("""
import atexit
candela._native._end()
for use in (lambda: session(x), lambda: session.submit([x]), lambda: common.compile_text(common.TWO),
            candela.devices, candela.backends):
    try:
        use()
    except candela.CancelledError as error:
        print(error)
""", "the interpreter ends: no call begins any more\n" * 5)

    def test_cycles_and_globals(self):
        self.ends("cycle = [session, session.submit([x])]\ncycle.append(cycle)\nsys.cycle = cycle\nprint('end')\n", "end\n")

    def test_ctrl_c_while_a_result_is_waited_for(self):
        self.ends("""
import signal
def interrupt(*_):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, interrupt)
last = [session.submit([x]) for _ in range(32)][-1]
try:
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    last.result()
except KeyboardInterrupt:
    print('interrupted', last.done())
""", "interrupted False\n")


class Import(unittest.TestCase):
    def test_without_numpy(self):
        status, out, errors = common.run_python("""
import sys
import candela
assert "numpy" not in sys.modules
sys.modules["numpy"] = None
session = candela.compile(b'graph @main(%x: i64[3]) -> (%y: i64[3] "y") { %y = add %x, %x }', name="x.cdl")
import array
y = session(array.array("q", [1, 2, 3]))
print(y, memoryview(y).tolist(), session.inputs[0].dtype)
""")
        self.assertEqual((status, out, errors), (0, "<candela.Tensor i64 (3,) on host> [2, 4, 6] None\n", ""))


if __name__ == "__main__":
    common.main()
