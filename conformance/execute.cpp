#include "conformance/execute.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "conformance/judge/element_rule.h"
#include "conformance/port.h"
#include "conformance/repeated.h"
#include "conformance/trial_builder.h"
#include "core/compiler/driver/pipeline.h"
#include "core/compiler/lowering/emit/emit.h"
#include "core/compiler/program/image.h"
#include "core/support/float_bits.h"

namespace candela::conformance {
namespace {

using program::Program, program::Role;
using runtime::plugin::Device, runtime::plugin::DeviceMemory, runtime::plugin::Queue;

constexpr uint64_t kGuard = 256; ///< bytes before and behind each buffer, at least its alignment
constexpr std::byte kGuardByte{0xC5};
constexpr size_t kRuns = 3;
/// One trial in so many has one queue for all its runs, which a backend may mistake for a fresh
/// one.
constexpr uint64_t kQueueKeptIn = 4;

size_t asked = 0; ///< runs, by Repeated

bool isFed(Role role) { return role == Role::input || role == Role::inout || role == Role::state; }
bool isResult(Role role) {
  return role == Role::output || role == Role::inout || role == Role::state;
}
/// What a run must leave as it was; null where it may write.
const char* whatKeeps(Role role) {
  if (isResult(role) || role == Role::temp) return nullptr;
  return role == Role::constant ? "constant" : "input";
}

Result<Bytes> contentOf(const Payload& payload) {
  CDL_ASSIGN(const Tensor tensor, payload.materialize({payload.count()}));
  return tensor.bytes;
}

/// Bytes on the device, between guard bands.
struct Placed {
  std::shared_ptr<DeviceMemory> memory;
  uint64_t offset = 0, bytes = 0, size = 0;
  std::vector<std::byte> before; ///< what all of the memory held when the run began

  static Placed of(uint64_t bytes, uint64_t alignment, std::byte content) {
    Placed placed;
    placed.offset = (std::max(kGuard, alignment) + alignment - 1) / alignment * alignment;
    placed.bytes = bytes;
    placed.size = placed.offset + bytes + kGuard;
    placed.before.assign(placed.size, kGuardByte);
    std::fill_n(placed.content(), bytes, content);
    return placed;
  }
  std::byte* content() { return before.data() + offset; }
  bool isInside(uint64_t byte) const { return byte >= offset && byte - offset < bytes; }
  cdl_binding_t binding() const { return {memory->handle(), offset, bytes}; }
};

class Run {
public:
  Run(const Program& program, const cdl_image_t* image, Device& device, Queue& queue)
      : program_(program), image_(image), device_(device), queue_(queue) {}

  /// `poison` is what stands where nothing is known yet.
  Status place(std::span<const Tensor> inputs, std::byte poison, bool bindConstants) {
    bindings_.assign(image_->buffers.count, {});
    placed_.resize(program_.buffers.size());
    size_t next = 0;
    for (size_t b = 0; b < program_.buffers.size(); ++b) {
      const program::Buffer& buffer = program_.buffers[b];
      if (buffer.role == Role::constant && !bindConstants) continue;
      // the executable's own
      if (program_.spaces[buffer.space].local && device_.compiles()) continue;
      const uint64_t alignment =
          std::max<uint64_t>({buffer.alignment, device_.target().alignment(), 1});
      Placed& placed = placed_[b] = Placed::of(buffer.bytes, alignment, poison);
      std::byte* content = placed.content();
      if (isFed(buffer.role)) {
        const Tensor& given = inputs[next++];
        if (given.bytes.size() != buffer.bytes)
          return failure(Code::internal, "an input of {} bytes for buffer '{}' of {}",
                         given.bytes.size(), buffer.name, buffer.bytes);
        if (buffer.bytes) std::memcpy(content, given.bytes.data(), buffer.bytes);
      } else if (buffer.role == Role::constant) {
        CDL_ASSIGN(const Bytes data, contentOf(program_.constants[buffer.constant].payload));
        if (buffer.bytes) std::memcpy(content, data.data(), buffer.bytes);
      }
      CDL_TRY(put(placed, buffer.space, alignment));
      bindings_[b + 1] = placed.binding();
    }
    return queue_.drain();
  }

  /// What an executable asks for beside the buffers of its image.
  Status placeScratch(uint64_t bytes, std::byte poison) {
    if (bytes == 0) return Status::ok();
    constexpr uint64_t kAlignment = 64;
    scratch_ = Placed::of(bytes, kAlignment, poison);
    CDL_TRY(put(scratch_, 0, kAlignment));
    bindings_.push_back(scratch_.binding());
    return queue_.drain();
  }

