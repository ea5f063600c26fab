#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "conformance/tiers/abi/abi.h"
#include "core/compiler/driver/pipeline.h"
#include "core/compiler/program/image.h"

namespace candela::conformance::tiers::abi {
namespace {

using program::Attr, program::Buffer, program::Program, program::Role;

constexpr char kGuard = '\x5A';
constexpr uint32_t kGuardBytes = 32;
constexpr uint64_t kRoom = 64; ///< behind each buffer, in the same memory

/// One input or result of a sample: dense, in a buffer of its own.
struct Part {
  Elem elem;
  Shape dims;
};

Sample sampleOf(std::string name, uint16_t kind, uint16_t fn, std::vector<Part> inputs, Part output,
                std::vector<Attr> attrs = {}) {
  Program program;
  program::Instr instr;
  instr.kind = kind;
  instr.fn = fn;
  instr.attrs = std::move(attrs);
  const auto place = [&](const Part& part, Role role, const char* prefix) {
    Buffer buffer;
    buffer.name = prefix + std::to_string(program.buffers.size());
    buffer.role = role;
    buffer.bytes = elemBytes(part.elem, static_cast<uint64_t>(elementCount(part.dims).value_or(0)));
    if (role != Role::temp) buffer.offset = 0;
    return program::denseView(program.addBuffer(buffer), part.elem, part.dims);
  };
  for (const Part& part : inputs) instr.inputs.push_back(place(part, Role::input, "x"));
  instr.outputs.push_back(place(output, Role::output, "y"));
  program.instrs.push_back(std::move(instr));
  return {std::move(name), std::move(program)};
}

std::vector<Sample> makeSamples() {
  const Elem f = Elem::f32_, i = Elem::i32_, u = Elem::u8_, b = Elem::bool_;
  std::vector<Sample> all;
  const auto add = [&](std::string name, uint16_t kind, uint16_t fn, std::vector<Part> in, Part out,
                       std::vector<Attr> attrs = {}) {
    all.push_back(
        sampleOf(std::move(name), kind, fn, std::move(in), std::move(out), std::move(attrs)));
  };
  const Shape n = {24};
  add("binary_add_f32", CDL_KIND_BINARY, CDL_BINARY_ADD, {{f, n}, {f, n}}, {f, n});
  add("binary_add_i32", CDL_KIND_BINARY, CDL_BINARY_ADD, {{i, n}, {i, n}}, {i, n});
  add("binary_max_f32", CDL_KIND_BINARY, CDL_BINARY_MAX, {{f, n}, {f, n}}, {f, n});
  add("unary_neg_f32", CDL_KIND_UNARY, CDL_UNARY_NEG, {{f, n}}, {f, n});
  add("copy_f32", CDL_KIND_COPY, 0, {{f, n}}, {f, n});
  add("copy_i32", CDL_KIND_COPY, 0, {{i, n}}, {i, n});
  add("copy_u8", CDL_KIND_COPY, 0, {{u, n}}, {u, n});
  add("fill_f32", CDL_KIND_FILL, 0, {}, {f, n}, {Attr::ofBits(CDL_ATTR_VALUE, 0x3fc00000)});
  add("fill_i32", CDL_KIND_FILL, 0, {}, {i, n}, {Attr::ofBits(CDL_ATTR_VALUE, 7)});
  add("convert_f32_i32", CDL_KIND_CONVERT, CDL_CONVERT_TRUNC, {{f, n}}, {i, n});
  add("convert_i32_f32", CDL_KIND_CONVERT, CDL_CONVERT_TRUNC, {{i, n}}, {f, n});
  add("compare_lt_f32", CDL_KIND_COMPARE, CDL_COMPARE_LT, {{f, n}, {f, n}}, {b, n});
  add("compare_lt_i32", CDL_KIND_COMPARE, CDL_COMPARE_LT, {{i, n}, {i, n}}, {b, n});
  add("select_f32", CDL_KIND_SELECT, 0, {{b, n}, {f, n}, {f, n}}, {f, n});
  add("gather_f32", CDL_KIND_GATHER, CDL_GATHER_CLAMP, {{f, {2, 6, 2}}, {i, {4}}}, {f, {2, 4, 2}});
  add("reduce_sum_f32", CDL_KIND_REDUCE, CDL_REDUCE_SUM, {{f, {3, 4, 2}}}, {f, {3, 2}});
  add("reduce_sum_i32", CDL_KIND_REDUCE, CDL_REDUCE_SUM, {{i, {3, 4, 2}}}, {i, {3, 2}});
  add("matmul_f32", CDL_KIND_MATMUL, 0, {{f, {1, 3, 4}}, {f, {1, 4, 2}}}, {f, {1, 3, 2}});
  return all;
}

/// Small numbers that every type has, an index of GATHER and a bool among them.
std::string contentOf(Elem elem, uint64_t bytes, uint8_t seed) {
  std::string content(bytes, '\0');
  const uint64_t step = elemBytes(elem, 1);
  for (uint64_t at = 0; at < bytes; at += step) {
    const int32_t number = static_cast<int32_t>((at / step * 7 + seed) % 5);
    const float real = static_cast<float>(number) + 0.5f;
    const uint8_t small = elem == Elem::bool_ ? number % 2 : number;
    const void* from = &small;
    if (step == 4) from = &number;
    if (elem == Elem::f32_) from = &real;
    std::memcpy(content.data() + at, from, step);
  }
  return content;
}

} // namespace

Result<PageEnd> PageEnd::of(const void* data, size_t size) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE)),
               room = (size + page - 1) / page * page;
  PageEnd end;
  void* base =
      mmap(nullptr, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED || mprotect(static_cast<char*>(base) + room, page, PROT_NONE) != 0)
    return failure(Code::out_of_memory, "no page for {} bytes", size);
  end.base_ = base;
  end.mapped_ = room + page;
  end.data_ = static_cast<char*>(base) + room - size;
  if (size) std::memcpy(end.data_, data, size);
  return end;
}
PageEnd::PageEnd(PageEnd&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)), mapped_(other.mapped_), data_(other.data_) {}
void PageEnd::release() {
  if (base_) munmap(base_, mapped_);
  base_ = nullptr;
}

