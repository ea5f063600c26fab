/* The second half of cdl_image_check: shapes that fit the kind, so that a kernel that runs over the
 * dims of one operand stays inside of the others. Included by cdl_image.h. */
#ifndef CANDELA_CDL_SHAPES_H
#define CANDELA_CDL_SHAPES_H

/* A logical dim as far as a view tells it: blocks round it up, so that any extent of the last block
 * may be meant. */
typedef struct {
  int64_t low, high;
} cdl_extent_t;

/* What is known of the dims that letters of a shape stand for, 'A' first. */
typedef cdl_extent_t cdl_letters_t[26];

static inline cdl_extent_t cdl_logical_dim(const cdl_image_t* m, const cdl_view_t* v, uint32_t d) {
  const cdl_layout_t* l = cdl_get_layout(m, v->layout);
  cdl_extent_t e = {v->dims[d], v->dims[d]};
  int64_t outer = -1, inner = 1;
  uint32_t i;
  if (!v->layout || l->opaque) return e;
  for (i = 0; i < l->count; ++i) {
    if (l->dim[i] != d) continue;
    if (outer < 0)
      outer = v->dims[i];
    else
      inner *= v->dims[i];
  }
  e.high = outer * inner;
  e.low = e.high ? e.high - inner + 1 : 0;
  return e;
}

/* `e` of dim d may be what is expected. */
static inline int cdl_check_agree(cdl_check_t* c, uint32_t d, cdl_extent_t e,
                                  cdl_extent_t expected) {
  if (e.high < expected.low)
    return cdl_bad_dim(c, d, e.high, "is below the expected", expected.low);
  if (e.low > expected.high)
    return cdl_bad_dim(c, d, e.low, "is above the expected", expected.high);
  return 1;
}

/* A zero point: one element, or as many as there are channels (null: one only). */
static inline int cdl_check_zero_point(cdl_check_t* c, const cdl_view_t* v,
                                       const cdl_extent_t* channels) {
  int64_t count = v->rank ? v->dims[0] : 1;
  if (v->rank > 1 || v->layout) return cdl_bad(c, "rank of a zero point", v->rank, "exceeds", 1);
  if (count == 1 || (channels && count && count >= channels->low && count <= channels->high))
    return 1;
  return cdl_bad_signed(c, "elements of a zero point", count,
                        channels ? "are neither 1 nor" : "are not",
                        channels ? (uint64_t)channels->high : 1);
}

/* A view against its word of the shape. */
static inline int cdl_check_word(cdl_check_t* c, const cdl_view_t* v, const cdl_view_t* y,
                                 const char* word, cdl_letters_t letters) {
  uint32_t d, letter_count = 0,
              rank = v->layout ? cdl_get_layout(c->image, v->layout)->logical_rank : v->rank;
  if (*word == '-') return 1;
  if (*word == '=') return cdl_check_same_dims(c, v, y);
  if (*word == '1')
    return cdl_check_zero_point(c, v, word[1] >= 'A' ? &letters[word[1] - 'A'] : NULL);
  while (word[letter_count] >= 'A' && word[letter_count] <= 'Z') ++letter_count;
  if (rank != letter_count) return cdl_bad(c, "rank", rank, "is not", letter_count);
  for (d = 0; d < rank; ++d) {
    cdl_extent_t e = cdl_logical_dim(c->image, v, d), *known = &letters[word[d] - 'A'];
    if (!cdl_check_agree(c, d, e, *known)) return 0;
    if (e.low > known->low) known->low = e.low;
    if (e.high < known->high) known->high = e.high;
  }
  return 1;
}

static inline const int64_t* cdl_attr_values(const cdl_image_t* image, const cdl_instr_t* in,
                                             uint16_t id, const int64_t* missing) {
  const cdl_attr_t* a = cdl_find_attr(image, in, id);
  return a ? a->values : missing;
}

/* Channels of w[O, C/group, KH, KW], transposed w[C, O/group, KH, KW]. */
static inline int cdl_check_groups(cdl_check_t* c, int64_t group, cdl_extent_t outer,
                                   cdl_extent_t inner, cdl_extent_t per_group) {
  if (per_group.high < (inner.low + group - 1) / group || per_group.low > inner.high / group)
    return cdl_bad_signed(c, "channels", inner.high, "are not group times the weight's",
                          (uint64_t)per_group.high);
  if (outer.low == outer.high && outer.low % group)
    return cdl_bad_signed(c, "channels", outer.low, "are no multiple of group", (uint64_t)group);
  return 1;
}

/* The dilated kernel fits into the padded input, and the result has as many places as it then has.
 * Dims whose blocks hide their extent are left to the layout's owner. */
