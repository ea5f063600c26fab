// Recurrent layers: activations without curves keep the numbers whole.

#include "tests/unit/compiler/import/op_maker.h"

namespace candela::test {
namespace {

using testing::HasSubstr;

// --- Recurrences: activations without curves keep the numbers whole
// -----------------------------------------------------------------------------------------------

using Names = std::vector<std::string>;

Op rnn(const std::string& direction, const Floats& x) {
  Op op(14, "RNN");
  const auto steps = static_cast<int64_t>(x.size());
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  const Floats w(directions, 1), r(directions, 2), b(directions * 2, 0.5f);
  op.in(f32({steps, 1, 1}, x))
      .constant(f32({directions, 1, 1}, w))
      .constant(f32({directions, 1, 1}, r));
  op.constant(f32({directions, 2}, b)).attr("hidden_size", int64_t(1)).attr("direction", direction);
  return op.attr("activations", Names(directions, "Relu")).outputs(2);
}

TEST(Recurrent, DirectionsShareTheirPlaces) {
  expect(rnn("forward", {1, 2, 3}), f32({3, 1, 1, 1}, {2, 7, 18}));
  expect(rnn("reverse", {1, 2, 3}), f32({3, 1, 1, 1}, {24, 11, 4}));
  const auto both = rnn("bidirectional", {1, 2, 3}).run();
  ASSERT_TRUE(both) << messageOf(both);
  EXPECT_EQ(difference(both->at(0), f32({3, 2, 1, 1}, {2, 24, 7, 11, 18, 4})), "");
  EXPECT_EQ(difference(both->at(1), f32({2, 1, 1}, {18, 24})), "");
  EXPECT_EQ(difference(rnn("forward", {}).run()->at(0), f32({0, 1, 1, 1}, {})), "");
}

TEST(Recurrent, LongOnesAreLoopsThatHoldTheirWeights) {
  constexpr int64_t kSteps = 100;
  // Running sums: R is 1, and so is every input.
  Op op(14, "RNN");
  op.in(f32({kSteps, 1, 1}, Floats(kSteps, 1)))
      .constant(f32({2, 1, 1}, {1, 1}))
      .constant(f32({2, 1, 1}, {1, 1}));
  op.absent()
      .in(Tensor::of<int32_t>(Elem::i32_, {1}, {90}))
      .attr("activations", Names{"Relu", "Relu"})
      .outputs(2);
  op.attr("direction", std::string("bidirectional"));
  const auto graph = op.import();
  ASSERT_TRUE(graph) << messageOf(graph);
  int loops = 0;
  for (const auto& node : graph->nodes()) {
    if (node->kind != graph::OpKind::Loop) continue;
    ++loops;
    EXPECT_EQ(node->operands().size(), 3u); // the state, X's products and which steps count
    EXPECT_EQ(node->intAttr("trips"), kSteps);
    EXPECT_EQ(node->provenance, graph::Provenance{"op"});
  }
  EXPECT_EQ(loops, 2);
  Floats sums;
  for (int64_t t = 0; t < kSteps; ++t)
    for (const int64_t sum : {t + 1, 90 - t}) sums.push_back(t < 90 ? static_cast<float>(sum) : 0);
  const auto results = op.run();
  ASSERT_TRUE(results) << messageOf(results);
  EXPECT_EQ(difference(results->at(0), f32({kSteps, 2, 1, 1}, sums)), "");
  EXPECT_EQ(difference(results->at(1), f32({2, 1, 1}, {90, 90})), "");
}

TEST(Recurrent, SequencesEndAtTheirLengths) {
  // Two sequences, of three steps and of one; the batch comes first.
  Op op(14, "RNN");
  op.in(f32({2, 3, 1}, {1, 2, 3, 4, 5, 6}))
      .constant(f32({1, 1, 1}, {1}))
      .constant(f32({1, 1, 1}, {2}))
      .absent();
  op.in(Tensor::of<int32_t>(Elem::i32_, {2}, {3, 1})).in(f32({2, 1, 1}, {10, 20}));
  op.attr("layout", int64_t(1)).attr("activations", Names{"Relu"}).outputs(2);
  const auto forward = op.run(), backward = op.attr("direction", std::string("reverse")).run();
  ASSERT_TRUE(forward && backward) << messageOf(forward) << messageOf(backward);
  EXPECT_EQ(difference(forward->at(0), f32({2, 3, 1, 1}, {21, 44, 91, 44, 0, 0})), "");
  EXPECT_EQ(difference(forward->at(1), f32({2, 1, 1}, {91, 44})), "");
  EXPECT_EQ(difference(backward->at(0), f32({2, 3, 1, 1}, {97, 48, 23, 44, 0, 0})), "");
  EXPECT_EQ(difference(backward->at(1), f32({2, 1, 1}, {97, 44})), "");
}

Op lstm(int64_t coupled = 0) {
  Op op(14, "LSTM");
  op.in(f32({1, 1, 1}, {1}))
      .constant(f32({1, 4, 1}, {1, 2, 3, 4}))
      .constant(f32({1, 4, 1}, {1, 1, 1, 1}))
      .absent();
  op.absent().in(f32({1, 1, 1}, {1})).in(f32({1, 1, 1}, {2})).constant(f32({1, 3}, {10, 20, 30}));
  if (coupled) op.attr("input_forget", coupled);
  return op.attr("activations", Names{"affine", "Affine", "Affine"}).outputs(3);
}

TEST(Recurrent, LstmPeepsAtItsCell) {
  // Gates: 2 + 10 * 2, 4 + 30 * 2 and 5; the cell 64 * 2 + 22 * 5; the output gate 3 + 20 * 238.
  const auto plain = lstm().run(), coupled = lstm(1).run(),
             clipped = lstm().attr("clip", 3.0f).run();
  ASSERT_TRUE(plain && coupled && clipped)
      << messageOf(plain) << messageOf(coupled) << messageOf(clipped);
  EXPECT_EQ(difference(plain->at(1), f32({1, 1, 1}, {4763 * 238})), "");
  EXPECT_EQ(difference(plain->at(2), f32({1, 1, 1}, {238})), "");
  EXPECT_EQ(difference(coupled->at(1), f32({1, 1, 1}, {1363 * 68})), "");
  // the cell itself is not clipped
  EXPECT_EQ(difference(clipped->at(0), f32({1, 1, 1, 1}, {3 * 15})), "");
  EXPECT_EQ(difference(clipped->at(2), f32({1, 1, 1}, {15})), "");
}

TEST(Recurrent, GruResetsBeforeOrBehindItsMatrix) {
  Op op(14, "GRU");
  op.in(f32({1, 1, 1}, {1}))
      .constant(f32({1, 3, 1}, {1, 2, 3}))
      .constant(f32({1, 3, 1}, {1, 1, 2}));
  op.constant(f32({1, 6}, {0, 0, 0, 0, 0, 1})).absent().in(f32({1, 1, 1}, {2}));
  op.attr("activations", Names{"Affine", "Affine"});
  // Gates: 3, 4 and 3 + 4 * 2 * 2 + 1, or 3 + 4 * (2 * 2 + 1).
  expect(op, f32({1, 1, 1, 1}, {-2 * 20 + 3 * 2}));
  expect(op.attr("linear_before_reset", int64_t(1)), f32({1, 1, 1, 1}, {-2 * 23 + 3 * 2}));
}

TEST(Recurrent, ActivationsTakeTheirNumbersInTurn) {
  const auto of = [](const std::string& name, const Floats& alphas, const Floats& betas, float x) {
    Op op(14, "RNN");
    op.in(f32({1, 1, 1}, {x})).constant(f32({2, 1, 1}, {1, 1})).constant(f32({2, 1, 1}, {0, 0}));
    op.attr("direction", std::string("bidirectional"))
        .attr("activations", Names{"LeakyRelu", name});
    op.attr("activation_alpha", alphas).attr("activation_beta", betas);
    return op;
  };
  expect(of("Affine", {0.5f, 3}, {1}, -2), f32({1, 2, 1, 1}, {-1, -5}));
  expect(of("ThresholdedRelu", {0.5f, 3}, {}, 3), f32({1, 2, 1, 1}, {3, 3}));
  expect(of("ThresholdedRelu", {0.5f}, {}, 0.5f), f32({1, 2, 1, 1}, {0.5f, 0}));
  expect(of("HardSigmoid", {0.5f, 0.25f}, {0.5f}, -1), f32({1, 2, 1, 1}, {-0.5f, 0.25f}));
  expect(of("Softsign", {0.5f}, {}, -3), f32({1, 2, 1, 1}, {-1.5f, -0.75f}));
  EXPECT_THAT(refusal(of("Cosine", {}, {}, 1)),
              HasSubstr("activation 'Cosine' is none that ONNX names"));
}

TEST(Recurrent, RefusesWhatDoesNotBelongTogether) {
  const auto op = [](const Tensor& w, const Tensor& r, const Tensor& lengths) {
    return Op(14, "GRU").in(f32({2, 1, 3}, Floats(6, 1))).in(w).in(r).absent().constant(lengths);
  };
  const Tensor w = f32({1, 6, 3}, Floats(18, 1)), r = f32({1, 6, 2}, Floats(12, 1)),
               full = i64({1}, {2});
  EXPECT_TRUE(op(w, r, full).run());
  EXPECT_THAT(refusal(op(w, f32({1, 6, 3}, Floats(18, 1)), full)),
              HasSubstr("R of shape 1x6x3 is not 3 square matrices below each other"));
  EXPECT_THAT(refusal(op(f32({1, 6, 2}, Floats(12, 1)), r, full)),
              HasSubstr("W is f32[1,6,2], expected f32[1,6,3]"));
  EXPECT_THAT(refusal(op(w, r, i64({1}, {3}))),
              HasSubstr("sequence_lens has 3, beyond the 2 steps of X"));
  EXPECT_THAT(refusal(op(w, r, i64({1}, {-1}))), HasSubstr("sequence_lens has -1"));
  EXPECT_THAT(refusal(op(w, r, full).attr("activations", Names{"Tanh"})),
              HasSubstr("has 1 values, expected 2"));
  EXPECT_THAT(refusal(op(w, r, full).attr("hidden_size", int64_t(3))),
              HasSubstr("attribute 'hidden_size' is 3"));
  EXPECT_THAT(refusal(op(w, r, full).attr("clip", -1.0f)), HasSubstr("attribute 'clip' is -1"));
  EXPECT_THAT(refusal(op(w, r, full).attr("direction", std::string("up"))),
              HasSubstr("direction 'up' is not"));
  EXPECT_THAT(refusal(op(w, r, full).attr("direction", std::string("bidirectional"))),
              HasSubstr("W is f32[1,6,3], expected f32[2,6,3]"));
}

} // namespace
} // namespace candela::test
