/* The second half of cdl_image_check: shapes and attribute values that fit the kind, so that a
 * kernel that runs over the dims of one operand stays inside of the others. Included by
 * cdl_image.h. */
#ifndef CANDELA_CDL_SHAPES_H
#define CANDELA_CDL_SHAPES_H

/* Dims of operands, then '>' and the results': a letter names a dim that is the same wherever it
 * stands; '-' says nothing of an operand; "=" means that all are alike. Null: nothing is known of
 * the kind's shapes. */
static inline const char* cdl_kind_shape(uint16_t kind) {
  switch (kind) {
  case CDL_KIND_GATHER: return "ONI K > OKI";
  case CDL_KIND_SCATTER: return "K OKI > ONI";
  case CDL_KIND_REDUCE: return "ORI > OI";
  case CDL_KIND_MATMUL: return "BMK BKN - - > BMN";
  case CDL_KIND_TABLE: return "- T > -";
  case CDL_KIND_CONV2D: return "NCHW OIKL - - > NPQR";
  case CDL_KIND_POOL2D: return "NCHW > NCQR";
  case CDL_KIND_NORM: return "OR R R > OR";
  case CDL_KIND_ATTENTION: return "BSD BTD BTE BST > BSE";
  case CDL_KIND_ARG_REDUCE: return "ORI > OI";
  case CDL_KIND_SORT: return "ONI > OKI OKI";
  case CDL_KIND_FILL:
  case CDL_KIND_CUSTOM: return NULL;
  default: return "=";
  }
}

/* One view against one word of the shape; `dims` holds what letters stand for, -1 for unknown. */
static inline int cdl_check_word(cdl_check_t* c, const cdl_view_t* v, const char* word, int64_t dims[26]) {
  uint32_t d, rank = 0;
  if (*word == '-') return 1;
  while (word[rank] >= 'A' && word[rank] <= 'Z') ++rank;
  if (v->rank != rank) return cdl_bad(c, "rank of a view", v->rank, "is not", rank);
  for (d = 0; d < rank; ++d) {
    int64_t* known = &dims[word[d] - 'A'];
    if (*known < 0) *known = v->dims[d];
    if (*known != v->dims[d])
      return cdl_bad_signed(c, "dim of a view", v->dims[d], "disagrees with another view's", (uint64_t)*known);
  }
  return 1;
}

static inline int cdl_check_alike(cdl_check_t* c, const cdl_view_t* v, const cdl_view_t* y) {
  uint32_t d;
  if (v->layout != y->layout) return 1;
  if (v->rank != y->rank) return cdl_bad(c, "rank of an operand", v->rank, "differs from the result's", y->rank);
  for (d = 0; d < y->rank; ++d)
    if (v->dims[d] != y->dims[d])
      return cdl_bad_signed(c, "dim of an operand", v->dims[d], "differs from the result's", (uint64_t)y->dims[d]);
  return 1;
}

/* A zero point: one element, or `channels` of them (0: one only). */
static inline int cdl_check_zero_point(cdl_check_t* c, const cdl_instr_t* in, uint32_t operand, int64_t channels) {
  const cdl_view_t* v;
  int64_t count;
  if (operand >= cdl_operand_count(c->image, in)) return 1;
  v = cdl_get_input(c->image, in, operand);
  if (v->rank > 1) return cdl_bad(c, "rank of a zero point", v->rank, "exceeds", 1);
  count = v->rank ? v->dims[0] : 1;
  return count == 1 || (channels && count == channels)
             ? 1
             : cdl_bad_signed(c, "elements of a zero point", count, "is neither 1 nor", (uint64_t)channels);
}

/* Attribute values within lo .. hi, `count` of them. */
static inline int cdl_check_values(cdl_check_t* c, const cdl_instr_t* in, uint16_t id, const char* name, uint32_t count,
                                   int64_t lo, int64_t hi) {
  const cdl_attr_t* a = cdl_find_attr(c->image, in, id);
  uint32_t i;
  if (!a) return 1;
  if (a->count != count) return cdl_bad(c, name, a->count, "values, not", count);
  for (i = 0; i < count; ++i)
    if (a->values[i] < lo || a->values[i] > hi)
      return cdl_bad_signed(c, name, a->values[i], lo ? "is not within 1 .." : "is not within 0 ..", (uint64_t)hi);
  return 1;
}

