#pragma once

#include <concepts>

#include "core/compiler/program/program.h"

/// Which member of the Program is which field of the image, said once for both ways. `way` is the
/// image's writer or reader: value() turns a member and a field into each other, index() an index
/// that may be absent, text() a string, flag() one bit, items() a vector and a count, equal() asks
/// for lists of one length.
namespace candela::program {

/// A record that is written, or one that is read.
template <typename Given, typename Record>
concept Of = std::same_as<std::remove_const_t<Given>, Record>;

void list(auto& way, auto& values, auto& array, auto& count) {
  way.items(values, count, std::size(array),
            [&](auto& value, size_t i) { way.value(value, array[i]); });
}

void fields(auto& way, auto& space, Of<cdl_space_t> auto& record) {
  way.text(space.name, record.name);
  way.flag(space.hostMapped, record.flags, CDL_SPACE_HOST_MAPPED);
  way.flag(space.local, record.flags, CDL_SPACE_LOCAL);
  way.flag(space.forConstants, record.flags, CDL_SPACE_CONSTANTS);
  way.value(space.capacityBytes, record.capacity_bytes);
  way.value(space.alignment, record.alignment);
  way.value(space.banks, record.banks);
}

void fields(auto& way, auto& halo, Of<cdl_halo_t> auto& record) {
  way.value(halo.elem, record.elem);
  way.equal("lower widths", halo.lo, "upper ones", halo.hi);
  list(way, halo.lo, record.lo, record.rank);
  list(way, halo.hi, record.hi, record.rank);
  way.value(halo.fill, record.fill);
}

void fields(auto& way, auto& buffer, Of<cdl_buffer_t> auto& record) {
  way.text(buffer.name, record.name);
  way.index(buffer.space, record.space);
  way.value(buffer.bytes, record.bytes);
  way.value(buffer.offset, record.offset);
  way.value(buffer.alignment, record.alignment);
  way.value(buffer.role, record.role);
  way.index(buffer.constant, record.constant);
  way.halo(buffer.halo, record.halo);
}

void fields(auto& way, auto& layout, Of<cdl_layout_t> auto& record) {
  way.value(layout.logicalRank, record.logical_rank);
  way.value(layout.padContent, record.pad_content);
  way.value(layout.opaque, record.opaque);
  way.text(layout.name, record.name);
  way.items(layout.steps, record.count, CDL_MAX_RANK, [&](auto& step, size_t i) {
    way.value(step.dim, record.dim[i]);
    way.value(step.factor, record.factor[i]);
  });
}

void fields(auto& way, auto& view, Of<cdl_view_t> auto& record) {
  way.index(view.buffer, record.buffer);
  way.value(view.elem, record.elem);
  way.layout(view.layout, record.layout);
  way.value(view.offset, record.offset);
  way.equal("dims", view.dims, "strides", view.strides);
  list(way, view.dims, record.dims, record.rank);
  list(way, view.strides, record.strides, record.rank);
  for (int l = 0; l < CDL_MAX_LOOP_NESTING; ++l) way.value(view.ivStrides[l], record.iv_strides[l]);
}

void fields(auto& way, auto& attr, Of<cdl_attr_t> auto& record) {
  way.value(attr.id, record.id);
  way.value(attr.type, record.type);
  list(way, attr.values, record.values, record.count);
}

void fields(auto& way, auto& step, Of<cdl_step_t> auto& record) {
  way.value(step.kind, record.kind);
  way.value(step.fn, record.fn);
  way.value(step.elem, record.elem);
  way.value(step.saturate, record.flags);
  way.items(step.in, record.operands, std::size(record.in), [&](auto& operand, size_t i) {
    way.value(operand.source, record.in[i].source);
    way.value(operand.elem, record.in[i].elem);
    way.value(operand.index, record.in[i].index);
  });
  way.value(step.imm, record.imm);
}

void fields(auto& way, auto& wait, Of<cdl_wait_t> auto& record) { way.index(wait, record.instr); }

void fields(auto& way, auto& origin, Of<cdl_provenance_t> auto& record) {
  way.text(origin.node, record.node);
  way.text(origin.op, record.op);
}

void fields(auto& way, auto& instr, Of<cdl_instr_t> auto& record) {
  way.value(instr.kind, record.kind);
  way.value(instr.fn, record.fn);
  way.value(instr.engine, record.engine);
  way.flag(instr.inout, record.flags, CDL_INSTR_INOUT);
  way.index(instr.loop, record.loop);
  way.index(instr.group, record.group);
  way.value(instr.prologue, record.prologue);
  way.parts(instr, record);
}

void fields(auto& way, auto& loop, Of<cdl_loop_t> auto& record) {
  way.index(loop.first, record.first);
  way.value(loop.count, record.count);
  way.index(loop.parent, record.parent);
  way.value(loop.trip, record.trip);
}

void fields(auto& way, auto& group, Of<cdl_group_t> auto& record) {
  way.index(group.first, record.first);
  way.value(group.count, record.count);
  way.value(group.bandDim, record.band_dim);
  way.value(group.bands, record.bands);
}

} // namespace candela::program
