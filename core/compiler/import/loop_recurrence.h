#pragma once

#include <functional>

#include "core/compiler/import/term.h"

/// Recurrences: one step, written once over Terms, made as often as it must be or repeated by a
/// loop.
namespace candela::import {

/// What a step reads: values of the step before, one element of each scanned value, and what all
/// steps share.
struct StepInputs {
  std::vector<Term> carried, scanned, captured;
};
/// What a step gives: the carried values for the next one, in their types, and elements of what is
/// stacked. Of all steps: the final carried values, and whole stacks, their dim 0 being the trips.
struct StepResults {
  std::vector<Term> carried, stacked;
};
using StepBody = std::function<StepResults(const StepInputs&)>;

struct Recurrence {
  int64_t trips = 0;
  /// the initial carried values; scanned values whole, their dim 0 being the trips
  StepInputs inputs;
  /// from the last element to the first; absent: not
  std::vector<bool> scannedBackward = {}, stackedBackward = {};
};

/// The body must do the same whenever it is called, and reach values through what it is given
/// alone.
StepResults addRecurrence(Builder& build, const Recurrence& recurrence, const StepBody& body);

} // namespace candela::import
