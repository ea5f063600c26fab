#include "core/program/image.h"

#include <cstring>
#include <map>

namespace candela::program {

static_assert(sizeof(cdl_space_t) == 24 && sizeof(cdl_buffer_t) == 40 && sizeof(cdl_halo_t) == 80 &&
              sizeof(cdl_layout_t) == 48 && sizeof(cdl_view_t) == 160 && sizeof(cdl_expr_t) == 8 &&
              sizeof(cdl_step_t) == 32 && sizeof(cdl_attr_t) == 72 && sizeof(cdl_instr_t) == 48 &&
              sizeof(cdl_wait_t) == 8 && sizeof(cdl_loop_t) == 24 && sizeof(cdl_group_t) == 16 &&
              sizeof(cdl_constant_t) == 56 && sizeof(cdl_provenance_t) == 16);

namespace {

uint32_t reference(uint32_t index) { return index == kNone ? 0 : index + 1; }

/// The sections while they grow. Every one begins with its null record. Strings and layouts are
/// shared, in the order of their first use; everything else stands in the order of the
/// instructions, so equal Programs give equal bytes.
class Writer {
public:
  explicit Writer(const Program& program) : program_(program) {}

  Bytes write() {
    cdl_image_t header{};
    std::memcpy(header.magic, "CDLP", 4);
    header.major = CDL_IMAGE_MAJOR;
    header.minor = CDL_IMAGE_MINOR;
    header.name = string(program_.name);
    header.engines = program_.engines;
    for (const Space& space : program_.spaces) add(space);
    for (const Constant& constant : program_.constants) add(constant);
    for (const Buffer& buffer : program_.buffers) add(buffer);
    for (const Instr& instr : program_.instrs) add(instr);
    for (const Loop& loop : program_.loops)
      loops_.push_back({loop.first + 1, loop.count, reference(loop.parent), 0, loop.trip});
    for (const Group& group : program_.groups)
      groups_.push_back({group.first + 1, group.count, group.bandDim, group.bands});
    return assemble(header);
  }

private:
  template <typename T> using Records = std::vector<T>;

  uint32_t string(const std::string& text) {
    if (text.empty()) return 0;
    const auto [at, isNew] = stringAt_.try_emplace(text, static_cast<uint32_t>(strings_.size()));
    if (isNew) strings_.insert(strings_.end(), text.c_str(), text.c_str() + text.size() + 1);
    return at->second;
  }

  void add(const Space& space) {
    cdl_space_t record{};
    record.name = string(space.name);
    record.flags = (space.hostMapped ? CDL_SPACE_HOST_MAPPED : 0) | (space.local ? CDL_SPACE_LOCAL : 0);
    record.capacity_bytes = space.capacityBytes;
    record.alignment = space.alignment;
    record.banks = space.banks;
    spaces_.push_back(record);
  }

  void add(const Constant& constant) {
    const Payload& payload = constant.payload;
    cdl_constant_t record{};
    record.bytes = payload.sizeBytes();
    record.name = string(constant.name);
    record.elem = static_cast<uint8_t>(payload.elem());
    if (payload.form() == Payload::Form::splat) {
      record.form = 1;
      record.bits = payload.splatBits();
    } else {
      const Hash hash = payload.hash();
      std::memcpy(record.hash, hash.data(), hash.size());
    }
    constants_.push_back(record);
  }

  uint32_t halo(const Halo& halo) {
    cdl_halo_t record{};
    record.rank = static_cast<uint8_t>(halo.lo.size());
    record.elem = static_cast<uint8_t>(halo.elem);
    CDL_CHECK(halo.lo.size() <= CDL_MAX_RANK && halo.hi.size() == halo.lo.size());
    for (size_t d = 0; d < halo.lo.size(); ++d) {
      record.lo[d] = halo.lo[d];
      record.hi[d] = halo.hi[d];
    }
    record.fill = halo.fill;
    halos_.push_back(record);
    return static_cast<uint32_t>(halos_.size() - 1);
  }

