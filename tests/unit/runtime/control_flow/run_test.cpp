#include <gtest/gtest.h>

#include <functional>

#include "core/runtime/control_flow/flow.h"

namespace candela::runtime::control_flow {
namespace {

using Kind = Slot::Kind;

/// A unit that is a function of its inputs.
class Function : public Unit {
public:
  using Body = std::function<Result<std::vector<Value>>(std::span<const Value>)>;
  explicit Function(Body body) : body_(std::move(body)) {}
  Result<std::vector<Value>> run(std::span<const Value> inputs) override { return body_(inputs); }

private:
  Body body_;
};

Value number(int64_t value) { return Tensor::scalarI64(value); }
Value boolean(bool value) { return Tensor::of<uint8_t>(Elem::bool_, {}, {uint8_t(value)}); }
int64_t numberOf(const Value& value) { return value.tensor.toInts().at(0); }

struct Maker {
  Flow flow;
  std::vector<std::unique_ptr<Unit>> units;

  SlotId slot(const std::string& name, Kind kind = Kind::tensor) {
    Slot made;
    made.name = name;
    made.kind = kind;
    return flow.addSlot(made);
  }
  SlotId input(const std::string& name, Kind kind = Kind::tensor) {
    flow.inputs.push_back(slot(name, kind));
    return flow.inputs.back();
  }
  Step step(StepKind kind, std::vector<SlotId> inputs, std::vector<SlotId> outputs) {
    Step made;
    made.kind = kind;
    made.node = stepName(kind);
    made.inputs = std::move(inputs);
    made.outputs = std::move(outputs);
    return made;
  }
  Step unit(std::vector<SlotId> inputs, std::vector<SlotId> outputs, Function::Body body) {
    Step made = step(StepKind::unit, std::move(inputs), std::move(outputs));
    made.unit = static_cast<uint32_t>(units.size());
    units.push_back(std::make_unique<Function>(std::move(body)));
    return made;
  }
  Result<std::vector<Value>> run(const std::vector<Value>& inputs) {
    return control_flow::run(flow, units, inputs);
  }
};

/// Adds `step` in every turn and goes on while the sum is below `limit`; scans the sum.
Maker summing() {
  Maker maker;
  const SlotId trips = maker.input("trips", Kind::optional),
               condition = maker.input("condition", Kind::optional), sum0 = maker.input("sum"),
               step = maker.input("step"), limit = maker.input("limit");
  Step loop = maker.step(StepKind::loop, {trips, condition, sum0},
                         {maker.slot("last"), maker.slot("sums")});
  Block& body = loop.blocks.emplace_back();
  const SlotId sum = maker.slot("sum_in"), next = maker.slot("next"), goOn = maker.slot("go_on");
  body.params = {maker.slot("turn"), maker.slot("goes"), sum};
  body.results = {goOn, next, next};
  body.steps.push_back(
      maker.unit({sum, step, limit}, {next, goOn}, [](auto in) -> Result<std::vector<Value>> {
        const int64_t made = numberOf(in[0]) + numberOf(in[1]);
        return std::vector<Value>{number(made), boolean(made < numberOf(in[2]))};
      }));
  maker.flow.outputs = loop.outputs;
  maker.flow.main.steps.push_back(std::move(loop));
  return maker;
}

TEST(Flow, LoopEndsByItsTripsOrItsCondition) {
  Maker maker = summing();
  auto byTrips = maker.run({number(3), Value(), number(0), number(2), number(100)});
  ASSERT_TRUE(byTrips) << byTrips.status().message();
  EXPECT_EQ(numberOf((*byTrips)[0]), 6);
  EXPECT_EQ((*byTrips)[1].tensor.toInts(), (std::vector<int64_t>{2, 4, 6}));
  auto byCondition = maker.run({Value(), boolean(true), number(0), number(2), number(5)});
  ASSERT_TRUE(byCondition) << byCondition.status().message();
  EXPECT_EQ((*byCondition)[1].tensor.toInts(), (std::vector<int64_t>{2, 4, 6}));
  auto never = maker.run({number(3), boolean(false), number(7), number(2), number(5)});
  ASSERT_TRUE(never) << never.status().message();
  EXPECT_EQ(numberOf((*never)[0]), 7);
  EXPECT_EQ((*never)[1].tensor.count(), 0);
}

TEST(Flow, LoopThatNothingEndsIsNamedAtOnce) {
  Maker maker = summing();
  Block& body = maker.flow.main.steps[0].blocks[0];
  body.results[0] = body.params[1]; // the condition goes round as it is
  const auto made =
      maker.run({number(int64_t(1) << 62), boolean(true), number(0), number(1), number(0)});
  EXPECT_EQ(made.status().message(), "node 'loop': its condition never ends it and its trip count "
                                     "of 4611686018427387904 is beyond 4194304");
}

TEST(Flow, BranchRunsOneSideAlone) {
  Maker maker;
  const SlotId condition = maker.input("condition"), x = maker.input("x"), y = maker.slot("y");
  Step branch = maker.step(StepKind::branch, {condition}, {y});
  branch.blocks.resize(2);
  const SlotId twice = maker.slot("twice");
  branch.blocks[0].steps.push_back(
      maker.unit({x}, {twice}, [](auto in) -> Result<std::vector<Value>> {
        return std::vector<Value>{number(2 * numberOf(in[0]))};
      }));
  branch.blocks[0].results = {twice};
  branch.blocks[1].steps.push_back(maker.unit(
      {x}, {}, [](auto) -> Result<std::vector<Value>> { return badModel("the other side ran"); }));
  branch.blocks[1].results = {x};
  maker.flow.main.steps.push_back(std::move(branch));
  maker.flow.outputs = {y};
  auto taken = maker.run({boolean(true), number(4)});
  ASSERT_TRUE(taken) << taken.status().message();
  EXPECT_EQ(numberOf((*taken)[0]), 8);
  EXPECT_EQ(maker.run({boolean(false), number(4)}).status().message(),
            "node 'branch': node 'unit': the other side ran");
  EXPECT_EQ(maker.run({number(1), number(4)}).status().message(),
            "node 'branch': the condition is i64[], expected one bool");
}

TEST(Flow, SequencesGrowShrinkAndNamePositionsOutside) {
  Maker maker;
  const SlotId items = maker.input("items", Kind::sequence), x = maker.input("x"),
               where = maker.input("where", Kind::optional);
  const SlotId longer = maker.slot("longer", Kind::sequence),
               shorter = maker.slot("shorter", Kind::sequence);
  const SlotId first = maker.slot("first"), length = maker.slot("length");
  maker.flow.main.steps = {maker.step(StepKind::insert, {items, x, where}, {longer}),
                           maker.step(StepKind::erase, {longer, kNoSlot}, {shorter}),
                           maker.step(StepKind::at, {shorter, where}, {first}),
                           maker.step(StepKind::length, {longer}, {length})};
  maker.flow.outputs = {first, length};
  const Value two(std::vector<Tensor>{number(5).tensor, number(6).tensor});
  auto made = maker.run({two, number(9), number(1)});
  ASSERT_TRUE(made) << made.status().message();
  EXPECT_EQ(numberOf((*made)[0]), 9); // 5 9 6 without the last one
  EXPECT_EQ(numberOf((*made)[1]), 3);
  EXPECT_EQ(maker.run({two, number(9), number(3)}).status().message(),
            "node 'insert': position 3 is out of range for 2 elements");
  EXPECT_EQ(maker.run({two, number(9), number(2)}).status().message(),
            "node 'at': position 2 is out of range for 2 elements");
  EXPECT_EQ(maker.run({number(1), number(9), number(0)}).status().message(),
            "node 'insert': its input is i64[], expected a sequence");
}

TEST(Flow, VerifyNamesWhatAFileMayNotSay) {
  const auto verified = [](const std::function<void(Flow&)>& damage) {
    Maker maker = summing();
    maker.flow.outputNames = {"last", "sums"};
    damage(maker.flow);
    return verify(maker.flow, std::vector<Ports>{{3, 2}}).message();
  };
  EXPECT_EQ(verified([](Flow&) {}), "");
  EXPECT_EQ(verified([](Flow& flow) { flow.inputs[0] = 77; }), "slot 77 of 12");
  EXPECT_EQ(verified([](Flow& flow) { flow.main.steps[0].inputs.resize(1); }),
            "step of node 'loop': a loop of 1 inputs and 2 outputs");
  EXPECT_EQ(verified([](Flow& flow) { flow.main.steps[0].blocks.clear(); }),
            "step of node 'loop': loop with 3 inputs, 2 outputs and 0 blocks");
  EXPECT_EQ(verified([](Flow& flow) { flow.main.steps[0].blocks[0].params.pop_back(); }),
            "step of node 'loop': a loop's body has 2 params and 3 results");
  EXPECT_EQ(verified([](Flow& flow) { flow.main.steps[0].blocks[0].steps[0].unit = 1; }),
            "step of node 'loop': step of node 'unit': unit 1 of 1");
  EXPECT_EQ(verified([](Flow& flow) { flow.main.steps[0].blocks[0].steps[0].outputs.pop_back(); }),
            "step of node 'loop': step of node 'unit': unit with 3 inputs, 1 outputs and 0 blocks");
  EXPECT_EQ(verified([](Flow& flow) { flow.main.steps[0].kind = StepKind(99); }),
            "step of node 'loop': unknown kind 99");
  EXPECT_EQ(verified([](Flow& flow) { flow.outputNames.clear(); }), "0 names of 2 outputs");
}

TEST(Flow, TextShowsStepsAndBodies) {
  const std::string text = summing().flow.text();
  EXPECT_NE(text.find("%last:tensor, %sums:tensor = loop(%trips, %condition, %sum) from 'loop' {"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("    yield %go_on, %next, %next"), std::string::npos) << text;
}

} // namespace
} // namespace candela::runtime::control_flow