  std::vector<cdl_binding_t>& bindings() { return bindings_; }

  /// The contents of the results, after everything around them was found unchanged.
  Result<std::vector<Bytes>> take() {
    CDL_TRY(queue_.drain());
    std::vector<Bytes> results;
    for (size_t b = 0; b < program_.buffers.size(); ++b) {
      const program::Buffer& buffer = program_.buffers[b];
      const Placed& placed = placed_[b];
      if (!placed.memory) continue;
      CDL_ASSIGN(const Bytes now, watched(placed, buffer.name, whatKeeps(buffer.role)));
      if (isResult(buffer.role)) results.push_back(now.slice(placed.offset, placed.bytes));
    }
    if (scratch_.memory) CDL_TRY(watched(scratch_, "scratch", nullptr).status());
    return results;
  }

private:
  Status put(Placed& placed, uint32_t space, uint64_t alignment) {
    CDL_ASSIGN(placed.memory, device_.allocate(space, placed.size, alignment));
    return queue_.write(*placed.memory, 0, placed.before.data(), placed.size);
  }

  /// All of the memory, after its bands were found unchanged, and the bytes between them too where
  /// they are one that `keeps` what it has.
  Result<Bytes> watched(const Placed& placed, const std::string& name, const char* keeps) {
    CDL_ASSIGN(Bytes now, Bytes::allocate(placed.size));
    CDL_TRY(queue_.read(*placed.memory, 0, now.mutableData(), placed.size));
    for (uint64_t i = 0; i < placed.size; ++i) {
      const bool inside = placed.isInside(i);
      if ((inside && !keeps) || now.data()[i] == placed.before[i]) continue;
      if (inside)
        return failure(Code::mismatch, "byte {} of the {} '{}' was changed", i - placed.offset,
                       keeps, name);
      return failure(Code::mismatch, "guard band of '{}' ({} bytes) was written: byte {}", name,
                     placed.bytes, static_cast<int64_t>(i) - static_cast<int64_t>(placed.offset));
    }
    return now;
  }

