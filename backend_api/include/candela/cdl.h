/* The backend interface of Candela: everything that crosses between the core and a backend.
 *
 * C11, no dependency but <stdint.h>, <stddef.h> and <string.h>. Two halves:
 *
 *   1. The Program image: one flat, position-independent, little-endian, read-only block of bytes. The same bytes are
 *      validated, hashed, stored, sent to a compiler in another process, inspected and printed. Records refer to each
 *      other by index, never by pointer; record 0 of every section is the null record, so that 0 means "none".
 *   2. The plugin table: one exported symbol, cdl_backend_query, fills a cdl_plugin_t after versions were compared.
 *
 * Versions: tables and argument structs begin with cdl_header_t. Tables only grow at the end. The caller sets
 * struct_size to what it knows; the callee touches no byte beyond it and reads missing slots as null.
 * Errors: a cdl_code_t, a vendor code and a message in a buffer that the caller owns (NULL is allowed).
 * Nothing aborts, nothing throws across. Threads: every slot says which calls may run at the same time.
 *
 * Slots and offsets are frozen in backend_api/abi/; the ABI is 0.x: a minor number may still change it. */
#ifndef CANDELA_CDL_H
#define CANDELA_CDL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "candela/cdl_enums.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CDL_ABI_MAJOR 0
#define CDL_ABI_MINOR 1
#define CDL_IMAGE_MAJOR 0
#define CDL_IMAGE_MINOR 1
#define CDL_MAX_RANK 8
#define CDL_MAX_STEPS 32
#define CDL_MAX_LOOP_NESTING 2

#if defined(_WIN32)
#define CDL_EXPORT __declspec(dllexport)
#else
#define CDL_EXPORT __attribute__((visibility("default")))
#endif

/* ---- Headers and errors ---------------------------------------------------------------------------------------- */

typedef struct {
  uint16_t struct_size;  /* bytes that the one who fills the struct knows */
  uint16_t major, minor; /* the ABI that it was built against */
  uint16_t flags;        /* 0 */
} cdl_header_t;

#define CDL_HEADER(type)                                                                                               \
  { (uint16_t)sizeof(type), CDL_ABI_MAJOR, CDL_ABI_MINOR, 0 }

/* True when a struct that came from the other side is long enough to hold `field`. */
#define CDL_HAS(ptr, field) ((ptr)->header.struct_size >= offsetof(__typeof__(*(ptr)), field) + sizeof((ptr)->field))

typedef struct {
  char* text;          /* NUL-terminated by the callee, truncated to capacity */
  uint32_t capacity;   /* bytes at text */
  int32_t vendor_code; /* the backend's own number, 0 when it has none */
} cdl_error_t;

/* ---- The Program image ----------------------------------------------------------------------------------------- */

typedef struct {
  uint64_t offset; /* bytes from the start of the image, a multiple of 8 */
  uint32_t stride; /* bytes per record as the writer knew it, at least sizeof the record (strings: 1) */
  uint32_t count;  /* records with the null record (strings: bytes with the first NUL) */
} cdl_section_t;

typedef struct {
  char magic[4];         /* "CDLP" */
  uint16_t major, minor; /* CDL_IMAGE_MAJOR, CDL_IMAGE_MINOR */
  uint64_t size;         /* bytes of the whole image */
  uint8_t hash[32];      /* SHA-256 of the image with these 32 bytes zero */
  uint32_t name;         /* string: the program's name */
  uint32_t engines;      /* number of engines that instructions may name, at least 1 */
  cdl_section_t strings, spaces, buffers, halos, layouts, views, exprs, steps, attrs, instrs, waits, loops, groups,
      constants, provenance;
} cdl_image_t;

/* A string is a byte offset into the strings section; text there ends with NUL; 0 is "". */

/* A memory space that the device declares. Index 1 is the default space, where inputs, outputs and constants lie. */
typedef struct {
  uint32_t name;           /* string */
  uint32_t flags;          /* CDL_SPACE_* */
  uint64_t capacity_bytes; /* 0: unlimited */
  uint32_t alignment;      /* bytes, a power of two, of every buffer in it */
  uint32_t banks;          /* 0 or 1: not banked */
} cdl_space_t;

