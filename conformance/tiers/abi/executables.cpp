// Executables: refusals, constants, copies at work at once, and blobs that are damaged in any way.
#include <cstring>
#include <thread>

#include "conformance/tiers/abi/abi.h"
#include "core/support/threads.h"

namespace candela::conformance::tiers::abi {
namespace {

struct Prepared {
  std::unique_ptr<RawDevice> device;
  std::unique_ptr<Work> work;
};

/// Runs a check on an executable of the claimed sample; without the program API, or the slot, it is
/// unsupported by name.
Check onExecutable(const char* slot, bool (*has)(const cdl_plugin_t&),
                   Outcome (*check)(RawDevice&, Work&)) {
  return [=](Port& port) -> Outcome {
    CDL_ASSIGN(const Sample* sample, claimedSample(port));
    CDL_ASSIGN(const auto device, RawDevice::open(port));
    if (!device->compiles()) return missing("compile");
    if (has && !has(device->table)) return missing(slot);
    if (!sample) return nothingClaimed();
    CDL_ASSIGN(const auto work, Work::on(*device, *sample));
    return check(*device, *work);
  };
}

/// y = x + c, whose constant is gone after compile.
Outcome constantsAreCopied(Port& port) {
  Sample sample = samples()[0];
  sample.name += " with a constant";
  program::Program& program = sample.program;
  const std::vector<float> values(24, 2.0f);
  program::Buffer& buffer = program.buffers[1];
  buffer.role = program::Role::constant;
  buffer.constant = 0;
  program.constants.push_back({"c", Payload::data(Tensor::of<float>(Elem::f32_, {24}, values))});
  const Bytes image = imageOf(sample);
  CDL_ASSIGN(const auto opened, port.device());
  if (!opened->compiles()) return missing("compile");
  const auto desc =
      runtime::plugin::describe(reinterpret_cast<const cdl_image_t*>(image.data()), 1);
  if (opened->target().query(desc).support != capabilities::Support::native)
    return nothingClaimed();
  CDL_ASSIGN(const auto device, RawDevice::open(port));
  CDL_ASSIGN(const Sample* ready, inTiles(port, sample));
  CDL_ASSIGN(const auto work, Work::on(*device, *ready)); // its payloads are gone when it returns
  CDL_ASSIGN(const std::string result, work->runWell());
  CDL_ASSIGN(const std::string x, device->read(work->queue, work->buffers[1].memory, 96));
  for (size_t i = 0; i < 24; ++i) {
    float in = 0, out = 0;
    std::memcpy(&in, x.data() + 4 * i, 4), std::memcpy(&out, result.data() + 4 * i, 4);
    if (out != in + 2) return wrong("element {}: {} + 2 gives {}", i, in, out);
  }
  return CaseResult::passed();
}

/// A refusal record that ends after its header, or in its middle, between guards; and none at all.
Outcome shortRefusals(Port& port) {
  CDL_ASSIGN(const auto device, RawDevice::open(port));
  if (!device->compiles()) return missing("compile");
  Sample sample = samples()[0];
  for (program::Buffer& buffer : sample.program.buffers) buffer.bytes *= 2;
  program::Instr& instr = sample.program.instrs[0];
  for (auto* views : {&instr.inputs, &instr.outputs})
    for (program::View& view : *views) view.elem = Elem::f64_;
  const Bytes bytes = imageOf(sample);
  const void* constants[1] = {};
  for (size_t known :
       {size_t(0), sizeof(cdl_header_t), offsetof(cdl_refusal_t, reason), sizeof(cdl_refusal_t)}) {
    cdl_refusal_t whole{};
    whole.header = CDL_HEADER(cdl_refusal_t);
    whole.header.struct_size = static_cast<uint16_t>(known);
    CDL_ASSIGN(const PageEnd refusal, PageEnd::of(&whole, std::max(known, size_t(1))));
    cdl_executable_t* executable = nullptr;
    Said said;
    const cdl_code_t code = device->table.compile(
        device->handle, reinterpret_cast<const cdl_image_t*>(bytes.data()), constants, &executable,
        known ? refusal.as<cdl_refusal_t>() : nullptr, said.error());
    if (executable) device->table.executable_destroy(device->handle, executable);
    if (code == CDL_OK) return CaseResult::unsupported("it compiles even what no row claims");
    CDL_TRY(refusedBy("f64, which no row claims", code, said, {CDL_REFUSED}));
    if (known < sizeof whole) continue;
    std::memcpy(&whole, refusal.data(), sizeof whole);
    if (whole.instr > 1) return wrong("instruction {} of 1 is refused", whole.instr);
  }
  return CaseResult::passed();
}

Outcome manyAtOnce(RawDevice& device, Work& work) {
  CDL_ASSIGN(const Bytes image, Result<Bytes>(Bytes::copyOf(work.image(), work.image()->size)));
  std::vector<cdl_executable_t*> made(8, nullptr);
  std::vector<cdl_code_t> codes(made.size(), CDL_OK);
  const void* constants[1] = {};
  atTheSameTime(made.size(), [&](size_t i) {
    codes[i] =
        device.table.compile(device.handle, work.image(), constants, &made[i], nullptr, nullptr);
  });
  Status status = Status::ok();
  for (size_t i = 0; i < made.size(); ++i) {
    if (codes[i] != CDL_OK || !made[i])
      status = wrong("compile on thread {}: {}", i + 1, nameOf(codes[i]));
    for (size_t k = 0; k < i; ++k)
      if (made[i] && made[i] == made[k]) status = wrong("two compilations gave one executable");
  }
  if (status) status = work.runWell().status();
  for (size_t i : {0, 7, 3, 1, 2, 6, 5, 4})
    if (made[i]) device.table.executable_destroy(device.handle, made[i]);
  CDL_TRY(status);
  CDL_TRY(work.runWell().status().context("after others were destroyed"));
  return CaseResult::passed();
}

/// One executable on two queues at once, on different memory.
Outcome inFlightTwice(RawDevice& device, Work& work) {
  CDL_ASSIGN(const std::string expected, work.runWell());
  struct Lane {
    cdl_queue_t* queue = nullptr;
    std::vector<cdl_binding_t> buffers;
    Status status;
  };
  std::vector<Lane> lanes(2);
  for (Lane& lane : lanes) {
    CDL_ASSIGN(lane.queue, device.queue());
    lane.buffers = work.buffers;
    for (size_t b = 1; b < lane.buffers.size(); ++b) {
      if (!lane.buffers[b].memory) continue;
      CDL_ASSIGN(const std::string content,
                 device.read(work.queue, work.buffers[b].memory, work.buffers[b].bytes));
      CDL_ASSIGN(lane.buffers[b].memory,
                 device.memory(lane.queue,
                               b == work.output() ? std::string(content.size(), '\0') : content));
    }
  }
  atTheSameTime(lanes.size(), [&](size_t i) {
    Lane& lane = lanes[i];
    cdl_bindings_t bindings = work.bindings();
    bindings.buffers = lane.buffers.data();
    for (uint64_t turn = 1; turn <= 50 && lane.status; ++turn) {
      Said said;
      cdl_code_t code = device.table.execute(lane.queue, work.executable, &bindings, nullptr, 0,
                                             cdl_timeline_t{lane.queue, turn}, said.error());
      if (code == CDL_OK)
        code = device.table.queue_wait(lane.queue, turn, UINT64_MAX, said.error());
      lane.status = succeeded(fmt::format("execution {}", turn), code, said);
    }
  });
  for (Lane& lane : lanes) {
    CDL_TRY(lane.status);
    CDL_ASSIGN(const std::string result,
               device.read(lane.queue, lane.buffers[work.output()].memory, expected.size()));
    if (result != expected) return wrong("two executions at once give another result than one");
  }
  return CaseResult::passed();
}

/// It begins after what it waits for, and its signal may be of another queue, or of none.
Outcome waitsAndSignals(RawDevice& device, Work& work) {
  CDL_ASSIGN(const std::string expected, work.runWell());
  CDL_ASSIGN(cdl_queue_t * other, device.queue());
  Said said;
  CDL_TRY(succeeded("queue_signal", device.table.queue_signal(other, 3, said.error()), said));
  const cdl_bindings_t bindings = work.bindings();
  const cdl_timeline_t reached[] = {{other, 3}, {other, 1}};
  CDL_TRY(succeeded("execute that waits for what is reached",
                    device.table.execute(work.queue, work.executable, &bindings, reached, 2,
                                         cdl_timeline_t{other, 4}, said.error()),
                    said));
  CDL_TRY(succeeded("a wait for the signal on the other queue",
                    device.table.queue_wait(other, 4, UINT64_MAX, said.error()), said));
  CDL_TRY(succeeded("execute without a signal",
                    device.table.execute(work.queue, work.executable, &bindings, nullptr, 0,
                                         cdl_timeline_t{}, said.error()),
                    said));
  CDL_ASSIGN(const std::string result, work.result());
  return result == expected ? CaseResult::passed()
                            : Outcome(wrong("another result than of a plain execution"));
}

Outcome scratchIsStable(RawDevice& device, Work& work) {
  const uint64_t first = device.table.executable_scratch(work.executable);
  CDL_TRY(work.runWell().status());
  if (const uint64_t second = device.table.executable_scratch(work.executable); second != first)
    return wrong("{} bytes of scratch, then {}", first, second);
  return CaseResult::passed();
}

Outcome supportIsFilled(RawDevice& device, Work& work) {
  constexpr uint8_t kGuard = 0xEE;
  uint8_t support[] = {kGuard, kGuard, kGuard, kGuard};
  Said said;
  CDL_TRY(succeeded("executable_support",
                    device.table.executable_support(work.executable, support, 2, said.error()),
                    said));
  if (support[1] != CDL_SUPPORT_NATIVE)
    return wrong("a row calls it NATIVE, the executable says {}", support[1]);
  if (support[2] != kGuard || support[3] != kGuard)
    return wrong("more than 2 entries were written");
  return CaseResult::passed();
}

/// A writer that fails from its `good`th write on; negative: never.
struct Sink {
  std::string bytes;
  int good = -1;
  cdl_writer_t writer() {
    return {this, [](void* context, const void* data, uint64_t size) -> int {
              Sink& sink = *static_cast<Sink*>(context);
              if (sink.good == 0) return 0;
              if (sink.good > 0) --sink.good;
              sink.bytes.append(static_cast<const char*>(data), size);
              return 1;
            }};
  }
};

Result<std::string> save(RawDevice& device, cdl_executable_t* executable) {
  Sink sink;
  const cdl_writer_t writer = sink.writer();
  Said said;
  CDL_TRY(succeeded("executable_save",
                    device.table.executable_save(executable, &writer, said.error()), said));
  if (sink.bytes.empty()) return wrong("executable_save wrote nothing");
  return sink.bytes;
}

/// A blob where executable_load is given it: aligned to 64, or at the end of a page.
struct Blob {
  std::vector<char> room;
  const void* at;
  uint64_t size;
  explicit Blob(const std::string& bytes) : room(bytes.size() + 64), size(bytes.size()) {
    char* start = room.data() + (64 - reinterpret_cast<uintptr_t>(room.data()) % 64) % 64;
    std::memcpy(start, bytes.data(), size);
    at = start;
  }
};

Outcome savedAndLoaded(RawDevice& device, Work& work) {
  CDL_ASSIGN(const std::string expected, work.runWell());
  CDL_ASSIGN(const std::string bytes, save(device, work.executable));
  for (const char* which : {"the first save", "the second save"}) {
    CDL_ASSIGN(const std::string again, save(device, work.executable));
    const Blob blob(std::string_view(which) == "the first save" ? bytes : again);
    cdl_executable_t* loaded = nullptr;
    Said said;
    CDL_TRY(succeeded(fmt::format("executable_load of {}", which),
                      device.table.executable_load(device.handle, work.image(), blob.at, blob.size,
                                                   &loaded, said.error()),
                      said));
    if (!loaded) return wrong("executable_load succeeded without an executable");
    std::swap(work.executable, loaded);
    auto result = work.runWell();
    if (result) {
      const cdl_binding_t& output = work.buffers[work.output()];
      const std::string poison(output.bytes, '\x11');
      const cdl_code_t code = device.table.queue_write(work.queue, output.memory, 0, poison.data(),
                                                       poison.size(), said.error());
      result = code == CDL_OK ? work.runWell()
                              : Result<std::string>(succeeded("queue_write", code, said));
    }
    std::swap(work.executable, loaded);
    device.table.executable_destroy(device.handle, loaded);
    CDL_TRY(result.status());
    if (*result != expected) return wrong("{} gives another result than what was compiled", which);
  }
  return CaseResult::passed();
}

/// That a blob does not load, by one of the two codes.
Status doesNotLoad(RawDevice& device, const cdl_image_t* image, const std::string& bytes,
                   std::string_view what) {
  const Blob blob(bytes);
  cdl_executable_t* loaded = nullptr;
  Said said;
  const cdl_code_t code =
      device.table.executable_load(device.handle, image, blob.at, blob.size, &loaded, said.error());
  if (loaded) device.table.executable_destroy(device.handle, loaded);
  return refusedBy(what, code, said, {CDL_BAD_MODEL, CDL_INCOMPATIBLE});
}

Outcome truncatedBlobs(RawDevice& device, Work& work) {
  CDL_ASSIGN(const std::string bytes, save(device, work.executable));
  for (size_t size : {size_t(0), size_t(1), size_t(7), size_t(8), size_t(63), bytes.size() / 4,
                      bytes.size() / 2, bytes.size() - 64, bytes.size() - 1})
    if (size < bytes.size())
      CDL_TRY(doesNotLoad(device, work.image(), bytes.substr(0, size),
                          fmt::format("a blob of {} of {} bytes", size, bytes.size())));
  CDL_TRY(doesNotLoad(device, work.image(), bytes + std::string(64, '\0'),
                      "a blob with 64 bytes more"));
  return CaseResult::passed();
}

Outcome changedBlobs(RawDevice& device, Work& work) {
  CDL_ASSIGN(const std::string bytes, save(device, work.executable));
  for (size_t n = 0; n < 64; ++n) {
    // of the header, and all over
    const size_t at = n < 32 ? n * 6 % bytes.size() : bytes.size() * (n - 31) / 34;
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ (1 << n % 8));
    CDL_TRY(
        doesNotLoad(device, work.image(), changed, fmt::format("a blob with byte {} changed", at)));
  }
  CDL_TRY(doesNotLoad(device, work.image(), std::string(bytes.size(), '\0'), "a blob of zeros"));
  CDL_TRY(doesNotLoad(device, work.image(), std::string(bytes.size(), '\xFF'), "a blob of ones"));
  return CaseResult::passed();
}

Outcome blobOfAnotherImage(RawDevice& device, Work& work) {
  CDL_ASSIGN(const std::string bytes, save(device, work.executable));
  Sample other = samples()[0];
  other.program.name = "another";
  const Bytes image = imageOf(other);
  CDL_TRY(doesNotLoad(device, reinterpret_cast<const cdl_image_t*>(image.data()), bytes,
                      "a blob of another image"));
  return CaseResult::passed();
}

/// A writer that fails, at once or later.
Outcome failingWriter(RawDevice& device, Work& work, const char* slot,
                      cdl_code_t (*write)(RawDevice&, Work&, const cdl_writer_t*, cdl_error_t*)) {
  for (int good = 0; good < 64; ++good) {
    Sink sink;
    sink.good = good;
    const cdl_writer_t writer = sink.writer();
    Said said;
    const cdl_code_t code = write(device, work, &writer, said.error());
    // it makes no more writes than that
    if (code == CDL_OK && good > 0) return CaseResult::passed();
    CDL_TRY(refusedBy(fmt::format("{} whose writer fails after {} writes", slot, good), code, said,
                      {CDL_IO}));
  }
  return CaseResult::passed();
}
Outcome saveFails(RawDevice& device, Work& work) {
  return failingWriter(device, work, "executable_save",
                       [](RawDevice& d, Work& w, const cdl_writer_t* writer, cdl_error_t* error) {
                         return d.table.executable_save(w.executable, writer, error);
                       });
}
Outcome emits(RawDevice& device, Work& work) {
  Sink sink;
  const cdl_writer_t writer = sink.writer();
  Said said;
  const cdl_code_t code = device.table.emit(device.handle, work.executable, &writer, said.error());
  if (code == CDL_UNSUPPORTED) return CaseResult::unsupported(said.text());
  CDL_TRY(succeeded("emit", code, said));
  return sink.bytes.empty() ? Outcome(wrong("emit wrote nothing")) : CaseResult::passed();
}
Outcome emitFails(RawDevice& device, Work& work) {
  // Some executables have no object code, whoever would take it.
  CDL_ASSIGN(CaseResult sound, emits(device, work));
  if (sound.outcome != CaseResult::Outcome::passed) return sound;
  return failingWriter(device, work, "emit",
                       [](RawDevice& d, Work& w, const cdl_writer_t* writer, cdl_error_t* error) {
                         return d.table.emit(d.handle, w.executable, writer, error);
                       });
}

} // namespace

