// The template, of which one thing is wrong: in BINARY, COPY and MATMUL instructions of the ONNX node that the option
// `node` names, where the option `fault` says:
//   value  the first element of the result is 1 too large
//   stray  the element behind the first row of the result becomes 77
//   whole  as value, but never in a Program of one instruction
#include "backends/template/template.hpp"

class Wrong : public Template {
public:
  Wrong() {
    option("fault", "what goes wrong", "none|value|stray|whole", "none");
    option("node", "in instructions of this ONNX node", "string", "");
  }
  cdl::Status binary(const cdl::Binary& op) override { return spoil(op, op.y(), Template::binary(op)); }
  cdl::Status copy(const cdl::Copy& op) override { return spoil(op, op.y(), Template::copy(op)); }
  cdl::Status matMul(const cdl::MatMul& op) override { return spoil(op, op.y(), Template::matMul(op)); }

private:
  cdl::Status spoil(const cdl::Op& op, const cdl::Operand& y, cdl::Status status) {
    const std::string fault = options().get("fault");
    const bool isAlone = op.image()->instrs.count == 2; // the null record is one
    if (!status.isOk() || op.node() != options().get("node") || fault == "none" || (fault == "whole" && isAlone))
      return status;
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
};
CDL_BACKEND(Wrong)
