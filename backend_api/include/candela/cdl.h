/* The backend interface of Candela: everything that crosses between the core and a backend.
 *
 * C11, no dependency but <stdint.h>, <stddef.h> and <string.h>. Two halves:
 *
 *   1. The Program image: one flat, position-independent, little-endian, read-only block of bytes.
 *      The same bytes are validated, hashed, stored, sent to a compiler in another process,
 *      inspected and printed. Records refer to each other by index, never by pointer; record 0 of
 *      every section is the null record, so that 0 means "none".
 *   2. The plugin table: one exported symbol, cdl_backend_query, fills a cdl_plugin_t after
 *      versions were compared.
 *
 * Versions: tables and argument structs begin with cdl_header_t. Tables only grow at the end. The
 * caller sets struct_size to what it knows; the callee touches no byte beyond it and reads missing
 * slots as null.
 * Errors: a cdl_code_t, a vendor code and a message in a buffer that the caller owns (NULL is
 * allowed). Nothing aborts, nothing throws across. Threads: every slot says which calls may run at
 * the same time.
 *
 * Slots and offsets are frozen in backend_api/abi/; the ABI is 0.x: a minor number may still change
 * it. */
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
#define CDL_ABI_MINOR 4
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

/* ---- Headers and errors ---------------------------------------------------------------------- */

/* At the start of tables and argument structs. */
typedef struct {
  uint16_t struct_size;  /* bytes that the one who fills the struct knows */
  uint16_t major, minor; /* the ABI that it was built against */
  uint16_t flags;        /* 0 */
} cdl_header_t;

#define CDL_HEADER(type) {(uint16_t)sizeof(type), CDL_ABI_MAJOR, CDL_ABI_MINOR, 0}

/* True when a struct that came from the other side is long enough to hold `field`. */
#define CDL_HAS(ptr, field)                                                                        \
  ((ptr)->header.struct_size >= offsetof(__typeof__(*(ptr)), field) + sizeof((ptr)->field))

/* Where a slot says what went wrong, in words: lower case, no full stop, the two numbers that
 * disagree. Any thread may pass its own; the pointer to it may be null. After CDL_OK it holds
 * nothing that counts. */
typedef struct {
  char* text; /* the caller's; NUL-terminated by the callee, truncated to capacity; may be null */
  uint32_t capacity;   /* bytes at text; 0: nothing is written there */
  int32_t vendor_code; /* the backend's own number, 0 when it has none */
} cdl_error_t;

/* ---- The Program image ----------------------------------------------------------------------- */

typedef struct {
  uint64_t offset; /* bytes from the start of the image, a multiple of 8 */
  /* bytes per record as the writer knew it, at least sizeof the record (strings: 1) */
  uint32_t stride;
  uint32_t count; /* records with the null record (strings: bytes with the first NUL) */
} cdl_section_t;

typedef struct {
  char magic[4];         /* "CDLP" */
  uint16_t major, minor; /* CDL_IMAGE_MAJOR, CDL_IMAGE_MINOR */
  uint64_t size;         /* bytes of the whole image */
  uint8_t hash[32];      /* SHA-256 of the image with these 32 bytes zero */
  uint32_t name;         /* string: the program's name */
  uint32_t engines;      /* number of engines that instructions may name, at least 1 */
  cdl_section_t strings, spaces, buffers, halos, layouts, views, exprs, steps, attrs, instrs, waits,
      loops, groups, constants, provenance;
} cdl_image_t;

/* A string is a byte offset into the strings section; text there ends with NUL; 0 is "". */

/* A memory space that the device declares. Index 1 is the default space, where inputs, outputs and
 * constants lie. */
typedef struct {
  uint32_t name;           /* string */
  uint32_t flags;          /* CDL_SPACE_* */
  uint64_t capacity_bytes; /* 0: unlimited */
  uint32_t alignment;      /* bytes, a power of two, of every buffer in it */
  uint32_t banks;          /* 0 or 1: not banked */
} cdl_space_t;

enum {
  CDL_SPACE_HOST_MAPPED = 1, /* buffers can be mapped into the host's address space */
  CDL_SPACE_LOCAL = 2,       /* a scratchpad: filled by explicit copies only */
  /* With LOCAL, in capability tables alone: holds the 32-bit and wider sums of MATMUL and CONV2D,
   * which then lie nowhere else. */
  CDL_SPACE_SUMS = 4,
  /* Not LOCAL, not the default space: constants lie here, and nothing else. At most one; without it
   * they lie in the default space. Since ABI 0.3 */
  CDL_SPACE_CONSTANTS = 8
};

enum {
  /* lies in the arena of its space at `offset`; contents undefined at the start */
  CDL_ROLE_TEMP = 0,
  CDL_ROLE_INPUT = 1,  /* bound per execution, read only */
  CDL_ROLE_OUTPUT = 2, /* bound per execution, undefined at the start */
  CDL_ROLE_INOUT = 3,  /* bound per execution, read and written */
  CDL_ROLE_STATE = 4,  /* persists across executions, bound like INOUT, zero before the first one */
  CDL_ROLE_CONSTANT = 5 /* read only, content is constants[constant] */
};

#define CDL_UNPLACED UINT64_MAX /* a buffer's offset before memory was planned */

typedef struct {
  uint32_t name;  /* string */
  uint32_t space; /* index, not 0 */
  uint64_t bytes; /* with halo */
  /* TEMP: bytes from the start of the arena of its space, or CDL_UNPLACED; others: 0 */
  uint64_t offset;
  /* bytes, a power of two, at least the size of every element that lies in it */
  uint32_t alignment;
  uint8_t role;      /* CDL_ROLE_* */
  uint8_t pad[3];    /* 0 */
  uint32_t constant; /* index, not 0 exactly when role is CONSTANT */
  uint32_t halo;     /* index or 0 */
} cdl_buffer_t;

/* A border around the content of a buffer, in elements per dim, that holds `fill` whenever the
 * content is read. */
