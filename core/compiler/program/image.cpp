#include "core/compiler/program/image.h"

#include <cstring>
#include <limits>
#include <map>
#include <unordered_map>

#include "core/compiler/program/internal.h"
#include "core/compiler/program/records.h"
#include "core/support/out_of_memory.h"

namespace candela::program {

namespace {

/// The sections while they grow. Every one begins with its null record. Strings and layouts are
/// shared, in the order of their first use; everything else stands in the order of the
/// instructions, so equal Programs give equal bytes.
class Writer {
public:
  Writer(const Program& program, bool hashed) : program_(program), hashed_(hashed) {}

  Result<Bytes> write(Place& place) {
    cdl_image_t header{};
    std::memcpy(header.magic, "CDLP", 4);
    header.major = CDL_IMAGE_MAJOR;
    header.minor = CDL_IMAGE_MINOR;
    constexpr size_t kLimit = size_t(1) << 22; // instructions: 510 views each stay below 2^32
    if (program_.instrs.size() > kLimit || program_.buffers.size() > kLimit)
      return badModel("{} instructions on {} buffers exceed {}", program_.instrs.size(),
                      program_.buffers.size(), kLimit);
    text(program_.name, header.name);
    header.engines = program_.engines;
    reserve();
    append("spaces", program_.spaces, spaces_);
    append("constants", program_.constants, constants_);
    append("buffers", program_.buffers, buffers_);
    append("instrs", program_.instrs, instrs_);
    append("loops", program_.loops, loops_);
    append("groups", program_.groups, groups_);
    place = failedAt_;
    if (!failure_) return failure_;
    return assemble(header);
  }

  // ---- The way of records.h
  // --------------------------------------------------------------------------------

  template <typename Member, typename Field> void value(const Member& member, Field& field) {
    field = static_cast<Field>(member);
  }
  void index(uint32_t member, uint32_t& field) { field = member == kNone ? 0 : member + 1; }
  void flag(bool member, auto& field, unsigned bit) {
    if (member) field = static_cast<std::decay_t<decltype(field)>>(field | bit);
  }
  void text(const std::string& member, uint32_t& field) {
    if (member.empty()) return;
    if (member.find('\0') != std::string::npos) fail("a NUL byte in the name '{}'", member.c_str());
    const auto [at, isNew] = stringAt_.try_emplace(member, static_cast<uint32_t>(strings_.size()));
    if (isNew) strings_.insert(strings_.end(), member.c_str(), member.c_str() + member.size() + 1);
    field = at->second;
  }
  template <typename Count>
  void items(const auto& members, Count& count, size_t capacity, const auto& item) {
    if (members.size() > capacity)
      return fail("a rank or count of {} exceeds {}", members.size(), capacity);
    count = static_cast<Count>(members.size());
    for (size_t i = 0; i < members.size(); ++i) item(members[i], i);
  }
  void equal(const char* what, const auto& a, const char* other, const auto& b) {
    if (a.size() != b.size()) fail("{} {} but {} {}", a.size(), what, b.size(), other);
  }

  void halo(const std::optional<Halo>& halo, uint32_t& field) {
    if (!halo) return;
    field = static_cast<uint32_t>(halos_.size());
    fields(*this, *halo, halos_.emplace_back());
  }
  void layout(const Layout& layout, uint16_t& field) {
    if (layout.isRowMajor() && layout != Layout{})
      fail("a row-major layout with logical rank, padding or name");
    if (layout.isRowMajor()) return;
    cdl_layout_t record{};
    fields(*this, layout, record);
    const std::string key(reinterpret_cast<const char*>(&record), sizeof record);
    const auto [at, isNew] = layoutAt_.try_emplace(key, static_cast<uint16_t>(layouts_.size()));
    if (isNew) layouts_.push_back(record);
    if (layouts_.size() > UINT16_MAX) fail("{} layouts exceed {}", layouts_.size(), UINT16_MAX);
    field = at->second;
  }
  void parts(const Instr& instr, cdl_instr_t& record) {
    record.first_view = append("input", instr.inputs, views_);
    const uint32_t output = append("output", instr.outputs, views_);
    if (instr.inputs.empty()) record.first_view = output;
    record.first_attr = append("attribute", instr.attrs, attrs_);
    record.first_wait = append("wait", instr.waits, waits_);
    const uint32_t first = append("step", instr.expr, steps_);
    record.provenance = append("origin", instr.provenance, provenance_);
    const auto count = [&](const char* what, const auto& list, auto& field) {
      using Count = std::decay_t<decltype(field)>;
      field = static_cast<Count>(list.size());
      if (field != list.size())
        fail("{} {} exceed {}", list.size(), what, std::numeric_limits<Count>::max());
    };
    count("inputs", instr.inputs, record.inputs);
    count("outputs", instr.outputs, record.outputs);
    count("attributes", instr.attrs, record.attrs);
    count("waits", instr.waits, record.waits);
    if (first) {
      record.expr = static_cast<uint32_t>(exprs_.size());
      exprs_.push_back({first, static_cast<uint32_t>(instr.expr.size())});
    }
    for (size_t i = 1; i < instr.provenance.size(); ++i)
      provenance_[record.provenance + i - 1].next = static_cast<uint32_t>(record.provenance + i);
  }

private:
  /// Room for what the instructions bring: sections of many megabytes would be copied as they grow.
  void reserve() {
    size_t views = 1;
    size_t attrs = 1;
    size_t waits = 1;
    size_t steps = 1;
    size_t provenance = 1;
    for (const Instr& instr : program_.instrs) {
      views += instr.inputs.size() + instr.outputs.size();
      attrs += instr.attrs.size();
      waits += instr.waits.size();
      steps += instr.expr.size();
      provenance += instr.provenance.size();
    }
    buffers_.reserve(program_.buffers.size() + 1);
    instrs_.reserve(program_.instrs.size() + 1);
    views_.reserve(views);
    attrs_.reserve(attrs);
    waits_.reserve(waits);
    steps_.reserve(steps);
    provenance_.reserve(provenance);
  }

