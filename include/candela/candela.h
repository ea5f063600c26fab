/* The embedding API of Candela: compile a model, load a bundle, run it. C11, stable, no other
 * header needed. Devices that are opened by hand, buffers on them and many runs at the same time
 * are in async.h; models that a program makes itself in graph.h.
 *
 *   candela_options_t options = CANDELA_OPTIONS_INIT;
 *   options.backends = "template";
 *   candela_model_t* model;
 *   if (candela_compile("digits.onnx", &options, &model, error, sizeof error) != CANDELA_OK) ...
 *   candela_run(model, &in, 1, &out, 1, error, sizeof error);
 *   candela_free(model);
 *
 * Errors: a code and a message in a buffer of the caller (NULL and 0 are allowed). Threads: one
 * model may be run by many threads at once; every other call on it by one. Ownership is said at
 * each function. NULL: where a function needs what is NULL it returns CANDELA_INVALID_ARGUMENT, 0
 * or NULL, and candela_profile does nothing.
 *
 * Files: what is read of models, bundles and the files beside them is copied up to 32 MiB a file;
 * larger ones stay mapped while a model uses them. The caller leaves these as they are until
 * candela_free, or replaces them by a new file that is renamed, which changes nothing for who
 * loaded the old one. A run of a model whose files were changed in place fails with CANDELA_IO, by
 * their size and time; one that is cut off while a run reads it ends the process by SIGBUS. Texts
 * may hold any character that a file's names hold: escape them before a terminal or a page gets
 * them.
 *
 * Trust: backends are code of this process. A bundle names them, by names that are looked up on the
 * plugin path and are never paths, and holds executables that they run: SECURITY.md says what is
 * checked. */
#ifndef CANDELA_CANDELA_H
#define CANDELA_CANDELA_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define CANDELA_API __declspec(dllexport)
#else
#define CANDELA_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers of spec/codes.toml. */
typedef enum {
  CANDELA_OK = 0,
  CANDELA_INVALID_ARGUMENT = 1, /* the call is wrong: fix it */
  CANDELA_INCOMPATIBLE = 2,     /* versions do not fit */
  CANDELA_UNSUPPORTED = 3,      /* operators or features that are not there */
  CANDELA_REFUSED = 4,          /* a backend refused, or require_native could not be held */
  CANDELA_OUT_OF_MEMORY = 5,
  CANDELA_DEVICE_LOST = 6,
  CANDELA_TIMEOUT = 7,
  CANDELA_CANCELLED = 8,
  CANDELA_NOT_FOUND = 9, /* a file, backend or name does not exist */
  CANDELA_IO = 10,       /* reading or writing failed */
  CANDELA_INTERNAL = 11, /* a defect in Candela or in a backend */
  CANDELA_BAD_MODEL = 12 /* the file is malformed */
} candela_status_t;

/* Element types, the numbers of spec/types.toml. */
typedef enum {
  CANDELA_F32 = 1,
  CANDELA_F16 = 2,
  CANDELA_BF16 = 3,
  CANDELA_F64 = 4,
  CANDELA_I8 = 5,
  CANDELA_U8 = 6,
  CANDELA_I16 = 7,
  CANDELA_U16 = 8,
  CANDELA_I32 = 9,
  CANDELA_U32 = 10,
  CANDELA_I64 = 11,
  CANDELA_U64 = 12,
  CANDELA_BOOL = 13
} candela_elem_t;

typedef struct candela_model candela_model_t;
typedef struct candela_device candela_device_t; /* async.h */

#define CANDELA_MAX_RANK 16
#define CANDELA_ALIGNMENT 16 /* bytes: of data that is used where it lies; malloc's */
#define CANDELA_UNKNOWN_RANK UINT32_MAX

/* A dense row-major tensor in memory of the caller. */
typedef struct {
  candela_elem_t elem;
  uint32_t rank;
  int64_t dims[CANDELA_MAX_RANK];
  void* data;     /* inputs are only read */
  uint64_t bytes; /* at data, at least what elem and dims need */
} candela_tensor_t;

