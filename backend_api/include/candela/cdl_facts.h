/* The generated tables of cdl_enums.h as functions. Included by cdl_image.h; C11 and C++17. */
#ifndef CANDELA_CDL_FACTS_H
#define CANDELA_CDL_FACTS_H

#include "candela/cdl_enums.h"

#define CDL_MAX_ATTRS 16 /* attributes of one instruction */

/* Bits of one element in memory, 0 for a number that is no element type. */
static inline uint32_t cdl_elem_bits(uint8_t elem) {
#define CDL_X(name, id, bits, ...)                                                                 \
  if (elem == (id)) return (bits);
  CDL_ELEMS(CDL_X)
#undef CDL_X
  return 0;
}

static inline const char* cdl_elem_name(uint8_t elem) {
#define CDL_X(name, id, ...)                                                                       \
  if (elem == (id)) return #name;
  CDL_ELEMS(CDL_X)
#undef CDL_X
  return "no type";
}

typedef struct {
  const char* name;
  uint8_t primitive;
  uint8_t min_inputs, max_inputs; /* operands; 255: any number */
  uint8_t outputs;                /* CUSTOM: at least */
  uint8_t epilogue;               /* takes an epilogue expr */
  const char *shape,
      *elems; /* a word for each operand, "> " and the result's: spec/primitives.toml */
} cdl_kind_facts_t;

/* What is known of a kind, or null. */
static inline const cdl_kind_facts_t* cdl_kind_facts(uint16_t kind) {
#define CDL_X(name, id, ...)                                                                       \
  static const cdl_kind_facts_t facts_of_##name = {#name, __VA_ARGS__};                            \
  if (kind == (id)) return &facts_of_##name;
  CDL_KINDS(CDL_X)
#undef CDL_X
  return NULL;
}

typedef struct {
  const char* name;
  uint8_t type;      /* 1 int, 2 float, 3 ints, 4 bits */
  uint8_t count;     /* of the values; 0: any number, within any range */
  int64_t low, high; /* of each value */
} cdl_attr_facts_t;

/* What is known of an attribute, or null. */
static inline const cdl_attr_facts_t* cdl_attr_facts(uint16_t attr) {
#define CDL_X(name, id, ...)                                                                       \
  static const cdl_attr_facts_t facts_of_##name = {#name, __VA_ARGS__};                            \
  if (attr == (id)) return &facts_of_##name;
  CDL_ATTRS(CDL_X)
#undef CDL_X
  return NULL;
}

/* Numbers by the lower-case names that the tables use. */
enum {
#define CDL_X(name, id, ...) cdl_kind_id_##name = id,
  CDL_KINDS(CDL_X)
#undef CDL_X
#define CDL_X(name, id, ...) cdl_attr_id_##name = id,
      CDL_ATTRS(CDL_X)
#undef CDL_X
};

/* Kinds without functions have fn 0 alone; those of CUSTOM belong to its plugin. */
static inline int cdl_fn_known(uint16_t kind, uint16_t fn) {
  int has_functions = 0;
  if (kind == CDL_KIND_CUSTOM) return 1;
#define CDL_X(kind_name, name, id, optional)                                                       \
  if (kind == cdl_kind_id_##kind_name) {                                                           \
    has_functions = 1;                                                                             \
    if (fn == (id)) return 1;                                                                      \
  }
  CDL_FNS(CDL_X)
#undef CDL_X
  return !has_functions && fn == 0;
}

static inline int cdl_kind_has_attr(uint16_t kind, uint16_t attr) {
#define CDL_X(kind_name, attr_name)                                                                \
  if (kind == cdl_kind_id_##kind_name && attr == cdl_attr_id_##attr_name) return 1;
  CDL_KIND_ATTRS(CDL_X)
#undef CDL_X
  return 0;
}

#endif