typedef struct {
  uint8_t rank, elem, pad[6];
  uint32_t lo[CDL_MAX_RANK], hi[CDL_MAX_RANK];
  uint64_t fill; /* bits of one element, zero-extended */
} cdl_halo_t;

/* A physical layout: ordered (logical dim, factor), outer to inner. factor 0 is "what the inner
 * factors of this dim leave over". Layout 0 is row-major over the logical dims. */
typedef struct {
  uint8_t count;        /* 1..8 */
  uint8_t logical_rank; /* 1..8 */
  uint8_t pad_content;  /* 0: undefined; 1: pad holds 0; 2: pad holds the zero point */
  uint8_t opaque;       /* 1: only for constants, packed by the backend's pack_constant */
  uint32_t name;        /* string of an opaque layout, else 0; not used in capability tables */
  uint8_t dim[CDL_MAX_RANK];
  uint32_t factor[CDL_MAX_RANK];
} cdl_layout_t;

/* Part of a buffer, in elements. The element at index i is at offset + sum(i[d] * strides[d]) +
 * sum(iv_strides[l] * loop variable l), l = 0 for the outer loop. On a blocked layout dims are the
 * physical factors in layout order. */
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
  uint16_t index; /* STEP: an earlier step of this expr, from 0; VIEW: an input view of the
                     instruction, from 0 */
} cdl_operand_t;

enum {
  CDL_FROM_NONE = 0,
  CDL_FROM_ACC = 1, /* the result of the instruction that carries the expr as its epilogue */
  /* broadcast to the result's dims as BINARY does; in a prologue, to the operand's */
  CDL_FROM_VIEW = 2,
  CDL_FROM_CONST = 3, /* the step's `imm`; at most one operand of a step */
  CDL_FROM_STEP = 4
};

/* A step applies one of UNARY, BINARY, COMPARE, SELECT, CONVERT or RESCALE to its operands. RESCALE
 * stands with one operand a, its multiplier, shift and zero, none of them CONST, without a left
 * shift. */
typedef struct {
  uint16_t kind, fn;
  uint8_t elem;     /* of its value */
  uint8_t operands; /* 1..4 */
  uint16_t flags;   /* 1: CONVERT saturates */
  cdl_operand_t in[4];
  uint64_t imm; /* bits of the CONST operand, zero-extended; RESCALE: i32 clamp_min below, i32
                   clamp_max above */
} cdl_step_t;

typedef struct {
  uint32_t first_step, steps; /* 1..32; the last one is the value */
} cdl_expr_t;

typedef struct {
  uint16_t id;  /* CDL_ATTR_* */
  uint8_t type; /* 1 int, 2 float (bits of a double), 3 ints, 4 bits of an element, zero-extended */
  uint8_t count; /* 1..8 values */
  uint32_t pad;
  int64_t values[8];
} cdl_attr_t;

/* Completion of an instruction is its index. Views first_view .. + inputs are read, then `outputs`
 * are written; with CDL_INSTR_INOUT the outputs are read too. Inputs are the kind's operands, then
 * the views that only the epilogue reads (cdl_operand_count says where those begin). An optional
 * operand is absent by ending the list before it. Of REDUCE the first `prologue` steps of the expr
 * may compute the operand x, element by element: then the operands are the views that these read,
 * all of the dims of x, the type of x is that of the last of them, and the steps behind them are
 * the epilogue. Neither part reads steps of the other. */
typedef struct {
  uint16_t kind, fn, engine, flags; /* flags: CDL_INSTR_* */
  uint32_t first_view;
  uint8_t inputs, outputs;
  uint16_t attrs;
  uint32_t first_attr;
  /* epilogue, behind a prologue where there is one, or the expression of ELEMENTWISE */
  uint32_t expr;
  uint32_t first_wait, waits;
  uint32_t loop;  /* innermost loop or 0 */
  uint32_t group; /* or 0 */
  uint32_t provenance;
  uint32_t prologue; /* 0 .. the steps of expr; above 0 of REDUCE alone */
} cdl_instr_t;

enum { CDL_INSTR_INOUT = 1 };

/* An earlier instruction of the same block that must have completed. */
typedef struct {
  uint32_t instr, reserved;
} cdl_wait_t;

/* Instructions first .. first + count - 1 run `trip` times; a full barrier stands at the back
 * edge. */
typedef struct {
  uint32_t first, count;
  uint32_t parent; /* enclosing loop, with a smaller index, or 0 */
  uint32_t reserved;
  uint64_t trip; /* at least 1 */
} cdl_loop_t;

/* Stacking across kernels: these instructions may run band by band over `band_dim`. Legal as proved
 * by the core; a backend may ignore it. */
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
#define CDL_SIZE(type, bytes)                                                                      \
  CDL_STATIC_ASSERT(sizeof(type) == (bytes), #type " must have " #bytes " bytes")
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

/* Checks everything that the accessors below rely on: sizes, alignment, strides, every index, every
 * string's end, views inside their buffers for every loop iteration, known kinds, earlier waits,
 * nesting. Reads no byte outside of [data, data + size). Not the hash. Returns CDL_OK,
 * CDL_INCOMPATIBLE (version, unknown kind: named), CDL_BAD_MODEL, or CDL_INVALID_ARGUMENT when
 * `data` is null or not 8-byte aligned. Defined in cdl_image.h. */
static inline cdl_code_t cdl_image_check(const void* data, uint64_t size, cdl_error_t* error);

/* X(record, section): the sections of records. The check goes in this order, so that it names the
 * buffer or the instruction that is wrong: the records after those are parts of them. */
#define CDL_SECTIONS(X)                                                                            \
  X(space, spaces)                                                                                 \
  X(constant, constants)                                                                           \
  X(buffer, buffers)                                                                               \
  X(loop, loops)                                                                                   \
  X(group, groups)                                                                                 \
  X(provenance, provenance)                                                                        \
  X(instr, instrs)                                                                                 \
  X(halo, halos)                                                                                   \
  X(layout, layouts)                                                                               \
  X(view, views)                                                                                   \
  X(step, steps)                                                                                   \
  X(expr, exprs)                                                                                   \
  X(attr, attrs)                                                                                   \
  X(wait, waits)

/* Accessors, valid on a checked image. */
#define CDL_ACCESSOR(type, section)                                                                \
  static inline const cdl_##type##_t* cdl_get_##type(const cdl_image_t* image, uint32_t index) {   \
    return (const cdl_##type##_t*)((const char*)image + image->section.offset +                    \
                                   (uint64_t)image->section.stride * index);                       \
  }
