/* How cdl_image_check says what is wrong, and the small checks that it is made of. Included by
 * cdl_image.h. */
#ifndef CANDELA_CDL_CHECK_H
#define CANDELA_CDL_CHECK_H

#include "candela/cdl_facts.h"

#define CDL_MAX_DIM ((int64_t)1 << 40)
#define CDL_MAX_ELEMENTS ((int64_t)1 << 48)
#define CDL_MAX_BYTES ((uint64_t)1 << 62)
#define CDL_NO_LIMIT UINT64_MAX /* in messages: no second number */

/* ---- Messages without <stdio.h>
 * --------------------------------------------------------------------------------- */

/* Where the check stands; every message begins with it. */
typedef struct {
  const cdl_image_t* image;
  cdl_error_t* error;
  const char* section;
  uint32_t index;      /* of the record; UINT32_MAX: of the section as such */
  const char* part;    /* of the record, as "input"; null: of none in particular */
  uint32_t part_index; /* UINT32_MAX: there is one */
  cdl_code_t code;
  uint32_t place_length; /* of the place that the message begins with */
} cdl_check_t;

static inline void cdl_at(cdl_check_t* c, const char* part, uint32_t part_index) {
  c->part = part;
  c->part_index = part_index;
}

static inline void cdl_append(cdl_error_t* error, uint32_t* at, const char* text) {
  while (*text && *at + 1 < error->capacity) error->text[(*at)++] = *text++;
  error->text[*at] = 0;
}

/* `value` in decimal at the end of `digits`. */
static inline char* cdl_decimal(char digits[24], uint64_t value) {
  char* first = digits + 23;
  *first = 0;
  do *--first = (char)('0' + value % 10);
  while ((value /= 10) != 0);
  return first;
}

/* Fills *error (NULL is allowed) with `text` and returns `code`. */
static inline cdl_code_t cdl_set_error(cdl_error_t* error, cdl_code_t code, const char* text) {
  uint32_t at = 0;
  if (error && error->text && error->capacity) cdl_append(error, &at, text);
  return code;
}

/* "image: instrs 3: input 0: type f16 differs from the result's f32"; an empty limit is none.
 * Always 0, so that a check reads `return cdl_bad_words(...)`. */
static inline int cdl_bad_words(cdl_check_t* c, const char* field, const char* value,
                                const char* why, const char* limit) {
  const char* const words[] = {field, " ", value, " ", why, *limit ? " " : "", limit};
  char digits[24];
  uint32_t at = 0, i;
  if (c->code == CDL_OK) c->code = CDL_BAD_MODEL;
  if (!c->error || !c->error->text || !c->error->capacity) return 0;
  cdl_append(c->error, &at, "image: ");
  cdl_append(c->error, &at, c->section);
  cdl_append(c->error, &at, " ");
  if (c->index != UINT32_MAX) {
    cdl_append(c->error, &at, cdl_decimal(digits, c->index));
    cdl_append(c->error, &at, ": ");
  }
  if (c->part) {
    cdl_append(c->error, &at, c->part);
    if (c->part_index != UINT32_MAX) {
      cdl_append(c->error, &at, " ");
      cdl_append(c->error, &at, cdl_decimal(digits, c->part_index));
    }
    cdl_append(c->error, &at, ": ");
  }
  c->place_length = at;
  for (i = 0; i < sizeof words / sizeof *words; ++i) cdl_append(c->error, &at, words[i]);
  return 0;
}
/* "... rank 9 exceeds 8". */
static inline int cdl_bad_as(cdl_check_t* c, const char* field, int negative, uint64_t value,
                             const char* why, uint64_t limit) {
  char digits[24], limit_digits[24], *text = cdl_decimal(digits, value);
  if (negative) *--text = '-';
  return cdl_bad_words(c, field, text, why,
                       limit == CDL_NO_LIMIT ? "" : cdl_decimal(limit_digits, limit));
}
static inline int cdl_bad(cdl_check_t* c, const char* field, uint64_t value, const char* why,
                          uint64_t limit) {
  return cdl_bad_as(c, field, 0, value, why, limit);
}