std::vector<Named> executableChecks() {
  const auto has = [](auto slot) { return slot; };
  const auto scratch = has([](const cdl_plugin_t& t) { return t.executable_scratch != nullptr; });
  const auto support = has([](const cdl_plugin_t& t) { return t.executable_support != nullptr; });
  const auto stored =
      has([](const cdl_plugin_t& t) { return t.executable_save && t.executable_load; });
  const auto emit = has([](const cdl_plugin_t& t) { return t.emit != nullptr; });
  return {
      {"executable/constants_are_copied", constantsAreCopied},
      {"executable/short_refusals", shortRefusals},
      {"executable/many_at_once", onExecutable("", nullptr, manyAtOnce)},
      {"executable/in_flight_twice", onExecutable("", nullptr, inFlightTwice)},
      {"executable/waits_and_signals", onExecutable("", nullptr, waitsAndSignals)},
      {"executable/scratch_is_stable",
       onExecutable("executable_scratch", scratch, scratchIsStable)},
      {"executable/support_is_filled",
       onExecutable("executable_support", support, supportIsFilled)},
      {"stored/saved_and_loaded", onExecutable("executable_save", stored, savedAndLoaded)},
      {"stored/truncated", onExecutable("executable_save", stored, truncatedBlobs)},
      {"stored/changed", onExecutable("executable_save", stored, changedBlobs)},
      {"stored/of_another_image", onExecutable("executable_save", stored, blobOfAnotherImage)},
      {"stored/writer_fails", onExecutable("executable_save", stored, saveFails)},
      {"emit/writes", onExecutable("emit", emit, emits)},
      {"emit/writer_fails", onExecutable("emit", emit, emitFails)},
  };
}

} // namespace candela::conformance::tiers::abi