  const Program& program_;
  const cdl_image_t* image_;
  Device& device_;
  Queue& queue_;
  std::vector<Placed> placed_;
  Placed scratch_;
  std::vector<cdl_binding_t> bindings_;
};

/// A Program on a device: through the program API compiled once, through the primitive API as it
/// stands. A device that computes on local memories gets it in tiles.
class OnDevice {
  /// With the constants where the target wants them.
  static Program inMemoryOf(const capabilities::Target& target, Program program) {
    if (!target.constantSpace()) return program;
    program.spaces = lowering::emit::spacesOf(target);
    program::placeConstants(program);
    return program;
  }

public:
  OnDevice(const Program& program, std::shared_ptr<Device> device)
      : program_(inMemoryOf(device->target(), program)), image_(program::toImage(program_)),
        device_(std::move(device)) {}
  /// Before compile. Failure: no tile fits.
  Status tile() {
    CDL_TRY(driver::tileFor(device_->target(), program_));
    image_ = program::toImage(program_);
    return Status::ok();
  }
  ~OnDevice() {
    if (executable_)
      runtime::plugin::endBySlot(device_->table().name,
                                 CDL_SLOT(device_->table(), executable_destroy), device_->handle(),
                                 executable_);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  const cdl_image_t* image() const { return reinterpret_cast<const cdl_image_t*>(image_.data()); }

  Status compile() {
    if (!device_->compiles()) return Status::ok();
    std::vector<Bytes> payloads(image()->constants.count);
    std::vector<const void*> pointers(image()->constants.count, nullptr);
    for (size_t c = 0; c < program_.constants.size(); ++c) {
      if (cdl_get_constant(image(), static_cast<uint32_t>(c + 1))->form != 0) continue;
      CDL_ASSIGN(payloads[c + 1], contentOf(program_.constants[c].payload));
      pointers[c + 1] = payloads[c + 1].data();
    }
    cdl_refusal_t refusal{};
    refusal.header = CDL_HEADER(cdl_refusal_t);
    if (Status status = runtime::plugin::callSlot("compile", CDL_SLOT(device_->table(), compile),
                                                  device_->handle(), image(), pointers.data(),
                                                  &executable_, &refusal);
        !status) {
      executable_ = nullptr;
      return status.code() == Code::refused
                 ? status.context(fmt::format("instruction {}", refusal.instr))
                 : status;
    }
    if (!executable_) return failure(Code::internal, "compile succeeded without an executable");
    if (!device_->table().executable_support) return Status::ok();
    std::vector<uint8_t> support(image()->instrs.count, CDL_SUPPORT_NONE);
    CDL_TRY(runtime::plugin::callSlot("executable_support",
                                      CDL_SLOT(device_->table(), executable_support), executable_,
                                      support.data(), static_cast<uint32_t>(support.size())));
    for (size_t i = 1; i < support.size(); ++i)
      if (support[i] != CDL_SUPPORT_NATIVE)
        return failure(Code::mismatch, "a row calls {} NATIVE, the executable does not",
                       program_.instrName(static_cast<uint32_t>(i - 1)));
    return Status::ok();
  }

  /// On a queue of its own, or on the one of the runs before.
  Result<std::vector<Bytes>> run(std::span<const Tensor> inputs, std::byte poison,
                                 bool keepsQueue = false) {
    std::shared_ptr<Queue> queue = std::move(kept_);
    if (!queue) {
      CDL_ASSIGN(queue, device_->createQueue());
    }
    if (keepsQueue) kept_ = queue;
    Run run(program_, image(), *device_, *queue);
    CDL_TRY(run.place(inputs, poison, !(executable_ && device_->table().executable_load)));
    if (executable_ && device_->table().executable_scratch)
      CDL_TRY(run.placeScratch(device_->table().executable_scratch(executable_), poison));
    cdl_bindings_t bindings{};
    bindings.header = CDL_HEADER(cdl_bindings_t);
    bindings.count = static_cast<uint32_t>(run.bindings().size());
    bindings.buffers = run.bindings().data();
    if (executable_) {
      const uint64_t done = queue->next();
      CDL_TRY(runtime::plugin::callSlot("execute", CDL_SLOT(device_->table(), execute),
                                        queue->handle(), executable_, &bindings, nullptr,
                                        uint32_t{0}, cdl_timeline_t{queue->handle(), done}));
      CDL_TRY(queue->wait(done));
    } else {
      int64_t loops[CDL_MAX_LOOP_NESTING] = {};
      for (uint32_t i = 1; i < image()->instrs.count; i = cdl_next_instr(image(), i, loops))
        CDL_TRY(runtime::plugin::callSlot("run", CDL_SLOT(device_->table(), run), queue->handle(),
                                          image(), i, uint32_t{1}, loops, &bindings));
    }
    return run.take();
  }

private:
  Program program_;
  Bytes image_;
  std::shared_ptr<Device> device_;
  cdl_executable_t* executable_ = nullptr;
  std::shared_ptr<Queue> kept_;
};

/// The answer with the oracle's bits wherever one of several is right and stands there.
Result<Tensor> settled(const Tensor& want, const std::map<int64_t, std::vector<uint64_t>>& anyOf,
                       const Bytes& got) {
  Tensor answer{want.elem, want.dims, Bytes::copyOf(got.data(), got.size())};
  for (const auto& [e, allowed] : anyOf) {
    const uint64_t bits = loadElement(want.elem, got.data(), e);
    if (std::ranges::find(allowed, bits) == allowed.end())
      return failure(Code::mismatch, "element {}: expected bits {:#x}{}, got {:#x}", e, allowed[0],
                     allowed.size() > 1 ? fmt::format(" or {} others", allowed.size() - 1) : "",
                     bits);
    storeElement(want.elem, answer.bytes.mutableData(), e,
                 loadElement(want.elem, want.bytes.data(), e));
  }
  return answer;
}

// ---- Devices without denormals

/// By the device's flags.
bool flushes(uint32_t flags, Elem elem) {
  const bool isHalf = elem == Elem::f16_ || elem == Elem::bf16_;
  return (elem == Elem::f32_ && (flags & CDL_DEVICE_FTZ_F32)) ||
         (isHalf && (flags & CDL_DEVICE_FTZ_F16));
}

bool isDenormal(Elem elem, uint64_t bits) {
  const double size = std::abs(toReal(elem, bits));
  return size > 0 && size < judge::leastNormalOf(elem);
}

Tensor withoutDenormals(const Tensor& from, bool keepsSign) {
  Tensor tensor{from.elem, from.dims, Bytes::copyOf(from.bytes.data(), from.sizeBytes())};
  for (int64_t e = 0; e < tensor.count(); ++e)
    if (const uint64_t bits = loadElement(from.elem, from.bytes.data(), e);
        isDenormal(from.elem, bits))
      storeElement(from.elem, tensor.bytes.mutableData(), e,
                   fromReal(from.elem, keepsSign ? std::copysign(0, toReal(from.elem, bits)) : 0));
  return tensor;
}

/// What is right when operands count as 0 where they are denormal, with their sign or without it.
Result<judge::Expectation> judgeWithoutDenormals(const Trial& trial, std::span<const Tensor> inputs,
                                                 uint32_t flags, bool keepsSign) {
  Program program = trial.program;
  for (const program::Instr& instr : program.instrs)
    for (const program::View& view : instr.inputs) {
      if (!flushes(flags, view.elem) || program.buffers[view.buffer].role != Role::constant)
        continue;
      Payload& payload = program.constants[program.buffers[view.buffer].constant].payload;
      CDL_ASSIGN(const Bytes content, contentOf(payload));
      const auto count = static_cast<int64_t>(content.size() * 8) / elemBits(view.elem);
      payload = Payload::data(withoutDenormals({view.elem, {count}, content}, keepsSign));
    }
  std::vector<Tensor> flushed(inputs.begin(), inputs.end());
  for (Tensor& tensor : flushed)
    if (flushes(flags, tensor.elem)) tensor = withoutDenormals(tensor, keepsSign);
  return trial.judge(program, flushed);
}

/// The answer with the oracle's denormals wherever a zero stands for one.
Bytes unflushed(const Tensor& want, const Bytes& got) {
  Bytes answer = Bytes::copyOf(got.data(), got.size());
  for (int64_t e = 0; e < want.count(); ++e)
    if (const uint64_t w = loadElement(want.elem, want.bytes.data(), e);
        isDenormal(want.elem, w) && toReal(want.elem, loadElement(want.elem, got.data(), e)) == 0)
      storeElement(want.elem, answer.mutableData(), e, w);
  return answer;
}

Status compare(const judge::Expectation& expected, size_t i, const Bytes& given, uint32_t flags) {
  const Tensor& want = expected.outputs[i];
  const Bytes got = flushes(flags, want.elem) && !expected.bits[i] ? unflushed(want, given) : given;
  Tensor answer{want.elem, want.dims, got};
  if (!expected.anyOf.empty()) {
    CDL_ASSIGN(answer, settled(want, expected.anyOf[i], got));
  }
  if (expected.bits[i]) {
    for (int64_t e = 0; e < want.count(); ++e)
      if (const uint64_t w = loadElement(want.elem, want.bytes.data(), e),
          g = loadElement(want.elem, answer.bytes.data(), e);
          w != g)
        return failure(Code::mismatch, "element {}: expected bits {:#x}, got {:#x}", e, w, g);
  } else if (const std::string text = judge::outside(expected.intervals[i], answer);
             !text.empty()) {
    return failure(Code::mismatch, "{}", text);
  } else if (!expected.exact.empty() && !expected.exact[i].empty()) {
    for (int64_t e = 0; e < want.count(); ++e)
      if (const uint64_t w = loadElement(want.elem, want.bytes.data(), e),
          g = loadElement(want.elem, got.data(), e);
          expected.exact[i][static_cast<size_t>(e)] && w != g)
        return failure(Code::mismatch, "element {}: expected bits {:#x}, got {:#x}", e, w, g);
  }
  return expected.roundings.empty() ? Status::ok()
                                    : judge::checkRounding(expected.roundings[i], answer);
}

Status compare(const judge::Expectation& expected, const std::vector<Bytes>& got, uint32_t flags) {
  if (got.size() != expected.outputs.size())
    return failure(Code::internal, "{} results, {} expected", got.size(), expected.outputs.size());
  for (size_t i = 0; i < got.size(); ++i)
    CDL_TRY(compare(expected, i, got[i], flags).context(fmt::format("result {}", i)));
  return Status::ok();
}

/// A step of the instruction's expression whose function the target lacks as an instruction, or
/// only emulates: rows name the kinds of steps alone, so that they promise no more functions than
/// rows have. "" when there is none.
std::string strangeStep(const capabilities::Target& target, const cdl_image_t* image, uint32_t i,
                        capabilities::Support whole) {
  const capabilities::InstrDesc asked = runtime::plugin::describe(image, i);
  const cdl_expr_t* expr = cdl_get_expr(image, cdl_get_instr(image, i)->expr);
  for (uint32_t s = 0; s < expr->steps; ++s) {
    const cdl_step_t& step = *cdl_get_step(image, expr->first_step + s);
    capabilities::InstrDesc alone{step.kind, step.fn, {}, {}, 0};
    for (uint32_t k = 0; k <= step.operands; ++k) {
      alone.operands.push_back(asked.operands.back());
      alone.operands.back().elem =
          static_cast<Elem>(k < step.operands ? step.in[k].elem : step.elem);
      alone.operands.back().layout = {};
    }
    const capabilities::Answer answer = target.query(alone);
    const bool lacks =
        answer.support == capabilities::Support::none && answer.reason == CDL_REASON_NO_ROW;
    if (lacks || (answer.support == capabilities::Support::emulated &&
                  whole == capabilities::Support::native))
      return fmt::format("step {}: {}", s + 1, answer.detail.empty() ? "emulated" : answer.detail);
  }
  return "";
}

/// What the device's rows say of the program: passed where they claim all of it as NATIVE, emulated
/// where they take it otherwise, or unsupported, with the reason.
CaseResult claimOf(const Trial& trial, const capabilities::Target& target,
                   const cdl_image_t* image) {
  CaseResult result = CaseResult::passed();
  for (uint32_t i = 1; i < image->instrs.count; ++i) {
    const capabilities::Answer answer = target.query(runtime::plugin::describe(image, i));
    if (answer.support == capabilities::Support::none)
      return CaseResult::unsupported(answer.detail);
    if (answer.support == capabilities::Support::emulated)
      result.outcome = CaseResult::Outcome::emulated;
    if (!trial.trustsSteps)
      if (const std::string why = strangeStep(target, image, i, answer.support); !why.empty())
        return CaseResult::unsupported(why);
    const bool takesLoops =
        target.rows()[static_cast<size_t>(answer.row)].row.flags & CDL_ROW_DYNAMIC_LOOPS;
    if (cdl_get_instr(image, i)->loop && !takesLoops)
      return CaseResult::unsupported(fmt::format("row {} does not stand in `for`", answer.row));
  }
  return result;
}

Status compileClaimed(OnDevice& subject) {
  const Status status = subject.compile();
  if (status || status.code() != Code::refused) return status;
  return failure(Code::mismatch, "a row calls it NATIVE, but compile refused {}", status.message());
}

/// As `compare`; on a device that counts denormal operands as zeros, what is right with zeros in
/// their place is right too.
Status compareOnDevice(const Trial& trial, std::span<const Tensor> inputs,
                       const judge::Expectation& expected, const std::vector<Bytes>& got,
                       uint32_t flags, const std::string& who) {
  const Status right = compare(expected, got, flags);
  const bool hasDenormals = !(flags & (CDL_DEVICE_FTZ_F32 | CDL_DEVICE_FTZ_F16));
  if (right || hasDenormals) return right.context(who);
  for (const bool keepsSign : {true, false}) {
    CDL_ASSIGN(const judge::Expectation flushed,
               judgeWithoutDenormals(trial, inputs, flags, keepsSign));
    if (compare(flushed, got, flags)) return Status::ok();
  }
  return right.context(who);
}

Status requireSameBytes(const std::vector<Bytes>& first, const std::vector<Bytes>& again) {
  for (size_t i = 0; i < first.size(); ++i)
    if (first[i].size() && std::memcmp(first[i].data(), again[i].data(), first[i].size()) != 0)
      return failure(Code::mismatch, "result {}: {}, of a device that calls itself deterministic",
                     i, kOtherBytes);
  return Status::ok();
}

/// How many elements were judged, and how many of them by bounds that are close together.
struct Tightness {
  int64_t count = 0, tight = 0;

