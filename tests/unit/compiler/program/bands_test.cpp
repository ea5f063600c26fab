// Groups in bands: what the verifier lets pass gives the same bytes when every band of every member
// is an instruction of its own, wherever buffers lie; and much of what it refuses does not.
#include <gtest/gtest.h>

#include <random>

#include "core/compiler/program/bands.h"
#include "core/reference/interpreter/interp.h"

namespace candela::test {
namespace {

constexpr int kPrograms = 3000;
constexpr int64_t kChannels = 2;

/// A chain of windows and elementwise instructions on images, whose TEMP buffers lie anywhere in a
/// small arena.
class ChainMaker {
public:
  explicit ChainMaker(uint64_t seed) : rng_(seed) {}

  program::Program make() {
    const int64_t rows = 5 + pick(9), columns = 3 + pick(3);
    const uint32_t x = add("x", program::Role::input, rows * columns * kChannels);
    weights_ = add("w", program::Role::input, kChannels * kChannels * 9);
    const Image first{add("z", program::Role::temp, rows * columns * kChannels), rows, columns};
    emit(CDL_KIND_COPY, 0, {flat({x, rows, columns})}, flat(first));
    images_.push_back(first);
    const auto begin = static_cast<uint32_t>(program_.instrs.size());
    const int64_t members = 2 + pick(4);
    for (int64_t m = 0; m < members; ++m) step();
    const auto count = static_cast<uint32_t>(program_.instrs.size()) - begin;
    const auto bands = static_cast<uint32_t>(1 + pick(images_.back().rows));
    program_.groups.push_back({begin, count, 2, bands});
    for (uint32_t i = begin; i < begin + count; ++i) program_.instrs[i].group = 0;
    // What is left of some values behind the group shows too.
    for (const Image& image : images_) {
      if (&image != &images_.back() && pick(3)) continue;
      const uint32_t out = add("y", program::Role::output, image.rows * image.columns * kChannels);
      emit(CDL_KIND_COPY, 0, {flat(image)}, flat({out, image.rows, image.columns}));
    }
    place();
    return std::move(program_);
  }

private:
  struct Image {
    uint32_t buffer = 0;
    int64_t rows = 0, columns = 0;
  };

  int64_t pick(int64_t count) {
    return static_cast<int64_t>(rng_() % static_cast<uint64_t>(count));
  }

  uint32_t add(const char* name, program::Role role, int64_t elements) {
    program::Buffer buffer;
    buffer.name = name;
    buffer.role = role;
    buffer.bytes = static_cast<uint64_t>(elements) * 4;
    return program_.addBuffer(buffer);
  }
  static program::View flat(const Image& image) {
    return program::denseView(image.buffer, Elem::f32_, {kChannels * image.rows * image.columns});
  }
  static program::View whole(const Image& image) {
    return program::denseView(image.buffer, Elem::f32_, {1, kChannels, image.rows, image.columns});
  }
  void emit(uint16_t kind, uint16_t fn, std::vector<program::View> inputs, program::View output,
            std::vector<program::Attr> attrs = {}) {
    program::Instr instr;
    instr.kind = kind, instr.fn = fn;
    instr.inputs = std::move(inputs), instr.outputs = {std::move(output)},
    instr.attrs = std::move(attrs);
    program_.instrs.push_back(std::move(instr));
  }

  void step() {
    const Image x = pick(4)
                        ? images_.back()
                        : images_[static_cast<size_t>(pick(static_cast<int64_t>(images_.size())))];
    const auto same = [&] {
      return Image{add("t", program::Role::temp, x.rows * x.columns * kChannels), x.rows,
                   x.columns};
    };
    switch (pick(5)) {
    case 0: {
      const Image y = same();
      pick(2) ? emit(CDL_KIND_UNARY, CDL_UNARY_NEG, {flat(x)}, flat(y))
              : emit(CDL_KIND_UNARY, CDL_UNARY_ABS, {whole(x)}, whole(y));
      return images_.push_back(y);
    }
    case 1: {
      for (const Image& other : images_)
        if (other.buffer != x.buffer && other.rows == x.rows && other.columns == x.columns) {
          const Image y = same();
          emit(CDL_KIND_BINARY, CDL_BINARY_ADD, {flat(x), flat(other)}, flat(y));
          return images_.push_back(y);
        }
      [[fallthrough]];
    }
    default: return window(x);
    }
  }

