#pragma once

#include "conformance/family.h"
#include "conformance/trial_builder.h"
#include "core/compiler/capabilities/rows.h"

/// What the families of element-wise instructions have in common.
namespace candela::conformance::tiers::primitives {

/// One instruction as an address says it.
struct Call {
  uint16_t kind = 0, fn = 0;
  std::vector<Elem> operands;
  Elem result = Elem::none;
  std::vector<TrialBuilder::Fill> fills = {}; ///< of each operand
  std::vector<program::Attr> attrs = {};
};

/// Rows that are asked about in one way. Views are lists of forms (trial_builder.h), operands
/// first, the result last: "dense,broadcast,dense". Besides, an operand may be "same" or "shifted":
/// the view before it, or that one an element further; the result "in0": in place of operand 0; or
/// "beside", "between": in its buffer, behind it or between its elements.
struct Part {
  std::vector<std::string> rows, shapes, views, data;
  std::vector<Axis> before = {};              ///< axes that stand before shape, view and data
  std::vector<std::string> typicalViews = {}; ///< what quick takes; empty: all
  std::vector<std::string> typicalData = {};  ///< what quick takes; empty: all
  /// of other combinations so many count, by the hash of their address
  unsigned oneIn = 1, oneInDense = 1;
  Budget budget = {};
};

/// What stands in an address, as a call; its fills too.
using CallOf = std::function<Call(const Choice&)>;

/// The cases of each part, of which the next ones do not repeat an address.
std::vector<Case> elementwiseCases(const std::string& stem, const std::vector<Part>& parts,
                                   const CallOf& call, const Selection& selection);

/// What a plain row is asked: 17 shapes.
std::vector<std::string> manyShapes();
/// What the others are asked.
std::vector<std::string> fewShapes();

/// Which profiles rows are required by: those that stand alone, or those beside float ones.
enum class ProfilesOf { alone, beside };
/// Rows of the kind that some such profile requires, as `text` writes them, each once. The families
/// ask for the two sorts apart, so that what has none of the second is asked as much of the first.
std::vector<std::string>
requiredTexts(uint16_t kind,
              const std::function<std::string(const capabilities::RequiredRow&)>& text,
              ProfilesOf profiles = ProfilesOf::alone);
/// All types that can be computed with.
std::span<const Elem> arithmeticElems();
/// The rows but those that stand in the other list.
std::vector<std::string> without(std::vector<std::string> rows,
                                 const std::vector<std::string>& other);

/// "add_f32": a function of the kind, and a type.
struct FnAndElem {
  uint16_t fn;
  Elem elem;
};
FnAndElem fnAndElem(uint16_t kind, const std::string& row);
std::string rowText(uint16_t kind, uint16_t fn, Elem elem);
/// Of a required row, by its first operand.
std::string rowText(const capabilities::RequiredRow& row);

/// A part of few combinations, all of which stand in `full`: what nothing else there would find.
Part witnesses(std::vector<std::string> rows, std::vector<std::string> shapes,
               std::vector<std::string> views, std::vector<std::string> data);

/// A part with instructions inside of `for`.
Part inLoops(std::vector<std::string> rows, std::vector<std::string> views,
             std::vector<std::string> data, Budget budget);

} // namespace candela::conformance::tiers::primitives
