// The parts of an instruction, on threads that the caller lends.
//
// A unit computes elements of the result that no other one writes, each as it would be alone, so
// that the bits do not depend on who computes what, nor on how many there are.
#pragma once

#include <algorithm>
#include <atomic>
#include <optional>

#include "candela/backend/parallel.hpp"
#include "core/runtime/host_executor/operand.h"
#include "core/runtime/host_executor/soft.h"

namespace candela::runtime::host_executor {

inline int64_t ceilDiv(int64_t value, int64_t unit) { return (value + unit - 1) / unit; }

inline int64_t threadsOf(const Workers* workers) { return workers ? workers->threads : 1; }

/// How many of `count` like things are a unit, each of `steps`.
inline int64_t unitSize(const Workers& workers, int64_t count, int64_t steps) {
  return std::clamp<int64_t>(workers.partSteps / std::max<int64_t>(steps, 1), 1,
                             std::max<int64_t>(count, 1));
}

/// Whether units may write parts of this result at the same time: no element lies in two places of
/// it, or in a byte with another one.
bool hasOwnPlaces(const Operand& result);

/// Units that threads take: each its own range first, which lies where its range of the instruction
/// before lay, so that results mostly are in its cache, and then what others have not begun.
class Units {
public:
  Units(int64_t units, int64_t threads) : ranges_(static_cast<size_t>(threads)) {
    for (int64_t t = 0; t < threads; ++t) {
      ranges_[static_cast<size_t>(t)].next = units * t / threads;
      ranges_[static_cast<size_t>(t)].end = units * (t + 1) / threads;
    }
  }
  /// Calls body(unit) for all that thread t gets, on one copy of `body`.
  template <class Body> void work(size_t t, const Body& body) {
    std::optional<Body> own;
    for (size_t k = 0; k < ranges_.size(); ++k) {
      Range& range = ranges_[(t + k) % ranges_.size()];
      for (int64_t u = range.next.fetch_add(1); u < range.end; u = range.next.fetch_add(1)) {
        if (!own) own.emplace(body);
        (*own)(u);
      }
    }
  }

private:
  struct Range {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
    int64_t apart[6] = {}; // one range of a thread in a line of the cache
  };
  Scratch<Range> ranges_;
};

/// Calls body(unit) once for each of 0 .. units - 1, in any order. A thread that takes several uses
/// one copy of `body`, which may hold what is not to be shared. `workers` may be null.
template <class Body> void shareUnits(const Workers* workers, int64_t units, Body body) {
  const int64_t threads = std::min(threadsOf(workers), units);
  if (threads < 2) {
    for (int64_t unit = 0; unit < units; ++unit) body(unit);
    return;
  }
  struct {
    Units units;
    const Body& body;
  } shared{{units, threads}, body};
  // a capture that std::function needs no memory for
  cdl::parallelFor(*workers->host, static_cast<uint32_t>(threads),
                   [&shared](uint32_t t) { shared.units.work(t, shared.body); });
}

/// The same for things 0 .. count - 1 of `steps` each: body(first, end), of as many as are worth
/// it, and alike for the threads.
template <class Body>
void shareRange(const Workers* workers, int64_t count, int64_t steps, Body body) {
  if (threadsOf(workers) < 2) return body(int64_t{0}, count);
  int64_t units = ceilDiv(count, unitSize(*workers, count, steps));
  if (units > threadsOf(workers)) units -= units % threadsOf(workers);
  const int64_t size = ceilDiv(count, std::max<int64_t>(units, 1));
  shareUnits(workers, units, [size, count, body = std::move(body)](int64_t unit) mutable {
    const int64_t first = std::min(count, unit * size);
    body(first, std::min(count, first + size));
  });
}

/// What an instruction computes as a matrix of results.
struct Grid {
  int64_t rows, columns;
  int64_t steps;         ///< of each result
  int64_t narrowest = 1; ///< columns that a unit has at least
};

/// Calls body(row, first column, end) for parts that make up the grid, of as many columns as are
/// worth it.
template <class Body> void shareGrid(const Workers* workers, const Grid& grid, Body body) {
  const int64_t columns = std::max<int64_t>(grid.columns, 1);
  if (threadsOf(workers) < 2) {
    for (int64_t row = 0; row < grid.rows; ++row) body(row, int64_t{0}, grid.columns);
    return;
  }
  const int64_t narrowest = std::min(grid.narrowest, workers->partSteps);
  const int64_t width =
      std::min(std::max(unitSize(*workers, columns, grid.steps), narrowest), columns);
  const int64_t parts = ceilDiv(columns, width);
  shareRange(workers, grid.rows * parts, width * std::max<int64_t>(grid.steps, 1),
             [grid, width, parts, body = std::move(body)](int64_t first, int64_t end) mutable {
               for (int64_t p = first; p < end; ++p) {
                 const int64_t from = p % parts * width;
                 body(p / parts, from, std::min(from + width, grid.columns));
               }
             });
}

} // namespace candela::runtime::host_executor
