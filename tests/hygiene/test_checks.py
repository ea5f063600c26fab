#!/usr/bin/env python3
"""Each check passes on a clean tree and fails, with file, line and rule, on a tree with one violation."""

import contextlib
import importlib
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

CLEAN = {
    "README.md": "# Title\n\nSee [the core](core/compiler/graph/README.md#the-graph) and [this](#title).\n",
    "core/compiler/graph/README.md": "# The graph\n",
    "core/compiler/graph/graph.h": '#include <vector>\n#include "core/support/status.h"\n',
    "core/compiler/graph/CMakeLists.txt": "candela_add_room(graph SOURCES graph.cpp DEPS Candela::support)\n",
    "core/compiler/graph/graph.cpp": '#include "graph.h"\n',
    "core/support/README.md": "# Support\n",
    "core/support/status.h": "#include <candela/cdl.h>\n#include <fmt/format.h>\n",
    "core/support/CMakeLists.txt": "candela_add_room(support SOURCES status.cpp DEPS Candela::backend_api)\n",
    "core/compiler/import/README.md": "# Import\n",
    "core/compiler/import/import.cpp":
        '#include "core/compiler/graph/graph.h"\n#include "core/compiler/import/onnx_io/io.h"\n',
    "core/compiler/import/onnx_io/io.h": "#pragma once\n",
    "core/compiler/import/onnx_io/io.cpp": '#include "io.h"\n#include <onnx/onnx.pb.h>\n#include <sys/mman.h>\n',
    "core/compiler/README.md": "# Compiler\n",
    "core/runtime/README.md": "# Runtime\n",
    "core/runtime/host_executor/README.md": "# Host executor\n",
    "core/runtime/host_executor/soft.cpp": "#include <candela/numerics.h>\n#include <stdint.h>\n",
    "backend_api/include/candela/cdl.h": "#include <stdint.h>\n",
    "backend_api/include/candela/numerics.h": "#include <math.h>\n",
    "backends/cpu/README.md": "# CPU\n",
    "backends/cpu/jit.cpp": "#include <llvm/IR/Module.h>\n#include <candela/cdl.h>\n",
    "tools/candela/main.cpp": '#include "CLI/CLI.hpp"\n#include "core/compiler/graph/graph.h"\n',
    "tools/candela-gen/candela_gen.py": "import sys\nsys.exit(0 if sys.argv[1:] == ['--check'] else 2)\n",
}


