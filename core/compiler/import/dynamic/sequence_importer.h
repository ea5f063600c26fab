#pragma once

#include "core/compiler/import/import_context.h"

namespace candela::import {

class GraphImporter;

/// The operators of the default domain on sequences and optionals.
std::vector<std::string> sequenceOperators();

/// Imports operators on sequences and optionals: lists of values where import knows how long they
/// are, steps of the flow where only a run does.
class SequenceImporter {
public:
  SequenceImporter(ImportContext& context, GraphImporter& graphs)
      : context_(context), graphs_(graphs) {}

  /// Nullopt: the operator is none of them.
  std::optional<Status> add(const Place& place, const onnx_io::Node& node, const std::string& name,
                            const std::vector<Slot>& inputs, std::vector<Slot>& outputs);

private:
  /// One node on its way.
  struct Call {
    const Place& place;
    const onnx_io::Node& node;
    const std::string& name;
    const std::vector<Slot>& inputs;
    std::vector<Slot>& outputs;

    /// Absent when the node has no such input.
    Slot input(size_t i) const { return i < inputs.size() ? inputs[i] : Slot(); }
    void set(Slot slot) const { outputs[0] = std::move(slot); }
  };
  using Handler = Status (SequenceImporter::*)(const Call&);
  struct Operator {
    const char* name;
    size_t minInputs, maxInputs;
    Handler add;
  };
  static std::span<const Operator> operators();
  friend std::vector<std::string> sequenceOperators();

  Status addEmpty(const Call& call);
  Status addConstruct(const Call& call);
  Status addOptional(const Call& call);
  Status addHasElement(const Call& call);
  Status addGetElement(const Call& call);
  Status addSplit(const Call& call);
  /// Sizes of the pieces; nullopt: only a run knows them.
  Result<std::optional<std::vector<int64_t>>> readChunks(const Call& call, int64_t extent) const;
  Status addConcat(const Call& call);
  Status addMap(const Call& call);
  Status addLength(const Call& call);
  Status addAt(const Call& call);
  Status addErase(const Call& call);
  Status addInsert(const Call& call);
  /// Where an operator reads or writes a sequence. Nullopt: only a run knows it.
  Result<std::optional<size_t>> position(const Call& call, size_t input, int64_t fallback,
                                         int64_t most) const;

  ImportContext& context_;
  GraphImporter& graphs_;
};

} // namespace candela::import
