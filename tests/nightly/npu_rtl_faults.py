#!/usr/bin/env python3
"""Seeds faults into the hardware description of the NPU, one at a time, and has the tests of tests/rtl find them.

Each fault is one place of one file below rtl/: a lost token or handshake, a count that is one off, a wrong rounding, a stride of another
dimension. The NPU of tests/rtl/configs/bench4.toml is built with it, and runs what tells it from the models: programs that stop, resets,
random programs, digits. A fault that none of them finds is a fault of the tests. The report says who found each.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402

SCHEMA = "candela.npu_rtl_faults.v1"
CONFIGURATION = ROOT / "tests/rtl/configs/bench4.toml"
LIMIT = 900  # seconds of one test: a fault may hang the hardware, and the build is part of the first one

# (what it is, file below rtl/, text, text instead); the text stands there once or is the first of its kind.
FAULTS = [
    ("a wait takes no tokens", "command/cdl_npu_queue.sv", "may && (!wants || take_ready_i)", "may"),
    ("a signal is lost", "command/cdl_npu_queue.sv", "ends && header_q.signal_count_f != '0", "1'b0"),
    ("a queue has a place less", "command/cdl_npu_queue.sv", "32'(left) != Depth;", "32'(left) != Depth - 1;"),
    ("a queue wraps too early", "command/cdl_npu_queue.sv", "32'(index) == Depth - 1", "32'(index) == Depth - 2"),
    ("a nop takes no time of its own", "command/cdl_npu_queue.sv", "(is_nop_q || done_i)", "done_i"),
    ("all tokens are never enough", "command/cdl_npu_semaphores.sv", "<= left) begin", "< left) begin"),
    ("a semaphore is full one too early", "command/cdl_npu_semaphores.sv", "sum > SumWidth'(Most)", "sum >= SumWidth'(Most)"),
    ("the fetch is a line less ahead", "command/cdl_npu_fetch.sv", "Ahead      = 4", "Ahead      = 3"),
    ("the word behind comes", "command/cdl_npu_fetch.sv", "(fetch_index_i << 4) % RowBytes", "((fetch_index_i + 32'd1) << 4) % RowBytes"),
    ("a loop goes on once more", "command/cdl_npu_control.sv", "<= 32'(loop_insn.count_f);", "<= 32'(loop_insn.count_f) + 32'd1;"),
    ("addi subtracts", "command/cdl_npu_control.sv", "indexOf(x_q, movi.x_f) + movi.value_f", "indexOf(x_q, movi.x_f) - movi.value_f"),
    ("a fence waits for nobody", "command/cdl_npu_control.sv", "(~idle_i[Engines-1:1] & fence.mask_f[Engines-1:1]) == '0", "1'b1"),
    ("the second descriptor is the first", "command/cdl_npu_control.sv", "second_index = vector.d_f + 4'd1", "second_index = vector.d_f"),
    ("halt waits for nobody", "command/cdl_npu_control.sv", "(!is_halt || all_idle)", "1'b1"),
    ("a stride of another dimension", "dma/cdl_npu_box_walker.sv", "addr_d = plane_addr_q + stride3_i", "addr_d = plane_addr_q + stride2_i"),
    ("no padding behind the last row", "dma/cdl_npu_box_walker.sv", " + 18'(pad_bottom_i) - 18'd1", " - 18'd1"),
    ("runs are not joined", "dma/cdl_npu_box_walker.sv", "(start_i || may_join_q) && stride == run", "1'b0 && stride == run"),
    ("a load has a burst less under way", "dma/cdl_npu_dma_load.sv", "in_flight_q != FlyWidth'(Outstanding)", "in_flight_q != FlyWidth'(Outstanding - 1)"),
    ("a load does not flip", "dma/cdl_npu_dma_load.sv", "is_copy ? copy.flip_f[0] : load.flip_f[0]", "is_copy && copy.flip_f[0]"),
    ("a store flips never", "dma/cdl_npu_dma_store.sv", "{store.flip_f, 7'd0}", "{1'b0, 7'd0}"),
    ("a store ends a burst early", "dma/cdl_npu_dma_store.sv", "in_flight_q == FlyWidth'(1)", "in_flight_q <= FlyWidth'(2)"),
    ("channels do not take turns", "dma/cdl_npu_burst_arbiter.sv", "first_q <= 32'(chosen) == Ports - 1 ? '0 : chosen + TagWidth'(1)", "first_q <= '0"),
    ("data goes to all channels", "dma/cdl_npu_burst_arbiter.sv", "data_valid_i && 32'(data_tag_i) == i", "data_valid_i"),
    ("a transaction has a beat more", "dma/cdl_npu_axi_master.sv", "8'(span >> BeatLog2)", "8'(span >> BeatLog2) + 8'd1"),
    ("a refused read is taken", "dma/cdl_npu_axi_master.sv", "m_axi_rresp_i != 2'b00", "1'b0"),
    ("a refused write is taken", "dma/cdl_npu_axi_master.sv", "m_axi_bresp_i != 2'b00", "1'b0"),
    ("a region has a byte less", "dma/cdl_npu_transfer_check.sv", "to_q > $signed({19'd0, bytes_q})", "to_q >= $signed({19'd0, bytes_q})"),
    ("constants may be written", "dma/cdl_npu_transfer_check.sv", "is_none_q || is_outside || is_read_only_q", "is_none_q || is_outside"),
    ("two ports use one bank", "scratchpad/cdl_npu_scratchpad.sv", "valid_i[p] && (needs[p*Banks +: Banks] & taken) == '0", "valid_i[p]"),
    ("ports do not take turns", "scratchpad/cdl_npu_scratchpad.sv", "first_d = PortLog2'(p);", "first_d = first_q;"),
    ("a word across rows is of one", "scratchpad/cdl_npu_scratchpad.sv", " + RowWidth'(rows_behind[port*Banks + b])", ""),
    ("requant does not wait for the array", "matrix/cdl_npu_accumulators.sv", "!(reads && bankOf(matrix_row_i) == bankOf(read_row_i))", "1'b1"),
    ("sums are always added", "matrix/cdl_npu_accumulators.sv", "(add_q ? old[c*SumWidth +: SumWidth] : '0)", "old[c*SumWidth +: SumWidth]"),
    ("a row below the tile is read", "matrix/cdl_npu_im2col.sv", "y < $signed({1'b0, in_h_i})", "y <= $signed({1'b0, in_h_i})"),
    ("a block of channels too many", "matrix/cdl_npu_im2col.sv", "n_q + 17'(Columns) >= cout_i", "n_q + 17'(Columns) > cout_i"),
    ("the last block of k twice", "matrix/cdl_npu_weight_walker.sv", "packed_taps || rows_left <= 27'(Rows)", "packed_taps || rows_left < 27'(Rows)"),
    ("planes are as far apart as rows", "matrix/cdl_npu_im2col.sv", "step_plane_q <= 25'(plane_rows_i) * 25'(row_stride_i)", "step_plane_q <= 25'(row_stride_i)"),
    ("terms right of the tile are read", "matrix/cdl_npu_im2col.sv", "right < $signed(35'(segment_terms))", "1'b0"),
    ("the first pass adds", "matrix/cdl_npu_matrix.sv", "acc_add_o      = !sums_first ||", "acc_add_o      = sums_first ||"),
    ("records take a word more", "requant/cdl_npu_requant_walker.sv", "25'(Width) >= record_bytes", "25'(Width) > record_bytes"),
    ("halves are not rounded to even", "requant/cdl_npu_rescale.sv", "rest[63] && (down[0] || rest[62:0] != '0)", "rest[63]"),
    ("the upper bound is not held", "requant/cdl_npu_rescale.sv", "shifted > 65'(high_i)", "1'b0"),
    ("the zero point of b is a's", "vector/cdl_npu_vector_lane.sv", "33'(b_i) - 33'(b_zp_i)", "33'(b_i) - 33'(a_zp_i)"),
    ("a smallest value begins with the smallest", "vector/cdl_npu_reduce.sv", "32'h7fff_ffff", "32'h8000_0000"),
    ("a window reads beyond the tile", "vector/cdl_npu_pool_walker.sv", "x_q + 13'd1 == in_w_i ||", ""),
    ("tokens of control are lost", "top/cdl_npu.sv", "control_signalled_q <= control_signals;", "control_signalled_q <= 1'b0;"),
]


def seeded(folder, fault):
    """The sources with a fault, below a folder."""
    _, name, before, after = fault
    shutil.copytree(ROOT / "rtl", folder / "rtl")
    shutil.copytree(ROOT / "simulator/rtl_model", folder / "simulator/rtl_model")
    path = folder / "rtl" / name
    text = path.read_text()
    if before not in text:
        sys.exit(f"npu_rtl_faults: {name} has no '{before}'")
    path.write_text(text.replace(before, after, 1))


def finder(tests, environment):
    """The first test that fails, with its last line, or None."""
    for name, command in tests:
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False)
        except subprocess.TimeoutExpired:
            return name, "no end"
        if done.returncode != 0:
            lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
            said = next((line for line in lines if "FAILED" in line or "Assertion" in line), lines[0] if lines else "")
            return name, said[:160] or f"status {done.returncode}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--candela", type=pathlib.Path, required=True)
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/npu_rtl_faults.json",
                        help="takes who found what, as JSON")
    parser.add_argument("--only", help="faults whose name has this; of others the report keeps what it has")
    arguments = parser.parse_args()
    binaries = arguments.build / "tests/bin"
    results = {}
    with tempfile.TemporaryDirectory(prefix="npu_rtl_faults.") as scratch:
        scratch = pathlib.Path(scratch)
        programs = scratch / "programs"
        subprocess.run([arguments.candela, "run", ROOT / "examples/digits/digits_int8.onnx", "--dim", "N=1", "--random", "1", "--backend", "npu_sim",
                        "--option", f"npu={CONFIGURATION}", "--option", f"binary={programs}"], check=True, capture_output=True)
        tests = [("rtl_npu_faults", [binaries / "rtl_npu_faults_test", "--gtest_brief=1"]),
                 ("rtl_npu_random", [binaries / "rtl_npu_random", CONFIGURATION, "1", "4", "20"]),
                 ("rtl_npu_digits", [binaries / "rtl_npu_network", CONFIGURATION, programs / "digits.npubin"]),
                 ("rtl_npu_random, more", [binaries / "rtl_npu_random", CONFIGURATION, "100", "100", "20"])]
        chosen = [fault for fault in FAULTS if not arguments.only or arguments.only in fault[0]]
        for number, fault in enumerate(chosen):
            folder = scratch / str(number)
            seeded(folder, fault)
            cache = folder / "cache"
            cache.mkdir(mode=0o700)
            by = finder(tests, os.environ | {"CANDELA_NPU_RTL": str(folder), "CANDELA_CACHE_DIR": str(cache)})
            shutil.rmtree(folder)
            test, says = by or (None, None)
            results[fault[0]] = {"fault": fault[0], "file": fault[1], "found": by is not None, "by": test, "says": says}
            print(f"{number + 1}/{len(chosen)}  {fault[0]}: {'not found' if by is None else ': '.join(by)}", flush=True)
    if arguments.only and arguments.report.exists():
        results = {result["fault"]: result for result in json.loads(arguments.report.read_text())["results"]} | results
    ordered = [results[fault[0]] for fault in FAULTS if fault[0] in results]
    found = sum(result["found"] for result in ordered)
    nightly_report.write(arguments.report, {
        "schema": SCHEMA, "date": nightly_report.now(), "machine": nightly_report.machine(), "passed": found == len(ordered),
        "faults": len(ordered), "found": found, "results": ordered})
    print(f"{found} of {len(ordered)} faults found")
    return 0 if found == len(ordered) else 1


if __name__ == "__main__":
    sys.exit(main())
