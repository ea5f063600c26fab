#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/compiler/import/formats.h"

/// Model files that are read again and again.
namespace candela::driver {

/// While one lives, files that loadAny() reads on this thread stay parsed, and are taken from here
/// as long as the path leads to a file of the same number, size and time; small files beside it are
/// taken as they were. For models that are copied when they are read (core/support/mapped_file.h):
/// where something is mapped, sessions look at the file.
class KeptModels {
public:
  KeptModels();
  ~KeptModels();
  KeptModels(const KeptModels&) = delete;
  KeptModels& operator=(const KeptModels&) = delete;

  /// The file parsed, by the innermost one of this thread if there is one. Failures: those of
  /// mapFile and import::parseModel.
  static Result<std::shared_ptr<const import::onnx_io::Model>> parsed(const std::string& path);

private:
  struct Known;
  KeptModels* const outer_;
  std::map<std::string, Known> known_; ///< by path
};

} // namespace candela::driver
