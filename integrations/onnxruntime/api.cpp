#include "integrations/onnxruntime/api.h"

#include <cstdlib>

namespace candela::ort {

using namespace abi;

ErrorCode codeOf(candela_status_t status) {
  switch (status) {
  case CANDELA_INVALID_ARGUMENT: return ErrorCode::InvalidArgument;
  case CANDELA_NOT_FOUND: return ErrorCode::NotFound;
  case CANDELA_UNSUPPORTED: return ErrorCode::NotImplemented;
  case CANDELA_BAD_MODEL: return ErrorCode::InvalidGraph;
  case CANDELA_IO: return ErrorCode::NoSuchFile;
  default: return ErrorCode::EpFail;
  }
}

Api::Api(const OrtApiBase& base) {
  api_ = base.GetApi(kApiVersion);
  if (!api_)
    throw Failure(ErrorCode::NotImplemented,
                  "Candela needs version " + std::to_string(kApiVersion) +
                      " of the API of ONNX Runtime, of release 1." + std::to_string(kApiVersion) +
                      "; this one is " + base.GetVersionString());
  // Asking an older release for a version that it has not is a message on its standard error.
  const std::string release = base.GetVersionString();
  const int minor = release.rfind("1.", 0) == 0 ? std::atoi(release.c_str() + 2) : 0;
  for (const uint32_t version : {kApiVersionOfRanks, kApiVersionOfProfiles}) {
    const OrtApi* const later = minor >= static_cast<int>(version) ? base.GetApi(version) : nullptr;
    if (!later) continue;
    api_ = later;
    version_ = version;
  }
  ep_ = call(GetEpApi);
  editor_ = call(GetModelEditorApi);
  if (!ep_)
    throw Failure(ErrorCode::NotImplemented,
                  "this ONNX Runtime was built without execution providers of others");
  const auto probe =
      owned(*this, get<OrtOpAttr*>(CreateOpAttr, "probe", "text", 4, AttributeType::String),
            ReleaseOpAttr);
  behindText_ = sizeOf(probe.get(), AttributeType::String) - 4;
}

size_t Api::sizeOf(const OrtOpAttr* attribute, AttributeType type) const {
  size_t size = 0;
  // With no room it fails and says how much it needs; what needs none succeeds.
  OrtStatus* const refused =
      abi::function(api_, ReadOpAttr)(attribute, type, nullptr, size_t(0), &size);
  if (refused) call(ReleaseStatus, refused);
  return size;
}

std::string Api::contentOf(const OrtOpAttr* attribute, AttributeType type) const {
  size_t size = sizeOf(attribute, type);
  std::string content(size + 1, '\0'); // some write a zero that they do not count
  if (size > 0)
    call(ReadOpAttr, attribute, type, static_cast<void*>(content.data()), size + 1, &size);
  content.resize(size);
  if (type == AttributeType::String && size >= behindText_) content.resize(size - behindText_);
  return content;
}

void Api::check(OrtStatus* status) const {
  if (!status) return;
  const std::string message = call(GetErrorMessage, status);
  call(ReleaseStatus, status);
  throw Failure(ErrorCode::EpFail, "ONNX Runtime: " + message);
}

OrtStatus* Api::status(ErrorCode code, const char* message) const {
  return abi::function(api_, CreateStatus)(code, message);
}

void Api::log(const OrtLogger* logger, Severity severity, const std::string& message) const {
  if (!logger) return;
  OrtStatus* const status = abi::function(api_, Logger_LogMessage)(
      logger, severity, message.c_str(), "candela", 0, "candela");
  if (status) call(ReleaseStatus, status);
}

} // namespace candela::ort
