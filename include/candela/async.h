/* Devices, buffers on them, and many runs at the same time: the asynchronous half of the embedding
 * API. C11; candela.h is the other half, and graph.h makes models without a file.
 *
 *   candela_device_t* device;
 *   candela_device_open("acme:1", NULL, &device, error, sizeof error);
 *   options.devices = &device; options.device_count = 1;
 *   candela_compile("digits.onnx", &options, &model, error, sizeof error);
 *   candela_session_create(&model, 1, NULL, &session, error, sizeof error);
 *   candela_submission_t submission = CANDELA_SUBMISSION_INIT;
 *   submission.inputs = &in; submission.input_count = 1;
 *   submission.outputs = &out; submission.output_count = 1;
 *   candela_submit(session, &submission, &request, error, sizeof error);
 *   ...
 *   candela_request_wait(request, CANDELA_FOREVER, error, sizeof error);
 *   candela_request_free(request);
 *
 * Each function says in fixed words:
 *
 *   Ownership   who frees what. Other pointers are the caller's and valid during the call alone.
 *   Threads     "any": several at once, on the same object too. "last": nobody else uses the
 *               object, then or later.
 *   Errors      the codes beside CANDELA_OUT_OF_MEMORY and CANDELA_INTERNAL. CANDELA_DEVICE_LOST
 *               may come from every function that uses a device. NULL where something is needed is
 *               CANDELA_INVALID_ARGUMENT.
 *   Lifetime    how long what it made lives.
 *
 * Out parameters are NULL after an error. Objects hold what they need: a device is closed with the
 * last model, buffer and session that uses it, whichever is freed first. Times are nanoseconds. */
#ifndef CANDELA_ASYNC_H
#define CANDELA_ASYNC_H

#include <candela/candela.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CANDELA_FOREVER UINT64_MAX

/* ---- Devices --------------------------------------------------------------------------------- */

/* Every device that can be opened, by the names that candela_device_open takes, as JSON (schema
 * candela.devices/1): devices [{id, backend, version, description, index, origin}], errors
 * [{origin, error}] of plugins that could not be loaded. None is opened.
 * Ownership: the text is the caller's, for candela_free_text
 * Threads: any
 * Errors: NULL
 * Lifetime: until it is freed */
CANDELA_API char* candela_devices_json(const char* const* paths);

/* Opens device N of a backend by "NAME:N", "NAME" (its device 0), or the path of a plugin, which
 * may end in ":N" too. `options`: "key=value", ended by NULL; may be NULL. A device may be open
 * more than once, with other options each.
 * Ownership: *device is the caller's, for candela_device_close
 * Threads: any
 * Errors: CANDELA_NOT_FOUND, CANDELA_INCOMPATIBLE, CANDELA_INVALID_ARGUMENT (an option, a
 * number), CANDELA_UNSUPPORTED (what this machine lacks)
 * Lifetime: until candela_device_close */
CANDELA_API candela_status_t candela_device_open(const char* name, const char* const* options,
                                                 candela_device_t** device, char* error,
                                                 size_t error_size);

/* Gives up the handle; NULL is allowed.
 * Ownership: takes the device
 * Threads: last
 * Errors: none
 * Lifetime: models, buffers and sessions keep what they use of it */
CANDELA_API void candela_device_close(candela_device_t* device);

typedef struct {
  uint32_t struct_size;    /* sizeof: set by the caller */
  uint32_t index;          /* of the backend's devices */
  const char* id;          /* "acme:1" */
  const char* name;        /* for people */
  const char* backend;     /* "acme" */
  const char* version;     /* of the backend */
  const char* profiles;    /* "BASE FP32 INT8" */
  uint32_t host_mapped;    /* 1: the host sees its default memory */
  uint32_t compiles;       /* 1: whole programs; 0: instruction by instruction */
  uint64_t capacity_bytes; /* of its default memory; 0: not declared */
  uint64_t alignment;      /* bytes, of buffers in it */
} candela_device_properties_t;

/* What the device is. Fills no more than `struct_size` says.
 * Ownership: the texts are the device's
 * Threads: any
 * Errors: CANDELA_INVALID_ARGUMENT
 * Lifetime: the texts as long as the device */
CANDELA_API candela_status_t candela_device_properties(const candela_device_t* device,
                                                       candela_device_properties_t* properties);

typedef struct {
  uint32_t struct_size;  /* sizeof: set by the caller */
  uint32_t reserved;     /* 0 */
  uint64_t bytes_in_use; /* that this opening of the device has given, in all of its memories */
  uint64_t most_bytes;   /* the most that it ever had */
} candela_device_memory_t;

