/* What the slot `emit` writes: a model as object code, for a build ahead of time that links neither
 * the SDK nor the plugin. It is an archive as ar(1) makes them, with four members:
 *
 *   code.o      defines the functions below
 *   weights.o   defines NAME_weights, which is read only and aligned to 64 bytes
 *   weights     the bytes of NAME_weights, for who maps a file instead
 *   facts       cdl_object_facts_t
 *
 * All symbols begin with NAME, which the device was told by an option. The objects refer to no
 * symbols but memcpy, memset and their own, write no memory but what they are given, and allocate
 * none. Results are int32_t, of CDL_OBJECT_*:
 *
 *   int32_t NAME_open(model, weights, size_t weights_bytes, arena, size_t arena_bytes)
 *       Checks the processor, the header of the weights and the arena, and fills model, of
 *       CDL_OBJECT_MODEL_BYTES, aligned to 8.
 *   int32_t NAME_run(model, const void* const* inputs, void* const* outputs)
 *       One run. The arrays hold where each buffer of the image with the role INPUT or INOUT, or
 *       OUTPUT or INOUT, lies, in the order of the buffers, aligned as cdl_object_alignment says.
 * No output overlaps another one or an input. One thread at a time runs on one arena. int32_t
 * NAME_verify(weights, size_t weights_bytes) Reads all of the weights and compares them with the
 * digest in their header.
 */
#ifndef CANDELA_CDL_OBJECT_H
#define CANDELA_CDL_OBJECT_H

#include "candela/cdl.h"

enum {
  CDL_OBJECT_OK = 0,
  CDL_OBJECT_NULL = 1,            /* an address is null */
  CDL_OBJECT_MISALIGNED = 2,      /* one is not aligned as it has to be */
  CDL_OBJECT_ARENA_TOO_SMALL = 3, /* arena_bytes */
  CDL_OBJECT_WRONG_WEIGHTS = 4,   /* of another model or version, or shorter than these */
  CDL_OBJECT_PROCESSOR = 5,       /* it lacks what the code needs, or its system does */
  CDL_OBJECT_NOT_OPEN = 6,        /* the model was not filled by NAME_open */
  CDL_OBJECT_STATE = 7,           /* a state that is updated in place came in two places */
  CDL_OBJECT_DAMAGED_WEIGHTS = 8  /* their bytes do not have their digest */
};

#define CDL_OBJECT_FORMAT 1
#define CDL_OBJECT_MODEL_BYTES 32

/* The first bytes of NAME_weights; equal to those that NAME_open knows. */
typedef struct {
  char magic[4];     /* "CDLW" */
  uint32_t format;   /* CDL_OBJECT_FORMAT */
  uint64_t bytes;    /* of all weights, with this header */
  uint64_t digest;   /* of what follows the header: the backend's own sum */
  uint8_t image[32]; /* the hash of the Program, which holds those of its constants */
  uint64_t code;     /* the backend's own sum of how it lays them out */
} cdl_object_weights_t;

/* What a header for people is written from. */
typedef struct {
  uint32_t format; /* CDL_OBJECT_FORMAT */
  uint32_t arena_alignment, weights_alignment, reserved;
  uint64_t arena_bytes, weights_bytes;
  char triple[64]; /* NUL-terminated, as all texts here */
  char isa[64];    /* the instruction set that the code is for, by the backend's name */
  char needs[512]; /* what NAME_open looks for, ", " between them; empty: nothing */
  char maker[64];  /* "cpu 0.1.0 with LLVM 19.1.7" */
} cdl_object_facts_t;

/* How a buffer that the caller binds is aligned: as the largest element that a view sees in it, in
 * bytes. */
static inline uint32_t cdl_object_alignment(const cdl_image_t* image, uint32_t buffer) {
  uint32_t bits = 8;
  for (uint32_t v = 1; v < image->views.count; ++v) {
    const cdl_view_t* view = cdl_get_view(image, v);
    if (view->buffer == buffer && cdl_elem_bits(view->elem) > bits)
      bits = cdl_elem_bits(view->elem);
  }
  return bits / 8;
}

#endif