class CheckTest(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="candela_hygiene_")
        self.addCleanup(shutil.rmtree, self.root)
        self.write(CLEAN)

    def write(self, files):
        for path, text in files.items():
            full = os.path.join(self.root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as file:
                file.write(text)

    def run_(self, check, *arguments):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            status = importlib.import_module(f"check_{check}").main(["--root", self.root, *arguments])
        return status, out.getvalue()

    def clean(self, check):
        status, out = self.run_(check)
        self.assertEqual((status, "clean" in out), (0, True), out)

    def broken(self, check, files, *expected):
        self.write(files)
        status, out = self.run_(check)
        self.assertEqual(status, 1, out)
        for text in expected:
            self.assertIn(text, out)
        self.assertEqual(sum("] " in line and line.count(": [") for line in out.splitlines()), len(expected), out)


class Includes(CheckTest):
    def test_clean(self):
        self.clean("includes")

    def testUpwards(self):
        self.broken("includes", {"core/support/text.cpp":
        '#include <string>\n#include "core/compiler/graph/graph.h"\n'},
                    "core/support/text.cpp:2: [include] room 'support' may not include 'core/compiler/graph/graph.h' of room 'graph'")

    def testRelativePathIsNoWayAround(self):
        self.broken("includes", {"core/support/text.cpp": '#include "../compiler/graph/graph.h"\n'},
                    "core/support/text.cpp:1: [include]")

    def testHeaderThatDoesNotExistYet(self):
        self.broken("includes", {"core/runtime/host_executor/a.cpp": '#include "core/compiler/program/program.h"\n'},
                    "core/runtime/host_executor/a.cpp:1: [include] room 'runtime/host_executor' may not include")

    def testBackendNeverSeesCore(self):
        self.broken("includes", {"backends/cpu/a.cpp": '\n\n#include "core/support/status.h"\n'},
                    "backends/cpu/a.cpp:3: [include] room 'backend'")

    def testBackendNeverSeesAnother(self):
        self.broken("includes", {"backends/opencl/a.cpp": '#include "backends/cpu/jit.h"\n', "backends/cpu/jit.h": ""},
                    "backends/opencl/a.cpp:1: [include]")

    def testSimulatorFromBackend(self):
        self.broken("includes", {"backends/npu_sim/a.cpp":
        '#include "simulator/timing/t.h"\n#include "simulator/func/f.h"\n'},
                    "backends/npu_sim/a.cpp:2: [include]")

    def testMemorySolverKnowsNoProgram(self):
        self.broken("includes", {"core/compiler/solvers/memory/a.h": '#include "core/compiler/program/program.h"\n'},
                    "core/compiler/solvers/memory/a.h:1: [include] room 'solvers/memory'")

    def testDriverNeverSeesConformance(self):
        self.broken("includes", {"core/compiler/driver/a.h": '#include "conformance/suite.h"\n'},
                    "core/compiler/driver/a.h:1: [include] room 'driver'")

    def testThirdParty(self):
        for party, header, place in [("LLVM", "llvm/IR/Module.h", "core/compiler/graph"),
                                     ("SystemC", "systemc", "simulator/func"),
                                     ("ONNX", "onnx/onnx_pb.h", "core/compiler/import"),
                                     ("protobuf", "google/protobuf/arena.h", "core/compiler/graph"),
                                     ("CLI11", "CLI/CLI.hpp", "core/support"), ("OpenCL", "CL/cl.h", "backends/cpu"),
                                     ("GoogleTest", "gtest/gtest.h", "core/compiler/graph")]:
            with self.subTest(party):
                path = f"{place}/third.cpp"
                self.broken("includes", {path: f"// text\n#include <{header}>\n"}, f"{path}:2: [third_party] {party}")
                os.remove(os.path.join(self.root, path))

    def testThirdPartyThroughAHeader(self):
        self.broken("includes", {"core/compiler/import/onnx_io/io.h": "#include <onnx/onnx.pb.h>\n"},
                    "core/compiler/import/import.cpp:2: [third_party] 'core/compiler/import/onnx_io/io.h' reaches ONNX")

    def testOracleSharesNoArithmetic(self):
        self.broken("includes", {"core/reference/add.cpp": "#include <candela/numerics.h>\n"},
                    "core/reference/add.cpp:1: [header] 'candela/numerics.h' is only for")

    def testOracleSharesNoArithmeticThroughAHeader(self):
        self.broken("includes", {"backend_api/include/candela/cdl.h": "#include <candela/numerics.h>\n",
                                 "core/reference/add.cpp": '#include "core/compiler/graph/graph.h"\n'},
                    "core/reference/add.cpp:1: [header] 'core/compiler/graph/graph.h' reaches backend_api/include/candela/numerics.h")

    def testUnknownDependency(self):
        self.broken("includes", {"core/compiler/graph/a.cpp": "#include <boost/any.hpp>\n"},
                    "core/compiler/graph/a.cpp:1: [unknown]")

    def testComputedInclude(self):
        self.broken("includes", {"core/compiler/graph/a.cpp": "#include TABLE\n"},
                    "core/compiler/graph/a.cpp:1: [unknown]")

    def testFileInNoRoom(self):
        self.broken("includes", {"core/stray.cpp": "\n"}, "core/stray.cpp:1: [room]")

    def testLink(self):
        self.broken("includes", {"core/support/CMakeLists.txt": "#\ncandela_add_room(support\n  SOURCES status.cpp\n"
                                 "  DEPS candela_graph)\n"},
                    "core/support/CMakeLists.txt:2: [link] room 'support' may not depend on 'candela_graph'")


class Docs(CheckTest):
    def test_clean(self):
        self.clean("docs")

    def testMissingReadme(self):
        os.remove(os.path.join(self.root, "core/runtime/host_executor/README.md"))
        self.broken("docs", {}, "core/runtime/host_executor/README.md:1: [readme]")

    def testDeadLink(self):
        self.broken("docs", {"docs/a.md": "# A\n\n[x](../core/nowhere.md)\n"},
                    "docs/a.md:3: [link] '../core/nowhere.md'")

    def testDeadAnchor(self):
        self.broken("docs", {"docs/a.md": "[x](../README.md#nothing)\n"}, "docs/a.md:1: [link] '../README.md#nothing'")

    def testCodeIsNoLink(self):
        self.write({"docs/a.md": "`[x](nowhere)`\n```\n[x](nowhere)\n```\n"})
        self.clean("docs")

    def testWords(self):
        for name, text in [("docs/a.md", "\nsee #" + "12\n"), ("core/compiler/graph/a.cpp", "\n// TO" + "DO\n"),
                           ("scripts/run", "\ncd /ro" + "ot/x\n")]:
            with self.subTest(name):
                self.broken("docs", {name: text}, f"{name}:2: [word]")
                os.remove(os.path.join(self.root, name))


class Size(CheckTest):
    def test_clean(self):
        self.clean("size")

    def testEveryLineCounts(self):
        self.write({"examples/hello_backend/README.md": "# prose\n" * 401})
        self.clean("size")
        self.broken("size", {"examples/hello_backend/CMakeLists.txt": "# comment\n\n" * 201},
                    "examples/hello_backend:1: [size]")


class Slots(CheckTest):
    """On a header of two slots of each table, and the ones that may have no caller."""
    HEADER = "typedef struct {\n  int a;\n} cdl_device_t;\n" \
             "typedef struct {\n  void (*log)(void* context,\n              void (*body)(void*));\n} cdl_host_t;\n" \
             "typedef struct {\n  int (*run)(int a);\n  const char* (*name)(int a); /* (*no_slot)( */\n" \
             "  int (*emit)(int a);\n} cdl_plugin_t;\n"
    CALLS = "// table.name(1)\nint f() {\n  host.log = g;\n  h(CDL_SLOT(device_->table(),\n             run), 1);\n}\n"

    RULES = '[[slots.without_caller]]\nslot = "emit"\nwhy = "nobody asks"\n'

    def setUp(self):
        super().setUp()
        self.write({"backend_api/include/candela/cdl.h": self.HEADER,
                    "core/runtime/a.cpp": self.CALLS,
                    "core/runtime/b.cpp": "int x = table().name(1);\n",
                    "rules.toml": self.RULES})

    def run_(self, check, *arguments):
        return super().run_(check, "--rules", os.path.join(self.root, "rules.toml"), *arguments)

    def test_clean(self):
        self.clean("slots")

    def testNobodyCalls(self):
        for text in ["", "// table().name(1)\n", "bool x = table().name && other.name(1);\n"]:
            with self.subTest(text):
                self.broken("slots", {"core/runtime/b.cpp": text}, "cdl.h:10: [slots] nothing in core/ calls the slot name")

    def testNobodyFills(self):
        self.broken("slots", {"core/runtime/a.cpp": self.CALLS.replace("host.log", "other.log")},
                    "cdl.h:5: [slots] nothing in core/ fills the slot log")

    def testOneThatHasACaller(self):
        self.broken("slots", {"core/runtime/c.cpp": "\nint x = ask(table_.emit, 1);\n"},
                    "core/runtime/c.cpp:2: [slots] emit has a caller")

    def testOneThatIsNone(self):
        self.broken("slots", {"backend_api/include/candela/cdl.h": self.HEADER.replace("  int (*emit)(int a);\n", "")},
                    "[slots] [[slots.without_caller]] names emit, which is no slot")


class Style(CheckTest):
    def test_clean(self):
        self.clean("style")

    def testJoinedAssignments(self):
        for code in ["  a.x = 1, a.y = 2;", "  if (ready) low = 0, high = 1;", "  sum += v[i], count += 1;",
                     "  run([&] { low = 0, high = 1; });"]:
            with self.subTest(code):
                self.broken("style", {"core/support/a.cpp": f"void f() {{\n{code}\n}}\n"}, "core/support/a.cpp:2: [style]")

    def testWhatMayHaveCommas(self):
        self.write({"core/support/a.cpp": "enum { A = 1, B = 2 };\nvoid f() {\n"
                                          "  int a = 1, b = 2;\n  for (i = 0, j = n; i < j; ++i, --j) {}\n"
                                          "  run = [a = b, c = d](int x) { return x; };\n  p = {.a = 1, .b = 2};\n"
                                          "  f(a, b); // a = 1, b = 2\n}\n", "tests/a.cpp": "a = 1, b = 2;\n"})
        self.clean("style")

    def testNestedConditionals(self):
        for code in ["x = a ? b : c ? d : e;", "x = a ? (b ? c : d) : e;", "return a\n ? b : c ? d : e;"]:
            with self.subTest(code):
                self.broken("style", {"core/support/a.cpp": f"int f() {{\n  {code}\n}}\n"}, "within another one")

    def testConditionalsThatStandAlone(self):
        self.write({"core/support/a.cpp": "int f() {\n  x = g(a ? b : c, d ? e : f);\n  y = a ? g(b ? c : d) : e;\n"
                                          "  return x ? y : z;\n}\n"})
        self.clean("style")

    def testKnownMayOnlyFall(self):
        path, line = "core/support/a.cpp", "  x = a ? b : c ? d : e;\n"
        self.write({path: "int f() {\n" + line * 2 + "}\n", "tests/hygiene/style_known.toml": f'"{path}" = 2\n'})
        self.clean("style")
        self.broken("style", {path: "int f() {\n" + line + "}\n"}, "style_known.toml says 2, there are 1: lower it")
        self.broken("style", {path: "int f() {\n" + line * 3 + "}\n"}, *["within another one"] * 3)

    def testLongFunctions(self):
        body = "  g();\n" * 59
        self.broken("style", {"core/support/a.cpp": "namespace a {\nint f(int x)\n{\n" + body + "}\n}\n"},
                    "core/support/a.cpp:3: [style] a function of 61 lines, at most 60")
        self.write({"core/support/a.cpp": "namespace a {\nstruct S {\n  int f() const {\n" + body[7:] + "  }\n" + "  int x;\n" * 60 + "};\n}\n"})
        self.clean("style")


class Drift(CheckTest):
    def test_clean(self):
        self.clean("drift")

    def testDrift(self):
        self.broken("drift", {"tools/candela-gen/candela_gen.py": "import sys\nprint('core/a.inc:7: differs')\nsys.exit(1)\n"},
                    "candela_gen.py:1: [drift]")

    def testMissing(self):
        os.remove(os.path.join(self.root, "tools/candela-gen/candela_gen.py"))
        self.broken("drift", {}, "candela_gen.py:1: [drift] the generator is missing")


class SlotComments(CheckTest):
    """candela-gen refuses a slot of cdl.h that does not say what it promises."""

    def read(self, old, new):
        repository = pathlib.Path(__file__).resolve().parents[2]
        sys.path.insert(0, str(repository / "tools/candela-gen"))
        abi = importlib.import_module("abi")
        texts = {path: (repository / path).read_text()
                 for path in (abi.HEADER, "backend_api/include/" + abi.PART, abi.ENUMS, *abi.FROZEN)}
        self.assertIn(old, texts[abi.HEADER])
        texts[abi.HEADER] = texts[abi.HEADER].replace(old, new, 1)
        self.write(texts)
        codes = ["ok", "invalid_argument", "incompatible", "unsupported", "refused", "out_of_memory", "device_lost",
                 "timeout", "cancelled", "not_found", "io", "internal", "bad_model"]
        try:
            return abi.Abi(pathlib.Path(self.root), codes)
        except abi.AbiError as error:
            return str(error)

    def testClean(self):
        self.assertEqual(len(self.read("cdl_plugin_t", "cdl_plugin_t").slots), 32)

    def testMissing(self):
        self.assertIn("device_open: the comment lacks 'Threads:'",
                      self.read("device\n   * Threads: any\n   * Errors: common; CDL_NOT_FOUND",
                                "device\n   * Errors: common; CDL_NOT_FOUND"))

    def testUnknownCode(self):
        self.assertIn("unknown code CDL_GONE", self.read("CDL_NOT_FOUND no device", "CDL_GONE no device"))

    def testUnknownPresence(self):
        self.assertIn("Presence is 'maybe'", self.read("Presence: required", "Presence: maybe"))

    def testErrorsOfASlotThatReturnsNone(self):
        self.assertIn("device_close: Errors is 'common'",
                      self.read("Errors: none\n   * Lifetime: after all objects", "Errors: common\n   * Lifetime: after all objects"))

    def testFrozenTypes(self):
        abi = self.read("uint32_t space, uint64_t bytes,\n", "uint32_t space, uint32_t bytes,\n")
        self.assertIn("FIELD(cdl_plugin_t, memory_create, cdl_code_t (*)(cdl_device_t*, uint32_t, uint32_t, ", abi.slotsInc())


class Labels(CheckTest):
    def labels(self, *labelled):
        tests = "".join(f"add_test(t{i} true)\nset_tests_properties(t{i} PROPERTIES LABELS \"{l}\")\n"
                        for i, l in enumerate(labelled))
        self.write({"build/CTestTestfile.cmake": tests + "add_test(bare true)\n" * ("" in labelled)})
        return self.run_("labels", os.path.join(self.root, "build"))

    def testClean(self):
        self.assertEqual(self.labels("quick", "full;sanitize", "nightly")[0], 0)

    def testBroken(self):
        for labels, message in [("sanitize", "[labels] 't1' has none of"),
                                     ("quick;full", "[labels] 't1' has more than one")]:
            with self.subTest(labels):
                status, out = self.labels("quick", labels)
                self.assertEqual(status, 1, out)
                self.assertIn(message, out)

    def testNone(self):
        status, out = self.labels("quick", "")
        self.assertEqual(status, 1, out)
        self.assertIn("'bare' has none of", out)


class Symbols(CheckTest):
    def build(self, name, code, *options):
        path = os.path.join(self.root, name)
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-x", "c", "-", *options, "-o", path], input=code.encode(), check=True)
        return path

    def testClean(self):
        status, out = self.run_("symbols", self.build("liba.so", "int cdl_backend_query(void) { return 0; }"),
                                self.build("libskew.so", "int cdl_backend_query, skew_strict_query, skew_major_query;"),
                                self.build("candela_cpu_compiler.so", "int candela_cpu_compiler;"))
        self.assertEqual(status, 0, out)

    def testBroken(self):
        for code, message in [("int cdl_backend_query, leak;", "exports 'leak'"),
                              ("static int x; int* get(void);", "does not export 'cdl_backend_query'")]:
            with self.subTest(message):
                status, out = self.run_("symbols", self.build("liba.so", code))
                self.assertEqual(status, 1)
                self.assertIn("liba.so:1: [symbols] " + message, out)

    def testHelperIsNoPlugin(self):
        status, out = self.run_("symbols", self.build("candela_cpu_compiler.so", "int cdl_backend_query;"))
        self.assertEqual(status, 1)
        self.assertIn("exports 'cdl_backend_query'", out)
        self.assertIn("does not export 'candela_cpu_compiler'", out)

    def testVersions(self):
        script = "CANDELA_0.2 {\n  global:\n    candela_run;\n  local:\n    *;\n};\n"
        header = "CANDELA_API int\ncandela_run(int);\n"
        self.write({"core/runtime/api/libcandela.map": script, "include/candela/candela.h": header})
        flag = "-Wl,--version-script=" + os.path.join(self.root, "core/runtime/api/libcandela.map")
        good = "int candela_run(int x) { return x; }"
        library = self.build("libcandela.so", good + " int leak;", flag)
        status, out = self.run_("symbols", library)
        self.assertEqual(status, 0, out)
        for broken, message in [
                ({"include/candela/candela.h": header + "CANDELA_API void candela_new(void);\n"},
                 "libcandela.map:1: [symbols] does not name 'candela_new', which a header declares"),
                ({"core/runtime/api/libcandela.map": script.replace("run;", "run;\n    candela_old;")},
                 "libcandela.map:4: [symbols] names 'candela_old', which no header declares"),
                ({"core/runtime/api/libcandela.map": script.replace("0.2", "0.3")},
                 f"libcandela.map:3: [symbols] 'candela_run' has the version 'CANDELA_0.2' in {library}, not CANDELA_0.3"),
                ({"core/runtime/api/libcandela.map": script.replace("candela_run", "candela_ran")},
                 f"libcandela.map:1: [symbols] does not name 'candela_run', which {library} exports")]:
            with self.subTest(message):
                self.write({"core/runtime/api/libcandela.map": script, "include/candela/candela.h": header, **broken})
                status, out = self.run_("symbols", library)
                self.assertEqual(status, 1)
                self.assertIn(message, out)
        self.write({"core/runtime/api/libcandela.map": script, "include/candela/candela.h": header})
        status, out = self.run_("symbols", self.build("libcandela.so", good + " int leak;"))
        self.assertIn("has the version ''", out)
        self.assertIn("does not name 'leak'", out)

    def testNotALibrary(self):
        path = os.path.join(self.root, "README.md")
        status, out = self.run_("symbols", path)
        self.assertEqual(status, 1)
        self.assertIn("cannot be read", out)


@unittest.skipUnless(shutil.which("clang-format-19") and shutil.which("git"), "no clang-format-19 or git")
class FormatTest(CheckTest):
    def setUp(self):  # the sources of CLEAN are not formatted
        self.root = tempfile.mkdtemp(prefix="candela_hygiene_")
        self.addCleanup(shutil.rmtree, self.root)
        repository = pathlib.Path(__file__).resolve().parents[2]
        for path in ("scripts/format", "scripts/lib/common.sh", ".clang-format"):
            os.makedirs(os.path.dirname(os.path.join(self.root, path)), exist_ok=True)
            shutil.copy(repository / path, os.path.join(self.root, path))

    def check(self, path, text):
        self.write({path: text})
        for command in (["git", "init", "--quiet"], ["git", "add", "-f", "--all"]):
            subprocess.run(command, cwd=self.root, check=True)
        return self.run_format()

    def run_format(self):
        run = subprocess.run([os.path.join(self.root, "scripts/format"), "--check"], text=True, capture_output=True,
                             env={**os.environ, "CANDELA_TIME_PERCENT": "100"})
        return run.returncode, run.stderr

    def testClean(self):
        self.assertEqual(self.check("core/support/a.h", "int one();\n"), (0, ""))

    def testBroken(self):
        status, said = self.check("core/support/a.h", "int   one( );\n")
        self.assertNotEqual(status, 0)
        self.assertIn("core/support/a.h:1:4: error: code should be clang-formatted", said)

    def testGeneratedIsLeft(self):
        self.assertEqual(self.check("core/support/generated/a.h", "int   one( );\n"), (0, ""))

    def testNoCheckout(self):
        self.assertEqual(self.run_format()[0], 77)


@unittest.skipUnless(shutil.which("cc"), "no C compiler")
class SearchPathTest(CheckTest):
    def link(self, *flags):
        path = os.path.join(self.root, "liba.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-o", path, *flags, "-"], check=True, input=b"int a;")
        return path

    def testClean(self):
        for flags in ([], ["-Wl,-rpath,/usr/lib"], ["-Wl,-rpath,$ORIGIN/../lib:/usr/lib"]):
            with self.subTest(flags):
                self.link(*flags)
                status, out = self.run_("search_paths", self.root)
                self.assertEqual(status, 0, out)

    def testBroken(self):
        for flags, message in [(["-Wl,-rpath,::"], "searches '' of '::'"),
                               (["-Wl,-rpath,/usr/lib:"], "searches '' of '/usr/lib:'"),
                               (["-Wl,-rpath,."], "searches '.'"),
                               (["-Wl,--disable-new-dtags,-rpath,lib"], "searches 'lib'"),
                               (["-Wl,-rpath,$ORIGINAL"], "searches '$ORIGINAL'"),
                               (["-Wl,-soname,a/liba.so"], None)]:
            with self.subTest(flags):
                path = self.link(*flags)
                if message is None:  # what is linked with it needs it by that name
                    user = os.path.join(self.root, "libuser.so")
                    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-o", user, "-", "-x", "none", path,
                                    "-Wl,--no-as-needed"], check=True, input=b"extern int a; int* b(void) { return &a; }")
                    path, message = user, "needs 'a/liba.so'"
                status, out = self.run_("search_paths", path)
                self.assertEqual(status, 1)
                self.assertIn(f"{path}:1: [search-path] {message}", out)

    def testNothingToRead(self):
        status, out = self.run_("search_paths", os.path.join(self.root, "README.md"))
        self.assertEqual(status, 1)
        self.assertIn("there is no ELF file", out)


if __name__ == "__main__":
    unittest.main()
