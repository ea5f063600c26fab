#pragma once

#include <cstdint>

#include "candela/cdl.h"

namespace candela::conformance::mutants {

/// What stands behind the shim: another backend of this process. Before the shim is asked for, and
/// not changed while a device of it is open.
void setShimBase(cdl_backend_query_fn base);

/// The backend that was set, with a fault at its slots. Its devices have two more options: `shim`
/// says what, and `shim_at` which call, from 1 (0: always).
///   none            nothing
///   out_of_memory   the at-th memory_create has no memory
///   device_lost     from the at-th call on, every one answers so
///   timeout         the at-th queue_wait answers so
///   error           the at-th call is refused as internal
///   unknown_code    the at-th call answers 999
///   null_memory     memory_create succeeds without memory
///   null_queue      queue_create succeeds without a queue
///   late            what was submitted is done when the queue is waited for once more, or read by
///                   itself
///   unordered       a read does not wait for what was submitted before
///   reversed        what was submitted runs backwards
///   partial_write, partial_read, partial_copy    the last byte is missing
///   wait_lies       a wait for a value that was not reached succeeds at once
///   lost_code       what was refused is called a success
///   wrong_code      what was refused is called internal
///   no_message      what was refused has no message
///   long_message    the message is longer than its room
///   map_copy        a map is a copy of its own
///   leak            memory is given back when the device is closed
cdl_code_t shimQuery(const cdl_host_t* host, cdl_plugin_t* out, cdl_error_t* error);

/// Objects of shims that were made and not yet destroyed.
struct ShimObjects {
  uint64_t devices = 0, memory = 0, queues = 0, executables = 0;
  bool operator==(const ShimObjects&) const = default;
};
ShimObjects shimObjects();
/// Calls that shims have counted.
uint64_t shimCalls();

} // namespace candela::conformance::mutants
