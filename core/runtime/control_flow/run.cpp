#include <algorithm>
#include <cstring>

#include "core/runtime/control_flow/flow.h"

namespace candela::runtime::control_flow {
namespace {

Result<int64_t> scalarInt(const Value& value, const char* what) {
  if (!value.isTensor() || value.tensor.count() != 1 || isFloat(value.tensor.elem))
    return badModel("{} is {}, expected one integer", what, value.text());
  return value.tensor.toInts()[0];
}

Result<bool> scalarBool(const Value& value, const char* what) {
  if (!value.isTensor() || value.tensor.count() != 1 || value.tensor.elem != Elem::bool_)
    return badModel("{} is {}, expected one bool", what, value.text());
  return value.tensor.toInts()[0] != 0;
}

Result<const std::vector<Tensor>*> sequenceOf(const Value& value) {
  if (!value.isSequence()) return badModel("its input is {}, expected a sequence", value.text());
  return value.items.get();
}

/// Positions count from the end when negative.
Result<size_t> positionIn(const Value& value, size_t count) {
  CDL_ASSIGN(const int64_t given, scalarInt(value, "the position"));
  const auto size = static_cast<int64_t>(count);
  if (given < -size || given >= size)
    return badModel("position {} is out of range for {} elements", given, size);
  return static_cast<size_t>(given < 0 ? given + size : given);
}

Result<Tensor> stack(const std::vector<Tensor>& items) {
  if (items.empty()) return badModel("nothing to stack");
  Shape dims = items[0].dims;
  dims.insert(dims.begin(), static_cast<int64_t>(items.size()));
  CDL_ASSIGN(Tensor stacked, Tensor::zeros(items[0].elem, std::move(dims)));
  const uint64_t bytes = items[0].sizeBytes();
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].elem != items[0].elem || items[i].dims != items[0].dims)
      return badModel("element {} is {} but the ones before are {}", i, items[i].typeText(),
                      items[0].typeText());
    if (elemBits(items[i].elem) < 8)
      return failure(Code::unsupported, "{} is not stacked", items[i].typeText());
    if (bytes) std::memcpy(stacked.bytes.mutableData() + i * bytes, items[i].bytes.data(), bytes);
  }
  return stacked;
}

class Run {
public:
  Run(const Flow& flow, std::span<const std::unique_ptr<Unit>> units)
      : flow_(flow), units_(units), values_(flow.slots.size()) {}

  Result<std::vector<Value>> run(std::span<const Value> inputs) {
    CDL_CHECK(inputs.size() == flow_.inputs.size());
    for (const Constant& constant : flow_.constants) values_[constant.slot] = constant.tensor;
    for (size_t i = 0; i < inputs.size(); ++i) values_[flow_.inputs[i]] = inputs[i];
    CDL_TRY(runBlock(flow_.main));
    return gather(flow_.outputs);
  }

private:
  const Value& at(SlotId slot) const {
    static const Value kNothing;
    return slot == kNoSlot ? kNothing : values_[slot];
  }

  std::vector<Value> gather(const std::vector<SlotId>& slots) const {
    std::vector<Value> values;
    for (const SlotId slot : slots) values.push_back(at(slot));
    return values;
  }

  /// A failure of the step with its node in front, unless it names the node, or one within it,
  /// already.
  static Status named(const Status& status, const Step& step) {
    const std::string who = fmt::format("node '{}", step.node);
    const std::string_view message = status.message();
    const char next =
        message.starts_with(who) && message.size() > who.size() ? message[who.size()] : ' ';
    return step.node.empty() || next == '\'' || next == '/' ? status : status.context(who + "'");
  }

  Status runBlock(const Block& block) {
    for (const Step& step : block.steps) {
      Result<std::vector<Value>> made = runStep(step, gather(step.inputs));
      if (!made) return named(made.status(), step);
      CDL_CHECK(made->size() == step.outputs.size());
      for (size_t i = 0; i < made->size(); ++i)
        if (step.outputs[i] != kNoSlot) values_[step.outputs[i]] = std::move((*made)[i]);
    }
    return Status::ok();
  }

  Result<std::vector<Value>> runStep(const Step& step, std::vector<Value> in) {
    switch (step.kind) {
    case StepKind::unit: return units_[step.unit]->run(in);
    case StepKind::branch: {
      CDL_ASSIGN(const bool taken, scalarBool(in[0], "the condition"));
      const Block& block = step.blocks[taken ? 0 : 1];
      CDL_TRY(runBlock(block));
      return gather(block.results);
    }
    case StepKind::loop: return runLoop(step, std::move(in));
    case StepKind::length: {
      CDL_ASSIGN(const auto* items, sequenceOf(in[0]));
      return one(Tensor::scalarI64(static_cast<int64_t>(items->size())));
    }
    case StepKind::has:
      return one(Tensor::of<uint8_t>(Elem::bool_, {}, {uint8_t(in[0].isNone() ? 0 : 1)}));
    case StepKind::get:
      if (in[0].isNone()) return badModel("the optional has no element");
      return std::vector<Value>{std::move(in[0])};
    case StepKind::fail:
      return failure(step.unsupported ? Code::unsupported : Code::bad_model, "{}", step.why);
    default: return runSequence(step.kind, std::move(in));
    }
  }

