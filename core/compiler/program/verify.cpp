#include <set>

#include "core/compiler/program/internal.h"

namespace candela::program {

namespace {

template <typename List> Status verifyNames(std::string_view what, const List& list) {
  std::set<std::string_view> seen;
  for (const auto& item : list) {
    if (item.name.empty()) return badModel("a {} has no name", what);
    if (!seen.insert(item.name).second) return badModel("two {}s are named '{}'", what, item.name);
  }
  return Status::ok();
}

/// A place as the Program names it: "copy [1]: input 0 (%x)". What is at fault is kept in
/// `suspect`.
std::string placeText(const Program& program, const Place& place, Suspect& suspect) {
  const uint32_t index = place.index - 1;
  std::string text = "program";
  if (place.section == "spaces") {
    text = fmt::format("space '{}'", program.spaces[index].name);
  } else if (place.section == "constants") {
    text = fmt::format("constant '{}'", program.constants[index].name);
  } else if (place.section == "buffers") {
    suspect.buffer = index;
    text = fmt::format("buffer '{}'", program.buffers[index].name.c_str());
  } else if (place.section == "instrs") {
    suspect.instr = index;
    text = program.instrName(index);
  } else if (place.section == "loops" || place.section == "groups") {
    text = fmt::format("{} {}", place.section.substr(0, place.section.size() - 1), place.index);
  }
  if (!place.part) return text;
  const std::string_view part = place.part;
  text += fmt::format(": {}", part);
  if (place.partIndex != UINT32_MAX) text += fmt::format(" {}", place.partIndex);
  if (place.section != "instrs" || (part != "input" && part != "output")) return text;
  const Instr& instr = program.instrs[index];
  const uint32_t buffer = (part == "input" ? instr.inputs : instr.outputs)[place.partIndex].buffer;
  return buffer < program.buffers.size()
             ? fmt::format("{} (%{})", text, program.buffers[buffer].name)
             : text;
}

/// What cdl_image_check() says of the Program's image.
Status verifyImage(const Program& program, Suspect& suspect) {
  Place place;
  const auto image = writeImage(program, false, place);
  if (!image) return image.status().context(placeText(program, place, suspect));
  char text[256] = "";
  cdl_error_t error{text, sizeof text, 0};
  cdl_check_t check{};
  check.image = reinterpret_cast<const cdl_image_t*>(image.value().data());
  check.error = &error;
  const auto code = static_cast<Code>(cdl_check_image(&check, image.value().size()));
  if (code == Code::ok) return Status::ok();
  place = {check.section, check.index, check.part, check.part_index};
  return Status(code, text + check.place_length).context(placeText(program, place, suspect));
}

} // namespace

Status verify(const Program& program, Suspect& suspect) {
  if (program.name.empty()) return badModel("the program has no name");
  if (program.spaces.empty()) return badModel("no memory space is declared");
  CDL_TRY(verifyNames("space", program.spaces));
  CDL_TRY(verifyNames("constant", program.constants));
  CDL_TRY(verifyNames("buffer", program.buffers));
  CDL_TRY(verifyImage(program, suspect));
  CDL_TRY(verifyRegions(program));
  for (suspect.instr = 0; suspect.instr < program.instrs.size(); ++suspect.instr) {
    const Instr& instr = program.instrs[suspect.instr];
    Status status = verifyTypes(instr);
    if (status) status = verifyAliasing(program, instr);
    if (!status) return status.context(program.instrName(suspect.instr));
  }
  return verifyAllBands(program, suspect);
}

Status verify(const Program& program) {
  Suspect suspect;
  return verify(program, suspect);
}

} // namespace candela::program
