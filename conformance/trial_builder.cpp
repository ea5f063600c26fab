#include "conformance/trial_builder.h"

#include <algorithm>

#include "conformance/port.h"
#include "core/support/text/scan.h"

namespace candela::conformance {
namespace {

/// Strides and offset of a view in a buffer of `count` elements that it makes.
struct Placement {
  std::vector<int64_t> strides;
  int64_t offset = 0, count = 0;
  bool gaps = false; ///< elements of the buffer that the view does not reach
};

Placement place(const Shape& dims, std::string_view form) {
  Placement placed;
  placed.strides = denseStrides(dims);
  const int64_t elements = elementCount(dims).value_or(0);
  placed.count = elements;
  const size_t rank = dims.size();
  if (elements == 0 || rank == 0 || form == "dense") return placed;
  const int64_t inner = dims.back();
  if (form == "offset") {
    placed.offset = 3;
    placed.count += 3;
    placed.gaps = true;
  } else if (form == "broadcast" || form == "broadcast_in") {
    size_t d = 0;
    while (d + 1 < rank && dims[d] == 1) ++d;
    if (form == "broadcast_in") d = rank - 1;
    Shape once = dims;
    once[d] = 1;
    placed.strides = denseStrides(once);
    placed.strides[d] = 0;
    placed.count = elements / dims[d];
  } else if (form == "channel" || form == "columns") {
    const size_t kept = form == "columns" ? rank - 1 : std::min<size_t>(rank - 1, 1);
    placed.strides.assign(rank, 0);
    placed.strides[kept] = 1;
    placed.count = dims[kept];
  } else if (form == "rows" && rank > 1) {
    Shape wider = dims;
    wider.back() += 5;
    placed.strides = denseStrides(wider);
    placed.count = *elementCount(wider);
    placed.gaps = true;
  } else if (form == "transposed") {
    placed.strides = denseStrides(Shape(dims.rbegin(), dims.rend()));
    std::ranges::reverse(placed.strides);
  } else if (form == "negative") {
    placed.strides.back() = -1;
    placed.offset = inner - 1;
  } else if (form == "strided") {
    for (int64_t& stride : placed.strides) stride *= 2;
    placed.count = 2 * elements;
    placed.gaps = true;
  } else if (form == "splat") {
    placed.strides.assign(rank, 0);
    placed.count = 1;
  } else if (form == "reversed") {
    for (int64_t& stride : placed.strides) stride = -stride;
    placed.offset = elements - 1;
  } else if (form == "rotated" && rank > 1) {
    Shape turned = dims;
    std::ranges::rotate(turned, turned.end() - 1);
    placed.strides = denseStrides(turned);
    std::ranges::rotate(placed.strides, placed.strides.begin() + 1);
  } else if (form == "overlap" && rank > 1) {
    for (size_t d = 0; d + 1 < rank; ++d) placed.strides[d] = 1;
    placed.count = inner;
    for (size_t d = 0; d + 1 < rank; ++d) placed.count += dims[d] - 1;
  }
  return placed;
}

/// Strides that matter: of dims of more than one element.
std::vector<int64_t> movesOf(const Shape& dims, std::vector<int64_t> strides) {
  for (size_t d = 0; d < dims.size(); ++d)
    if (dims[d] == 1) strides[d] = 0;
  return strides;
}

} // namespace

bool isForm(const Shape& dims, std::string_view form) {
  const Placement placed = place(dims, form), dense = place(dims, "dense");
  return movesOf(dims, placed.strides) != movesOf(dims, dense.strides) ||
         placed.offset != dense.offset;
}

TrialBuilder::TrialBuilder(std::string_view address, uint16_t kind, uint16_t fn)
    : seed_(seedOf(address)) {
  instr_.kind = kind;
  instr_.fn = fn;
  instr_.provenance = {{std::string(address), std::string(kindName(kind))}};
}

program::View TrialBuilder::viewOf(Elem elem, const Shape& dims, std::string_view form,
                                   program::Role role, const Fill& fill) {
  const Placement placed = place(dims, form);
  program::View view;
  if (role == program::Role::constant) {
    random::Random random(seed_ ^ 0xC0);
    view = program::denseView(
        program_.addConstant(std::string(1, 'c'), Payload::data(fill(placed.count, random))), elem,
        dims);
  } else {
    program::Buffer buffer;
    buffer.name.assign(1, role == program::Role::input ? 'x' : 'y');
    buffer.role = role;
    buffer.bytes = elemBytes(elem, static_cast<uint64_t>(placed.count));
    view = program::denseView(program_.addBuffer(std::move(buffer)), elem, dims);
    if (role != program::Role::output)
      fills_.push_back(fill), fed_.emplace_back(elem, placed.count);
  }
  view.strides = placed.strides;
  view.offset = placed.offset;
  return view;
}

TrialBuilder& TrialBuilder::input(Elem elem, Shape dims, std::string_view form, Fill fill) {
  instr_.inputs.push_back(viewOf(elem, dims, form, program::Role::input, fill));
  return *this;
}

TrialBuilder& TrialBuilder::constant(Elem elem, Shape dims, std::string_view form, Fill fill) {
  instr_.inputs.push_back(viewOf(elem, dims, form, program::Role::constant, fill));
  return *this;
}

TrialBuilder& TrialBuilder::output(Elem elem, Shape dims, std::string_view form, Fill initial) {
  const bool isFed = initial || place(dims, form).gaps;
  instr_.inout = static_cast<bool>(initial);
  // A NaN would not tell its bits.
  if (isFed && !initial)
    initial = numbers(elem, isFloat(elem) ? random::Data::wide : random::Data::bits);
  instr_.outputs.push_back(
      viewOf(elem, dims, form, isFed ? program::Role::inout : program::Role::output, initial));
  return *this;
}

TrialBuilder& TrialBuilder::inputBeside(int64_t shift) {
  program::View view = instr_.inputs.back();
  grow(view.buffer, view.elem, shift);
  view.offset += shift;
  instr_.inputs.push_back(std::move(view));
  return *this;
}

TrialBuilder& TrialBuilder::outputIn(size_t operand, Elem elem, int64_t shift) {
  program::View view = instr_.inputs[operand];
  grow(view.buffer, view.elem, shift);
  program_.buffers[view.buffer].role = program::Role::inout;
  view.offset += shift;
  view.elem = elem;
  instr_.outputs.push_back(std::move(view));
  return *this;
}

void TrialBuilder::grow(uint32_t buffer, Elem elem, int64_t count) {
  // All buffers before it are fed but constants.
  size_t fed = 0;
  for (uint32_t b = 0; b < buffer; ++b) fed += program_.buffers[b].role != program::Role::constant;
  fed_[fed].second += count;
  program_.buffers[buffer].bytes = elemBytes(elem, static_cast<uint64_t>(fed_[fed].second));
}

TrialBuilder& TrialBuilder::loops(size_t depth) {
  loops_ = depth;
  return *this;
}

TrialBuilder& TrialBuilder::rounds(int64_t count) {
  rounds_ = count;
  return *this;
}

TrialBuilder& TrialBuilder::laidOut(program::Layout layout) {
  (instr_.outputs.empty() ? instr_.inputs : instr_.outputs).back().layout = std::move(layout);
  return *this;
}

TrialBuilder& TrialBuilder::trustSteps() {
  trustsSteps_ = true;
  return *this;
}

TrialBuilder& TrialBuilder::attr(program::Attr attr) {
  instr_.attrs.push_back(std::move(attr));
  return *this;
}

TrialBuilder& TrialBuilder::expr(program::Expr expr) {
  instr_.expr = std::move(expr);
  return *this;
}

CaseResult TrialBuilder::tryOut(Port& port, Judge judge) {
  auto trial = make(port, std::move(judge));
  if (!trial) return CaseResult::of(trial.status());
  if (const Status status = program::verify(trial->program); !status)
    return CaseResult::of(status.context("the suite made a program that is none"));
  return conformance::tryOut(*trial, port);
}

CaseResult TrialBuilder::tryRefusal(Port& port) {
  const auto trial = make(port, {});
  if (!trial) return CaseResult::of(trial.status());
  if (program::verify(trial->program))
    return CaseResult::of(failure(Code::internal, "nothing is wrong with it"));
  return conformance::tryRefusal(*trial, port);
}

Result<Trial> TrialBuilder::make(Port& port, Judge judge) {
  CDL_ASSIGN(const std::shared_ptr<runtime::plugin::Device> device, port.device());
  program_.spaces = {defaultSpace(device->target())};
  for (program::Buffer& buffer : program_.buffers) buffer.alignment = device->target().alignment();
  Trial trial{program_, {}, std::move(judge), trustsSteps_};
  trial.program.instrs = {instr_};
  program::Instr& instr = trial.program.instrs[0];
  for (uint32_t l = 0; l < loops_; ++l) {
    trial.program.loops.push_back(
        {0, 1, l ? l - 1 : program::kNone, static_cast<uint64_t>(instr.outputs[0].dims[0])});
    instr.loop = l;
    for (auto* views : {&instr.inputs, &instr.outputs})
      for (program::View& view : *views) {
        view.ivStrides[l] = view.strides[0];
        view.dims.erase(view.dims.begin());
        view.strides.erase(view.strides.begin());
      }
  }
  if (rounds_ > 1) {
    trial.program.loops.push_back({0, 1, program::kNone, static_cast<uint64_t>(rounds_)});
    instr.loop = 0;
    for (auto* views : {&instr.inputs, &instr.outputs})
      for (program::View& view : *views)
        if (program::Buffer& buffer = trial.program.buffers[view.buffer];
            buffer.role != program::Role::constant) {
          view.ivStrides[0] = static_cast<int64_t>(buffer.bytes * 8) / elemBits(view.elem);
          buffer.bytes *= static_cast<uint64_t>(rounds_);
        }
  }
  trial.inputs = [this](uint64_t salt) -> Result<std::vector<Tensor>> {
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < fills_.size(); ++i) {
      random::Random random(splitmix64(seed_ ^ salt << 32 ^ i << 8));
      tensors.push_back(fills_[i](fed_[i].second * rounds_, random));
    }
    return tensors;
  };
  return trial;
}

TrialBuilder::Fill numbers(Elem elem, random::Data data) {
  return [elem, data](int64_t count, random::Random& random) {
    return random::randomData(elem, {count}, data, random);
  };
}

Shape shapeOf(std::string_view text) {
  Shape dims;
  if (text == "scalar") return dims;
  for (const std::string& part : text::split(text, 'x'))
    dims.push_back(text::parseNumber<int64_t>(part).value_or(0));
  return dims;
}

uint64_t seedOf(std::string_view address) {
  uint64_t seed = 0;
  for (const char c : address) seed = splitmix64(seed ^ static_cast<unsigned char>(c));
  return seed;
}

} // namespace candela::conformance
