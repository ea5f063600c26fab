// The program API: each part of a model is one OpenCL program, written for its shapes. What no
// writer of kernels knows runs by the kernels of the primitives.
#include "scaled_sums.hpp"
#include "timeline.hpp"
#include "tuner.hpp"

#include <algorithm>
#include <deque>

namespace program {

bool writeKernel(const Instruction& instr, const Profile& profile, KernelText& text) {
  switch (instr->kind) {
  case CDL_KIND_MATMUL:
    return writeEmptySums(instr, profile, text) || writeSums(instr, profile, text);
  case CDL_KIND_CONV2D: return writeWindow(instr, profile, text) || writeSums(instr, profile, text);
  case CDL_KIND_POOL2D: return writeWindow(instr, profile, text);
  case CDL_KIND_REDUCE:
    return writeEmptySums(instr, profile, text) || writeReduction(instr, profile, text);
  case CDL_KIND_GATHER: return writeGather(instr, profile, text);
  case CDL_KIND_COPY:
  case CDL_KIND_FILL:
  case CDL_KIND_CONVERT:
  case CDL_KIND_BINARY:
  case CDL_KIND_COMPARE:
  case CDL_KIND_SELECT:
  case CDL_KIND_UNARY:
  case CDL_KIND_ELEMENTWISE: return writeMap(instr, profile, text);
  default: return false;
  }
}

std::string programText(const std::vector<const KernelText*>& kernels) {
  std::string all = std::string(sourceText("common")) + sourceText("program");
  for (size_t k = 0; k < kernels.size(); ++k) {
    all += cdl::text("kernel __attribute__((reqd_work_group_size(", kernels[k]->groupItems,
                     ", 1, 1))) void k", k + 1, "(");
    for (size_t p = 0; p < kernels[k]->places.size(); ++p)
      all += cdl::text(p ? ", " : "", "global uchar* m", p, ", ulong o", p);
    all += ") {\n" + kernels[k]->body + "}\n";
  }
  return all;
}

namespace {

using cdl::Kind;

/// What the parts of all models on a device share.
struct Shared {
  OpenCl& device;
  Profile profile;
  bool isTuned = false;
  Buffer zeros; // kZeros numbers
};

class Plan final : public cdl::Executable {
public:
  Plan(const Shared& shared, const cdl_image_t* image)
      : shared_(shared), device_(shared.device), image_(image), calls_(image->instrs.count) {}

  cdl::Status compile();
  cdl::Status execute(const cdl::Addresses& buffers) override;

private:
  using Numbers = std::map<std::pair<std::string, size_t>, size_t>; // of texts, in their groups

  /// A kernel with the memory that it is called with.
  struct Call {
    KernelText text;
    size_t kernel; ///< from 1 on
  };

  cdl::Status write(uint32_t index, Numbers& numbers);
  cdl::Status writeTexts(const Instruction& instr, std::vector<KernelText>& texts);
  cdl::Status build(size_t kernels);
  cdl::Status makeScratch();
  cdl::Status run(uint32_t index, const int64_t* loops, const std::vector<Located>& buffers);
  cdl::Status call(const Call& call, const std::string& doing, const int64_t* loops,
                   const std::vector<Located>& buffers);