  void add(const judge::Expectation& expected) {
    for (const judge::Interval& interval : expected.intervals) {
      count += interval.count();
      tight += interval.tight();
    }
  }
};

/// Whether all runs of a trial have one queue: by what the case is and nothing else, so that it has
/// the same queue when it is run alone.
bool keepsQueue(const Trial& trial) {
  const program::Instr& instr = trial.program.instrs[0];
  return asked ||
         (!instr.provenance.empty() && seedOf(instr.provenance[0].node) % kQueueKeptIn == 0);
}

/// Runs alternate between two sets of inputs. Failure: a run that fails, or with a wrong result.
Result<Tightness> runAlternately(const Trial& trial, OnDevice& subject, const Device& device) {
  const uint32_t flags = device.table().device_capabilities(device.handle())->flags;
  constexpr std::byte poisons[] = {std::byte{0xA7}, std::byte{0x58}, std::byte{0xFF}};
  const size_t runs = asked ? asked : kRuns;
  const bool oneQueue = keepsQueue(trial);
  std::vector<Bytes> first;
  std::vector<Tensor> inputs[2]; // by salt: the last run has those of the first one
  judge::Expectation expected[2];
  Tightness tightness;
  for (size_t r = 0; r < runs; ++r) {
    const uint64_t salt = r % 2;
    const bool isNew = r < 2;
    if (isNew) {
      CDL_ASSIGN(inputs[salt], trial.inputs(salt));
    }
    const std::string who = fmt::format("run {}", r + 1);
    const auto got = subject.run(inputs[salt], poisons[r % std::size(poisons)], oneQueue);
    if (!got) return got.status().context(who);
    if (isNew) {
      CDL_ASSIGN(expected[salt], trial.judge(trial.program, inputs[salt]));
      tightness.add(expected[salt]);
    }
    CDL_TRY(compareOnDevice(trial, inputs[salt], expected[salt], *got, flags, who));
    if (r == 0)
      first = *got;
    else if (salt == 0 && (flags & CDL_DEVICE_DETERMINISTIC))
      CDL_TRY(requireSameBytes(first, *got));
  }
  return tightness;
}

Result<CaseResult> attempt(const Trial& trial, Port& port) {
  CDL_ASSIGN(const std::shared_ptr<Device> device, port.device());
  OnDevice subject(trial.program, device);
  CaseResult result = claimOf(trial, device->target(), subject.image());
  if (result.outcome != CaseResult::Outcome::passed) return result;
  CDL_TRY(subject.tile());
  CDL_TRY(compileClaimed(subject));
  result.work.nodes = trial.program.instrs.size();
  result.work.nativeNodes = result.work.nodes;
  CDL_ASSIGN(const Tightness bounds, runAlternately(trial, subject, *device));
  if (bounds.tight * 10 < bounds.count * 9) {
    result.outcome = CaseResult::Outcome::mistrusted;
    result.reason = fmt::format("bounds of {} of {} elements are wider than a tenth of them",
                                bounds.count - bounds.tight, bounds.count);
  }
  return result;
}

} // namespace

Repeated::Repeated(size_t runs) { asked = runs; }
Repeated::~Repeated() { asked = 0; }

program::Space defaultSpace(const capabilities::Target& target) {
  return lowering::emit::spacesOf(target).front();
}

/// How the port answers to what it must refuse; `claims` says whether a row takes it at all.
Status refuse(const Trial& trial, Port& port, bool& claims) {
  CDL_ASSIGN(const std::shared_ptr<Device> device, port.device());
  OnDevice subject(trial.program, device);
  const cdl_image_t* image = subject.image();
  CDL_TRY(runtime::plugin::callSlot("cdl_image_check", cdl_image_check, image, image->size));
  const capabilities::Answer answer = device->target().query(runtime::plugin::describe(image, 1));
  claims = answer.support == capabilities::Support::native;
  if (!claims) return failure(Code::unsupported, "{}", answer.detail);
  CDL_TRY(subject.tile());
  CDL_TRY(subject.compile());
  CDL_ASSIGN(const std::vector<Tensor> inputs, trial.inputs(0));
  return subject.run(inputs, std::byte{0xA7}).status();
}

CaseResult tryRefusal(const Trial& trial, Port& port) {
  bool claims = true;
  const Status status = refuse(trial, port, claims);
  if (!claims) return CaseResult::unsupported(status.message());
  switch (status.code()) {
  case Code::bad_model:
  case Code::refused: return CaseResult::passed();
  case Code::ok:
    return CaseResult::of(failure(Code::mismatch, "was taken, expected bad_model or refused"));
  default:
    return CaseResult::of(failure(Code::mismatch, "gave {}, expected bad_model or refused: {}",
                                  codeName(status.code()), status.message()));
  }
}

CaseResult tryOut(const Trial& trial, Port& port) {
  auto result = attempt(trial, port);
  return result ? std::move(*result) : CaseResult::of(result.status());
}

} // namespace candela::conformance
