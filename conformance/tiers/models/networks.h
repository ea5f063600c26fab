#pragma once

#include <span>

#include "core/compiler/graph/graph.h"

/// Networks with random weights, written as Graphs: whole models for which the suite needs neither
/// files nor import.
namespace candela::conformance::tiers::models {

struct NetworkForm {
  int64_t batch = 1;
  /// u8 activations and i8 weights, each with a scale, as models of integers come
  bool quantized = false;
  bool large = false;
};

struct Network {
  std::string_view name;
  /// What a quantized one gives: numbers that stand at a whole number of steps, or any; none: there
  /// is no such one.
  enum class Quantized : uint8_t { none, steps, reals } quantized;
  graph::Graph (*build)(const NetworkForm& form);
};
inline constexpr float kActivationStep = 0.05f;
std::span<const Network> allNetworks();

/// The trained network of examples/digits, by way of import: it is part of the program.
Result<graph::Graph> importDigits(int64_t batch);

/// One token of a decoder of two layers for `batch` sequences: token f32[batch,1,16], place i32[1],
/// and for each layer a cache of keys and one of values; out come the answer, the next place and
/// the caches with this token in them. `states` says which output is which input of the next token,
/// as --state does.
struct Decoder {
  graph::Graph graph;
  std::vector<std::string> states;
  int64_t places; ///< tokens that the caches hold
};
Decoder buildDecoder(int64_t batch);

/// Weight i of stream `stream`, uniform in [-1, 1), with the same bits on every machine.
float weightOf(uint64_t stream, uint64_t i);

} // namespace candela::conformance::tiers::models
