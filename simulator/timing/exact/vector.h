#pragma once

#include "simulator/timing/exact/channels.h"
#include "simulator/timing/exact/results.h"

namespace candela::npu::exact {

/// A step of the vector engine: what it reads, and where its result goes.
struct VectorStep {
  int64_t a = 0, b = 0, out = 0, count = 0;
  bool isLastOfRun = false, isLast = false;
};

/// As rtl/vector/cdl_npu_lanes_walker.sv.
class LanesWalk {
public:
  void start(const Operation& operation, int64_t chunk);
  bool isActive() const { return isActive_; }
  VectorStep current() const;
  void step();

private:
  bool isActive_ = false, isReduce_ = false, isScalar_ = false;
  int64_t chunk_ = 1, run_ = 1, len1_ = 1, len2_ = 1, a_ = 0, b_ = 0, out_ = 0;
  int64_t aBytes_ = 1, bBytes_ = 1, outBytes_ = 1;
  int64_t a1_ = 0, a2_ = 0, b1_ = 0, b2_ = 0, out1_ = 0, out2_ = 0;
  int64_t element_ = 0, i_ = 0, j_ = 0;
};

/// As rtl/vector/cdl_npu_pool_walker.sv.
class PoolWalk {
public:
  void start(const Operation& operation, int64_t chunk);
  bool isActive() const { return isActive_; }
  VectorStep current() const;
  void step();

private:
  struct Window {
    int64_t from, to; ///< within the tile
  };
  Window rowsOf(int64_t oy) const;
  Window columnsOf(int64_t ox) const;
  void beginWindow();

  bool isActive_ = false;
  DescriptorValues d_{};
  int64_t chunk_ = 1, a_ = 0, out_ = 0, aBytes_ = 1, outBytes_ = 1;
  int64_t channel_ = 0, oy_ = 0, ox_ = 0, y_ = 0, x_ = 0;
};

/// As rtl/vector/cdl_npu_vector.sv, in cycles alone. A select is taken to write all elements.
class VectorEngine : public Engine {
public:
  explicit VectorEngine(const Configuration& configuration) : configuration_(configuration) {}
  void begin(const Operation& operation, int64_t base) override;
  void ask() override;
  void clock() override;
  bool movesData() const override { return a.isGranted || b.isGranted; }

  PortRequest a, b, write;

private:
  void startWalk();
  bool isActive() const { return isPool_ ? pool_.isActive() : lanes_.isActive(); }
  VectorStep current() const { return isPool_ ? pool_.current() : lanes_.current(); }
  bool isStepping() const { return isActive() && results_.hasRoom(); }
  int64_t tableBytes() const { return aBytes_ == 2 ? 2 * 513 : 256; }

  const Configuration& configuration_;
  Operation operation_;
  bool isPool_ = false, isReduce_ = false, hasB_ = false, hasTable_ = false, isScalar_ = false;
  bool isInTable_ = false, isWalked_ = false, isAServed_ = false, isBServed_ = false;
  int64_t aBytes_ = 1, bBytes_ = 1, outBytes_ = 1, chunk_ = 1, used_ = 1;
  int setup_ = 0;
  int64_t now_ = 0, tableWord_ = 0;
  LanesWalk lanes_;
  PoolWalk pool_;
  Results results_;
};

} // namespace candela::npu::exact
