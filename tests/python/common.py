"""What the tests of the Python package share: models as text, and programs in processes of their own."""

import os
import subprocess
import sys
import unittest

import candela

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DIGITS = os.path.join(SOURCE, "examples/digits")

# x + y, and their product on top: two outputs, one of which nothing else needs.
TWO = b"""graph @main(%x: f32[2,3], %y: f32[2,3]) -> (%sum: f32[2,3] "sum", %product: f32[2,3] "product") {
  %sum = add %x, %y
  %product = mul %sum, %y
}
"""

# A counter and a sum of all that it has seen.
STATES = b"""graph @main(%past: i32[1], %x: i32[1]) -> (%present: i32[1] "present", %double: i32[1] "double") {
  %present = add %past, %x
  %double = add %present, %present
}
"""

# Long enough to be in flight when something else happens: some 10^9 operations.
LONG = b"""graph @main(%x: f32[1,1024,1024]) -> (%y: f32[1,1024,1024] "y") {
  %a = matmul %x, %x
  %b = matmul %a, %x
  %y = matmul %b, %x
}
"""


def compile_text(text, backend=None, **options):
    return candela.compile(text, backend, name="test.cdl", **options)


def built(*backends):
    """Those of the names that this build has."""
    known = {each["name"] for each in candela.backends()}
    return [name for name in backends if name in known or name == "soft"]


def run_python(program, timeout=60, **environment):
    """A program in an interpreter of its own: its exit status, and what it printed on both streams.

    `timeout`: seconds, more where the machine is slower, as the time limits of tests.
    """
    timeout *= int(os.environ.get("CANDELA_TIME_PERCENT") or 100) / 100
    path = os.pathsep.join(each for each in sys.path if each)
    done = subprocess.run([sys.executable, "-c", program], timeout=timeout, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": path, **environment}, cwd=os.path.dirname(__file__))
    return done.returncode, done.stdout, done.stderr


main = unittest.main
