#include <algorithm>

#include "core/compiler/program/expr.h"
#include "core/compiler/program/internal.h"
#include "core/compiler/program/text.h"
#include "core/support/text/literal.h"

namespace candela::program {

namespace {

using text::nameText, text::quoteText;

std::string listText(const auto& values) { return fmt::format("[{}]", fmt::join(values, ", ")); }

/// A bare word when it is one, else quoted.
std::string wordText(const std::string& word) {
  const std::string symbol = nameText('@', word);
  return symbol.size() == word.size() + 1 ? word : quoteText(word);
}

std::string layoutText(const Layout& layout) {
  std::vector<std::string> words;
  for (size_t i = 0; i < layout.steps.size(); ++i) {
    const Layout::Step& step = layout.steps[i];
    const uint64_t inner = innerFactor(layout.steps, i);
    std::string word = layout.logicalRank == 4 ? std::string(1, kDimLetters[step.dim])
                                               : fmt::format("{}", step.dim);
    if (inner != 1) word += fmt::format("/{}", inner);
    if (step.factor) word += fmt::format("%{}", step.factor);
    words.push_back(std::move(word));
  }
  std::string out = fmt::format("{{{}", fmt::join(words, ","));
  if (layout.opaque)
    out += fmt::format("{}opaque {} rank {}", words.empty() ? "" : " ", quoteText(layout.name),
                       layout.logicalRank);
  if (layout.padContent) out += fmt::format(" pad {}", kPadContents[layout.padContent]);
  return out + "}";
}

std::string attrText(const Attr& attr) {
  const std::string_view known = attrName(attr.id);
  std::string out = known.empty() ? fmt::format("attr{}", attr.id) : std::string(known);
  out += " = ";
  switch (attr.type) {
  case 2: {
    const std::string real = text::realText(attr.asFloat());
    return out + (real.starts_with("0x") ? fmt::format("float({})", real) : real);
  }
  case 3: return out + listText(attr.values);
  case 4: return out + fmt::format("0x{:x}", static_cast<uint64_t>(attr.values[0]));
  default: return out + fmt::format("{}", attr.values[0]);
  }
}

class Printer {
public:
  Printer(const Program& program, const PrintOptions& options)
      : program_(program), options_(options) {}

  Result<std::string> print() {
    out_ = fmt::format("program {}", nameText('@', program_.name));
    if (program_.engines != 1) out_ += fmt::format(" engines({})", program_.engines);
    out_ += " {\n";
    for (const Space& space : program_.spaces) printSpace(space);
    for (const Constant& constant : program_.constants) CDL_TRY(printConstant(constant));
    for (const Buffer& buffer : program_.buffers) printBuffer(buffer);
    printInstrs();
    out_ += "}\n";
    return std::move(out_);
  }

private:
  void printSpace(const Space& space) {
    std::vector<std::string> words;
    if (space.hostMapped) words.push_back("host_mapped");
    if (space.local) words.push_back("local");
    if (space.forConstants) words.push_back("constants");
    if (space.capacityBytes) words.push_back(fmt::format("capacity {}", space.capacityBytes));
    words.push_back(fmt::format("align {}", space.alignment));
    if (space.banks) words.push_back(fmt::format("banks {}", space.banks));
    out_ += fmt::format("  space {} {{{}}}\n", nameText('@', space.name), fmt::join(words, ", "));
  }

  Status printConstant(const Constant& constant) {
    CDL_ASSIGN(const std::string content,
               text::payloadText(constant.payload, constant.name, options_.resourceDirectory));
    out_ += fmt::format("  constant {} : {}[{}] = {}\n", nameText('@', constant.name),
                        elemName(constant.payload.elem()), constant.payload.count(), content);
    return Status::ok();
  }

  void printBuffer(const Buffer& buffer) {
    out_ += fmt::format("  buffer {} {} {} {}", nameText('%', buffer.name),
                        kRoles[static_cast<int>(buffer.role)],
                        nameText('@', program_.spaces[buffer.space].name), buffer.bytes);
    if (buffer.alignment != Buffer{}.alignment) out_ += fmt::format(" align {}", buffer.alignment);
    if (buffer.role == Role::temp && buffer.offset != CDL_UNPLACED)
      out_ += fmt::format(" at {}", buffer.offset);
    if (buffer.halo)
      out_ += fmt::format(" halo({}, {}, {}, {})", elemName(buffer.halo->elem),
                          listText(buffer.halo->lo), listText(buffer.halo->hi),
                          text::elementText(buffer.halo->elem, buffer.halo->fill));
    if (buffer.constant != kNone)
      out_ += fmt::format(" = {}", nameText('@', program_.constants[buffer.constant].name));
    out_ += '\n';
  }

