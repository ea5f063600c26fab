#include <algorithm>
#include <filesystem>
#include <map>

#include "core/program/expr.h"
#include "core/program/text.h"
#include "core/program/text_internal.h"
#include "core/support/text/literal.h"

namespace candela::program {

namespace {

using text::Token;
using text::TokenKind;
using text::TokenStream;

using Names = std::map<std::string, uint32_t, std::less<>>;

class Parser {
public:
  Parser(TokenStream& in, std::string directory) : in_(in), directory_(std::move(directory)) {}

  void parse() {
    in_.expect("program") && in_.expect(TokenKind::symbol, "the program's name", program.name);
    if (in_.accept("engines")) program.engines = parenthesized("the number of engines");
    in_.expect("{");
    program.spaces.clear();
    while (!in_.failed() && !in_.accept("}")) statement();
    if (const Token rest = in_.peek(); rest.kind != TokenKind::end)
      in_.fail(rest, fmt::format("unexpected {} after the program", rest.shown()));
  }

  Program program;
  std::vector<Token> instrPlaces, bufferPlaces; ///< where each one stands

private:
  // ---- Small pieces
  // --------------------------------------------------------------------------------

  template <typename T> T number(std::string_view what, uint64_t highest) {
    const Token token = in_.peek();
    int64_t value = 0;
    if (!in_.expectInt(what, value)) return 0;
    if (value < 0 || static_cast<uint64_t>(value) > highest)
      in_.fail(token, fmt::format("{} {} is not within 0 .. {}", what, value, highest));
    return static_cast<T>(value);
  }
  uint32_t number32(std::string_view what) { return number<uint32_t>(what, UINT32_MAX); }
  uint32_t parenthesized(std::string_view what) {
    in_.expect("(");
    const uint32_t value = number32(what);
    in_.expect(")");
    return value;
  }

  /// item { , item } up to `close`, which is taken; nothing at all is a list too.
  template <typename Item> void list(std::string_view close, const Item& item) {
    if (in_.accept(close)) return;
    do item();
    while (!in_.failed() && in_.accept(","));
    in_.expect(close);
  }
  std::vector<int64_t> integers(std::string_view what) {
    std::vector<int64_t> values;
    list("]", [&] { in_.expectInt(what, values.emplace_back()); });
    return values;
  }

  Elem elem() {
    const Token token = in_.peek();
    std::string name;
    if (!in_.expect(TokenKind::identifier, "an element type", name)) return Elem::none;
    const auto found = parseElem(name);
    if (!found) in_.fail(token, fmt::format("unknown element type '{}'", name));
    return found.value_or(Elem::none);
  }

  /// Which of the words stands here.
  template <size_t N> size_t keyword(std::string_view what, const std::string_view (&words)[N], size_t first = 0) {
    const Token token = in_.take();
    const auto found = std::find(std::begin(words) + first, std::end(words), token.text);
    if (token.kind == TokenKind::identifier && found != std::end(words)) return found - std::begin(words);
    in_.fail(token, fmt::format("expected {} but found {}", what, token.shown()));
    return first;
  }

  uint64_t element(Elem type) {
    const Token token = in_.take();
    const auto bits = text::parseElement(type, token.text);
    if (!bits) in_.fail(token, bits.status().message());
    return bits ? *bits : 0;
  }

  /// Declares a name; a second one is an error at its place.
  std::string declare(Names& names, TokenKind kind, std::string_view what, size_t index) {
    const Token token = in_.peek();
    std::string name;
    if (in_.expect(kind, what, name) && !names.emplace(name, static_cast<uint32_t>(index)).second)
      in_.fail(token, fmt::format("{} is declared twice", token.shown()));
    return name;
  }
  uint32_t lookUp(const Names& names, TokenKind kind, std::string_view what) {
    const Token token = in_.peek();
    std::string name;
    if (!in_.expect(kind, what, name)) return 0;
    const auto found = names.find(name);
    if (found == names.end()) in_.fail(token, fmt::format("{} is not declared", token.shown()));
    return found == names.end() ? 0 : found->second;
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
    in_.expect("{");
    list("}", [&] {
      if (in_.accept("host_mapped"))
        space.hostMapped = true;
      else if (in_.accept("local"))
        space.local = true;
      else if (in_.accept("capacity"))
        space.capacityBytes = number<uint64_t>("capacity", INT64_MAX);
      else if (in_.accept("banks"))
        space.banks = number32("number of banks");
      else if (in_.expect("align"))
        space.alignment = number32("alignment");
    });
    program.spaces.push_back(std::move(space));
  }