typedef struct {
  uint32_t struct_size;    /* sizeof(candela_options_t): set by CANDELA_OPTIONS_INIT */
  uint32_t flags;          /* CANDELA_FLAG_* */
  const char* backends;    /* "acme,soft": names or paths, the first one first; "acme:1" is its
                              device 1. NULL: "soft". "reference": the oracle */
  const char* const* dims; /* "N=1", ended by NULL: symbolic dims by name */
  /* "images=1x3x224x224" or "k=scalar", ended by NULL. An input for which the model has a value is
   * that constant, and no input of the compiled model, unless it is given a shape here. */
  const char* const* shapes;
  /* "key=value" or "backend.key=value", ended by NULL: for the backends. "import.random_seed=N":
   * the numbers of random nodes that have no seed of their own. */
  const char* const* options;
  /* Called now and then on the calling thread with a stage and 0..1 of it; NULL is allowed. */
  void (*progress)(void* context, const char* stage, double fraction);
  void* progress_context;
  /* "past=present", ended by NULL: the output `present` of a run is the input `past` of the next
   * one, without a copy where the backend's memory is the host's. Both have one type. A state is
   * zero before the first run (an open dim 0). candela_run: an input that is a state may have data
   * NULL and bytes 0, to go on; other data is taken for this run. An output that is a state and has
   * data NULL and bytes 0 is not written out, unless its rank is CANDELA_UNKNOWN_RANK. Runs of such
   * a model take turns. */
  const char* const* states;
  /* Devices that are open (async.h), the first one first, in the place of `backends` and of options
   * for them; what none of them takes runs on the host. They are held as long as the model. */
  candela_device_t* const* devices;
  uint32_t device_count; /* 0: `backends` says */
  uint32_t reserved;     /* 0 */
  /* By what nodes get their backends. "preference" or NULL: the first backend of `backends` that
   * takes a node natively. "cost": the least sum of work and transfers by what backends say or
   * declare. "pipeline": a stage for each backend, whose slowest one is the fastest. */
  const char* partition;
  /* A file of lines PATTERN = BACKEND: which nodes have to be where; NULL: none. A pattern is a
   * glob of names of nodes, or of ops behind "op:". The last line that matches a node counts. */
  const char* pin_file;
  /* In which type products of f32 are computed: "f16" or "bf16"; NULL: f32. A backend that claims
   * the profile of the type gets such products; for others the constant right sides of matrix
   * products are rounded to it, and take half of the memory. A weight that the type does not have
   * is an error. */
  const char* precision;
} candela_options_t;

#define CANDELA_FLAG_REQUIRE_NATIVE                                                                \
  1u /* fail with the list of nodes when anything is emulated or on the host */
#define CANDELA_FLAG_TO_PRIMITIVES 2u /* lower every op to the 13 primitives */
/* Every node's results become outputs too, behind the model's own, before anything is fused: for
 * dumps. */
#define CANDELA_FLAG_KEEP_VALUES 4u
/* Dims that neither the model nor `dims` nor `shapes` bind are those of the inputs of each run:
 * what depends on them is compiled at the first run with such shapes, and kept. Without it they are
 * an error. */
#define CANDELA_FLAG_BIND_AT_RUN 8u
/* What is cheap to compute is computed again before a late reader, where that lowers the peak of
 * memory. */
#define CANDELA_FLAG_REMATERIALIZE 16u
/* Every node stays an instruction of its own: no epilogues, no expressions. To compare with, not to
 * deploy. */
#define CANDELA_FLAG_UNSTACKED 32u
/* Every instruction runs as a whole: no chains of them by bands of rows. */
#define CANDELA_FLAG_NO_GROUPS 64u

#define CANDELA_OPTIONS_INIT                                                                       \
  {(uint32_t)sizeof(candela_options_t),                                                            \
   0,                                                                                              \
   NULL,                                                                                           \
   NULL,                                                                                           \
   NULL,                                                                                           \
   NULL,                                                                                           \
   NULL,                                                                                           \
   NULL,                                                                                           \
   NULL,                                                                                           \
   NULL,                                                                                           \
   0,                                                                                              \
   0,                                                                                              \
   NULL,                                                                                           \
   NULL,                                                                                           \
   NULL}

/* "0.2.0" */
CANDELA_API const char* candela_version(void);

/* How many threads of this process compute, the caller of a run among them, what no backend takes
 * and what backends share with the host: 1 to 4096, for the runs to come. 0: what CANDELA_THREADS
 * of the environment says, else as many as the process may run on, which is so without a call. One
 * pool serves all models and runs; where the system gives fewer threads, those do. Results have the
 * same bits for every number. Threads that backends make have options of theirs. Any thread. */
CANDELA_API candela_status_t candela_set_threads(uint32_t count);
CANDELA_API uint32_t candela_threads(void);

/* Compiles a model, of any format that is read, or a .cdl file. *model is the caller's, for
 * candela_free. */
CANDELA_API candela_status_t candela_compile(const char* path, const candela_options_t* options,
                                             candela_model_t** model, char* error,
                                             size_t error_size);

/* The same of a file's content, which is copied. `name` stands for its path: its ending says what
 * it is, messages begin with it, and files that the model keeps beside itself are looked for there.
 * No file need have that name. */
CANDELA_API candela_status_t candela_compile_memory(const void* data, size_t bytes,
                                                    const char* name,
                                                    const candela_options_t* options,
                                                    candela_model_t** model, char* error,
                                                    size_t error_size);

/* Loads a bundle (.cdb) that candela_save wrote. Its options are words and numbers: one that may
 * name a file is refused (CANDELA_REFUSED), unless the environment says CANDELA_BUNDLE_FILES=1. */
