// Program images made by hand, record by record; for tests that must not depend on the core.
#pragma once

#include <candela/cdl.h>

#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace candela::abi {

/// A heap block of exactly `size` bytes, 8-byte aligned: a sanitizer sees the first byte beyond it.
class Block {
public:
  explicit Block(const std::vector<uint8_t>& bytes)
      : size_(bytes.size()), data_(std::malloc(bytes.size()), &std::free) {
    if (size_) std::memcpy(data_.get(), bytes.data(), size_);
  }
  void* data() const { return data_.get(); }
  uint64_t size() const { return size_; }
  const cdl_image_t* image() const { return static_cast<const cdl_image_t*>(data_.get()); }

private:
  size_t size_;
  std::unique_ptr<void, void (*)(void*)> data_;
};

struct ImageBuilder {
  std::string strings = std::string(1, '\0');
  std::vector<cdl_space_t> spaces{1};
  std::vector<cdl_buffer_t> buffers{1};
  std::vector<cdl_halo_t> halos{1};
  std::vector<cdl_layout_t> layouts{1};
  std::vector<cdl_view_t> views{1};
  std::vector<cdl_expr_t> exprs{1};
  std::vector<cdl_step_t> steps{1};
  std::vector<cdl_attr_t> attrs{1};
  std::vector<cdl_instr_t> instrs{1};
  std::vector<cdl_wait_t> waits{1};
  std::vector<cdl_loop_t> loops{1};
  std::vector<cdl_group_t> groups{1};
  std::vector<cdl_constant_t> constants{1};
  std::vector<cdl_provenance_t> provenance{1};

  ImageBuilder() { spaces.push_back(cdl_space_t{string("host"), CDL_SPACE_HOST_MAPPED, 0, 64, 0}); }

  uint32_t string(const std::string& text) {
    const auto at = static_cast<uint32_t>(strings.size());
    strings += text + '\0';
    return at;
  }
  uint32_t buffer(uint8_t role, uint64_t bytes, uint32_t constant = 0) {
    cdl_buffer_t b{};
    b.name = string("b" + std::to_string(buffers.size()));
    b.space = 1;
    b.bytes = bytes;
    b.alignment = 64;
    b.role = role;
    b.constant = constant;
    buffers.push_back(b);
    return static_cast<uint32_t>(buffers.size() - 1);
  }
  uint32_t constant(uint8_t elem, uint64_t bytes) {
    cdl_constant_t c{};
    c.bytes = bytes;
    c.elem = elem;
    c.hash[0] = 1;
    constants.push_back(c);
    return static_cast<uint32_t>(constants.size() - 1);
  }
  /// A dense view of a whole buffer.
  static cdl_view_t view(uint32_t buffer, uint8_t elem, std::initializer_list<int64_t> dims) {
    cdl_view_t v{};
    v.buffer = buffer;
    v.elem = elem;
    for (int64_t d : dims) v.dims[v.rank++] = d;
    int64_t stride = 1;
    for (int d = v.rank - 1; d >= 0; stride *= v.dims[d--]) v.strides[d] = stride;
    return v;
  }
  /// Appends an instruction; the last view is its result.
  cdl_instr_t& instr(uint16_t kind, uint16_t fn, const std::vector<cdl_view_t>& operands) {
    cdl_instr_t i{};
    i.kind = kind;
    i.fn = fn;
    i.first_view = static_cast<uint32_t>(views.size());
    i.inputs = static_cast<uint8_t>(operands.size() - 1);
    i.outputs = 1;
    views.insert(views.end(), operands.begin(), operands.end());
    instrs.push_back(i);
    return instrs.back();
  }
  void attr(cdl_instr_t& instr, uint16_t id, uint8_t type, std::initializer_list<int64_t> values) {
    cdl_attr_t a{};
    a.id = id;
    a.type = type;
    for (int64_t value : values) a.values[a.count++] = value;
    if (instr.attrs++ == 0) instr.first_attr = static_cast<uint32_t>(attrs.size());
    attrs.push_back(a);
  }

  std::vector<uint8_t> bytes() const {
    std::vector<uint8_t> out(sizeof(cdl_image_t));
    cdl_image_t header{};
    std::memcpy(header.magic, "CDLP", 4);
    header.major = CDL_IMAGE_MAJOR;
    header.minor = CDL_IMAGE_MINOR;
    header.engines = 1;
    const auto put = [&out](cdl_section_t& section, const auto& records) {
      const size_t stride = sizeof(*records.data()), size = stride * records.size();
      section = {out.size(), static_cast<uint32_t>(stride), static_cast<uint32_t>(records.size())};
      out.resize(out.size() + (size + 7) / 8 * 8);
      std::memcpy(out.data() + section.offset, records.data(), size);
    };
    put(header.spaces, spaces);
    put(header.buffers, buffers);
    put(header.halos, halos);
    put(header.layouts, layouts);
    put(header.views, views);
    put(header.exprs, exprs);
    put(header.steps, steps);
    put(header.attrs, attrs);
    put(header.instrs, instrs);
    put(header.waits, waits);
    put(header.loops, loops);
    put(header.groups, groups);
    put(header.constants, constants);
    put(header.provenance, provenance);
    put(header.strings, strings);
    header.size = out.size();
    std::memcpy(out.data(), &header, sizeof header);
    return out;
  }
};

} // namespace candela::abi
