#pragma once

#include <cstddef>
#include <functional>

namespace candela {

/// Calls body(0) .. body(count - 1) at the same time, each on a thread of its own, and returns when
/// all are done. None is called before all threads are there. Throws what the first of them threw;
/// std::system_error, or std::bad_alloc, where the system does not give so many.
void atTheSameTime(size_t count, const std::function<void(size_t)>& body);

/// Calls body(0) .. body(count - 1) once each, body(0) on this thread and the others on threads of
/// their own, or on this one where the system gives fewer. Returns when all are done, and throws
/// what the first of them threw.
void onThreads(size_t count, const std::function<void(size_t)>& body);

} // namespace candela
