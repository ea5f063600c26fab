#include "program_image.hpp"

#include <algorithm>
#include <cstring>

namespace npu_sim {

namespace {

/// The largest buffer whose bytes are followed: parameters are short.
constexpr int64_t kFollowedBytes = 1 << 18;

Refusal refuse(uint16_t reason, std::string text) { return {reason, std::move(text)}; }

int64_t padded(int64_t bytes) { return (bytes + 63) / 64 * 64; }

/// Calls body(offset in elements) for every element of a view.
template <class F> void forEachElement(const cdl::Shape& shape, F&& body) {
  std::array<int64_t, CDL_MAX_RANK> index{};
  if (shape.elements() == 0) return;
  for (;;) {
    int64_t offset = 0;
    for (int d = 0; d < shape.rank; ++d)
      offset += index[static_cast<size_t>(d)] * shape.strides[static_cast<size_t>(d)];
    body(offset);
    int d = shape.rank;
    while (d-- > 0 && ++index[static_cast<size_t>(d)] == shape.dims[static_cast<size_t>(d)])
      index[static_cast<size_t>(d)] = 0;
    if (d < 0) return;
  }
}

} // namespace

npu::Type DeviceView::type() const {
  switch (elem) {
  case CDL_I8: return npu::Type::kI8;
  case CDL_U8:
  case CDL_BOOL: return npu::Type::kU8;
  case CDL_I16: return npu::Type::kI16;
  case CDL_I32: return npu::Type::kI32;
  case CDL_BF16: return npu::Type::kBf16;
  case CDL_F32: return npu::Type::kF32;
  default:
    throw Refusal{CDL_REASON_DTYPE,
                  cdl::text("the device has no elements of type ", cdl::elemName(elem))};
  }
}

Access DeviceView::access(bool write) const {
  int64_t low = at, high = at + bytes;
  for (int d = 0; d < rank; ++d) {
    const int64_t step =
        (dims[static_cast<size_t>(d)] - 1) * strides[static_cast<size_t>(d)] * bytes;
    (step < 0 ? low : high) += step;
  }
  return {memory, low, elements() ? high : low, write};
}

bool stepsAlike(const DeviceView& a, const DeviceView& b) {
  if (a.elements() != b.elements()) return false;
  std::vector<std::array<int64_t, 2>> dims[2];
  const DeviceView* both[2] = {&a, &b};
  for (int side = 0; side < 2; ++side) // dims above 1, neighbours joined
    for (int d = both[side]->rank; d-- > 0;) {
      const int64_t extent = both[side]->dims[static_cast<size_t>(d)],
                    stride = both[side]->strides[static_cast<size_t>(d)];
      if (extent == 1) continue;
      auto& list = dims[side];
      if (!list.empty() && stride == list.back()[0] * list.back()[1])
        list.back()[0] *= extent;
      else
        list.push_back({extent, stride});
    }
  return dims[0] == dims[1];
}

bool isSameView(const DeviceView& a, const DeviceView& b) {
  return a.memory == b.memory && a.at == b.at && a.elem == b.elem && stepsAlike(a, b);
}

bool isImmediateInput(const cdl::Op& op, uint32_t i) {
  switch (op.kind()) {
  case cdl::Kind::Conv2d:
  case cdl::Kind::MatMul: // zero points, and what an epilogue that ends in bytes reads
    return i >= 2 &&
           (i < op.operands() || cdl_get_output(op.image(), &op.instr(), 0)->elem != CDL_I32);
  case cdl::Kind::Rescale: return i != 0 && i != 4;
  default: return false;
  }
}

ProgramImage::ProgramImage(const cdl_image_t* image, const void* const* payloads,
                           uint32_t localSpace, int64_t localBytes)
    : image_(image), localSpace_(localSpace), immediate_(image->buffers.count, false),
      weights_(image->buffers.count, false), isNumbers_(image->buffers.count, false),
      touches_(image->buffers.count), values_(image->buffers.count), isKnown_(image->buffers.count),
      isEstimate_(!payloads) {
  for (uint32_t b = 1; b < image->buffers.count; ++b) {
    const cdl_buffer_t* buffer = cdl_get_buffer(image, b);
    if (buffer->space != localSpace) continue;
    if (buffer->role != CDL_ROLE_TEMP || buffer->offset == CDL_UNPLACED ||
        buffer->offset + buffer->bytes > static_cast<uint64_t>(localBytes))
      throw refuse(CDL_REASON_MEMORY,
                   cdl::text("buffer '", cdl_get_string(image, buffer->name), "' of ",
                             buffer->bytes, " bytes is not placed in the ", localBytes,
                             " of the scratchpad"));
  }
  if (image->loops.count > 1)
    throw refuse(CDL_REASON_VENDOR, "the program has loops: it was not tiled");
  findImmediates();
  place(payloads);
  // Tiles overlap, so it may be more than the payloads; pages that are never written cost nothing.
  if (!isEstimate_) layout_.constants.reserve(2 * static_cast<size_t>(payloadBytes_));
  findTouches();
}

void ProgramImage::findImmediates() {
  std::vector<bool> isRead(image_->buffers.count, false);
  for (uint32_t i = 1; i < image_->instrs.count; ++i) {
    const cdl::Op op = this->op(i);
    if (op.kind() == cdl::Kind::Conv2d || op.kind() == cdl::Kind::MatMul)
      weights_[cdl_get_input(image_, &op.instr(), 1)->buffer] = true;
    for (uint32_t v = 0; v < op.inputs(); ++v)
      (isImmediateInput(op, v) ? isNumbers_
                               : isRead)[cdl_get_input(image_, &op.instr(), v)->buffer] = true;
    const bool isConstant =
        op.kind() == cdl::Kind::Copy &&
        cdl_get_buffer(image_, cdl_get_input(image_, &op.instr(), 0)->buffer)->role ==
            CDL_ROLE_CONSTANT;
    for (uint32_t v = 0; v < op.instr().outputs; ++v)
      if (!isConstant) isRead[cdl_get_output(image_, &op.instr(), v)->buffer] = true;
  }
  for (uint32_t b = 1; b < image_->buffers.count; ++b) {
    const cdl_buffer_t* buffer = cdl_get_buffer(image_, b);
    immediate_[b] = !isRead[b] && buffer->space == localSpace_ && buffer->bytes <= kFollowedBytes;
  }
}

void ProgramImage::findTouches() {
  for (uint32_t i = 1; i < image_->instrs.count; ++i) {
    const cdl::Op op = this->op(i);
    for (uint32_t v = 0; v < op.inputs(); ++v) {
      const DeviceView read = input(op, v);
      touches_[read.buffer].push_back({i, false, read.access(false), true});
    }
    for (uint32_t v = 0; v < op.instr().outputs; ++v) {
      const DeviceView written = output(op, v);
      if (op.instr().flags & CDL_INSTR_INOUT)
        touches_[written.buffer].push_back({i, false, written.access(false), true});
      const Access bytes = written.access(true);
      touches_[written.buffer].push_back(
          {i, true, bytes, bytes.end - bytes.begin == written.elements() * written.bytes});
    }
  }
}

/// Places constants that are copied, inputs, outputs and values, each in its region.
void ProgramImage::place(const void* const* payloads) {
  enum : int { kNowhere = -1, kConstants, kInput, kOutput, kActivations };
  layout_.regions = {{"constants", npu::RegionClass::kConstants, 0},
                     {"inputs", npu::RegionClass::kInput, 0},
                     {"outputs", npu::RegionClass::kOutput, 0},
                     {"values", npu::RegionClass::kActivations, 0}};
  layout_.parts.resize(image_->buffers.count);
  std::array<int64_t, 4> bytes{};
  contents_.resize(image_->constants.count);
  for (uint32_t b = 1; b < image_->buffers.count; ++b) {
    const cdl_buffer_t* buffer = cdl_get_buffer(image_, b);
    if (buffer->space == localSpace_) continue;
    Layout::Part& part = layout_.parts[b];
    part.buffer = b;
    part.region = kActivations;
    part.at = static_cast<int64_t>(buffer->offset);
    part.bytes = static_cast<int64_t>(buffer->bytes);
    switch (buffer->role) {
    case CDL_ROLE_TEMP:
      if (buffer->offset == CDL_UNPLACED)
        throw refuse(CDL_REASON_MEMORY, "a buffer of the program is not placed");
      bytes[kActivations] = std::max(bytes[kActivations], padded(part.at + part.bytes));
      continue;
    case CDL_ROLE_CONSTANT:
      part.region = kNowhere;
      placeConstant(*buffer, payloads ? payloads[buffer->constant] : nullptr, part);
      continue;
    case CDL_ROLE_INPUT:
      part.region = kInput;
      part.in = 1;
      break;
    default:
      part.region = kOutput;
      part.in = 1; // what an output does not write stays as it was
      part.out = 1;
      break;
    }
    part.at = bytes[static_cast<size_t>(part.region)];
    bytes[static_cast<size_t>(part.region)] += padded(part.bytes);
  }
  for (size_t r = 1; r < layout_.regions.size(); ++r)
    layout_.regions[r].bytes = static_cast<uint64_t>(bytes[r]);
}

void ProgramImage::placeConstant(const cdl_buffer_t& buffer, const void* payload,
                                 Layout::Part& part) {
  Content& content = contents_[buffer.constant];
  if (!content.bytes) {
    const cdl_constant_t* constant = cdl_get_constant(image_, buffer.constant);
    const auto elemBytes = static_cast<int64_t>((cdl_elem_bits(constant->elem) + 7) / 8);
    content.at = payloadBytes_;
    payloadBytes_ += padded(part.bytes);
    if (payload) {
      content.bytes = static_cast<const std::byte*>(payload);
    } else if (isEstimate_ && !constant->form && part.bytes > kFollowedBytes) {
      content.bytes = zeros(part.bytes);
    } else {
      std::byte* const to = addContent(part.bytes);
      content.bytes = to;
      if (isEstimate_ && !constant->form)
        estimate(buffer.constant, to, elemBytes, part.bytes);
      else if (constant->bits)
        for (int64_t i = 0; i + elemBytes <= part.bytes; i += elemBytes)
          std::memcpy(to + i, &constant->bits, static_cast<size_t>(elemBytes));
    }
  }
  part.at = content.at;
}

std::byte* ProgramImage::addContent(int64_t bytes) {
  auto* const zeros =
      static_cast<std::byte*>(std::calloc(static_cast<size_t>(padded(bytes)) + 64, 1));
  if (!zeros) throw std::bad_alloc();
  ownContents_.emplace_back(zeros);
  return zeros;
}

/// Zeros, the same for all that is large and not known.
const std::byte* ProgramImage::zeros(int64_t bytes) {
  if (bytes > zeroBytes_) {
    zeros_ = addContent(bytes);
    zeroBytes_ = bytes;
  }
  return zeros_;
}

/// Makes up numbers that every place of a program takes, shifts too, and that differ from channel
/// to channel and constant to constant where they are no bytes: what has another content is another
/// record.
void ProgramImage::estimate(uint32_t constant, std::byte* to, int64_t elemBytes, int64_t bytes) {
  for (int64_t i = 0; elemBytes >= 4 && bytes <= kFollowedBytes && i < bytes / elemBytes; ++i) {
    const uint32_t number = (constant * 40503 + static_cast<uint32_t>(i) * 2654435761) >> 16 & 31;
    std::memcpy(to + i * elemBytes, &number, sizeof number);
  }
}

int64_t ProgramImage::addConstant(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const size_t hash = std::hash<std::string_view>{}(text);
  const auto [first, last] = added_.equal_range(hash);
  for (auto each = first; each != last; ++each) {
    const Added& added = each->second;
    const std::byte* const known =
        isEstimate_ ? added.bytes.data() : layout_.constants.data() + added.at;
    if (added.size == bytes.size() && std::memcmp(known, bytes.data(), bytes.size()) == 0)
      return added.at;
  }
  const int64_t at = reserveConstant(static_cast<int64_t>(bytes.size()));
  Added& added = added_.emplace(hash, Added{at, bytes.size(), {}})->second;
  if (isEstimate_) {
    added.bytes.assign(bytes.begin(), bytes.end());
    return at;
  }
  layout_.constants.insert(layout_.constants.end(), bytes.begin(), bytes.end());
  layout_.constants.resize(layout_.constantBytes);
  return at;
}

/// A place for so many bytes that the program loads.
int64_t ProgramImage::reserveConstant(int64_t bytes) {
  const auto at = static_cast<int64_t>(layout_.constantBytes);
  layout_.constantBytes += static_cast<uint64_t>(padded(bytes));
  return at;
}

DeviceView ProgramImage::addHanded(const DeviceView& local) {
  // Behind the regions of every program.
  constexpr size_t kHanded = 4;
  if (layout_.regions.size() == kHanded)
    layout_.regions.push_back({"handed", npu::RegionClass::kSpill, 0});
  std::array<size_t, CDL_MAX_RANK> order{}; // dims, inner to outer
  for (size_t d = 0; d < order.size(); ++d) order[d] = d;
  std::stable_sort(order.begin(), order.begin() + local.rank, [&](size_t a, size_t b) {
    return std::abs(local.strides[a]) < std::abs(local.strides[b]);
  });
  DeviceView far = local;
  int64_t within = 1;
  for (size_t d = 0; d < static_cast<size_t>(local.rank); ++d) {
    far.strides[order[d]] = within;
    within *= local.dims[order[d]];
  }
  npu::Region& region = layout_.regions[kHanded];
  far.memory = Access::kRegions + static_cast<int>(kHanded);
  far.at = static_cast<int64_t>(region.bytes);
  region.bytes += static_cast<uint64_t>(padded(within * local.bytes));
  return far;
}

Layout ProgramImage::takeLayout() {
  layout_.regions[0].bytes = layout_.constantBytes;
  return std::move(layout_);
}

DeviceView ProgramImage::packed(const DeviceView& payload, const DeviceView& to) {
  std::array<size_t, CDL_MAX_RANK> order{}; // dims, outer to inner
  for (size_t d = 0; d < order.size(); ++d) order[d] = d;
  std::stable_sort(order.begin(), order.begin() + to.rank, [&](size_t a, size_t b) {
    return std::abs(to.strides[a]) > std::abs(to.strides[b]);
  });
  DeviceView from = payload, sorted = payload;
  int64_t within = 1;
  for (auto d = static_cast<size_t>(to.rank); d-- > 0;) {
    from.strides[order[d]] = within;
    within *= payload.dims[order[d]];
    sorted.dims[d] = payload.dims[order[d]];
    sorted.strides[d] = payload.strides[order[d]];
  }
  from.memory = Access::kRegions;
  std::vector<int64_t> view{payload.at, payload.bytes};
  view.insert(view.end(), sorted.dims.begin(), sorted.dims.begin() + to.rank);
  view.insert(view.end(), sorted.strides.begin(), sorted.strides.begin() + to.rank);
  const auto [at, isNew] = packed_.try_emplace(std::move(view), 0);
  if (isNew && isEstimate_)
    at->second = reserveConstant(within * payload.bytes);
  else if (isNew)
    at->second = addConstant(gathered(sorted));
  from.at = at->second;
  return from;
}

/// The elements of a view of a payload, one behind the other.
const std::vector<std::byte>& ProgramImage::gathered(const DeviceView& payload) {
  const std::byte* const content = contentOf(payload);
  const auto size = static_cast<size_t>(payload.bytes);
  gathered_.resize(static_cast<size_t>(payload.elements()) * size);
  // The dims that lie side by side are one run.
  cdl::Shape outer = payload;
  int64_t run = 1;
  while (outer.rank > 0) {
    const auto d = static_cast<size_t>(outer.rank - 1);
    if (outer.dims[d] != 1 && outer.strides[d] != run) break;
    run *= outer.dims[d];
    --outer.rank;
  }
  std::byte* to = gathered_.data();
  const auto copyRuns = [&](auto bytes) {
    forEachElement(outer, [&](int64_t at) {
      std::memcpy(to, content + at * payload.bytes, bytes);
      to += bytes;
    });
  };
  if (run == 1 && size == 1)
    copyRuns(std::integral_constant<size_t, 1>{});
  else
    copyRuns(static_cast<size_t>(run) * size);
  return gathered_;
}

DeviceView ProgramImage::operand(const cdl_view_t& view) const {
  DeviceView o;
  const cdl_buffer_t* buffer = cdl_get_buffer(image_, view.buffer);
  o.rank = view.rank;
  for (int d = 0; d < view.rank; ++d) {
    o.dims[static_cast<size_t>(d)] = view.dims[d];
    o.strides[static_cast<size_t>(d)] = view.strides[d];
  }
  o.elem = view.elem;
  o.buffer = view.buffer;
  const auto bits = static_cast<int64_t>(cdl_elem_bits(view.elem));
  if (bits < 8) throw refuse(CDL_REASON_DTYPE, cdl::text("elements of ", bits, " bits"));
  o.bytes = bits / 8;
  if (buffer->space == localSpace_) {
    o.memory = Access::kScratchpad;
    o.at = static_cast<int64_t>(buffer->offset) + view.offset * o.bytes;
  } else {
    const int region = layout_.parts[view.buffer].region;
    o.memory = region < 0 ? Access::kPayload : Access::kRegions + region;
    o.at = layout_.parts[view.buffer].at + view.offset * o.bytes;
  }
  return o;
}

DeviceView ProgramImage::input(const cdl::Op& op, uint32_t i) const {
  if (!instead_.empty())
    if (const auto other = instead_.find({op.index(), i}); other != instead_.end())
      return other->second;
  return operand(*cdl_get_input(image_, &op.instr(), i));
}

void ProgramImage::advance(const cdl::Op& op) {
  for (uint32_t v = 0; v < op.instr().outputs; ++v) {
    const cdl_view_t& view = *cdl_get_output(image_, &op.instr(), v);
    const cdl_buffer_t* buffer = cdl_get_buffer(image_, view.buffer);
    if (buffer->space != localSpace_ || !isNumbers_[view.buffer] ||
        buffer->bytes > static_cast<uint64_t>(kFollowedBytes))
      continue;
    const DeviceView to = operand(view);
    const auto start = to.at - static_cast<int64_t>(buffer->offset);
    std::vector<uint8_t>& isKnown = isKnown_[view.buffer];
    std::vector<int64_t> from;
    DeviceView source;
    if (op.kind() == cdl::Kind::Copy) {
      source = input(op, 0);
      if (source.memory == Access::kPayload)
        forEachElement(source, [&](int64_t at) { from.push_back(at); });
    }
    if (from.empty() && isKnown.empty()) continue; // nothing was known, nothing is
    isKnown.resize(static_cast<size_t>(buffer->bytes));
    values_[view.buffer].resize(static_cast<size_t>(buffer->bytes));
    const std::byte* const content = from.empty() ? nullptr : contentOf(source);
    size_t i = 0;
    forEachElement(to, [&](int64_t at) {
      for (int64_t b = 0; b < to.bytes; ++b) {
        const auto place = static_cast<size_t>(start + at * to.bytes + b);
        isKnown[place] = !from.empty();
        if (!from.empty())
          values_[view.buffer][place] = static_cast<uint8_t>(content[from[i] * source.bytes + b]);
      }
      ++i;
    });
  }
}

const void* ProgramImage::knownBytes(const DeviceView& operand, int64_t element,
                                     int64_t count) const {
  if (operand.memory == Access::kPayload) return contentOf(operand) + element * operand.bytes;
  if (!operand.isLocal()) return nullptr;
  const auto base =
      operand.at - static_cast<int64_t>(cdl_get_buffer(image_, operand.buffer)->offset);
  const auto place = static_cast<size_t>(base + element * operand.bytes);
  const auto bytes = static_cast<size_t>(count * operand.bytes);
  const std::vector<uint8_t>& isKnown = isKnown_[operand.buffer];
  if (place + bytes > isKnown.size() || std::memchr(isKnown.data() + place, 0, bytes))
    return nullptr;
  return values_[operand.buffer].data() + place;
}

std::optional<std::vector<int32_t>> ProgramImage::knownRow(const DeviceView& operand,
                                                           int64_t count) const {
  const void* const from = knownBytes(operand, 0, count);
  if (!from) return std::nullopt;
  std::vector<int32_t> values(static_cast<size_t>(count));
  std::memcpy(values.data(), from, values.size() * sizeof(int32_t));
  return values;
}

std::optional<int32_t> ProgramImage::known(const DeviceView& operand, int64_t element) const {
  const auto bytes = static_cast<size_t>(operand.bytes);
  const void* const from = knownBytes(operand, element, 1);
  if (!from || bytes > 8) return std::nullopt;
  uint64_t bits = 0;
  std::memcpy(&bits, from, bytes);
  switch (operand.elem) {
  case CDL_I8: return static_cast<int8_t>(bits);
  case CDL_I16: return static_cast<int16_t>(bits);
  case CDL_I64:
    if (const auto value = static_cast<int64_t>(bits); value < INT32_MIN || value > INT32_MAX)
      throw refuse(CDL_REASON_VENDOR, cdl::text("the number ", value, " has more than 32 bits"));
    [[fallthrough]];
  default: return static_cast<int32_t>(bits);
  }
}

uint64_t lowestBits(uint8_t elem) {
  if (elem == CDL_BF16) return 0xff80; // -inf
  return elem == CDL_F32 ? 0xff800000 : static_cast<uint64_t>(int64_t{limitsOf(elem).low});
}

uint64_t highestBits(uint8_t elem) {
  if (elem == CDL_BF16) return 0x7f80;
  return elem == CDL_F32 ? 0x7f800000 : static_cast<uint64_t>(int64_t{limitsOf(elem).high});
}

IntegerLimits limitsOf(uint8_t elem) {
  switch (elem) {
  case CDL_I8: return {-128, 127};
  case CDL_U8: return {0, 255};
  case CDL_I16: return {-32768, 32767};
  default: return {INT32_MIN, INT32_MAX};
  }
}

int32_t ProgramImage::scalar(const DeviceView& operand, const char* what) const {
  std::optional<int32_t> value;
  DeviceView once = operand; // what is only repeated is looked at once
  for (int d = 0; d < once.rank; ++d)
    if (const auto at = static_cast<size_t>(d); once.strides[at] == 0)
      once.dims[at] = std::min<int64_t>(once.dims[at], 1);
  forEachElement(once, [&](int64_t at) {
    const std::optional<int32_t> here = known(operand, at);
    if (!here) throw refuse(CDL_REASON_NOT_CONSTANT, cdl::text(what, " is no constant"));
    if (value && *value != *here)
      throw refuse(CDL_REASON_DIM, cdl::text(what, " differs: ", *value, " and ", *here,
                                             "; the device has one of all"));
    value = here;
  });
  if (!value) throw refuse(CDL_REASON_DIM, cdl::text(what, " has no element"));
  return *value;
}

bool ProgramImage::readsAlone(uint32_t writer, uint32_t reader, uint32_t buffer) const {
  const auto readers = readsOf(writer, buffer);
  return readers && *readers == std::vector{reader};
}

std::optional<std::vector<uint32_t>> ProgramImage::readsOf(uint32_t writer, uint32_t buffer) const {
  if (cdl_get_buffer(image_, buffer)->role != CDL_ROLE_TEMP) return std::nullopt;
  const Access* written = nullptr; // the last one
  uint32_t from = 0;
  std::vector<uint32_t> readers;
  for (const Touch& touch : touches_[buffer]) {
    if (touch.write) {
      written = touch.dense ? &touch.bytes : nullptr;
      from = touch.instr;
      if (from == writer) written = &touch.bytes;
      continue;
    }
    // Every reader reads of what the last write left, without holes, or who reads what is open.
    if (!written || touch.bytes.begin < written->begin || touch.bytes.end > written->end)
      return std::nullopt;
    if (from != writer) continue;
    if (readers.empty() || readers.back() != touch.instr) readers.push_back(touch.instr);
  }
  return readers;
}

} // namespace npu_sim
