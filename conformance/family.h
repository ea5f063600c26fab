#pragma once

#include <map>

#include "conformance/case.h"

/// Cases that are a product of rows and parameters, and samples of it.
namespace candela::conformance {

/// One value of each axis, by the axis' name.
using Choice = std::map<std::string, std::string, std::less<>>;

struct Axis {
  std::string name; ///< "shape"
  std::vector<std::string> values;
};

struct Family {
  std::string stem;              ///< "primitives:binary/"
  std::vector<std::string> rows; ///< "add_f32", ...; the choice has it as "row"
  std::vector<Axis> axes;        ///< slowest first
  /// Whether a combination means anything; null: all do.
  std::function<bool(const Choice&)> holds;
  std::function<CaseResult(const Choice&, Port&)> run;
  /// Whether a combination shows most of its row; null: all do. quick takes such ones, and full one
  /// for each row.
  std::function<bool(const Choice&)> isTypical = nullptr;
  /// What a combination shows that every row must be asked about whatever the size: a word, or
  /// nothing; null: nothing.
  std::function<std::string(const Choice&)> tells = nullptr;
};

/// How many cases a family has at most, by size; nightly has all.
struct Budget {
  size_t quick = 0; ///< 0: one for each row
  size_t full = 0;
};

/// nightly: the whole product, row by row. full: a case for each row, then one for each value, then
/// pairs of values that no case before it has, as many at once as possible, until every pair is
/// there or the budget is spent. quick: one case for each row, or of as many rows as the budget
/// says. Beyond the budget both have, of each row, one case for each thing that its combinations
/// tell. Order and choice depend on the selection alone. Addresses are stem + row + ":" +
/// "axis=value;axis=value".
std::vector<Case> expand(const Family& family, const Selection& selection, const Budget& budget);

} // namespace candela::conformance
