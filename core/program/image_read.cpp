#include <cstring>

#include "core/program/image.h"

namespace candela::program {

namespace {

uint32_t index(uint32_t reference) { return reference == 0 ? kNone : reference - 1; }

/// Reads a checked image. Records that instructions may share are counted: an image whose
/// instructions all name the same thousand views would else grow a thousandfold when it is read.
class Reader {
public:
  Reader(const cdl_image_t* image, const PayloadSource& payloads) : image_(image), payloads_(payloads) {}

  Result<Program> read() {
    program_.name = string(image_->name);
    program_.engines = image_->engines;
    program_.spaces.clear();
    for (uint32_t i = 1; i < image_->spaces.count; ++i) readSpace(*cdl_get_space(image_, i));
    for (uint32_t i = 1; i < image_->constants.count; ++i) CDL_TRY(readConstant(*cdl_get_constant(image_, i)));
    for (uint32_t i = 1; i < image_->buffers.count; ++i) readBuffer(*cdl_get_buffer(image_, i));
    for (uint32_t i = 1; i < image_->loops.count; ++i) {
      const cdl_loop_t& loop = *cdl_get_loop(image_, i);
      program_.loops.push_back({loop.first - 1, loop.count, index(loop.parent), loop.trip});
    }
    for (uint32_t i = 1; i < image_->groups.count; ++i) {
      const cdl_group_t& group = *cdl_get_group(image_, i);
      program_.groups.push_back({group.first - 1, group.count, group.band_dim, group.bands});
    }
    program_.instrs.reserve(image_->instrs.count - 1);
    for (uint32_t i = 1; i < image_->instrs.count; ++i)
      CDL_TRY(readInstr(*cdl_get_instr(image_, i)).context(fmt::format("image: instruction {}", i)));
    return std::move(program_);
  }

private:
  std::string string(uint32_t offset) const { return cdl_get_string(image_, offset); }

  void readSpace(const cdl_space_t& record) {
    program_.spaces.push_back({string(record.name), (record.flags & CDL_SPACE_HOST_MAPPED) != 0,
                               (record.flags & CDL_SPACE_LOCAL) != 0, record.capacity_bytes, record.alignment,
                               record.banks});
  }

  Status readConstant(const cdl_constant_t& record) {
    const auto elem = static_cast<Elem>(record.elem);
    const std::string name = string(record.name);
    if (record.bytes > (uint64_t(1) << 48))
      return badModel("image: constant '{}' of {} bytes exceeds {}", name, record.bytes, uint64_t(1) << 48);
    const auto count = static_cast<int64_t>(record.bytes * 8 / elemBits(elem));
    if (elemBytes(elem, count) != record.bytes)
      return badModel("image: constant '{}' of {} bytes is no multiple of {}", name, record.bytes, elemName(elem));
    Payload payload = Payload::splat(elem, count, record.form ? record.bits : 0);
    if (!record.form && payloads_) {
      auto found = payloads_(record);
      if (!found) return found.status().context(fmt::format("constant '{}'", name));
      payload = std::move(found).value();
      if (payload.form() != Payload::Form::data) { // an image says data where it names a hash
        CDL_ASSIGN(Tensor tensor, payload.materialize({payload.count()}));
        payload = Payload::data(std::move(tensor));
      }
      const Hash hash = payload.hash();
      if (payload.elem() != elem || payload.sizeBytes() != record.bytes ||
          std::memcmp(hash.data(), record.hash, hash.size()) != 0)
        return badModel("image: the payload of constant '{}' is another one: {} bytes with hash "
                        "{}, expected {} bytes",
                        name, payload.sizeBytes(), hashText(hash), record.bytes);
    }
    program_.constants.push_back({name, std::move(payload)});
    return Status::ok();
  }

  void readBuffer(const cdl_buffer_t& record) {
    Buffer buffer;
    buffer.name = string(record.name);
    buffer.space = record.space - 1;
    buffer.bytes = record.bytes;
    buffer.offset = record.offset;
    buffer.alignment = record.alignment;
    buffer.role = static_cast<Role>(record.role);
    buffer.constant = index(record.constant);
    if (record.halo) {
      const cdl_halo_t& halo = *cdl_get_halo(image_, record.halo);
      buffer.halo =
          Halo{static_cast<Elem>(halo.elem), {halo.lo, halo.lo + halo.rank}, {halo.hi, halo.hi + halo.rank}, halo.fill};
    }
    program_.buffers.push_back(std::move(buffer));
  }