  static std::vector<Value> one(Value value) { return {std::move(value)}; }

  static Result<std::vector<Value>> runSequence(StepKind kind, std::vector<Value> in) {
    std::vector<Tensor> items;
    if (kind == StepKind::construct || kind == StepKind::stack) {
      for (Value& value : in) {
        if (!value.isTensor()) return badModel("an element is {}, expected a tensor", value.text());
        items.push_back(std::move(value.tensor));
      }
      if (kind == StepKind::construct) return one(std::move(items));
      CDL_ASSIGN(Tensor stacked, stack(items));
      return one(std::move(stacked));
    }
    CDL_ASSIGN(const auto* before, sequenceOf(in[0]));
    if (kind == StepKind::at) {
      CDL_ASSIGN(const size_t position, positionIn(in[1], before->size()));
      return one((*before)[position]);
    }
    items = *before;
    const Value& where = in.back();
    if (kind == StepKind::erase) {
      if (items.empty()) return badModel("the sequence has nothing to erase");
      size_t position = items.size() - 1;
      if (!where.isNone()) {
        CDL_ASSIGN(position, positionIn(where, items.size()));
      }
      items.erase(items.begin() + static_cast<ptrdiff_t>(position));
      return one(std::move(items));
    }
    if (!in[1].isTensor()) return badModel("an element is {}, expected a tensor", in[1].text());
    size_t position = items.size();
    if (!where.isNone()) {
      // Behind the last one is a position too.
      CDL_ASSIGN(const int64_t given, scalarInt(where, "the position"));
      const auto size = static_cast<int64_t>(items.size());
      if (given < -size || given > size)
        return badModel("position {} is out of range for {} elements", given, size);
      position = static_cast<size_t>(given < 0 ? given + size : given);
    }
    items.insert(items.begin() + static_cast<ptrdiff_t>(position), std::move(in[1].tensor));
    return one(std::move(items));
  }

  Result<std::vector<Value>> runLoop(const Step& step, std::vector<Value> in) {
    const Block& body = step.blocks[0];
    const size_t carried = in.size() - 2, scans = step.outputs.size() - carried;
    int64_t trips = INT64_MAX;
    bool goOn = true;
    if (!in[0].isNone()) {
      CDL_ASSIGN(trips, scalarInt(in[0], "the trip count"));
    }
    if (!in[1].isNone()) {
      CDL_ASSIGN(goOn, scalarBool(in[1], "the condition"));
    }
    // the body hands the condition on as it is
    const bool endless = body.results[0] == body.params[1];
    if (goOn && endless && trips > kMostTurns)
      return badModel("its condition never ends it and its trip count of {} is beyond {}", trips,
                      kMostTurns);
    std::vector<Value> state(std::make_move_iterator(in.begin() + 2),
                             std::make_move_iterator(in.end()));
    std::vector<std::vector<Tensor>> scanned(scans);
    uint64_t scannedBytes = 0;
    for (int64_t turn = 0; goOn && turn < trips; ++turn) {
      if (++turns_ > kMostTurns)
        return badModel("its run has not ended after {} turns of loops", kMostTurns);
      values_[body.params[0]] = Tensor::scalarI64(turn);
      values_[body.params[1]] = Tensor::of<uint8_t>(Elem::bool_, {}, {1});
      for (size_t k = 0; k < carried; ++k) values_[body.params[2 + k]] = std::move(state[k]);
      CDL_TRY(runBlock(body).context(fmt::format("turn {}", turn)));
      std::vector<Value> results = gather(body.results);
      CDL_ASSIGN(goOn, scalarBool(results[0], "the body's condition"));
      for (size_t k = 0; k < carried; ++k) state[k] = std::move(results[1 + k]);
      for (size_t k = 0; k < scans; ++k) {
        Value& value = results[1 + carried + k];
        if (!value.isTensor())
          return badModel("a scan output is {}, expected a tensor", value.text());
        scannedBytes += value.tensor.sizeBytes();
        if (scannedBytes > kMostScanned)
          return failure(Code::out_of_memory, "its scan outputs are more than {} bytes",
                         kMostScanned);
        scanned[k].push_back(std::move(value.tensor));
      }
    }
    for (size_t k = 0; k < scans; ++k) {
      if (scanned[k].empty()) {
        const Slot& slot = flow_.slots[step.outputs[carried + k]];
        Shape dims = slot.dims.empty() ? Shape{0} : slot.dims;
        for (int64_t& dim : dims) dim = std::max<int64_t>(dim, 0);
        dims[0] = 0;
        state.emplace_back(
            Tensor{slot.elem == Elem::none ? Elem::f32_ : slot.elem, std::move(dims), {}});
        continue;
      }
      CDL_ASSIGN(Tensor stacked, stack(scanned[k]));
      state.emplace_back(std::move(stacked));
    }
    return state;
  }

  const Flow& flow_;
  std::span<const std::unique_ptr<Unit>> units_;
  std::vector<Value> values_;
  int64_t turns_ = 0; ///< of all loops
};

} // namespace

Result<std::vector<Value>> run(const Flow& flow, std::span<const std::unique_ptr<Unit>> units,
                               std::span<const Value> inputs) {
  return Run(flow, units).run(inputs);
}

} // namespace candela::runtime::control_flow