  void window(const Image& x) {
    const bool isPool = pick(3) == 0;
    const int64_t taps = isPool || pick(3) ? 3 : 1, stride = 1 + pick(2), dilation = 1 + pick(2);
    const int64_t extent = (taps - 1) * dilation + 1, begin = pick(extent), end = pick(extent);
    if (x.rows + begin + end < extent || x.columns + 2 < 3) return;
    const Image y{0, (x.rows + begin + end - extent) / stride + 1, x.columns};
    const Image made{add("t", program::Role::temp, y.rows * y.columns * kChannels), y.rows,
                     y.columns};
    const int64_t side = taps / 2; // columns stay
    std::vector<program::Attr> attrs{program::Attr::ofInts(CDL_ATTR_STRIDES, {stride, 1}),
                                     program::Attr::ofInts(CDL_ATTR_PADS, {begin, side, end, side}),
                                     program::Attr::ofInts(CDL_ATTR_DILATIONS, {dilation, 1})};
    if (isPool) {
      attrs.push_back(program::Attr::ofInts(CDL_ATTR_KERNEL, {taps, taps}));
      emit(CDL_KIND_POOL2D, CDL_POOL2D_MAX, {whole(x)}, whole(made), std::move(attrs));
    } else {
      const bool isDepthwise = pick(2);
      attrs.push_back(program::Attr::ofInt(CDL_ATTR_GROUP, isDepthwise ? kChannels : 1));
      const program::View w = program::denseView(
          weights_, Elem::f32_, {kChannels, isDepthwise ? 1 : kChannels, taps, taps});
      emit(CDL_KIND_CONV2D, 0, {whole(x), w}, whole(made), std::move(attrs));
    }
    images_.push_back(made);
  }

  /// One behind the other, or anywhere that no value of the same time is: right as long as no bands
  /// run.
  void place() {
    // first and last instruction
    std::vector<std::pair<uint32_t, uint32_t>> lives(program_.buffers.size(), {program::kNone, 0});
    for (uint32_t i = 0; i < program_.instrs.size(); ++i)
      for (const auto* views : {&program_.instrs[i].inputs, &program_.instrs[i].outputs})
        for (const program::View& v : *views)
          lives[v.buffer] = {std::min(lives[v.buffer].first, i),
                             std::max(lives[v.buffer].second, i)};
    const auto isFree = [&](uint32_t b, uint64_t offset) {
      for (uint32_t other = 0; other < b; ++other) {
        const program::Buffer& o = program_.buffers[other];
        if (o.role == program::Role::temp && lives[other].first <= lives[b].second &&
            lives[b].first <= lives[other].second && offset < o.offset + o.bytes &&
            o.offset < offset + program_.buffers[b].bytes)
          return false;
      }
      return true;
    };
    uint64_t next = 0;
    const bool isApart = pick(3) == 0;
    for (uint32_t b = 0; b < program_.buffers.size(); ++b) {
      program::Buffer& buffer = program_.buffers[b];
      if (buffer.role != program::Role::temp) continue;
      buffer.offset = next;
      for (int attempt = 0; attempt < 20 && !isApart; ++attempt)
        if (const uint64_t offset = static_cast<uint64_t>(pick(40)) * 64; isFree(b, offset)) {
          buffer.offset = offset;
          break;
        }
      next = std::max(next, (buffer.offset + buffer.bytes + 63) / 64 * 64);
    }
  }

