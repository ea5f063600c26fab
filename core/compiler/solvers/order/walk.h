#pragma once

#include "core/compiler/solvers/order/order.h"

/// What the files of this folder share. Not for others.
namespace candela::solvers::order {

/// After some tasks have run: which, what that holds, and what may come next.
struct WalkState {
  std::vector<uint64_t> done;  ///< one bit per task
  std::vector<uint32_t> ready; ///< tasks that may run now, in the order in which they became so
  uint64_t live = 0, peak = 0; ///< bytes
};

/// What running a task in some state would do.
struct Effect {
  uint64_t hill = 0; ///< the most bytes taken while it runs
  uint64_t live = 0; ///< bytes behind it
};

/// The state space of a problem: sets of finished tasks, and what one more task does to them. What
/// is taken follows from the set alone, whatever the order it was reached in. The problem must
/// outlive it.
class Walk {
public:
  explicit Walk(const OrderProblem& problem);

  const OrderProblem& problem() const { return problem_; }
  /// The state in which nothing has run. The peak of every state is at least `bound`.
  WalkState start(uint64_t bound) const;
  Effect effectOf(const WalkState& state, uint32_t task) const;
  /// The task must be ready.
  void run(WalkState& state, uint32_t task, const Effect& effect) const;
  /// Runs the tasks that raise neither the peak nor the bytes that are live: no order loses by
  /// that. Appends them to `tasks`.
  void settle(WalkState& state, std::vector<uint32_t>& tasks) const;

private:
  struct Touch {
    uint32_t buffer = 0;
    bool first = false, last = false; ///< of its task's
  };
  struct Step {
    std::vector<Touch> touches;
    const OrderStep* step = nullptr;
  };
  bool isDone(const WalkState& state, uint32_t task) const {
    return state.done[task / 64] >> (task % 64) & 1;
  }
  bool isNew(const WalkState& state, uint32_t buffer) const;
  bool isLast(const WalkState& state, uint32_t buffer, uint32_t task) const;

  const OrderProblem& problem_;
  std::vector<std::vector<Step>> tasks_;
  std::vector<std::vector<uint32_t>> touchers_; ///< tasks, by buffer
  std::vector<std::vector<uint32_t>> users_;    ///< tasks that stand behind a task
};

/// The tasks between two places of an order as a problem of its own: what is touched before comes
/// in, what is touched behind goes out. Tasks keep their order.
OrderProblem partOf(const OrderProblem& problem, std::span<const uint32_t> order, size_t begin,
                    size_t end);

/// The tasks the other way round: an order read from its end has the same peak.
OrderProblem reversed(const OrderProblem& problem);

/// The tasks in this order, which must be allowed.
OrderProblem reordered(const OrderProblem& problem, std::span<const uint32_t> order);

/// Which tasks of the problem before one task of this problem stands for, in order.
struct Contraction {
  OrderProblem problem;
  std::vector<std::vector<uint32_t>> members;
};
/// Makes one task of a task and the only one behind it, where the first takes memory that the
/// second needs and gives none back; and the same the other way round. The least peak stays what it
/// was.
Contraction contract(const OrderProblem& problem);

/// Places of the tasks' own order before which it falls apart: all before such a place run before
/// all behind it, in every order. Ascending, without 0 and the end.
std::vector<size_t> cutsOf(const OrderProblem& problem);

/// An order by beam search: of all states that one more task leads to, the best `width` go on.
/// byLive: those that hold least; else those with the lowest peak, where peaks below `bound` are as
/// good as that.
std::vector<uint32_t> beamOrder(const OrderProblem& problem, uint64_t bound, uint32_t width,
                                bool byLive);

/// An order from the orders of series and parallel parts, merged (merge.cpp). It is the best where
/// every task takes and gives the same bytes in all orders; what a task takes and gives is what it
/// does in the tasks' own order.
std::vector<uint32_t> mergedOrder(const OrderProblem& problem);

struct ExactResult {
  std::vector<uint32_t> order; ///< empty: none is below `ceiling`, or the states ran out
  bool complete = false;       ///< the states were enough
};
/// The best order whose peak is below `ceiling`, by best-first search over sets of finished tasks.
/// Peaks up to `bound` are as good as that. Looks at `states` sets at most, and takes those that it
/// looked at from there.
ExactResult exactOrder(const OrderProblem& problem, uint64_t bound, uint64_t ceiling,
                       uint64_t& states);

} // namespace candela::solvers::order