static inline int cdl_check_attr_values(cdl_check_t* c, const cdl_instr_t* in) {
  const int64_t many = INT32_MAX;
  const cdl_attr_t* value = cdl_find_attr(c->image, in, CDL_ATTR_VALUE);
  if (in->kind == CDL_KIND_CUSTOM) return 1;
  if (in->kind == CDL_KIND_FILL && !value) return cdl_bad(c, "attribute", CDL_ATTR_VALUE, "is missing", CDL_NO_LIMIT);
  if (in->kind == CDL_KIND_POOL2D && !cdl_find_attr(c->image, in, CDL_ATTR_KERNEL))
    return cdl_bad(c, "attribute", CDL_ATTR_KERNEL, "is missing", CDL_NO_LIMIT);
  return (!value || cdl_check_bits(c, "value", (uint64_t)value->values[0], cdl_get_output(c->image, in, 0)->elem)) &&
         cdl_check_values(c, in, CDL_ATTR_SATURATE, "saturate", 1, 0, 1) &&
         cdl_check_values(c, in, CDL_ATTR_ACCUMULATE, "accumulate", 1, 0, 1) &&
         cdl_check_values(c, in, CDL_ATTR_TRANSPOSED, "transposed", 1, 0, 1) &&
         cdl_check_values(c, in, CDL_ATTR_COUNT_INCLUDE_PAD, "count_include_pad", 1, 0, 1) &&
         cdl_check_values(c, in, CDL_ATTR_SELECT_LAST, "select_last", 1, 0, 1) &&
         cdl_check_values(c, in, CDL_ATTR_A_LEFT_SHIFT, "a_left_shift", 1, 0, 63) &&
         cdl_check_values(c, in, CDL_ATTR_B_LEFT_SHIFT, "b_left_shift", 1, 0, 63) &&
         cdl_check_values(c, in, CDL_ATTR_GROUP, "group", 1, 1, many) &&
         cdl_check_values(c, in, CDL_ATTR_STRIDES, "strides", 2, 1, many) &&
         cdl_check_values(c, in, CDL_ATTR_DILATIONS, "dilations", 2, 1, many) &&
         cdl_check_values(c, in, CDL_ATTR_KERNEL, "kernel", 2, 1, many) &&
         cdl_check_values(c, in, CDL_ATTR_PADS, "pads", 4, 0, many);
}

static inline int64_t cdl_int_attr(const cdl_image_t* image, const cdl_instr_t* in, uint16_t id, int64_t missing) {
  const cdl_attr_t* a = cdl_find_attr(image, in, id);
  return a ? a->values[0] : missing;
}

/* Channels: w[O, C/group, KH, KW], transposed w[C, O/group, KH, KW]. */
static inline int cdl_check_conv(cdl_check_t* c, const cdl_instr_t* in) {
  const cdl_view_t *x = cdl_get_input(c->image, in, 0), *w = cdl_get_input(c->image, in, 1);
  const cdl_view_t* y = cdl_get_output(c->image, in, 0);
  int64_t group = cdl_int_attr(c->image, in, CDL_ATTR_GROUP, 1);
  int transposed = cdl_int_attr(c->image, in, CDL_ATTR_TRANSPOSED, 0) != 0;
  const cdl_view_t *outer = transposed ? x : y, *inner = transposed ? y : x;
  if (w->dims[0] != outer->dims[1])
    return cdl_bad_signed(c, "first dim of the weight", w->dims[0], "is not", (uint64_t)outer->dims[1]);
  if (inner->dims[1] % group || w->dims[1] != inner->dims[1] / group)
    return cdl_bad_signed(c, "channels of the weight times group", w->dims[1], "disagree with",
                          (uint64_t)inner->dims[1]);
  if (outer->dims[1] % group)
    return cdl_bad_signed(c, "channels", outer->dims[1], "are no multiple of group", (uint64_t)group);
  return cdl_check_zero_point(c, in, 2, 0) && cdl_check_zero_point(c, in, 3, y->dims[1]);
}

static inline int cdl_check_shapes(cdl_check_t* c, const cdl_instr_t* in) {
  const cdl_image_t* m = c->image;
  const char* word = cdl_kind_shape(in->kind);
  const cdl_view_t* y = cdl_get_output(m, in, 0);
  uint32_t i, operands = cdl_operand_count(m, in);
  int64_t dims[26];
  if (!cdl_check_attr_values(c, in)) return 0;
  if (!word) return 1;
  if (*word == '=') {
    for (i = 0; i < operands; ++i)
      if (!cdl_check_alike(c, cdl_get_input(m, in, i), y)) return 0;
    if (in->kind == CDL_KIND_RESCALE && operands == 5)
      return cdl_bad(c, "operands", 5, "without the multiplier of b", CDL_NO_LIMIT);
    if (in->kind == CDL_KIND_SOFTMAX && y->layout == 0 && y->rank != 3) return cdl_bad(c, "rank", y->rank, "is not", 3);
    return 1;
  }
  if (in->kind == CDL_KIND_TABLE && !cdl_check_alike(c, cdl_get_input(m, in, 0), y)) return 0;
  for (i = 0; i < (uint32_t)in->inputs + in->outputs; ++i)
    if (cdl_get_view(m, in->first_view + i)->layout) return 1; /* physical dims: the layout's owner knows them */
  for (i = 0; i < 26; ++i) dims[i] = -1;
  if (in->kind == CDL_KIND_TABLE) dims['T' - 'A'] = cdl_get_input(m, in, 0)->elem == CDL_I16 ? 513 : 256;
  for (i = 0; *word != '>'; ++i) {
    if (i < operands && !cdl_check_word(c, cdl_get_input(m, in, i), word, dims)) return 0;
    while (*word++ != ' ') {}
  }
  for (i = 0; i < in->outputs; ++i) {
    while (*word < 'A' && *word != '-') ++word;
    if (!cdl_check_word(c, cdl_get_output(m, in, i), word, dims)) return 0;
    while (*word >= 'A') ++word;
  }
  if (in->kind == CDL_KIND_SORT && dims['K' - 'A'] > dims['N' - 'A'])
    return cdl_bad_signed(c, "dim of a view", dims['K' - 'A'], "exceeds what is sorted,", (uint64_t)dims['N' - 'A']);
  if (in->kind == CDL_KIND_CONV2D) return cdl_check_conv(c, in);
  if (in->kind == CDL_KIND_MATMUL)
    return cdl_check_zero_point(c, in, 2, 0) && cdl_check_zero_point(c, in, 3, y->dims[2]);
  return 1;
}

#endif
