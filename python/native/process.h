#pragma once

#include <cstdint>

#include <pybind11/pybind11.h>

/// What happens to objects of this module when their process forks or ends.
///
/// A child of fork has none of its parent's threads, and locks that they held stay locked there: it
/// refuses what its parent made, by name, and leaves that memory alone. An interpreter that ends
/// waits until no thread is in the library; nothing begins then.
namespace candela::python {

namespace py = pybind11;

/// Which process of a line of forks this is.
uint32_t processGeneration();

/// Throws sdk::Error with CANDELA_INVALID_ARGUMENT where `generation` is that of a parent. `what`
/// names the object: "the session".
void checkProcess(uint32_t generation, const char* what);

/// A call of the library without the interpreter's lock. Throws sdk::Error with CANDELA_CANCELLED
/// where the interpreter ends.
class Outside {
public:
  Outside();
  ~Outside();
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

private:
  PyThreadState* thread_;
};

/// From now on Outside throws; returns when no thread is in one. With the interpreter's lock.
void endCalls();

} // namespace candela::python
