#include <algorithm>
#include <filesystem>
#include <map>

#include "core/compiler/program/expr.h"
#include "core/compiler/program/internal.h"
#include "core/compiler/program/text.h"
#include "core/support/text/literal.h"
#include "core/support/text/scan.h"

namespace candela::program {

namespace {

using text::Token, text::TokenKind, text::TokenStream;

using Names = std::map<std::string, uint32_t, std::less<>>;

class Parser {
public:
  Parser(TokenStream& in, std::string directory) : in_(in), directory_(std::move(directory)) {}

  void parse() {
    in_.expect("program");
    program.name = in_.expect(TokenKind::symbol, "the program's name").text;
    if (in_.accept("engines"))
      program.engines = in_.within("(", ")", [&] { return number32("the number of engines"); });
    in_.expect("{");
    program.spaces.clear();
    while (!in_.accept("}")) statement();
  }

  Program program;
  std::vector<Token> instrPlaces, bufferPlaces; ///< where each one stands

private:
  // ---- Small pieces
  // --------------------------------------------------------------------------------

  int64_t number(std::string_view what, int64_t highest = INT64_MAX) {
    return in_.expectInt(what, 0, highest);
  }
  uint32_t number32(std::string_view what) {
    return static_cast<uint32_t>(number(what, UINT32_MAX));
  }
  std::vector<int64_t> integers(std::string_view what) {
    std::vector<int64_t> values;
    in_.list("[", "]", [&] { values.push_back(in_.expectInt(what)); });
    return values;
  }

  /// Which of the words stands here.
  template <size_t N>
  size_t keyword(std::string_view what, const std::string_view (&words)[N], size_t first = 0) {
    const Token token = in_.expect(TokenKind::identifier, what);
    const auto found = std::find(std::begin(words) + first, std::end(words), token.text);
    if (found == std::end(words)) in_.fail(token, "expected {} but found {}", what, token.shown());
    return found - std::begin(words);
  }

  /// Declares a name; a second one is an error at its place.
  std::string declare(Names& names, TokenKind kind, std::string_view what, size_t index) {
    const Token token = in_.expect(kind, what);
    if (!names.emplace(token.text, static_cast<uint32_t>(index)).second)
      in_.fail(token, "{} is declared twice", token.shown());
    return token.text;
  }
  uint32_t lookUp(const Names& names, TokenKind kind, std::string_view what) {
    const Token token = in_.expect(kind, what);
    const auto found = names.find(token.text);
    if (found == names.end()) in_.fail(token, "{} is not declared", token.shown());
    return found->second;
  }

  // ---- Declarations
  // --------------------------------------------------------------------------------

  void statement() {
    const Token token = in_.peek();
    if (in_.accept("space")) return parseSpace();
    if (in_.accept("constant")) return parseConstant();
    if (in_.accept("buffer")) return parseBuffer(token);
    if (in_.accept("for")) return parseLoop(token);
    if (in_.accept("group")) return parseGroup(token);
    parseInstr();
  }

  void parseSpace() {
    Space space;
    space.hostMapped = false;
    space.name = declare(spaces_, TokenKind::symbol, "the name of a space", program.spaces.size());
    in_.list("{", "}", [&] {
      if (in_.accept("host_mapped")) {
        space.hostMapped = true;
      } else if (in_.accept("local")) {
        space.local = true;
      } else if (in_.accept("constants")) {
        space.forConstants = true;
      } else if (in_.accept("capacity")) {
        space.capacityBytes = number("capacity");
      } else if (in_.accept("banks")) {
        space.banks = number32("number of banks");
      } else {
        in_.expect("align");
        space.alignment = number32("alignment");
      }
    });
    program.spaces.push_back(std::move(space));
  }

  void parseConstant() {
    Constant constant;
    const Token token = in_.peek();
    constant.name =
        declare(constants_, TokenKind::symbol, "the name of a constant", program.constants.size());
    in_.expect(":");
    const Elem type = in_.expectElem();
    const int64_t count =
        in_.within("[", "]", [&] { return number("number of elements", int64_t(1) << 48); });
    in_.expect("=");
    auto payload =
        text::resolvePayload(text::parsePayload(in_), type, count, directory_, constant.name);
    if (payload && payload->form() != Payload::Form::splat &&
        payload->form() != Payload::Form::data)
      payload = materialized(*payload);
    if (!payload) in_.fail(token, "{}", payload.status().message());
    constant.payload = std::move(*payload);
    program.constants.push_back(std::move(constant));
  }

