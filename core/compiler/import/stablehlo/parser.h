#pragma once

#include <map>
#include <string>

#include "core/compiler/import/stablehlo/program.h"
#include "core/compiler/import/stablehlo/scanner.h"

namespace candela::import::stablehlo {

/// Reads types and the values of attributes.
class AttributeParser {
public:
  AttributeParser(Scanner& scanner, const std::map<std::string, std::string_view>& resources)
      : scanner_(scanner), resources_(resources) {}

  Type type();
  /// Types between commas, maybe in parentheses.
  std::vector<Type> types();
  /// A value; behind a number its type may stand, if `takesType`.
  Attribute value(bool takesType);
  /// Entries between brackets, the first of which is behind the scanner.
  Attribute entries(std::string_view close);
  /// {...} where it comes next: its entries join `attributes`.
  void dictionary(std::map<std::string, Attribute, std::less<>>& attributes);

private:
  class Nested; ///< counts how deep values are nested
  Attribute chain(Attribute first);
  Attribute list(std::string_view close);
  Attribute numberValue(bool takesType);
  Attribute elements(bool isResource);
  Attribute array();
  Attribute dialectValue();
  Attribute wordValue();

  Scanner& scanner_;
  const std::map<std::string, std::string_view>& resources_;
  int depth_ = 0;
};

/// Reads functions and operations.
class Parser {
public:
  explicit Parser(std::string_view text);
  Program read();

private:
  class Nested; ///< counts how deep regions are nested
  void readModule(Program& program);
  void readTopLevel(Program& program, const char* close);
  void readFunction(Program& program);
  void readGeneric(Program& program);
  void addFunction(Program& program, Function function);
  void readArguments(Function& function);
  void readResults(Function& function);

  Operation operation();
  void resultNames(Operation& op, std::vector<int64_t>& counts);
  std::string valueName();
  void genericForm(Operation& op);
  void prettyForm(Operation& op);
  bool piece(Operation& op);
  void namedPiece(Operation& op);
  void sliceRanges(Operation& op);
  void constant(Operation& op);
  void reduce(Operation& op);
  void reducer(Operation& op, size_t inputs);
  void loop(Operation& op);
  void resultTypes(Operation& op);
  Region region();
  void operations(Region& region);
  Argument argument();
  void countResults(Operation& op, const std::vector<int64_t>& counts);

  Scanner scanner_;
  std::map<std::string, std::string_view> resources_;
  AttributeParser attributes_;
  int depth_ = 0;
};

} // namespace candela::import::stablehlo
