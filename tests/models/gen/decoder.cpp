//===- decoder.cpp - candela-gen-decoder DIR ------------------------------===//
//
// Writes DIR/decoder_step.onnx and DIR/decoder_whole.onnx: one decoder of four layers with the same
// random weights, once for a token with caches that are states, once for the whole sequence without
// any. Two layers keep their keys and values by ScatterND, two by
// com.microsoft.GroupQueryAttention.
//
// Exit status: 0 both written, 2 bad usage or a file that could not be written.
//
//===----------------------------------------------------------------------===//
#include "tests/models/gen/model_builder.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numeric>

namespace {

using namespace candela::gen;

constexpr uint64_t kSeed = 7;
constexpr int64_t kPlaces = 64, kWords = 97, kWidth = 64, kHeads = 4, kSize = kWidth / kHeads,
                  kGroups = 2, kInner = 128, kLayers = 4;
constexpr char kMicrosoft[] = "com.microsoft";

class Decoder {
public:
  /// whole: of the sequence at once.
  explicit Decoder(bool whole) : whole_(whole), count_(whole ? kPlaces : 1), b_(kSeed) {
    b_.model().mutable_graph()->set_name(whole ? "decoder_whole" : "decoder_step");
    for (const auto& [domain, version] : {std::pair("", 17), std::pair(kMicrosoft, 1)}) {
      auto& opset = *b_.model().add_opset_import();
      opset.set_domain(domain);
      opset.set_version(version);
    }
    b_.model().set_ir_version(8);
    b_.model().set_producer_name("candela-gen-decoder");
  }