CDL_SECTIONS(CDL_ACCESSOR)
#undef CDL_ACCESSOR

static inline const char* cdl_get_string(const cdl_image_t* image, uint32_t string) {
  return (const char*)image + image->strings.offset + string;
}

static inline const cdl_view_t* cdl_get_input(const cdl_image_t* image, const cdl_instr_t* instr,
                                              uint32_t i) {
  return cdl_get_view(image, instr->first_view + i);
}
static inline const cdl_view_t* cdl_get_output(const cdl_image_t* image, const cdl_instr_t* instr,
                                               uint32_t i) {
  return cdl_get_view(image, instr->first_view + instr->inputs + i);
}

/* The attribute with this id, or NULL. */
static inline const cdl_attr_t* cdl_find_attr(const cdl_image_t* image, const cdl_instr_t* instr,
                                              uint16_t id) {
  for (uint32_t i = 0; i < instr->attrs; ++i) {
    const cdl_attr_t* attr = cdl_get_attr(image, instr->first_attr + i);
    if (attr->id == id) return attr;
  }
  return NULL;
}

/* The instruction that runs after i, loops played; the image's count of instructions after the last
 * one. `values` are the loop variables, outer first: zero them and begin at instruction 1. For
 * images that cdl_image_check passed. */
static inline uint32_t cdl_next_instr(const cdl_image_t* image, uint32_t i,
                                      int64_t values[CDL_MAX_LOOP_NESTING]) {
  for (uint32_t l = cdl_get_instr(image, i)->loop; l;) {
    const cdl_loop_t* loop = cdl_get_loop(image, l);
    int64_t* value = &values[loop->parent ? 1 : 0];
    if (i + 1 != loop->first + loop->count) break;
    if ((uint64_t)++*value < loop->trip) return loop->first;
    *value = 0;
    l = loop->parent;
  }
  return i + 1;
}

/* ---- Capabilities: data, not code ------------------------------------------------------------ */

enum { CDL_SUPPORT_NONE = 0, CDL_SUPPORT_EMULATED = 1, CDL_SUPPORT_NATIVE = 2 };

enum {
  CDL_ROW_EPILOGUE = 1,      /* takes an epilogue expr of the steps that `steps_mask` allows */
  CDL_ROW_DYNAMIC_LOOPS = 2, /* may stand inside of `for` */
  /* REDUCE: takes a prologue of the same steps, over views of any strides; types, classes, layouts
   * and atoms are then about the operand that it computes, dense and row-major */
  CDL_ROW_PROLOGUE = 4,
  /* MATMUL: `b` may lie by columns too: with its last two dims exchanged it is of the class */
  CDL_ROW_BY_COLUMNS = 8
};

/* One line of a capability table: kind, function, element types (operands then results; 0: any),
 * the operand class, and a conjunction of atoms. A later row for the same (kind, fn, elems)
 * replaces none: any row that matches counts. */
typedef struct {
  uint16_t kind, fn;
  uint8_t elem_count, support; /* 0 types: those that the profiles compute with, and those of other
                                  rows than SCALED_MATMUL's; CDL_SUPPORT_* */
  uint8_t operand_class;       /* CDL_CLASS_* */
  uint8_t flags;               /* CDL_ROW_* */
  uint8_t elems[8]; /* 0: any; of a result with CDL_ROW_EPILOGUE: any that an expr gives, and only
                       then */
  uint16_t layouts[8]; /* per operand: index into cdl_capabilities_t.layouts, 0 row-major */
  uint32_t first_atom, atoms;
  uint64_t steps_mask; /* bit k: steps of kind k may stand in its expr (CDL_KIND_UNARY ...) */
} cdl_row_t;

enum {
  CDL_ATOM_RANK = 1,
  CDL_ATOM_DIM = 2,
  CDL_ATOM_ATTR = 3,
  /* a constant, or a local buffer that only copies of constants are written to */
  CDL_ATOM_IS_CONST = 4,
  CDL_ATOM_ELEMENTS = 5,
  CDL_ATOM_DIM_PRODUCT = 6
};
enum {
  CDL_REL_EQ = 1,
  CDL_REL_LE = 2,
  CDL_REL_GE = 3,
  CDL_REL_MOD = 4 /* x % a == b */,
  CDL_REL_IN = 5
};

typedef struct {
  uint8_t subject, relation; /* CDL_ATOM_*, CDL_REL_* */
  uint8_t operand;           /* which view, inputs then outputs */
  uint8_t dim;               /* DIM: which, negative from the end as uint8_t; ATTR: which value */
  uint16_t attr;             /* ATTR: CDL_ATTR_*; DIM_PRODUCT: a mask of dims */
  uint16_t set_count;        /* IN: number of values */
  int64_t a, b;
  int64_t set[6];
} cdl_atom_t;

/* By what the core chooses tiles for LOCAL spaces. Costs rank and never decide what is legal; 0
 * stands for the default in brackets, also where the whole struct is missing. */
