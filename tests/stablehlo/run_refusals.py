#!/usr/bin/env python3
"""run_refusals.py --candela TOOL: texts that are refused, and what the message has to say. Standard library only.

Exit status: 0, or 1 where one is taken or the message is another.
"""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

REFUSALS = []


def refused(name, text, *wanted):
    """The message has every one of `wanted`."""
    REFUSALS.append((name, text, wanted))


def main_of(body, arguments="%arg0: tensor<3x4xf32>", results="tensor<3x4xf32>", rest=""):
    """Line 1 is the module, line 2 @main, line 3 the first line of the body."""
    return f"module @m {{\n  func.func public @main({arguments}) -> {results} {{\n{body}\n  }}\n{rest}}}\n"


def returned(operation, type="tensor<3x4xf32>", **options):
    return main_of(f"    %0 = {operation}\n    return %0 : {type}", results=type, **options)


# ---- The text
refused("empty", "module {}\n", "it has no function @main")
refused("bytecode", b"ML\xefR\x01\x02", "bytecode of MLIR (a portable artifact, VHLO) is not supported: write the text")
refused("no_end", "module {\n", "line 2: expected the end of the module, found the end")
refused("not_a_function", "module {\n  foo.bar @mesh\n}", "line 2: expected a module or a function, found 'foo.bar")
refused("twice", "func.func @f() {\n return }\nfunc.func @f() {\n return }\n", "function 'f' is there twice")
refused("two_public", "func.func @f() {\n return }\nfunc.func @g() {\n return }\n", "it has no function @main, but @f and @g")
refused("unknown_value", returned("stablehlo.abs %7 : tensor<3x4xf32>"), "line 3: stablehlo.abs: value %7 is not known here")
refused("second_value", main_of("    %0 = stablehlo.abs %arg0 : tensor<3x4xf32>\n    %0 = stablehlo.abs %arg0 : tensor<3x4xf32>\n    return %0 : tensor<3x4xf32>"),
        "line 4: stablehlo.abs: value %0 is there twice")
refused("constant_in_comparator",
        main_of('    %0 = "stablehlo.sort"(%arg0) <{dimension = 1 : i64}> ({\n    ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n'
                '      %k = "stablehlo.constant"() {value = 5 : i32} : () -> tensor<f32>\n'
                '      %r = stablehlo.compare LT, %a, %k : (tensor<f32>, tensor<f32>) -> tensor<i1>\n'
                '      "stablehlo.return"(%r) : (tensor<i1>) -> ()\n    }) : (tensor<3x4xf32>) -> tensor<3x4xf32>\n'
                "    return %0 : tensor<3x4xf32>"), "line 3: stablehlo.sort: its comparator of 3 operations sorts neither up nor down")
refused("no_return", main_of("    %0 = stablehlo.abs %arg0 : tensor<3x4xf32>"), "line 2: a function or region without its return")
refused("result_type", main_of("    return %arg0 : tensor<3x4xf32>", results="tensor<3xf32>"), "line 2: result 0 of @main is f32[3], but gets f32[3,4]")
refused("blocks", main_of("    return %arg0 : tensor<3x4xf32>\n  ^bb1:"), "line 4: a region of several blocks is not supported")
refused("dynamic", returned("stablehlo.abs %arg0 : tensor<?xf32>", "tensor<?xf32>", arguments="%arg0: tensor<?xf32>"),
        "line 2: input 'arg0' is tensor<?xf32>, whose dims are not all known", "line 3: stablehlo.abs: operand %arg0 is tensor<?xf32>")
refused("complex", returned("stablehlo.abs %arg0 : (tensor<2xcomplex<f32>>) -> tensor<2xf32>", "tensor<2xf32>", arguments="%arg0: tensor<2xcomplex<f32>>"),
        "operand %arg0 is tensor<2xcomplex<f32>>")
refused("rank", returned("stablehlo.abs %arg0 : tensor<1x1x1x1x1x1x1x1x1xf32>", "tensor<1x1x1x1x1x1x1x1x1xf32>"), "of more than 8 dims")
refused("huge", returned("stablehlo.abs %arg0 : tensor<999999999x999999999xf32>", "tensor<999999999x999999999xf32>"), "which is impossibly large")

