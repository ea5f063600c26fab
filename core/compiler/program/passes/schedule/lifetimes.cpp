#include "core/compiler/program/passes/schedule/lifetimes.h"

#include <algorithm>

#include "core/compiler/program/passes/schedule/lives.h"

namespace candela::program::passes::schedule {

namespace {

bool isElementwise(uint16_t kind) {
  return kind == CDL_KIND_BINARY || kind == CDL_KIND_UNARY || kind == CDL_KIND_SELECT ||
         kind == CDL_KIND_CONVERT || kind == CDL_KIND_ELEMENTWISE || kind == CDL_KIND_RESCALE ||
         kind == CDL_KIND_TABLE;
}

/// Every element of the result is written where the operand's element of the same index was read.
bool walksAlike(const View& in, const View& out) {
  return in.isDense() && out.isDense() && in.dims == out.dims && in.offset == out.offset &&
         elemBits(in.elem) == elemBits(out.elem);
}

/// The operand whose place the result of instruction i takes, or kNone.
uint32_t dyingOperand(const Program& program, const std::vector<Life>& lives, uint32_t i) {
  for (const uint32_t operand : operandsInPlace(program, i))
    if (lives[program.instrs[i].outputs[0].buffer].first == i && lives[operand].last == i)
      return operand;
  return kNone;
}

} // namespace

std::vector<uint32_t> operandsInPlace(const Program& program, uint32_t i) {
  const Instr& instr = program.instrs[i];
  std::vector<uint32_t> operands;
  if (!isElementwise(instr.kind) || instr.loop != kNone || instr.inout || instr.outputs.size() != 1)
    return operands;
  const View& out = instr.outputs[0];
  const Buffer& result = program.buffers[out.buffer];
  if (result.role != Role::temp || result.halo) return operands;
  // Of TABLE's operands only the first is read element by element.
  const size_t elementwise = instr.kind == CDL_KIND_TABLE ? 1 : instr.inputs.size();
  for (const View& in : std::span(instr.inputs).first(elementwise)) {
    const Buffer& operand = program.buffers[in.buffer];
    bool fits = operand.role == Role::temp && !operand.halo && operand.space == result.space &&
                operand.bytes == result.bytes && in.buffer != out.buffer;
    for (size_t v = 0; fits && v < instr.inputs.size(); ++v)
      fits = instr.inputs[v].buffer != in.buffer ||
             (v < elementwise && walksAlike(instr.inputs[v], out));
    if (fits) operands.push_back(in.buffer);
  }
  return operands;
}

std::vector<uint32_t> productsBehind(const Program& program, const std::vector<Life>& lives) {
  std::vector<uint32_t> products(program.buffers.size(), kNone);
  for (uint32_t i = 0; i < program.instrs.size(); ++i) {
    const Instr& instr = program.instrs[i];
    if (instr.loop != kNone || instr.outputs.size() != 1) continue;
    uint32_t& product = products[instr.outputs[0].buffer];
    if (instr.kind == CDL_KIND_CONV2D || instr.kind == CDL_KIND_MATMUL) product = i;
    if (instr.kind == CDL_KIND_RESCALE)
      for (const View& in : instr.inputs)
        if (const uint32_t of = products[in.buffer]; of != kNone && lives[in.buffer].last == i)
          product = product == kNone ? of : std::max(product, of);
  }
  return products;
}

std::vector<Share> sharesOf(const Program& program, bool inPlace) {
  const std::vector<Life> lives = livesOf(program);
  std::vector<Share> shares;
  std::vector<uint32_t> shareOf(program.buffers.size(), kNone);
  for (uint32_t b = 0; b < program.buffers.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    if (buffer.role != Role::temp) continue;
    const Life life = lives[b].first == kNone ? Life{0, 0} : lives[b]; // untouched
    shareOf[b] = static_cast<uint32_t>(shares.size());
    shares.push_back({{b}, buffer.space, life.first, life.last, buffer.bytes, buffer.alignment});
  }
  for (uint32_t i = 0; inPlace && i < program.instrs.size(); ++i) {
    const uint32_t operand = dyingOperand(program, lives, i);
    if (operand == kNone) continue;
    const uint32_t from = shareOf[program.instrs[i].outputs[0].buffer], to = shareOf[operand];
    shares[to].last = std::max(shares[to].last, shares[from].last);
    shares[to].alignment = std::max(shares[to].alignment, shares[from].alignment);
    for (const uint32_t buffer : shares[from].buffers) shareOf[buffer] = to;
    shares[to].buffers.insert(shares[to].buffers.end(), shares[from].buffers.begin(),
                              shares[from].buffers.end());
    shares[from].buffers.clear();
  }
  const std::vector<uint32_t> products = productsBehind(program, lives);
  for (uint32_t b = 0; b < program.buffers.size(); ++b)
    if (shareOf[b] != kNone)
      shares[shareOf[b]].first = std::min(shares[shareOf[b]].first, products[b]);
  std::erase_if(shares, [](const Share& share) { return share.buffers.empty(); });
  return shares;
}

solvers::memory::MemoryProblem problemOf(const Program& program, uint32_t space,
                                         const std::vector<Share>& shares) {
  solvers::memory::MemoryProblem problem;
  if (const uint64_t capacity = program.spaces[space].capacityBytes) problem.capacity = capacity;
  for (const Share& share : shares)
    if (share.space == space)
      problem.buffers.push_back(
          {share.first, int64_t{share.last} + 1, share.bytes,
           std::max<uint64_t>(share.alignment, program.spaces[space].alignment)});
  return problem;
}

std::vector<uint64_t> peakBytes(const Program& program, const std::vector<Share>& shares) {
  std::vector<uint64_t> peaks;
  for (uint32_t space = 0; space < program.spaces.size(); ++space)
    peaks.push_back(solvers::memory::maxLive(problemOf(program, space, shares)));
  return peaks;
}

} // namespace candela::program::passes::schedule
