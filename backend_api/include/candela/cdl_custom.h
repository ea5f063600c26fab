/* Included by cdl.h: how a node of a model reaches the plugin that claims its op (custom_op). */
#ifndef CANDELA_CDL_CUSTOM_H
#define CANDELA_CDL_CUSTOM_H

#define CDL_MAX_CUSTOM_ATTRS 32
#define CDL_MAX_CUSTOM_DATA 65536

/* ---- Custom ops ------------------------------------------------------------------------------ */

enum {
  CDL_CUSTOM_INTS = 1,
  CDL_CUSTOM_FLOATS = 2,
  CDL_CUSTOM_STRINGS = 3,
  CDL_CUSTOM_TENSOR = 4,
  CDL_CUSTOM_ATTR_FIRST = 256 /* the ids of attributes that a claim makes up: from here on */
};

/* An operand or a result of a node, or a tensor among its attributes. */
typedef struct {
  uint8_t elem, rank; /* elem 0: an optional operand that the node leaves out */
  uint8_t pad[6];
  int64_t dims[CDL_MAX_RANK];
  const void* data; /* of a tensor among the attributes, and of a constant operand of up to
                       CDL_MAX_CUSTOM_DATA bytes: row-major, little-endian; else null */
  uint64_t bytes;   /* at data */
} cdl_custom_value_t;

/* An attribute as the model gives it. Of the four pointers the one of its type is not null. */
typedef struct {
  const char* name;
  uint8_t type;    /* CDL_CUSTOM_* */
  uint8_t is_list; /* 1: a list of any length; 0: one value */
  uint8_t pad[2];
  uint32_t count; /* values */
  const int64_t* ints;
  const double* floats;
  const char* const* strings;
  const cdl_custom_value_t* tensor;
} cdl_custom_attr_t;

/* A node of a domain that the host does not import. */
typedef struct {
  cdl_header_t header;
  const char* domain; /* as the model spells it */
  const char* op;
  const char* name; /* the node's, for messages */
  int64_t version;  /* of the domain, as the model imports it */
  uint32_t input_count, output_count;
  uint32_t attr_count, reserved;
  const cdl_custom_value_t* inputs;
  const cdl_custom_attr_t* attrs; /* in the order of their names */
} cdl_custom_node_t;

/* What a plugin says of a node that it claims, filled no further than its header says. */
typedef struct {
  cdl_header_t header;
  uint16_t fn;         /* of the CUSTOM instruction: the plugin's own number of the op */
  uint16_t attr_count; /* of `attrs` that are filled */
  uint32_t reserved;
  /* the host's, output_count of them: elem, rank and dims are to be filled */
  cdl_custom_value_t* outputs;
  cdl_attr_t* attrs; /* the host's, CDL_MAX_CUSTOM_ATTRS of them: what the instruction is to have */
} cdl_custom_claim_t;

#endif