CANDELA_API candela_status_t candela_load(const char* path, candela_model_t** model, char* error,
                                          size_t error_size);

/* The same of a bundle's content, which is copied; `name` stands for it in messages. */
CANDELA_API candela_status_t candela_load_memory(const void* data, size_t bytes, const char* name,
                                                 candela_model_t** model, char* error,
                                                 size_t error_size);

/* Writes a bundle, with the binding of states but not what they hold. A file that is there survives
 * a failure. */
CANDELA_API candela_status_t candela_save(const candela_model_t* model, const char* path,
                                          char* error, size_t error_size);

CANDELA_API void candela_free(candela_model_t* model);

/* Inputs and outputs in the model's order. Names live as long as the model; `data` of the
 * description is NULL and `bytes` what the tensor needs. A dim that only a run knows is -1, a rank
 * CANDELA_UNKNOWN_RANK; bytes is 0 then, and elem too where the type is not known. Returns NULL and
 * leaves `description` alone when index is out of range. */
CANDELA_API uint32_t candela_input_count(const candela_model_t* model);
CANDELA_API uint32_t candela_output_count(const candela_model_t* model);
CANDELA_API const char* candela_input(const candela_model_t* model, uint32_t index,
                                      candela_tensor_t* description);
CANDELA_API const char* candela_output(const candela_model_t* model, uint32_t index,
                                       candela_tensor_t* description);

/* Runs once and returns when the outputs are written. inputs[i] must have the type and dims that
 * candela_input gives; outputs[i].data is filled, its elem, rank and dims are set; bytes must
 * suffice. Where data is NULL and bytes 0 the library allocates it, for candela_free_data.
 *
 * Data is the caller's and is touched during the call alone. Where it is aligned to
 * CANDELA_ALIGNMENT and the backend's memory is the host's, inputs are read and outputs written
 * where they lie; else they are copied through memory that the model keeps. Inputs are only read,
 * and may be the same memory. An output that overlaps an input or another output is written at the
 * end, at the price of a copy. After a failure outputs hold anything, and nothing that the library
 * allocated for them stays. The first run makes what later ones use again, for as many threads as
 * run at once: those allocate nothing, unless the library allocates an output, dims are bound at
 * run, every instruction is profiled, or a thread of the pool has its first part of such work. */
CANDELA_API candela_status_t candela_run(const candela_model_t* model,
                                         const candela_tensor_t* inputs, uint32_t input_count,
                                         candela_tensor_t* outputs, uint32_t output_count,
                                         char* error, size_t error_size);

/* What was compiled and where it goes, as JSON (schema candela.placement/1): model, backends,
 * nodes, parameters, arena_bytes, max_live_bytes, placement {native, emulated, host}, macs {native,
 * emulated, host}, nodes_detail [{node, op, on, class, why, macs, bytes_in and bytes_out: of
 * operands and results, elements: of results; products {count, rows, terms, columns} of
 * convolutions and products of matrices}], transfers, partitions; with another policy than
 * preference partition {policy, least, seconds, devices, rates, stage_seconds}; with KEEP_VALUES
 * values [{name, node}] of the outputs that it added; states [{input, output}] where there are
 * some; local_bytes, of arenas in local memories, where there are some; streamed_bytes, of
 * constants that each run uploads, where a device cannot hold them. Lives as long as the model. */
CANDELA_API const char* candela_report_json(const candela_model_t* model);

/* Whether the traces of the runs to come hold every instruction (on: not 0), not only the steps.
 * That costs time on backends that take instructions one by one; those that compile may keep no
 * profile, and then show steps alone. */
CANDELA_API void candela_profile(candela_model_t* model, int on);

/* Compiling and the newest run on any thread, as Chrome trace JSON for ui.perfetto.dev, on one time
 * line: the host's thread, and a process for each backend with a track for each engine. A step's
 * `args` are {step, bytes: that it moved}; an instruction's (category "instruction") are {kind,
 * function, node, op: of the model, type: of its first operand, operands: with results, class: the
 * largest of theirs, bytes: that it reads and writes, partition, instr: counted from 1, on: the
 * backend, support: native, emulated or host, clock}. A backend's own clock cannot be related to
 * the host's: records that lie outside of their execution are moved, the first one to its
 * submission, and `clock` says so. The caller frees it with candela_free_text. */
CANDELA_API char* candela_trace_json(const candela_model_t* model);

/* Every backend that can be found, as JSON (schema candela.backends/1): backends [{name, version,
 * origin, description, error, devices
 * [{name, profiles, rows {native, emulated}, spaces}], options}]. `paths` adds plugins by path,
 * ended by NULL. The caller frees it with candela_free_text. */
CANDELA_API char* candela_backends_json(const char* const* paths);

CANDELA_API void candela_free_text(char* text);
/* Of an output that candela_run allocated. */
CANDELA_API void candela_free_data(void* data);

#ifdef __cplusplus
}
#endif

#endif