typedef struct {
  cdl_header_t header;
  uint16_t compute_engine; /* below engine_count: of everything but the two below (0) */
  uint16_t load_engine;    /* copies to LOCAL spaces (1 of three engines or more, else 0) */
  /* copies from LOCAL to other spaces (2 of three engines or more, else 0) */
  uint16_t store_engine;
  uint16_t reserved;      /* 0 */
  uint32_t rows, columns; /* of the array: products of MATMUL and CONV2D in a cycle, summed along
                             rows (16 and 16) */
  uint32_t lanes;         /* elements of every other instruction in a cycle (16) */
  uint32_t bytes_per_kilocycle; /* that copies move in 1,000 cycles (16,000) */
  uint32_t copy_cycles;         /* of a copy before its first byte (64) */
  uint32_t instr_cycles;        /* of any other instruction before its first element (32) */
} cdl_tiling_t;

/* What a device can do. Strides are the bytes per record as the plugin knew it, at least those of
 * the oldest ABI: a longer record's end is not read. Counts may be 0, their arrays null then. A
 * kind, profile or flag that the host does not know makes it refuse the table: leave out what is
 * newer than the host's version. The struct and what it points to live as long as the device is
 * open, and never change. */
typedef struct {
  cdl_header_t header;
  uint32_t profiles; /* mask of 1 << CDL_PROFILE_*; BASE and at least one more; FP8, INT4W and MX
                        beside FP32, FP16 or BF16 */
  uint32_t row_count, row_stride;
  const cdl_row_t* rows;
  uint32_t atom_count, atom_stride;
  const cdl_atom_t* atoms;
  uint32_t layout_count, layout_stride;
  const cdl_layout_t* layouts; /* [0] is unused */
  uint32_t space_count, space_stride;
  const cdl_space_t* spaces; /* [0] is the default space, LOCAL ones from the outermost in, the one
                              * for SUMS last; their `name` is not used */
  const char* const* space_names; /* of each space, not empty */
  uint32_t engine_count;          /* at least 1 */
  uint32_t flags;                 /* CDL_DEVICE_* */
  const cdl_tiling_t* tiling;     /* may be null; without LOCAL spaces it is not looked at */
  /* of each layout: of an opaque one not empty, by which pack_constant knows it, of others not
   * looked at; may be null without opaque layouts. Since ABI 0.3: rows with opaque layouts of an
   * older table are never taken */
  const char* const* layout_names;
} cdl_capabilities_t;

enum {
  CDL_DEVICE_FTZ_F32 = 1, /* f32 denormals are flushed to zero */
  CDL_DEVICE_FTZ_F16 = 2, /* f16 and bf16 ones are */
  /* the same Program on the same bytes gives the same bytes, however many threads */
  CDL_DEVICE_DETERMINISTIC = 4
};

#include "candela/cdl_custom.h"

/* ---- The plugin ------------------------------------------------------------------------------ */

/* The rules of every slot. Its comment says the rest, in five lines that begin with the same words:
 *
 *   Presence    "required", "primitive API", "program API", or "optional" with what the host does
 *               where the slot is null.
 *   Ownership   who frees what. Other pointers are the caller's and valid during the call alone:
 *               copy what is kept.
 *   Threads     "any": several at once, on the same object too. "one per queue": the host makes one
 *               such call at a time on each queue, on different queues at once. "last": nobody else
 *               uses the object, then or later.
 *   Errors      the codes. "common" is CDL_OUT_OF_MEMORY, CDL_DEVICE_LOST, CDL_INTERNAL and, on a
 *               queue, CDL_CANCELLED. A code that this header does not have counts as CDL_INTERNAL.
 *   Lifetime    how long what it made lives, and what the host does before it goes.
 *
 * Out parameters are left as they were unless the slot returns CDL_OK. Handles come from the same
 * device and are alive; others, and null ones, are the caller's bug. Where a comment says
 * "unpredictable", anything may happen but a write outside of what was given, a crash or a hang.
 *
 * Work may run behind a call (run, execute, queue_write, queue_copy). If it fails there, the next
 * call on its queue that returns a code says so, at the latest queue_wait for a value that was
 * signalled after it: a wait never outlasts failed work. After an error other than
 * CDL_INVALID_ARGUMENT, CDL_UNSUPPORTED and CDL_TIMEOUT a queue is only destroyed.
 *
 * A device that is gone, or that its driver had to reset, is CDL_DEVICE_LOST: from then on every
 * call on it that returns a code returns that at once, waits included. The slots that destroy still
 * free what they are given.
 *
 * Order of destruction: queues before the memory, executables and images that their work uses; all
 * of them before the device. Executions that were waited for are done: then the order is free.
 *
 * A plugin never exits, never leaves the floating-point environment, the locale or signal handlers
 * changed, and prints through the host's log alone. */

typedef struct cdl_device cdl_device_t;
typedef struct cdl_queue cdl_queue_t;
typedef struct cdl_memory cdl_memory_t; /* a buffer of the device, owned by the host */
typedef struct cdl_executable cdl_executable_t;

/* What the host offers. The struct may be gone after the call that it was given to: copy it. Its
 * functions and its context live until the last device that was opened with it is closed. */
typedef struct {
  cdl_header_t header;
  void* context; /* the first argument of every service */

  /* Writes a line for people. level: 0 debug, 1 information, 2 warning.
   * Presence: optional, nothing is written
   * Ownership: `text` is the plugin's
   * Threads: any
   * Errors: none
   * Lifetime: until the last device is closed */
  void (*log)(void* context, int level, const char* text);

  /* Runs body(arg, 0) .. body(arg, count - 1) once each, on the calling thread and on others that
   * are free, and returns when all are done. A body waits for no other, nor does it throw or fork.
   * Presence: optional, the plugin calls them one by one
   * Ownership: `arg` is the plugin's
   * Threads: any, several at the same time, and a body: one pool of the process serves all calls
   * Errors: none
   * Lifetime: until the last device is closed */
  void (*parallel_for)(void* context, uint32_t count, void (*body)(void* arg, uint32_t index),
                       void* arg);

  /* Bytes that cache_put once took for this key, perhaps in an earlier process; null when there are
   * none. Keys name the plugin and its version.
   * Presence: optional, nothing is cached
   * Ownership: the bytes are the host's
   * Threads: any
   * Errors: none
   * Lifetime: the bytes until the next cache call on this thread */
  const void* (*cache_get)(void* context, const void* key, uint64_t key_size, uint64_t* size);

  /* Keeps a copy of the bytes, or does not.
   * Presence: optional, nothing is cached
   * Ownership: all pointers are the plugin's
   * Threads: any
   * Errors: none
   * Lifetime: the copy as long as the host likes */
  void (*cache_put)(void* context, const void* key, uint64_t key_size, const void* data,
                    uint64_t size);
} cdl_host_t;

