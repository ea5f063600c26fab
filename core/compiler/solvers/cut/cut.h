// Labels for items, so that what the items cost and what values pay to pass between labels is
// least. Knows no IR.
//
// With two labels the sum is the capacity of a cut: items on the source's side have one label, the
// others the other one (H. Stone, "Multiprocessor Scheduling with the Aid of Network Flow
// Algorithms", 1977). A value that many items read is paid for once by a node of its own between
// them. With more labels the problem is NP-hard; then each label in turn takes from the others the
// items that lower the sum most, which is a least cut again (Y. Boykov, O. Veksler and R. Zabih,
// "Fast Approximate Energy Minimization via Graph Cuts", 2001), until no label gains; then single
// items are held elsewhere to see whether the rest follows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/support/status.h"

namespace candela::solvers::cut {

/// The cost of a label that an item must not have.
inline constexpr uint64_t kForbidden = UINT64_MAX;
/// In the place of an item: the world around the problem, which has no label.
inline constexpr uint32_t kOutside = UINT32_MAX;

/// Something that one item makes and others read.
struct CutValue {
  uint32_t producer = kOutside;
  std::vector<uint32_t> readers; ///< each once
  bool isReadOutside = false;
  /// by label: paid once where a reader has another label than the producer
  std::vector<uint64_t> leave;
  /// by label: paid once where a reader has this one and the producer has not
  std::vector<uint64_t> enter;
};

/// `item` may have `label` only where `leader` has it.
struct CutTie {
  uint32_t item = 0, leader = 0, label = 0;
};

struct CutProblem {
  uint32_t labels = 0;
  std::vector<std::vector<uint64_t>> costs; ///< by item and label
  std::vector<CutValue> values;
  std::vector<CutTie> ties;
};

struct CutOptions {
  /// items and values that networks of the search behind the first descent may hold, in all; 0: no
  /// search. Two labels need none.
  uint64_t work = 200'000;
};

struct CutPlan {
  std::vector<uint32_t> labels; ///< by item
  uint64_t cost = 0;
  bool isOptimal = false; ///< no other labels cost less
};

/// The sum, or kForbidden.
uint64_t costOf(const CutProblem& problem, std::span<const uint32_t> labels);

/// The best labels that were found from these, which must be allowed: never worse than they are.
/// The same problem and start always get the same plan. Fails with invalid_argument on a malformed
/// problem or start, naming item and value by index. Any thread.
Result<CutPlan> leastCut(const CutProblem& problem, std::span<const uint32_t> start,
                         const CutOptions& options = {});

/// What leastCut() and planStages() refuse.
Status checkProblem(const CutProblem& problem);

} // namespace candela::solvers::cut