  /// Where the first of the items stands, 0 for none of them. `what`: a section that the Program
  /// holds itself, or the part of an instruction.
  template <typename List, typename Record>
  uint32_t append(const char* what, const List& list, std::vector<Record>& records) {
    const auto first = static_cast<uint32_t>(records.size());
    const Place outer = place_;
    for (uint32_t i = 0; i < list.size(); ++i) {
      place_ = outer.section.empty() ? Place{what, i + 1, nullptr, 0}
                                     : Place{outer.section, outer.index, what, i};
      Record record{};
      fields(*this, list[i], record);
      records.push_back(record);
    }
    place_ = outer;
    return list.empty() ? 0 : first;
  }

  template <typename... Args> void fail(fmt::format_string<Args...> format, Args&&... args) {
    if (!failure_) return;
    failure_ = badModel(format, std::forward<Args>(args)...);
    failedAt_ = place_;
  }

  friend void fields(Writer& writer, const Constant& constant, cdl_constant_t& record) {
    const Payload& payload = constant.payload;
    const bool splat = payload.form() == Payload::Form::splat;
    if (!splat && payload.form() != Payload::Form::data)
      return writer.fail("is neither data nor a splat");
    if (!isValidElem(static_cast<unsigned>(payload.elem())))
      return writer.fail("has no element type");
    writer.text(constant.name, record.name);
    record.bytes = payload.sizeBytes();
    record.elem = static_cast<uint8_t>(payload.elem());
    record.form = splat;
    if (splat) record.bits = payload.splatBits();
    if (splat || !writer.hashed_) return;
    const Hash hash = payload.hash();
    std::memcpy(record.hash, hash.data(), hash.size());
  }

  template <typename T> void place(cdl_section_t& section, const std::vector<T>& records) {
    section = {size_, sizeof(T), static_cast<uint32_t>(records.size())};
    parts_.push_back({size_, records.data(), records.size() * sizeof(T)});
    size_ = (size_ + records.size() * sizeof(T) + 7) / 8 * 8;
  }

  Result<Bytes> assemble(cdl_image_t& header) {
    place(header.strings, strings_);
#define CANDELA_SECTION(record, section) place(header.section, section##_);
    CDL_SECTIONS(CANDELA_SECTION)
#undef CANDELA_SECTION
    header.size = size_;
    CDL_ASSIGN(Bytes image, Bytes::allocate(size_));
    std::byte* data = image.mutableData();
    for (const Part& part : parts_) std::memcpy(data + part.offset, part.data, part.bytes);
    std::memcpy(data, &header, sizeof header);
    if (hashed_) {
      const Hash hash = sha256(data, size_);
      std::memcpy(data + offsetof(cdl_image_t, hash), hash.data(), hash.size());
    }
    return image;
  }

  struct Part {
    uint64_t offset;
    const void* data;
    size_t bytes;
  };

  const Program& program_;
  const bool hashed_;
  Place place_, failedAt_;
  Status failure_;
  std::unordered_map<std::string_view, uint32_t> stringAt_; ///< of the Program's own strings
  std::map<std::string, uint16_t> layoutAt_;
  std::vector<char> strings_{'\0'};
#define CANDELA_SECTION(record, section) std::vector<cdl_##record##_t> section##_{1};
  CDL_SECTIONS(CANDELA_SECTION)
#undef CANDELA_SECTION
  std::vector<Part> parts_;
  uint64_t size_ = sizeof(cdl_image_t);
};

} // namespace

Result<Bytes> writeImage(const Program& program, bool hashed, Place& place) {
  return Writer(program, hashed).write(place);
}

Bytes toImage(const Program& program, bool hashed) {
  Place place;
  return orThrow(writeImage(program, hashed, place));
}

} // namespace candela::program
