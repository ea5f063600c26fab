#include "tools/candela/package/write.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "candela/candela.hpp"
#include "tools/candela/package/names.h"
#include "tools/candela/package/package_files.h"
#include "tools/candela/package/web.h"
#include "tools/candela/support/template.h"

namespace candela::tool {
namespace {

using Values = std::map<std::string_view, std::string>;

/// The type of C that elements are stored in; of packed ones, the type of the bytes that hold them.
const char* storageType(Elem elem) {
  switch (elem) {
  case Elem::f32_: return "float";
  case Elem::f64_: return "double";
  case Elem::i8_: return "int8_t";
  case Elem::i16_: return "int16_t";
  case Elem::i32_: return "int32_t";
  case Elem::i64_: return "int64_t";
  default: break;
  }
  switch (elemBits(elem)) {
  case 64: return "uint64_t";
  case 32: return "uint32_t";
  case 16: return "uint16_t";
  default: return "uint8_t";
  }
}

std::string realText(double value) { return fmt::format("{:.9g}", value); }

/// "(size_t)" keeps sizes from 2 GiB on out of int.
std::string sizeText(uint64_t bytes) { return fmt::format("((size_t){})", bytes); }

std::string portMacros(const std::string& name, const char* kind,
                       const std::vector<PackagedPort>& ports) {
  std::string text;
  for (const PackagedPort& port : ports) {
    const std::string prefix =
        fmt::format("#define {}_{}_{}", macroName(name), kind, macroName(port.field));
    text += fmt::format("{}_COUNT {}\n{}_BYTES {}\n{}_RANK {}\n", prefix,
                        sizeText(static_cast<uint64_t>(elementCount(port.dims).value_or(0))),
                        prefix, sizeText(port.bytes), prefix, port.dims.size());
    if (!port.dims.empty())
      text += fmt::format("{}_DIMS {{{}}}\n", prefix, fmt::join(port.dims, ", "));
    if (port.quantization)
      text += fmt::format("{}_SCALE {}\n{}_ZERO {}\n", prefix, realText(port.quantization->scale),
                          prefix, port.quantization->zero);
  }
  return text;
}

std::string portComment(const PackagedPort& port, bool isInput) {
  std::string text = fmt::format("'{}', {}", textInC(port.name), typeText(port.elem, port.dims));
  if (isPacked(port.elem)) text += fmt::format(", {} in a byte", elemsPerByte(port.elem));
  if (port.quantization)
    text += fmt::format("; real = {} * (stored - {})", realText(port.quantization->scale),
                        port.quantization->zero);
  if (port.alignment > 1 && port.alignment * 8 > static_cast<uint32_t>(elemBits(port.elem)))
    text += fmt::format("; aligned to {} bytes", port.alignment);
  if (!port.partner.empty())
    text += fmt::format("; a state: {} '{}' of the {} run", isInput ? "the output" : "the input",
                        textInC(port.partner), isInput ? "last" : "next");
  if (port.isInPlace) text += ", in the same place";
  return text;
}

std::string portFields(const std::vector<PackagedPort>& ports, bool isInput) {
  std::string text;
  for (const PackagedPort& port : ports)
    text += fmt::format("  {}{}* {}; /* {} */\n", isInput ? "const " : "", storageType(port.elem),
                        port.field, portComment(port, isInput));
  // A struct of C has at least one member.
  return text.empty()
             ? fmt::format("  {}void* none; /* there are none */\n", isInput ? "const " : "")
             : text;
}

std::string statesText(const PackagedModel& model) {
  uint64_t bytes = 0;
  for (const PackagedPort& port : model.inputs)
    if (!port.partner.empty()) bytes += port.bytes;
  if (bytes == 0) return "";
  return fmt::format(
      "\n/* States lie in memory of the caller: zero before the first run, then what the last run "
      "left.\n"
      " * Where a state is updated in place both fields hold the same address; else two places "
      "take\n"
      " * turns. A place for each of them has this many bytes. */\n#define {}_STATES_BYTES {}\n",
      macroName(model.name), sizeText(bytes));
}

std::string hexText(const std::byte* bytes, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += fmt::format("{:02x}", static_cast<int>(bytes[i]));
  return text;
}

Values headerValues(const PackageRequest& request, const PackagedModel& model) {
  const cdl_object_facts_t& facts = model.files.facts;
  const std::string needs = facts.needs;
  Values values = {
      {"NAME", model.name},
      {"MACRO", macroName(model.name)},
      {"MODEL", textInC(fileName(request.model.path))},
      {"VERSION", candela_version()},
      {"MAKER", textInC(facts.maker)},
      {"TRIPLE", textInC(facts.triple)},
      {"ISA", textInC(facts.isa)},
      {"NEEDS", needs.empty() ? "" : fmt::format(" * The processor has: {}.\n", needs)},
      {"ARENA_BYTES", sizeText(std::max<uint64_t>(1, facts.arena_bytes))},
      {"ARENA_ALIGNMENT", std::to_string(facts.arena_alignment)},
      {"WEIGHTS_BYTES", sizeText(facts.weights_bytes)},
      {"WEIGHTS_ALIGNMENT", std::to_string(facts.weights_alignment)},
      {"WEIGHTS_HASH", hexText(model.files.weights.data() + offsetof(cdl_object_weights_t, digest),
                               sizeof(uint64_t) + 32)},
      {"MODEL_WORDS", std::to_string(CDL_OBJECT_MODEL_BYTES / 8)},
      {"INPUT_MACROS", portMacros(model.name, "INPUT", model.inputs)},
      {"OUTPUT_MACROS", portMacros(model.name, "OUTPUT", model.outputs)},
      {"INPUT_FIELDS", portFields(model.inputs, true)},
      {"OUTPUT_FIELDS", portFields(model.outputs, false)},
      {"STATES", statesText(model)},
      {"LINK_OPTIONS", request.isPic ? "" : "-no-pie"}};
  if (isForWeb(model)) values["LINK_OPTIONS"] = webLinkOptions(model.name);
  return values;
}

/// Bytes as an array of words, which is aligned as any element; at least one word.
std::string arrayText(const std::string& qualifiers, const std::string& name, const Bytes& bytes) {
  const size_t words = std::max<size_t>(1, (bytes.size() + 7) / 8);
  std::string text = fmt::format("{}uint64_t {}[{}] = {{", qualifiers, name, words);
  for (size_t w = 0; w < words; ++w) {
    uint64_t word = 0;
    if (8 * w < bytes.size())
      std::memcpy(&word, bytes.data() + 8 * w, std::min<size_t>(8, bytes.size() - 8 * w));
    text += fmt::format("{}{:#x}", w % 6 == 0 ? "\n    " : " ", word);
    if (w + 1 < words) text += ',';
  }
  return text + "};\n";
}

Values testValues(const PackagedModel& model, const PackageSample& sample) {
  std::string arrays, inputs, outputs, expected;
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    const std::string array = fmt::format("{}_test_input_{}", model.name, i);
    // A state in place is written too.
    const char* qualifiers = model.inputs[i].isInPlace ? "static " : "static const ";
    arrays += arrayText(qualifiers, array, sample.inputs[i].bytes);
    inputs += fmt::format("{}(const void*){}", i ? ", " : "", array);
  }
  for (size_t o = 0; o < model.outputs.size(); ++o) {
    const PackagedPort& port = model.outputs[o];
    const Tensor& tensor = sample.outputs[o];
    std::string array = fmt::format("{}_test_output_{}", model.name, o);
    arrays += arrayText("static const ", array + "_expected", tensor.bytes);
    const auto isIt = [&](const PackagedPort& each) { return each.name == port.partner; };
    const auto twin = std::ranges::find_if(model.inputs, isIt);
    if (port.isInPlace && twin != model.inputs.end())
      array = fmt::format("{}_test_input_{}", model.name, twin - model.inputs.begin());
    else
      arrays += fmt::format("static uint64_t {}[{}];\n", array,
                            std::max<uint64_t>(1, (port.bytes + 7) / 8));
    outputs += fmt::format("{}(void*){}", o ? ", " : "", array);
    const CompareBound bound = boundOf(tensor);
    expected +=
        fmt::format("    {{\"{}\", '{}', {}, {}, {}, {}, {}, {}_test_output_{}_expected}},\n",
                    textInC(port.name), comparedAs(port.elem), tensor.count(), tensor.sizeBytes(),
                    realText(bound.absolute), realText(bound.relative), array, model.name, o);
  }
  return {{"NAME", model.name},
          {"MACRO", macroName(model.name)},
          {"SOURCE", textInC(sample.source)},
          {"ARRAYS", arrays},
          {"INPUTS", inputs.empty() ? "0" : inputs},
          {"OUTPUTS", outputs},
          {"EXPECTED", expected}};
}

Bytes bytesOf(const std::string& text) { return Bytes::copyOf(text.data(), text.size()); }

} // namespace