Said::Said(uint32_t capacity) : room_(capacity + 2 * kGuardBytes, kGuard), capacity_(capacity) {
  if (capacity) room_[kGuardBytes] = 0;
  error_ = {room_.data() + kGuardBytes, capacity, 0};
}
std::string Said::text() const {
  const char* text = room_.data() + kGuardBytes;
  return {text, strnlen(text, capacity_)};
}
Status Said::whole() const {
  for (size_t i = 0; i < room_.size(); ++i)
    if ((i < kGuardBytes || i >= kGuardBytes + capacity_) && room_[i] != kGuard)
      return wrong("byte {} of a message buffer of {} was written",
                   static_cast<int64_t>(i) - kGuardBytes, capacity_);
  if (capacity_ && text().size() == capacity_)
    return wrong("a message has no NUL within {} bytes", capacity_);
  return Status::ok();
}

std::string nameOf(cdl_code_t code) {
  return code <= CDL_MISMATCH ? codeName(static_cast<Code>(code))
                              : fmt::format("unknown code {}", code);
}

Status succeeded(std::string_view what, cdl_code_t code, const Said& said) {
  CDL_TRY(said.whole().context(what));
  return code == CDL_OK ? Status::ok() : wrong("{}: {}: {}", what, nameOf(code), said.text());
}

Status refusedBy(std::string_view what, cdl_code_t code, const Said& said,
                 std::initializer_list<cdl_code_t> codes) {
  CDL_TRY(said.whole().context(what));
  std::string expected;
  for (cdl_code_t one : codes) expected += (expected.empty() ? "" : " or ") + nameOf(one);
  if (std::ranges::find(codes, code) == codes.end())
    return wrong("{}: {}, expected {}{}{}", what, nameOf(code), expected,
                 said.text().empty() ? "" : ": ", said.text());
  return said.text().empty() ? wrong("{}: {} without a message", what, nameOf(code)) : Status::ok();
}

cdl_host_t plainHost() {
  cdl_host_t host{};
  host.header = CDL_HEADER(cdl_host_t);
  return host;
}

Result<cdl_plugin_t> tableOf(Port& port) {
  CDL_ASSIGN(const auto plugin, port.plugin());
  return plugin->table();
}

Result<std::unique_ptr<RawDevice>> RawDevice::open(Port& port, const cdl_host_t* host) {
  CDL_TRY(port.opens());
  CDL_ASSIGN(const cdl_plugin_t table, tableOf(port));
  const cdl_host_t plain = plainHost();
  std::vector<cdl_option_t> options;
  for (const auto& [name, value] : port.options()) options.push_back({name.c_str(), value.c_str()});
  cdl_device_t* device = nullptr;
  Said said;
  const cdl_option_t* const given = options.empty() ? nullptr : options.data();
  const cdl_code_t code = table.device_open(
      host ? host : &plain, 0, given, static_cast<uint32_t>(options.size()), &device, said.error());
  CDL_TRY(succeeded("device_open", code, said));
  if (!device) return wrong("device_open succeeded without a device");
  return std::make_unique<RawDevice>(table, device);
}

