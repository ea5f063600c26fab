#include "lowering.hpp"

#include "../runtime/digest.hpp"
#include "../runtime/objects.hpp"
#include "../version.hpp"
#include "entry.hpp"

#include <algorithm>
#include <cstring>

namespace cpu {

int64_t Operand::elements() const {
  int64_t n = 1;
  for (int d = 0; d < rank; ++d) n *= dims[d];
  return n;
}

bool Operand::isDense() const {
  int64_t expected = 1;
  for (int d = rank - 1; d >= 0; --d) {
    if (dims[d] != 1 && strides[d] != expected) return false;
    expected *= dims[d];
  }
  return true;
}

bool typeOf(uint8_t elem, Ty& ty) {
  switch (elem) {
  case CDL_F32: ty = Ty::F32; return true;
  case CDL_F64: ty = Ty::F64; return true;
  case CDL_I8:
  case CDL_U8:
  case CDL_BOOL: ty = Ty::I8; return true;
  case CDL_I16:
  case CDL_U16: ty = Ty::I16; return true;
  case CDL_I32:
  case CDL_U32: ty = Ty::I32; return true;
  case CDL_I64:
  case CDL_U64: ty = Ty::I64; return true;
  default: return false;
  }
}

bool isHalf(uint8_t elem) { return elem == CDL_F16 || elem == CDL_BF16; }

Ty tyOf(uint8_t elem) {
  Ty ty = Ty::I64;
  if (isHalf(elem)) return Ty::I16;
  typeOf(elem, ty);
  return ty;
}

bool isSignedElem(uint8_t elem) {
  return elem == CDL_I8 || elem == CDL_I16 || elem == CDL_I32 || elem == CDL_I64 ||
         elem == CDL_F32 || elem == CDL_F64;
}

bool hasSteps(const cdl_layout_t& layout, std::initializer_list<std::pair<int, uint32_t>> steps) {
  if (layout.opaque || layout.count != steps.size()) return false;
  int i = 0;
  for (const auto& [dim, factor] : steps) {
    if (layout.dim[i] != dim || layout.factor[i] != factor) return false;
    ++i;
  }
  return true;
}

namespace {

/// The payload of a constant that is one value all over.
std::vector<char> splatted(const cdl_constant_t& constant) {
  const uint32_t bits = cdl_elem_bits(constant.elem);
  std::vector<char> bytes(constant.bytes);
  const uint64_t value = bits == 4 ? (constant.bits & 0xf) * 0x11 : constant.bits;
  const size_t step = bits < 8 ? 1 : bits / 8;
  for (size_t at = 0; at < bytes.size(); at += step) std::memcpy(bytes.data() + at, &value, step);
  return bytes;
}

} // namespace

Operand Lowering::operand(const cdl_view_t& view) const {
  Operand o;
  o.elem = view.elem;
  o.rank = view.rank;
  std::copy_n(view.dims, view.rank, o.dims);
  std::copy_n(view.strides, view.rank, o.strides);
  if (o.rank && o.dims[o.rank - 1] == 1) o.strides[o.rank - 1] = 1; // whatever it says, it is dense
  o.layout = view.layout;
  o.channelsLast = hasSteps(*cdl_get_layout(image, view.layout), {{0, 0}, {2, 0}, {3, 0}, {1, 0}});
  const uint32_t halo = cdl_get_buffer(image, view.buffer)->halo;
  o.halo = halo ? cdl_get_halo(image, halo) : nullptr;
  o.at.buffer = view.buffer;
  o.at.offset = o.bytes(view.offset);
  for (int l = 0; l < CDL_MAX_LOOP_NESTING; ++l) o.at.perLoop[l] = o.bytes(view.iv_strides[l]);
  return o;
}

void Lowering::begin(uint32_t instr) {
  const uint32_t group = cdl_get_instr(image, instr)->group;
  const bool goesOn = group && instr_ && cdl_get_instr(image, instr_)->group == group &&
                      cdl_get_group(image, group)->bands > 1;
  instr_ = instr;
  if (!goesOn) scratchUsed_ = 0;
}

std::vector<uint32_t> Lowering::doneBy(uint32_t instr) const {
  std::vector<uint32_t> found;
  for (const auto& [done, by] : done_)
    if (by == instr) found.push_back(done);
  return found;
}

Arg Lowering::scratch(uint64_t bytes) {
  Arg arg;
  arg.buffer = Arg::kScratch;
  arg.offset = static_cast<int64_t>(scratchUsed_);
  scratchUsed_ += (bytes + 63) & ~uint64_t(63);
  binary_.scratchBytes = std::max(binary_.scratchBytes, scratchUsed_);
  scratchOf_[instr_] = scratchUsed_;
  return arg;
}

Arg Lowering::own(const void* data, uint64_t bytes) {
  AlignedBytes& own = binary_.made.own;
  const uint64_t name = digest(data, bytes);
  for (auto [known, end] = owned_.equal_range(name); known != end; ++known)
    if (known->second.bytes == bytes &&
        std::memcmp(own.data() + known->second.at.offset, data, bytes) == 0)
      return known->second.at;
  Arg arg;
  arg.buffer = Arg::kOwn;
  arg.offset = static_cast<int64_t>(own.size());
  own.resize((own.size() + bytes + 63) & ~size_t(63));
  std::memcpy(own.data() + arg.offset, data, bytes);
  owned_.insert({name, {arg, bytes}});
  return arg;
}

void Lowering::call(const std::string& key, const Units& units, const std::vector<Arg>& args,
                    const std::function<void(Builder&)>& body) {
  if (units.count == 0) return;
  const auto [known, isNew] = kernels_.try_emplace(key, binary_.kernels);
  if (isNew) codegen_.kernel(kernelName(binary_.kernels++), body);
  Call call;
  call.instr = instr_;
  call.kernel = known->second;
  call.units = units.count;
  call.firstArg = static_cast<uint32_t>(binary_.args.size());
  call.args = static_cast<uint32_t>(args.size());
  binary_.args.insert(binary_.args.end(), args.begin(), args.end());
  binary_.calls.push_back(call);
  rows_.push_back(units.rows);
}

void Lowering::takeConstants() {
  std::map<uint32_t, int64_t> places; // in own, by buffer
  uint64_t room = binary_.made.own.size();
  for (const Arg& arg : binary_.args) {
    if (arg.buffer == Arg::kOwn || arg.buffer == Arg::kScratch) continue;
    const cdl_buffer_t& buffer = *cdl_get_buffer(image, arg.buffer);
    if (buffer.role == CDL_ROLE_CONSTANT && places.insert({arg.buffer, 0}).second)
      room += buffer.bytes + 64;
  }
  binary_.made.own.reserve(room);
  for (auto& [b, place] : places) {
    const cdl_buffer_t& buffer = *cdl_get_buffer(image, b);
    const void* payload = constants[buffer.constant];
    place = own(payload ? payload : splatted(*cdl_get_constant(image, buffer.constant)).data(),
                buffer.bytes)
                .offset;
  }
  for (Arg& arg : binary_.args) {
    const auto place = places.find(arg.buffer);
    if (place == places.end()) continue;
    arg.buffer = Arg::kOwn;
    arg.offset += place->second;
  }
}

std::vector<Working> Lowering::working() const {
  std::vector<Working> all(image->instrs.count);
  for (const auto& [instr, bytes] : scratchOf_) all[instr].scratchBytes = bytes;
  for (const auto& [instr, by] : done_) all[by].others.push_back(instr);
  return all;
}

std::string Lowering::kernelName(uint32_t kernel) const {
  return (target_.isAhead() ? target_.prefix + "_k" : "k") + std::to_string(kernel);
}

cdl_object_weights_t Lowering::weightsHeader() const {
  const AlignedBytes& own = binary_.made.own;
  cdl_object_weights_t header{};
  std::memcpy(header.magic, "CDLW", sizeof header.magic);
  header.format = CDL_OBJECT_FORMAT;
  header.bytes = sizeof header + own.size();
  header.digest = digest(own.data(), own.size());
  std::memcpy(header.image, image->hash, sizeof header.image);
  const std::string maker = target_.triple + " " + isa.name + " " + kVersion;
  header.code = digest(maker.data(), maker.size());
  return header;
}

bool Lowering::finishAhead(ObjectCode& object) {
  takeConstants();
  object.header = weightsHeader();
  const ArenaPlan arena = planArena(image, working());
  writeEntries(codegen_, image, binary_, arena, target_.prefix, isa, object.header,
               [this](uint32_t kernel) { return kernelName(kernel); });
  std::vector<std::vector<char>> objects = codegen_.objects();
  if (!codegen_.error().empty()) return false;
  object.code = std::move(objects.front());
  object.weights = std::move(binary_.made.own);
  object.facts.format = CDL_OBJECT_FORMAT;
  object.facts.arena_bytes = arena.bytes;
  object.facts.arena_alignment = arena.alignment;
  object.facts.weights_bytes = object.header.bytes;
  object.facts.weights_alignment = 64;
  const auto text = [](const std::string& from, char* to, size_t room) { from.copy(to, room - 1); };
  text(target_.triple, object.facts.triple, sizeof object.facts.triple);
  text(isa.name, object.facts.isa, sizeof object.facts.isa);
  text("cpu " + std::string(kVersion) + " with LLVM " + Codegen::version(), object.facts.maker,
       sizeof object.facts.maker);
  std::string needs;
  for (const std::string& each : needsOf(isa)) needs += (needs.empty() ? "" : ", ") + each;
  text(needs, object.facts.needs, sizeof object.facts.needs);
  return true;
}

bool Lowering::finish(Binary& binary) {
  const std::vector<std::vector<char>> objects = codegen_.objects();
  if (!codegen_.error().empty()) return false;
  takeConstants();
  binary_.compiler = "LLVM " + Codegen::version();
  Binary::Made& made = binary_.made;
  made.code = packed(objects);
  binary_.own = made.own.data();
  binary_.ownBytes = made.own.size();
  binary_.code = made.code.data();
  binary_.codeBytes = made.code.size();
  binary = std::move(binary_);
  return true;
}

} // namespace cpu
