// Builds the flat image of cdl.h record by record, for tests and benchmarks of what runs images.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "candela/cdl.h"

namespace candela::testing {

class ImageMaker {
public:
  using Ints = std::vector<int64_t>;

  ImageMaker() {
    cdl_space_t space{};
    space.name = string("host");
    space.flags = CDL_SPACE_HOST_MAPPED;
    space.alignment = 64;
    spaces_.push_back(space);
  }

  uint32_t string(const std::string& text) {
    const uint32_t at = static_cast<uint32_t>(strings_.size());
    strings_.append(text.c_str(), text.size() + 1);
    return at;
  }
  /// A buffer that is bound, read and written.
  uint32_t buffer(uint64_t bytes) {
    cdl_buffer_t record{};
    record.name = string("b" + std::to_string(buffers_.size()));
    record.space = 1;
    record.bytes = bytes;
    record.alignment = 64;
    record.role = CDL_ROLE_INOUT;
    buffers_.push_back(record);
    return static_cast<uint32_t>(buffers_.size() - 1);
  }
  static Ints denseStrides(const Ints& dims) {
    Ints strides(dims.size());
    int64_t step = 1;
    for (size_t d = dims.size(); d-- > 0; step *= dims[d] ? dims[d] : 1) strides[d] = step;
    return strides;
  }
  static cdl_view_t view(uint32_t buffer, int elem, const Ints& dims, const Ints& strides,
                         int64_t offset = 0, const Ints& ivStrides = {}) {
    cdl_view_t record{};
    record.buffer = buffer;
    record.elem = static_cast<uint8_t>(elem);
    record.rank = static_cast<uint8_t>(dims.size());
    record.offset = offset;
    std::copy(dims.begin(), dims.end(), record.dims);
    std::copy(strides.begin(), strides.end(), record.strides);
    std::copy(ivStrides.begin(), ivStrides.end(), record.iv_strides);
    return record;
  }
  static cdl_view_t dense(uint32_t buffer, int elem, const Ints& dims) {
    return view(buffer, elem, dims, denseStrides(dims));
  }

  static cdl_attr_t attr(int id, int64_t value, int type = 1) {
    cdl_attr_t record{};
    record.id = static_cast<uint16_t>(id);
    record.type = static_cast<uint8_t>(type);
    record.count = 1;
    record.values[0] = value;
    return record;
  }
  static cdl_operand_t from(int source, int elem, int index = 0) {
    return {static_cast<uint8_t>(source), static_cast<uint8_t>(elem), static_cast<uint16_t>(index)};
  }
  static cdl_step_t step(int kind, int fn, int elem, const std::vector<cdl_operand_t>& in,
                         uint64_t imm = 0) {
    cdl_step_t record{};
    record.kind = static_cast<uint16_t>(kind);
    record.fn = static_cast<uint16_t>(fn);
    record.elem = static_cast<uint8_t>(elem);
    record.operands = static_cast<uint8_t>(in.size());
    std::copy(in.begin(), in.end(), record.in);
    record.imm = imm;
    return record;
  }
  uint32_t expr(const std::vector<cdl_step_t>& steps) {
    exprs_.push_back({static_cast<uint32_t>(steps_.size()), static_cast<uint32_t>(steps.size())});
    steps_.insert(steps_.end(), steps.begin(), steps.end());
    return static_cast<uint32_t>(exprs_.size() - 1);
  }
  /// Instructions first .. first + count - 1, `trip` times; they get their `loop` from the
  /// innermost region made.
  /// Factors of each logical dim in turn; 0: the rest.
  uint16_t layout(const std::vector<std::pair<int, int>>& factors, int rank) {
    cdl_layout_t record{};
    record.logical_rank = static_cast<uint8_t>(rank);
    for (const auto& [dim, factor] : factors) {
      record.dim[record.count] = static_cast<uint8_t>(dim);
      record.factor[record.count++] = static_cast<uint32_t>(factor);
    }
    layouts_.push_back(record);
    return static_cast<uint16_t>(layouts_.size() - 1);
  }
  uint32_t loop(uint32_t first, uint32_t count, uint64_t trip, uint32_t parent = 0) {
    loops_.push_back({first, count, parent, 0, trip});
    return static_cast<uint32_t>(loops_.size() - 1);
  }