  const Shared& shared_;
  OpenCl& device_;
  const cdl_image_t* image_;
  std::vector<std::vector<Call>> calls_; // by instruction, in order; none: the primitive's kernel
  uint64_t scratchBytes_ = 0;            // the most that an instruction wants
  Buffer scratch_;
  Program program_;
  std::deque<Kernel> kernels_;
};

bool touchesHalves(const Instruction& instr, const std::vector<cdl_step_t>& steps) {
  if (isHalf(instr.y().elem)) return true;
  for (uint32_t i = 0; i < instr->inputs; ++i)
    if (isHalf(instr.input(i).elem)) return true;
  return std::any_of(steps.begin(), steps.end(),
                     [](const cdl_step_t& step) { return isHalf(step.elem); });
}

/// Whether the kernels of the primitives take the instruction as it is.
bool isPrimitive(const Instruction& instr) {
  const std::vector<cdl_step_t> steps = instr.steps();
  if (touchesHalves(instr, steps)) return false;
  if (instr->kind == CDL_KIND_ELEMENTWISE)
    return std::none_of(steps.begin(), steps.end(),
                        [](const cdl_step_t& step) { return step.kind == CDL_KIND_RESCALE; });
  if (instr->expr || instr->kind == CDL_KIND_SCALED_MATMUL) return false;
  for (uint32_t i = 0; i < instr->inputs; ++i)
    if (instr.input(i).layout && cdl_kind_facts(instr->kind)->epilogue) return false;
  return true;
}

/// The kernels of an instruction; none: no writer knows it.
cdl::Status Plan::writeTexts(const Instruction& instr, std::vector<KernelText>& texts) {
  if (instr->kind == CDL_KIND_SCALED_MATMUL) {
    uint64_t bytes = 0;
    writeScaledSums(instr, shared_.profile, texts, bytes);
    scratchBytes_ = std::max(scratchBytes_, bytes);
    return cdl::ok();
  }
  KernelText text;
  if (!writeKernel(instr, shared_.profile, text)) return cdl::ok();
  const bool isSum = instr->kind == CDL_KIND_MATMUL || instr->kind == CDL_KIND_CONV2D;
  if (shared_.isTuned && isSum && elementsOf(instr.input(0)) > 0)
    if (cdl::Status status = Tuner(device_, shared_.profile).choose(instr, text); !status.isOk())
      return status;
  texts.push_back(std::move(text));
  return cdl::ok();
}

cdl::Status Plan::write(uint32_t index, Numbers& numbers) {
  const Instruction instr(image_, index);
  std::vector<KernelText> texts;
  if (cdl::Status status = writeTexts(instr, texts); !status.isOk()) return status;
  for (KernelText& text : texts) {
    const size_t next = numbers.size() + 1;
    const size_t number =
        numbers.emplace(std::pair(text.body, text.groupItems), next).first->second;
    calls_[index].push_back({std::move(text), number});
  }
  if (!texts.empty() || isPrimitive(instr) || elementsOf(instr.y()) == 0) return cdl::ok();
  return cdl::refused(index, CDL_REASON_VENDOR,
                      cdl::kindName(instr->kind) + ": no kernel for its expression or layout");
}

cdl::Status Plan::build(size_t kernels) {
  std::vector<const KernelText*> texts(kernels);
  for (const std::vector<Call>& calls : calls_)
    for (const Call& call : calls) texts[call.kernel - 1] = &call.text;
  const std::string all = programText(texts);
  if (std::getenv("CANDELA_OPENCL_DUMP")) std::fputs(all.c_str(), stderr);
  cdl::Status status =
      device_.buildProgram("a program", all, "", program_, !device_.keepsBinaries());
  for (size_t k = 1; k <= kernels && status.isOk(); ++k) {
    cl_int code = CL_SUCCESS;
    const std::string name = cdl::text("k", k);
    kernels_.emplace_back(clCreateKernel(program_.get(), name.c_str(), &code));
    status = device_.check(code, "kernel " + name);
  }
  return status;
}

cdl::Status Plan::compile() {
  Numbers numbers;
  for (uint32_t i = 1; i < image_->instrs.count; ++i)
    if (cdl::Status status = write(i, numbers); !status.isOk()) return status;
  if (numbers.empty()) return cdl::ok();
  cdl::Status status = build(numbers.size());
  for (std::vector<Call>& calls : calls_)
    for (Call& call : calls) call.text.body.clear();
  return status.isOk() && scratchBytes_ ? makeScratch() : status;
}

cdl::Status Plan::makeScratch() {
  cl_int code = CL_SUCCESS;
  scratch_ =
      Buffer(clCreateBuffer(device_.context(), CL_MEM_READ_WRITE, scratchBytes_, nullptr, &code));
  return device_.check(code, cdl::text("scratch of ", scratchBytes_, " bytes"));
}

/// All kernels of an instruction at once, so that no other execution comes between what one writes
/// to the scratch and the next reads there.
cdl::Status Plan::run(uint32_t index, const int64_t* loops, const std::vector<Located>& buffers) {
  const std::string doing = cdl::text("instruction ", index);
  const std::lock_guard<std::mutex> lock(device_.mutex());
  for (const Call& next : calls_[index])
    if (cdl::Status status = call(next, doing, loops, buffers); !status.isOk()) return status;
  return cdl::ok();
}

cdl::Status Plan::call(const Call& call, const std::string& doing, const int64_t* loops,
                       const std::vector<Located>& buffers) {
  const cl_kernel kernel = kernels_[call.kernel - 1].get();
  const Located scratch{scratch_.get(), 0};
  cl_uint arg = 0;
  cl_int code = CL_SUCCESS;
  for (const Place& place : call.text.places) {
    const Located& buffer = place.buffer == kScratch ? scratch : buffers[place.buffer];
    int64_t offset = static_cast<int64_t>(buffer.offset) + place.offset;
    for (int l = 0; l < CDL_MAX_LOOP_NESTING; ++l) offset += place.perLoop[l] * loops[l];
    const auto bytes = static_cast<cl_ulong>(offset);
    code = code ? code : clSetKernelArg(kernel, arg++, sizeof buffer.memory, &buffer.memory);
    code = code ? code : clSetKernelArg(kernel, arg++, sizeof bytes, &bytes);
  }
  if (cdl::Status status = device_.check(code, doing); !status.isOk()) return status;
  return device_.enqueue(kernel, call.text.groups * call.text.groupItems, call.text.groupItems,
                         doing);
}

cdl::Status Plan::execute(const cdl::Addresses& buffers) {
  if (cdl::Status status = device_.alive(); !status.isOk()) return status;
  std::vector<Located> located(image_->buffers.count);
  located[0] = {shared_.zeros.get(), 0};
  for (uint32_t b = 1; b < image_->buffers.count; ++b) {
    const void* address = buffers.address(b, cdl_get_buffer(image_, b)->bytes);
    const std::lock_guard<std::mutex> lock(device_.mutex());
    located[b] = device_.located(address);
  }
  Timeline timeline(device_, buffers.timings());
  cdl::Status status = cdl::forEachInstr(image_, [&](uint32_t i, const int64_t* loops) {
    timeline.begin(i);
    if (!calls_[i].empty()) return run(i, loops, located);
    if (elementsOf(Instruction(image_, i).y()) == 0) return cdl::ok();
    return device_.dispatch(cdl::Op(image_, i, loops, &buffers));
  });
  return status.isOk() ? timeline.finish() : status;
}

class OpenClProgram final : public cdl::ProgramBackend {
public:
  OpenClProgram() : ProgramBackend("opencl", kVersion) {
    describe("devices with OpenCL 1.2");
    for (const char* name : {"device", "platform"})
      option(name, "which one: its number, or a part of its name", "string", "");
    option("threads",
           "how many of the device's compute units work, where it can be divided; 0: all", "int",
           "0");
    option("style", "kernels for a CPU or for a GPU; auto: as the device is", "auto|cpu|gpu",
           "auto");
    option("tune", "on: tries kernels of products and convolutions on the device", "off|on", "off");
  }

