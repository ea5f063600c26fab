#!/usr/bin/env python3
"""write_programs.py: writes programs/NAME.mlir and programs/expected.json, what JAX prints of functions.py and answers.

Needs the packages of requirements.txt; what it writes needs none of them.
"""
import json
import re
from pathlib import Path

import functions

FOLDER = Path(__file__).resolve().parent / "programs"
TYPES = {"float32": "f32", "float16": "f16", "int8": "i8", "uint8": "u8", "int16": "i16", "int32": "i32", "uint32": "u32", "int64": "i64",
         "bool": "bool"}
# One or two of each family, whose texts are short.
STORED = """arithmetic halves remainders exponentials tiny_exponentials hyperbolic error_functions softmaxes clipping precision comparisons
logic bits bits_u8 bitcast conversions broadcasting reshaping slicing concatenating padding triangles constants matvec
attention_scores einsums int8_product bf16_product conv_nhwc conv_grouped conv_transposed_groups conv_both_dilated conv_batch_groups
conv_odd_layout conv_weight_gradient bit_reductions extremes starting_value max_pool sum_pool pool_all_dims pool_base_dilated
cumulative overlapping_gradient take index_pairs mapped_slice dynamic_slices updates one_hot at_set at_add mapped_scatter
sorting_keys top_k searchsorted scan dynamic_loop while_loop cond switch layer_norm attention random""".split()

# These in MLIR's generic form too.
GENERIC = "extremes conv_nhwc at_add scan switch".split()


def stored(values):
    return {name: {"type": TYPES[str(value.dtype)], "shape": list(value.shape), "values": value.ravel().tolist()}
            for name, value in values.items()}


def main():
    FOLDER.mkdir(exist_ok=True)
    expected = {}
    for name in STORED:
        function, arguments = functions.FUNCTIONS[name]
        text = functions.text(function, arguments)
        (FOLDER / f"{name}.mlir").write_text(text.strip() + "\n")
        expected[name] = {"inputs": stored(functions.feeds(arguments)),
                          "outputs": stored(functions.answers(function, arguments, text))}
        if name in GENERIC:
            generic = functions.generic_text(function, arguments)
            (FOLDER / f"{name}_generic.mlir").write_text(generic.strip() + "\n")
            # @main comes first; it numbers its arguments behind those of other regions.
            names = re.findall(r"%(\w+):", re.search(r"\^bb0\((.*)\):", generic).group(1))
            expected[f"{name}_generic"] = expected[name] | {"inputs": dict(zip(names, expected[name]["inputs"].values()))}
    rows = [f'{json.dumps(name)}: {json.dumps(entry)}' for name, entry in expected.items()]
    (FOLDER / "expected.json").write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
