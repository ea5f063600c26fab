#include "core/reference/interpreter/interp.h"

#include <algorithm>
#include <set>

#include "core/reference/interpreter/machine.h"

namespace candela::reference {

using program::Buffer, program::Instr, program::kNone, program::Loop, program::Program,
    program::Role, program::View;

namespace {

using interpreter::Call, interpreter::Memory;

constexpr uint64_t kMostSteps = uint64_t(1) << 26;

/// Kinds whose operands are all alike run on physical dims as they stand; contractions and pools by
/// logical ones, of which those that a window moves along must be whole.
bool takesLayout(uint16_t kind, const View& view) {
  if (view.layout.opaque) return false;
  if (view.layout.isRowMajor() || kind == CDL_KIND_MATMUL || kind == CDL_KIND_COPY ||
      kind == CDL_KIND_FILL)
    return true;
  if (interpreter::isElementwise(kind)) return kind != CDL_KIND_TABLE;
  std::set<uint8_t> spatial;
  return (kind == CDL_KIND_CONV2D || kind == CDL_KIND_POOL2D) &&
         std::ranges::all_of(view.layout.steps, [&](const auto& step) {
           return step.dim < 2 || spatial.insert(step.dim).second;
         });
}

class Interpreter {
public:
  Interpreter(const Program& program, Memory memory, bool checkWaits)
      : program_(program), memory_(std::move(memory)) {
    if (checkWaits) memory_.watch();
  }

  Memory& memory() { return memory_; }

  /// How often instructions run in all; a Program that would not end in a lifetime is refused.
  Status checkLength() const {
    uint64_t steps = 0;
    for (const Instr& instr : program_.instrs) {
      uint64_t times = 1;
      for (uint32_t l = instr.loop; l != kNone; l = program_.loops[l].parent)
        times =
            times > kMostSteps ? times : times * std::min(program_.loops[l].trip, kMostSteps + 1);
      steps += times;
      if (steps > kMostSteps)
        return badArgument("the program runs more than {} instructions", kMostSteps);
    }
    return Status::ok();
  }

  /// Instructions first .. last - 1, which all lie inside of `loop`; depth counts the loops around
  /// them.
  Status run(uint32_t first, uint32_t last, uint32_t loop, int depth) {
    for (uint32_t i = first; i < last;) {
      const uint32_t inner = innerLoop(i, loop);
      if (inner == kNone) {
        CDL_TRY(runInstr(i).context(program_.instrName(i)));
        ++i;
        continue;
      }
      CDL_CHECK(depth < CDL_MAX_LOOP_NESTING, "loop {} is nested too deep", inner);
      const Loop& region = program_.loops[inner];
      for (uint64_t iv = 0; iv < region.trip; ++iv) {
        iv_[depth] = static_cast<int64_t>(iv);
        CDL_TRY(run(region.first, region.first + region.count, inner, depth + 1));
      }
      iv_[depth] = 0;
      i = region.first + region.count;
    }
    return Status::ok();
  }

private:
  /// The loop directly inside of `loop` that holds the instruction.
  uint32_t innerLoop(uint32_t instr, uint32_t loop) const {
    uint32_t at = program_.instrs[instr].loop;
    if (at == loop) return kNone;
    while (program_.loops[at].parent != loop) at = program_.loops[at].parent;
    return at;
  }

  Status runInstr(uint32_t index) {
    const Instr& instr = program_.instrs[index];
    for (const auto* views : {&instr.inputs, &instr.outputs})
      for (const View& view : *views)
        if (!takesLayout(instr.kind, view))
          return failure(Code::unsupported, "the interpreter does not run it on this layout");
    memory_.begin(index);
    Call call(program_, instr, iv_, memory_);
    call.checkOverlaps();
    if (!call.failed()) interpreter::run(call);
    return call.status();
  }

  const Program& program_;
  Memory memory_;
  int64_t iv_[CDL_MAX_LOOP_NESTING] = {0, 0};
};

} // namespace

Result<std::vector<Tensor>> interpret(const Program& program, std::span<const Tensor> inputs,
                                      const InterpOptions& options) {
  CDL_TRY(verify(program));
  if (options.checkWaits && !program.loops.empty())
    return badArgument("waits are checked without loops, but the program has {}",
                       program.loops.size());
  CDL_ASSIGN(Memory memory, Memory::create(program, options.inPlaceArena));
  Interpreter interpreter(program, std::move(memory), options.checkWaits);
  CDL_TRY(interpreter.checkLength());
  size_t next = 0;
  for (uint32_t b = 0; b < program.buffers.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    if (buffer.role == Role::temp || buffer.role == Role::output) continue;
    if (buffer.role == Role::constant) {
      const Payload& payload = program.constants[buffer.constant].payload;
      CDL_ASSIGN(const Tensor tensor, payload.materialize({payload.count()}));
      interpreter.memory().fill(b, tensor.bytes.slice(0, buffer.bytes));
    } else {
      if (next >= inputs.size())
        return badArgument("{} inputs given, none for '{}'", inputs.size(), buffer.name);
      const Tensor& tensor = inputs[next++];
      if (tensor.bytes.size() != buffer.bytes)
        return badArgument("input '{}' of {} has {} bytes, its buffer {}", buffer.name,
                           tensor.typeText(), tensor.bytes.size(), buffer.bytes);
      interpreter.memory().fill(b, tensor.bytes);
    }
  }
  if (next != inputs.size())
    return badArgument("{} inputs given, expected {}", inputs.size(), next);
  CDL_TRY(interpreter.run(0, static_cast<uint32_t>(program.instrs.size()), kNone, 0));
  std::vector<Tensor> results;
  for (uint32_t b = 0; b < program.buffers.size(); ++b) {
    const Role role = program.buffers[b].role;
    if (role != Role::output && role != Role::inout && role != Role::state) continue;
    auto [elem, dims] = program.contentType(b);
    CDL_ASSIGN(Bytes content,
               interpreter.memory().content(b).context("after the last instruction"));
    results.push_back({elem, std::move(dims), std::move(content)});
  }
  return results;
}

} // namespace candela::reference