enum {
  CDL_SPACE_HOST_MAPPED = 1, /* buffers can be mapped into the host's address space */
  CDL_SPACE_LOCAL = 2        /* a scratchpad: filled by explicit copies only */
};

enum {
  CDL_ROLE_TEMP = 0,    /* lies in the arena of its space at `offset`; contents undefined at the start */
  CDL_ROLE_INPUT = 1,   /* bound per execution, read only */
  CDL_ROLE_OUTPUT = 2,  /* bound per execution, undefined at the start */
  CDL_ROLE_INOUT = 3,   /* bound per execution, read and written */
  CDL_ROLE_STATE = 4,   /* persists across executions, bound like INOUT, zero before the first one */
  CDL_ROLE_CONSTANT = 5 /* read only, content is constants[constant] */
};

#define CDL_UNPLACED UINT64_MAX /* a buffer's offset before memory was planned */

typedef struct {
  uint32_t name;      /* string */
  uint32_t space;     /* index, not 0 */
  uint64_t bytes;     /* with halo */
  uint64_t offset;    /* TEMP: bytes from the start of the arena of its space, or CDL_UNPLACED; others: 0 */
  uint32_t alignment; /* bytes, a power of two, at least the size of every element that lies in it */
  uint8_t role;       /* CDL_ROLE_* */
  uint8_t pad[3];     /* 0 */
  uint32_t constant;  /* index, not 0 exactly when role is CONSTANT */
  uint32_t halo;      /* index or 0 */
} cdl_buffer_t;

/* A border around the content of a buffer, in elements per dim, that holds `fill` whenever the content is read. */
typedef struct {
  uint8_t rank, elem, pad[6];
  uint32_t lo[CDL_MAX_RANK], hi[CDL_MAX_RANK];
  uint64_t fill; /* bits of one element, zero-extended */
} cdl_halo_t;

/* A physical layout: ordered (logical dim, factor), outer to inner. factor 0 is "what the inner factors of this dim
 * leave over". Layout 0 is row-major over the logical dims. */
typedef struct {
  uint8_t count;        /* 1..8 */
  uint8_t logical_rank; /* 1..8 */
  uint8_t pad_content;  /* 0: undefined; 1: pad holds 0; 2: pad holds the zero point */
  uint8_t opaque;       /* 1: only for constants, packed by the backend's pack_constant */
  uint32_t name;        /* string of an opaque layout, else 0 */
  uint8_t dim[CDL_MAX_RANK];
  uint32_t factor[CDL_MAX_RANK];
} cdl_layout_t;

/* Part of a buffer, in elements. The element at index i is at offset + sum(i[d] * strides[d]) + sum(iv_strides[l] *
 * loop variable l), l = 0 for the outer loop. On a blocked layout dims are the physical factors in layout order. */
typedef struct {
  uint32_t buffer;
  uint8_t elem, rank;
  uint16_t layout;
  int64_t offset;
  int64_t dims[CDL_MAX_RANK], strides[CDL_MAX_RANK];
  int64_t iv_strides[CDL_MAX_LOOP_NESTING];
} cdl_view_t;

/* One operand of an expression step. */
typedef struct {
  uint8_t source; /* CDL_FROM_* */
  uint8_t elem;   /* its element type */
  uint16_t index; /* STEP: an earlier step of this expr, from 0; VIEW: an input view of the instruction, from 0 */
} cdl_operand_t;

enum {
  CDL_FROM_NONE = 0,
  CDL_FROM_ACC = 1,   /* the result of the instruction that carries the expr as its epilogue */
  CDL_FROM_VIEW = 2,  /* broadcast to the result's dims as BINARY does */
  CDL_FROM_CONST = 3, /* the step's `imm`; at most one operand of a step */
  CDL_FROM_STEP = 4
};

/* A step applies one of UNARY, BINARY, COMPARE, SELECT, CONVERT or RESCALE-free arithmetic to its operands. */
typedef struct {
  uint16_t kind, fn;
  uint8_t elem;     /* of its value */
  uint8_t operands; /* 1..3 */
  uint16_t flags;   /* 1: CONVERT saturates */
  cdl_operand_t in[3];
  uint32_t reserved;
  uint64_t imm; /* bits of the CONST operand, zero-extended */
} cdl_step_t;

typedef struct {
  uint32_t first_step, steps; /* 1..32; the last one is the value */
} cdl_expr_t;

