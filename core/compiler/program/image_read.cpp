#include <cstring>

#include "core/compiler/program/image.h"
#include "core/compiler/program/records.h"

namespace candela::program {

namespace {

/// Reads a checked image. Records that instructions may share are counted: an image whose
/// instructions all name the same thousand views would else grow a thousandfold when it is read.
class Reader {
public:
  Reader(const cdl_image_t* image, const PayloadSource& payloads)
      : image_(image), payloads_(payloads) {}

  Result<Program> read() {
    text(program_.name, image_->name);
    program_.engines = image_->engines;
    program_.spaces.clear();
#define CANDELA_READ(record, section)                                                              \
  for (uint32_t i = 1; i < image_->section.count; ++i)                                             \
    fields(*this, program_.section.emplace_back(), *cdl_get_##record(image_, i));
    CANDELA_READ(space, spaces)
    CANDELA_READ(buffer, buffers)
    CANDELA_READ(loop, loops)
    CANDELA_READ(group, groups)
#undef CANDELA_READ
    for (uint32_t i = 1; i < image_->constants.count; ++i)
      CDL_TRY(readConstant(*cdl_get_constant(image_, i)));
    program_.instrs.reserve(image_->instrs.count - 1);
    for (uint32_t i = 1; i < image_->instrs.count; ++i) {
      fields(*this, program_.instrs.emplace_back(), *cdl_get_instr(image_, i));
      CDL_TRY(shared_.context(fmt::format("image: instruction {}", i)));
    }
    return std::move(program_);
  }

  // ---- The way of records.h
  // --------------------------------------------------------------------------------

  template <typename Member, typename Field> void value(Member& member, Field field) {
    member = static_cast<Member>(field);
  }
  void index(uint32_t& member, uint32_t field) { member = field == 0 ? kNone : field - 1; }
  void flag(bool& member, unsigned field, unsigned bit) { member = (field & bit) != 0; }
  void text(std::string& member, uint32_t field) { member = cdl_get_string(image_, field); }
  void items(auto& members, size_t count, size_t, const auto& item) {
    members.resize(count);
    for (size_t i = 0; i < count; ++i) item(members[i], i);
  }
  void equal(const char*, const auto&, const char*, const auto&) {}

  void halo(std::optional<Halo>& halo, uint32_t field) {
    if (field) fields(*this, halo.emplace(), *cdl_get_halo(image_, field));
  }
  void layout(Layout& layout, uint16_t field) {
    if (field) fields(*this, layout, *cdl_get_layout(image_, field));
  }
  void parts(Instr& instr, const cdl_instr_t& record) {
    const cdl_expr_t expr = *cdl_get_expr(image_, record.expr); // of the null record: without steps
    if (!count("views", views_, uint64_t(record.inputs) + record.outputs, image_->views.count) ||
        !count("attributes", attrs_, record.attrs, image_->attrs.count) ||
        !count("waits", waits_, record.waits, image_->waits.count) ||
        !count("steps", steps_, expr.steps, image_->steps.count))
      return;
    const auto read = [&](auto& list, auto get, uint32_t first, uint32_t count) {
      for (uint32_t i = 0; i < count; ++i)
        fields(*this, list.emplace_back(), *get(image_, first + i));
    };
    read(instr.inputs, cdl_get_view, record.first_view, record.inputs);
    read(instr.outputs, cdl_get_view, record.first_view + record.inputs, record.outputs);
    read(instr.attrs, cdl_get_attr, record.first_attr, record.attrs);
    read(instr.waits, cdl_get_wait, record.first_wait, record.waits);
    read(instr.expr, cdl_get_step, expr.first_step, expr.steps);
    for (uint32_t i = record.provenance; i != 0; i = cdl_get_provenance(image_, i)->next) {
      if (!count("provenance", provenance_, 1, image_->provenance.count)) return;
      read(instr.provenance, cdl_get_provenance, i, 1);
    }
  }

private:
  Status readConstant(const cdl_constant_t& record) {
    const auto elem = static_cast<Elem>(record.elem);
    const std::string name = cdl_get_string(image_, record.name);
    if (record.bytes > (uint64_t(1) << 48))
      return badModel("image: constant '{}' of {} bytes exceeds {}", name, record.bytes,
                      uint64_t(1) << 48);
    const auto count = static_cast<int64_t>(record.bytes * 8 / elemBits(elem));
    if (elemBytes(elem, count) != record.bytes)
      return badModel("image: constant '{}' of {} bytes is no multiple of {}", name, record.bytes,
                      elemName(elem));
    Payload payload = Payload::splat(elem, count, record.form ? record.bits : 0);
    if (!record.form && payloads_) {
      CDL_ASSIGN(payload, payloads_(record).context(fmt::format("constant '{}'", name)));
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

  /// Counts what was read of a section, which holds more records than that when none is read twice.
  bool count(std::string_view section, uint64_t& total, uint64_t more, uint32_t records) {
    total += more;
    if (total >= records && shared_)
      shared_ = badModel("shares {}: {} used of {}", section, total, records - 1);
    return bool(shared_);
  }

  const cdl_image_t* image_;
  const PayloadSource& payloads_;
  Program program_;
  Status shared_;
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
  CDL_ASSIGN(Program program,
             Reader(reinterpret_cast<const cdl_image_t*>(image.data()), payloads).read());
  CDL_TRY(verify(program));
  return program;
}

} // namespace candela::program
