#pragma once

#include <map>
#include <string>

#include "core/compiler/quantize/observer.h"

namespace candela::quantize {

/// What the values of a model were on some data, by their names in the ONNX file: these stay the
/// same whatever a compiler does with the model.
struct Profile {
  std::string model; ///< fingerprint of the model, as modelFingerprint() gives it
  uint64_t samples = 0;
  std::map<std::string, Observer> values;

  /// Version 1 of the text form: a line for each fact, sorted by name.
  std::string text() const;
  /// Failure: bad_model, with file and line.
  static Result<Profile> parse(std::string_view text, const std::string& file);
  /// Failure: invalid_argument where it is of another model.
  Status merge(const Profile& other, const std::string& file);
};

} // namespace candela::quantize