/* What its memory is used for by models and buffers of this process.
 * Ownership: none passes
 * Threads: any
 * Errors: CANDELA_INVALID_ARGUMENT
 * Lifetime: none */
CANDELA_API candela_status_t candela_device_memory(const candela_device_t* device,
                                                   candela_device_memory_t* memory);

/* ---- Buffers --------------------------------------------------------------------------------- */

typedef struct candela_buffer candela_buffer_t;

/* Makes a buffer of zeros in the device's default memory, of at least 1 byte; device NULL: on
 * the host.
 * Ownership: *buffer is the caller's, for candela_buffer_free
 * Threads: any
 * Errors: those of the header
 * Lifetime: until it is freed, and as long as requests use it */
CANDELA_API candela_status_t candela_buffer_create(candela_device_t* device, uint64_t bytes,
                                                   candela_buffer_t** buffer, char* error,
                                                   size_t error_size);

/* Makes a buffer of bytes that the caller has, aligned to CANDELA_ALIGNMENT, without a copy.
 * Devices use them where they lie, if they can.
 * Ownership: the bytes are the caller's until `release` was called, once, on any thread; NULL is
 * allowed
 * Threads: any
 * Errors: CANDELA_INVALID_ARGUMENT, also for an alignment; then `release` is not called
 * Lifetime: as of candela_buffer_create */
CANDELA_API candela_status_t candela_buffer_wrap(void* data, uint64_t bytes,
                                                 void (*release)(void* context), void* context,
                                                 candela_buffer_t** buffer, char* error,
                                                 size_t error_size);

/* Gives up the handle; NULL is allowed.
 * Ownership: takes the buffer
 * Threads: last; requests that use it need not be done
 * Errors: none
 * Lifetime: of its memory: until the last request that uses it is done */
CANDELA_API void candela_buffer_free(candela_buffer_t* buffer);

/* Its size, and 0 for NULL.
 * Threads: any. */
CANDELA_API uint64_t candela_buffer_bytes(const candela_buffer_t* buffer);

/* The host's address of its first byte, or NULL where the host does not see it. No request may
 * use the buffer while it is looked at.
 * Ownership: the bytes stay the buffer's
 * Threads: any
 * Errors: NULL
 * Lifetime: as long as the buffer */
CANDELA_API void* candela_buffer_data(const candela_buffer_t* buffer);

/* Copies bytes of the host into a buffer, out of one, or from one to another, on whatever
 * devices they lie; within a device the device copies. They block, and wait for no request.
 * Ownership: all is the caller's
 * Threads: any, on bytes that nobody else writes
 * Errors: CANDELA_INVALID_ARGUMENT outside of a buffer
 * Lifetime: done when they return */
CANDELA_API candela_status_t candela_buffer_write(candela_buffer_t* buffer, uint64_t offset,
                                                  const void* from, uint64_t bytes, char* error,
                                                  size_t error_size);
CANDELA_API candela_status_t candela_buffer_read(const candela_buffer_t* buffer, uint64_t offset,
                                                 void* to, uint64_t bytes, char* error,
                                                 size_t error_size);
CANDELA_API candela_status_t candela_buffer_copy(candela_buffer_t* to, uint64_t to_offset,
                                                 const candela_buffer_t* from, uint64_t from_offset,
                                                 uint64_t bytes, char* error, size_t error_size);

/* A tensor of another library, by DLPack (dmlc/dlpack, dlpack.h 0.6): CPU memory, dense, row-
 * major, of an element type of candela.h. `description` gets its type, dims and bytes, data
 * NULL.
 * Ownership: takes `tensor`, whose deleter is called when nothing uses its bytes any more; after
 * an error it stays the caller's
 * Threads: any
 * Errors: CANDELA_UNSUPPORTED another device, strides or type
 * Lifetime: as of candela_buffer_create */
struct DLManagedTensor;
CANDELA_API candela_status_t candela_buffer_from_dlpack(struct DLManagedTensor* tensor,
                                                        candela_tensor_t* description,
                                                        candela_buffer_t** buffer, char* error,
                                                        size_t error_size);

/* The other way: a buffer that the host sees, as a DLPack tensor of the type and dims of
 * `description`.
 * Ownership: *tensor is the caller's, for its deleter; it holds the buffer's memory
 * Threads: any
 * Errors: CANDELA_UNSUPPORTED memory that the host does not see; CANDELA_INVALID_ARGUMENT a
 * description that is larger than the buffer
 * Lifetime: until the deleter is called */