typedef struct {
  uint16_t id;   /* CDL_ATTR_* */
  uint8_t type;  /* 1 int, 2 float (bits of a double), 3 ints, 4 bits of an element, zero-extended */
  uint8_t count; /* 1..8 values */
  uint32_t pad;
  int64_t values[8];
} cdl_attr_t;

/* Completion of an instruction is its index. Views first_view .. + inputs are read, then `outputs` are written; with
 * CDL_INSTR_INOUT the outputs are read too. Inputs are the kind's operands, then the views that only the epilogue reads
 * (cdl_operand_count says where those begin). An optional operand is absent by ending the list before it. */
typedef struct {
  uint16_t kind, fn, engine, flags; /* flags: CDL_INSTR_* */
  uint32_t first_view;
  uint8_t inputs, outputs;
  uint16_t attrs;
  uint32_t first_attr;
  uint32_t expr; /* epilogue, or the expression of ELEMENTWISE */
  uint32_t first_wait, waits;
  uint32_t loop;  /* innermost loop or 0 */
  uint32_t group; /* or 0 */
  uint32_t provenance;
  uint32_t reserved;
} cdl_instr_t;

enum { CDL_INSTR_INOUT = 1 };

/* An earlier instruction of the same block that must have completed. */
typedef struct {
  uint32_t instr, reserved;
} cdl_wait_t;

/* Instructions first .. first + count - 1 run `trip` times; a full barrier stands at the back edge. */
typedef struct {
  uint32_t first, count;
  uint32_t parent; /* enclosing loop, with a smaller index, or 0 */
  uint32_t reserved;
  uint64_t trip; /* at least 1 */
} cdl_loop_t;

/* Stacking across kernels: these instructions may run band by band over `band_dim`. Legal as proved by the core;
 * a backend may ignore it. */
typedef struct {
  uint32_t first, count;
  uint32_t band_dim, bands;
} cdl_group_t;

/* Payloads lie outside of the image, found by hash. */
typedef struct {
  uint8_t hash[32]; /* SHA-256 of the payload; zero for a splat */
  uint64_t bytes;
  uint32_t name; /* string */
  uint8_t form;  /* 0: payload; 1: splat of `bits` */
  uint8_t elem;
  uint8_t pad[2];
  uint64_t bits;
} cdl_constant_t;

/* The ONNX nodes that an instruction came from, as a list. */
typedef struct {
  uint32_t node; /* string */
  uint32_t op;   /* string */
  uint32_t next; /* provenance with a greater index, or 0 */
  uint32_t reserved;
} cdl_provenance_t;

/* Records are part of stored files: their sizes never change. */
#ifdef __cplusplus
#define CDL_STATIC_ASSERT static_assert
#else
#define CDL_STATIC_ASSERT _Static_assert
#endif
#define CDL_SIZE(type, bytes) CDL_STATIC_ASSERT(sizeof(type) == (bytes), #type " must have " #bytes " bytes")
CDL_SIZE(cdl_header_t, 8);
CDL_SIZE(cdl_section_t, 16);
CDL_SIZE(cdl_image_t, 296);
CDL_SIZE(cdl_space_t, 24);
CDL_SIZE(cdl_buffer_t, 40);
CDL_SIZE(cdl_halo_t, 80);
CDL_SIZE(cdl_layout_t, 48);
CDL_SIZE(cdl_view_t, 160);
CDL_SIZE(cdl_operand_t, 4);
CDL_SIZE(cdl_step_t, 32);
CDL_SIZE(cdl_expr_t, 8);
CDL_SIZE(cdl_attr_t, 72);
CDL_SIZE(cdl_instr_t, 48);
CDL_SIZE(cdl_wait_t, 8);
CDL_SIZE(cdl_loop_t, 24);
CDL_SIZE(cdl_group_t, 16);
CDL_SIZE(cdl_constant_t, 56);
CDL_SIZE(cdl_provenance_t, 16);
#undef CDL_SIZE

/* Checks everything that the accessors below rely on: sizes, alignment, strides, every index, every string's end,
 * views inside their buffers for every loop iteration, known kinds, earlier waits, nesting. Reads no byte outside of
 * [data, data + size). Not the hash. Returns CDL_OK, CDL_INCOMPATIBLE (version, unknown kind: named), CDL_BAD_MODEL, or
 * CDL_INVALID_ARGUMENT when `data` is null or not 8-byte aligned. Defined in cdl_image.h. */