/* Elements of arrays that come without a stride never grow: cdl_option_t, cdl_option_schema_t,
 * cdl_binding_t, cdl_timeline_t, cdl_profile_record_t, cdl_cost_query_t, cdl_cost_t,
 * cdl_custom_value_t, cdl_custom_attr_t. What more is needed comes in a new slot. */

/* An option of device_open. Both texts are valid during that call. */
typedef struct {
  const char* name;  /* of the schema; no name stands twice */
  const char* value; /* fits the schema's `values` */
} cdl_option_t;

/* An option that a plugin has. All texts live as long as the plugin. */
typedef struct {
  const char* name;          /* not null */
  const char* summary;       /* one line for people; may be null */
  const char* values;        /* "a|b|c", "int", "float", "string"; null: "string" */
  const char* default_value; /* of an option that is not given; may be null */
} cdl_option_schema_t;

/* A part of a device buffer that stands for one buffer of the Program. */
typedef struct {
  cdl_memory_t* memory; /* in the space that the buffer names; null where nothing is bound */
  /* Bytes, a multiple of the buffer's alignment, as the memory's start is unless it was
   * imported. */
  uint64_t offset;
  uint64_t bytes; /* at least the buffer's, all inside of the memory */
} cdl_binding_t;

/* Bindings of one execution, indexed like the image's buffers ([0] unused). Both structs are valid
 * during the call, the memory until the work is done. Two bindings overlap only where the plan put
 * TEMP buffers on the same bytes, and where both are INPUT buffers. */
typedef struct {
  cdl_header_t header;
  uint32_t count; /* the image's buffers, and one more for scratch (executable_scratch) */
  uint32_t reserved;
  const cdl_binding_t* buffers;
} cdl_bindings_t;

/* A moment of a queue: all work is done that was submitted to it before this value was
 * signalled. */
typedef struct {
  cdl_queue_t* queue;
  uint64_t value; /* 0 was reached when the queue was made */
} cdl_timeline_t;

/* Filled by compile when it returns CDL_REFUSED, no further than its header says. */
typedef struct {
  cdl_header_t header;
  uint32_t instr;  /* the refused instruction, 0 when it is the whole program */
  uint32_t reason; /* CDL_REASON_* */
} cdl_refusal_t;

/* Where a blob goes: any number of writes, one behind the other, during the call that the writer
 * was given to. Returns 0 when it could not write; the slot then returns CDL_IO. */
typedef struct {
  void* context; /* the first argument of write */
  int (*write)(void* context, const void* data, uint64_t size);
} cdl_writer_t;

/* When an instruction ran. The clock is the device's own or the host's steady one; all records of a
 * profile are of the same. */
typedef struct {
  uint32_t instr;  /* 0: not tied to one */
  uint32_t engine; /* below the capabilities' engine_count */
  uint64_t start_ns, end_ns;
} cdl_profile_record_t;

/* A candidate for the tiler. */
typedef struct {
  /* checked; as compile gets it where instr is 0, but without payloads and hashes */
  const cdl_image_t* image;
  uint32_t instr; /* 0: the whole program, of which latency_cycles is asked */
  uint32_t reserved;
} cdl_cost_query_t;

/* What it would cost. */
typedef struct {
  uint64_t busy_cycles[8]; /* per engine */
  uint64_t latency_cycles;
  uint64_t bytes[4]; /* per space */
} cdl_cost_t;

/* The table. One of two interfaces is required: the primitive API, which is `run`, or the program
 * API, whose three slots compile and execute. A plugin with both is called through the program API.
 * Everything that it points to lives as long as the plugin, which is never unloaded. */