  /// iota and random are for writing by hand: a Program holds the elements.
  static Result<Payload> materialized(const Payload& payload) {
    constexpr int64_t kLimit = int64_t(1) << 26;
    if (payload.count() > kLimit) return badModel("{} elements exceed {}", payload.count(), kLimit);
    return payload.stored();
  }

  void parseBuffer(const Token& place) {
    Buffer buffer;
    buffer.name =
        declare(buffers_, TokenKind::value, "the name of a buffer", program.buffers.size());
    buffer.role = static_cast<Role>(keyword("a role", kRoles));
    if (buffer.role != Role::temp) buffer.offset = 0;
    buffer.space = lookUp(spaces_, TokenKind::symbol, "the name of a space");
    buffer.bytes = number("size in bytes");
    if (in_.accept("align")) buffer.alignment = number32("alignment");
    if (in_.accept("at")) buffer.offset = number("offset");
    if (in_.accept("halo")) buffer.halo = parseHalo();
    if (in_.accept("="))
      buffer.constant = lookUp(constants_, TokenKind::symbol, "the name of a constant");
    bufferPlaces.push_back(place);
    program.buffers.push_back(std::move(buffer));
  }

  Halo parseHalo() {
    Halo halo;
    const auto widths = [&](std::vector<uint32_t>& out) {
      in_.expect(",");
      in_.list("[", "]", [&] { out.push_back(number32("width")); });
    };
    in_.expect("(");
    halo.elem = in_.expectElem();
    widths(halo.lo);
    widths(halo.hi);
    in_.expect(",");
    halo.fill = text::expectElement(in_, halo.elem);
    in_.expect(")");
    return halo;
  }

  // ---- Regions
  // ---------------------------------------------------------------------------------------

  /// Its instructions and those of the regions inside of it; `current` is the innermost one of its
  /// sort.
  template <typename Region>
  void parseRegion(std::vector<Region>& regions, Region region, uint32_t& current,
                   const Token& place) {
    region.first = static_cast<uint32_t>(program.instrs.size());
    const uint32_t outer = std::exchange(current, static_cast<uint32_t>(regions.size()));
    regions.push_back(region);
    in_.expect("{");
    while (!in_.accept("}")) statement();
    const uint32_t count = static_cast<uint32_t>(program.instrs.size()) - region.first;
    if (count == 0) in_.fail(place, "a region without instructions");
    regions[current].count = count;
    current = outer;
  }

  void parseLoop(const Token& place) {
    if (loop_ != kNone && program.loops[loop_].parent != kNone)
      in_.fail(place, "loops are nested more than {} deep", CDL_MAX_LOOP_NESTING);
    Loop loop;
    loop.parent = loop_;
    loop.trip = number("trip count");
    parseRegion(program.loops, loop, loop_, place);
  }

  void parseGroup(const Token& place) {
    if (group_ != kNone) in_.fail(place, "a group inside of a group");
    Group group;
    in_.expect("dim");
    group.bandDim = number32("dim");
    in_.expect("bands");
    group.bands = number32("number of bands");
    parseRegion(program.groups, group, group_, place);
  }

  // ---- Instructions
  // ----------------------------------------------------------------------------------

  void parseInstr() {
    Token place = in_.peek();
    const size_t number = program.instrs.size() + 1;
    if (in_.accept("[")) {
      if (const uint32_t said = number32("the instruction's number"); said != number)
        in_.fail(place, "instruction {} is numbered {}", number, said);
      in_.expect("]");
      place = in_.peek();
    }
    Instr instr;
    instr.loop = loop_;
    instr.group = group_;
    parseKind(instr);
    if (in_.at("{")) in_.list("{", "}", [&] { instr.attrs.push_back(parseAttr()); });
    do {
      const Token direction = in_.expect(TokenKind::symbol, "@in, @out or @inout");
      const bool in = direction.text == "in", inout = direction.text == "inout",
                 sawOut = !instr.outputs.empty();
      if (!in && !inout && direction.text != "out")
        in_.fail(direction, "expected @in, @out or @inout but found {}", direction.shown());
      if (in && sawOut) in_.fail(direction, "an @in view behind a result");
      if (sawOut && inout != instr.inout) in_.fail(direction, "results are all @out or all @inout");
      if (!in) instr.inout = inout;
      (in ? instr.inputs : instr.outputs).push_back(parseView());
    } while (in_.accept(","));
    parseClauses(instr);
    instrPlaces.push_back(std::move(place));
    program.instrs.push_back(std::move(instr));
  }