static inline cdl_code_t cdl_image_check(const void* data, uint64_t size, cdl_error_t* error);

/* X(record, section): the sections of records. The check goes in this order, so that it names the buffer or the
 * instruction that is wrong: the records after those are parts of them. */
#define CDL_SECTIONS(X)                                                                                                \
  X(space, spaces)                                                                                                     \
  X(constant, constants)                                                                                               \
  X(buffer, buffers)                                                                                                   \
  X(loop, loops)                                                                                                       \
  X(group, groups)                                                                                                     \
  X(provenance, provenance)                                                                                            \
  X(instr, instrs)                                                                                                     \
  X(halo, halos)                                                                                                       \
  X(layout, layouts)                                                                                                   \
  X(view, views)                                                                                                       \
  X(step, steps)                                                                                                       \
  X(expr, exprs)                                                                                                       \
  X(attr, attrs)                                                                                                       \
  X(wait, waits)

/* Accessors, valid on a checked image. */
#define CDL_ACCESSOR(type, section)                                                                                    \
  static inline const cdl_##type##_t* cdl_get_##type(const cdl_image_t* image, uint32_t index) {                       \
    return (const cdl_##type##_t*)((const char*)image + image->section.offset +                                        \
                                   (uint64_t)image->section.stride * index);                                           \
  }
CDL_SECTIONS(CDL_ACCESSOR)
#undef CDL_ACCESSOR

static inline const char* cdl_get_string(const cdl_image_t* image, uint32_t string) {
  return (const char*)image + image->strings.offset + string;
}

static inline const cdl_view_t* cdl_get_input(const cdl_image_t* image, const cdl_instr_t* instr, uint32_t i) {
  return cdl_get_view(image, instr->first_view + i);
}
static inline const cdl_view_t* cdl_get_output(const cdl_image_t* image, const cdl_instr_t* instr, uint32_t i) {
  return cdl_get_view(image, instr->first_view + instr->inputs + i);
}

/* The attribute with this id, or NULL. */
static inline const cdl_attr_t* cdl_find_attr(const cdl_image_t* image, const cdl_instr_t* instr, uint16_t id) {
  for (uint32_t i = 0; i < instr->attrs; ++i) {
    const cdl_attr_t* attr = cdl_get_attr(image, instr->first_attr + i);
    if (attr->id == id) return attr;
  }
  return NULL;
}

/* The instruction that runs after i, loops played; the image's count of instructions after the last one. `values` are
 * the loop variables, outer first: zero them and begin at instruction 1. For images that cdl_image_check passed. */
static inline uint32_t cdl_next_instr(const cdl_image_t* image, uint32_t i, int64_t values[CDL_MAX_LOOP_NESTING]) {
  for (uint32_t l = cdl_get_instr(image, i)->loop; l;) {
    const cdl_loop_t* loop = cdl_get_loop(image, l);
    int64_t* value = &values[loop->parent ? 1 : 0];
    if (i + 1 != loop->first + loop->count) break;
    if ((uint64_t)++ * value < loop->trip) return loop->first;
    *value = 0;
    l = loop->parent;
  }
  return i + 1;
}

/* ---- Capabilities: data, not code ------------------------------------------------------------------------------ */

enum { CDL_SUPPORT_NONE = 0, CDL_SUPPORT_EMULATED = 1, CDL_SUPPORT_NATIVE = 2 };

enum {
  CDL_ROW_EPILOGUE = 1,     /* takes an epilogue expr of the steps that `steps_mask` allows */
  CDL_ROW_DYNAMIC_LOOPS = 2 /* may stand inside of `for` */
};

/* One line of a capability table: kind, function, element types (operands then results; 0: any), the operand class,
 * and a conjunction of atoms. A later row for the same (kind, fn, elems) replaces none: any row that matches counts. */
