// A backend that takes whole Programs: compile keeps the image, execute interprets it with the
// template's primitives. The option `refuse` names a kind that compile refuses although the rows
// allow it: a late refusal. The option `clock` says what a profile is: `host` by the host's clock,
// `own` by one of its own with the last instruction first, `twice` with two records of each.
#include "backends/template/template.hpp"

namespace {

class Interpreted : public cdl::Executable {
public:
  Interpreted(Template& primitives, const cdl_image_t* image, const std::string& clock)
      : primitives_(primitives), image_(image), clock_(clock) {}
  cdl::Status execute(const cdl::Addresses& buffers) override {
    return cdl::forEachInstr(image_, [&](uint32_t i, const int64_t* loops) {
      cdl::Timings* timings = buffers.timings();
      const uint64_t start = timings ? cdl::Timings::now() : 0;
      cdl::Status status = primitives_.dispatch(cdl::Op(image_, i, loops, &buffers));
      if (timings) record(*timings, i, start);
      return status;
    });
  }

private:
  void record(cdl::Timings& timings, uint32_t i, uint64_t start) const {
    const uint64_t own = 1'000'000'000'000 - uint64_t(i) * 1'000'000'000;
    if (clock_ == "own") return timings.add(i, own, own + 500, i);
    for (int n = clock_ == "twice" ? 2 : 1; n > 0; --n) timings.add(i, start, cdl::Timings::now());
  }

  Template& primitives_; // without state of its own: executions may overlap
  const cdl_image_t* image_;
  std::string clock_;
};

class Door2 : public cdl::ProgramBackend {
public:
  Door2() : ProgramBackend("door2", "0.1.0") {
    describe("the template's primitives behind the program door");
    claim(cdl::Profile::FP32);
    claim(cdl::Profile::INT8);
    option("refuse", "a kind that compile refuses late", "string", "");
    option("clock", "what a profile is", "host|own|twice", "host");
  }
  cdl::Status open(uint32_t) override {
    const std::string name = options().get("refuse");
    for (uint16_t kind = 1; kind < 64 && !name.empty() && !refuse_; ++kind)
      if (cdl_kind_facts(kind) && cdl::kindName(kind) == name) refuse_ = kind;
    if (!name.empty() && !refuse_)
      return cdl::error(CDL_INVALID_ARGUMENT, "refuse=" + name + ": no such kind");
    return cdl::ok();
  }
  cdl::Status compile(const cdl_image_t* image, const void* const*,
                      std::unique_ptr<cdl::Executable>& executable) override {
    for (uint32_t i = 1; i < image->instrs.count; ++i) {
      const cdl_instr_t* instr = cdl_get_instr(image, i);
      if (instr->kind == refuse_)
        return cdl::refused(i, CDL_REASON_VENDOR,
                            cdl::kindName(instr->kind) + " is refused by the option refuse");
      if (instr->expr || instr->kind > CDL_KIND_TABLE)
        return cdl::refused(i, CDL_REASON_NO_ROW,
                            cdl::kindName(instr->kind) + " or its epilogue has no row");
    }
    executable = std::make_unique<Interpreted>(primitives_, image, options().get("clock"));
    return cdl::ok();
  }

private:
  Template primitives_;
  uint16_t refuse_ = 0;
};

} // namespace

CDL_BACKEND(Door2)