  std::mt19937_64 rng_;
  program::Program program_;
  uint32_t weights_ = 0;
  std::vector<Image> images_;
};

/// Rows first .. last - 1 of a view, of its `outer`-th run of all rows.
void cut(program::View& view, const program::RowAxis& axis, int64_t outer, int64_t first,
         int64_t last) {
  view.offset += (outer * axis.rows + first) * axis.inner * view.strides[axis.dim];
  view.dims[axis.dim] = (last - first) * axis.inner;
}

/// The Program with an instruction for every band of every member, in the order in which bands run.
program::Program unrolled(const program::Program& program) {
  const program::Group& group = program.groups[0];
  const std::vector<program::BandMember> members =
      program::bandsOf(program, program::membersOf(group), group.bandDim, group.bands).orAbort();
  program::Program out = program;
  out.groups.clear(), out.instrs.clear();
  for (uint32_t i = 0; i < group.first; ++i) out.instrs.push_back(program.instrs[i]);
  for (uint32_t k = 0; k < group.bands; ++k)
    for (const program::BandMember& member : members) {
      const program::Rows rows = member.rowsOf(k);
      if (rows.first >= rows.last) continue;
      const program::Instr& instr = program.instrs[member.instr];
      const int64_t outers =
          instr.outputs[0].dims[member.output.dim] / (member.output.rows * member.output.inner);
      for (int64_t o = 0; o < outers; ++o) {
        program::Instr piece = instr;
        piece.group = program::kNone;
        cut(piece.outputs[0], member.output, o, rows.first, rows.last);
        for (size_t v = 0; v < instr.inputs.size(); ++v) {
          if (member.inputs[v].dim == program::kNone) continue;
          program::Rows read = member.rowsRead(v, rows);
          if (member.isWindow && v == 0) {
            program::Attr* pads = const_cast<program::Attr*>(piece.attr(CDL_ATTR_PADS));
            pads->values[0] = std::max<int64_t>(-read.first, 0);
            pads->values[2] = std::max<int64_t>(read.last - member.inputs[v].rows, 0);
            read = {std::max<int64_t>(read.first, 0), std::min(read.last, member.inputs[v].rows)};
          }
          cut(piece.inputs[v], member.inputs[v], o, read.first, read.last);
        }
        out.instrs.push_back(std::move(piece));
      }
    }
  for (auto i = static_cast<size_t>(group.first) + group.count; i < program.instrs.size(); ++i)
    out.instrs.push_back(program.instrs[i]);
  return out;
}

std::vector<Tensor> inputsOf(const program::Program& program, uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::vector<Tensor> inputs;
  for (const program::Buffer& buffer : program.buffers) {
    if (buffer.role != program::Role::input) continue;
    std::vector<float> values(buffer.bytes / 4);
    for (float& value : values) value = static_cast<float>(rng() % 17) - 8;
    inputs.push_back(Tensor::of<float>(Elem::f32_, {static_cast<int64_t>(values.size())}, values));
  }
  return inputs;
}

bool isSame(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(a[i].bytes.data(), b[i].bytes.data(), a[i].bytes.size()) != 0) return false;
  return true;
}

TEST(Bands, WhatIsLegalGivesTheSameBytes) {
  int legal = 0, refused = 0, wrong = 0, inBands = 0;
  for (uint64_t seed = 1; seed <= kPrograms; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    program::Program program = ChainMaker(seed).make();
    const program::Group group = program.groups[0];
    if (!program::bandsOf(program, program::membersOf(group), group.bandDim, group.bands)) continue;
    const Status status = program::verifyBands(program, group);
    const program::Program pieces = unrolled(program);
    program.groups.clear();
    for (program::Instr& instr : program.instrs) instr.group = program::kNone;
    const std::vector<Tensor> inputs = inputsOf(program, seed);
    const auto expected = reference::interpret(program, inputs),
               got = reference::interpret(pieces, inputs);
    if (!expected) continue; // an instruction that writes what it reads, or a value that is gone
    if (!status) {
      ++refused;
      wrong += !got || !isSame(*expected, *got);
      continue;
    }
    ++legal;
    inBands += group.bands > 1;
    ASSERT_TRUE(got.isOk()) << got.status().message();
    ASSERT_TRUE(isSame(*expected, *got));
  }
  fmt::print("seeds 1 to {}: {} legal ({} in bands), {} refused, of which {} would be wrong\n",
             kPrograms, legal, inBands, refused, wrong);
  EXPECT_GT(inBands, 200);
  EXPECT_GT(wrong, 50);
}

/// Each row once, and none before the rows that it reads.
TEST(Bands, FrontiersFollowTheirReaders) {
  int bands = 0;
  for (uint64_t seed = 1; seed <= kPrograms; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const program::Program program = ChainMaker(seed).make();
    const program::Group& group = program.groups[0];
    const auto members =
        program::bandsOf(program, program::membersOf(group), group.bandDim, group.bands);
    if (!members) continue;
    for (uint32_t k = 0; k < group.bands; ++k, ++bands)
      for (size_t m = 0; m < members->size(); ++m) {
        const program::BandMember& member = (*members)[m];
        EXPECT_LE(member.rowsOf(k).first, member.rowsOf(k).last);
        for (size_t p = 0; p < m; ++p) {
          const program::BandMember& before = (*members)[p];
          const uint32_t written = program.instrs[before.instr].outputs[0].buffer;
          for (size_t v = 0; v < member.inputs.size(); ++v)
            if (program.instrs[member.instr].inputs[v].buffer == written) {
              EXPECT_LE(std::min(member.rowsRead(v, {0, member.done[k]}).last, before.output.rows),
                        before.done[k]);
            }
        }
      }
    for (const program::BandMember& member : *members)
      EXPECT_EQ(member.done.back(), member.output.rows);
  }
  EXPECT_GT(bands, 1000);
}

} // namespace
} // namespace candela::test
