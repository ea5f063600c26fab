/// What a session says to this provider: the options of add_provider_for_devices, and those of the
/// session that concern it.
#ifndef CANDELA_INTEGRATIONS_ONNXRUNTIME_OPTIONS_H
#define CANDELA_INTEGRATIONS_ONNXRUNTIME_OPTIONS_H

#include <map>
#include <string>

#include "integrations/onnxruntime/api.h"

namespace candela::ort {

constexpr const char* kProviderName = "CandelaExecutionProvider";

struct ProviderOptions {
  sdk::Options compile;      ///< as the tool's --backend, --option and so on
  bool namesBackend = false; ///< whether the session says a backend
  bool takesHost = false;    ///< what no backend takes runs on Candela's host: "soft" is a backend
  std::string trace;         ///< a file for the traces of the newest runs; empty: none
  bool makesContext = false; ///< whether the session writes a model of compiled parts
  bool embedsContext = true; ///< whether these lie in that model; else in files beside it
  std::string contextPath;   ///< of that model; empty: ONNX Runtime names it after the model
};

/// From the configuration of a session, by key. Throws Failure, with the keys that there are.
ProviderOptions optionsOf(const std::map<std::string, std::string>& configuration);
/// The configuration of a session, by key.
std::map<std::string, std::string> configurationOf(const Api& api,
                                                   const abi::OrtSessionOptions* session);
/// Compiles one node for the backends, so that those which there are not and options that they do
/// not have are an error where the session is made. Throws sdk::Error.
void checkBackends(const ProviderOptions& options);

} // namespace candela::ort

#endif