# ---- Constants
for name, literal, said in (
        ("few", "dense<[1.0, 2.0]> : tensor<3xf32>", "line 3: elements: a list of 2, but dim 0 of f32[3] is 3"),
        ("many", "dense<[1.0, 2.0, 3.0, 4.0]> : tensor<3xf32>", "more than 3 in a list of dim 0 of f32[3]"),
        ("deep", "dense<[[1.0], [2.0], [3.0]]> : tensor<3xf32>", "line 1: expected an element, found '[1.0]"),
        ("word", "dense<[1.0, x, 3.0]> : tensor<3xf32>", "expected an element, found 'x, 3.0]'"),
        ("range", "dense<300> : tensor<3xi8>", "elements: 300 is no i8"),
        ("fraction", "dense<1.5> : tensor<3xi32>", "'1.5' is no number of its type"),
        ("bits", "dense<0x1FF800000> : tensor<3xf32>", "'0x1FF800000' has more bits than f32"),
        ("bytes", 'dense<"0x0011"> : tensor<3xf32>', "2 bytes, but f32[3] needs 12"),
        ("digits", 'dense<"0x00zz"> : tensor<3xf32>', "'zz' is no byte in hex digits"),
        ("complex", "dense<(1.0, 2.0)> : tensor<3xf32>", "its elements are complex numbers"),
        ("resource", "dense_resource<blob> : tensor<3xf32>", "resource 'blob' is not in the file")):
    refused(f"constant_{name}", returned(f"stablehlo.constant {literal}", literal.split(" : ")[1]), said)

# ---- Operations
refused("unsupported", returned("stablehlo.cholesky %arg0, lower = true : tensor<3x4xf32>"), "line 3: stablehlo.cholesky: operation is not supported")
refused("rng", main_of("    %0, %1 = stablehlo.rng_bit_generator %arg0, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)\n"
                       "    return %1 : tensor<4xui32>", "%arg0: tensor<2xui64>", "tensor<4xui32>"),
        "line 3: stablehlo.rng_bit_generator: operation is not supported")
refused("several", main_of("    %0 = stablehlo.foo %arg0 : tensor<3x4xf32>\n    %1 = stablehlo.bar %0 : tensor<3x4xf32>\n    return %1 : tensor<3x4xf32>"),
        "line 3: stablehlo.foo: operation is not supported", "line 4: stablehlo.bar: operation is not supported")
refused("operands", returned("stablehlo.add %arg0 : tensor<3x4xf32>"), "stablehlo.add: has 1 operands, expected 2")
refused("shapes", main_of("    %0 = stablehlo.add %arg0, %arg1 : tensor<3x4xf32>\n    return %0 : tensor<3x4xf32>", "%arg0: tensor<3x4xf32>, %arg1: tensor<4xf32>"),
        "stablehlo.add: operand 1 is f32[4], but its result is f32[3,4]")
refused("types", main_of("    %0 = stablehlo.add %arg0, %arg1 : tensor<4xf32>\n    return %0 : tensor<4xf32>", "%arg0: tensor<4xf32>, %arg1: tensor<4xi32>", "tensor<4xf32>"),
        "operand 1 is i32[4], but its result is f32[4]")
refused("comparison", returned("stablehlo.compare XX, %arg0, %arg0 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xi1>", "tensor<3x4xi1>"), "comparison 'XX' is none")
refused("reshape", returned("stablehlo.reshape %arg0 : (tensor<3x4xf32>) -> tensor<13xf32>", "tensor<13xf32>"), "f32[3,4] becomes f32[13], which has another number of elements")
refused("transpose", returned("stablehlo.transpose %arg0, dims = [0, 0] : (tensor<3x4xf32>) -> tensor<3x3xf32>", "tensor<3x3xf32>"), "dim 0 is there twice")
refused("broadcast", returned("stablehlo.broadcast_in_dim %arg0, dims = [0, 5] : (tensor<3x4xf32>) -> tensor<3x4xf32>"), "dim 5 is out of range for rank 2")
refused("iota", returned("stablehlo.iota dim = 2 : tensor<3x4xi32>", "tensor<3x4xi32>"), "dim 2 is out of range for rank 2")
refused("iota_size", returned("stablehlo.iota dim = 0 : tensor<9999999999xi64>", "tensor<9999999999xi64>"), "bytes of constants, more than")
refused("bitcast", returned("stablehlo.bitcast_convert %arg0 : (tensor<3x4xf32>) -> tensor<3x4xi16>", "tensor<3x4xi16>"), "from f32[3,4] to i16[3,4], which has another size")
refused("format", returned("stablehlo.reduce_precision %arg0, format = e3m4 : tensor<3x4xf32>"), "format e3m4 of f32 is not supported")
refused("slice", returned("stablehlo.slice %arg0 [0:3, 2:9] : (tensor<3x4xf32>) -> tensor<3x7xf32>", "tensor<3x7xf32>"), "range 2:9:1 of dim 1, which is 4")
refused("slice_result", returned("stablehlo.slice %arg0 [0:3, 2:4] : (tensor<3x4xf32>) -> tensor<3x3xf32>", "tensor<3x3xf32>"), "its result is f32[3,3], but has to be f32[3,2]")
refused("concatenate", returned("stablehlo.concatenate %arg0, %arg0, dim = 1 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x9xf32>", "tensor<3x9xf32>"),
        "its result is f32[3,9], but has to be f32[3,8]")
