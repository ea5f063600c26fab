#include "python/native/process.h"

#include <pthread.h>

#include <atomic>

#include <candela/candela.hpp>

namespace candela::python {
namespace {

std::atomic<uint32_t> generation = 0;
std::atomic<uint32_t> callsOutside = 0;
std::atomic<bool> interpreterEnds = false;

void beginChild() {
  ++generation;
  callsOutside = 0;
}

} // namespace

uint32_t processGeneration() {
  static const int registered = pthread_atfork(nullptr, nullptr, beginChild);
  (void)registered;
  return generation.load(std::memory_order_relaxed);
}

void checkProcess(uint32_t made, const char* what) {
  if (made == processGeneration()) return;
  throw sdk::Error(CANDELA_INVALID_ARGUMENT,
                   std::string(what) +
                       " was made before this process was forked: make it in the child");
}

Outside::Outside() {
  if (interpreterEnds)
    throw sdk::Error(CANDELA_CANCELLED, "the interpreter ends: no call begins any more");
  ++callsOutside;
  thread_ = PyEval_SaveThread();
}

Outside::~Outside() {
  PyEval_RestoreThread(thread_);
  --callsOutside;
  callsOutside.notify_all();
}

void endCalls() {
  interpreterEnds = true;
  // Whoever leaves a call takes the interpreter's lock first, so it is lent meanwhile.
  const py::gil_scoped_release release;
  for (uint32_t left = callsOutside; left != 0; left = callsOutside) callsOutside.wait(left);
}

} // namespace candela::python
