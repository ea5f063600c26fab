#include "simulator/timing/constants.h"

namespace candela::npu {
namespace {

constexpr std::string_view kForms = "the forms of simulator/timing/compute.h";

constexpr TimingConstant kConstants[] = {
    {"compute.setup", 2, "cycle", Tag::kRtl,
     "rtl/matrix, rtl/requant, rtl/vector: from the begin of an instruction to its first access"},
    {"matrix.beat", 1, "cycle", Tag::kRtl, "rtl/matrix, in tests/rtl/matrix_test.cpp"},
    {"matrix.pipeline", 6, "cycle", Tag::kRtl,
     "rtl/matrix: address 2, scratchpad 1, edge of the array 1, accumulator read, sum and write 2"},
    {"ldw.pipeline", 4, "cycle", Tag::kRtl,
     "rtl/matrix: address 2, scratchpad 1, edge of the array 1"},
    {"dwconv.pipeline", 7, "cycle", Tag::kRtl,
     "rtl/matrix: address 2, scratchpad 1, edge 1, product 1, accumulator read, sum and write 2"},
    {"requant.beat", 1, "cycle", Tag::kRtl, "rtl/requant, in tests/rtl/requant_test.cpp"},
    {"requant.pipeline", 15, "cycle", Tag::kRtl,
     "rtl/requant: address 2, accumulator 1, pool 1, lane 10, result 1"},
    {"requant.interpolation", 1, "cycle", Tag::kRtl, "rtl/requant: an eleventh stage of the lane"},
    {"move.pipeline", 4, "cycle", Tag::kRtl, "rtl/requant: address 2, read 1, result 1"},
    {"vector.beat", 1, "cycle", Tag::kRtl, "rtl/vector, in tests/rtl/vector_test.cpp"},
    {"vector.pipeline", 10, "cycle", Tag::kRtl,
     "rtl/vector: address 2, scratchpad 1, edge 1, lane 5, result 1"},
    {"output.beat", 1, "cycle", Tag::kAssumed,
     "output-stationary arrays: a term of all rows and columns in a cycle, and a row of sums that "
     "leaves; the equations of A. Samajdar et al., SCALE-Sim, arXiv 1811.02883, with the sums of a "
     "fold leaving while the next one streams"},
    {"output.pipeline", 6, "cycle", Tag::kAssumed,
     "output-stationary arrays: as matrix.pipeline, whose ports they share"},
    {"nop", 1, "cycle", Tag::kRtl,
     "rtl/command/cdl_npu_queue.sv, in rtl_npu_digits_bench4 and rtl_npu_random"},
    {"control.word", 1, "cycle", Tag::kRtl,
     "rtl/command, in tests/rtl/control_test.cpp: one word fetched, run or sent"},
    {"queue.latency", 1, "cycle", Tag::kRtl,
     "rtl/command: from the control processor to the head of an empty queue"},
    {"semaphore.latency", 1, "cycle", Tag::kRtl,
     "rtl/command: from an end to the beginning of who waits for it"},
    {"fetch.ahead", 4, "burst", Tag::kRtl,
     "rtl/command/cdl_npu_fetch.sv: bursts of instructions that are fetched ahead"},
    {"fetch.buffer", 16, "burst", Tag::kRtl,
     "rtl/command/cdl_npu_fetch.sv: bursts of instructions that are kept, for loops"},
    {"dma.setup", 5, "cycle", Tag::kRtl,
     "rtl/dma, in tests/rtl/dma_test.cpp: from the head of the queue to the first burst or word"},
    {"dma.issue", 1, "cycle", Tag::kRtl, "rtl/dma: from burst to burst of one channel"},
    {"dma.read", 2, "cycle", Tag::kRtl,
     "rtl/dma: a word of the scratchpad 1, among the bytes under way 1"},
    {"dma.pipeline", 2, "cycle", Tag::kRtl, "rtl/dma: bytes under way 1, result 1"},
    {"dma.requests", 4, "burst", Tag::kRtl, "rtl/dma: what a store asks for ahead of its data"},
    {"expand.pipeline", 3, "cycle", Tag::kAssumed,
     "constants without their zeros: form and mask of a block 1, shift 1, result 1; a word of the "
     "scratchpad in a cycle from then on"},
    {"fabric.latency", 10, "cycle", Tag::kAssumed,
     "between a channel and the controller, there and back"},
    {"controller.latency", 20, "ns", Tag::kAssumed,
     "queues and the physical layer of the memory controller"},
    {"controller.writes", 32, "burst", Tag::kAssumed,
     "writes that a channel gathers before it turns the bus around; half of the queue that gem5's "
     "MemInterface has"},
    {"controller.turn", 2, "memory cycle", Tag::kSpec,
     "between the data of a read and that of a write behind it; JESD79-4: RL + BL/2 + 2 - WL from "
     "command to command"},
};
static_assert(std::size(kConstants) == kTimings);

} // namespace

std::string_view tagName(Tag tag) {
  constexpr std::string_view kNames[] = {"rtl", "spec", "fitted", "assumed"};
  return kNames[static_cast<int>(tag)];
}

std::span<const TimingConstant> timingConstants() { return kConstants; }
const TimingConstant& timingConstant(Timing which) { return kConstants[static_cast<int>(which)]; }

} // namespace candela::npu