PAD = "%arg0: tensor<3x4xf32>, %arg1: tensor<f32>"
refused("pad", returned("stablehlo.pad %arg0, %arg1, low = [0, -9], high = [0, 9], interior = [0, 0] : (tensor<3x4xf32>, tensor<f32>) -> tensor<3x4xf32>", arguments=PAD),
        "pads -9 and 9 of dim 1, which is 4")
refused("interior", returned("stablehlo.pad %arg0, %arg1, low = [0, 0], high = [0, 0], interior = [0, -1] : (tensor<3x4xf32>, tensor<f32>) -> tensor<3x1xf32>", "tensor<3x1xf32>", arguments=PAD),
        "interior is -1")
DOT = "%arg0: tensor<3x4xf32>, %arg1: tensor<5x6xf32>"
refused("dot", returned("stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<3x4xf32>, tensor<5x6xf32>) -> tensor<3x6xf32>", "tensor<3x6xf32>", arguments=DOT),
        "stablehlo.dot_general: dim 1 of 4 meets dim 0 of 5")
refused("dot_dims", returned("stablehlo.dot_general %arg0, %arg1, contracting_dims = [7] x [0] : (tensor<3x4xf32>, tensor<5x6xf32>) -> tensor<3x6xf32>", "tensor<3x6xf32>", arguments=DOT),
        "dim 7 is out of range for rank 2")


refused("dot_words", returned("stablehlo.dot_general %arg0, %arg1, contracting_dims = [a] x [0] : (tensor<3x4xf32>, tensor<5x6xf32>) -> tensor<3x6xf32>", "tensor<3x6xf32>", arguments=DOT),
        "contracting_dims is no integer")
refused("dims", returned("stablehlo.transpose %arg0, dims = 1 : (tensor<3x4xf32>) -> tensor<4x3xf32>", "tensor<4x3xf32>"), "dims is no list of integers")


def convolution(numbers="[b, f, 0]x[o, i, 0]->[b, f, 0]", window="{stride = [1], pad = [[0, 0]]}", groups=1, result="tensor<1x4x7xf32>", kernel="4x3x3"):
    return returned(f"stablehlo.convolution(%arg0, %arg1) dim_numbers = {numbers}, window = {window} "
                    f"{{batch_group_count = 1 : i64, feature_group_count = {groups} : i64}} : (tensor<1x3x9xf32>, tensor<{kernel}xf32>) -> {result}",
                    result, arguments=f"%arg0: tensor<1x3x9xf32>, %arg1: tensor<{kernel}xf32>")


refused("conv_numbers", convolution("[b, f, f]x[o, i, 0]->[b, f, 0]"), "dimension numbers do not name each dim once")
refused("conv_stride", convolution(window="{stride = [0], pad = [[0, 0]]}"), "window_strides is 0")
refused("conv_groups", convolution(groups=2), "its input has 3 features, its kernel 3 for each of 2 groups")
refused("conv_result", convolution(result="tensor<1x4x8xf32>"), "its result is f32[1,4,8], but has to be f32[1,4,7]")
refused("conv_kernel", convolution(kernel="4x3"), "its kernel is f32[4,3], its input f32[1,3,9]")


def reduction(body, operands="%arg0", result="tensor<3xf32>"):
    return main_of(f"    %c = stablehlo.constant dense<0.0> : tensor<f32>\n    %0 = stablehlo.reduce({operands} init: %c) {body}\n    return %0 : {result}", results=result)