  void add(const Buffer& buffer) {
    cdl_buffer_t record{};
    record.name = string(buffer.name);
    record.space = buffer.space + 1;
    record.bytes = buffer.bytes;
    record.offset = buffer.offset;
    record.alignment = buffer.alignment;
    record.role = static_cast<uint8_t>(buffer.role);
    record.constant = reference(buffer.constant);
    record.halo = buffer.halo ? halo(*buffer.halo) : 0;
    buffers_.push_back(record);
  }

  uint16_t layout(const Layout& layout) {
    if (layout.isRowMajor()) return 0;
    cdl_layout_t record{};
    CDL_CHECK(layout.steps.size() <= CDL_MAX_RANK);
    record.count = static_cast<uint8_t>(layout.steps.size());
    record.logical_rank = layout.logicalRank;
    record.pad_content = layout.padContent;
    record.opaque = layout.opaque;
    record.name = string(layout.name);
    for (size_t i = 0; i < layout.steps.size(); ++i) {
      record.dim[i] = layout.steps[i].dim;
      record.factor[i] = layout.steps[i].factor;
    }
    const std::string key(reinterpret_cast<const char*>(&record), sizeof record);
    const auto [at, isNew] = layoutAt_.try_emplace(key, static_cast<uint16_t>(layouts_.size()));
    if (isNew) layouts_.push_back(record);
    return at->second;
  }

  void add(const View& view) {
    cdl_view_t record{};
    CDL_CHECK(view.dims.size() <= CDL_MAX_RANK && view.strides.size() == view.dims.size());
    record.buffer = view.buffer + 1;
    record.elem = static_cast<uint8_t>(view.elem);
    record.rank = static_cast<uint8_t>(view.dims.size());
    record.layout = layout(view.layout);
    record.offset = view.offset;
    std::copy(view.dims.begin(), view.dims.end(), record.dims);
    std::copy(view.strides.begin(), view.strides.end(), record.strides);
    std::copy(std::begin(view.ivStrides), std::end(view.ivStrides), record.iv_strides);
    views_.push_back(record);
  }

  void add(const Attr& attr) {
    cdl_attr_t record{};
    CDL_CHECK(attr.values.size() <= 8);
    record.id = attr.id;
    record.type = attr.type;
    record.count = static_cast<uint8_t>(attr.values.size());
    std::copy(attr.values.begin(), attr.values.end(), record.values);
    attrs_.push_back(record);
  }

  void add(const Step& step) {
    cdl_step_t record{};
    CDL_CHECK(step.in.size() <= 3);
    record.kind = step.kind;
    record.fn = step.fn;
    record.elem = static_cast<uint8_t>(step.elem);
    record.operands = static_cast<uint8_t>(step.in.size());
    record.flags = step.saturate;
    for (size_t i = 0; i < step.in.size(); ++i)
      record.in[i] = {static_cast<uint8_t>(step.in[i].source), static_cast<uint8_t>(step.in[i].elem), step.in[i].index};
    record.imm = step.imm;
    steps_.push_back(record);
  }

  /// Where the next `count` records of a section will stand; 0 for none of them.
  template <typename T> static uint32_t next(const Records<T>& records, size_t count) {
    return count ? static_cast<uint32_t>(records.size()) : 0;
  }