  void parseConstant() {
    Constant constant;
    const Token token = in_.peek();
    constant.name = declare(constants_, TokenKind::symbol, "the name of a constant", program.constants.size());
    in_.expect(":");
    const Elem type = elem();
    in_.expect("[");
    const auto count = number<int64_t>("number of elements", uint64_t(1) << 48);
    in_.expect("]") && in_.expect("=");
    text::PayloadSyntax syntax;
    if (in_.failed() || !text::parsePayload(in_, syntax)) return;
    auto payload = text::resolvePayload(syntax, type, count, directory_, constant.name);
    if (payload && payload->form() != Payload::Form::splat && payload->form() != Payload::Form::data)
      payload = materialized(*payload);
    if (!payload) return in_.fail(token, payload.status().message());
    constant.payload = std::move(*payload);
    program.constants.push_back(std::move(constant));
  }

  /// iota and random are for writing by hand: a Program holds the elements.
  static Result<Payload> materialized(const Payload& payload) {
    constexpr int64_t kLimit = int64_t(1) << 26;
    if (payload.count() > kLimit) return badModel("{} elements exceed {}", payload.count(), kLimit);
    CDL_ASSIGN(Tensor tensor, payload.materialize({payload.count()}));
    return Payload::data(std::move(tensor));
  }

  void parseBuffer(const Token& place) {
    Buffer buffer;
    buffer.name = declare(buffers_, TokenKind::value, "the name of a buffer", program.buffers.size());
    buffer.role = static_cast<Role>(keyword("a role", kRoles));
    if (buffer.role != Role::temp) buffer.offset = 0;
    buffer.space = lookUp(spaces_, TokenKind::symbol, "the name of a space");
    buffer.bytes = number<uint64_t>("size in bytes", INT64_MAX);
    if (in_.accept("align")) buffer.alignment = number32("alignment");
    if (in_.accept("at")) buffer.offset = number<uint64_t>("offset", INT64_MAX);
    if (in_.accept("halo")) buffer.halo = parseHalo();
    if (in_.accept("=")) buffer.constant = lookUp(constants_, TokenKind::symbol, "the name of a constant");
    bufferPlaces.push_back(place);
    program.buffers.push_back(std::move(buffer));
  }

  Halo parseHalo() {
    Halo halo;
    const auto widths = [&](std::vector<uint32_t>& out) {
      in_.expect(",") && in_.expect("[");
      list("]", [&] { out.push_back(number32("width")); });
    };
    in_.expect("(");
    halo.elem = elem();
    widths(halo.lo);
    widths(halo.hi);
    if (in_.expect(",") && !in_.failed()) halo.fill = element(halo.elem);
    in_.expect(")");
    return halo;
  }

  // ---- Regions
  // ---------------------------------------------------------------------------------------

  /// Its instructions and those of the regions inside of it; `current` is the innermost one of its sort.
  template <typename Region>
  void parseRegion(std::vector<Region>& regions, Region region, uint32_t& current, const Token& place) {
    region.first = static_cast<uint32_t>(program.instrs.size());
    const uint32_t outer = std::exchange(current, static_cast<uint32_t>(regions.size()));
    regions.push_back(region);
    in_.expect("{");
    while (!in_.failed() && !in_.accept("}")) statement();
    const uint32_t count = static_cast<uint32_t>(program.instrs.size()) - region.first;
    if (!in_.failed() && count == 0) in_.fail(place, "a region without instructions");
    regions[current].count = count;
    current = outer;
  }

  void parseLoop(const Token& place) {
    if (loop_ != kNone && program.loops[loop_].parent != kNone)
      return in_.fail(place, fmt::format("loops are nested more than {} deep", CDL_MAX_LOOP_NESTING));
    Loop loop;
    loop.parent = loop_;
    loop.trip = number<uint64_t>("trip count", INT64_MAX);
    parseRegion(program.loops, loop, loop_, place);
  }

  void parseGroup(const Token& place) {
    if (group_ != kNone) return in_.fail(place, "a group inside of a group");
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
      if (const uint32_t said = number32("the instruction's number"); !in_.failed() && said != number)
        return in_.fail(place, fmt::format("instruction {} is numbered {}", number, said));
      in_.expect("]");
      place = in_.peek();
    }
    Instr instr;
    instr.loop = loop_;
    instr.group = group_;
    parseKind(instr);
    if (in_.accept("{")) list("}", [&] { instr.attrs.push_back(parseAttr()); });
    bool sawOut = false;
    do {
      const Token direction = in_.peek();
      std::string name;
      in_.expect(TokenKind::symbol, "@in, @out or @inout", name);
      const bool inout = name == "inout";
      if (name != "in" && name != "out" && !inout)
        in_.fail(direction, fmt::format("expected @in, @out or @inout but found {}", direction.shown()));
      else if (name == "in" && sawOut)
        in_.fail(direction, "an @in view behind a result");
      else if (sawOut && inout != instr.inout)
        in_.fail(direction, "results are all @out or all @inout");
      if (name == "in") {
        instr.inputs.push_back(parseView());
        continue;
      }
      sawOut = true;
      instr.inout = inout;
      instr.outputs.push_back(parseView());
    } while (!in_.failed() && in_.accept(","));
    parseClauses(instr);
    instrPlaces.push_back(std::move(place));
    program.instrs.push_back(std::move(instr));
  }