  uint32_t deviceCount() override { return device_.deviceCount(); }
  cdl::Status open(uint32_t index) override;
  cdl::Status compile(const cdl_image_t* image, const void* const*,
                      std::unique_ptr<cdl::Executable>& executable) override {
    auto plan = std::make_unique<Plan>(shared_, image);
    cdl::Status status = plan->compile();
    if (status.isOk()) executable = std::move(plan);
    return status;
  }

  cdl::Status memoryCreate(uint64_t alignment, cdl::Memory& memory) override {
    return device_.memoryCreate(alignment, memory);
  }
  void memoryDestroy(cdl::Memory& memory) override { device_.memoryDestroy(memory); }
  bool memoryMappable() const override { return false; }
  cdl::Status memoryWrite(cdl::Memory& to, uint64_t offset, const void* from,
                          uint64_t bytes) override {
    return device_.memoryWrite(to, offset, from, bytes);
  }
  cdl::Status memoryRead(cdl::Memory& from, uint64_t offset, void* to, uint64_t bytes) override {
    return device_.memoryRead(from, offset, to, bytes);
  }
  cdl::Status memoryCopy(cdl::Memory& to, uint64_t toOffset, cdl::Memory& from, uint64_t fromOffset,
                         uint64_t bytes) override {
    return device_.memoryCopy(to, toOffset, from, fromOffset, bytes);
  }
  cdl::Status finish() override { return device_.finish(); }
  cdl::Status packConstant(const std::string& layout, const cdl::Operand& constant,
                           const cdl::Writer& to) override {
    return packPanels(layout, constant, to);
  }

private:
  cdl::Status makeZeros();
  void claimBlocked();
  void claimIntegers();
  void claimHalves();
  void claimScaled();
  void claimExpressions();

