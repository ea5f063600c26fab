#include "core/runtime/bundle/flow_bundle.h"

#include <algorithm>

#include "core/support/text/name.h"

namespace candela::runtime::bundle {

uint32_t Bundle::addConstant(const Hash& hash, const Bytes& bytes) {
  for (uint32_t i = 0; i < constants.size(); ++i)
    if (constants[i].hash == hash && constants[i].bytes.size() == bytes.size()) return i;
  constants.push_back({hash, bytes});
  return static_cast<uint32_t>(constants.size() - 1);
}

Status BundleValue::checkInput(Elem given, std::span<const int64_t> givenDims) const {
  if (given == elem && std::ranges::equal(givenDims, dims)) return Status::ok();
  return badArgument("input '{}' is {} but {} was given", name, typeText(),
                     candela::typeText(given, givenDims));
}

namespace {

/// A bundle that would run for hours is no bundle that somebody made in earnest.
constexpr uint64_t kMaxExecutions = uint64_t(1) << 32;

} // namespace

uint64_t executions(const cdl_image_t* image) {
  const auto capped = [](__int128 count) {
    return count > kMaxExecutions ? kMaxExecutions + 1 : static_cast<uint64_t>(count);
  };
  // outer loops stand before inner ones
  std::vector<uint64_t> trips(std::max<uint32_t>(image->loops.count, 1), 1);
  for (uint32_t l = 1; l < image->loops.count; ++l) {
    const cdl_loop_t& loop = *cdl_get_loop(image, l);
    trips[l] = capped(__int128(loop.trip) * trips[loop.parent]);
  }
  uint64_t total = 0;
  for (uint32_t i = 1; i < image->instrs.count; ++i)
    total = capped(__int128(total) + trips[cdl_get_instr(image, i)->loop]);
  return total;
}

namespace {

/// The buffers of an image that are bound per execution must be what a step binds.
Status verifyBindings(const Bundle& bundle, size_t index) {
  const BundleStep& step = bundle.steps[index];
  const auto* image =
      reinterpret_cast<const cdl_image_t*>(bundle.partitions[step.partition].image.data());
  size_t inputs = 0, outputs = 0;
  const auto bind = [&](const std::vector<uint32_t>& values, size_t& next,
                        const cdl_buffer_t& buffer) -> Status {
    const char* name = cdl_get_string(image, buffer.name);
    if (next == values.size())
      return badModel("step {}: nothing is bound to buffer {}", index, name);
    const BundleValue& value = bundle.values[values[next++]];
    if (value.sizeBytes() != buffer.bytes)
      return badModel("step {}: value {} of {} bytes is bound to buffer {} of {} bytes", index,
                      value.name, value.sizeBytes(), name, buffer.bytes);
    return Status::ok();
  };
  for (uint32_t b = 1; b < image->buffers.count; ++b) {
    const cdl_buffer_t& buffer = *cdl_get_buffer(image, b);
    if (buffer.role == CDL_ROLE_INPUT || buffer.role == CDL_ROLE_INOUT)
      CDL_TRY(bind(step.inputs, inputs, buffer));
    if (buffer.role == CDL_ROLE_OUTPUT || buffer.role == CDL_ROLE_INOUT)
      CDL_TRY(bind(step.outputs, outputs, buffer));
    if (buffer.role == CDL_ROLE_TEMP && buffer.offset == CDL_UNPLACED)
      return badModel("step {}: buffer {} has no place", index, cdl_get_string(image, buffer.name));
  }
  if (inputs != step.inputs.size() || outputs != step.outputs.size())
    return badModel("step {}: {} inputs and {} outputs are bound, the program has {} and {}", index,
                    step.inputs.size(), step.outputs.size(), inputs, outputs);
  return Status::ok();
}

/// The constants of an image that runs without an executable of its own.
Status verifyConstants(const Bundle& bundle, const BundlePartition& partition,
                       const cdl_image_t* image, size_t index) {
  if (partition.constants.size() + 1 != image->constants.count &&
      !(partition.constants.empty() && image->constants.count == 0))
    return badModel("partition {}: {} constants for an image of {}", index,
                    partition.constants.size(), image->constants.count - 1);
  for (uint32_t c = 1; c < image->constants.count; ++c) {
    const cdl_constant_t& constant = *cdl_get_constant(image, c);
    const uint32_t at = partition.constants[c - 1];
    const bool isInImage = constant.form == 1;
    const bool isHeld =
        at < bundle.constants.size() && bundle.constants[at].bytes.size() >= constant.bytes;
    if (isInImage ? at != kNoConstant : !isHeld)
      return badModel("partition {}: constant {} has no payload", index,
                      cdl_get_string(image, constant.name));
  }
  return Status::ok();
}

Status verifyPartition(const Bundle& bundle, size_t index) {
  const BundlePartition& partition = bundle.partitions[index];
  char text[512] = "";
  cdl_error_t error{text, sizeof(text), 0};
  const cdl_code_t code = cdl_image_check(partition.image.data(), partition.image.size(), &error);
  if (code != CDL_OK)
    return {static_cast<Code>(code), fmt::format("partition {}: {}", index, text)};
  const auto* image = reinterpret_cast<const cdl_image_t*>(partition.image.data());
  if (executions(image) > kMaxExecutions)
    return badModel("partition {} runs more than {} instructions", index, kMaxExecutions);
  if (!partition.backend.empty() &&
      !text::isBackendName(text::parseDeviceName(partition.backend).backend))
    return badModel("partition {}: backend '{}' is no name of [a-z0-9_], with :N behind it or not",
                    index, partition.backend);
  if (partition.executable.size() && partition.backend.empty())
    return badModel("partition {} has an executable, but no backend", index);
  if (partition.executable.size()) return Status::ok(); // it holds its constants
  return verifyConstants(bundle, partition, image, index);
}

/// What reads a copy trusts its declared type.
Status verifyCopy(const Bundle& bundle, size_t index) {
  const BundleStep& step = bundle.steps[index];
  if (step.inputs.size() != 1 || step.outputs.size() != 1)
    return badModel("step {}: a copy has one value each", index);
  const BundleValue &from = bundle.values[step.inputs[0]], &to = bundle.values[step.outputs[0]];
  if (from.elem != to.elem || from.dims != to.dims)
    return badModel("step {}: {} of {} is copied to {} of {}", index, from.name, from.typeText(),
                    to.name, to.typeText());
  return Status::ok();
}

Status verifyRun(const Bundle& bundle, size_t index) {
  const BundleStep& step = bundle.steps[index];
  if (step.partition >= bundle.partitions.size())
    return badModel("step {} runs partition {} of {}", index, step.partition,
                    bundle.partitions.size());
  if ((step.kind == StepKind::soft) != bundle.partitions[step.partition].backend.empty())
    return badModel("step {} does not fit the backend of partition {}", index, step.partition);
  return verifyBindings(bundle, index);
}

Status verifyIndices(const Bundle& bundle, const std::vector<uint32_t>& list, const char* what) {
  for (uint32_t v : list)
    if (v >= bundle.values.size())
      return badModel("{} names value {} of {}", what, v, bundle.values.size());
  return Status::ok();
}

/// The values that have a content before the first step, without the inputs.
Result<std::vector<bool>> verifyValues(const Bundle& bundle) {
  std::vector<bool> known(bundle.values.size(), false);
  for (size_t v = 0; v < bundle.values.size(); ++v) {
    const BundleValue& value = bundle.values[v];
    if (value.elem == Elem::none || !elementCount(value.dims))
      return badModel("value {} has no type", value.name);
    if (value.constant == kNoConstant) continue;
    if (value.constant >= bundle.constants.size() ||
        bundle.constants[value.constant].bytes.size() < value.sizeBytes())
      return badModel("value {} has no content", value.name);
    known[v] = true;
  }
  return known;
}

/// Steps in order: each reads what is `known`, and makes its outputs known.
Status verifySteps(const Bundle& bundle, std::vector<bool>& known) {
  for (size_t s = 0; s < bundle.steps.size(); ++s) {
    const BundleStep& step = bundle.steps[s];
    CDL_TRY(verifyIndices(bundle, step.inputs, "a step"));
    CDL_TRY(verifyIndices(bundle, step.outputs, "a step"));
    for (uint32_t v : step.inputs)
      if (!known[v])
        return badModel("step {} reads value {} before it is computed", s, bundle.values[v].name);
    for (uint32_t v : step.outputs) {
      if (known[v]) return badModel("step {} computes value {} again", s, bundle.values[v].name);
      known[v] = true;
    }
    CDL_TRY(step.kind == StepKind::copy ? verifyCopy(bundle, s) : verifyRun(bundle, s));
  }
  return Status::ok();
}

} // namespace

Status verifyBundle(const Bundle& bundle) {
  for (size_t u = 0; bundle.flow && u < bundle.flow->units.size(); ++u)
    CDL_TRY(verifyBundle(bundle.flow->units[u]).context(fmt::format("unit {}", u)));
  if (bundle.flow) return Status::ok(); // its steps were checked when it was read
  CDL_ASSIGN(std::vector<bool> known, verifyValues(bundle));
  CDL_TRY(verifyIndices(bundle, bundle.inputs, "the bundle's inputs"));
  CDL_TRY(verifyIndices(bundle, bundle.outputs, "the bundle's outputs"));
  for (uint32_t v : bundle.inputs) known[v] = true;
  for (size_t p = 0; p < bundle.partitions.size(); ++p) CDL_TRY(verifyPartition(bundle, p));
  CDL_TRY(verifySteps(bundle, known));
  for (uint32_t v : bundle.outputs)
    if (!known[v]) return badModel("output {} is never computed", bundle.values[v].name);
  return verifyStates(bundle);
}

} // namespace candela::runtime::bundle