RawDevice::~RawDevice() {
  for (cdl_queue_t* queue : queues_)
    runtime::plugin::endBySlot(table.name, CDL_SLOT(table, queue_destroy), handle, queue);
  for (cdl_memory_t* memory : memories_)
    runtime::plugin::endBySlot(table.name, CDL_SLOT(table, memory_destroy), handle, memory);
  runtime::plugin::endBySlot(table.name, CDL_SLOT(table, device_close), handle);
}

Result<cdl_queue_t*> RawDevice::queue() {
  cdl_queue_t* queue = nullptr;
  Said said;
  CDL_TRY(succeeded("queue_create", table.queue_create(handle, &queue, said.error()), said));
  queues_.push_back(queue);
  return queue;
}

Result<cdl_memory_t*> RawDevice::memory(cdl_queue_t* queue, const std::string& bytes) {
  cdl_memory_t* memory = nullptr;
  Said said;
  const uint64_t size = std::max<uint64_t>(bytes.size(), 1);
  CDL_TRY(succeeded("memory_create",
                    table.memory_create(handle, 0, size, 64, &memory, said.error()), said));
  memories_.push_back(memory);
  const cdl_code_t code =
      table.queue_write(queue, memory, 0, bytes.data(), bytes.size(), said.error());
  CDL_TRY(succeeded("queue_write", code, said));
  return memory;
}

Result<cdl_memory_t*> RawDevice::arena(uint32_t space, uint64_t bytes) {
  cdl_memory_t* memory = nullptr;
  Said said;
  CDL_TRY(succeeded("memory_create",
                    table.memory_create(handle, space, bytes, 64, &memory, said.error()), said));
  memories_.push_back(memory);
  return memory;
}

Result<std::string> RawDevice::read(cdl_queue_t* queue, cdl_memory_t* memory, uint64_t bytes) {
  std::string content(bytes, '\0');
  Said said;
  const cdl_code_t code = table.queue_read(queue, memory, 0, content.data(), bytes, said.error());
  CDL_TRY(succeeded("queue_read", code, said));
  return content;
}

std::span<const Sample> samples() {
  static const std::vector<Sample> all = makeSamples();
  return all;
}

Result<const Sample*> inTiles(Port& port, const Sample& sample) {
  CDL_ASSIGN(const auto device, port.device());
  static std::map<std::string, Sample> tiled;
  const auto [at, isNew] = tiled.try_emplace(sample.name, sample);
  if (isNew) CDL_TRY(driver::tileFor(device->target(), at->second.program));
  return &at->second;
}

Result<const Sample*> claimedSample(Port& port) {
  CDL_ASSIGN(const auto device, port.device());
  for (const Sample& sample : samples()) {
    // one that has inputs to be wrong about
    if (sample.program.instrs[0].inputs.size() < 2) continue;
    const Bytes image = imageOf(sample);
    const auto desc =
        runtime::plugin::describe(reinterpret_cast<const cdl_image_t*>(image.data()), 1);
    if (device->target().query(desc).support == capabilities::Support::native)
      return inTiles(port, sample);
  }
  return static_cast<const Sample*>(nullptr);
}
CaseResult nothingClaimed() { return CaseResult::unsupported("no instruction is NATIVE"); }

Bytes imageOf(const Sample& sample) { return program::toImage(sample.program); }

Result<std::vector<Bytes>> payloadsOf(const Sample& sample) {
  std::vector<Bytes> payloads(sample.program.constants.size() + 1);
  for (size_t c = 0; c < sample.program.constants.size(); ++c) {
    const Payload& payload = sample.program.constants[c].payload;
    CDL_ASSIGN(const Tensor tensor, payload.materialize({payload.count()}));
    payloads[c + 1] = tensor.bytes;
  }
  return payloads;
}