  /// `copy`, `binary.add`, `custom.7`; the lexer takes a name with its dots for one word.
  void parseKind(Instr& instr) {
    const Token token = in_.peek();
    std::string word;
    if (!in_.expect(TokenKind::identifier, "an instruction", word)) return;
    const size_t dot = word.find('.');
    const std::string fn = dot == std::string::npos ? "" : word.substr(dot + 1);
    const auto kind = program::parseKind(word.substr(0, dot));
    if (!kind) return in_.fail(token, fmt::format("unknown instruction '{}'", word.substr(0, dot)));
    instr.kind = *kind;
    std::optional<uint16_t> found = parseFn(*kind, fn);
    if (*kind == CDL_KIND_CUSTOM && !fn.empty()) {
      if (const auto bits = text::parseElement(Elem::u16_, fn); bits) found = static_cast<uint16_t>(*bits);
    } else if (fn.empty() && !hasFns(*kind) && dot == std::string::npos) {
      found = 0;
    }
    if (!found)
      return in_.fail(token, fn.empty() ? fmt::format("{} needs a function: {}.name", word, word)
                                        : fmt::format("unknown function '{}' of {}", fn, kindName(*kind)));
    instr.fn = *found;
  }

  Attr parseAttr() {
    const Token name = in_.peek();
    std::string word;
    Attr attr;
    in_.expect(TokenKind::identifier, "an attribute", word);
    if (const auto id = program::parseAttr(word))
      attr.id = *id;
    else if (const auto bits = text::parseElement(Elem::u16_, word.starts_with("attr") ? word.substr(4) : "-"); bits)
      attr.id = static_cast<uint16_t>(*bits);
    else
      in_.fail(name, fmt::format("unknown attribute '{}'", word));
    in_.expect("=");
    const Token value = in_.take();
    const auto real = [&](const Token& token) {
      const auto number = text::parseReal(token.text);
      if (!number) in_.fail(token, fmt::format("{} is no number", token.shown()));
      attr = Attr::ofFloat(attr.id, number.value_or(0));
    };
    if (value.is(TokenKind::punct, "[")) {
      attr.type = 3;
      attr.values = integers("a value");
    } else if (value.is(TokenKind::identifier, "float")) {
      if (in_.expect("(")) real(in_.take());
      in_.expect(")");
    } else if (value.kind == TokenKind::integer) {
      const bool bits = value.text.starts_with("0x");
      const auto parsed = text::parseElement(bits ? Elem::u64_ : Elem::i64_, value.text);
      if (!parsed)
        in_.fail(value, parsed.status().message());
      else
        attr = {attr.id, static_cast<uint8_t>(bits ? 4 : 1), {static_cast<int64_t>(*parsed)}};
    } else {
      real(value);
    }
    return attr;
  }

  View parseView() {
    View view;
    view.buffer = lookUp(buffers_, TokenKind::value, "a buffer");
    in_.expect("[");
    view.dims = integers("a dim");
    in_.expect(":");
    view.elem = elem();
    if (in_.accept("{")) view.layout = parseLayout();
    if (in_.accept("at")) in_.expectInt("an offset", view.offset);
    view.strides = denseStrides(view.dims);
    if (in_.accept("strides") && in_.expect("[")) view.strides = integers("a stride");
    while (in_.accept("+")) {
      int64_t stride = 0;
      in_.expectInt("a stride", stride);
      in_.expect("*");
      const Token iv = in_.peek();
      if (!in_.accept("i0") && !in_.expect("i1")) break;
      int64_t& slot = view.ivStrides[iv.text == "i1"];
      if (slot) in_.fail(iv, fmt::format("a second stride of {}", iv.text));
      slot = stride;
    }
    return view;
  }

