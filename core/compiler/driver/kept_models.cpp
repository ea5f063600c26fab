#include "core/compiler/driver/kept_models.h"

#include <sys/stat.h>

#include "core/compiler/import/import.h"
#include "core/support/file.h"
#include "core/support/mapped_file.h"

namespace candela::driver {

namespace {

thread_local KeptModels* innermostKept = nullptr;

bool isSameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

} // namespace

struct KeptModels::Known {
  struct stat info{};
  std::shared_ptr<const import::onnx_io::Model> model;
};

KeptModels::KeptModels() : outer_(innermostKept) { innermostKept = this; }
KeptModels::~KeptModels() { innermostKept = outer_; }

Result<std::shared_ptr<const import::onnx_io::Model>> KeptModels::parsed(const std::string& path) {
  const auto parse = [&]() -> Result<std::shared_ptr<const import::onnx_io::Model>> {
    CDL_ASSIGN(const Bytes content, mapFile(path));
    CDL_ASSIGN(import::onnx_io::Model model, import::parseModel(content, path));
    return std::make_shared<const import::onnx_io::Model>(std::move(model));
  };
  struct stat info{};
  const bool isKept = innermostKept && stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
                      static_cast<uint64_t>(info.st_size) <= kCopiedBytes;
  if (!isKept) return parse();
  Known& known = innermostKept->known_[path];
  if (known.model && isSameFile(known.info, info)) return known.model;
  FileWatch watch;
  CDL_ASSIGN(std::shared_ptr<const import::onnx_io::Model> model, parse());
  if (!watch.take().empty()) return model;
  known.info = info; // of before: what changed meanwhile is read again
  return known.model = std::move(model);
}

} // namespace candela::driver
