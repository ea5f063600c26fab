// Images that an interface cannot read, or is not to run.
#include <cstring>
#include <random>

#include "conformance/tiers/abi/abi.h"

namespace candela::conformance::tiers::abi {
namespace {

using Edit = std::function<void(cdl_image_t&)>;

cdl_instr_t& instrOf(cdl_image_t& image, uint32_t index = 1) {
  return *const_cast<cdl_instr_t*>(cdl_get_instr(&image, index));
}

/// An image whose last byte is the last of its page, so that what reads beyond it dies.
Result<PageEnd> edited(const Sample& sample, const Edit& edit) {
  const Bytes bytes = imageOf(sample);
  CDL_ASSIGN(PageEnd image, PageEnd::of(bytes.data(), bytes.size()));
  if (edit) edit(*image.as<cdl_image_t>());
  return image;
}

/// What an interface answers this image. The primitive API is asked for these instructions.
Result<cdl_code_t> give(RawDevice& device, const cdl_image_t* image, Said& said, uint32_t first = 1,
                        uint32_t count = 1) {
  CDL_ASSIGN(cdl_queue_t * queue, device.queue());
  if (!device.compiles()) {
    std::vector<cdl_binding_t> buffers(8);
    for (size_t b = 1; b < buffers.size(); ++b) {
      CDL_ASSIGN(cdl_memory_t * memory, device.memory(queue, std::string(1024, '\1')));
      buffers[b] = {memory, 0, 1024};
    }
    cdl_bindings_t bindings{};
    bindings.header = CDL_HEADER(cdl_bindings_t);
    bindings.count = static_cast<uint32_t>(buffers.size());
    bindings.buffers = buffers.data();
    const int64_t loops[CDL_MAX_LOOP_NESTING] = {};
    const cdl_code_t code =
        device.table.run(queue, image, first, count, loops, &bindings, said.error());
    if (code == CDL_OK && device.table.queue_signal(queue, 1, said.error()) == CDL_OK)
      (void)device.table.queue_wait(queue, 1, UINT64_MAX, said.error());
    return code;
  }
  const std::vector<const void*> constants(8);
  cdl_executable_t* executable = nullptr;
  cdl_refusal_t refusal{};
  refusal.header = CDL_HEADER(cdl_refusal_t);
  const cdl_code_t code = device.table.compile(device.handle, image, constants.data(), &executable,
                                               &refusal, said.error());
  if (code != CDL_OK && executable) return wrong("{}, but an executable was given", nameOf(code));
  if (executable) device.table.executable_destroy(device.handle, executable);
  return code;
}

/// Whose image is given: the first that the device claims, or, since these are never run, the first
/// of all.
Result<const Sample*> anySample(Port& port) {
  CDL_ASSIGN(const Sample* sample, claimedSample(port));
  return sample ? sample : &samples()[0];
}

/// `compileOnly`: the case is about devices that compile.
Check refuses(std::vector<cdl_code_t> codes, Edit edit, bool compileOnly = false) {
  return [=](Port& port) -> Outcome {
    CDL_ASSIGN(const Sample* sample, anySample(port));
    CDL_ASSIGN(const auto device, RawDevice::open(port));
    if (compileOnly && !device->compiles()) return missing("compile");
    CDL_ASSIGN(const PageEnd image, edited(*sample, edit));
    Said said;
    CDL_ASSIGN(const cdl_code_t code, give(*device, image.as<cdl_image_t>(), said));
    if (codes.size() == 1) return CaseResult::of(refusedBy("the image", code, said, {codes[0]}));
    return CaseResult::of(refusedBy("the image", code, said, {codes[0], codes[1]}));
  };
}

Outcome nullImage(Port& port) {
  CDL_ASSIGN(const auto device, RawDevice::open(port));
  Said said;
  CDL_ASSIGN(const cdl_code_t code, give(*device, nullptr, said));
  return CaseResult::of(refusedBy("a null image", code, said, {CDL_INVALID_ARGUMENT}));
}

Outcome misaligned(Port& port) {
  CDL_ASSIGN(const Sample* sample, anySample(port));
  CDL_ASSIGN(const auto device, RawDevice::open(port));
  const Bytes bytes = imageOf(*sample);
  std::vector<uint64_t> room(bytes.size() / 8 + 2);
  char* at = reinterpret_cast<char*>(room.data()) + 4;
  std::memcpy(at, bytes.data(), bytes.size());
  Said said;
  CDL_ASSIGN(const cdl_code_t code, give(*device, reinterpret_cast<const cdl_image_t*>(at), said));
  return CaseResult::of(refusedBy("an image at 4 modulo 8", code, said, {CDL_INVALID_ARGUMENT}));
}

/// Which instructions run is asked for: none of them are there. A 2 is one more than there are of a
/// Program of one instruction; one in tiles has more.
Check instructions(uint32_t first, uint32_t count) {
  return [=](Port& port) -> Outcome {
    CDL_ASSIGN(const Sample* sample, claimedSample(port));
    CDL_ASSIGN(const auto device, RawDevice::open(port));
    if (device->compiles())
      return CaseResult::unsupported("it has the program API: whole programs are sent");
    if (!sample) return nothingClaimed();
    CDL_ASSIGN(const PageEnd image, edited(*sample, nullptr));
    const auto there = static_cast<uint32_t>(sample->program.instrs.size());
    const uint32_t from = first == 2 ? there + 1 : first;
    const uint32_t asked = count == 2 ? there + 1 : count;
    Said said;
    CDL_ASSIGN(const cdl_code_t code, give(*device, image.as<cdl_image_t>(), said, from, asked));
    return CaseResult::of(refusedBy(fmt::format("instructions {} .. +{} of {}", from, asked, there),
                                    code, said, {CDL_INVALID_ARGUMENT}));
  };
}

/// What no row claims is unsupported, or refused by name. A plugin may do it all the same.
Outcome unclaimed(Port& port) {
  CDL_ASSIGN(const auto opened, port.device());
  for (const Sample& sample : samples()) {
    Sample doubled = sample; // in f64, which no profile has
    for (program::Buffer& buffer : doubled.program.buffers) buffer.bytes *= 2;
    program::Instr& instr = doubled.program.instrs[0];
    if (instr.kind != CDL_KIND_BINARY || instr.inputs[0].elem != Elem::f32_) continue;
    for (auto* views : {&instr.inputs, &instr.outputs})
      for (program::View& view : *views) view.elem = Elem::f64_;
    const Bytes bytes = imageOf(doubled);
    const auto desc =
        runtime::plugin::describe(reinterpret_cast<const cdl_image_t*>(bytes.data()), 1);
    if (opened->target().query(desc).support != capabilities::Support::none) continue;
    CDL_ASSIGN(const auto device, RawDevice::open(port));
    CDL_ASSIGN(const PageEnd image, edited(doubled, nullptr));
    Said said;
    CDL_ASSIGN(const cdl_code_t code, give(*device, image.as<cdl_image_t>(), said));
    if (code == CDL_OK) return CaseResult::passed();
    const std::string what = sample.name + " on f64, which no row claims";
    if (device->compiles()) return CaseResult::of(refusedBy(what, code, said, {CDL_REFUSED}));
    // A function that looks at no type finds out on the way that it is another.
    return CaseResult::of(refusedBy(what, code, said, {CDL_UNSUPPORTED, CDL_INTERNAL}));
  }
  return CaseResult::unsupported("a row claims each that was tried");
}

/// Some bytes of the records are others. It compiles, or says why not: never a crash, a hang or a
/// write outside.
Check damaged(uint64_t seed) {
  return [=](Port& port) -> Outcome {
    CDL_ASSIGN(const Sample* sample, anySample(port));
    CDL_ASSIGN(const auto device, RawDevice::open(port));
    if (!device->compiles()) return missing("compile");
    std::mt19937_64 random(seed);
    for (int turn = 0; turn < 16; ++turn) {
      CDL_ASSIGN(const PageEnd image, edited(*sample, [&](cdl_image_t& header) {
                   auto* bytes = reinterpret_cast<uint8_t*>(&header);
                   for (int n = 0; n < 3; ++n) {
                     // not the size and what is before
                     const uint64_t at = 56 + random() % (header.size - 56);
                     bytes[at] = static_cast<uint8_t>(random());
                   }
                 }));
      Said said;
      CDL_ASSIGN(const cdl_code_t code, give(*device, image.as<cdl_image_t>(), said));
      CDL_TRY(said.whole());
      if (code > CDL_MISMATCH || code == CDL_INTERNAL)
        return wrong("{}: {}", nameOf(code), said.text());
    }
    return CaseResult::passed();
  };
}

/// The image as a whole: where it lies, its versions, and codes that are not known.
std::vector<Named> headerChecks() {
  return {
      {"images/null", nullImage},
      {"images/misaligned", misaligned},
      {"images/magic", refuses({CDL_BAD_MODEL}, [](cdl_image_t& image) { image.magic[3] = 'X'; })},
      {"images/other_major",
       refuses({CDL_INCOMPATIBLE}, [](cdl_image_t& image) { ++image.major; })},
      {"images/newer_minor",
       refuses({CDL_INCOMPATIBLE}, [](cdl_image_t& image) { ++image.minor; })},
      {"images/unknown_kind",
       refuses({CDL_INCOMPATIBLE}, [](cdl_image_t& image) { instrOf(image).kind = 200; })},
      {"images/unknown_function", refuses({CDL_INCOMPATIBLE, CDL_UNSUPPORTED},
                                          [](cdl_image_t& image) { instrOf(image).fn = 200; })},
  };
}

/// Only compile is given images that it has to check itself.
Check compileRefuses(Edit edit) { return refuses({CDL_BAD_MODEL}, std::move(edit), true); }

/// Sizes, offsets and counts that point outside of the image.
std::vector<Named> sectionChecks() {
  const auto section = [](cdl_section_t cdl_image_t::* which, auto change) {
    return compileRefuses([=](cdl_image_t& image) { change(image.*which); });
  };
  return {
      {"images/size_of_the_header_alone",
       compileRefuses([](cdl_image_t& image) { image.size = sizeof image; })},
      {"images/size_0", compileRefuses([](cdl_image_t& image) { image.size = 0; })},
      {"images/size_8_short", compileRefuses([](cdl_image_t& image) { image.size -= 8; })},
      {"images/no_buffers", section(&cdl_image_t::buffers, [](auto& s) { s.count = 1; })},
      {"images/section_beyond_the_end",
       section(&cdl_image_t::views, [](auto& s) { s.offset += uint64_t(1) << 32; })},
      {"images/section_misaligned", section(&cdl_image_t::instrs, [](auto& s) { s.offset += 4; })},
      {"images/count_of_2_to_the_32",
       section(&cdl_image_t::instrs, [](auto& s) { s.count = UINT32_MAX; })},
      {"images/stride_0", section(&cdl_image_t::views, [](auto& s) { s.stride = 0; })},
  };
}

/// Records that contradict others.
std::vector<Named> recordChecks() {
  const auto output = [](cdl_image_t& image) {
    return const_cast<cdl_view_t*>(cdl_get_output(&image, &instrOf(image), 0));
  };
  return {
      {"images/view_of_no_buffer",
       compileRefuses([=](cdl_image_t& image) { output(image)->buffer = 77; })},
      {"images/view_beyond_its_buffer",
       compileRefuses([=](cdl_image_t& image) { output(image)->offset = int64_t(1) << 40; })},
      {"images/waits_for_itself", compileRefuses([](cdl_image_t& image) {
         instrOf(image).first_wait = 1;
         instrOf(image).waits = 1;
       })},
      {"images/unclaimed", unclaimed},
  };
}

/// Runs of instructions that are not there.
std::vector<Named> rangeChecks() {
  return {
      {"run/first=0", instructions(0, 1)},
      {"run/first=2", instructions(2, 1)},
      {"run/count=2", instructions(1, 2)},
      {"run/count=4294967295", instructions(1, UINT32_MAX)},
      {"run/first=4294967295", instructions(UINT32_MAX, 1)},
  };
}

} // namespace

std::vector<Named> imageChecks() {
  std::vector<Named> checks;
  for (const std::vector<Named>& some :
       {headerChecks(), sectionChecks(), recordChecks(), rangeChecks()})
    checks.insert(checks.end(), some.begin(), some.end());
  for (uint64_t seed = 1; seed <= 4; ++seed)
    checks.push_back({fmt::format("images/damaged:seed={}", seed), damaged(seed)});
  return checks;
}

} // namespace candela::conformance::tiers::abi
