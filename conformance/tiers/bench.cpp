#include "conformance/tiers/bench.h"

#include <algorithm>
#include <cstring>

#include "conformance/execute.h"
#include "core/compiler/driver/pipeline.h"
#include "core/compiler/program/image.h"
#include "core/support/text/scan.h"
#include "core/support/threads.h"

namespace candela::conformance::tiers {
namespace {

constexpr char kUntouched = 0x5A;

std::string codeText(cdl_code_t code) {
  return code <= CDL_MISMATCH ? std::string(codeName(static_cast<Code>(code)))
                              : fmt::format("unknown code {}", code);
}

bool isHostMapped(const cdl_space_t& space) { return space.flags & CDL_SPACE_HOST_MAPPED; }

Status overrunOf(std::string_view who) {
  return failure(Code::mismatch, "{}: the message was written beyond its capacity", who);
}

} // namespace

MessageRoom::MessageRoom() {
  std::memset(text_, kUntouched, sizeof text_);
  text_[0] = '\0';
}

Reply MessageRoom::reply(cdl_code_t code) const {
  Reply reply{code, std::string(text_, strnlen(text_, kCapacity)), false};
  reply.overrun =
      std::any_of(text_ + kCapacity, text_ + sizeof text_, [](char c) { return c != kUntouched; });
  return reply;
}

Status valid(std::string_view who, const Reply& reply) {
  if (reply.overrun) return overrunOf(who);
  if (reply.code == CDL_OK) return Status::ok();
  return failure(Code::mismatch, "{}: {}{}{}", who, codeText(reply.code),
                 reply.text.empty() ? "" : ": ", reply.text);
}

Status refused(std::string_view who, cdl_code_t code, const Reply& reply) {
  if (reply.overrun) return overrunOf(who);
  if (reply.code == CDL_OK)
    return failure(Code::mismatch, "{}: succeeded, must be refused with {}", who, codeText(code));
  if (reply.code != code)
    return failure(Code::mismatch, "{}: refused with {} ('{}'), must be {}", who,
                   codeText(reply.code), reply.text, codeText(code));
  if (reply.text.empty())
    return failure(Code::mismatch, "{}: {} without a message", who, codeText(code));
  return Status::ok();
}

Status same(std::string_view who, std::span<const std::byte> got,
            std::span<const std::byte> expected) {
  const size_t count = std::min(got.size(), expected.size());
  const auto at = static_cast<size_t>(
      std::mismatch(got.begin(), got.begin() + count, expected.begin()).first - got.begin());
  if (at < count)
    return failure(Code::mismatch, "{}: byte {} of {}: expected {:#04x}, got {:#04x}", who, at,
                   expected.size(), static_cast<unsigned>(expected[at]),
                   static_cast<unsigned>(got[at]));
  if (got.size() == expected.size()) return Status::ok();
  return failure(Code::mismatch, "{}: {} bytes, expected {}", who, got.size(), expected.size());
}

ByteVector pattern(uint64_t bytes, uint64_t seed) {
  ByteVector made(bytes);
  for (uint64_t i = 0; i < bytes; i += sizeof(uint64_t)) {
    const uint64_t word = splitmix64(seed ^ i << 20);
    std::memcpy(made.data() + i, &word, std::min<uint64_t>(sizeof word, bytes - i));
  }
  return made;
}

std::string contentOf(const cdl_capabilities_t& table) {
  std::string all = fmt::format("{} {} {} ", table.profiles, table.engine_count, table.flags);
  const auto add = [&](const void* data, uint32_t count, uint32_t stride) {
    all += fmt::format("{} of {}: ", count, stride);
    all.append(static_cast<const char*>(data), data ? uint64_t(count) * stride : 0);
  };
  add(table.rows, table.row_count, table.row_stride);
  add(table.atoms, table.atom_count, table.atom_stride);
  add(table.layouts, table.layout_count, table.layout_stride);
  add(table.spaces, table.space_count, table.space_stride);
  for (uint32_t i = 0; i < table.space_count; ++i) all += fmt::format("{} ", table.space_names[i]);
  if (CDL_HAS(&table, tiling) && table.tiling)
    add(table.tiling, 1, table.tiling->header.struct_size);
  return all;
}

Status onThreads(size_t count, const std::function<Status(size_t)>& body) {
  std::vector<Status> ends(count);
  atTheSameTime(count, [&](size_t i) { ends[i] = body(i).context(fmt::format("thread {}", i)); });
  for (const Status& end : ends) CDL_TRY(end);
  return Status::ok();
}

Status Lane::write(cdl_memory_t* to, uint64_t offset, std::span<const std::byte> bytes) {
  return valid("queue_write", ask(bench_->table().queue_write, queue_, to, offset,
                                  static_cast<const void*>(bytes.data()), uint64_t(bytes.size())));
}

Result<ByteVector> Lane::read(cdl_memory_t* from, uint64_t offset, uint64_t bytes) {
  constexpr std::byte kPoison{0xA7};
  ByteVector got(bytes, kPoison);
  CDL_TRY(valid("queue_read", ask(bench_->table().queue_read, queue_, from, offset,
                                  static_cast<void*>(got.data()), uint64_t(bytes))));
  return got;
}

Status Lane::copy(cdl_memory_t* to, uint64_t toOffset, cdl_memory_t* from, uint64_t fromOffset,
                  uint64_t bytes) {
  return valid("queue_copy",
               ask(bench_->table().queue_copy, queue_, to, toOffset, from, fromOffset, bytes));
}

Status Lane::signal(uint64_t value) {
  value_ = std::max(value_, value);
  return valid("queue_signal", ask(bench_->table().queue_signal, queue_, value));
}

Status Lane::wait(uint64_t value, uint64_t timeoutNs) {
  return valid("queue_wait", ask(bench_->table().queue_wait, queue_, value, timeoutNs));
}

Status Lane::sync() {
  const uint64_t value = next();
  CDL_TRY(signal(value));
  return wait(value);
}

Result<cdl_memory_t*> Lane::scratch(uint64_t bytes, uint32_t space) {
  Scratch& scratch = scratch_[space];
  if (bytes > scratch.bytes) {
    CDL_ASSIGN(scratch.memory, bench_->create(bytes, space, 64));
    scratch.bytes = bytes;
  }
  return scratch.memory;
}

Status Lane::expect(std::string_view who, cdl_memory_t* from, uint64_t offset,
                    std::span<const std::byte> bytes) {
  CDL_ASSIGN(const ByteVector got, read(from, offset, bytes.size()));
  return same(who, got, bytes);
}

Bench::~Bench() {
  for (cdl_queue_t* queue : queues_)
    runtime::plugin::endBySlot(table().name, CDL_SLOT(table(), queue_destroy), device(), queue);
  for (cdl_memory_t* memory : memory_)
    runtime::plugin::endBySlot(table().name, CDL_SLOT(table(), memory_destroy), device(), memory);
}

uint64_t Bench::alignment(uint32_t space) const {
  const auto& spaces = target().spaces();
  return std::max<uint64_t>(space < spaces.size() ? spaces[space].space.alignment : 1, 1);
}

Result<cdl_memory_t*> Bench::create(uint64_t bytes, uint32_t space, uint64_t alignment) {
  cdl_memory_t* memory = nullptr;
  const std::string who = fmt::format("memory_create of {} bytes", bytes);
  CDL_TRY(valid(who, ask(table().memory_create, device(), space, bytes,
                         alignment ? alignment : this->alignment(space), &memory)));
  if (!memory) return failure(Code::mismatch, "{}: succeeded without memory", who);
  const std::lock_guard lock(mutex_);
  memory_.push_back(memory);
  return memory;
}

Result<cdl_memory_t*> Bench::createWith(Lane& lane, std::span<const std::byte> bytes) {
  CDL_ASSIGN(cdl_memory_t * memory, create(bytes.size()));
  CDL_TRY(lane.write(memory, 0, bytes));
  return memory;
}

Result<cdl_memory_t*> Bench::import(std::span<std::byte> bytes, cdl_memory_t* memory) {
  if (!table().memory_import) return skip("memory of the host cannot be imported");
  cdl_memory_t* const before = memory;
  const Reply reply = ask(table().memory_import, device(), 0u, static_cast<void*>(bytes.data()),
                          uint64_t{bytes.size()}, &memory);
  if (reply.code != CDL_OK && memory != before)
    return failure(Code::mismatch,
                   "memory_import: failed, and changed the memory that it was given");
  if (reply.code == CDL_UNSUPPORTED) return skip("bytes that lie there cannot be imported");
  CDL_TRY(valid(fmt::format("memory_import of {} bytes", bytes.size()), reply));
  if (!memory) return failure(Code::mismatch, "memory_import: succeeded without memory");
  if (before && memory != before)
    return failure(Code::mismatch, "memory_import: gave another memory than it was given");
  if (before) return memory;
  const std::lock_guard lock(mutex_);
  memory_.push_back(memory);
  return memory;
}

void Bench::destroy(cdl_memory_t* memory) {
  {
    const std::lock_guard lock(mutex_);
    std::erase(memory_, memory);
  }
  table().memory_destroy(device(), memory);
}

Result<Lane> Bench::lane() {
  cdl_queue_t* queue = nullptr;
  CDL_TRY(valid("queue_create", ask(table().queue_create, device(), &queue)));
  if (!queue) return failure(Code::mismatch, "queue_create: succeeded without a queue");
  const std::lock_guard lock(mutex_);
  queues_.push_back(queue);
  return Lane(*this, queue);
}

void Bench::destroy(const Lane& lane) {
  {
    const std::lock_guard lock(mutex_);
    std::erase(queues_, lane.handle());
  }
  table().queue_destroy(device(), lane.handle());
}

Result<std::byte*> Bench::map(cdl_memory_t* memory, uint64_t offset, uint64_t bytes,
                              uint32_t space) {
  if (!table().memory_map) return skip("memory cannot be mapped");
  const bool isDeclared =
      space < target().spaces().size() && isHostMapped(target().spaces()[space].space);
  void* pointer = nullptr;
  const Reply reply = ask(table().memory_map, device(), memory, offset, bytes, &pointer);
  if (!isDeclared && reply.code != CDL_OK) return skip("the space cannot be mapped");
  CDL_TRY(valid(fmt::format("memory_map of {} bytes at {}", bytes, offset), reply));
  if (!pointer) return failure(Code::mismatch, "memory_map: succeeded without an address");
  return static_cast<std::byte*>(pointer);
}

Status Bench::unmap(cdl_memory_t* memory, void* pointer) {
  if (!table().memory_unmap) return Status::ok(); // mappings need no end
  return valid("memory_unmap", ask(table().memory_unmap, device(), memory, pointer));
}

Status Bench::usable() {
  const auto roundTrip = [&]() -> Status {
    CDL_ASSIGN(Lane lane, this->lane());
    const ByteVector content = pattern(512, 77);
    CDL_ASSIGN(cdl_memory_t * memory, createWith(lane, content));
    CDL_TRY(lane.sync());
    CDL_TRY(lane.expect("a new buffer", memory, 0, content));
    destroy(lane);
    destroy(memory);
    return Status::ok();
  };
  return roundTrip().context("afterwards");
}

Status Bench::skip(std::string why, bool emulated) {
  main_->skipped_ = emulated ? CaseResult::Outcome::emulated : CaseResult::Outcome::unsupported;
  return {Code::unsupported, std::move(why)};
}

CaseResult Bench::result(const Status& status) const {
  if (status || skipped_ == CaseResult::Outcome::passed) return CaseResult::of(status);
  CaseResult result = CaseResult::unsupported(status.message());
  result.outcome = skipped_;
  return result;
}

Result<std::unique_ptr<Echo>> Echo::make(Bench& bench, uint64_t bytes) {
  program::Program program;
  program.spaces = {defaultSpace(bench.target())};
  program::Instr copy;
  copy.kind = CDL_KIND_COPY;
  for (const program::Role role : {program::Role::input, program::Role::output}) {
    program::Buffer buffer;
    buffer.name.assign(1, role == program::Role::input ? 'x' : 'y');
    buffer.role = role;
    buffer.bytes = bytes;
    buffer.alignment = static_cast<uint32_t>(bench.alignment());
    const program::View view = program::denseView(program.addBuffer(std::move(buffer)), Elem::u8_,
                                                  {static_cast<int64_t>(bytes)});
    (role == program::Role::input ? copy.inputs : copy.outputs).push_back(view);
  }
  program.instrs = {copy};
  if (const Status status = program::verify(program); !status)
    return status.context("the suite made a program that is none");

  std::unique_ptr<Echo> echo(new Echo(bench, bytes));
  echo->image_ = program::toImage(program);
  const capabilities::Answer answer =
      bench.target().query(runtime::plugin::describe(echo->image(), 1));
  if (answer.support != capabilities::Support::native)
    return bench.skip("COPY of u8 is not native",
                      answer.support == capabilities::Support::emulated);
  CDL_TRY(driver::tileFor(bench.target(), program));
  echo->image_ = program::toImage(program);
  if (!bench.compiles()) return echo;
  const std::vector<const void*> constants(1, nullptr);
  cdl_refusal_t refusal{};
  refusal.header = CDL_HEADER(cdl_refusal_t);
  CDL_TRY(valid("compile of a COPY", ask(bench.table().compile, bench.device(), echo->image(),
                                         constants.data(), &echo->executable_, &refusal)));
  if (!echo->executable_)
    return failure(Code::mismatch, "compile: succeeded without an executable");
  return echo;
}

Echo::~Echo() {
  if (executable_)
    runtime::plugin::endBySlot(bench_.table().name, CDL_SLOT(bench_.table(), executable_destroy),
                               bench_.device(), executable_);
}

Status Echo::submit(Lane& lane, cdl_memory_t* y, cdl_memory_t* x, uint64_t yOffset,
                    uint64_t xOffset) {
  if (executable_) return execute(lane, y, x, {}, {nullptr, 0}, yOffset, xOffset);
  std::vector<cdl_binding_t> buffers = {{}, {x, xOffset, bytes_}, {y, yOffset, bytes_}};
  CDL_TRY(bindLocal(lane, buffers));
  cdl_bindings_t bindings{CDL_HEADER(cdl_bindings_t), static_cast<uint32_t>(buffers.size()), 0,
                          buffers.data()};
  const int64_t loops[CDL_MAX_LOOP_NESTING] = {};
  return valid("run", ask(bench_.table().run, lane.handle(), image(), uint32_t{1},
                          image()->instrs.count - 1, loops, &bindings));
}

Status Echo::bindLocal(Lane& lane, std::vector<cdl_binding_t>& buffers) const {
  std::map<uint32_t, uint64_t> arenas; // bytes by space of the image
  for (uint32_t b = 3; b < image()->buffers.count; ++b) {
    const cdl_buffer_t& buffer = *cdl_get_buffer(image(), b);
    arenas[buffer.space] = std::max(arenas[buffer.space], buffer.offset + buffer.bytes);
  }
  for (uint32_t b = 3; b < image()->buffers.count; ++b) {
    const cdl_buffer_t& buffer = *cdl_get_buffer(image(), b);
    CDL_ASSIGN(cdl_memory_t * arena, lane.scratch(arenas[buffer.space], buffer.space - 1));
    buffers.push_back({arena, buffer.offset, buffer.bytes});
  }
  return Status::ok();
}

Status Echo::execute(Lane& lane, cdl_memory_t* y, cdl_memory_t* x,
                     std::span<const cdl_timeline_t> wait, cdl_timeline_t signal, uint64_t yOffset,
                     uint64_t xOffset) {
  std::vector<cdl_binding_t> buffers = {{}, {x, xOffset, bytes_}, {y, yOffset, bytes_}};
  buffers.resize(image()->buffers.count); // those in local memories are the executable's own
  if (const auto scratchOf = bench_.table().executable_scratch)
    if (const uint64_t bytes = scratchOf(executable_)) {
      CDL_ASSIGN(cdl_memory_t * scratch, lane.scratch(bytes));
      buffers.push_back({scratch, 0, bytes});
    }
  cdl_bindings_t bindings{CDL_HEADER(cdl_bindings_t), static_cast<uint32_t>(buffers.size()), 0,
                          buffers.data()};
  return valid("execute", ask(bench_.table().execute, lane.handle(), executable_, &bindings,
                              wait.empty() ? nullptr : wait.data(),
                              static_cast<uint32_t>(wait.size()), signal));
}

std::vector<Case> expand(const Probes& probes, const Selection& selection, const Budget& budget) {
  Family family{probes.stem, {}, probes.axes, {}, {}};
  for (const auto& row : probes.rows) family.rows.emplace_back(row.first);
  family.run = [probes](const Choice& choice, Port& port) {
    if (port.isReference()) return CaseResult::unsupported("the reference has no device");
    const auto plugin = port.plugin();
    if (!plugin) return CaseResult::of(plugin.status());
    if (const Status opens = port.opens(); !opens) return CaseResult::of(opens);
    const auto device =
        probes.ownDevice ? (*plugin)->open(port.deviceIndex(), port.options()) : port.device();
    if (!device) return CaseResult::of(device.status());
    Bench bench(*plugin, *device);
    const auto row = std::ranges::find_if(
        probes.rows, [&](const auto& one) { return one.first == choice.at("row"); });
    return bench.result(row->second(bench, choice));
  };
  return expand(family, selection, budget);
}

std::vector<Case> expand(const ProbeFamilies& families, const Selection& selection) {
  std::vector<Case> all;
  for (const auto& [probes, budget] : families)
    for (Case& one : expand(probes, selection, budget)) all.push_back(std::move(one));
  return all;
}

uint64_t numberOf(const Choice& choice, std::string_view axis) {
  return text::parseNumber<uint64_t>(choice.find(axis)->second).value_or(0);
}

} // namespace candela::conformance::tiers
