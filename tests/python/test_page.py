"""The examples of docs/python.md, in their order: each prints what the page shows behind it."""

import contextlib
import io
import os
import re
import unittest

import common

PAGE = os.path.join(common.SOURCE, "docs/python.md")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Page(unittest.TestCase):
    def test_examples(self):
        with open(PAGE) as file:
            blocks = FENCE.findall(file.read())
        os.chdir(common.DIGITS)
        names = {}
        examples = 0
        for (kind, text), (next_kind, shown) in zip(blocks, [*blocks[1:], ("", "")]):
            if kind != "python":
                continue
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(text, PAGE, "exec"), names)
            self.assertEqual(printed.getvalue(), shown if next_kind == "text" else "", text)
            examples += 1
        self.assertGreater(examples, 6)


if __name__ == "__main__":
    common.main()
