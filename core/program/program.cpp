#include "core/program/program.h"

#include <algorithm>
#include <bit>
#include <charconv>

#include "core/program/text_internal.h"

namespace candela::program {

uint64_t innerFactor(const std::vector<Layout::Step>& steps, size_t index) {
  uint64_t product = 1;
  for (size_t i = index + 1; i < steps.size(); ++i)
    if (steps[i].dim == steps[index].dim) product *= steps[i].factor;
  return product;
}

std::vector<int64_t> rowMajorStrides(const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;)
    strides[i - 1] = static_cast<int64_t>(static_cast<uint64_t>(strides[i]) * static_cast<uint64_t>(dims[i]));
  return strides;
}

int64_t View::count() const {
  uint64_t count = 1;
  for (int64_t dim : dims) count *= static_cast<uint64_t>(dim);
  return static_cast<int64_t>(count);
}

bool View::isDense() const { return layout.isRowMajor() && strides == rowMajorStrides(dims); }

View denseView(uint32_t buffer, Elem elem, std::vector<int64_t> dims) {
  View view;
  view.buffer = buffer;
  view.elem = elem;
  view.strides = rowMajorStrides(dims);
  view.dims = std::move(dims);
  return view;
}

Attr Attr::ofFloat(uint16_t id, double value) { return {id, 2, {std::bit_cast<int64_t>(value)}}; }
double Attr::asFloat() const { return std::bit_cast<double>(values[0]); }

const Attr* Instr::attr(uint16_t id) const {
  const auto found = std::find_if(attrs.begin(), attrs.end(), [&](const Attr& a) { return a.id == id; });
  return found == attrs.end() ? nullptr : &*found;
}

int64_t Instr::intAttr(uint16_t id, int64_t otherwise) const {
  const Attr* found = attr(id);
  return found && !found->values.empty() ? found->values[0] : otherwise;
}

size_t Instr::operandCount() const {
  const KindInfo* info = kindInfo(kind);
  size_t count = inputs.size();
  if (!info || !info->epilogue) return count;
  for (const Step& step : expr)
    for (const Operand& operand : step.in)
      if (operand.source == Operand::Source::view && operand.index >= info->minInputs && operand.index < count)
        count = operand.index;
  return count;
}

namespace {

/// `name`, or name_N with N above every number that `name` already has: one walk, however often a
/// hint comes.
template <typename List> std::string uniqueName(const List& list, std::string name) {
  if (name.empty()) name = "b";
  bool taken = false;
  uint64_t highest = 0;
  for (const auto& item : list) {
    const std::string_view other = item.name;
    if (other.substr(0, name.size()) != name) continue;
    if (other.size() == name.size()) taken = true;
    const std::string_view digits = other.substr(std::min(other.size(), name.size() + 1));
    if (digits.empty() || digits.size() > 9 || other[name.size()] != '_') continue;
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error == std::errc() && end == digits.data() + digits.size()) highest = std::max(highest, number);
  }
  return taken ? fmt::format("{}_{}", name, highest + 1) : name;
}

} // namespace

uint32_t Program::addBuffer(Buffer buffer) {
  buffer.name = uniqueName(buffers, std::move(buffer.name));
  if (buffer.role != Role::temp) buffer.offset = 0;
  buffers.push_back(std::move(buffer));
  return static_cast<uint32_t>(buffers.size() - 1);
}

uint32_t Program::addConstant(std::string name, Payload payload) {
  if (payload.form() == Payload::Form::iota || payload.form() == Payload::Form::random) {
    auto tensor = payload.materialize({payload.count()});
    CDL_CHECK(tensor.isOk(), "constant '{}': {}", name, tensor.status().message());
    payload = Payload::data(std::move(tensor).value());
  }
  for (uint32_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].constant != kNone && constants[buffers[i].constant].payload == payload) return i;
  Buffer buffer;
  buffer.role = Role::constant;
  buffer.bytes = payload.sizeBytes();
  buffer.constant = static_cast<uint32_t>(constants.size());
  name = uniqueName(constants, std::move(name));
  buffer.name = name;
  constants.push_back({std::move(name), std::move(payload)});
  return addBuffer(std::move(buffer));
}

