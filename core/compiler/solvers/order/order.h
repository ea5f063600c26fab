// The order of tasks for least peak memory, on numbers: tasks and buffers in, an order out. Knows
// no IR.
//
// Models a program as a graph of tasks, each of which takes bytes (its hill) and leaves bytes
// behind (its net). The least peak is that of register allocation or pebbling, NP-hard in general
// (R. Sethi, "Complete Register Allocation Problems", 1975), and easy for trees and series-parallel
// graphs (J. Liu, "An Application of Generalized Tree Pebbling to Sparse Matrix Factorization",
// 1987; merge.cpp). So a problem is first made smaller without loss and cut where every order has
// to pass (contract.cpp); each part gets good orders quickly (merge.cpp, beam.cpp), and is then
// searched exactly as far as the states go (exact.cpp).
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/support/status.h"

namespace candela::solvers::order {

/// Takes its bytes from the first step that touches it to the end of the last one. What no step
/// touches must be live at both ends or at none.
struct OrderBuffer {
  uint64_t bytes = 0;
  bool liveIn = false;  ///< holds something before the first task
  bool liveOut = false; ///< is needed behind the last one
};

struct OrderStep {
  std::vector<uint32_t> buffers; ///< that it touches, each once
  uint64_t transient = 0;        ///< bytes that it takes for itself while it runs
  /// (a, b) of equal size: where a is first touched here and b last, they lie at one place. At most
  /// one pair of a step.
  std::vector<std::pair<uint32_t, uint32_t>> inPlace;
};

/// Steps that run one after the other, with nothing in between.
struct OrderTask {
  std::vector<OrderStep> steps;
  std::vector<uint32_t> after; ///< tasks of lower index that must have run
};

/// The tasks stand in an order that is allowed.
struct OrderProblem {
  std::vector<OrderBuffer> buffers;
  std::vector<OrderTask> tasks;
  uint64_t base = 0; ///< bytes that are taken all the time
};

struct OrderOptions {
  /// that the exact search may look at, in all, large ones counted more than once; 0: none
  uint64_t states = 20'000;
  uint32_t width = 32; ///< states that the beam keeps for each number of tasks; at least 1
};

struct OrderPlan {
  std::vector<uint32_t> order; ///< indices of tasks
  uint64_t peak = 0;           ///< bytes, of that order
  bool optimal = false;        ///< no order has a lower peak
  uint64_t states = 0;         ///< that the exact search looked at
};

/// An order with the lowest peak that was found: the tasks' own unless another one is lower. The
/// same problem always gets the same plan. Fails with invalid_argument on a malformed problem,
/// naming task and buffer by index. Any thread.
Result<OrderPlan> planOrder(const OrderProblem& problem, const OrderOptions& options = {});

/// The most bytes taken at once when the tasks run in this order, which must be allowed.
uint64_t peakOf(const OrderProblem& problem, std::span<const uint32_t> order);

/// No order has a peak below it: what the most demanding step touches.
uint64_t lowerBound(const OrderProblem& problem);

} // namespace candela::solvers::order