  /// `copy`, `binary.add`, `custom.7`; the lexer takes a name with its dots for one word.
  void parseKind(Instr& instr) {
    const Token token = in_.expect(TokenKind::identifier, "an instruction");
    const std::string& word = token.text;
    const size_t dot = word.find('.');
    const std::string fn = dot == std::string::npos ? "" : word.substr(dot + 1);
    const auto kind = candela::parseKind(word.substr(0, dot));
    if (!kind) in_.fail(token, "unknown instruction '{}'", word.substr(0, dot));
    instr.kind = *kind;
    std::optional<uint16_t> found = parseFn(*kind, fn);
    if (*kind == CDL_KIND_CUSTOM && !fn.empty()) {
      if (const auto bits = text::parseElement(Elem::u16_, fn); bits)
        found = static_cast<uint16_t>(*bits);
    } else if (fn.empty() && fnName(*kind, 0).empty() && dot == std::string::npos) {
      found = 0;
    }
    if (!found)
      in_.fail(token, "{}",
               fn.empty() ? fmt::format("{} needs a function: {}.name", word, word)
                          : fmt::format("unknown function '{}' of {}", fn, kindName(*kind)));
    instr.fn = *found;
  }

  Attr parseAttr() {
    const Token name = in_.expect(TokenKind::identifier, "an attribute");
    auto id = candela::parseAttr(name.text);
    if (!id && name.text.starts_with("attr")) id = text::parseNumber<uint16_t>(name.text.substr(4));
    if (!id) in_.fail(name, "unknown attribute '{}'", name.text);
    in_.expect("=");
    const auto real = [&] {
      const Token token = in_.take();
      const auto number = text::parseReal(token.text);
      if (!number) in_.fail(token, "{} is no number", token.shown());
      return Attr::ofFloat(*id, *number);
    };
    if (in_.at("[")) return Attr::ofInts(*id, integers("a value"));
    if (in_.accept("float")) return in_.within("(", ")", real);
    if (!in_.at(TokenKind::integer)) return real();
    const bool bits = in_.peek().text.starts_with("0x");
    const uint64_t value = text::expectElement(in_, bits ? Elem::u64_ : Elem::i64_);
    return bits ? Attr::ofBits(*id, value) : Attr::ofInt(*id, static_cast<int64_t>(value));
  }

  View parseView() {
    View view;
    view.buffer = lookUp(buffers_, TokenKind::value, "a buffer");
    view.dims = integers("a dim");
    in_.expect(":");
    view.elem = in_.expectElem();
    if (in_.accept("{")) view.layout = parseLayout();
    if (in_.accept("at")) view.offset = in_.expectInt("an offset");
    view.strides = in_.accept("strides") ? integers("a stride") : denseStrides(view.dims);
    while (in_.accept("+")) {
      const int64_t stride = in_.expectInt("a stride");
      in_.expect("*");
      const Token iv = in_.peek();
      if (!in_.accept("i0")) in_.expect("i1");
      int64_t& slot = view.ivStrides[iv.text == "i1"];
      if (slot) in_.fail(iv, "a second stride of {}", iv.text);
      slot = stride;
    }
    return view;
  }