  uint32_t instr(int kind, int fn, const std::vector<cdl_view_t>& inputs, const cdl_view_t& output,
                 const std::vector<cdl_attr_t>& attrs = {}, uint32_t expr = 0, uint32_t loop = 0) {
    return instr(kind, fn, inputs, std::vector{output}, attrs, expr, loop);
  }
  uint32_t instr(int kind, int fn, const std::vector<cdl_view_t>& inputs,
                 const std::vector<cdl_view_t>& outputs, const std::vector<cdl_attr_t>& attrs = {},
                 uint32_t expr = 0, uint32_t loop = 0) {
    cdl_instr_t record{};
    record.kind = static_cast<uint16_t>(kind);
    record.fn = static_cast<uint16_t>(fn);
    record.first_view = static_cast<uint32_t>(views_.size());
    record.inputs = static_cast<uint8_t>(inputs.size());
    record.outputs = static_cast<uint8_t>(outputs.size());
    record.attrs = static_cast<uint16_t>(attrs.size());
    record.first_attr = attrs.empty() ? 0 : static_cast<uint32_t>(attrs_.size());
    record.expr = expr;
    record.loop = loop;
    record.flags = kind == CDL_KIND_SCATTER ? CDL_INSTR_INOUT : 0;
    for (const cdl_attr_t& a : attrs)
      if (a.id == CDL_ATTR_ACCUMULATE && a.values[0]) record.flags = CDL_INSTR_INOUT;
    views_.insert(views_.end(), inputs.begin(), inputs.end());
    views_.insert(views_.end(), outputs.begin(), outputs.end());
    attrs_.insert(attrs_.end(), attrs.begin(), attrs.end());
    instrs_.push_back(record);
    return static_cast<uint32_t>(instrs_.size() - 1);
  }

  /// The checked image; lives as long as the maker and the next call. Ends the program when the
  /// check refuses it.
  const cdl_image_t* finish() {
    bytes_.assign((sizeof(cdl_image_t) + 7) / 8, 0);
    cdl_image_t image{};
    std::memcpy(image.magic, "CDLP", 4);
    image.major = CDL_IMAGE_MAJOR;
    image.minor = CDL_IMAGE_MINOR;
    image.engines = 1;
    image.name = string("test");
    image.strings = append(std::vector<char>(strings_.begin(), strings_.end()));
    image.spaces = append(spaces_);
    image.buffers = append(buffers_);
    image.halos = append(halos_);
    image.layouts = append(layouts_);
    image.views = append(views_);
    image.exprs = append(exprs_);
    image.steps = append(steps_);
    image.attrs = append(attrs_);
    image.instrs = append(instrs_);
    image.waits = append(waits_);
    image.loops = append(loops_);
    image.groups = append(groups_);
    image.constants = append(constants_);
    image.provenance = append(provenance_);
    image.size = bytes_.size() * 8;
    std::memcpy(bytes_.data(), &image, sizeof image);
    char text[256] = "";
    cdl_error_t error{text, sizeof text, 0};
    if (cdl_image_check(bytes_.data(), image.size, &error) != CDL_OK) {
      std::fprintf(stderr, "the test made a bad image: %s\n", text);
      std::abort();
    }
    return reinterpret_cast<const cdl_image_t*>(bytes_.data());
  }

private:
  template <class T> cdl_section_t append(const std::vector<T>& records) {
    const size_t at = bytes_.size(), size = records.size() * sizeof(T);
    bytes_.resize(at + (size + 7) / 8);
    std::memcpy(bytes_.data() + at, records.data(), size);
    return {at * 8, sizeof(T), static_cast<uint32_t>(records.size())};
  }

  std::string strings_ = std::string(1, '\0');
  std::vector<cdl_space_t> spaces_{1};
  std::vector<cdl_buffer_t> buffers_{1};
  std::vector<cdl_halo_t> halos_{1};
  std::vector<cdl_layout_t> layouts_{1};
  std::vector<cdl_view_t> views_{1};
  std::vector<cdl_expr_t> exprs_{1};
  std::vector<cdl_step_t> steps_{1};
  std::vector<cdl_attr_t> attrs_{1};
  std::vector<cdl_instr_t> instrs_{1};
  std::vector<cdl_wait_t> waits_{1};
  std::vector<cdl_loop_t> loops_{1};
  std::vector<cdl_group_t> groups_{1};
  std::vector<cdl_constant_t> constants_{1};
  std::vector<cdl_provenance_t> provenance_{1};
  std::vector<uint64_t> bytes_;
};

} // namespace candela::testing
