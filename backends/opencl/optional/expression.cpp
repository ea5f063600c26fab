// The second level: the steps of an expression as they are.
#include "../primitives/map.hpp"

cdl::Status OpenCl::elementwise(const cdl::Elementwise& op) {
  const cdl_expr_t& expr = *op.expr();
  std::vector<cdl::Operand> views{op.y()};
  std::vector<MapStep> steps;
  std::map<uint16_t, int64_t> pieces; // of inputs that steps read
  for (uint32_t s = 0; s < expr.steps; ++s) {
    const cdl_step_t& given = *cdl_get_step(op.image(), expr.first_step + s);
    MapStep step{given.kind, given.fn, given.in[given.kind == CDL_KIND_SELECT ? 1 : 0].elem,
                 given.elem, given.flags & 1};
    std::vector<uint8_t> elems;
    for (int k = 0; k < given.operands; ++k) {
      const cdl_operand_t& operand = given.in[k];
      elems.push_back(operand.elem);
      if (operand.source == CDL_FROM_VIEW && pieces.emplace(operand.index, pieces.size()).second)
        views.push_back(op.input(operand.index));
      step.sources[k] = int64_t{operand.index};
      if (operand.source == CDL_FROM_VIEW) step.sources[k] = kFromView + pieces[operand.index];
      if (operand.source == CDL_FROM_CONST) step.sources[k] = kFromBits;
    }
    elems.push_back(given.elem);
    if (cdl::Status status = claimed(given.kind, given.fn, elems); !status.isOk()) return status;
    step.bits = static_cast<int64_t>(given.imm);
    steps.push_back(step);
  }
  if (views.size() > 1 + kPieces)
    return cdl::unsupported(cdl::text(views.size() - 1, " views of an expression"));
  return run(op, mapOf(views, steps));
}