  OpenCl device_;
  Shared shared_{device_, {}, false, {}};
};

cdl::Status OpenClProgram::open(uint32_t index) {
  for (const char* name : {"device", "platform", "threads"})
    device_.options().set(name, options().get(name));
  device_.setHost(host());
  if (cdl::Status status = device_.open(index); !status.isOk()) return status;
  nameDevice(device_.deviceName());
  shared_.profile = profileOf(device_, options().get("style"));
  shared_.isTuned = options().get("tune") == "on";
  if (cdl::Status status = makeZeros(); !status.isOk()) return status;
  capabilities() = device_.capabilities();
  device_.capabilities().build(cdl::detail::overriddenKinds<OpenCl>());
  claimExpressions();
  claimBlocked();
  claimIntegers();
  claimHalves();
  claimScaled();
  return cdl::ok();
}

cdl::Status OpenClProgram::makeZeros() {
  std::vector<float> zeros(kZeros);
  cl_int code = CL_SUCCESS;
  shared_.zeros = Buffer(clCreateBuffer(device_.context(), CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                                        kZeros * sizeof(float), zeros.data(), &code));
  return device_.check(code, "the zeros of kernels");
}

/// Steps of expressions, wherever a kernel can end with them.
void OpenClProgram::claimExpressions() {
  for (const Kind kind :
       {Kind::Conv2d, Kind::Pool2d, Kind::MatMul, Kind::ScaledMatMul, Kind::Reduce})
    epilogue(kind, {Kind::Convert, Kind::Binary, Kind::Compare, Kind::Select, Kind::Unary,
                    Kind::Rescale});
  epilogue(Kind::Elementwise, {Kind::Rescale});
  prologue(Kind::Reduce);
}

/// Float convolutions, pools and products on blocks of 16 channels, and where blocks begin and end.
void OpenClProgram::claimBlocked() {
  constexpr uint8_t F32 = CDL_F32;
  const uint16_t image = layout("nchw", "n,c/16,h,w,c%16");
  const uint16_t weights = layout("oikl", "o/16,i/16,k,l,i%16,o%16");
  const uint16_t narrow = layout("oikl", "o/16,k,l,i,o%16");
  const uint16_t columns = layout("bkn", "b,n/16,k,n%16");
  const cdl::Atom ungrouped = cdl::attr(CDL_ATTR_GROUP) == 1, packed = cdl::isConst(1);
  native(Kind::Conv2d, 0, {F32, F32, F32}, {image, weights, image}, {ungrouped, packed});
  native(Kind::Conv2d, 0, {F32, F32, F32}, {image, narrow, image},
         {cdl::dim(3, 1) == 1, packed}); // depthwise
  native(Kind::Conv2d, 0, {F32, F32, F32}, {0, narrow, image}, {ungrouped, packed});
  native(Kind::Conv2d, 0, {F32, F32, F32}, {image, weights, 0}, {ungrouped, packed});
  native(Kind::Conv2d, 0, {F32, F32, F32}, {0, narrow, 0}, {ungrouped, packed});
  for (const uint16_t fn : {CDL_POOL2D_MAX, CDL_POOL2D_AVERAGE})
    native(Kind::Pool2d, fn, {F32, F32}, {image, image});
  for (const uint8_t y : {F32, uint8_t{CDL_I8}, uint8_t{CDL_U8}}) // an epilogue may end there
    native(Kind::MatMul, 0, {F32, F32, y}, {0, columns, 0}, {packed}, CDL_CLASS_DENSE);
}

/// Products of 8 bits with channels last, and the types that epilogues end in.
void OpenClProgram::claimIntegers() {
  constexpr uint8_t I8 = CDL_I8, U8 = CDL_U8, I32 = CDL_I32, F32 = CDL_F32;
  const uint16_t image = layout("nchw", "n,h,w,c");
  const uint16_t weights = layout("oikl", "o/16,k,l,i,o%16");
  const uint16_t columns = layout("bkn", "b,n/16,k,n%16");
  const cdl::Atom ungrouped = cdl::attr(CDL_ATTR_GROUP) == 1, packed = cdl::isConst(1);
  for (const uint8_t x : {I8, U8}) {
    for (const uint8_t y : {I32, I8, U8}) {
      native(Kind::Conv2d, 0, {x, I8, y}, {image, weights, image}, {ungrouped, packed});
      native(Kind::Conv2d, 0, {x, I8, x, y}, {image, weights, 0, image}, {ungrouped, packed});
      // depthwise
      native(Kind::Conv2d, 0, {x, I8, y}, {image, weights, image}, {cdl::dim(3, 1) == 1, packed});
      native(Kind::Conv2d, 0, {x, I8, x, y}, {image, weights, 0, image},
             {cdl::dim(3, 1) == 1, packed});
      native(Kind::Conv2d, 0, {x, I8, y}, {image, 0, image}, {packed});
      native(Kind::Conv2d, 0, {x, I8, x, y}, {image, 0, 0, image}, {packed});
      native(Kind::Conv2d, 0, {x, I8, y}, {0, weights, image}, {ungrouped, packed});
      native(Kind::Conv2d, 0, {x, I8, x, y}, {0, weights, 0, image}, {ungrouped, packed});
    }
    native(Kind::Pool2d, CDL_POOL2D_MAX, {x, x}, {image, image});
    for (const uint8_t y : {I32, F32, I8, U8}) {
      native(Kind::MatMul, 0, {x, I8, y}, {0, columns, 0}, {packed}, CDL_CLASS_DENSE);
      native(Kind::MatMul, 0, {x, I8, x, y}, {0, columns, 0, 0}, {packed}, CDL_CLASS_DENSE);
      native(Kind::MatMul, 0, {x, I8, x, I8, y}, {0, columns, 0, 0, 0}, {packed}, CDL_CLASS_DENSE);
    }
  }
}

/// Halves are moved and become f32, in which everything else is computed.
void OpenClProgram::claimHalves() {
  constexpr uint8_t F32 = CDL_F32;
  for (const uint8_t half : {CDL_F16, CDL_BF16}) {
    native(Kind::Copy, 0, {half, half}, CDL_CLASS_AFFINE);
    native(Kind::Fill, 0, {half}, CDL_CLASS_AFFINE);
    native(Kind::Select, 0, {CDL_BOOL, half, half, half}, CDL_CLASS_AFFINE);
    native(Kind::Convert, CDL_CONVERT_TRUNC, {half, F32}, CDL_CLASS_AFFINE);
    native(Kind::Convert, CDL_CONVERT_TRUNC, {F32, half}, CDL_CLASS_AFFINE);
    for (const uint16_t fn : {CDL_GATHER_CLAMP, CDL_GATHER_ZERO})
      native(Kind::Gather, fn, {half, CDL_I32, half}, CDL_CLASS_AFFINE);
  }
}

/// Products with scales, of weights as they lie and, where those are constants, in panels.
void OpenClProgram::claimScaled() {
  constexpr uint8_t F32 = CDL_F32;
  const Kind kind = Kind::ScaledMatMul;
  const uint16_t weights = opaqueLayout(kWeightPanels, 3);
  const uint16_t perBlock = opaqueLayout(kBlockPanels, 2);
  const auto claim = [&](uint16_t fn, uint8_t w, uint8_t scale, uint8_t zero) {
    const int64_t most = fn == CDL_SCALED_MATMUL_DYNAMIC ? kMostInDynamicBlock : kMostInExactBlock;
    const auto row = [&](uint16_t ofWeights, uint16_t ofBlocks) {
      const std::initializer_list<cdl::Atom> atoms = {cdl::dim(1, 1) >= 1, cdl::dim(2, 1) >= 1,
                                                      cdl::dim(2, 1) <= most};
      if (zero)
        native(kind, fn, {F32, w, scale, zero, F32}, {0, ofWeights, ofBlocks, ofBlocks, 0}, atoms,
               CDL_CLASS_AFFINE);
      else
        native(kind, fn, {F32, w, scale, F32}, {0, ofWeights, ofBlocks, 0}, atoms,
               CDL_CLASS_AFFINE);
    };
    row(weights, perBlock);
    row(0, 0);
  };
  for (const uint8_t w : {CDL_I4, CDL_U4, CDL_I8, CDL_U8})
    for (const uint8_t scale : {CDL_F32, CDL_F16, CDL_BF16})
      for (const uint8_t zero : {0, int{CDL_U8}, int{CDL_I8}, int{CDL_F32}}) {
        claim(CDL_SCALED_MATMUL_EXACT, w, scale, zero);
        if (zero != CDL_F32) claim(CDL_SCALED_MATMUL_DYNAMIC, w, scale, zero);
      }
}

} // namespace

} // namespace program

using program::OpenClProgram;
CDL_BACKEND(OpenClProgram)