  onnx::ModelProto build() {
    const Value words = random({kWords, kWidth}, 1), table = random({kPlaces, kWidth}, 1);
    Value token, history, scores;
    if (whole_) {
      history = input("history", onnx::TensorProto::INT64, {kPlaces});
      const Value before = b_.op("Slice", {history, ints({0}), ints({kPlaces - 1}), ints({0})});
      token = b_.op("Concat", {ints({0}), before}, {{"axis", int64_t(0)}});
      place_ = b_.init({kPlaces}, counting(kPlaces));
    } else {
      token = input("token", onnx::TensorProto::INT64, {1});
      place_ = input("place", onnx::TensorProto::INT64, {1});
      history = input("history", onnx::TensorProto::INT64, {kPlaces});
      scores = input("scores", onnx::TensorProto::FLOAT, {kPlaces, kWords});
    }
    Value x = b_.op("Add", {b_.op("Gather", {words, token}), b_.op("Gather", {table, place_})});
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      const Value h = normalized(x);
      const Value attended = layer % 2 == 0 ? scattered(h, layer) : grouped(h, layer);
      x = b_.op("Add", {x, product(attended, kWidth, kWidth)});
      const Value inner = b_.op("Relu", {product(normalized(x), kWidth, kInner)});
      x = b_.op("Add", {x, product(inner, kInner, kWidth)});
    }
    const Value logits = product(normalized(x), kWidth, kWords);
    const Value next = b_.op("ArgMax", {logits}, {{"axis", int64_t(1)}, {"keepdims", int64_t(0)}});
    if (whole_) {
      output("tokens", next, onnx::TensorProto::INT64, {kPlaces});
      output("logits", logits, onnx::TensorProto::FLOAT, {kPlaces, kWords});
    } else {
      const Value at = reshaped(place_, {1, 1});
      output("next_token", next, onnx::TensorProto::INT64, {1});
      output("next_place", b_.op("Add", {place_, ints({1})}), onnx::TensorProto::INT64, {1});
      output("tokens", b_.op("ScatterND", {history, at, next}), onnx::TensorProto::INT64,
             {kPlaces});
      output("logits", b_.op("ScatterND", {scores, at, logits}), onnx::TensorProto::FLOAT,
             {kPlaces, kWords});
    }
    return std::move(b_.model());
  }

private:
  static std::vector<int64_t> counting(int64_t count) {
    std::vector<int64_t> values(static_cast<size_t>(count));
    std::iota(values.begin(), values.end(), 0);
    return values;
  }
  Value ints(const std::vector<int64_t>& values) {
    return b_.init({static_cast<int64_t>(values.size())}, values);
  }
  Value random(const Shape& shape, double deviation) {
    const auto count = std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>());
    return b_.init(shape, b_.random(static_cast<size_t>(count), deviation));
  }
  Value product(const Value& x, int64_t rows, int64_t columns) {
    return b_.op("MatMul", {x, random({rows, columns}, 1 / std::sqrt(double(rows)))});
  }
  Value normalized(const Value& x) {
    return b_.op("LayerNormalization", {x, random({kWidth}, 1), random({kWidth}, 0.1)});
  }
  Value reshaped(const Value& x, const Shape& shape) {
    return b_.op("Reshape",
                 {x, b_.init({static_cast<int64_t>(shape.size())}, std::vector<int64_t>(shape))});
  }

  /// Keys and values as rows of [places, width].
  Value scattered(const Value& h, int64_t layer) {
    const Value q = product(h, kWidth, kWidth);
    Value k = product(h, kWidth, kWidth), v = product(h, kWidth, kWidth);
    if (!whole_) {
      const Value at = reshaped(place_, {1, 1});
      for (auto& [row, name] : {std::pair(&k, "key"), std::pair(&v, "value")}) {
        const std::string port = std::string(name) + std::to_string(layer);
        *row =
            b_.op("ScatterND",
                  {input("past_" + port, onnx::TensorProto::FLOAT, {kPlaces, kWidth}), at, *row});
        output("present_" + port, *row, onnx::TensorProto::FLOAT, {kPlaces, kWidth});
      }
    }
    const auto heads = [&](const Value& x, int64_t rows) {
      return b_.op("Transpose", {reshaped(x, {rows, kHeads, kSize})}, {{"perm", Shape{1, 0, 2}}});
    };
    const Value keys = b_.op("Transpose", {heads(k, kPlaces)}, {{"perm", Shape{0, 2, 1}}});
    Value scores = b_.op(
        "Mul", {b_.op("MatMul", {heads(q, count_), keys}), b_.scalar(1 / std::sqrt(float(kSize)))});
    const Value key = b_.init({1, kPlaces}, counting(kPlaces));
    const Value seen = b_.op("LessOrEqual", {key, reshaped(place_, {count_, 1})});
    scores = b_.op("Where", {seen, scores, b_.scalar(-1e9f)});
    const Value y =
        b_.op("MatMul", {b_.op("Softmax", {scores}, {{"axis", int64_t(2)}}), heads(v, kPlaces)});
    return reshaped(b_.op("Transpose", {y}, {{"perm", Shape{1, 0, 2}}}), {count_, kWidth});
  }

  Value grouped(const Value& h, int64_t layer) {
    const Shape cache{1, kGroups, kPlaces, kSize};
    std::vector<Value> operands{
        reshaped(product(h, kWidth, kWidth), {1, count_, kWidth}),
        reshaped(product(h, kWidth, kGroups * kSize), {1, count_, kGroups * kSize}),
        reshaped(product(h, kWidth, kGroups * kSize), {1, count_, kGroups * kSize})};
    for (const char* name : {"key", "value"})
      operands.push_back(whole_ ? Value{}
                                : input("past_" + (name + std::to_string(layer)),
                                        onnx::TensorProto::FLOAT, cache));
    const auto last = static_cast<int32_t>(kPlaces - 1);
    operands.push_back(whole_
                           ? b_.init({1}, std::vector<int32_t>{last})
                           : b_.op("Cast", {place_}, {{"to", int64_t(onnx::TensorProto::INT32)}}));
    operands.push_back(b_.init({1}, std::vector<int32_t>{last + 1}));
    const Value y =
        b_.op("GroupQueryAttention", operands, {{"num_heads", kHeads}, {"kv_num_heads", kGroups}});
    onnx::NodeProto& node =
        *b_.model().mutable_graph()->mutable_node(b_.model().graph().node_size() - 1);
    node.set_domain(kMicrosoft);
    if (!whole_)
      for (const char* name : {"key", "value"}) {
        const std::string port = "present_" + (name + std::to_string(layer));
        node.add_output(port);
        declare(*b_.model().mutable_graph()->add_output(), port, onnx::TensorProto::FLOAT, cache);
      }
    return reshaped(y, {count_, kWidth});
  }

  static void declare(onnx::ValueInfoProto& info, const std::string& name, int elem,
                      const Shape& shape) {
    info.set_name(name);
    auto& type = *info.mutable_type()->mutable_tensor_type();
    type.set_elem_type(elem);
    auto& dims = *type.mutable_shape();
    for (int64_t dim : shape) dims.add_dim()->set_dim_value(dim);
  }
  Value input(const std::string& name, int elem, const Shape& shape) {
    declare(*b_.model().mutable_graph()->add_input(), name, elem, shape);
    return {name};
  }
  void output(const std::string& name, const Value& value, int elem, const Shape& shape) {
    onnx::GraphProto& graph = *b_.model().mutable_graph();
    declare(*graph.add_output(), name, elem, shape);
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type("Identity");
    node.set_name("out_" + name);
    node.add_input(value.name);
    node.add_output(name);
  }

  bool whole_;
  int64_t count_; ///< tokens in one run
  ModelBuilder b_;
  Value place_;
};

} // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: candela-gen-decoder DIR\n");
    return 2;
  }
  for (const bool whole : {false, true}) {
    const auto path =
        std::filesystem::path(argv[1]) / (whole ? "decoder_whole.onnx" : "decoder_step.onnx");
    std::ofstream file(path, std::ios::binary);
    if (!Decoder(whole).build().SerializeToOstream(&file) || !file.flush()) {
      std::fprintf(stderr, "candela-gen-decoder: cannot write %s\n", path.c_str());
      return 2;
    }
  }
  return 0;
}
