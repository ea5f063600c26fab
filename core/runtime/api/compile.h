#pragma once

#include <functional>

#include "core/runtime/api/model.h"

/// How models come to be: compiled from what a caller has, or opened from bundles.
namespace candela::runtime::api {

/// A model that is to be compiled.
struct Source {
  std::string path; ///< in messages and reports
  std::function<Result<driver::Loaded>(const import::ImportOptions& options)> load;
};

/// Fills a model that createModel() made. Failures name what is wrong in the caller's words.
Status compileModel(candela_model& model, const Source& source, const candela_options_t* given);
Status openBundle(candela_model& model, bundle::Bundle bundle, const std::string& path);

/// Makes a model, lets `fill` fill it and finishes it; *out is the caller's.
Status createModel(candela_model_t** out, const char* path,
                   const std::function<Status(candela_model&)>& fill);

} // namespace candela::runtime::api