CANDELA_API candela_status_t candela_buffer_to_dlpack(candela_buffer_t* buffer,
                                                      const candela_tensor_t* description,
                                                      struct DLManagedTensor** tensor, char* error,
                                                      size_t error_size);

/* ---- Timelines ------------------------------------------------------------------------------- */

/* A number that only rises, by requests and by the program: what waits for what. Once it failed,
 * whoever waits for a value that it has not reached gets that failure, now and later. */
typedef struct candela_timeline candela_timeline_t;

/* Makes a timeline at 0.
 * Ownership: *timeline is the caller's, for candela_timeline_free
 * Threads: any
 * Errors: those of the header
 * Lifetime: until it is freed; requests keep what they use of it */
CANDELA_API candela_status_t candela_timeline_create(candela_timeline_t** timeline);
/* Gives up the handle; NULL is allowed.
 * Threads: last. */
CANDELA_API void candela_timeline_free(candela_timeline_t* timeline);
/* Where it stands.
 * Threads: any. */
CANDELA_API uint64_t candela_timeline_value(const candela_timeline_t* timeline);
/* Moves it, and begins on this thread what waited for that.
 * Ownership: none passes
 * Threads: any
 * Errors: CANDELA_INVALID_ARGUMENT a value that is not above the one that it has
 * Lifetime: the value stays reached */
CANDELA_API candela_status_t candela_timeline_signal(candela_timeline_t* timeline, uint64_t value);
/* Fails it: requests that wait for it fail too, with this code and message.
 * Ownership: the text is copied
 * Threads: any
 * Errors: CANDELA_INVALID_ARGUMENT a status that is none, or CANDELA_OK
 * Lifetime: the first failure stays */
CANDELA_API candela_status_t candela_timeline_fail(candela_timeline_t* timeline,
                                                   candela_status_t status, const char* message);
/* Blocks until it is reached; timeout 0: asks only.
 * Ownership: none passes
 * Threads: any
 * Errors: CANDELA_TIMEOUT; what the timeline failed with
 * Lifetime: waiting may be repeated */
CANDELA_API candela_status_t candela_timeline_wait(const candela_timeline_t* timeline,
                                                   uint64_t value, uint64_t timeout_ns, char* error,
                                                   size_t error_size);

/* ---- Sessions -------------------------------------------------------------------------------- */

/* Runs requests on one or several compiled copies of a model, each on its own devices. Parts of
 * a model on different devices work on different requests at the same time; where nothing but a
 * result on another device is waited for, the host does not wait. */
typedef struct candela_session candela_session_t;
typedef struct candela_request candela_request_t;

typedef struct {
  uint32_t struct_size; /* sizeof: set by CANDELA_SESSION_OPTIONS_INIT */
  uint32_t flags;       /* CANDELA_SESSION_* */
  uint32_t capacity;    /* requests that are submitted and not done: 256; 1 to 2^20 */
  uint32_t in_flight;   /* of them on each copy, and executions on each device: 2; 1 to 256 */
} candela_session_options_t;

#define CANDELA_SESSION_TRACE 1u /* candela_session_trace_json has something to say */
#define CANDELA_SESSION_OPTIONS_INIT {(uint32_t)sizeof(candela_session_options_t), 0, 256, 2}

/* Makes a session of `count` models, which are copies: inputs and outputs of the same names and
 * types. A model with states has no copies. `options` may be NULL.
 * Ownership: *session is the caller's, for candela_session_free
 * Threads: any
 * Errors: CANDELA_INVALID_ARGUMENT; CANDELA_OUT_OF_MEMORY where the system gives no thread
 * Lifetime: the models live longer; they may be run by candela_run meanwhile */
CANDELA_API candela_status_t candela_session_create(candela_model_t* const* models, uint32_t count,
                                                    const candela_session_options_t* options,
                                                    candela_session_t** session, char* error,
                                                    size_t error_size);

/* Cancels what is not done, waits for it and ends; NULL is allowed.
 * Ownership: takes the session; requests stay their owners'
 * Threads: last; not in a callback
 * Errors: none
 * Lifetime: none */
CANDELA_API void candela_session_free(candela_session_t* session);

/* An input or output of a request: `tensor` in memory of the caller, or, where `buffer` is not
 * NULL, in that, from `offset` on (a multiple of CANDELA_ALIGNMENT); tensor.data is not looked
 * at then. Both stay as they are until the request is done: inputs are read, outputs written
 * meanwhile. */
typedef struct {
  candela_tensor_t tensor;
  candela_buffer_t* buffer;
  uint64_t offset; /* bytes */
} candela_argument_t;

typedef struct {
  candela_timeline_t* timeline;
  uint64_t value;
} candela_moment_t;

