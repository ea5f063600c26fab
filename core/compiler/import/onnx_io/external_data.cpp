#include "core/compiler/import/onnx_io/external_data.h"

#include <algorithm>
#include <filesystem>

#include "core/support/file.h"

namespace candela::import::onnx_io {

namespace fs = std::filesystem;

ExternalData::ExternalData(const std::string& modelPath)
    : folder_(fs::path(modelPath).has_parent_path() ? fs::path(modelPath).parent_path().string()
                                                    : ".") {}

Result<Bytes> ExternalData::read(const std::string& location, uint64_t offset,
                                 std::optional<uint64_t> declared, uint64_t size) {
  CDL_ASSIGN(Bytes bytes, map(location));
  if (declared && *declared != size)
    return badModel("external data '{}' declares {} bytes but the tensor needs {}", location,
                    *declared, size);
  if (offset > bytes.size() || size > bytes.size() - offset)
    return badModel("external data '{}' has {} bytes but the tensor needs {} from offset {}",
                    location, bytes.size(), size, offset);
  return bytes.slice(offset, size);
}

Result<Bytes> ExternalData::map(const std::string& location) {
  if (const auto known = files_.find(location); known != files_.end()) return known->second;
  if (location.empty()) return badModel("external data without a location");
  if (std::any_of(location.begin(), location.end(),
                  [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
    return badModel("the location of external data is not printable");
  const fs::path relative(location);
  if (relative.is_absolute()) return badModel("external data '{}' has an absolute path", location);
  if (std::find(relative.begin(), relative.end(), "..") != relative.end())
    return badModel("external data '{}' leaves the model's folder with '..'", location);
  std::error_code error;
  const fs::path folder = fs::canonical(folder_, error);
  if (error) return failure(Code::io, "cannot resolve folder '{}': {}", folder_, error.message());
  const fs::path file = fs::canonical(folder / relative, error);
  if (error == std::errc::no_such_file_or_directory)
    return failure(Code::not_found, "external data '{}' does not exist in folder '{}'", location,
                   folder_);
  if (error)
    return failure(Code::io, "cannot resolve external data '{}': {}", location, error.message());
  if (std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first != folder.end())
    return badModel("external data '{}' is a symbolic link out of the model's folder", location);
  // Opening a pipe would wait for its writer.
  if (!fs::is_regular_file(file, error))
    return badModel("external data '{}' is not a regular file", location);
  CDL_ASSIGN(Bytes bytes, mapFile(file.string()));
  files_[location] = bytes;
  return bytes;
}

} // namespace candela::import::onnx_io