char comparedAs(Elem elem) {
  switch (elem) {
  case Elem::f32_: return 's';
  case Elem::f64_: return 'd';
  case Elem::f16_: return 'h';
  case Elem::bf16_: return 'f';
  default: return 'b';
  }
}

CompareBound boundOf(const Tensor& expected) {
  CompareBound bound;
  if (comparedAs(expected.elem) == 'b') return bound;
  const bool isHalf = elemBits(expected.elem) == 16;
  double largest = 0;
  for (int64_t i = 0; i < expected.count(); ++i)
    if (const double each = std::fabs(elementAsReal(expected, i)); std::isfinite(each))
      largest = std::max(largest, each);
  bound.relative = isHalf ? 1.0 / 64 : 1e-3;
  bound.absolute = largest * (isHalf ? 1.0 / 128 : 1e-5);
  return bound;
}

PackageFiles packageFiles(const PackageRequest& request, const PackagedModel& model,
                          const PackageSample& sample) {
  const Values header = headerValues(request, model);
  const auto filled = [&](std::string_view text) { return bytesOf(filledTemplate(text, header)); };
  PackageFiles files{{model.name + ".o", model.files.code},
                     {model.name + "_weights.o", model.files.weightsObject},
                     {model.name + ".weights", model.files.weights},
                     {model.name + ".h", filled(kPackageHeader)},
                     {model.name + "_test_data.h",
                      bytesOf(filledTemplate(kPackageTestData, testValues(model, sample)))},
                     {"main.c", filled(kPackageMain)},
                     {"CMakeLists.txt", filled(kPackageCMake)},
                     {model.name + ".mk", filled(kPackageMake)}};
  if (isForWeb(model))
    for (auto& [name, bytes] : webFiles(model, sample, header)) files[name] = bytes;
  return files;
}

} // namespace candela::tool
