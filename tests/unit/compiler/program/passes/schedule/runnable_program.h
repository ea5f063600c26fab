#pragma once

#include <random>

#include "core/compiler/program/program.h"

/// Seeded Programs that run: everything that is read was written before. Small integers in f32 and
/// i32, so that every order of additions gives the same bits.
namespace candela::testing {

class ProgramMaker {
public:
  explicit ProgramMaker(uint64_t seed) : rng_(seed) {
    for (const char* name : {"x0", "x1"}) pool_.push_back(add(name, program::Role::input, kLarge));
    pool_.push_back(program_.addConstant(
        "c", Payload::data(Tensor::of<float>(Elem::f32_, {kSmall}, {1, -2, 3, -4}))));
  }

  /// Every value has kSmall or kLarge elements.
  program::Program make(int steps) {
    for (int i = 0; i < steps; ++i) step();
    const int outputs = 1 + pick(3);
    for (int i = 0; i < outputs; ++i) {
      const uint32_t from = any();
      const uint32_t to = add(fmt::format("y{}", i), program::Role::output, countOf(from));
      emit(CDL_KIND_COPY, 0, {whole(from)}, whole(to));
    }
    return std::move(program_);
  }

  static constexpr int64_t kSmall = 4, kLarge = 16;

private:
  int pick(int count) { return static_cast<int>(rng_() % static_cast<uint64_t>(count)); }
  int64_t countOf(uint32_t buffer) const {
    return static_cast<int64_t>(program_.buffers[buffer].bytes / 4);
  }
  /// Newer values more often.
  uint32_t any() {
    const int size = static_cast<int>(pool_.size());
    return pool_[pick(2) ? size - 1 - pick(std::min(size, 4)) : pick(size)];
  }
  uint32_t anyOf(int64_t count) {
    for (;;)
      if (const uint32_t buffer = pool_[pick(static_cast<int>(pool_.size()))];
          countOf(buffer) == count)
        return buffer;
  }
  uint32_t add(std::string name, program::Role role, int64_t count) {
    program::Buffer buffer;
    buffer.name = std::move(name);
    buffer.role = role;
    buffer.bytes = static_cast<uint64_t>(count) * 4;
    if (role != program::Role::temp) buffer.offset = 0;
    return program_.addBuffer(buffer);
  }
  uint32_t temp(int64_t count) {
    pool_.push_back(add("t", program::Role::temp, count));
    return pool_.back();
  }
  program::View whole(uint32_t buffer) {
    return program::denseView(buffer, Elem::f32_, {countOf(buffer)});
  }
  /// kSmall elements of a large buffer, from `offset`, `stride` apart.
  program::View part(uint32_t buffer, int64_t offset, int64_t stride) {
    program::View view = program::denseView(buffer, Elem::f32_, {kSmall});
    view.offset = offset;
    view.strides = {stride};
    return view;
  }
  program::Instr& emit(uint16_t kind, uint16_t fn, std::vector<program::View> inputs,
                       program::View output) {
    program::Instr instr;
    instr.kind = kind;
    instr.fn = fn;
    instr.inputs = std::move(inputs);
    instr.outputs = {std::move(output)};
    program_.instrs.push_back(std::move(instr));
    return program_.instrs.back();
  }
  void fill(const program::View& view) {
    emit(CDL_KIND_FILL, 0, {}, view).attrs = {
        program::Attr::ofBits(CDL_ATTR_VALUE, pick(2) ? 0x40400000 : 0)};
  }

  void step() {
    const uint32_t x = any();
    const int64_t count = countOf(x);
    switch (pick(10)) {
    case 0: fill(whole(temp(pick(2) ? kSmall : kLarge))); break;
    case 1: emit(CDL_KIND_UNARY, CDL_UNARY_NEG, {whole(x)}, whole(temp(count))); break;
    case 2:
    case 3: {
      const uint32_t y = anyOf(count);
      emit(CDL_KIND_BINARY, pick(2) ? CDL_BINARY_ADD : CDL_BINARY_MAX, {whole(x), whole(y)},
           whole(temp(count)));
      break;
    }
    case 4: emit(CDL_KIND_COPY, 0, {whole(x)}, whole(temp(count))); break;
    case 5: {
      const uint32_t large = anyOf(kLarge);
      emit(CDL_KIND_COPY, 0, {part(large, pick(4), 1 + pick(4))}, whole(temp(kSmall)));
      break;
    }
    case 6: overwritePart(); break;
    case 7: {
      program::View in = program::denseView(anyOf(kLarge), Elem::f32_, {kSmall, 4, 1});
      emit(CDL_KIND_REDUCE, CDL_REDUCE_MAX, {in},
           program::denseView(temp(kSmall), Elem::f32_, {kSmall, 1}));
      break;
    }
    case 8: loop(); break;
    default: emit(CDL_KIND_UNARY, CDL_UNARY_ABS, {whole(x)}, whole(temp(count))); break;
    }
  }

  /// Writes into a buffer that others have read or will read.
  void overwritePart() {
    const uint32_t from = anyOf(kSmall), to = anyOf(kLarge);
    if (program_.buffers[to].role == program::Role::temp)
      emit(CDL_KIND_COPY, 0, {whole(from)}, part(to, pick(4), 1 + pick(4)));
    else
      fill(whole(temp(kLarge)));
  }

  /// acc = max(acc, x[4 i .. 4 i + 3]) by way of a temporary, sometimes inside of another loop.
  void loop() {
    const uint32_t large = anyOf(kLarge), start = anyOf(kSmall), acc = temp(kSmall);
    emit(CDL_KIND_COPY, 0, {whole(start)}, whole(acc));
    const auto first = static_cast<uint32_t>(program_.instrs.size());
    const bool nested = pick(2);
    const auto index = static_cast<uint32_t>(program_.loops.size());
    program_.loops.push_back({first, 2, program::kNone, nested ? uint64_t{2} : uint64_t{4}});
    if (nested) program_.loops.push_back({first, 2, index, 2});
    program::View slice = part(large, 0, 1);
    slice.ivStrides[0] = nested ? 8 : 4;
    slice.ivStrides[1] = nested ? 4 : 0;
    const uint32_t scratch = add("t", program::Role::temp, kSmall);
    emit(CDL_KIND_BINARY, CDL_BINARY_MAX, {whole(acc), slice}, whole(scratch)).loop =
        index + nested;
    emit(CDL_KIND_UNARY, CDL_UNARY_NEG, {whole(scratch)}, whole(acc)).loop = index + nested;
  }

  std::mt19937_64 rng_;
  program::Program program_;
  std::vector<uint32_t> pool_; ///< buffers whose every element is written
};

} // namespace candela::testing
