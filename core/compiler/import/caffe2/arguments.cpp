#include "core/compiler/import/caffe2/arguments.h"

#include <net.pb.h>

namespace candela::import::caffe2 {

const proto::Argument* Arguments::find(const char* name) const {
  for (const proto::Argument& argument : op_.arg())
    if (argument.name() == name) return &argument;
  return nullptr;
}

int64_t Arguments::integer(const char* name, int64_t otherwise) const {
  const proto::Argument* found = find(name);
  if (!found) return otherwise;
  if (!found->has_i()) reject("argument '{}' is no integer", name);
  return found->i();
}

float Arguments::number(const char* name, float otherwise) const {
  const proto::Argument* found = find(name);
  if (!found) return otherwise;
  if (found->has_i()) return static_cast<float>(found->i()); // as writers leave whole numbers
  if (!found->has_f()) reject("argument '{}' is no number", name);
  return found->f();
}

std::string Arguments::text(const char* name, const char* otherwise) const {
  const proto::Argument* found = find(name);
  if (!found) return otherwise;
  if (!found->has_s()) reject("argument '{}' is no text", name);
  return found->s();
}

Ints Arguments::ints(const char* name) const {
  const proto::Argument* found = find(name);
  if (!found) return {};
  if (found->has_i() || found->has_f() || found->has_s())
    reject("argument '{}' is no list of integers", name);
  return {found->ints().begin(), found->ints().end()};
}

std::vector<float> Arguments::floats(const char* name) const {
  const proto::Argument* found = find(name);
  if (!found) return {};
  if (found->has_i() || found->has_f() || found->has_s())
    reject("argument '{}' is no list of numbers", name);
  return {found->floats().begin(), found->floats().end()};
}

std::vector<std::string> Arguments::texts(const char* name) const {
  const proto::Argument* found = find(name);
  if (!found) return {};
  return {found->strings().begin(), found->strings().end()};
}

} // namespace candela::import::caffe2