  void add(const Instr& instr) {
    cdl_instr_t record{};
    record.kind = instr.kind;
    record.fn = instr.fn;
    record.engine = instr.engine;
    record.flags = instr.inout ? CDL_INSTR_INOUT : 0;
    record.inputs = static_cast<uint8_t>(instr.inputs.size());
    record.outputs = static_cast<uint8_t>(instr.outputs.size());
    record.attrs = static_cast<uint16_t>(instr.attrs.size());
    record.waits = static_cast<uint32_t>(instr.waits.size());
    record.first_view = next(views_, instr.inputs.size() + instr.outputs.size());
    record.first_attr = next(attrs_, instr.attrs.size());
    record.first_wait = next(waits_, instr.waits.size());
    record.expr = next(exprs_, instr.expr.size());
    record.provenance = next(provenance_, instr.provenance.size());
    record.loop = reference(instr.loop);
    record.group = reference(instr.group);
    for (const View& view : instr.inputs) add(view);
    for (const View& view : instr.outputs) add(view);
    for (const Attr& attr : instr.attrs) add(attr);
    for (uint32_t wait : instr.waits) waits_.push_back({wait + 1, 0});
    if (!instr.expr.empty()) exprs_.push_back({next(steps_, 1), static_cast<uint32_t>(instr.expr.size())});
    for (const Step& step : instr.expr) add(step);
    for (size_t i = 0; i < instr.provenance.size(); ++i) {
      const bool last = i + 1 == instr.provenance.size();
      provenance_.push_back({string(instr.provenance[i].node), string(instr.provenance[i].op),
                             last ? 0 : static_cast<uint32_t>(provenance_.size() + 1), 0});
    }
    instrs_.push_back(record);
  }

  template <typename T> void place(cdl_section_t& section, const std::vector<T>& records) {
    section = {size_, sizeof(T), static_cast<uint32_t>(records.size())};
    parts_.push_back({size_, records.data(), records.size() * sizeof(T)});
    size_ = (size_ + records.size() * sizeof(T) + 7) / 8 * 8;
  }

  Bytes assemble(cdl_image_t& header) {
    size_ = sizeof(cdl_image_t);
    place(header.strings, strings_);
    place(header.spaces, spaces_);
    place(header.buffers, buffers_);
    place(header.halos, halos_);
    place(header.layouts, layouts_);
    place(header.views, views_);
    place(header.exprs, exprs_);
    place(header.steps, steps_);
    place(header.attrs, attrs_);
    place(header.instrs, instrs_);
    place(header.waits, waits_);
    place(header.loops, loops_);
    place(header.groups, groups_);
    place(header.constants, constants_);
    place(header.provenance, provenance_);
    header.size = size_;
    auto image = Bytes::allocate(size_);
    CDL_CHECK(image.isOk(), "{}", image.status().message());
    std::byte* data = image->mutableData();
    for (const Part& part : parts_) std::memcpy(data + part.offset, part.data, part.bytes);
    std::memcpy(data, &header, sizeof header);
    const Hash hash = sha256(data, size_);
    std::memcpy(data + offsetof(cdl_image_t, hash), hash.data(), hash.size());
    return std::move(image).value();
  }

  struct Part {
    uint64_t offset;
    const void* data;
    size_t bytes;
  };

  const Program& program_;
  std::map<std::string, uint32_t> stringAt_;
  std::map<std::string, uint16_t> layoutAt_;
  std::vector<char> strings_{'\0'};
  Records<cdl_space_t> spaces_ = Records<cdl_space_t>(1);
  Records<cdl_buffer_t> buffers_ = Records<cdl_buffer_t>(1);
  Records<cdl_halo_t> halos_ = Records<cdl_halo_t>(1);
  Records<cdl_layout_t> layouts_ = Records<cdl_layout_t>(1);
  Records<cdl_view_t> views_ = Records<cdl_view_t>(1);
  Records<cdl_expr_t> exprs_ = Records<cdl_expr_t>(1);
  Records<cdl_step_t> steps_ = Records<cdl_step_t>(1);
  Records<cdl_attr_t> attrs_ = Records<cdl_attr_t>(1);
  Records<cdl_instr_t> instrs_ = Records<cdl_instr_t>(1);
  Records<cdl_wait_t> waits_ = Records<cdl_wait_t>(1);
  Records<cdl_loop_t> loops_ = Records<cdl_loop_t>(1);
  Records<cdl_group_t> groups_ = Records<cdl_group_t>(1);
  Records<cdl_constant_t> constants_ = Records<cdl_constant_t>(1);
  Records<cdl_provenance_t> provenance_ = Records<cdl_provenance_t>(1);
  std::vector<Part> parts_;
  uint64_t size_ = 0;
};

} // namespace

Bytes toImage(const Program& program) { return Writer(program).write(); }

} // namespace candela::program