typedef struct {
  cdl_header_t header;
  /* the oldest host ABI that this plugin works with; the query holds it */
  uint16_t min_host_major, min_host_minor;
  uint32_t device_count;              /* when it was asked; 0: none is there */
  const char* name;                   /* not null: [a-z0-9_]+ */
  const char* version;                /* not null: of the backend */
  const char* description;            /* one line; may be null */
  const cdl_option_schema_t* options; /* may be null when there are none */
  uint32_t option_count, reserved;

  /* Opens device `index`. The host checked names and values of the options against the schema; a
   * device may be open more than once. `options` is null when there are none; an option that is not
   * given has its default.
   * Presence: required
   * Ownership: the host owns *device
   * Threads: any
   * Errors: common; CDL_NOT_FOUND no device `index`; CDL_INVALID_ARGUMENT an option;
   * CDL_UNSUPPORTED what this machine lacks
   * Lifetime: *device until device_close */
  cdl_code_t (*device_open)(const cdl_host_t* host, uint32_t index, const cdl_option_t* options,
                            uint32_t option_count, cdl_device_t** device, cdl_error_t* error);

  /* Closes a device, lost ones too.
   * Presence: required
   * Ownership: takes the device
   * Threads: last
   * Errors: none
   * Lifetime: after all objects of the device were destroyed */
  void (*device_close)(cdl_device_t* device);

  /* What the device can do. The same pointer and the same bytes at every call; never null.
   * Presence: required
   * Ownership: the tables are the plugin's
   * Threads: any
   * Errors: none
   * Lifetime: as long as the device is open */
  const cdl_capabilities_t* (*device_capabilities)(cdl_device_t* device);

  /* The device's name for people.
   * Presence: optional, the plugin's name
   * Ownership: the text is the plugin's
   * Threads: any
   * Errors: none
   * Lifetime: as long as the device is open */
  const char* (*device_name)(cdl_device_t* device);

  /* Makes a buffer with undefined content. `space` is an index into the capabilities' spaces: space
   * i there is space i + 1 of an image. `bytes` is at least 1; the first byte is aligned to
   * `alignment`, a power of two.
   * Presence: required
   * Ownership: the host owns *memory
   * Threads: any
   * Errors: common; CDL_INVALID_ARGUMENT no such space, or no power of two
   * Lifetime: *memory until memory_destroy */
  cdl_code_t (*memory_create)(cdl_device_t* device, uint32_t space, uint64_t bytes,
                              uint64_t alignment, cdl_memory_t** memory, cdl_error_t* error);

  /* Frees a buffer.
   * Presence: required
   * Ownership: takes the memory
   * Threads: last
   * Errors: none
   * Lifetime: after it was unmapped and its work is done, or the work's queue destroyed */
  void (*memory_destroy)(cdl_device_t* device, cdl_memory_t* memory);

  /* Gives the host's address of bytes of a buffer. The host maps a buffer once, as a whole, and
   * leaves it mapped while work runs; it touches it only when no submitted work uses it, so what it
   * wrote before a submission is seen there, and it sees what the device wrote once it has waited.
   * Memory that is not coherent in this way is not mappable.
   * Presence: optional, the host copies through the queue
   * Ownership: the bytes stay the memory's
   * Threads: any
   * Errors: common; CDL_INVALID_ARGUMENT outside of the memory; CDL_UNSUPPORTED this memory cannot
   * be mapped (the host copies then)
   * Lifetime: *pointer until memory_unmap */
  cdl_code_t (*memory_map)(cdl_device_t* device, cdl_memory_t* memory, uint64_t offset,
                           uint64_t bytes, void** pointer, cdl_error_t* error);

  /* Ends a mapping; `pointer` is what memory_map gave.
   * Presence: optional, mappings need no end
   * Ownership: takes the pointer
   * Threads: any
   * Errors: common; CDL_INVALID_ARGUMENT not mapped there
   * Lifetime: before memory_destroy */
  cdl_code_t (*memory_unmap)(cdl_device_t* device, cdl_memory_t* memory, void* pointer,
                             cdl_error_t* error);

  /* Makes a queue: what is submitted to it takes effect in order. Its timeline stands at 0.
   * Presence: required
   * Ownership: the host owns *queue
   * Threads: any
   * Errors: common
   * Lifetime: *queue until queue_destroy */
  cdl_code_t (*queue_create)(cdl_device_t* device, cdl_queue_t** queue, cdl_error_t* error);

  /* Frees a queue, first waiting for its work or giving it up: afterwards nothing touches the
   * work's memory.
   * Presence: required
   * Ownership: takes the queue
   * Threads: last
   * Errors: none
   * Lifetime: at any time, after an error too */
  void (*queue_destroy)(cdl_device_t* device, cdl_queue_t* queue);

  /* Copies bytes of the host into a buffer; 0 bytes are allowed. `from` may be reused when it
   * returns.
   * Presence: required
   * Ownership: `from` is the host's
   * Threads: one per queue
   * Errors: common; CDL_INVALID_ARGUMENT outside of the memory
   * Lifetime: `to` until the work is done */
  cdl_code_t (*queue_write)(cdl_queue_t* queue, cdl_memory_t* to, uint64_t offset, const void* from,
                            uint64_t bytes, cdl_error_t* error);

  /* Copies bytes of a buffer to the host; 0 bytes are allowed. Blocks until earlier work is done
   * and `to` filled.
   * Presence: required
   * Ownership: `to` is the host's
   * Threads: one per queue
   * Errors: common; CDL_INVALID_ARGUMENT outside of the memory
   * Lifetime: done when it returns */
  cdl_code_t (*queue_read)(cdl_queue_t* queue, cdl_memory_t* from, uint64_t offset, void* to,
                           uint64_t bytes, cdl_error_t* error);

  /* Copies between buffers of one device, of any spaces. What ranges that overlap hold then is
   * unpredictable.
   * Presence: required
   * Ownership: all is the host's
   * Threads: one per queue
   * Errors: common; CDL_INVALID_ARGUMENT outside of a memory
   * Lifetime: both memories until the work is done */
  cdl_code_t (*queue_copy)(cdl_queue_t* queue, cdl_memory_t* to, uint64_t to_offset,
                           cdl_memory_t* from, uint64_t from_offset, uint64_t bytes,
                           cdl_error_t* error);

  /* Moves the timeline to `value` when all earlier work is done. Values rise; one that does not is
   * unpredictable.
   * Presence: required
   * Ownership: none passes
   * Threads: one per queue
   * Errors: common
   * Lifetime: the value stays reached as long as the queue */
  cdl_code_t (*queue_signal)(cdl_queue_t* queue, uint64_t value, cdl_error_t* error);

  /* Blocks until the timeline reached `value`, which may be signalled later and by another thread;
   * a value that nobody signals is waited for until the time is over. timeout_ns 0: asks only;
   * UINT64_MAX: no limit. Waiting may be repeated.
   * Presence: required
   * Ownership: none passes
   * Threads: any
   * Errors: common, also those of the work before `value`; CDL_TIMEOUT not reached in time, the
   * work goes on
   * Lifetime: the queue is not destroyed meanwhile */
  cdl_code_t (*queue_wait)(cdl_queue_t* queue, uint64_t value, uint64_t timeout_ns,
                           cdl_error_t* error);

  /* Runs instructions first .. first + count - 1, at least one, in order; may return before they
   * are done. All are NATIVE by the rows, of one block, outside or inside of loops; loop_values are
   * the values of the enclosing loop variables, outer first. The host has checked the image;
   * instructions that it runs itself may be of kinds that the plugin does not know.
   * Presence: primitive API
   * Ownership: all is the host's
   * Threads: one per queue
   * Errors: common; CDL_INVALID_ARGUMENT a null or misaligned image, instructions outside of it, a
   * binding that is missing, too small, outside of its memory or misaligned; CDL_INCOMPATIBLE the
   * image's version, or a kind that the plugin does not know; CDL_BAD_MODEL no image;
   * CDL_UNSUPPORTED an instruction that no row claims
   * Lifetime: the image and the memory until the work is done */
  cdl_code_t (*run)(cdl_queue_t* queue, const cdl_image_t* image, uint32_t first, uint32_t count,
                    const int64_t loop_values[CDL_MAX_LOOP_NESTING], const cdl_bindings_t* bindings,
                    cdl_error_t* error);

  /* Compiles a Program; checks the image by cdl_image_check, of image->size bytes. `constants[i]`
   * is the payload of image constant i, null for a splat ([0] unused). CDL_REFUSED is for what data
   * cannot say: the host bars the instruction and asks again with another Program. A single
   * instruction that a row claims is not refused.
   * Presence: program API
   * Ownership: the host owns *executable; the constants are valid during the call alone; `refusal`
   * may be null
   * Threads: any
   * Errors: common; what cdl_image_check returns: CDL_INVALID_ARGUMENT, CDL_INCOMPATIBLE,
   * CDL_BAD_MODEL; CDL_REFUSED an instruction, with *refusal
   * Lifetime: *executable until executable_destroy, the image as long, unchanged */
  cdl_code_t (*compile)(cdl_device_t* device, const cdl_image_t* image,
                        const void* const* constants, cdl_executable_t** executable,
                        cdl_refusal_t* refusal, cdl_error_t* error);

  /* Frees an executable.
   * Presence: program API
   * Ownership: takes the executable
   * Threads: last
   * Errors: none
   * Lifetime: after its executions are done, or their queues destroyed */
  void (*executable_destroy)(cdl_device_t* device, cdl_executable_t* executable);

  /* Submits one execution; several of one executable may be in flight, on different queues, with
   * different bindings: all its state is in them. Bindings hold every buffer; TEMP ones lie where
   * the plan put them. Null are those in LOCAL spaces, which the device places itself, and CONSTANT
   * ones when the executable holds its constants (executable_load). It begins when every `wait` is
   * reached, of queues of the same device, and moves the timeline of signal.queue (null: none) to
   * signal.value when it is done. May block.
   * Presence: program API
   * Ownership: all is the host's
   * Threads: one per queue
   * Errors: common; CDL_INVALID_ARGUMENT a binding that is missing, too small, outside of its
   * memory or misaligned
   * Lifetime: executable and memory until the work is done; `bindings` and `wait` during the
   * call */
  cdl_code_t (*execute)(cdl_queue_t* queue, cdl_executable_t* executable,
                        const cdl_bindings_t* bindings, const cdl_timeline_t* wait,
                        uint32_t wait_count, cdl_timeline_t signal, cdl_error_t* error);

  /* Bytes of scratch that each execution gets as the binding behind the last buffer: in the default
   * space, aligned to 64 bytes, undefined at the start. The same at every call. 0: no such binding.
   * Presence: optional, 0
   * Ownership: none passes
   * Threads: any
   * Errors: none
   * Lifetime: of one execution */
  uint64_t (*executable_scratch)(cdl_executable_t* executable);

  /* Says of each instruction who runs it: CDL_SUPPORT_*. `count` is the image's instructions, [0]
   * unused.
   * Presence: optional, as the rows say
   * Ownership: `support` is the host's
   * Threads: any
   * Errors: common
   * Lifetime: none */
  cdl_code_t (*executable_support)(cdl_executable_t* executable, uint8_t* support, uint32_t count,
                                   cdl_error_t* error);

  /* Writes what executable_load reads, any number of times. With this pair executables hold their
   * constants, those that were compiled too: CONSTANT buffers get no memory.
   * Presence: optional, both or none; nothing is stored
   * Ownership: the writer is the host's
   * Threads: any
   * Errors: common; CDL_IO the writer failed; CDL_UNSUPPORTED this executable cannot be stored
   * Lifetime: what was written has no end */
  cdl_code_t (*executable_save)(cdl_executable_t* executable, const cdl_writer_t* writer,
                                cdl_error_t* error);

  /* Makes an executable of what executable_save wrote, perhaps on another machine, and the same
   * image. The blob may be damaged in any way: it is checked before it is believed. Its first byte
   * is aligned to 64.
   * Presence: optional, both or none; nothing is stored
   * Ownership: the host owns *executable and the blob
   * Threads: any
   * Errors: common; CDL_BAD_MODEL a damaged blob; CDL_INCOMPATIBLE of another image or version, or
   * for another device, naming both; what cdl_image_check returns
   * Lifetime: *executable until executable_destroy; image and blob as long, unchanged */
  cdl_code_t (*executable_load)(cdl_device_t* device, const cdl_image_t* image, const void* blob,
                                uint64_t size, cdl_executable_t** executable, cdl_error_t* error);

  /* Writes a constant in one of the backend's own layouts. `data` holds the constant as the model
   * has it, and `view` says how its elements lie in there; its buffer and layout are 0. What is
   * written, of any length, becomes the content of the constant's buffer, and the view of it in
   * the image has the same dims. The same bytes at every call. The host asks when a model is
   * compiled, and stores the bytes in bundles.
   * Presence: optional, required with OPAQUE layouts
   * Ownership: all is the host's
   * Threads: any
   * Errors: common; CDL_IO the writer failed; CDL_UNSUPPORTED no such layout, or not for this view
   * Lifetime: what was written lives as long as the device's version */
  cdl_code_t (*pack_constant)(cdl_device_t* device, const char* layout, const void* data,
                              const cdl_view_t* view, const cdl_writer_t* writer,
                              cdl_error_t* error);

  /* Estimates candidates: costs[i] of queries[i]. Pure: the same costs at every call. It ranks and
   * never decides what is legal.
   * Presence: optional, a roofline from the declared numbers
   * Ownership: all is the host's
   * Threads: any
   * Errors: common; CDL_UNSUPPORTED a kind that no row claims, instructions alone, or whole
   * programs
   * Lifetime: none */
  cdl_code_t (*cost_batch)(cdl_device_t* device, const cdl_cost_query_t* queries, uint32_t count,
                           cdl_cost_t* costs, cdl_error_t* error);

  /* Writes object code for a build ahead of time, as cdl_object.h says. A device may do so only
   * where options that it declares name the machine to build for; what it compiles then need not
   * run here.
   * Presence: optional, no build ahead of time
   * Ownership: the writer is the host's
   * Threads: any
   * Errors: common; CDL_IO the writer failed; CDL_UNSUPPORTED not of this executable
   * Lifetime: what was written has no end */
  cdl_code_t (*emit)(cdl_device_t* device, cdl_executable_t* executable, const cdl_writer_t* writer,
                     cdl_error_t* error);

  /* Begins to record the executions on this queue; one that was begun before begins anew.
   * Presence: optional, both or none; the host times whole executions
   * Ownership: none passes
   * Threads: one per queue
   * Errors: common
   * Lifetime: until profile_end */
  cdl_code_t (*profile_begin)(cdl_queue_t* queue, cdl_error_t* error);

  /* Ends it, when the work is done: a record per executed instruction, loops played. *count is how
   * many there are; no more than `capacity` are written.
   * Presence: optional, both or none; the host times whole executions
   * Ownership: the records are the host's
   * Threads: one per queue
   * Errors: common; CDL_INVALID_ARGUMENT no profile was begun
   * Lifetime: the records are gone from the queue */
  cdl_code_t (*profile_end)(cdl_queue_t* queue, cdl_profile_record_t* records, uint32_t capacity,
                            uint32_t* count, cdl_error_t* error);

  /* Gives up, as soon as it can, what the queue has not done; waits for it return CDL_CANCELLED,
   * now and later. Nothing to give up: nothing happens.
   * Presence: optional, work is not cancelled
   * Ownership: none passes
   * Threads: any
   * Errors: common
   * Lifetime: the queue is only destroyed then, if there was work */
  cdl_code_t (*cancel)(cdl_queue_t* queue, cdl_error_t* error);

  /* Claims a node of a domain that the host does not import: fills the types of the outputs, which
   * follow from those of the inputs and from the attributes, and what the CUSTOM instruction for it
   * is to have: its function, by which rows name the op, and attributes with ids from
   * CDL_CUSTOM_ATTR_FIRST on, each of 1 to 8 values of the types 1 to 3. The operands of the
   * instruction are the inputs that the node does not leave out, then its tensor attributes, by
   * name, as constants. Pure: the same claim at every call.
   * Presence: optional, no node is claimed
   * Ownership: all is the host's, during the call alone
   * Threads: any
   * Errors: common; CDL_UNSUPPORTED not an op of this device, or not as it stands in the node;
   * CDL_BAD_MODEL the node breaks a rule of its op. The text of both is what the user reads
   * Lifetime: none */
  cdl_code_t (*custom_op)(cdl_device_t* device, const cdl_custom_node_t* node,
                          cdl_custom_claim_t* claim, cdl_error_t* error);

  /* Writes what a claimed node means: a Graph as text (.cdl) whose inputs are the operands of the
   * CUSTOM instruction and whose outputs have the claimed types. It is what the reference computes,
   * and what runs where no row takes the instruction.
   * Presence: optional, claimed ops have no other form
   * Ownership: the writer is the host's
   * Threads: any
   * Errors: common; CDL_IO the writer failed; CDL_UNSUPPORTED this op has no other form
   * Lifetime: what was written has no end */
  cdl_code_t (*custom_op_decompose)(cdl_device_t* device, const cdl_custom_node_t* node,
                                    const cdl_writer_t* writer, cdl_error_t* error);

  /* Makes memory of bytes that the host has, without a copy: executions that are bound to it read
   * and write them where they lie, and work of the queue copies from and to them; the device
   * touches them at no other time, and the host does not map them. `*memory` null: a new one. Else
   * one that this slot made for the same space and that no work uses: it stands for these bytes
   * from now on, so that a host with other bytes in every run makes one memory and no more. `bytes`
   * is at least 1; `data` is aligned to 16, though the space may declare more. The host asks before
   * it would copy a whole buffer through the queue, and does that where the answer is
   * CDL_UNSUPPORTED.
   * Presence: optional, the host copies through the queue
   * Ownership: the bytes are the host's, and so is *memory
   * Threads: any, one per memory
   * Errors: common; CDL_INVALID_ARGUMENT no such space; CDL_UNSUPPORTED the device cannot use bytes
   * that lie there, or only with a larger alignment: *memory is as it was
   * Lifetime: *memory until memory_destroy; the bytes while work uses them, no longer */
  cdl_code_t (*memory_import)(cdl_device_t* device, uint32_t space, void* data, uint64_t bytes,
                              cdl_memory_t** memory, cdl_error_t* error);
} cdl_plugin_t;

/* The one symbol of a plugin. `host` says which ABI the host has; `out->header.struct_size` how
 * much of the table it knows. Fills as much of the table as both know and sets struct_size to that.
 * Presence: required
 * Ownership: both structs are the host's
 * Threads: any, more than once
 * Errors: CDL_INVALID_ARGUMENT a null pointer, or a struct shorter than its header;
 * CDL_INCOMPATIBLE it needs a newer host, or a host of another major version, naming both numbers,
 * before it writes anything; CDL_OUT_OF_MEMORY; CDL_INTERNAL
 * Lifetime: what the table points to lives as long as the plugin, which is never unloaded */
typedef cdl_code_t (*cdl_backend_query_fn)(const cdl_host_t* host, cdl_plugin_t* out,
                                           cdl_error_t* error);
#define CDL_BACKEND_QUERY_SYMBOL "cdl_backend_query"

#ifdef __cplusplus
} /* extern "C" */
#endif

#include "candela/cdl_frozen.h"
#include "candela/cdl_image.h"

#endif