uint64_t Program::arenaBytes(uint32_t space) const {
  uint64_t bytes = 0;
  for (const Buffer& b : buffers)
    if (b.role == Role::temp && b.space == space && b.offset != CDL_UNPLACED)
      bytes = std::max(bytes, b.offset + b.bytes);
  return bytes;
}

std::string Program::instrName(uint32_t index) const {
  const Instr& instr = instrs[index];
  const std::string_view name = kindName(instr.kind);
  std::string text = fmt::format("{} [{}]", name.empty() ? fmt::format("kind {}", instr.kind) : name, index + 1);
  if (!instr.provenance.empty()) text += fmt::format(" '{}'", instr.provenance.front().node);
  return text;
}

// ---- Names and facts of kinds
// ----------------------------------------------------------------------------------------

namespace {

constexpr KindInfo kKinds[] = {
#define CANDELA_KIND(name, id, primitive, min, max, outputs, epilogue)                                                 \
  {id, #name, primitive != 0, min, max, outputs, epilogue != 0},
    CDL_KINDS(CANDELA_KIND)
#undef CANDELA_KIND
};

struct FnInfo {
  std::string_view kind, name;
  uint16_t id;
};
constexpr FnInfo kFns[] = {
#define CANDELA_FN(kind, name, id, optional) {#kind, #name, id},
    CDL_FNS(CANDELA_FN)
#undef CANDELA_FN
};

struct AttrInfo {
  std::string_view name;
  uint16_t id;
  uint8_t type;
};
constexpr AttrInfo kAttrs[] = {
#define CANDELA_ATTR(name, id, type) {#name, id, type},
    CDL_ATTRS(CANDELA_ATTR)
#undef CANDELA_ATTR
};

struct KindAttr {
  std::string_view kind, attr;
};
constexpr KindAttr kKindAttrs[] = {
#define CANDELA_KIND_ATTR(kind, attr) {#kind, #attr},
    CDL_KIND_ATTRS(CANDELA_KIND_ATTR)
#undef CANDELA_KIND_ATTR
};

} // namespace

const KindInfo* kindInfo(uint16_t kind) {
  for (const KindInfo& info : kKinds)
    if (info.id == kind) return &info;
  return nullptr;
}

std::string_view kindName(uint16_t kind) {
  const KindInfo* info = kindInfo(kind);
  return info ? info->name : std::string_view();
}

std::optional<uint16_t> parseKind(std::string_view name) {
  for (const KindInfo& info : kKinds)
    if (info.name == name) return info.id;
  return std::nullopt;
}

bool isPrimitive(uint16_t kind) {
  const KindInfo* info = kindInfo(kind);
  return info && info->primitive;
}

bool hasFns(uint16_t kind) {
  const std::string_view name = kindName(kind);
  return std::any_of(std::begin(kFns), std::end(kFns), [&](const FnInfo& fn) { return fn.kind == name; });
}

std::string_view fnName(uint16_t kind, uint16_t fn) {
  const std::string_view name = kindName(kind);
  for (const FnInfo& info : kFns)
    if (info.kind == name && info.id == fn) return info.name;
  return {};
}

std::optional<uint16_t> parseFn(uint16_t kind, std::string_view name) {
  const std::string_view kindText = kindName(kind);
  for (const FnInfo& info : kFns)
    if (info.kind == kindText && info.name == name) return info.id;
  return std::nullopt;
}

std::string_view attrName(uint16_t id) {
  for (const AttrInfo& info : kAttrs)
    if (info.id == id) return info.name;
  return {};
}

std::optional<uint16_t> parseAttr(std::string_view name) {
  for (const AttrInfo& info : kAttrs)
    if (info.name == name) return info.id;
  return std::nullopt;
}

uint8_t attrType(uint16_t id) {
  for (const AttrInfo& info : kAttrs)
    if (info.id == id) return info.type;
  return 0;
}

bool kindTakesAttr(uint16_t kind, uint16_t id) {
  const std::string_view kindText = kindName(kind), attr = attrName(id);
  return !attr.empty() && std::any_of(std::begin(kKindAttrs), std::end(kKindAttrs),
                                      [&](const KindAttr& pair) { return pair.kind == kindText && pair.attr == attr; });
}

} // namespace candela::program
