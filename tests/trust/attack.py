"""What the attacks share: the tool in a folder of its own, and files as a stranger would write them."""

import hashlib
import os
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

TOOL, SDK = os.environ["TRUST_TOOL"], os.environ["TRUST_SDK"]
INTRUDER, PLUGIN = os.environ["TRUST_INTRUDER"], os.environ["TRUST_PLUGIN"]
TEMPLATE, DIGITS = os.environ["TRUST_TEMPLATE"], os.environ["TRUST_DIGITS"]
MARK = "intruder_was_here"


class Attack(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="candela_trust_")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, *parts):
        path = os.path.join(self.folder, *parts)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def write(self, name, content):
        with open(self.path(name), "wb" if isinstance(content, bytes) else "w") as file:
            file.write(content)
        return self.path(name)

    def run_(self, *arguments, env=None, **more):
        """The tool, found as a shell finds it: its name alone is what it is told of itself."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith("CANDELA_")}
        return subprocess.run(["candela", *arguments], executable=TOOL, cwd=self.folder, capture_output=True,
                              env={**kept, **(env or {})}, timeout=120, **more)

    def succeeds(self, *arguments, **more):
        done = self.run_(*arguments, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def refused(self, message, *arguments, **more):
        done = self.run_(*arguments, **more)
        self.assertIn(done.returncode, (1, 2), done.stderr)
        self.assertIn(message, done.stderr.decode())
        self.assertNoIntruder()
        return done

    def assertNoIntruder(self):
        marks = [folder for folder, _, names in os.walk(self.folder) if MARK in names]
        self.assertEqual(marks, [], "the intruder's code ran")


# --- Protobuf, as far as a bundle and a model need it.

def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    """Of bytes, of a text or of an integer."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(content)) + content


def fields(message):
    """[(number, value)] of integers and bytes."""
    at, found = 0, []

    def take():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
    while at < len(message):
        tag = take()
        value = take()
        if tag & 7 == 2:
            value, at = message[at:at + value], at + value
        found.append((tag >> 3, value))
    return found


BUNDLE = struct.Struct("<4sHHQQ32s")
PARTITION, BACKEND, OPTIONS = 8, 1, 3


def changedBundle(bundle, backend=None, options=None):
    """The bundle with another backend or with options in its partitions, its hash made anew."""
    magic, major, minor, size, payloads, _ = BUNDLE.unpack_from(bundle)
    manifest = b""
    for number, value in fields(bundle[BUNDLE.size:BUNDLE.size + size]):
        if number == PARTITION:
            parts = [(n, v) for n, v in fields(value)
                     if not (n == BACKEND and backend is not None) and not (n == OPTIONS and options is not None)]
            if backend is not None:
                parts.append((BACKEND, backend))
            parts += [(OPTIONS, field(1, k) + field(2, v)) for k, v in (options or {}).items()]
            value = b"".join(field(n, v) for n, v in parts)
        manifest += field(number, value)
    begin = (BUNDLE.size + len(manifest) + 63) // 64 * 64
    header = BUNDLE.pack(magic, major, minor, len(manifest), begin, hashlib.sha256(manifest).digest())
    return (header + manifest).ljust(begin, b"\0") + bundle[payloads:]


def onnxModel(graph, node, source, result, op="Relu", domain=""):
    """A model of one node on f32[1,4], with these names."""
    def port(name):
        shape = field(2, field(1, field(1, 1)) + field(1, field(1, 4)))
        return field(1, name) + field(2, field(1, field(1, 1) + shape))
    body = field(1, source) + field(2, result) + field(3, node) + field(4, op) + field(7, domain)
    content = field(1, body) + field(2, graph) + field(11, port(source)) + field(12, port(result))
    return field(1, 8) + field(7, content) + field(8, field(1, "") + field(2, 17)) + field(8, field(1, domain) + field(2, 1))


# --- What a terminal may get.

HIDDEN = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
                    "\U000e0000-\U000e007f]")


def hiddenIn(output):
    """Where the output holds something that a terminal would not show as it is; None where it does not."""
    try:
        text = output.decode()
    except UnicodeDecodeError as error:
        return str(error)
    found = HIDDEN.search(text)
    return found and repr(text[max(found.start() - 60, 0):found.end() + 20])