  Layout parseLayout() {
    Layout layout;
    std::vector<std::pair<Token, uint64_t>> inner; // what each step says after '/'
    while (!in_.at("}") && !in_.at("opaque") && !in_.at("pad")) {
      const Token token = in_.take();
      const size_t letter =
          token.text.size() == 1 ? kDimLetters.find(token.text[0]) : std::string_view::npos;
      const auto digits = text::parseElement(Elem::u8_, token.text);
      Layout::Step step;
      if (token.kind == TokenKind::identifier && letter != std::string_view::npos)
        step.dim = static_cast<uint8_t>(letter);
      else if (token.kind == TokenKind::integer && digits && *digits < CDL_MAX_RANK)
        step.dim = static_cast<uint8_t>(*digits);
      else
        in_.fail(token, "expected a dim (n, c, h, w or below {}) but found {}", CDL_MAX_RANK,
                 token.shown());
      const uint64_t factor = in_.accept("/") ? number("factor") : 1;
      if (in_.accept("%")) step.factor = number32("factor");
      layout.logicalRank = std::max<uint8_t>(layout.logicalRank, step.dim + 1);
      layout.steps.push_back(step);
      inner.emplace_back(token, factor);
      if (!in_.accept(",")) break;
    }
    for (size_t i = 0; i < inner.size(); ++i)
      if (const uint64_t product = innerFactor(layout.steps, i); product != inner[i].second)
        in_.fail(inner[i].first, "'{}/{}' but the factors inside of it give {}",
                 inner[i].first.text, inner[i].second, product);
    if (in_.accept("opaque")) {
      layout.opaque = true;
      layout.name = in_.expect(TokenKind::string, "the name of an opaque layout").text;
      in_.expect("rank");
      layout.logicalRank = static_cast<uint8_t>(number("rank", CDL_MAX_RANK));
    }
    if (in_.accept("pad"))
      layout.padContent = static_cast<uint8_t>(keyword("zero or zero_point", kPadContents, 1));
    in_.expect("}");
    return layout;
  }

  void parseClauses(Instr& instr) {
    if (in_.at("prologue")) parsePrologue(instr);
    if (in_.at("expr")) parseExpression(instr);
    if (in_.accept("engine")) instr.engine = static_cast<uint16_t>(number("engine", UINT16_MAX));
    if (in_.accept("waits"))
      in_.list("(", ")", [&] {
        const Token token = in_.peek();
        const uint32_t wait = number32("instruction");
        if (wait == 0) in_.fail(token, "instructions count from 1");
        instr.waits.push_back(wait - 1);
      });
    if (!in_.accept("from")) return;
    do {
      Origin& origin = instr.provenance.emplace_back();
      origin.node = in_.expect(TokenKind::string, "the name of a node").text;
      in_.expect(":");
      origin.op = in_.at(TokenKind::string) ? in_.take().text
                                            : in_.expect(TokenKind::identifier, "an op").text;
    } while (in_.accept(","));
  }

  /// Its value is what is reduced: the result has that type, unless an epilogue follows.
  void parsePrologue(Instr& instr) {
    const Token place = in_.take();
    const text::ExprSteps steps = in_.within("{", "}", [&] { return text::parseExpr(in_); });
    auto expr = resolveExpr(steps, instr.inputs, Elem::none);
    if (!expr) in_.fail(place, "prologue: {}", expr.status().message());
    instr.expr = std::move(expr).value();
    instr.prologue = static_cast<uint32_t>(instr.expr.size());
  }

  void parseExpression(Instr& instr) {
    const Token place = in_.take();
    Elem acc = instr.outputs.empty() || instr.kind == CDL_KIND_ELEMENTWISE ? Elem::none
                                                                           : instr.outputs[0].elem;
    if (in_.accept("(")) {
      in_.expect("acc");
      acc = in_.expectElem();
      in_.expect(")");
    }
    const text::ExprSteps steps = in_.within("{", "}", [&] { return text::parseExpr(in_); });
    auto expr = resolveExpr(steps, instr.inputs, acc);
    if (!expr) in_.fail(place, "{}", expr.status().message());
    for (Step& step : *expr) {
      for (Operand& operand : step.in)
        if (operand.source == Operand::Source::step)
          operand.index = static_cast<uint16_t>(operand.index + instr.prologue);
      instr.expr.push_back(std::move(step));
    }
  }

  TokenStream& in_;
  std::string directory_;
  Names spaces_, constants_, buffers_;
  uint32_t loop_ = kNone, group_ = kNone;
};

} // namespace

Result<Program> parse(std::string_view source, const std::string& file, Diagnostics& diagnostics) {
  TokenStream in(source, file, diagnostics);
  Parser parser(in, std::filesystem::path(file).parent_path().string());
  if (!in.parseAll("program", [&] { parser.parse(); })) return diagnostics.status();
  Suspect suspect;
  const Status status = verify(parser.program, suspect);
  if (status) return std::move(parser.program);
  Token place;
  place.line = 0; // of no line in particular
  if (suspect.instr < parser.instrPlaces.size())
    place = parser.instrPlaces[suspect.instr];
  else if (suspect.buffer < parser.bufferPlaces.size())
    place = parser.bufferPlaces[suspect.buffer];
  in.report(place, status.message());
  return diagnostics.status();
}

} // namespace candela::program
