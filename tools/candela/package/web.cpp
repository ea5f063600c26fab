#include "tools/candela/package/web.h"

#include <algorithm>
#include <cstring>

#include "tools/candela/package/names.h"
#include "tools/candela/package/package_files.h"
#include "tools/candela/support/template.h"

namespace candela::tool {
namespace {

/// The typed array of JavaScript that holds elements, or the bytes of packed ones.
const char* typedArray(Elem elem) {
  switch (elem) {
  case Elem::f32_: return "Float32Array";
  case Elem::f64_: return "Float64Array";
  case Elem::i8_: return "Int8Array";
  case Elem::i16_: return "Int16Array";
  case Elem::i32_: return "Int32Array";
  case Elem::i64_: return "BigInt64Array";
  default: break;
  }
  switch (elemBits(elem)) {
  case 64: return "BigUint64Array";
  case 32: return "Uint32Array";
  case 16: return "Uint16Array";
  default: return "Uint8Array";
  }
}

/// The ports as objects of JavaScript; `others`: what the partner of a state is among.
std::string portObjects(const std::vector<PackagedPort>& ports,
                        const std::vector<PackagedPort>& others) {
  std::string text;
  for (const PackagedPort& port : ports) {
    const auto isIt = [&](const PackagedPort& other) { return other.name == port.partner; };
    const auto partner = std::ranges::find_if(others, isIt);
    const std::string place =
        partner == others.end() ? "null" : std::to_string(partner - others.begin());
    text +=
        fmt::format("\n  {{ name: \"{}\", field: \"{}\", type: {}, dims: [{}], bytes: {}, "
                    "alignment: {}, partner: {}, inPlace: {} }},",
                    textInC(port.name), port.field, typedArray(port.elem),
                    fmt::join(port.dims, ", "), port.bytes, port.alignment, place, port.isInPlace);
  }
  return text.empty() ? text : text + "\n";
}

/// Bytes as an array of words, at least one.
std::string wordArray(const Bytes& bytes) {
  constexpr size_t kInALine = 6;
  std::string text = "words(";
  for (size_t at = 0; at < std::max<size_t>(1, bytes.size()); at += 8) {
    uint64_t word = 0;
    if (at < bytes.size())
      std::memcpy(&word, bytes.data() + at, std::min<size_t>(8, bytes.size() - at));
    const bool isFirst = at / 8 % kInALine == 0;
    text += fmt::format("{}{}{:#x}n", at ? "," : "", isFirst ? "\n    " : " ", word);
  }
  return text + ")";
}

std::map<std::string_view, std::string> dataValues(const PackagedModel& model,
                                                   const PackageSample& sample) {
  std::string given, expected;
  for (size_t i = 0; i < model.inputs.size(); ++i)
    given += fmt::format("  {}: {},\n", model.inputs[i].field, wordArray(sample.inputs[i].bytes));
  for (size_t o = 0; o < model.outputs.size(); ++o) {
    const Tensor& tensor = sample.outputs[o];
    const CompareBound bound = boundOf(tensor);
    expected +=
        fmt::format("  {}: {{ kind: '{}', absolute: {:.9g}, relative: {:.9g}, words: {} }},\n",
                    model.outputs[o].field, comparedAs(tensor.elem), bound.absolute, bound.relative,
                    wordArray(tensor.bytes));
  }
  return {{"NAME", model.name},
          {"SOURCE", textInC(sample.source)},
          {"GIVEN", given},
          {"EXPECTED", expected}};
}

/// The object of a first run.
std::string exampleOf(const PackagedModel& model) {
  std::string text;
  for (const PackagedPort& port : model.inputs)
    if (port.partner.empty())
      text += fmt::format("{}{}: new {}({})", text.empty() ? " " : ", ", port.field,
                          typedArray(port.elem), port.bytes * 8 / elemBits(port.elem));
  return text.empty() ? text : text + " ";
}

} // namespace

bool isForWeb(const PackagedModel& model) {
  return std::string_view(model.files.facts.triple).starts_with("wasm");
}

std::string webLinkOptions(const std::string& name) {
  return fmt::format("--no-entry --export=__heap_base --export={0}_open --export={0}_run "
                     "--export={0}_verify --export-if-defined={0}_weights",
                     name);
}

PackageFiles webFiles(const PackagedModel& model, const PackageSample& sample,
                      const std::map<std::string_view, std::string>& header) {
  const cdl_object_facts_t& facts = model.files.facts;
  std::map<std::string_view, std::string> values = header;
  values["EXAMPLE"] = exampleOf(model);
  values["INPUT_PORTS"] = portObjects(model.inputs, model.outputs);
  values["OUTPUT_PORTS"] = portObjects(model.outputs, model.inputs);
  values["ARENA_BYTES"] = std::to_string(std::max<uint64_t>(1, facts.arena_bytes));
  values["WEIGHTS_BYTES"] = std::to_string(facts.weights_bytes);
  const auto filled = [&](std::string_view text) {
    const std::string made = filledTemplate(text, values);
    return Bytes::copyOf(made.data(), made.size());
  };
  const std::string data = filledTemplate(kPackageWebTestData, dataValues(model, sample));
  return {{model.name + ".mjs", filled(kPackageWebHost)},
          {model.name + "_test_data.mjs", Bytes::copyOf(data.data(), data.size())},
          {"main.mjs", filled(kPackageWebMain)},
          {"CMakeLists.txt", filled(kPackageWebCMake)},
          {model.name + ".mk", filled(kPackageWebMake)}};
}

} // namespace candela::tool
