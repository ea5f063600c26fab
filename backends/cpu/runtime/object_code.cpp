#include "object_code.hpp"

#include <cstring>

namespace cpu {

namespace {

/// The header of a member of an archive, as ar(5) has it.
std::string memberHeader(const std::string& name, uint64_t bytes) {
  const auto field = [](std::string text, size_t width) {
    text.resize(width, ' ');
    return text;
  };
  return field(name + "/", 16) + field("0", 12) + field("0", 6) + field("0", 6) + field("644", 8) +
         field(std::to_string(bytes), 10) + "`\n";
}

} // namespace

cdl::Status toArchive(const ObjectCode& object, const cdl::Writer& to) {
  using Part = std::pair<const void*, uint64_t>;
  const std::vector<std::pair<const char*, std::vector<Part>>> members = {
      {"code.o", {{object.code.data(), object.code.size()}}},
      {"weights.o", {{object.weightsObject.data(), object.weightsObject.size()}}},
      {"weights",
       {{&object.header, sizeof object.header}, {object.weights.data(), object.weights.size()}}},
      {"facts", {{&object.facts, sizeof object.facts}}}};
  cdl::Status status = to.write("!<arch>\n", 8);
  for (const auto& [name, parts] : members) {
    uint64_t bytes = 0;
    for (const Part& part : parts) bytes += part.second;
    if (bytes > 9'999'999'999) // the digits that its header has room for
      return cdl::error(CDL_UNSUPPORTED,
                        "object code: " + std::to_string(bytes) + " bytes of " + name);
    const std::string header = memberHeader(name, bytes);
    if (status.isOk()) status = to.write(header.data(), header.size());
    for (const auto& [data, size] : parts)
      if (status.isOk() && size) status = to.write(data, size);
    if (status.isOk() && bytes % 2) status = to.write("\n", 1);
  }
  return status;
}

cdl::Status AheadExecutable::execute(const cdl::Addresses&) {
  return cdl::error(CDL_UNSUPPORTED,
                    "this device was opened with target=" + std::string(object_.facts.triple) +
                        ": what it compiles is emitted and runs elsewhere");
}

} // namespace cpu
