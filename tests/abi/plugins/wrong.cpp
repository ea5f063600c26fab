// The template, of which one thing is wrong: in BINARY, COPY and MATMUL instructions of the ONNX
// node that the option `node` names, where the option `fault` says:
//   value     the first element of the result is 1 too large
//   stray     the element behind the first row of the result becomes 77
//   whole     as value, but never in a Program of one instruction
//   sequence  as value, once a MATMUL ran on this device before
//   unstable  as value, in every other run
//   crash     the process dies of SIGSEGV
//   exit      the process ends, with status 7
//   hang      it never returns
//   refuse    it answers that it cannot
#include <unistd.h>

#include <csignal>

#include "backends/template/template.hpp"

class Wrong : public Template {
public:
  Wrong() {
    option("fault", "what goes wrong",
           "none|value|stray|whole|sequence|unstable|crash|exit|hang|refuse", "none");
    option("node", "in instructions of this ONNX node", "string", "");
  }
  cdl::Status binary(const cdl::Binary& op) override {
    return spoil(op, op.y(), Template::binary(op));
  }
  cdl::Status copy(const cdl::Copy& op) override { return spoil(op, op.y(), Template::copy(op)); }
  cdl::Status matMul(const cdl::MatMul& op) override {
    const cdl::Status status = spoil(op, op.y(), Template::matMul(op));
    hadProduct_ = true;
    return status;
  }

private:
  cdl::Status spoil(const cdl::Op& op, const cdl::Operand& y, cdl::Status status) {
    const std::string fault = options().get("fault");
    if (!status.isOk() || op.node() != options().get("node") || fault == "none") return status;
    if (fault == "whole" && op.image()->instrs.count == 2) return status; // the null record is one
    if (fault == "sequence" && !hadProduct_) return status;
    if (fault == "unstable" && ++runs_ % 2 == 1) return status;
    if (fault == "crash") std::raise(SIGSEGV);
    if (fault == "exit") _exit(7);
    while (fault == "hang") pause();
    if (fault == "refuse") return cdl::error(CDL_INTERNAL, "the unit is on fire");
    return withElem(op, y.elem, [&](auto type) {
      using T = typename decltype(type)::Value;
      bool isFirst = true;
      cdl::forEachRow(
          [&](int64_t n, cdl::Row<T> row) {
            if (isFirst && fault == "stray") row[n] = T(77);
            if (isFirst && fault != "stray") row[0] = T(row[0] + T(1));
            isFirst = false;
          },
          y.as<T>());
      return cdl::ok();
    });
  }

  bool hadProduct_ = false;
  int runs_ = 0;
};
CDL_BACKEND(Wrong)
