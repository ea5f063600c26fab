# Tests that are text: each .cdl or .npu file names in RUN lines what to do with it and in CHECK lines what must come out.
# Run them by `ctest -R ir`, or one by one: python3 .../lit.py -v build/tests/ir --filter NAME
import os
import sys

import lit.formats

config.name = "candela"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".cdl", ".npu"]
config.excludes = ["Inputs"]
config.test_source_root = config.candela_source_root
config.test_exec_root = config.candela_binary_root

# %candela, %filecheck and %not are this build's; the bare words `candela`, `FileCheck` and `not` find the same ones.
# %python writes the files that no command of the tool does, by its standard library alone.
# %plugins is the folder of the plugins that are for tests.
config.substitutions += [
    ("%candela", config.candela_tool),
    ("%filecheck", config.candela_filecheck),
    ("%not", config.candela_not),
    ("%python", sys.executable),
    ("%plugins", config.candela_test_plugins),
    ("%inputs", os.path.join(config.candela_source_root, "ir", "Inputs")),
]
tools = {os.path.dirname(p) for p in (config.candela_tool, config.candela_filecheck, config.candela_not)}
config.environment["PATH"] = os.pathsep.join(sorted(tools) + [os.environ.get("PATH", "")])
config.environment["NO_COLOR"] = "1"
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "HOME"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
