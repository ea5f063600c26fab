// The device: what it claims, and the way from a Program to the engine.
#include "compiler.hpp"
#include "engine.hpp"

#include <charconv>

namespace tiles {

using cdl::Kind, cdl::attr, cdl::dim, cdl::elements, cdl::isConst;

class Tiles : public cdl::ProgramBackend, public cdl::CustomOps {
public:
  Tiles() : ProgramBackend("tiles", "0.1.0") {
    describe("an imaginary tile engine with a compiler of its own");
    option("local", "KiB of local memory, of which the panels take 32", "int", "48");
    claim(cdl::Profile::FP32);
    claim(cdl::Profile::INT8);
    for (Kind kind : {Kind::Gather, Kind::Scatter, Kind::Reduce, Kind::Table})
      support(kind, cdl::Support::EMULATED);
    for (Kind kind : {Kind::Copy, Kind::Convert, Kind::Binary, Kind::Compare, Kind::Select,
                      Kind::Unary, Kind::Rescale, Kind::MatMul})
      operandClass(kind, CDL_CLASS_AFFINE);
    claimProducts();
    claimSteps();
    native(Kind::Custom, kSoftThreshold, {CDL_F32, CDL_F32}, CDL_CLASS_AFFINE);
  }

  cdl::Status open(uint32_t) override {
    const std::string text = options().get("local");
    uint64_t kib = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), kib);
    if (code != std::errc() || end != text.data() + text.size() || kib < kLeastLocal ||
        kib > kMostLocal)
      return cdl::error(CDL_INVALID_ARGUMENT, cdl::text("local=", text, ": a number of ",
                                                        kLeastLocal, " to ", kMostLocal));
    localBytes_ = kib * 1024;
    return cdl::ok();
  }

  cdl::Status compile(const cdl_image_t* image, const void* const* constants,
                      std::unique_ptr<cdl::Executable>& executable) override {
    try {
      executable =
          std::make_unique<Engine>(image, Compiler(image, constants, localBytes_).compile());
    } catch (const Refusal& refusal) {
      return cdl::refused(refusal.instr, refusal.reason, refusal.text);
    }
    return cdl::ok();
  }

  cdl::Status load(const cdl_image_t* image, const void* blob, uint64_t size,
                   std::unique_ptr<cdl::Executable>& executable) override {
    Stream stream;
    cdl::Status status = loadStream(image, blob, size, localBytes_, stream);
    if (status.isOk()) executable = std::make_unique<Engine>(image, std::move(stream));
    return status;
  }

  cdl::Status claimNode(const cdl::CustomNode& node, cdl::CustomClaim& claim) override {
    return claimSoftThreshold(node, claim);
  }
  std::string decompose(const cdl::CustomNode& node) override { return softThresholdAsGraph(node); }

private:
  // a RESCALE of two operands needs seven tiles
  static constexpr uint64_t kLeastLocal = 2 * kPanelBytes / 1024 + 8;
  // registers are numbered in a byte
  static constexpr uint64_t kMostLocal = 2 * kPanelBytes / 1024 + 256;

  /// The array multiplies f32, and 8 bits to i32.
  void claimProducts() {
    constexpr uint8_t F32 = CDL_F32, I8 = CDL_I8, U8 = CDL_U8, I32 = CDL_I32;
    // Weights are read in bursts of four columns. Sums come into registers, not from memory.
    limit(Kind::MatMul, {dim(-1, 1) % 4 == 0, attr(CDL_ATTR_ACCUMULATE) == 0});
    // Weights are packed when the Program is compiled; the window unit counts to 16 and steps by 1,
    // 2 or 4.
    limit(Kind::Conv2d, {isConst(1), elements(1) <= 1 << 24, attr(CDL_ATTR_GROUP) == 1,
                         attr(CDL_ATTR_TRANSPOSED) == 0, attr(CDL_ATTR_ACCUMULATE) == 0,
                         dim(2, 1) <= 16, dim(3, 1) <= 16, in(attr(CDL_ATTR_STRIDES, 0), {1, 2, 4}),
                         in(attr(CDL_ATTR_STRIDES, 1), {1, 2, 4})});
    native(Kind::Conv2d, 0, {F32, F32, F32}, CDL_CLASS_AFFINE);
    for (uint8_t x : {I8, U8}) {
      native(Kind::Conv2d, 0, {x, I8, I32}, CDL_CLASS_AFFINE);
      native(Kind::Conv2d, 0, {x, I8, x, I32}, {0, 0, 0, 0}, {isConst(2)}, CDL_CLASS_AFFINE);
      native(Kind::MatMul, 0, {x, I8, x, I32}, {0, 0, 0, 0}, {isConst(2)}, CDL_CLASS_AFFINE);
    }
  }

  /// What registers compute before a tile is stored.
  void claimSteps() {
    constexpr uint8_t kElems[] = {CDL_F32, CDL_I32, CDL_I8, CDL_U8, CDL_BOOL};
    const std::initializer_list<Kind> steps = {Kind::Convert, Kind::Binary, Kind::Compare,
                                               Kind::Select, Kind::Unary};
    for (Kind kind : {Kind::MatMul, Kind::Conv2d, Kind::Elementwise}) epilogue(kind, steps);
    native(Kind::Elementwise, 0, {}, CDL_CLASS_AFFINE);
    for (uint16_t fn : {CDL_UNARY_CEIL, CDL_UNARY_TANH, CDL_UNARY_ERF, CDL_UNARY_SIGMOID})
      native(Kind::Unary, fn, {CDL_F32, CDL_F32});
    // Epilogues that end in another type than the sums have.
    for (uint8_t y : {CDL_F32, CDL_I8, CDL_U8}) {
      if (y != CDL_F32) native(Kind::MatMul, 0, {CDL_F32, CDL_F32, y});
      for (uint8_t x : {CDL_I8, CDL_U8}) native(Kind::MatMul, 0, {x, CDL_I8, y});
    }
    // Between all types that lanes hold.
    for (uint8_t from : {CDL_F32, CDL_I8, CDL_U8})
      for (uint8_t to : kElems)
        if (from != to)
          native(Kind::Convert, from == CDL_F32 ? CDL_CONVERT_RNE : CDL_CONVERT_TRUNC, {from, to});
    for (uint8_t y : {CDL_I8, CDL_U8, CDL_I32})
      for (uint8_t a : {CDL_I8, CDL_U8, CDL_I32}) {
        native(Kind::Rescale, 0, {a, CDL_I32, CDL_I32, CDL_I32, y});
        for (uint8_t b : {CDL_I8, CDL_U8, CDL_I32})
          native(Kind::Rescale, 0, {a, CDL_I32, CDL_I32, CDL_I32, b, CDL_I32, y});
      }
  }

  uint64_t localBytes_ = 0;
};

} // namespace tiles

using tiles::Tiles;
CDL_BACKEND(Tiles)