Result<std::unique_ptr<Work>> Work::on(RawDevice& device, const Sample& sample, uint8_t seed) {
  std::unique_ptr<Work> work(new Work(device));
  work->image_ = imageOf(sample);
  CDL_ASSIGN(work->queue, device.queue());
  CDL_ASSIGN(const std::vector<Bytes> payloads, payloadsOf(sample));
  work->buffers.resize(work->image()->buffers.count);
  std::map<uint32_t, cdl_memory_t*> arenas; // of local memories, by space
  for (size_t b = 0; b < sample.program.buffers.size(); ++b) {
    const Buffer& buffer = sample.program.buffers[b];
    if (buffer.role == Role::constant && device.holdsConstants()) continue;
    if (sample.program.spaces[buffer.space].local) {
      if (!device.compiles()) CDL_TRY(work->bindLocal(sample.program, b, arenas));
      continue;
    }
    std::string content(buffer.bytes, '\xA7');
    if (buffer.role == Role::input)
      content =
          contentOf(sample.program.contentType(static_cast<uint32_t>(b)).first, buffer.bytes, seed);
    if (buffer.role == Role::constant) {
      const Bytes& payload = payloads[buffer.constant + 1];
      content.assign(reinterpret_cast<const char*>(payload.data()), payload.size());
    }
    if (buffer.role == Role::output) work->output_ = static_cast<uint32_t>(b + 1);
    content.append(kRoom, '\xA7');
    CDL_ASSIGN(cdl_memory_t * memory, device.memory(work->queue, content));
    work->buffers[b + 1] = {memory, 0, buffer.bytes};
  }
  if (!device.compiles()) return work;
  std::vector<const void*> constants;
  for (const Bytes& payload : payloads) constants.push_back(payload.data());
  cdl_refusal_t refusal{};
  refusal.header = CDL_HEADER(cdl_refusal_t);
  Said said;
  const cdl_code_t code = device.table.compile(device.handle, work->image(), constants.data(),
                                               &work->executable, &refusal, said.error());
  CDL_TRY(succeeded("compile of an instruction that a row claims", code, said));
  if (!work->executable) return wrong("compile succeeded without an executable");
  if (const uint64_t bytes =
          device.table.executable_scratch ? device.table.executable_scratch(work->executable) : 0) {
    CDL_ASSIGN(cdl_memory_t * scratch, device.memory(work->queue, std::string(bytes, '\xA7')));
    work->buffers.push_back({scratch, 0, bytes});
  }
  return work;
}

Status Work::bindLocal(const program::Program& program, size_t index,
                       std::map<uint32_t, cdl_memory_t*>& arenas) {
  const Buffer& buffer = program.buffers[index];
  cdl_memory_t*& arena = arenas[buffer.space];
  if (!arena) {
    CDL_ASSIGN(arena, device.arena(buffer.space, program.arenaBytes(buffer.space)));
  }
  buffers[index + 1] = {arena, buffer.offset, buffer.bytes};
  return Status::ok();
}

Work::~Work() {
  if (!executable) return;
  Said said;
  const cdl_plugin_t& table = device.table;
  runtime::plugin::endBySlot(table.name, CDL_SLOT(table, queue_wait), queue, submitted, UINT64_MAX,
                             said.error());
  runtime::plugin::endBySlot(table.name, CDL_SLOT(table, executable_destroy), device.handle,
                             executable);
}

cdl_bindings_t Work::bindings() const {
  cdl_bindings_t bindings{};
  bindings.header = CDL_HEADER(cdl_bindings_t);
  bindings.count = static_cast<uint32_t>(buffers.size());
  bindings.buffers = buffers.data();
  return bindings;
}

cdl_code_t Work::call(const cdl_bindings_t* bindings, Said& said) {
  const int64_t loops[CDL_MAX_LOOP_NESTING] = {};
  const cdl_timeline_t signal{queue, submitted + 1};
  cdl_code_t code = CDL_OK;
  if (executable) {
    code = device.table.execute(queue, executable, bindings, nullptr, 0, signal, said.error());
  } else {
    code = device.table.run(queue, image(), 1, instrs(), loops, bindings, said.error());
    if (code == CDL_OK) code = device.table.queue_signal(queue, signal.value, said.error());
  }
  if (code != CDL_OK) return code;
  ++submitted;
  return device.table.queue_wait(queue, signal.value, UINT64_MAX, said.error());
}

Result<std::string> Work::result() {
  return device.read(queue, buffers[output_].memory, buffers[output_].bytes);
}

Result<std::string> Work::runWell() {
  const cdl_bindings_t whole = bindings();
  Said said;
  CDL_TRY(succeeded(executable ? "execute" : "run", call(&whole, said), said));
  return result();
}

} // namespace candela::conformance::tiers::abi
