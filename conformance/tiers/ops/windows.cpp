// What moves windows over images: CONV2D in all its forms, and POOL2D.
#include "conformance/tiers/ops/families.h"
#include "core/support/text/scan.h"

namespace candela::conformance::tiers::ops {
namespace {

using graph::OpKind;

/// "3x3s2x1p0.1.2.1d2": kernel, strides, pads (top, left, bottom, right), dilations; one number
/// stands for all.
struct WindowText {
  Shape kernel, strides{1, 1}, pads{0, 0, 0, 0}, dilations{1, 1};

  explicit WindowText(std::string_view text) {
    const auto take = [&](char letter, size_t count, Shape otherwise) {
      const size_t at = letter ? text.find(letter) : 0;
      if (at == std::string_view::npos) return otherwise;
      std::string_view part = text.substr(at + (letter ? 1 : 0));
      part = part.substr(0, part.find_first_of("spd"));
      Shape numbers;
      for (const std::string& number : text::split(part, letter == 'p' ? '.' : 'x'))
        numbers.push_back(text::parseNumber<int64_t>(number).value_or(1));
      if (numbers.size() == 1) numbers.assign(count, numbers[0]);
      return numbers;
    };
    kernel = take(0, 2, {1, 1});
    strides = take('s', 2, strides);
    pads = take('p', 4, pads);
    dilations = take('d', 2, dilations);
  }
  graph::Attrs attrs() const {
    return {{"strides", strides}, {"pads", pads}, {"dilations", dilations}};
  }
};

/// "8to12g4"
struct ChannelText {
  int64_t in = 1, out = 1, group = 1;
  explicit ChannelText(std::string_view text) {
    const size_t to = text.find("to"), g = text.find('g');
    in = text::parseNumber<int64_t>(text.substr(0, to)).value_or(1);
    out = text::parseNumber<int64_t>(text.substr(to + 2, g - to - 2)).value_or(1);
    if (g != std::string_view::npos)
      group = text::parseNumber<int64_t>(text.substr(g + 1)).value_or(1);
  }
};

bool isHalf(const std::string& row) { return row == "f16" || row == "bf16"; }

/// x and w of a convolution; of integers with zero points as `zero` says.
OpCase convolution(const Choice& choice) {
  const std::vector<Elem> elems = elemsIn(choice.at("row"));
  const Elem x = elems[0], w = elems.back();
  const WindowText window(choice.at("window"));
  const ChannelText channels(choice.at("channels"));
  const Shape image = shapeOf(choice.at("image"));
  const bool constant = choice.at("weights") == "constant";
  const auto given = choice.find("data");
  const std::string data = given == choice.end() ? "bits" : given->second;
  OpCase made;
  made.operands = {
      {x, {image[0], channels.in, image[1], image[2]}, fillOf(x, data)},
      {w,
       {channels.out, channels.in / channels.group, window.kernel[0], window.kernel[1]},
       fillOf(w, data),
       constant}};
  graph::Attrs attrs = window.attrs();
  attrs["group"] = channels.group;
  if (isFloat(x)) {
    made.whole = [attrs](graph::Graph& graph, const Values& in) {
      return write(graph, OpKind::Conv, {in[0], in[1]}, attrs);
    };
    return made;
  }
  const std::string& zero = choice.at("zero");
  const bool ofX = zero == "x" || zero == "both" || zero == "channels",
             ofW = zero != "none" && zero != "x";
  if (ofX) made.operands.push_back({x, {1}, fillOf(x, "bits"), constant});
  if (ofW)
    made.operands.push_back(
        {w, {zero == "channels" ? channels.out : 1}, fillOf(w, "bits"), constant});
  made.whole = [attrs, ofX, ofW](graph::Graph& graph, const Values& in) {
    Values operands{in[0], in[1], nullptr, ofX ? in[2] : nullptr};
    if (ofW) operands.push_back(in.back());
    return write(graph, OpKind::ConvInteger, operands, attrs);
  };
  return made;
}

OpFamily conv2d() {
  OpFamily made;
  made.family = {
      "ops:conv2d/",
      {"f32", "f16", "bf16", "u8_i8", "i8_i8", "u8_u8", "i8_u8"},
      {{"channels", {"3to8", "17to33", "16to16", "8to12g4", "6to6g6", "4to8g4", "1to1"}},
       {"window",
        {"1x1", "3x3", "3x3s2p1", "7x7s2p3", "3x3p0.1.2.1", "2x5s3x2p1.2.0.3", "3x3p2d2",
         "1x3s1x2p0.2.0.1d1x3"}},
       {"image", {"1x9x9", "2x8x13", "0x9x9"}},
       {"weights", {"constant", "input"}},
       {"zero", {"none", "x", "w", "both", "channels"}},
       {"data", {"steps", "calm", "wide"}}},
      [](const Choice& c) {
        const std::string &row = c.at("row"), &channels = c.at("channels"),
                          &window = c.at("window");
        const std::string &image = c.at("image"), &data = c.at("data");
        const bool input = c.at("weights") == "input";
        if (image == "0x9x9")
          return input && channels == "3to8" && window == "3x3" && c.at("zero") == "none" &&
                 data == "steps";
        if (row == "f32") return c.at("zero") == "none" && (data != "wide" || input);
        const bool few = channels == "3to8" || channels == "8to12g4" || channels == "6to6g6";
        if (isHalf(row))
          return c.at("zero") == "none" && few && input && image == "1x9x9" && data != "wide";
        const bool simple = window == "1x1" || window == "3x3s2p1" || window == "3x3p0.1.2.1";
        if (data != "steps" || image != "2x8x13") return false;
        if (row == "u8_u8" || row == "i8_u8") return few && input && window == "3x3p0.1.2.1";
        return simple || (few && c.at("zero") == "both");
      },
      {}};
  made.budget = {0, 45};
  made.make = [](const Choice& choice) {
    Choice used = choice;
    if (!elemsIn(choice.at("row")).empty() && !isFloat(elemsIn(choice.at("row"))[0]))
      used["data"] = "bits";
    return convolution(used);
  };
  return made;
}

/// The result holds something before: y += x * w.
OpFamily accumulating() {
  OpFamily made;
  made.family = {"ops:conv2d_accumulate/",
                 {"f32", "u8_i8"},
                 {{"channels", {"3to8", "6to6g6"}},
                  {"window", {"1x1", "3x3s2p1"}},
                  {"weights", {"constant", "input"}}},
                 {},
                 {}};
  made.budget = {0, 3};
  made.make = [](const Choice& choice) {
    Choice full = choice;
    full.insert({{"image", "1x9x9"}, {"zero", "none"}});
    OpCase conv = convolution(full);
    if (choice.at("row") == "f32") {
      full["data"] = "steps";
      conv = convolution(full);
    }
    const WindowText window(choice.at("window"));
    const ChannelText channels(choice.at("channels"));
    const Elem sum = choice.at("row") == "f32" ? Elem::f32_ : Elem::i32_;
    const auto extent = [&](int d) {
      return (9 + window.pads[d] + window.pads[d + 2] - window.kernel[d]) / window.strides[d] + 1;
    };
    conv.operands.push_back({sum, {1, channels.out, extent(0), extent(1)}, fillOf(sum, "steps")});
    conv.accumulates = true;
    conv.change = [](lowering::decompose::NodeInstr& instr, const Values&) {
      instr.attrs.push_back({CDL_ATTR_ACCUMULATE, {1}});
    };
    conv.parts = [whole = conv.whole](graph::Graph& graph, const Values& in) -> Result<Values> {
      CDL_ASSIGN(const Values product, whole(graph, in));
      return write(graph, OpKind::Add, {product[0], in.back()});
    };
    return conv;
  };
  return made;
}

OpFamily onLayouts() {
  OpFamily made;
  made.family = {"ops:conv2d_layouts/",
                 {"f32", "u8_i8", "i8_i8"},
                 {{"channels", {"16to16", "32to48", "16to16g16", "3to16", "16to20", "20to16"}},
                  {"window", {"1x1", "3x3s2p1", "3x3p0.1.2.1", "5x3p2d2x1"}},
                  {"zero", {"none", "x"}}},
                 [](const Choice& c) { return c.at("row") != "f32" || c.at("zero") == "none"; },
                 {}};
  made.budget = {0, 14};
  made.make = [](const Choice& choice) {
    Choice full = choice;
    full.insert({{"image", "2x9x13"}, {"weights", "constant"}});
    if (choice.at("row") == "f32") full["data"] = "calm";
    OpCase conv = convolution(full);
    conv.onClaimedLayouts = true;
    return conv;
  };
  return made;
}

/// x and w of a transposed convolution of floats.
OpCase transposedConvolution(const Choice& choice) {
  const Elem elem = elemsIn(choice.at("row"))[0];
  const WindowText window(choice.at("window"));
  const ChannelText channels(choice.at("channels"));
  const Shape image = shapeOf(choice.at("image"));
  graph::Attrs attrs = window.attrs();
  attrs["group"] = channels.group;
  OpCase conv;
  conv.operands = {
      {elem, {image[0], channels.in, image[1], image[2]}, fillOf(elem, choice.at("data"))},
      {elem,
       {channels.in, channels.out / channels.group, window.kernel[0], window.kernel[1]},
       fillOf(elem, choice.at("data")),
       choice.at("weights") == "constant"}};
  conv.whole = [attrs](graph::Graph& graph, const Values& in) {
    return write(graph, OpKind::ConvTranspose, in, attrs);
  };
  return conv;
}

OpFamily transposed() {
  OpFamily made;
  made.family = {"ops:conv2d_transposed/",
                 {"f32", "f16", "bf16"},
                 {{"channels", {"3to4", "8to12g4", "6to6g6", "17to5"}},
                  {"window", {"3x3s2p1", "2x2s2", "3x3", "4x4s2p1.0.1.2", "3x2s1x3d2x1", "1x1s2"}},
                  {"image", {"1x5x7", "2x4x4", "0x5x7"}},
                  {"weights", {"constant", "input"}},
                  {"data", {"steps", "calm"}}},
                 [](const Choice& c) {
                   const bool plain = c.at("weights") == "input" && c.at("data") == "steps";
                   if (c.at("image") == "0x5x7")
                     return plain && c.at("channels") == "3to4" && c.at("window") == "2x2s2";
                   return c.at("row") == "f32" || (plain && c.at("image") == "2x4x4");
                 },
                 {}};
  made.budget = {0, 16};
  made.make = transposedConvolution;
  return made;
}

/// Convolutions of bf16 on layouts, and those that end in f32, or begin in it.
OpFamily ofHalves() {
  OpFamily made;
  made.family = {"ops:conv2d_halves/",
                 {"bf16", "bf16_f32", "f32_bf16"},
                 {{"channels", {"16to16", "32to48", "16to16g16", "3to16"}},
                  {"window", {"1x1", "3x3s2p1"}},
                  {"form", {"rows", "claimed", "transposed"}}},
                 [](const Choice& c) {
                   if (c.at("row") == "bf16") return c.at("form") == "claimed";
                   return c.at("form") != "transposed" || c.at("channels") == "16to16";
                 },
                 {}};
  made.budget = {0, 8};
  made.make = [](const Choice& choice) {
    const std::vector<Elem> elems = elemsIn(choice.at("row"));
    const Elem to = elems.back();
    Choice full = choice;
    full["row"] = elemName(elems[0]);
    full.insert({{"image", "2x9x13"}, {"weights", "constant"}, {"zero", "none"}, {"data", "calm"}});
    const bool isTransposed = choice.at("form") == "transposed";
    OpCase conv = isTransposed ? transposedConvolution(full) : convolution(full);
    conv.onClaimedLayouts = choice.at("form") == "claimed";
    if (to == elems[0]) return conv;
    const OpCase::Write sum = conv.whole;
    conv.whole = [sum, to](graph::Graph& graph, const Values& in) -> Result<Values> {
      CDL_ASSIGN(const Values sums, sum(graph, in));
      return write(graph, OpKind::Expr, sums,
                   {{"to", to}, {"steps", fmt::format("convert_{}(acc)", elemName(to))}});
    };
    conv.parts = [sum, to](graph::Graph& graph, const Values& in) -> Result<Values> {
      CDL_ASSIGN(const Values sums, sum(graph, in));
      return write(graph, OpKind::Cast, sums, {{"to", to}});
    };
    return conv;
  };
  return made;
}

OpCase pool(const Choice& choice) {
  const std::string& row = choice.at("row");
  const Elem elem = elemsIn(row)[0];
  const WindowText window(choice.at("window"));
  graph::Attrs attrs = window.attrs();
  attrs["kernel_shape"] = window.kernel;
  const bool average = wordOf(row) == "average";
  if (average) attrs["count_include_pad"] = int64_t(choice.at("padding") == "counted");
  OpCase made;
  made.operands = {{elem, shapeOf(choice.at("image")), fillOf(elem, choice.at("data"))}};
  made.whole = [attrs, average](graph::Graph& graph, const Values& in) {
    return write(graph, average ? OpKind::AveragePool : OpKind::MaxPool, in, attrs);
  };
  return made;
}

OpFamily pool2d() {
  OpFamily made;
  made.family = {
      "ops:pool2d/",
      {"max_f32", "max_f16", "max_bf16", "max_i8", "max_u8", "max_i32", "average_f32",
       "average_f16", "average_bf16"},
      {{"window", {"2x2s2", "3x3s2p1", "3x3p1", "5x3s1x2p2.1.2.0", "3x3p1d2", "1x1", "7x7"}},
       {"image", {"1x3x9x9", "2x17x8x13", "0x3x9x9"}},
       {"padding", {"left", "counted"}},
       {"data", {"steps", "calm", "wide", "corners"}}},
      [](const Choice& c) {
        const bool average = wordOf(c.at("row")) == "average", left = c.at("padding") == "left";
        const std::string& data = c.at("data");
        if (c.at("image") == "0x3x9x9") return left && c.at("window") == "2x2s2" && data == "steps";
        if (average)
          return data == "steps" || (left && data == "calm") ||
                 (data == "wide" && c.at("row") == "average_f32");
        return left && data != "wide" && (data != "calm" || c.at("row") == "max_f32");
      },
      {}};
  made.budget = {0, 25};
  made.make = pool;
  return made;
}

OpFamily poolOnLayouts() {
  OpFamily made;
  made.family = {"ops:pool2d_layouts/",
                 {"max_f32", "max_bf16", "average_f32", "max_i8", "max_u8"},
                 {{"window", {"2x2s2", "3x3s2p1", "5x3s1x2p2.1.2.0", "3x3p1d2"}},
                  {"image", {"1x16x9x9", "2x32x8x13", "1x20x9x9"}}},
                 {},
                 {}};
  made.budget = {0, 11};
  made.make = [](const Choice& choice) {
    Choice full = choice;
    full.insert({{"padding", "left"}, {"data", "steps"}});
    OpCase one = pool(full);
    one.onClaimedLayouts = true;
    return one;
  };
  return made;
}

} // namespace

std::vector<OpFamily> windowFamilies() {
  return {conv2d(),   accumulating(), onLayouts(),    transposed(),
          ofHalves(), pool2d(),       poolOnLayouts()};
}

} // namespace candela::conformance::tiers::ops
