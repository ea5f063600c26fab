// Bindings that are not there, too small, elsewhere or misaligned, behind either interface.
#include "conformance/tiers/abi/abi.h"

namespace candela::conformance::tiers::abi {
namespace {

/// What is done to the bindings of a call: `which` is the buffer, the first input or the output.
using Edit = std::function<void(cdl_bindings_t&, std::vector<cdl_binding_t>&, uint32_t which)>;

struct Prepared {
  std::unique_ptr<RawDevice> device;
  std::unique_ptr<Work> work;
};
/// Null work: nothing is NATIVE.
Result<Prepared> prepare(Port& port) {
  CDL_ASSIGN(const Sample* sample, claimedSample(port));
  Prepared prepared;
  CDL_ASSIGN(prepared.device, RawDevice::open(port));
  if (sample) {
    CDL_ASSIGN(prepared.work, Work::on(*prepared.device, *sample));
  }
  return prepared;
}

Check refuses(bool output, Edit edit) {
  return [=](Port& port) -> Outcome {
    CDL_ASSIGN(const Prepared prepared, prepare(port));
    if (!prepared.work) return nothingClaimed();
    Work& work = *prepared.work;
    const std::vector<cdl_binding_t> whole = work.buffers;
    std::vector<cdl_binding_t> buffers = whole;
    cdl_bindings_t bindings = work.bindings();
    bindings.buffers = buffers.data();
    edit(bindings, buffers, output ? work.output() : 1);
    Said said;
    CDL_TRY(refusedBy("the bindings", work.call(&bindings, said), said, {CDL_INVALID_ARGUMENT}));
    CDL_TRY(work.runWell().status().context("the next call, with the right ones"));
    return CaseResult::passed();
  };
}

Outcome null(Port& port) {
  CDL_ASSIGN(const Prepared prepared, prepare(port));
  if (!prepared.work) return nothingClaimed();
  Said said;
  return CaseResult::of(
      refusedBy("null bindings", prepared.work->call(nullptr, said), said, {CDL_INVALID_ARGUMENT}));
}

/// What a newer host passes: a longer struct; and what is bound where nothing is needed.
Outcome longer(Port& port) {
  CDL_ASSIGN(const Prepared prepared, prepare(port));
  if (!prepared.work) return nothingClaimed();
  CDL_ASSIGN(const std::string before, prepared.work->runWell());
  struct {
    cdl_bindings_t known;
    uint64_t more[4];
  } bindings{prepared.work->bindings(), {~0ull, ~0ull, ~0ull, ~0ull}};
  bindings.known.header.struct_size = sizeof bindings;
  ++bindings.known.header.minor;
  Said said;
  CDL_TRY(
      succeeded("a longer struct of bindings", prepared.work->call(&bindings.known, said), said));
  CDL_ASSIGN(const std::string after, prepared.work->result());
  return after == before ? CaseResult::passed()
                         : Outcome(wrong("a longer struct of bindings changed the result"));
}

/// Both structs are valid during the call alone.
Outcome goneAfterTheCall(Port& port) {
  CDL_ASSIGN(const Prepared prepared, prepare(port));
  if (!prepared.work) return nothingClaimed();
  Work& work = *prepared.work;
  CDL_ASSIGN(const std::string expected, work.runWell());
  const RawDevice& device = *prepared.device;
  CDL_ASSIGN(PageEnd buffers,
             PageEnd::of(work.buffers.data(), work.buffers.size() * sizeof(cdl_binding_t)));
  cdl_bindings_t plain = work.bindings();
  plain.buffers = buffers.as<cdl_binding_t>();
  CDL_ASSIGN(PageEnd bindings, PageEnd::of(&plain, sizeof plain));
  const int64_t none[CDL_MAX_LOOP_NESTING] = {};
  CDL_ASSIGN(PageEnd loops, PageEnd::of(none, sizeof none));
  Said said;
  const cdl_timeline_t signal{work.queue, ++work.submitted};
  cdl_code_t code =
      work.executable
          ? device.table.execute(work.queue, work.executable, bindings.as<cdl_bindings_t>(),
                                 nullptr, 0, signal, said.error())
          : device.table.run(work.queue, work.image(), 1, work.instrs(), loops.as<int64_t>(),
                             bindings.as<cdl_bindings_t>(), said.error());
  buffers.release(), bindings.release(), loops.release();
  if (code == CDL_OK && !work.executable)
    code = device.table.queue_signal(work.queue, signal.value, said.error());
  if (code == CDL_OK)
    code = device.table.queue_wait(work.queue, signal.value, UINT64_MAX, said.error());
  CDL_TRY(succeeded("a call whose bindings are gone", code, said));
  CDL_ASSIGN(const std::string result, work.result());
  return result == expected ? CaseResult::passed()
                            : Outcome(wrong("another result than with bindings that stay"));
}

/// In the middle of a larger memory: what lies around stays.
Outcome insideOfAMemory(Port& port) {
  CDL_ASSIGN(const Prepared prepared, prepare(port));
  if (!prepared.work) return nothingClaimed();
  Work& work = *prepared.work;
  CDL_ASSIGN(const std::string expected, work.runWell());
  cdl_binding_t& output = work.buffers[work.output()];
  const cdl_capabilities_t& table =
      *prepared.device->table.device_capabilities(prepared.device->handle);
  const uint64_t offset =
      std::max<uint64_t>(256, table.space_count ? table.spaces[0].alignment : 64);
  const std::string around(offset + output.bytes + 256, '\x3C');
  CDL_ASSIGN(cdl_memory_t * memory, prepared.device->memory(work.queue, around));
  output.memory = memory;
  output.offset = offset;
  const cdl_bindings_t bindings = work.bindings();
  Said said;
  CDL_TRY(succeeded("a binding inside of a memory", work.call(&bindings, said), said));
  CDL_ASSIGN(std::string now, prepared.device->read(work.queue, memory, around.size()));
  if (now.substr(offset, output.bytes) != expected)
    return wrong("another result than at the start of a memory");
  now.replace(offset, output.bytes, around, offset, output.bytes);
  return now == around ? CaseResult::passed()
                       : Outcome(wrong("bytes around the binding were written"));
}

} // namespace

std::vector<Named> bindingChecks() {
  std::vector<Named> checks = {
      {"bindings/null", null},
      {"bindings/count=0", refuses(true, [](auto& all, auto&, uint32_t) { all.count = 0; })},
      {"bindings/count_1_short",
       refuses(true, [](auto& all, auto&, uint32_t b) { all.count = b; })},
      {"bindings/null_list",
       refuses(true, [](auto& all, auto&, uint32_t) { all.buffers = nullptr; })},
      {"bindings/longer", longer},
      {"bindings/gone_after_the_call", goneAfterTheCall},
      {"bindings/inside_of_a_memory", insideOfAMemory},
  };
  const std::pair<const char*, Edit> edits[] = {
      {"missing", [](auto&, auto& buffers, uint32_t b) { buffers[b] = {}; }},
      {"no_memory", [](auto&, auto& buffers, uint32_t b) { buffers[b].memory = nullptr; }},
      {"too_small", [](auto&, auto& buffers, uint32_t b) { --buffers[b].bytes; }},
      {"empty", [](auto&, auto& buffers, uint32_t b) { buffers[b].bytes = 0; }},
      {"ends_outside", [](auto&, auto& buffers, uint32_t b) { buffers[b].offset = 128; }},
      {"misaligned", [](auto&, auto& buffers, uint32_t b) { buffers[b].offset = 8; }},
      {"begins_outside",
       [](auto&, auto& buffers, uint32_t b) { buffers[b].offset = uint64_t(1) << 40; }},
      {"offset_wraps",
       [](auto&, auto& buffers, uint32_t b) { buffers[b].offset = UINT64_MAX - 63; }},
      {"longer_than_its_memory",
       [](auto&, auto& buffers, uint32_t b) { buffers[b].bytes = uint64_t(1) << 40; }},
      {"bytes_wrap",
       [](auto&, auto& buffers, uint32_t b) {
         buffers[b].offset = 64;
         buffers[b].bytes = UINT64_MAX;
       }},
  };
  for (const auto& [name, edit] : edits)
    for (bool output : {false, true})
      checks.push_back({fmt::format("bindings/{}:buffer={}", name, output ? "output" : "input"),
                        refuses(output, edit)});
  return checks;
}

} // namespace candela::conformance::tiers::abi