static inline uint64_t cdl_magnitude(int64_t value) {
  return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

static inline int cdl_bad_signed(cdl_check_t* c, const char* field, int64_t value, const char* why,
                                 uint64_t limit) {
  return cdl_bad_as(c, field, value < 0, cdl_magnitude(value), why, limit);
}

/* What only a later version of the image may have. */
static inline int cdl_bad_version(cdl_check_t* c, const char* field, uint64_t value,
                                  const char* why, uint64_t limit) {
  c->code = CDL_INCOMPATIBLE;
  return cdl_bad(c, field, value, why, limit);
}
/* `dim` counts from 0. */
static inline int cdl_bad_dim(cdl_check_t* c, uint32_t dim, int64_t value, const char* why,
                              int64_t limit) {
  char field[] = "dims[0]";
  field[5] = (char)('0' + dim);
  return cdl_bad_signed(c, field, value, why, (uint64_t)limit);
}

/* ---- Small checks
 * -----------------------------------------------------------------------------------------------
 */

static inline int cdl_check_index(cdl_check_t* c, const char* field, uint64_t index,
                                  uint32_t count) {
  return index < count ? 1 : cdl_bad(c, field, index, "is not below the section's count", count);
}

/* An index that may not be 0. */
static inline int cdl_check_ref(cdl_check_t* c, const char* field, uint64_t index, uint32_t count) {
  return index ? cdl_check_index(c, field, index, count)
               : cdl_bad(c, field, 0, "names no record", CDL_NO_LIMIT);
}

/* first .. first + count - 1 are records, none of them the null record. */
static inline int cdl_check_range(cdl_check_t* c, const char* field, uint32_t first, uint64_t count,
                                  uint32_t records) {
  if (count == 0) return 1;
  if (first == 0) return cdl_bad(c, field, 0, "names the null record", CDL_NO_LIMIT);
  if (first + count > records)
    return cdl_bad(c, field, first + count, "ends beyond the section's count", records);
  return 1;
}

static inline int cdl_check_at_most(cdl_check_t* c, const char* field, uint64_t value,
                                    uint64_t limit) {
  return value <= limit ? 1 : cdl_bad(c, field, value, "exceeds", limit);
}

static inline int cdl_check_zero(cdl_check_t* c, const char* field, uint64_t value) {
  return value == 0 ? 1 : cdl_bad(c, field, value, "must be 0", CDL_NO_LIMIT);
}

static inline int cdl_check_power_of_two(cdl_check_t* c, const char* field, uint32_t value) {
  return value && (value & (value - 1)) == 0
             ? 1
             : cdl_bad(c, field, value, "is not a power of two", CDL_NO_LIMIT);
}

static inline int cdl_check_same_elem(cdl_check_t* c, uint8_t elem, const char* whose,
                                      uint8_t expected) {
  return elem == expected
             ? 1
             : cdl_bad_words(c, "type", cdl_elem_name(elem), whose, cdl_elem_name(expected));
}

static inline int cdl_check_elem(cdl_check_t* c, uint8_t elem) {
  return cdl_elem_bits(elem) ? 1 : cdl_bad(c, "elem", elem, "is no element type", CDL_NO_LIMIT);
}

static inline int cdl_check_count(cdl_check_t* c, const char* field, uint64_t value,
                                  uint64_t most) {
  return value >= 1 && value <= most ? 1 : cdl_bad(c, field, value, "is not within 1 ..", most);
}
static inline int cdl_check_string(cdl_check_t* c, const char* field, uint32_t string) {
  return cdl_check_index(c, field, string, c->image->strings.count);
}

/* `value` has no bits beyond those of the element type. */
static inline int cdl_check_bits(cdl_check_t* c, const char* field, uint64_t value, uint8_t elem) {
  uint32_t bits = cdl_elem_bits(elem);
  if (bits < 64 && value >> bits)
    return cdl_bad(c, field, value, "exceeds the bits of its element type,", bits);
  return 1;
}

/* *sum += count * step, refusing what passes CDL_MAX_BYTES. */
static inline int cdl_add_product(uint64_t* sum, uint64_t count, uint64_t step) {
  if (count != 0 && step > CDL_MAX_BYTES / count) return 0;
  *sum += count * step;
  return *sum <= CDL_MAX_BYTES;
}

#endif
