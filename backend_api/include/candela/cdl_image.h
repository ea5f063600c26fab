/* cdl_image_check: what makes the accessors of cdl.h safe. Included by cdl.h; C11 and C++17.
 *
 * Rules beyond those that stand at the records in cdl.h:
 *   - `size` of the header is the size of the data; the null record of every section is zero;
 *   - every view names a buffer; entries of dims, strides, factors and values beyond the rank or
 * count are 0;
 *   - a dim is at most 2^40, a loop's trip count 1 .. 2^40;
 *   - a buffer is aligned to at least the elements of its views;
 *   - the dims of a view, those of 0 left out, have a product of at most 2^48, and a result no dim
 *     of stride 0 but
 * those of extent 1;
 *   - a loop's parent has a smaller index, a provenance's next has a greater one: both lists end;
 *   - waits of all instructions together are no more than there are wait records (none is shared);
 *   - a constant's bytes are those of every buffer that holds it;
 *   - INPUT and CONSTANT buffers are never written;
 *   - input views that only the expr reads stand after the operands (cdl_operand_count);
 *   - shapes fit the kind (cdl_shapes.h). */
#ifndef CANDELA_CDL_IMAGE_H
#define CANDELA_CDL_IMAGE_H

#include "candela/cdl_check.h"

/* Defined in cdl_shapes.h. */
static inline int cdl_check_shapes(cdl_check_t* c, const cdl_instr_t* in,
                                   const cdl_kind_facts_t* facts);

/* ---- Header and sections
 * ---------------------------------------------------------------------------------------- */

static inline int cdl_check_section(cdl_check_t* c, const char* name, const cdl_section_t* s,
                                    uint32_t record) {
  const unsigned char* null_record;
  uint32_t i;
  c->section = name;
  c->index = UINT32_MAX;
  if (s->offset % 8) return cdl_bad(c, "offset", s->offset, "is not a multiple of 8", CDL_NO_LIMIT);
  if (s->offset < sizeof(cdl_image_t))
    return cdl_bad(c, "offset", s->offset, "lies inside of the header of", sizeof(cdl_image_t));
  if (s->offset > c->image->size)
    return cdl_bad(c, "offset", s->offset, "is beyond the image's size", c->image->size);
  if (s->count == 0)
    return cdl_bad(c, "count", 0, "leaves no room for the null record", CDL_NO_LIMIT);
  if (record == 1 ? s->stride != 1 : s->stride < record || s->stride % 8)
    return cdl_bad(c, "stride", s->stride,
                   record == 1 ? "is not" : "is no multiple of 8 of at least", record);
  if ((uint64_t)s->count * s->stride > c->image->size - s->offset)
    return cdl_bad(c, "end", (uint64_t)s->count * s->stride + s->offset,
                   "is beyond the image's size", c->image->size);
  null_record = (const unsigned char*)c->image + s->offset;
  for (i = 0; i < record; ++i)
    if (null_record[i]) return cdl_bad(c, "null record's byte", i, "is not 0", CDL_NO_LIMIT);
  return 1;
}

