// Every reason of the shared list is one that somebody gives, and says what to change.
#include <candela/candela.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/compiler/capabilities/refusal.h"
#include "tests/unit/compiler/capabilities/tables.h"

namespace candela::lowering {
namespace {

using testing::HasSubstr;

const std::string kDigits = CANDELA_SOURCE_DIR "/examples/digits/digits.onnx";

capabilities::InstrDesc conv() {
  capabilities::InstrDesc desc;
  desc.kind = CDL_KIND_CONV2D;
  desc.operands = {
      {Elem::f32_, {1, 16, 8, 8}}, {Elem::f32_, {4, 16, 3, 3}}, {Elem::f32_, {1, 4, 6, 6}}};
  desc.attrs = {{CDL_ATTR_GROUP, {2}}};
  return desc;
}

capabilities::InstrDesc convOf(Elem elem) {
  capabilities::InstrDesc desc = conv();
  for (capabilities::OperandDesc& operand : desc.operands) operand.elem = elem;
  return desc;
}

/// What a target with a row for convolutions says, after both were changed.
std::string refused(const std::function<void(capabilities::Table&)>& change,
                    capabilities::InstrDesc desc = conv()) {
  capabilities::Table table = capabilities::Table::required({CDL_PROFILE_BASE, CDL_PROFILE_FP32});
  table.add(CDL_KIND_CONV2D, 0, {CDL_F32, CDL_F32, CDL_F32});
  const auto plain = table.target();
  EXPECT_TRUE(plain.isOk() && plain->query(conv()).support == capabilities::Support::native)
      << "refused without cause";
  change(table);
  const auto target = table.target();
  if (!target.isOk()) return target.status().message();
  const capabilities::Answer answer = target->query(desc);
  EXPECT_EQ(answer.support, capabilities::Support::none) << answer.detail;
  EXPECT_THAT(answer.detail,
              HasSubstr(fmt::format("[{}]", capabilities::reasonName(answer.reason))))
      << "text and code disagree";
  return answer.detail;
}
const auto kAsItIs = [](capabilities::Table&) {};

capabilities::InstrDesc of(uint16_t kind) {
  capabilities::InstrDesc desc;
  desc.kind = kind;
  return desc;
}

std::string placement(const std::string& backends, const std::vector<std::string>& options,
                      bool bindAtRun = false) {
  sdk::Options how;
  how.backends = backends;
  how.options = options;
  if (!bindAtRun) how.dims = {"N=1"};
  how.bindAtRun = bindAtRun;
  return sdk::Model::compile(kDigits, how).reportJson();
}

/// By reason: a text that comes to be where users read it.
const std::map<std::string, std::function<std::string()>>& producers() {
  static const std::map<std::string, std::function<std::string()>> all = {
      {"no_row", [] { return refused(kAsItIs, of(CDL_KIND_SOFTMAX)); }},
      {"dtype", [] { return refused(kAsItIs, convOf(Elem::i32_)); }},
      {"rank",
       [] {
         return refused([](capabilities::Table& t) { t.limit(CDL_ATOM_RANK, CDL_REL_EQ, 0, 3); });
       }},
      {"dim",
       [] {
         return refused(
             [](capabilities::Table& t) { t.limit(CDL_ATOM_DIM, CDL_REL_LE, 0, 8).dim = 1; });
       }},
      {"attribute",
       [] {
         return refused([](capabilities::Table& t) {
           t.limit(CDL_ATOM_ATTR, CDL_REL_EQ, 0, 1).attr = CDL_ATTR_GROUP;
         });
       }},
      {"not_constant",
       [] {
         return refused(
             [](capabilities::Table& t) { t.limit(CDL_ATOM_IS_CONST, CDL_REL_EQ, 1, 1); });
       }},
      {"layout",
       [] {
         capabilities::InstrDesc desc = conv();
         desc.operands[0].layout = {2, 2, 0, 0, 0, {0, 1}, {0, 0}};
         return refused(kAsItIs, desc);
       }},
      {"operand_class",
       [] {
         capabilities::InstrDesc desc = conv();
         desc.operands[0].cls = capabilities::OperandClass::rowStrided;
         return refused(kAsItIs, desc);
       }},
      {"memory",
       [] { return refused([](capabilities::Table& t) { t.spaces[0].capacity_bytes = 4095; }); }},
      {"profile", [] { return refused(kAsItIs, convOf(Elem::f64_)); }},
      {"host_only", [] { return refused(kAsItIs, of(CDL_KIND_SORT)); }},
      {"dynamic_shape", [] { return placement("soft", {}, true); }},
      {"barred", [] { return placement(PLUGIN_door2, {"refuse=matmul"}); }},
      {"vendor", [] { return placement(PLUGIN_door2, {"refuse=matmul"}); }},
  };
  return all;
}

TEST(Refusal, EveryReasonIsGivenAndSaysWhatToChange) {
  size_t count = 0;
#define CANDELA_REASON(name, id, text)                                                             \
  if (id != CDL_REASON_NONE) {                                                                     \
    ++count;                                                                                       \
    const auto at = producers().find(#name);                                                       \
    ASSERT_NE(at, producers().end()) << "nobody gives the reason " #name ": add who does";         \
    ASSERT_NE(capabilities::cureOf(id), "") << #name;                                              \
    EXPECT_THAT(at->second(),                                                                      \
                HasSubstr(fmt::format(": {} [{}]", capabilities::cureOf(id), #name)));             \
  }
  CDL_REASONS(CANDELA_REASON)
#undef CANDELA_REASON
  EXPECT_EQ(producers().size(), count) << "a producer of no reason";
  EXPECT_EQ(capabilities::refusalText(CDL_REASON_NONE, "not today"), "not today");
}

TEST(Refusal, KeepsWhatTheBackendSaid) {
  EXPECT_THAT(placement(PLUGIN_door2, {"refuse=matmul"}),
              HasSubstr("refused by the backend: matmul is refused"));
}

// A view that repeats or jumps names more than there is; a space without a limit holds everything.
TEST(Refusal, MemoryIsCountedOfDenseOperandsAlone) {
  std::vector<capabilities::Target::SpaceInfo> spaces = {{"small", {0, 0, 1024, 64, 0}},
                                                         {"main", {0, 0, 4096, 64, 0}}};
  capabilities::InstrDesc desc = conv();
  EXPECT_EQ(capabilities::tooLarge(desc, spaces), "");
  desc.operands[0].dims[0] = 2;
  EXPECT_EQ(capabilities::tooLarge(desc, spaces),
            "operand 0 takes 8192 bytes, the largest memory holds 4096");
  desc.operands[0].cls = capabilities::OperandClass::broadcast;
  EXPECT_EQ(capabilities::tooLarge(desc, spaces), "");
  desc.operands[0].cls = capabilities::OperandClass::dense;
  spaces[0].space.capacity_bytes = 0;
  EXPECT_EQ(capabilities::tooLarge(desc, spaces), "");
}

} // namespace
} // namespace candela::lowering
