#pragma once

#include <set>
#include <string>
#include <string_view>

namespace candela::tool {

/// A name as C spells it: what is no letter, digit or _ becomes _, and a word of C or C++ gets one
/// more behind it.
std::string nameInC(std::string_view name);
/// Whether nameInC() would leave it as it is.
bool isNameInC(std::string_view name);
/// The same in capitals, for macros.
std::string macroName(std::string_view name);

/// Names in one struct: each once.
class FieldNames {
public:
  std::string add(std::string_view name);

private:
  std::set<std::string> used_;
};

/// A text as a comment or a literal of C holds it: printable ASCII, without the end of either.
std::string textInC(std::string_view text);

} // namespace candela::tool