static inline int cdl_check_window(cdl_check_t* c, const cdl_instr_t* in, int transposed,
                                   const cdl_letters_t letters) {
  static const int64_t ones[2] = {1, 1}, none[4] = {0, 0, 0, 0};
  const int64_t* strides = cdl_attr_values(c->image, in, CDL_ATTR_STRIDES, ones);
  const int64_t* dilations = cdl_attr_values(c->image, in, CDL_ATTR_DILATIONS, ones);
  const int64_t* pads = cdl_attr_values(c->image, in, CDL_ATTR_PADS, none);
  const int64_t* kernel = cdl_attr_values(c->image, in, CDL_ATTR_KERNEL, NULL);
  uint32_t d;
  for (d = 0; d < 2; ++d) {
    cdl_extent_t x = letters["HW"[d] - 'A'], k = letters["KL"[d] - 'A'], y = letters["QR"[d] - 'A'],
                 expected;
    int64_t padding = pads[d] + pads[d + 2];
    uint64_t reach = 1;
    int fits;
    if (kernel) k.low = k.high = kernel[d];
    if (x.low != x.high || k.low != k.high) continue;
    cdl_at(c, "spatial dim", d);
    if (k.low == 0) return cdl_bad(c, "kernel", 0, "is empty", CDL_NO_LIMIT);
    fits = cdl_add_product(&reach, (uint64_t)k.low - 1, (uint64_t)dilations[d]);
    if (transposed) {
      fits = fits &&
             (x.low == 0 || cdl_add_product(&reach, (uint64_t)x.low - 1, (uint64_t)strides[d]));
      if (!fits)
        return cdl_bad(c, "input", (uint64_t)x.low, "gives a result beyond", (uint64_t)CDL_MAX_DIM);
      expected.low = (int64_t)reach - padding - (x.low ? 0 : strides[d]);
      expected.high = expected.low + strides[d] - 1;
      if (expected.low < 0) expected.low = 0;
      if (expected.high < 0) expected.high = 0;
    } else {
      if (!fits || reach > (uint64_t)(x.low + padding))
        return cdl_bad(c, "kernel of", reach, "is larger than the padded input of",
                       (uint64_t)(x.low + padding));
      expected.low = expected.high = (x.low + padding - (int64_t)reach) / strides[d] + 1;
    }
    cdl_at(c, "output", 0);
    if (!cdl_check_agree(c, 2 + d, y, expected)) return 0;
    cdl_at(c, NULL, 0);
  }
  return 1;
}

/* Of SCALED_MATMUL: K ends in the last of G blocks of S. */
static inline int cdl_check_blocks(cdl_check_t* c, const cdl_letters_t letters) {
  const uint64_t k = (uint64_t)letters['K' - 'A'].low, s = (uint64_t)letters['S' - 'A'].low,
                 g = (uint64_t)letters['G' - 'A'].low;
  uint64_t held = 0;
  if (!cdl_add_product(&held, g, s)) return cdl_bad(c, "block of", s, "is too many times", g);
  if (k > held) return cdl_bad(c, "depth", k, "is more than blocks hold, which is", held);
  if (k + s <= held && held > 0)
    return cdl_bad(c, "depth", k, "does not reach the last block, which begins at", held - s);
  return 1;
}

static inline int cdl_check_shapes(cdl_check_t* c, const cdl_instr_t* in,
                                   const cdl_kind_facts_t* facts) {
  const cdl_image_t* m = c->image;
  const cdl_view_t* y = cdl_get_output(m, in, 0);
  const cdl_attr_t* value = cdl_find_attr(m, in, CDL_ATTR_VALUE);
  const int64_t one = 1, zero = 0;
  uint32_t i, operands = cdl_operand_count(m, in);
  int conv = in->kind == CDL_KIND_CONV2D;
  int transposed = conv && *cdl_attr_values(m, in, CDL_ATTR_TRANSPOSED, &zero);
  const char* word = transposed ? "NCHW CIKL 1 1O > NOQR" : facts->shape;
  const char *result = strchr(word, '>') + 2, *next;
  cdl_letters_t letters;
  if (in->kind == CDL_KIND_CUSTOM) return 1;
  if (in->kind == CDL_KIND_FILL && !value)
    return cdl_bad_words(c, "attribute", "value", "is", "missing");
  if (in->kind == CDL_KIND_POOL2D && !cdl_find_attr(m, in, CDL_ATTR_KERNEL))
    return cdl_bad_words(c, "attribute", "kernel", "is", "missing");
  if (value && !cdl_check_bits(c, "value", (uint64_t)value->values[0], y->elem)) return 0;
  if (in->kind == CDL_KIND_RESCALE && operands == 5)
    return cdl_bad(c, "operands", 5, "are neither 4 nor", 6);
  for (i = 0; i < 26; ++i) {
    letters[i].low = 0;
    letters[i].high = INT64_MAX;
  }
  if (in->kind == CDL_KIND_TABLE)
    letters['T' - 'A'].low = letters['T' - 'A'].high =
        cdl_get_input(m, in, 0)->elem == CDL_I16 ? 513 : 256;
  for (i = 0; i < in->outputs; ++i) {
    cdl_at(c, "output", i);
    if (!cdl_check_word(c, cdl_get_output(m, in, i), y, result, letters)) return 0;
    next = strchr(result, ' ');
    if (next) result = next + 1;
  }
  for (i = 0; i < operands; ++i) {
    cdl_at(c, "input", i);
    if (!cdl_check_word(c, cdl_get_input(m, in, i), y, word, letters)) return 0;
    next = strchr(word, ' ') + 1;
    if (*next != '>') word = next; /* the last word is for all that follow */
  }
  cdl_at(c, NULL, 0);
  if (in->kind == CDL_KIND_SORT && letters['K' - 'A'].low > letters['N' - 'A'].high)
    return cdl_bad_signed(c, "elements kept", letters['K' - 'A'].low, "are more than the",
                          (uint64_t)letters['N' - 'A'].high);
  if (in->kind == CDL_KIND_SCALED_MATMUL && !cdl_check_blocks(c, letters)) return 0;
  if (conv) {
    cdl_extent_t x_channels = letters['C' - 'A'], y_channels = letters['O' - 'A'];
    if (!cdl_check_groups(c, *cdl_attr_values(m, in, CDL_ATTR_GROUP, &one),
                          transposed ? x_channels : y_channels,
                          transposed ? y_channels : x_channels, letters['I' - 'A']))
      return 0;
  }
  return conv || in->kind == CDL_KIND_POOL2D ? cdl_check_window(c, in, transposed, letters) : 1;
}

#endif