typedef struct {
  uint16_t kind, fn;
  uint8_t elem_count, support; /* CDL_SUPPORT_* */
  uint8_t operand_class;       /* CDL_CLASS_* */
  uint8_t flags;               /* CDL_ROW_* */
  uint8_t elems[8];
  uint16_t layouts[8]; /* per operand: index into cdl_capabilities_t.layouts, 0 row-major */
  uint32_t first_atom, atoms;
  uint64_t steps_mask; /* bit k: steps of kind k may stand in its expr (CDL_KIND_UNARY ...) */
} cdl_row_t;

enum {
  CDL_ATOM_RANK = 1,
  CDL_ATOM_DIM = 2,
  CDL_ATOM_ATTR = 3,
  CDL_ATOM_IS_CONST = 4,
  CDL_ATOM_ELEMENTS = 5,
  CDL_ATOM_DIM_PRODUCT = 6
};
enum { CDL_REL_EQ = 1, CDL_REL_LE = 2, CDL_REL_GE = 3, CDL_REL_MOD = 4 /* x % a == b */, CDL_REL_IN = 5 };

typedef struct {
  uint8_t subject, relation; /* CDL_ATOM_*, CDL_REL_* */
  uint8_t operand;           /* which view, inputs then outputs */
  uint8_t dim;               /* DIM: which, negative from the end as uint8_t; ATTR: which value */
  uint16_t attr;             /* ATTR: CDL_ATTR_*; DIM_PRODUCT: a mask of dims */
  uint16_t set_count;        /* IN: number of values */
  int64_t a, b;
  int64_t set[6];
} cdl_atom_t;

typedef struct {
  cdl_header_t header;
  uint32_t profiles; /* mask of 1 << CDL_PROFILE_*; BASE and at least one more */
  uint32_t row_count, row_stride;
  const cdl_row_t* rows;
  uint32_t atom_count, atom_stride;
  const cdl_atom_t* atoms;
  uint32_t layout_count, layout_stride;
  const cdl_layout_t* layouts; /* [0] is unused */
  uint32_t space_count, space_stride;
  const cdl_space_t* spaces; /* [0] is the default space */
  const char* const* space_names;
  uint32_t engine_count;
  uint32_t flags; /* CDL_DEVICE_* */
} cdl_capabilities_t;

enum { CDL_DEVICE_FTZ_F32 = 1, CDL_DEVICE_FTZ_F16 = 2, CDL_DEVICE_DETERMINISTIC = 4 };

/* ---- The plugin ------------------------------------------------------------------------------------------------ */

typedef struct cdl_device cdl_device_t;
typedef struct cdl_queue cdl_queue_t;
typedef struct cdl_memory cdl_memory_t; /* a buffer of the device, owned by the host */
typedef struct cdl_executable cdl_executable_t;

/* What the host offers. All optional: a null slot means that the backend does without. */
typedef struct {
  cdl_header_t header;
  void* context;
  void (*log)(void* context, int level, const char* text); /* 0 debug, 1 information, 2 warning; any thread */
  /* Runs body(arg, 0) .. body(arg, count - 1) on the caller's threads and returns when all are done. Null: run in line.
   */
  void (*parallel_for)(void* context, uint32_t count, void (*body)(void* arg, uint32_t index), void* arg);
  /* A persistent cache by key. get returns the bytes, valid until the next call on this thread, or null. */
  const void* (*cache_get)(void* context, const void* key, uint64_t key_size, uint64_t* size);
  void (*cache_put)(void* context, const void* key, uint64_t key_size, const void* data, uint64_t size);
} cdl_host_t;

typedef struct {
  const char* name;
  const char* value;
} cdl_option_t;

typedef struct {
  const char* name;
  const char* summary;
  const char* values;        /* "a|b|c", "int", "float", "string" */
  const char* default_value; /* may be null */
} cdl_option_schema_t;

/* A part of a device buffer that stands for one buffer of the Program. */
typedef struct {
  cdl_memory_t* memory;
  uint64_t offset; /* bytes, aligned as the buffer asks */
  uint64_t bytes;
} cdl_binding_t;

/* Bindings of one execution, indexed like the image's buffers ([0] unused). */
typedef struct {
  cdl_header_t header;
  uint32_t count;
  uint32_t reserved;
  const cdl_binding_t* buffers;
} cdl_bindings_t;

typedef struct {
  cdl_queue_t* queue;
  uint64_t value; /* the timeline has reached it when all work submitted with this signal value is done */
} cdl_timeline_t;