typedef struct {
  uint32_t struct_size; /* sizeof: set by CANDELA_SUBMISSION_INIT */
  uint32_t flags;       /* CANDELA_SUBMIT_* */
  const candela_argument_t* inputs;
  const candela_argument_t* outputs; /* with no data, bytes 0 and no buffer: see
                                        candela_request_output */
  uint32_t input_count, output_count;
  const candela_moment_t* waits;   /* it begins when all are reached, and fails as they fail */
  const candela_moment_t* signals; /* moved when it is done; failed when it fails */
  uint32_t wait_count, signal_count;
  uint64_t timeout_ns; /* from now until it must be done; 0: no limit */
  /* Called once when it is done, on a thread of the library or of who ended it. It may submit; it
   * does not block. NULL is allowed. */
  void (*done)(void* context, candela_status_t status, const char* message);
  void* context;
} candela_submission_t;

/* CANDELA_TIMEOUT at once instead of waiting for room */
#define CANDELA_SUBMIT_REFUSE_WHEN_FULL 1u
#define CANDELA_SUBMISSION_INIT                                                                    \
  {(uint32_t)sizeof(candela_submission_t), 0, NULL, NULL, 0, 0, NULL, NULL, 0, 0, 0, NULL, NULL}

/* Asks for one run. Blocks while as many are in flight as the session takes.
 * Ownership: *request is the caller's, for candela_request_free; NULL: nobody waits for it
 * Threads: any
 * Errors: as candela_run for what is given; CANDELA_TIMEOUT no room in time, CANDELA_CANCELLED
 * the session ends: nothing was submitted, `done` is not called
 * Lifetime: the data that arguments point to and the buffers' memory until the request is done;
 * the structs during the call */
CANDELA_API candela_status_t candela_submit(candela_session_t* session,
                                            const candela_submission_t* submission,
                                            candela_request_t** request, char* error,
                                            size_t error_size);

/* Blocks until the request is done; timeout 0: asks only. It returns how the request ended: what
 * candela_run would return; CANDELA_CANCELLED; CANDELA_DEVICE_LOST where no copy of the model is
 * left. A thread that waits without a limit works on the request meanwhile.
 * Ownership: none passes
 * Threads: any
 * Errors: CANDELA_TIMEOUT it is not done yet, or was not in the time that it was given
 * (candela_request_done tells which)
 * Lifetime: waiting may be repeated */
CANDELA_API candela_status_t candela_request_wait(candela_request_t* request, uint64_t timeout_ns,
                                                  char* error, size_t error_size);
/* 1 when it is done.
 * Threads: any. */
CANDELA_API int candela_request_done(const candela_request_t* request);
/* Ends it with CANDELA_CANCELLED, unless it is done; what a device is doing is given up where
 * its backend can. It is done when nothing touches its memory any more: wait for that.
 * Threads: any. */
CANDELA_API void candela_request_cancel(candela_request_t* request);
/* Describes an output of a request that succeeded: its type and dims, and its data where the
 * library allocated it.
 * Ownership: the data is the request's
 * Threads: any
 * Errors: CANDELA_INVALID_ARGUMENT not done, failed, or no such output
 * Lifetime: the data until candela_request_free */
CANDELA_API candela_status_t candela_request_output(const candela_request_t* request,
                                                    uint32_t index, candela_tensor_t* output);
/* Gives up the handle; NULL is allowed. The request goes on.
 * Threads: last. */
CANDELA_API void candela_request_free(candela_request_t* request);

/* What a session did and how its copies fare, as JSON (schema candela.session/1): submitted,
 * succeeded, failed, cancelled, timed_out, repeated (on another copy, when a device was lost),
 * open, most_open, native_instructions, emulated_instructions, host_instructions, staged_bytes
 * (through memory of the host, between devices that see neither each other's memory nor the
 * host's), device_copies and device_copied_bytes (by devices), copies [{devices, lost, why,
 * requests, active, busy_ms, memory_bytes}].
 * Ownership: the text is the caller's, for candela_free_text
 * Threads: any
 * Errors: NULL
 * Lifetime: until it is freed */
CANDELA_API char* candela_session_stats_json(const candela_session_t* session);

/* What requests did since the last call, with CANDELA_SESSION_TRACE, as Chrome trace JSON for
 * ui.perfetto.dev: a process for each device of each copy, a track for each execution that it
 * may have at the same time. The caller frees it with candela_free_text.
 * Threads: any. */
CANDELA_API char* candela_session_trace_json(candela_session_t* session);

#ifdef __cplusplus
}
#endif

#endif
