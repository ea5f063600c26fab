#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/support/tensor.h"

/// A text of MLIR as plain structs: operations of any dialect, in whichever form they were printed.
namespace candela::import::stablehlo {

struct Type {
  Elem elem = Elem::none; ///< none: no tensor of ours; `refusal` says what it is
  Shape dims;
  std::string refusal; ///< "" where values of the type can be read

  bool operator==(const Type&) const = default;
  size_t rank() const { return dims.size(); }
  /// "f32[3,4]", or what it is instead
  std::string text() const { return refusal.empty() ? typeText(elem, dims) : refusal; }
};

/// The value of an attribute. `list` has the elements of a list, and the values of a dictionary,
/// whose `keys` stand beside it.
struct Attribute {
  enum class Kind : uint8_t { integer, number, text, word, list, dictionary, elements, opaque };
  Kind kind = Kind::opaque;
  int64_t integer = 0;
  double number = 0;
  std::string text; ///< of a text or word; of what is opaque, as it was written
  std::vector<std::string> keys;
  std::vector<Attribute> list;
  Type type;                 ///< of elements
  std::vector<Type> results; ///< of a type of functions
  Tensor elements;           ///< of a tensor; one element of rank 0 where all are alike

  /// Null where the dictionary has no such key.
  const Attribute* find(std::string_view key) const;
};

struct Operation;

struct Argument {
  std::string name;
  Type type;
};

struct Region {
  int64_t line = 0;
  std::vector<Argument> arguments;
  std::vector<Operation> operations; ///< the last one says what the region gives
};

/// Names of values are without their %: "5", "arg0", of the second result of several "5#1".
struct Operation {
  std::string name; ///< "stablehlo.add"
  int64_t line = 0;
  std::vector<std::string> operands, results;
  std::vector<std::string> words; ///< that stand alone: LT, FLOAT
  std::map<std::string, Attribute, std::less<>> attributes;
  std::vector<Region> regions;
  std::vector<Type> types; ///< of the results

  /// A word at this position, or the attribute that the generic form has in its place; "" where
  /// there is none.
  std::string word(std::string_view key, size_t position) const;
};

/// A function, and the dictionaries that stand beside its arguments and results.
struct Function {
  std::string name;
  bool isPublic = true;
  std::vector<Type> resultTypes;
  std::vector<Attribute> argumentNotes, resultNotes;
  Region body;
};

struct Program {
  std::string name;
  std::map<std::string, Function> functions;
};

/// The program of a text. Throws a Refusal, which names the line.
Program parseProgram(std::string_view text);

} // namespace candela::import::stablehlo