typedef struct {
  cdl_header_t header;
  uint32_t instr;  /* the refused instruction, 0 when it is the whole program */
  uint32_t reason; /* CDL_REASON_* */
} cdl_refusal_t;

/* Where a blob goes. Returns 0 when it could not be written. */
typedef struct {
  void* context;
  int (*write)(void* context, const void* data, uint64_t size);
} cdl_writer_t;

typedef struct {
  uint32_t instr; /* 0: not tied to one */
  uint32_t engine;
  uint64_t start_ns, end_ns;
} cdl_profile_record_t;

/* A candidate for the tiler and what it would cost. */
typedef struct {
  const cdl_image_t* image;
  uint32_t instr, reserved;
} cdl_cost_query_t;
typedef struct {
  uint64_t busy_cycles[8]; /* per engine */
  uint64_t latency_cycles;
  uint64_t bytes[4]; /* per space */
} cdl_cost_t;

/* The table. "required" slots must not be null. Door 1: run. Door 2: compile, executable_destroy, execute. At least one
 * door is required; a plugin with both is called through door 2. */
typedef struct {
  cdl_header_t header;
  uint16_t min_host_major, min_host_minor; /* the oldest host ABI that this plugin works with; the query holds it */
  uint32_t device_count;
  const char* name;        /* required: lower case, [a-z0-9_]+, static */
  const char* version;     /* required: of the backend */
  const char* description; /* may be null */
  const cdl_option_schema_t* options;
  uint32_t option_count, reserved;

  /* Device. Required. Options were checked against the schema. Threads: any; one device is used by many threads. */
  cdl_code_t (*device_open)(const cdl_host_t* host, uint32_t index, const cdl_option_t* options, uint32_t option_count,
                            cdl_device_t** device, cdl_error_t* error);
  void (*device_close)(cdl_device_t* device);                             /* required; after all of its objects */
  const cdl_capabilities_t* (*device_capabilities)(cdl_device_t* device); /* required; lives as long as the device */
  const char* (*device_name)(cdl_device_t* device);                       /* (optional, default: name) */

  /* Memory. Required but for map. The host owns every buffer. `space` is an index into the capabilities' spaces: space
   * i there is space i + 1 of an image. Threads: any. */
  cdl_code_t (*memory_create)(cdl_device_t* device, uint32_t space, uint64_t bytes, uint64_t alignment,
                              cdl_memory_t** memory, cdl_error_t* error);
  void (*memory_destroy)(cdl_device_t* device, cdl_memory_t* memory);
  /* (optional, default: not mappable, the host copies through the queue.) Pointer stays valid until unmap. */
  cdl_code_t (*memory_map)(cdl_device_t* device, cdl_memory_t* memory, uint64_t offset, uint64_t bytes, void** pointer,
                           cdl_error_t* error);
  cdl_code_t (*memory_unmap)(cdl_device_t* device, cdl_memory_t* memory, void* pointer, cdl_error_t* error);

  /* Queue: in order. Required. Threads: one at a time per queue. */
  cdl_code_t (*queue_create)(cdl_device_t* device, cdl_queue_t** queue, cdl_error_t* error);
  void (*queue_destroy)(cdl_device_t* device, cdl_queue_t* queue);
  cdl_code_t (*queue_write)(cdl_queue_t* queue, cdl_memory_t* to, uint64_t offset, const void* from, uint64_t bytes,
                            cdl_error_t* error); /* `from` may be reused when it returns */
  cdl_code_t (*queue_read)(cdl_queue_t* queue, cdl_memory_t* from, uint64_t offset, void* to, uint64_t bytes,
                           cdl_error_t* error); /* blocks until `to` is filled */
  cdl_code_t (*queue_copy)(cdl_queue_t* queue, cdl_memory_t* to, uint64_t to_offset, cdl_memory_t* from,
                           uint64_t from_offset, uint64_t bytes, cdl_error_t* error);
  cdl_code_t (*queue_signal)(cdl_queue_t* queue, uint64_t value,
                             cdl_error_t* error); /* after all earlier work; rising */
  /* Blocks until the timeline reached value. timeout_ns UINT64_MAX: no limit. CDL_TIMEOUT when it passed. Any thread.
   */
  cdl_code_t (*queue_wait)(cdl_queue_t* queue, uint64_t value, uint64_t timeout_ns, cdl_error_t* error);

  /* Door 1. Runs instructions first .. first + count - 1 in order; all are NATIVE by the rows, of one block, outside or
   * inside of loops; loop_values are the values of the enclosing loop variables, outer first. The image was checked. */
  cdl_code_t (*run)(cdl_queue_t* queue, const cdl_image_t* image, uint32_t first, uint32_t count,
                    const int64_t loop_values[CDL_MAX_LOOP_NESTING], const cdl_bindings_t* bindings,
                    cdl_error_t* error);

  /* Door 2. May refuse with CDL_REFUSED and *refusal. The image stays valid until executable_destroy; `constants[i]`
   * is the payload of image constant i ([0] unused) and is valid only during the call. Threads: any. */
  cdl_code_t (*compile)(cdl_device_t* device, const cdl_image_t* image, const void* const* constants,
                        cdl_executable_t** executable, cdl_refusal_t* refusal, cdl_error_t* error);
  void (*executable_destroy)(cdl_device_t* device, cdl_executable_t* executable);
  /* Submits one execution; several executions of one executable may be in flight with different bindings. Bindings hold
   * every buffer; TEMP ones lie where the plan put them. Waits for `wait[]`, then signals `signal` (queue null: none).
   */
  cdl_code_t (*execute)(cdl_queue_t* queue, cdl_executable_t* executable, const cdl_bindings_t* bindings,
                        const cdl_timeline_t* wait, uint32_t wait_count, cdl_timeline_t signal, cdl_error_t* error);
  /* (optional, default 0 bytes) scratch in the default space that each execution gets as the last binding. */
  uint64_t (*executable_scratch)(cdl_executable_t* executable);
  /* (optional, default: as the rows say) CDL_SUPPORT_* per instruction, [0] unused. */
  cdl_code_t (*executable_support)(cdl_executable_t* executable, uint8_t* support, uint32_t count, cdl_error_t* error);
  /* (optional, both or none) With them executables hold their constants: CONSTANT buffers get no memory (doors.hpp). */
  cdl_code_t (*executable_save)(cdl_executable_t* executable, const cdl_writer_t* writer, cdl_error_t* error);
  cdl_code_t (*executable_load)(cdl_device_t* device, const cdl_image_t* image, const void* blob, uint64_t size,
                                cdl_executable_t** executable, cdl_error_t* error);

  /* Optional services. */
  cdl_code_t (*pack_constant)(cdl_device_t* device, const char* layout, const void* data, const cdl_view_t* view,
                              const cdl_writer_t* writer, cdl_error_t* error); /* (required with OPAQUE layouts) */
  cdl_code_t (*cost_batch)(cdl_device_t* device, const cdl_cost_query_t* queries, uint32_t count, cdl_cost_t* costs,
                           cdl_error_t* error); /* (default: a roofline from the declared numbers) pure */
  cdl_code_t (*emit)(cdl_device_t* device, cdl_executable_t* executable, const cdl_writer_t* writer,
                     cdl_error_t* error);                              /* (default: no AOT) object code */
  cdl_code_t (*profile_begin)(cdl_queue_t* queue, cdl_error_t* error); /* (default: no profile) until profile_end: */
  cdl_code_t (*profile_end)(cdl_queue_t* queue, cdl_profile_record_t* records, uint32_t capacity, uint32_t* count,
                            cdl_error_t* error); /* a record per executed instruction; *count may exceed capacity */
  cdl_code_t (*cancel)(cdl_queue_t* queue, cdl_error_t* error); /* (default: not cancellable) any thread */
} cdl_plugin_t;

/* The one symbol of a plugin. `host` says which ABI the host has; `out->header.struct_size` how much of the table it
 * knows. The plugin answers CDL_INCOMPATIBLE, naming both numbers, before it writes anything when it needs a newer one.
 * May be called more than once, from any thread. */
typedef cdl_code_t (*cdl_backend_query_fn)(const cdl_host_t* host, cdl_plugin_t* out, cdl_error_t* error);
#define CDL_BACKEND_QUERY_SYMBOL "cdl_backend_query"

#ifdef __cplusplus
} /* extern "C" */
#endif

#include "candela/cdl_image.h"

#endif
