#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "core/compiler/graph/text.h"
#include "core/support/file.h"

namespace candela::graph {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string readText(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct TextFile {
  fs::path path;
  std::string text;
  bool negative;
};

std::vector<TextFile> irFiles() {
  std::vector<TextFile> out;
  for (const auto& entry : fs::directory_iterator(CANDELA_SOURCE_DIR "/tests/ir/graph")) {
    if (entry.path().extension() != ".cdl") continue;
    std::string text = readText(entry.path());
    const bool negative = text.find("RUN: not ") != std::string::npos;
    out.push_back({entry.path(), std::move(text), negative});
  }
  return out;
}

class TemporaryDirectory {
public:
  TemporaryDirectory() : path_(testing::TempDir() + "candela_text_" + std::to_string(getpid())) {
    fs::create_directories(path_);
  }
  ~TemporaryDirectory() { fs::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

private:
  std::string path_;
};

Graph copyOf(const Graph& graph) {
  Graph copy;
  copy.name = graph.name;
  std::map<const Value*, Value*> copies;
  for (const Value* input : graph.inputs()) copies[input] = copy.addInput(input->name, input->type);
  for (const auto& node : graph.nodes()) copy.addCopy(*node, copies);
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    copy.addOutput(copies.at(graph.outputs()[i]), graph.outputNames()[i]);
  return copy;
}

TEST(GraphText, EveryFileRoundTrips) {
  const TemporaryDirectory directory;
  int read = 0;
  for (const TextFile& file : irFiles()) {
    if (file.negative) continue;
    ++read;
    Diagnostics diagnostics;
    const auto first = parse(file.text, file.path.string(), diagnostics);
    ASSERT_TRUE(first) << first.status().message();
    const auto printed = print(*first, {.resourceDirectory = directory.path()});
    ASSERT_TRUE(printed) << printed.status().message();
    const auto second = parse(*printed, directory / "again.cdl", diagnostics);
    ASSERT_TRUE(second) << second.status().message() << "\n" << *printed;
    EXPECT_EQ(*printed, print(*second, {.resourceDirectory = directory.path()}).value());
    EXPECT_EQ(*printed, print(copyOf(*first), {.resourceDirectory = directory.path()}).value());
  }
  EXPECT_GE(read, 3);
}

/// A CHECK line's literal parts stand in this order somewhere behind the last one; what {{}} and
/// [[]] match is free.
size_t findCheck(const std::string& output, size_t from, std::string check) {
  for (bool first = true; !check.empty(); first = false) {
    const size_t open = std::min({check.find("{{"), check.find("[["), check.size()});
    const size_t place = output.find(check.substr(0, open), from);
    if (place == std::string::npos || (!first && place > output.find('\n', from)))
      return std::string::npos;
    from = place + open;
    const size_t close =
        std::min({check.find("}}", open), check.find("]]", open), check.size() - 2});
    check = check.substr(open == check.size() ? check.size() : close + 2);
  }
  return from;
}

TEST(GraphText, NegativeFilesSayWhatTheyExpect) {
  int read = 0;
  for (const TextFile& file : irFiles()) {
    if (!file.negative) continue;
    ++read;
    Diagnostics diagnostics;
    const auto graph = parse(file.text, file.path.string(), diagnostics);
    ASSERT_FALSE(graph) << file.path;
    const std::string output = graph.status().message();
    std::istringstream lines(file.text);
    size_t place = 0, checks = 0;
    for (std::string line; std::getline(lines, line);) {
      const size_t check = line.find("// CHECK: ");
      if (check == std::string::npos) continue;
      ++checks;
      const size_t found = findCheck(output, place, line.substr(check + 10));
      ASSERT_NE(found, std::string::npos) << file.path << "\n"
                                          << line << "\n"
                                          << output.substr(place);
      place = found;
    }
    EXPECT_EQ(checks, diagnostics.list().size()) << file.path << "\n" << output;
  }
  EXPECT_GE(read, 8);
}

TEST(GraphText, EveryConstraintHasANegativeTest) {
  std::string texts;
  for (const TextFile& file : irFiles())
    if (file.negative) texts += file.text;
  std::set<std::string_view> used;
  for (const OpInfo& info : allOps())
    for (const ConstraintInfo& constraint : info.constraints)
      EXPECT_THAT(texts, HasSubstr("(" + std::string(constraint.id) + ")"));
}

TEST(GraphText, EveryOpStandsInTheRoundTrip) {
  const std::string folder = CANDELA_SOURCE_DIR "/tests/ir/graph/";
  const std::string text = readText(folder + "ops.cdl") + readText(folder + "custom.cdl");
  for (const OpInfo& info : allOps())
    EXPECT_THAT(text, HasSubstr("= " + std::string(info.name) + " "));
}

std::string firstError(const std::string& text) {
  Diagnostics diagnostics;
  const auto graph = parse(text, "a.cdl", diagnostics);
  return graph ? "parsed" : diagnostics.list().front().text();
}

TEST(GraphText, MalformedTextStopsAtItsPlace) {
  EXPECT_EQ(firstError(""), "a.cdl:1:1: error: expected 'graph' but found end of file");
  EXPECT_EQ(firstError("graph main"),
            "a.cdl:1:7: error: expected the name of the graph but found 'main'");
  EXPECT_EQ(firstError("graph @g("), "a.cdl:1:10: error: expected an input but found end of file");
  EXPECT_EQ(firstError("graph @g() -> () {"),
            "a.cdl:1:19: error: expected a value or '}' but found end of file");
  EXPECT_EQ(firstError("graph @g(%x: f33[1]) -> () {}"),
            "a.cdl:1:14: error: unknown element type 'f33'");
  EXPECT_EQ(firstError("graph @g(%x: f32[-1]) -> () {}"),
            "a.cdl:1:14: error: 'f32[-1]': impossible shape -1");
  EXPECT_EQ(firstError("graph @g(%x: f32[99999999999999999999]) -> () {}"),
            "a.cdl:1:18: error: a dimension '99999999999999999999' does not fit 64 bits");
  EXPECT_EQ(
      firstError("graph @g(%x: f32[4294967296,4294967296]) -> () {}"),
      "a.cdl:1:14: error: 'f32[4294967296,4294967296]': impossible shape 4294967296x4294967296");
  EXPECT_EQ(firstError("graph @g() -> () {} graph"),
            "a.cdl:1:21: error: unexpected 'graph' after the graph");
  EXPECT_EQ(firstError("graph @g(%\"x\n"), "a.cdl:1:11: error: string has no closing quote");
  EXPECT_EQ(firstError("graph @\"\\q\""), "a.cdl:1:8: error: unknown escape in string");
  EXPECT_EQ(firstError("graph \x01"), "a.cdl:1:7: error: unexpected character 0x01");
  EXPECT_EQ(firstError("graph @g(%x: f32[2]{layout [d1]}) -> () {}"),
            "a.cdl:1:14: error: 'f32[2]{layout [d1]}': layout names d1 of rank 1");
  EXPECT_EQ(firstError("graph @g(%x: f32[2]{sparse}) -> () {}"),
            "a.cdl:1:21: error: expected layout, halo or pad but found 'sparse'");
}

/// Every prefix and every byte of a valid text replaced: an answer, never a crash.
TEST(GraphText, DamagedTextIsAnErrorOrAGraph) {
  const std::string text = readText(CANDELA_SOURCE_DIR "/tests/ir/graph/values.cdl");
  const std::string graph = text.substr(text.find("\ngraph"));
  for (size_t i = 0; i < graph.size(); ++i) {
    Diagnostics diagnostics;
    (void)parse(graph.substr(0, i), "a.cdl", diagnostics).isOk();
    std::string damaged = graph;
    damaged[i] = "0\"%{x"[i % 5];
    (void)parse(damaged, "a.cdl", diagnostics).isOk();
  }
}

TEST(GraphText, DamagedResourceIsNamed) {
  const TemporaryDirectory directory;
  Graph graph;
  graph.addOutput(graph.addConstant(Payload::data(randomTensor(Elem::f32_, {10, 10}, 1).value()),
                                    TensorType(Elem::f32_, {10, 10}), {"layer/weight:0"}),
                  "w");
  const std::string text = print(graph, {.resourceDirectory = directory.path()}).value();
  EXPECT_THAT(text, HasSubstr("resource(\"layer_weight_0\", sha256 \""));
  Diagnostics diagnostics;
  ASSERT_TRUE(parse(text, directory / "g.cdl", diagnostics));

  const std::string file = directory / "layer_weight_0.bin";
  std::string bytes = readText(file);
  bytes[17] ^= 1;
  ASSERT_TRUE(writeFile(file, bytes.data(), bytes.size()));
  EXPECT_THAT(parse(text, directory / "g.cdl", diagnostics).status().message(),
              testing::AllOf(HasSubstr("value 'layer/weight:0': " + file + " has sha256 "),
                             HasSubstr(", expected ")));
  ASSERT_TRUE(writeFile(file, bytes.data(), 12));
  EXPECT_THAT(parse(text, directory / "g.cdl", diagnostics).status().message(),
              HasSubstr(file + " holds 12 bytes, expected 400"));
  fs::remove(file);
  EXPECT_THAT(parse(text, directory / "g.cdl", diagnostics).status().message(),
              HasSubstr(file + ": cannot open"));
}

TEST(GraphText, EqualNamesWithOtherBytesGetTheirOwnFile) {
  const TemporaryDirectory directory;
  Graph graph;
  for (const uint64_t seed : {1, 2})
    graph.addOutput(graph.addConstant(Payload::data(randomTensor(Elem::i8_, {100}, seed).value()),
                                      TensorType(Elem::i8_, {100}), {seed == 1 ? "a/b" : "a:b"}),
                    "w");
  const std::string text = print(graph, {.resourceDirectory = directory.path()}).value();
  Diagnostics diagnostics;
  const auto again = parse(text, directory / "g.cdl", diagnostics);
  ASSERT_TRUE(again) << again.status().message();
  for (size_t i = 0; i < 2; ++i)
    EXPECT_TRUE(graph.outputs()[i]->payload() == again->outputs()[i]->payload());
}

} // namespace
} // namespace candela::graph