  Layout readLayout(uint16_t reference) const {
    Layout layout;
    if (reference == 0) return layout;
    const cdl_layout_t& record = *cdl_get_layout(image_, reference);
    layout.logicalRank = record.logical_rank;
    layout.padContent = record.pad_content;
    layout.opaque = record.opaque != 0;
    layout.name = string(record.name);
    for (int i = 0; i < record.count; ++i) layout.steps.push_back({record.dim[i], record.factor[i]});
    return layout;
  }

  View readView(const cdl_view_t& record) const {
    View view;
    view.buffer = record.buffer - 1;
    view.elem = static_cast<Elem>(record.elem);
    view.layout = readLayout(record.layout);
    view.offset = record.offset;
    view.dims.assign(record.dims, record.dims + record.rank);
    view.strides.assign(record.strides, record.strides + record.rank);
    std::copy(std::begin(record.iv_strides), std::end(record.iv_strides), view.ivStrides);
    return view;
  }

  Step readStep(const cdl_step_t& record) const {
    Step step{record.kind, record.fn, static_cast<Elem>(record.elem), record.flags != 0, {}, record.imm};
    for (int i = 0; i < record.operands; ++i)
      step.in.push_back({static_cast<Operand::Source>(record.in[i].source), static_cast<Elem>(record.in[i].elem),
                         record.in[i].index});
    return step;
  }

  /// Counts what was read of a section, which holds more records than that when none is read twice.
  static Status count(std::string_view section, uint64_t& total, uint64_t more, uint32_t records) {
    total += more;
    return total < records ? Status::ok() : badModel("shares {}: {} used of {}", section, total, records - 1);
  }

  Status readInstr(const cdl_instr_t& record) {
    CDL_TRY(count("views", views_, uint64_t(record.inputs) + record.outputs, image_->views.count));
    CDL_TRY(count("attributes", attrs_, record.attrs, image_->attrs.count));
    CDL_TRY(count("waits", waits_, record.waits, image_->waits.count));
    Instr instr;
    instr.kind = record.kind;
    instr.fn = record.fn;
    instr.engine = record.engine;
    instr.inout = (record.flags & CDL_INSTR_INOUT) != 0;
    instr.loop = index(record.loop);
    instr.group = index(record.group);
    for (uint32_t i = 0; i < record.inputs; ++i) instr.inputs.push_back(readView(*cdl_get_input(image_, &record, i)));
    for (uint32_t i = 0; i < record.outputs; ++i)
      instr.outputs.push_back(readView(*cdl_get_output(image_, &record, i)));
    for (uint32_t i = 0; i < record.attrs; ++i) {
      const cdl_attr_t& attr = *cdl_get_attr(image_, record.first_attr + i);
      instr.attrs.push_back({attr.id, attr.type, {attr.values, attr.values + attr.count}});
    }
    for (uint32_t i = 0; i < record.waits; ++i)
      instr.waits.push_back(cdl_get_wait(image_, record.first_wait + i)->instr - 1);
    if (record.expr) {
      const cdl_expr_t& expr = *cdl_get_expr(image_, record.expr);
      CDL_TRY(count("steps", steps_, expr.steps, image_->steps.count));
      for (uint32_t i = 0; i < expr.steps; ++i)
        instr.expr.push_back(readStep(*cdl_get_step(image_, expr.first_step + i)));
    }
    for (uint32_t i = record.provenance; i != 0;) {
      CDL_TRY(count("provenance", provenance_, 1, image_->provenance.count));
      const cdl_provenance_t& origin = *cdl_get_provenance(image_, i);
      instr.provenance.push_back({string(origin.node), string(origin.op)});
      i = origin.next;
    }
    program_.instrs.push_back(std::move(instr));
    return Status::ok();
  }

  const cdl_image_t* image_;
  const PayloadSource& payloads_;
  Program program_;
  uint64_t views_ = 0, attrs_ = 0, waits_ = 0, steps_ = 0, provenance_ = 0;
};

} // namespace

Result<Program> fromImage(const Bytes& given, const PayloadSource& payloads) {
  const bool aligned = reinterpret_cast<uintptr_t>(given.data()) % 8 == 0;
  const Bytes image = aligned ? given : Bytes::copyOf(given.data(), given.size());
  char text[256] = "";
  cdl_error_t error{text, sizeof text, 0};
  if (const cdl_code_t code = cdl_image_check(image.data(), image.size(), &error); code != CDL_OK)
    return failure(static_cast<Code>(code), "{}", text);
  CDL_TRY(checkImageHash(image));
  CDL_ASSIGN(Program program, Reader(reinterpret_cast<const cdl_image_t*>(image.data()), payloads).read());
  CDL_TRY(verify(program));
  return program;
}

} // namespace candela::program