  Layout parseLayout() {
    Layout layout;
    std::vector<std::pair<Token, uint64_t>> inner; // what each step says after '/'
    while (!in_.failed() && !in_.at("}") && !in_.at("opaque") && !in_.at("pad")) {
      const Token token = in_.take();
      const size_t letter = token.text.size() == 1 ? kDimLetters.find(token.text[0]) : std::string_view::npos;
      const auto digits = text::parseElement(Elem::u8_, token.text);
      Layout::Step step;
      if (token.kind == TokenKind::identifier && letter != std::string_view::npos)
        step.dim = static_cast<uint8_t>(letter);
      else if (token.kind == TokenKind::integer && digits && *digits < CDL_MAX_RANK)
        step.dim = static_cast<uint8_t>(*digits);
      else
        in_.fail(token,
                 fmt::format("expected a dim (n, c, h, w or below {}) but found {}", CDL_MAX_RANK, token.shown()));
      const uint64_t factor = in_.accept("/") ? number<uint64_t>("factor", INT64_MAX) : 1;
      if (in_.accept("%")) step.factor = number32("factor");
      layout.logicalRank = std::max<uint8_t>(layout.logicalRank, step.dim + 1);
      layout.steps.push_back(step);
      inner.emplace_back(token, factor);
      if (!in_.accept(",")) break;
    }
    for (size_t i = 0; i < inner.size() && !in_.failed(); ++i)
      if (const uint64_t product = innerFactor(layout.steps, i); product != inner[i].second)
        in_.fail(inner[i].first, fmt::format("'{}/{}' but the factors inside of it give {}", inner[i].first.text,
                                             inner[i].second, product));
    if (in_.accept("opaque")) {
      layout.opaque = true;
      in_.expect(TokenKind::string, "the name of an opaque layout", layout.name) && in_.expect("rank");
      layout.logicalRank = number<uint8_t>("rank", CDL_MAX_RANK);
    }
    if (in_.accept("pad")) layout.padContent = static_cast<uint8_t>(keyword("zero or zero_point", kPadContents, 1));
    in_.expect("}");
    return layout;
  }

  void parseClauses(Instr& instr) {
    if (in_.at("expr")) parseExpression(instr);
    if (in_.accept("engine")) instr.engine = number<uint16_t>("engine", UINT16_MAX);
    if (in_.accept("waits") && in_.expect("("))
      list(")", [&] {
        const Token token = in_.peek();
        const uint32_t wait = number32("instruction");
        if (wait == 0) in_.fail(token, "instructions count from 1");
        instr.waits.push_back(wait - 1);
      });
    if (!in_.accept("from")) return;
    do {
      Origin origin;
      in_.expect(TokenKind::string, "the name of a node", origin.node) && in_.expect(":");
      if (in_.at(TokenKind::string))
        origin.op = in_.take().text;
      else
        in_.expect(TokenKind::identifier, "an op", origin.op);
      instr.provenance.push_back(std::move(origin));
    } while (!in_.failed() && in_.accept(","));
  }

  void parseExpression(Instr& instr) {
    const Token place = in_.take();
    Elem acc = instr.outputs.empty() || instr.kind == CDL_KIND_ELEMENTWISE ? Elem::none : instr.outputs[0].elem;
    if (in_.accept("(")) {
      in_.expect("acc");
      acc = elem();
      in_.expect(")");
    }
    in_.expect("{");
    const text::ExprSteps steps = text::parseExpr(in_);
    in_.expect("}");
    if (in_.failed()) return;
    auto expr = resolveExpr(steps, instr.inputs, acc);
    if (!expr) return in_.fail(place, expr.status().message());
    instr.expr = std::move(expr).value();
  }

  TokenStream& in_;
  std::string directory_;
  Names spaces_, constants_, buffers_;
  uint32_t loop_ = kNone, group_ = kNone;
};

} // namespace

Result<Program> parse(std::string_view source, const std::string& file, Diagnostics& diagnostics) {
  Diagnostics own;
  TokenStream in(source, file, own);
  Parser parser(in, std::filesystem::path(file).parent_path().string());
  parser.parse();
  if (!in.failed()) {
    Suspect suspect;
    if (const Status status = verify(parser.program, suspect); !status) {
      Token place;
      place.line = 0; // of no line in particular
      if (suspect.instr < parser.instrPlaces.size())
        place = parser.instrPlaces[suspect.instr];
      else if (suspect.buffer < parser.bufferPlaces.size())
        place = parser.bufferPlaces[suspect.buffer];
      in.report(place, status.message());
    }
  }
  for (const Diagnostic& diagnostic : own.list()) diagnostics.error(diagnostic.location, diagnostic.message);
  if (!own.empty()) return own.status();
  return std::move(parser.program);
}

} // namespace candela::program