  std::string viewText(const View& view) {
    std::string out = fmt::format("{}[{}]:{}", nameText('%', program_.buffers[view.buffer].name),
                                  fmt::join(view.dims, ","), elemName(view.elem));
    if (!view.layout.isRowMajor()) out += layoutText(view.layout);
    if (view.offset) out += fmt::format(" at {}", view.offset);
    if (view.strides != denseStrides(view.dims)) out += " strides" + listText(view.strides);
    for (int l = 0; l < CDL_MAX_LOOP_NESTING; ++l)
      if (view.ivStrides[l]) out += fmt::format(" + {}*i{}", view.ivStrides[l], l);
    return out;
  }

  void printInstr(uint32_t index, int depth) {
    const Instr& instr = program_.instrs[index];
    out_ += fmt::format("{:{}}[{}] {}", "", depth * 2, index + 1, instrText(instr.kind, instr.fn));
    if (!instr.attrs.empty()) {
      std::vector<std::string> attrs;
      for (const Attr& attr : instr.attrs) attrs.push_back(attrText(attr));
      out_ += fmt::format("{{{}}}", fmt::join(attrs, ", "));
    }
    std::vector<std::string> views;
    for (const View& view : instr.inputs) views.push_back("@in " + viewText(view));
    for (const View& view : instr.outputs)
      views.push_back((instr.inout ? "@inout " : "@out ") + viewText(view));
    out_ += fmt::format(" {}", fmt::join(views, ", "));
    printClauses(instr);
    out_ += '\n';
  }

  void printClauses(const Instr& instr) {
    if (instr.prologue)
      out_ += " prologue{" + text::exprText(exprSteps(instr.prologueSteps())) + "}";
    if (instr.expr.size() > instr.prologue) {
      const Elem acc = accumulatorElem(instr);
      out_ += acc == Elem::none || acc == instr.outputs[0].elem
                  ? " expr{"
                  : fmt::format(" expr(acc {}){{", elemName(acc));
      out_ += text::exprText(exprSteps(instr.epilogueSteps())) + "}";
    }
    if (instr.engine) out_ += fmt::format(" engine {}", instr.engine);
    if (!instr.waits.empty()) {
      std::vector<uint64_t> waits(instr.waits.begin(), instr.waits.end());
      for (uint64_t& wait : waits) ++wait;
      out_ += fmt::format(" waits({})", fmt::join(waits, ", "));
    }
    const char* separator = " from ";
    for (const Origin& origin : instr.provenance) {
      out_ += fmt::format("{}{}:{}", separator, quoteText(origin.node), wordText(origin.op));
      separator = ", ";
    }
  }

  /// Regions that begin at an instruction open from the longest to the shortest; of equal ones,
  /// loops stand around groups.
  void printInstrs() {
    std::vector<uint32_t> ends; // of open regions, innermost last
    size_t loop = 0, group = 0;
    for (uint32_t i = 0; i < program_.instrs.size(); ++i) {
      while (!ends.empty() && ends.back() == i) close(ends);
      std::vector<std::pair<uint32_t, std::string>> opening; // end and text, loops first
      for (; loop < program_.loops.size() && program_.loops[loop].first == i; ++loop)
        opening.emplace_back(i + program_.loops[loop].count,
                             fmt::format("for {} {{\n", program_.loops[loop].trip));
      if (group < program_.groups.size() && program_.groups[group].first == i) {
        const Group& g = program_.groups[group++];
        opening.emplace_back(i + g.count,
                             fmt::format("group dim {} bands {} {{\n", g.bandDim, g.bands));
      }
      std::stable_sort(opening.begin(), opening.end(),
                       [](const auto& a, const auto& b) { return a.first > b.first; });
      for (const auto& [end, words] : opening) {
        out_ += fmt::format("{:{}}{}", "", ends.size() * 2 + 2, words);
        ends.push_back(end);
      }
      printInstr(i, static_cast<int>(ends.size()) + 1);
    }
    while (!ends.empty()) close(ends);
  }

  void close(std::vector<uint32_t>& ends) {
    ends.pop_back();
    out_ += fmt::format("{:{}}}}\n", "", ends.size() * 2 + 2);
  }

  const Program& program_;
  const PrintOptions& options_;
  std::string out_;
};

} // namespace

Result<std::string> print(const Program& program, const PrintOptions& options) {
  CDL_TRY(verify(program));
  return Printer(program, options).print();
}

} // namespace candela::program