TYPES = "(tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>"
refused("reduce_op", reduction(f"applies stablehlo.divide across dimensions = [1] : {TYPES}"), "line 4: stablehlo.reduce: stablehlo.divide is applied, which is not supported")
refused("reduce_dim", reduction(f"applies stablehlo.add across dimensions = [4] : {TYPES}"), "dim 4 is out of range for rank 2")
refused("reduce_result", reduction(f"applies stablehlo.add across dimensions = [0] : {TYPES}"), "its result is f32[3], but has to be f32[4]")
refused("reduce_region", reduction(f"across dimensions = [1] : {TYPES}\n     reducer(%a: tensor<f32>, %b: tensor<f32>)  {{\n"
                                   "      %1 = stablehlo.subtract %a, %b : tensor<f32>\n      stablehlo.return %1 : tensor<f32>\n    }"),
        "its region of 2 operations is none of add, multiply, maximum")


def sort(comparison):
    return returned('"stablehlo.sort"(%arg0) <{dimension = 1 : i64}> ({\n    ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n'
                    f"      %1 = stablehlo.compare {comparison} : (tensor<f32>, tensor<f32>) -> tensor<i1>\n      stablehlo.return %1 : tensor<i1>\n"
                    "    }) : (tensor<3x4xf32>) -> tensor<3x4xf32>")


refused("sort", sort("EQ, %a, %b"), "line 3: stablehlo.sort: its comparator of 2 operations sorts neither up nor down")
refused("gather", returned('"stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], '
                           "start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 2, 4>}> : (tensor<3x4xf32>, tensor<5x1xi32>) -> tensor<5x4xf32>",
                           "tensor<5x4xf32>", arguments="%arg0: tensor<3x4xf32>, %arg1: tensor<5x1xi32>"), "dim 0 of slice size 2 has no window")
refused("gather_map", returned('"stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], '
                               "start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<3x4xf32>, tensor<5x1xi32>) -> tensor<5x4xf32>",
                               "tensor<5x4xf32>", arguments="%arg0: tensor<3x4xf32>, %arg1: tensor<5x1xi32>"), "1 integers to an index, but 2 dims")

# ---- Functions and regions
CALL = "    %0 = call @g(%arg0) : (tensor<3x4xf32>) -> tensor<3x4xf32>\n    return %0 : tensor<3x4xf32>"
refused("no_function", main_of(CALL), "line 3: func.call: function @g is not in the file")
refused("arguments", main_of(CALL, rest="  func.func private @g(%a: tensor<3xf32>) -> tensor<3xf32> {\n    return %a : tensor<3xf32>\n  }\n"),
        "argument %a is f32[3], but gets f32[3,4]")
refused("recursion", main_of(CALL, rest="  func.func private @g(%arg0: tensor<3x4xf32>) -> tensor<3x4xf32> {\n" + CALL + "\n  }\n"),
        "functions and regions are nested deeper than 64")
refused("while", main_of("    %0 = stablehlo.while(%i = %arg0) : tensor<3x4xf32>\n    cond {\n      stablehlo.return %i : tensor<3x4xf32>\n    } do {\n"
                         "      stablehlo.return %i : tensor<3x4xf32>\n    }\n    return %0 : tensor<3x4xf32>"),
        "line 3: stablehlo.while: its condition gives 1 values, expected a bool")
refused("case", returned('"stablehlo.case"(%arg0) ({\n      stablehlo.return %arg0 : tensor<3x4xf32>\n    }) : (tensor<3x4xf32>) -> tensor<3x4xf32>'), "its index is f32[3,4]")
refused("custom_call", returned("stablehlo.custom_call @lapack_spotrf_ffi(%arg0) {mhlo.backend_config = {uplo = 76 : ui8}} : (tensor<3x4xf32>) -> tensor<3x4xf32>"),
        "node 'custom_call 3' (lapack_spotrf_ffi): operator stablehlo.lapack_spotrf_ffi of opset 1 is not supported")
refused("custom_domain", returned("stablehlo.custom_call @acme.Wobble(%arg0) : (tensor<3x4xf32>) -> tensor<3x4xf32>"), "operator acme.Wobble of opset 1 is not supported")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candela", required=True)
    arguments = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, text, wanted in REFUSALS:
            path = Path(folder) / f"{name}.mlir"
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
            done = subprocess.run([arguments.candela, "opt", str(path)], capture_output=True, text=True)
            missing = [part for part in (f"{name}.mlir: ", *wanted) if part not in done.stderr]
            if done.returncode == 0 or missing:
                failures += 1
                print(f"{name}: exit {done.returncode}, without {missing}: {done.stderr.strip()}")
    print(f"{len(REFUSALS) - failures} of {len(REFUSALS)} texts are refused as they should be")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