static inline int cdl_check_sections(cdl_check_t* c) {
  const cdl_image_t* m = c->image;
#define CDL_X(type, section)                                                                       \
  if (!cdl_check_section(c, #section, &m->section, (uint32_t)sizeof(cdl_##type##_t))) return 0;
  CDL_SECTIONS(CDL_X)
#undef CDL_X
  if (!cdl_check_section(c, "strings", &m->strings, 1)) return 0;
  if (cdl_get_string(m, m->strings.count - 1)[0])
    return cdl_bad(c, "last byte", m->strings.count - 1, "is not NUL", CDL_NO_LIMIT);
  c->section = "header";
  if (!cdl_check_string(c, "name", m->name)) return 0;
  return cdl_check_count(c, "engines", m->engines, UINT16_MAX);
}

static inline int cdl_check_header(cdl_check_t* c, uint64_t size) {
  const cdl_image_t* m = c->image;
  c->section = "header";
  c->index = UINT32_MAX;
  if (size < sizeof(cdl_image_t))
    return cdl_bad(c, "size", size, "is smaller than the header of", sizeof(cdl_image_t));
  if (memcmp(m->magic, "CDLP", 4) != 0)
    return cdl_bad(c, "magic", (unsigned char)m->magic[0], "is not CDLP", CDL_NO_LIMIT);
  if (m->major != CDL_IMAGE_MAJOR)
    return cdl_bad_version(c, "major version", m->major, "is not", CDL_IMAGE_MAJOR);
  if (m->minor != CDL_IMAGE_MINOR)
    return cdl_bad_version(c, "minor version", m->minor, "is not", CDL_IMAGE_MINOR);
  return m->size == size ? 1 : cdl_bad(c, "size", m->size, "differs from the bytes given,", size);
}

/* ---- Records that stand alone
 * ----------------------------------------------------------------------------------- */

static inline int cdl_check_space(cdl_check_t* c, const cdl_space_t* s) {
  const uint32_t flags = CDL_SPACE_HOST_MAPPED | CDL_SPACE_LOCAL | CDL_SPACE_CONSTANTS;
  if (s->flags & ~flags) return cdl_bad(c, "flags", s->flags, "are not among", flags);
  return cdl_check_string(c, "name", s->name) &&
         cdl_check_at_most(c, "capacity_bytes", s->capacity_bytes, CDL_MAX_BYTES) &&
         cdl_check_power_of_two(c, "alignment", s->alignment);
}

static inline int cdl_check_constant(cdl_check_t* c, const cdl_constant_t* k) {
  return cdl_check_string(c, "name", k->name) && cdl_check_at_most(c, "form", k->form, 1) &&
         cdl_check_elem(c, k->elem) && cdl_check_zero(c, "pad", (uint64_t)k->pad[0] | k->pad[1]) &&
         cdl_check_at_most(c, "bytes", k->bytes, CDL_MAX_BYTES) &&
         (k->form ? cdl_check_bits(c, "bits", k->bits, k->elem)
                  : cdl_check_zero(c, "bits", k->bits));
}

static inline int cdl_check_halo(cdl_check_t* c, const cdl_halo_t* h) {
  uint32_t i;
  if (!cdl_check_count(c, "rank", h->rank, CDL_MAX_RANK)) return 0;
  for (i = 0; i < 6; ++i)
    if (!cdl_check_zero(c, "pad", h->pad[i])) return 0;
  for (i = h->rank; i < CDL_MAX_RANK; ++i)
    if (!cdl_check_zero(c, "width beyond the rank", (uint64_t)h->lo[i] | h->hi[i])) return 0;
  return cdl_check_elem(c, h->elem) && cdl_check_bits(c, "fill", h->fill, h->elem);
}

static inline int cdl_check_layout(cdl_check_t* c, const cdl_layout_t* l) {
  uint64_t product[CDL_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
  uint8_t seen[CDL_MAX_RANK] = {0};
  uint32_t i;
  if (!cdl_check_at_most(c, "pad_content", l->pad_content, 2) ||
      !cdl_check_at_most(c, "opaque", l->opaque, 1) || !cdl_check_string(c, "name", l->name))
    return 0;
  if (l->opaque != (l->name != 0))
    return cdl_bad(c, "name", l->name,
                   l->opaque ? "of an opaque layout is empty" : "on a layout that is not opaque",
                   CDL_NO_LIMIT);
  if (!(l->opaque && l->count == 0) && !cdl_check_count(c, "count", l->count, CDL_MAX_RANK))
    return 0;
  if (!cdl_check_count(c, "logical_rank", l->logical_rank, CDL_MAX_RANK)) return 0;
  for (i = 0; i < CDL_MAX_RANK; ++i) {
    uint8_t d = l->dim[i];
    if (i >= l->count) {
      if (!cdl_check_zero(c, "entry beyond the count", (uint64_t)d | l->factor[i])) return 0;
      continue;
    }
    if (d >= l->logical_rank)
      return cdl_bad(c, "dim", d, "is not below the logical rank", l->logical_rank);
    if (l->factor[i] == 0 && seen[d])
      return cdl_bad(c, "factor 0 at", i, "is not the outermost of its dim", CDL_NO_LIMIT);
    /* By division: the product itself may leave 64 bits. */
    if (l->factor[i] > (uint64_t)CDL_MAX_DIM / product[d])
      return cdl_bad(c, "product of factors at", i, "exceeds", (uint64_t)CDL_MAX_DIM);
    if (l->factor[i]) product[d] *= l->factor[i];
    seen[d] = 1;
  }
  for (i = 0; l->count && i < l->logical_rank; ++i)
    if (!seen[i]) return cdl_bad(c, "logical dim", i, "has no factor", CDL_NO_LIMIT);
  return 1;
}

static inline int cdl_check_buffer(cdl_check_t* c, const cdl_buffer_t* b) {
  const cdl_image_t* m = c->image;
  const cdl_space_t* space;
  int for_constants;
  if (!cdl_check_string(c, "name", b->name) ||
      !cdl_check_ref(c, "space", b->space, m->spaces.count) ||
      !cdl_check_power_of_two(c, "alignment", b->alignment) ||
      !cdl_check_at_most(c, "role", b->role, CDL_ROLE_CONSTANT) ||
      !cdl_check_zero(c, "pad", (uint64_t)b->pad[0] | b->pad[1] | b->pad[2]) ||
      !cdl_check_at_most(c, "bytes", b->bytes, CDL_MAX_BYTES) ||
      !cdl_check_index(c, "halo", b->halo, m->halos.count))
    return 0;
  if (b->halo) {
    cdl_at(c, "halo", b->halo);
    if (!cdl_check_halo(c, cdl_get_halo(m, b->halo))) return 0;
    cdl_at(c, NULL, 0);
  }
  if (b->role == CDL_ROLE_CONSTANT) {
    uint64_t bytes;
    if (!cdl_check_ref(c, "constant of a constant buffer", b->constant, m->constants.count))
      return 0;
    bytes = cdl_get_constant(m, b->constant)->bytes;
    if (b->bytes != bytes)
      return cdl_bad(c, "bytes", b->bytes, "differs from its constant's bytes,", bytes);
  } else if (!cdl_check_zero(c, "constant of a buffer that is none", b->constant)) {
    return 0;
  }
  space = cdl_get_space(m, b->space);
  for_constants = (space->flags & CDL_SPACE_CONSTANTS) != 0;
  if (for_constants && b->role != CDL_ROLE_CONSTANT)
    return cdl_bad_words(c, "its space", cdl_get_string(m, space->name),
                         "holds constants alone, the default one is",
                         cdl_get_string(m, cdl_get_space(m, 1)->name));
  if (b->role != CDL_ROLE_TEMP && b->space != 1 && !for_constants)
    return cdl_bad_words(c, "its space", cdl_get_string(m, space->name),
                         "is not the default one of bound buffers,",
                         cdl_get_string(m, cdl_get_space(m, 1)->name));
  if (b->role != CDL_ROLE_TEMP) return cdl_check_zero(c, "offset of a bound buffer", b->offset);
  if (b->offset == CDL_UNPLACED) return 1;
  if (!cdl_check_at_most(c, "offset", b->offset, CDL_MAX_BYTES)) return 0;
  if (b->offset % b->alignment)
    return cdl_bad(c, "offset", b->offset, "is not a multiple of the alignment", b->alignment);
  if (space->capacity_bytes && b->offset + b->bytes > space->capacity_bytes)
    return cdl_bad(c, "end", b->offset + b->bytes, "exceeds the capacity of its space,",
                   space->capacity_bytes);
  return 1;
}

static inline int cdl_check_attr(cdl_check_t* c, const cdl_attr_t* a) {
  uint32_t i;
  if (!cdl_check_count(c, "type", a->type, 4) ||
      !cdl_check_count(c, "count", a->count, a->type == 3 ? 8 : 1))
    return 0;
  for (i = a->count; i < 8; ++i)
    if (a->values[i])
      return cdl_bad_signed(c, "value beyond the count", a->values[i], "is not 0", CDL_NO_LIMIT);
  return cdl_check_zero(c, "pad", a->pad);
}

static inline int cdl_check_wait(cdl_check_t* c, const cdl_wait_t* w) {
  return cdl_check_ref(c, "instr", w->instr, c->image->instrs.count) &&
         cdl_check_zero(c, "reserved", w->reserved);
}

static inline int cdl_check_group(cdl_check_t* c, const cdl_group_t* g) {
  if (g->count == 0) return cdl_bad(c, "count", 0, "is empty", CDL_NO_LIMIT);
  if (g->bands == 0) return cdl_bad(c, "bands", 0, "is not at least", 1);
  return cdl_check_range(c, "instructions", g->first, g->count, c->image->instrs.count) &&
         cdl_check_at_most(c, "band_dim", g->band_dim, CDL_MAX_RANK - 1);
}

static inline int cdl_check_provenance(cdl_check_t* c, const cdl_provenance_t* p) {
  if (!cdl_check_string(c, "node", p->node) || !cdl_check_string(c, "op", p->op) ||
      !cdl_check_index(c, "next", p->next, c->image->provenance.count) ||
      !cdl_check_zero(c, "reserved", p->reserved))
    return 0;
  return p->next == 0 || p->next > c->index
             ? 1
             : cdl_bad(c, "next", p->next, "is not greater than", c->index);
}

/* Nesting, and that the instructions of the range say so themselves. Linear: an instruction can
 * agree with two loops. */
static inline int cdl_check_loop(cdl_check_t* c, const cdl_loop_t* l) {
  const cdl_image_t* m = c->image;
  uint32_t i;
  if (l->count == 0) return cdl_bad(c, "count", 0, "is empty", CDL_NO_LIMIT);
  if (!cdl_check_count(c, "trip", l->trip, (uint64_t)CDL_MAX_DIM) ||
      !cdl_check_range(c, "instructions", l->first, l->count, m->instrs.count) ||
      !cdl_check_zero(c, "reserved", l->reserved))
    return 0;
  if (l->parent) {
    const cdl_loop_t* p;
    if (l->parent >= c->index)
      return cdl_bad(c, "parent", l->parent, "is not below its own index", c->index);
    p = cdl_get_loop(m, l->parent);
    if (p->parent) return cdl_bad(c, "nesting", 3, "exceeds", CDL_MAX_LOOP_NESTING);
    if (l->first < p->first || (uint64_t)l->first + l->count > (uint64_t)p->first + p->count)
      return cdl_bad(c, "range", l->first, "is not inside of loop", l->parent);
  }
  for (i = l->first; i - l->first < l->count; ++i) {
    uint32_t own = cdl_get_instr(m, i)->loop;
    if (own != c->index &&
        (own == 0 || own >= m->loops.count || cdl_get_loop(m, own)->parent != c->index))
      return cdl_bad(c, "instruction", i, "of its range names another loop:", own);
  }
  return 1;
}

/* ---- Expressions
 * ------------------------------------------------------------------------------------------------
 */

/* How many operands a step of the kind has; 0 for kinds that are none. */
static inline uint32_t cdl_step_arity(uint16_t kind) {
  int steps = kind == CDL_KIND_UNARY || kind == CDL_KIND_CONVERT || kind == CDL_KIND_BINARY ||
              kind == CDL_KIND_COMPARE || kind == CDL_KIND_SELECT || kind == CDL_KIND_RESCALE;
  return steps ? cdl_kind_facts(kind)->min_inputs : 0;
}

/* The limits of a RESCALE that is a step: what its type holds, in order. */
static inline int cdl_check_clamps(cdl_check_t* c, const cdl_step_t* s) {
  const int is_signed = s->elem == CDL_I8 || s->elem == CDL_I16 || s->elem == CDL_I32;
  const int bits = (int)cdl_elem_bits(s->elem);
  int64_t lowest, highest, low = (int32_t)(uint32_t)s->imm,
                           high = (int32_t)(uint32_t)(s->imm >> 32);
  if (!is_signed && s->elem != CDL_U8 && s->elem != CDL_U16)
    return cdl_bad(c, "element type", s->elem, "is not that of a rescale step", CDL_NO_LIMIT);
  lowest = is_signed ? -(INT64_C(1) << (bits - 1)) : 0;
  highest = (INT64_C(1) << (is_signed ? bits - 1 : bits)) - 1;
  if (low < lowest || high > highest || low > high)
    return cdl_bad(c, "imm", s->imm, "holds no limits of the type of", bits);
  return 1;
}

/* What can be said of a step without its expr. */
static inline int cdl_check_step(cdl_check_t* c, const cdl_step_t* s) {
  uint32_t i, constants = 0, arity = cdl_step_arity(s->kind);
  if (arity == 0)
    return cdl_bad_version(c, "kind", s->kind, "cannot stand in an expression", CDL_NO_LIMIT);
  if (!cdl_fn_known(s->kind, s->fn))
    return cdl_bad_version(c, "fn", s->fn, "is unknown for kind", s->kind);
  if (!cdl_check_elem(c, s->elem) ||
      !cdl_check_at_most(c, "flags", s->flags, s->kind == CDL_KIND_CONVERT))
    return 0;
  if (s->operands != arity) return cdl_bad(c, "operands", s->operands, "is not", arity);
  for (i = 0; i < 4; ++i) {
    const cdl_operand_t* o = &s->in[i];
    if (i >= arity) {
      if (!cdl_check_zero(c, "unused operand", (uint64_t)o->source | o->elem | o->index)) return 0;
      continue;
    }
    if (o->source < CDL_FROM_ACC || o->source > CDL_FROM_STEP)
      return cdl_bad(c, "source", o->source, "is unknown", CDL_NO_LIMIT);
    if (!cdl_check_elem(c, o->elem)) return 0;
    if (o->source == CDL_FROM_ACC || o->source == CDL_FROM_CONST)
      if (!cdl_check_zero(c, "index of an operand without one", o->index)) return 0;
    if (o->source == CDL_FROM_CONST) {
      if (s->kind == CDL_KIND_RESCALE)
        return cdl_bad(c, "source", o->source, "is none of a rescale step's", CDL_NO_LIMIT);
      if (++constants > 1) return cdl_bad(c, "constants", constants, "exceeds", 1);
      if (!cdl_check_bits(c, "imm", s->imm, o->elem)) return 0;
    }
  }
  if (s->kind == CDL_KIND_RESCALE) return cdl_check_clamps(c, s);
  return constants ? 1 : cdl_check_zero(c, "imm without a constant operand", s->imm);
}

/* Steps refer to earlier ones of the same expr, with the type that those have. */
static inline int cdl_check_expr(cdl_check_t* c, const cdl_expr_t* e) {
  uint32_t k, i;
  if (!cdl_check_count(c, "steps", e->steps, CDL_MAX_STEPS) ||
      !cdl_check_range(c, "steps", e->first_step, e->steps, c->image->steps.count))
    return 0;
  for (k = 0; k < e->steps; ++k) {
    const cdl_step_t* s = cdl_get_step(c->image, e->first_step + k);
    cdl_at(c, "step", k);
    if (!cdl_check_step(c, s)) return 0;
    for (i = 0; i < s->operands; ++i) {
      const cdl_operand_t* o = &s->in[i];
      if (o->source != CDL_FROM_STEP) continue;
      if (o->index >= k)
        return cdl_bad(c, "operand of step", o->index, "is not earlier than step", k);
      if (!cdl_check_same_elem(c, o->elem, "of an operand differs from its step's",
                               cdl_get_step(c->image, e->first_step + o->index)->elem))
        return 0;
    }
  }
  cdl_at(c, NULL, 0);
  return 1;
}

/* How many of the inputs are operands of the kind: the views that only the expr reads come after
 * them. The lowest view that the epilogue reads beyond the kind's obligatory operands is the first
 * of those. */
static inline uint32_t cdl_operand_count(const cdl_image_t* image, const cdl_instr_t* instr) {
  uint32_t k, i, count = instr->inputs;
  const cdl_kind_facts_t* facts = cdl_kind_facts(instr->kind);
  const cdl_expr_t* expr;
  if (!facts || !facts->epilogue || !instr->expr) return count;
  expr = cdl_get_expr(image, instr->expr);
  for (k = instr->prologue; k < expr->steps; ++k) {
    const cdl_step_t* s = cdl_get_step(image, expr->first_step + k);
    for (i = 0; i < s->operands; ++i)
      if (s->in[i].source == CDL_FROM_VIEW && s->in[i].index >= facts->min_inputs &&
          s->in[i].index < count)
        count = s->in[i].index;
  }
  return count;
}

static inline int cdl_check_same_dims(cdl_check_t* c, const cdl_view_t* v, const cdl_view_t* y) {
  uint32_t d;
  if (v->rank != y->rank) return cdl_bad(c, "rank", v->rank, "differs from the result's", y->rank);
  for (d = 0; d < y->rank; ++d)
    if (v->dims[d] != y->dims[d])
      return cdl_bad_dim(c, d, v->dims[d], "differs from the result's", y->dims[d]);
  return 1;
}

/* The first `prologue` steps compute the operand, from views that are operands alone; the others do
 * not know of them. */
static inline int cdl_check_prologue(cdl_check_t* c, const cdl_instr_t* in, const cdl_expr_t* e) {
  uint32_t k, i, operands = cdl_operand_count(c->image, in);
  if (in->prologue == 0) return 1;
  if (in->kind != CDL_KIND_REDUCE)
    return cdl_bad_words(c, "prologue", "on", cdl_kind_facts(in->kind)->name, "which takes none");
  if (!cdl_check_at_most(c, "prologue", in->prologue, e->steps)) return 0;
  for (k = 0; k < e->steps; ++k) {
    const cdl_step_t* s = cdl_get_step(c->image, e->first_step + k);
    for (i = 0; i < s->operands; ++i) {
      const cdl_operand_t* o = &s->in[i];
      if (k < in->prologue && o->source == CDL_FROM_ACC)
        return cdl_bad(c, "step", k, "of the prologue reads an accumulator", CDL_NO_LIMIT);
      if (k < in->prologue && o->source == CDL_FROM_VIEW && o->index >= operands)
        return cdl_bad(c, "view of the prologue", o->index, "is not below the operands,", operands);
      if (k >= in->prologue && o->source == CDL_FROM_STEP && o->index < in->prologue)
        return cdl_bad(c, "operand of step", o->index,
                       "of the epilogue is a step of the prologue of", in->prologue);
    }
  }
  return 1;
}

/* What an instruction asks of its expr: known views, of the types and dims that the steps expect.
 * The views were checked. */
static inline int cdl_check_instr_expr(cdl_check_t* c, const cdl_instr_t* in,
                                       const cdl_kind_facts_t* facts) {
  const cdl_image_t* m = c->image;
  const cdl_expr_t* e;
  const cdl_view_t* y = cdl_get_output(m, in, 0);
  uint32_t k, i;
  int own = in->kind == CDL_KIND_ELEMENTWISE;
  if (!cdl_check_index(c, "expr", in->expr, m->exprs.count)) return 0;
  if (!in->expr) {
    if (own) return cdl_bad(c, "expr", 0, "is missing", CDL_NO_LIMIT);
    return cdl_check_zero(c, "prologue without an expr", in->prologue);
  }
  if (!own && !facts->epilogue)
    return cdl_bad_words(c, "expr", "on", facts->name, "which takes none");
  e = cdl_get_expr(m, in->expr);
  if (!cdl_check_expr(c, e) || !cdl_check_prologue(c, in, e)) return 0;
  for (k = 0; k < e->steps; ++k) {
    const cdl_step_t* s = cdl_get_step(m, e->first_step + k);
    for (i = 0; i < s->operands; ++i) {
      const cdl_operand_t* o = &s->in[i];
      const cdl_view_t* v;
      if (o->source == CDL_FROM_ACC && own)
        return cdl_bad(c, "step", k, "of elementwise reads an accumulator", CDL_NO_LIMIT);
      if (o->source != CDL_FROM_VIEW) continue;
      if (o->index >= in->inputs)
        return cdl_bad(c, "view of a step", o->index, "is not below the inputs,", in->inputs);
      v = cdl_get_input(m, in, o->index);
      cdl_at(c, "input", o->index);
      if (!cdl_check_same_elem(c, v->elem, "is not the step's", o->elem)) return 0;
      if (k >= in->prologue && v->layout == y->layout && !cdl_check_same_dims(c, v, y)) return 0;
      if (k < in->prologue && v->layout)
        return cdl_bad(c, "layout", v->layout, "of what a prologue reads is not row-major",
                       CDL_NO_LIMIT);
      cdl_at(c, NULL, 0);
    }
  }
  return cdl_check_same_elem(c, cdl_get_step(m, e->first_step + e->steps - 1)->elem,
                             "of the expr differs from the result's", y->elem);
}

/* ---- Views
 * -------------------------------------------------------------------------------------------------
 */

/* Elements of less than a byte: dense from a whole byte on, or in rows of whole bytes. Of a view
 * without elements, nothing starts anywhere. */
static inline int cdl_check_packed(cdl_check_t* c, const cdl_view_t* v, uint32_t per) {
  uint32_t d, dense = 1;
  int64_t stride = 1;
  uint64_t start =
      cdl_magnitude(v->offset) | cdl_magnitude(v->iv_strides[0]) | cdl_magnitude(v->iv_strides[1]);
  for (d = 0; d < v->rank; ++d)
    if (v->dims[d] == 0) return 1;
  for (d = v->rank; d-- > 0; stride *= v->dims[d])
    dense &= v->dims[d] == 1 || v->strides[d] == stride;
  for (d = 0; !dense && d + 1u < v->rank; ++d) start |= cdl_magnitude(v->strides[d]);
  if (start % per)
    return cdl_bad_signed(c, "packed view at offset", v->offset,
                          "does not start on whole bytes of elements,", per);
  if (dense) return 1;
  if (v->strides[v->rank - 1] != 1)
    return cdl_bad_signed(c, "innermost stride of packed elements", v->strides[v->rank - 1],
                          "is not", 1);
  return v->dims[v->rank - 1] % per == 0
             ? 1
             : cdl_bad(c, "innermost extent of packed elements", (uint64_t)v->dims[v->rank - 1],
                       "is no multiple of", per);
}

/* The view alone: enums, dims, unused entries, its layout. */
static inline int cdl_check_view(cdl_check_t* c, const cdl_view_t* v) {
  const cdl_image_t* m = c->image;
  uint64_t elements = 1, bits = cdl_elem_bits(v->elem), alignment;
  uint32_t d;
  if (!cdl_check_ref(c, "buffer", v->buffer, m->buffers.count) || !cdl_check_elem(c, v->elem) ||
      !cdl_check_at_most(c, "rank", v->rank, CDL_MAX_RANK) ||
      !cdl_check_index(c, "layout", v->layout, m->layouts.count))
    return 0;
  for (d = 0; d < CDL_MAX_RANK; ++d) {
    if (d >= v->rank && (v->dims[d] || v->strides[d]))
      return cdl_bad(c, "dim or stride", d, "is not 0 beyond the rank", v->rank);
    if (v->dims[d] < 0 || v->dims[d] > CDL_MAX_DIM)
      return cdl_bad_dim(c, d, v->dims[d], "is not within 0 ..", CDL_MAX_DIM);
  }
  for (d = 0; d < v->rank; ++d) {
    uint64_t dim = v->dims[d] ? (uint64_t)v->dims[d] : 1;
    if (elements > (uint64_t)CDL_MAX_ELEMENTS / dim)
      return cdl_bad_dim(c, d, v->dims[d], "makes more elements than", CDL_MAX_ELEMENTS);
    elements *= dim;
  }
  alignment = cdl_get_buffer(m, v->buffer)->alignment;
  if (alignment < bits / 8)
    return cdl_bad(c, "alignment of its buffer", alignment, "is below the element's", bits / 8);
  if (v->layout) {
    const cdl_layout_t* l = cdl_get_layout(m, v->layout);
    uint32_t rank = l->opaque ? l->logical_rank : l->count;
    if (!cdl_check_layout(c, l)) return 0;
    if (l->opaque && cdl_get_buffer(m, v->buffer)->role != CDL_ROLE_CONSTANT)
      return cdl_bad(c, "opaque layout", v->layout, "on a buffer that is no constant:", v->buffer);
    if (rank != v->rank) return cdl_bad(c, "rank", v->rank, "differs from its layout's", rank);
  }
  return bits < 8 ? cdl_check_packed(c, v, 8 / bits) : 1;
}

/* How many elements of so many bits lie in so many bytes, CDL_MAX_BYTES at most of packed ones. */
static inline uint64_t cdl_elems_held(uint64_t bytes, uint32_t bits) {
  if (bits >= 8) return bytes / (bits / 8);
  return bytes > CDL_MAX_BYTES / 8 ? CDL_MAX_BYTES : bytes * (8 / bits);
}

/* Every element, for every iteration of `trips` (0: no such loop), lies inside of the buffer. */
static inline int cdl_check_extent(cdl_check_t* c, const cdl_view_t* v,
                                   const uint64_t trips[CDL_MAX_LOOP_NESTING]) {
  const cdl_buffer_t* b = cdl_get_buffer(c->image, v->buffer);
  const cdl_halo_t* halo = b->halo ? cdl_get_halo(c->image, b->halo) : NULL;
  uint64_t bytes = b->bytes, down = 0, up = 0, end, held;
  uint32_t bits = cdl_elem_bits(v->elem), d, fits = 1, empty = 0;
  if (v->layout && cdl_get_layout(c->image, v->layout)->opaque) return 1;
  held = cdl_elems_held(bytes, bits);
  for (d = 0; d < v->rank; ++d) empty |= (uint32_t)(v->dims[d] == 0);
  /* A kernel may read the border of a view that has the dims of its buffer's halo. */
  for (d = 0; halo && halo->rank == v->rank && d < v->rank; ++d) {
    fits &= (uint32_t)cdl_add_product(v->strides[d] < 0 ? &up : &down, halo->lo[d],
                                      cdl_magnitude(v->strides[d]));
    fits &= (uint32_t)cdl_add_product(v->strides[d] < 0 ? &down : &up, halo->hi[d],
                                      cdl_magnitude(v->strides[d]));
  }
  for (d = 0; d < v->rank && !empty; ++d)
    fits &= (uint32_t)cdl_add_product(v->strides[d] < 0 ? &down : &up, (uint64_t)v->dims[d] - 1,
                                      cdl_magnitude(v->strides[d]));
  for (d = 0; d < CDL_MAX_LOOP_NESTING; ++d) {
    if (trips[d] == 0 && v->iv_strides[d])
      return cdl_bad_signed(c, "stride of a loop variable", v->iv_strides[d],
                            "where there is no such loop, level", d);
    if (trips[d])
      fits &= (uint32_t)cdl_add_product(v->iv_strides[d] < 0 ? &down : &up, trips[d] - 1,
                                        cdl_magnitude(v->iv_strides[d]));
  }
  if (v->offset < 0 || (uint64_t)v->offset > CDL_MAX_BYTES || !fits)
    return cdl_bad_signed(c, "view at offset", v->offset, "leaves its buffer's elements,", held);
  if (down > (uint64_t)v->offset)
    return cdl_bad_signed(c, "element", v->offset - (int64_t)down, "lies before its buffer",
                          CDL_NO_LIMIT);
  end = (uint64_t)v->offset + up + (empty ? 0 : 1); /* at most 2^63 + 1 */
  return end <= held
             ? 1
             : cdl_bad(c, "element", end - !empty, "lies beyond its buffer's elements,", held);
}

/* ---- Instructions
 * -----------------------------------------------------------------------------------------------
 */

static inline int cdl_check_instr_attrs(cdl_check_t* c, const cdl_instr_t* in) {
  uint32_t i, k;
  if (!cdl_check_at_most(c, "attrs", in->attrs, CDL_MAX_ATTRS) ||
      !cdl_check_range(c, "attributes", in->first_attr, in->attrs, c->image->attrs.count))
    return 0;
  for (i = 0; i < in->attrs; ++i) {
    const cdl_attr_t* a = cdl_get_attr(c->image, in->first_attr + i);
    const cdl_attr_facts_t* facts = cdl_attr_facts(a->id);
    if (in->kind != CDL_KIND_CUSTOM && !facts)
      return cdl_bad(c, "attribute", a->id, "is unknown", CDL_NO_LIMIT);
    if (in->kind != CDL_KIND_CUSTOM && !cdl_kind_has_attr(in->kind, a->id))
      return cdl_bad_words(c, "attribute", facts->name, "is unknown for",
                           cdl_kind_facts(in->kind)->name);
    if (facts) cdl_at(c, facts->name, UINT32_MAX);
    for (k = 0; k < i; ++k)
      if (cdl_get_attr(c->image, in->first_attr + k)->id == a->id)
        return cdl_bad(c, "attribute", a->id, "stands twice", CDL_NO_LIMIT);
    if (!cdl_check_attr(c, a)) return 0;
    if (in->kind == CDL_KIND_CUSTOM) continue;
    if (facts->type != a->type) return cdl_bad(c, "type", a->type, "is not", facts->type);
    if (facts->count && a->count != facts->count)
      return cdl_bad(c, "count", a->count, "is not", facts->count);
    for (k = 0; k < facts->count; ++k)
      if (a->values[k] < facts->low || a->values[k] > facts->high)
        return cdl_bad_signed(c, "value", a->values[k],
                              facts->low ? "is not within 1 .." : "is not within 0 ..",
                              (uint64_t)facts->high);
  }
  cdl_at(c, NULL, 0);
  return 1;
}

static inline int cdl_check_instr_waits(cdl_check_t* c, const cdl_instr_t* in) {
  uint32_t i;
  if (!cdl_check_range(c, "waits", in->first_wait, in->waits, c->image->waits.count)) return 0;
  for (i = 0; i < in->waits; ++i) {
    const cdl_wait_t* wait = cdl_get_wait(c->image, in->first_wait + i);
    uint32_t earlier = wait->instr;
    if (!cdl_check_wait(c, wait)) return 0;
    if (earlier >= c->index)
      return cdl_bad(c, "wait", earlier, "is not earlier than instruction", c->index);
    if (cdl_get_instr(c->image, earlier)->loop != in->loop)
      return cdl_bad(c, "wait", earlier, "stands in another block", CDL_NO_LIMIT);
  }
  return 1;
}

/* Results are written once per element, and never to what others share. */
static inline int cdl_check_written(cdl_check_t* c, const cdl_view_t* v) {
  uint8_t role = cdl_get_buffer(c->image, v->buffer)->role;
  uint32_t d, shared = CDL_MAX_RANK;
  if (role == CDL_ROLE_INPUT || role == CDL_ROLE_CONSTANT)
    return cdl_bad_words(c, "its buffer", "is", role == CDL_ROLE_INPUT ? "an input" : "a constant",
                         "and cannot be written");
  for (d = 0; d < v->rank; ++d) {
    if (v->dims[d] == 0) return 1;
    if (v->dims[d] > 1 && v->strides[d] == 0) shared = d;
  }
  return shared == CDL_MAX_RANK
             ? 1
             : cdl_bad_dim(c, shared, v->dims[shared], "is written with stride", 0);
}

static inline int cdl_check_instr_views(cdl_check_t* c, const cdl_instr_t* in,
                                        const cdl_kind_facts_t* facts) {
  const cdl_image_t* m = c->image;
  uint64_t trips[CDL_MAX_LOOP_NESTING] = {0, 0};
  uint32_t i;
  int any = facts->max_inputs == 255;
  if (in->inputs < facts->min_inputs)
    return cdl_bad(c, "inputs", in->inputs, "is below", facts->min_inputs);
  if (in->outputs < facts->outputs || (in->outputs > facts->outputs && in->kind != CDL_KIND_CUSTOM))
    return cdl_bad(c, "outputs", in->outputs, "is not", facts->outputs);
  if (!cdl_check_range(c, "views", in->first_view, (uint64_t)in->inputs + in->outputs,
                       m->views.count))
    return 0;
  if (in->loop) {
    const cdl_loop_t* l = cdl_get_loop(m, in->loop);
    trips[l->parent ? 1 : 0] = l->trip;
    if (l->parent) trips[0] = cdl_get_loop(m, l->parent)->trip;
  }
  for (i = 0; i < (uint32_t)in->inputs + in->outputs; ++i) {
    const cdl_view_t* v = cdl_get_view(m, in->first_view + i);
    int written = i >= in->inputs;
    if (written)
      cdl_at(c, "output", i - in->inputs);
    else
      cdl_at(c, "input", i);
    if (!cdl_check_view(c, v) || !cdl_check_extent(c, v, trips) ||
        (written && !cdl_check_written(c, v)))
      return 0;
  }
  cdl_at(c, NULL, 0);
  if (!cdl_check_instr_expr(c, in, facts)) return 0;
  if (!any && !in->prologue && cdl_operand_count(m, in) > facts->max_inputs)
    return cdl_bad(c, "operands", cdl_operand_count(m, in), "exceeds", facts->max_inputs);
  return cdl_check_shapes(c, in, facts);
}

static inline int cdl_check_instr(cdl_check_t* c, const cdl_instr_t* in) {
  const cdl_image_t* m = c->image;
  const cdl_loop_t* l;
  const cdl_group_t* g;
  const cdl_kind_facts_t* facts = cdl_kind_facts(in->kind);
  if (!facts) return cdl_bad_version(c, "kind", in->kind, "is unknown", CDL_NO_LIMIT);
  if (!cdl_fn_known(in->kind, in->fn))
    return cdl_bad_version(c, "fn", in->fn, "is unknown for kind", in->kind);
  if (in->engine >= m->engines) return cdl_bad(c, "engine", in->engine, "is not below", m->engines);
  if (!cdl_check_at_most(c, "flags", in->flags, CDL_INSTR_INOUT) ||
      !cdl_check_index(c, "loop", in->loop, m->loops.count) ||
      !cdl_check_index(c, "group", in->group, m->groups.count) ||
      !cdl_check_index(c, "provenance", in->provenance, m->provenance.count))
    return 0;
  l = cdl_get_loop(m, in->loop);
  g = cdl_get_group(m, in->group);
  if (in->loop && c->index - l->first >= l->count)
    return cdl_bad(c, "loop", in->loop, "does not hold it", CDL_NO_LIMIT);
  if (in->group && c->index - g->first >= g->count)
    return cdl_bad(c, "group", in->group, "does not hold it", CDL_NO_LIMIT);
  return cdl_check_instr_attrs(c, in) && cdl_check_instr_waits(c, in) &&
         cdl_check_instr_views(c, in, facts);
}

/* Waits are counted first: shared ones would make the check quadratic. */
static inline int cdl_check_wait_count(cdl_check_t* c) {
  uint64_t total = 0;
  uint32_t i;
  for (i = 1; i < c->image->instrs.count; ++i) total += cdl_get_instr(c->image, i)->waits;
  c->section = "waits";
  c->index = UINT32_MAX;
  return total < c->image->waits.count
             ? 1
             : cdl_bad(c, "used", total, "is more than there are records with the null one,",
                       c->image->waits.count);
}

/* The image at c->image. */
static inline cdl_code_t cdl_check_image(cdl_check_t* c, uint64_t size) {
  if (!cdl_check_header(c, size) || !cdl_check_sections(c) || !cdl_check_wait_count(c))
    return c->code;
#define CDL_X(type, name)                                                                          \
  c->section = #name;                                                                              \
  for (c->index = 1; c->index < c->image->name.count; ++c->index) {                                \
    cdl_at(c, NULL, 0);                                                                            \
    if (!cdl_check_##type(c, cdl_get_##type(c->image, c->index))) return c->code;                  \
  }
  CDL_SECTIONS(CDL_X)
#undef CDL_X
  return CDL_OK;
}

static inline cdl_code_t cdl_image_check(const void* data, uint64_t size, cdl_error_t* error) {
  cdl_check_t c = {(const cdl_image_t*)data, error, "", 0, NULL, 0, CDL_OK, 0};
  if (!data || (uintptr_t)data % 8)
    return cdl_set_error(error, CDL_INVALID_ARGUMENT,
                         "image: data is null or not aligned to 8 bytes");
  return cdl_check_image(&c, size);
}

#include "candela/cdl_shapes.h"

#endif
