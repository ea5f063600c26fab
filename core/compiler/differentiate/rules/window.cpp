// Convolutions and pools. A convolution and a transposed one are each other's gradient with respect
// to x; that with respect to the weights is a convolution whose kernel is what comes back.
#include "core/compiler/graph/window.h"
#include "core/compiler/differentiate/rules.h"

namespace candela::differentiate {
namespace {

using graph::Window;

Shape spatialOf(const Term& x) {
  const Shape dims = x.shape();
  return {dims.begin() + 2, dims.end()};
}

/// Begin of every spatial dim, then end.
std::vector<int64_t> joined(Shape begin, const Shape& end) {
  begin.insert(begin.end(), end.begin(), end.end());
  return begin;
}

/// Pads of a convolution are never below 0: where they would be, x is cut first.
struct Padded {
  Term x;
  std::vector<int64_t> pads;
};
Padded padded(const Term& x, const Shape& begin, const Shape& end) {
  Shape lo(2, 0), hi(2, 0), padsBegin, padsEnd, starts(2, 0), counts{x.dim(0), x.dim(1)};
  bool leavesNone = false;
  for (size_t d = 0; d < begin.size(); ++d) {
    lo.push_back(std::min<int64_t>(begin[d], 0));
    hi.push_back(std::min<int64_t>(end[d], 0));
    padsBegin.push_back(std::max<int64_t>(begin[d], 0));
    padsEnd.push_back(std::max<int64_t>(end[d], 0));
    starts.push_back(-lo.back());
    counts.push_back(spatialOf(x)[d] + begin[d] + end[d]);
    leavesNone = leavesNone || spatialOf(x)[d] + lo.back() + hi.back() <= 0;
  }
  if (!leavesNone) return {x.pad(lo, hi), joined(padsBegin, padsEnd)};
  // Windows that lie in the border alone: what is read of it is made, and then cut.
  const std::vector<int64_t> none(2, 0);
  const Term whole = x.pad(joined(none, padsBegin), joined(none, padsEnd));
  const std::vector<int64_t> steps(counts.size(), 1), noPads(2 * begin.size(), 0);
  return {make(OpKind::Slice, {whole}, {{"starts", starts}, {"counts", counts}, {"steps", steps}}),
          noPads};
}

/// What comes back to x [n, c, extents..] of a convolution by w.
Term backToImages(const Term& dy, const Term& w, const Window& window, int64_t group,
                  const Shape& extents) {
  const Shape out = spatialOf(dy);
  Shape end;
  for (size_t d = 0; d < extents.size(); ++d)
    end.push_back((out[d] - 1) * window.strides[d] + window.span(static_cast<int>(d)) -
                  window.padsBegin[d] - extents[d]);
  return make(OpKind::ConvTranspose, {dy, w},
              {{"strides", window.strides},
               {"dilations", window.dilations},
               {"pads", joined(window.padsBegin, end)},
               {"group", group}});
}

/// [n, group * c, spatial..] as [c, group * n, spatial..].
Term channelsFirst(const Term& x, int64_t group) {
  const int64_t images = x.dim(0);
  const int64_t channels = x.dim(1) / group;
  Shape apart{images, group, channels}, joint{channels, group * images};
  std::vector<int64_t> perm{2, 1, 0};
  for (const int64_t extent : spatialOf(x)) {
    perm.push_back(static_cast<int64_t>(apart.size()));
    apart.push_back(extent);
    joint.push_back(extent);
  }
  return x.reshape(apart).transpose(perm).reshape(joint);
}

Term swapFirst(const Term& x) {
  std::vector<int64_t> perm = range(0, x.rank());
  std::swap(perm[0], perm[1]);
  return x.transpose(perm);
}

/// What comes back to the weights [o, c, kernel..]: dw[o,c,k] = sum of x[n,c,p*s+k*d-pad] *
/// dy[n,o,p] over n and p, a convolution over x whose kernel is dy, strides and dilations swapped.
Term backToWeights(const Term& x, const Term& dy, const Window& window, int64_t group) {
  const Shape extents = spatialOf(x);
  const Shape out = spatialOf(dy);
  Shape end;
  for (size_t d = 0; d < extents.size(); ++d)
    end.push_back(window.span(static_cast<int>(d)) + (out[d] - 1) * window.strides[d] - extents[d] -
                  window.padsBegin[d]);
  const Padded images = padded(channelsFirst(x, group), window.padsBegin, end);
  return swapFirst(make(OpKind::Conv, {images.x, swapFirst(dy)},
                        {{"strides", window.dilations},
                         {"dilations", window.strides},
                         {"pads", images.pads},
                         {"group", group}}));
}

void giveBias(const Step& step) {
  step.give(2, [&] {
    std::vector<int64_t> axes = range(0, step.y().rank());
    axes.erase(axes.begin() + 1);
    return sum(step.dy(), axes, false);
  });
}

Shape kernelOf(const Term& w) { return spatialOf(w); }

/// How many elements each window's mean is over, place by place: those in x, or in x with its
/// border.
Term windowCounts(const Step& step, const Window& window) {
  const Term x = step.x(0);
  const Term y = step.y();
  const bool countsBorder = step.node.intAttr("count_include_pad");
  const Shape extents = spatialOf(x);
  const Shape out = spatialOf(y);
  std::vector<double> counts{1};
  for (size_t d = 0; d < out.size(); ++d) {
    const int64_t lo = countsBorder ? -window.padsBegin[d] : 0;
    const int64_t hi = extents[d] + (countsBorder ? window.padsEnd[d] : 0);
    std::vector<double> finer;
    for (const double outer : counts)
      for (int64_t place = 0; place < out[d]; ++place) {
        int64_t inside = 0;
        for (int64_t tap = 0; tap < window.kernel[d]; ++tap) {
          const int64_t at =
              place * window.strides[d] - window.padsBegin[d] + tap * window.dilations[d];
          inside += at >= lo && at < hi;
        }
        finer.push_back(outer * static_cast<double>(inside));
      }
    counts = std::move(finer);
  }
  for (double& count : counts) count = std::max(count, 1.0); // nothing but border: the mean is 0
  return constant(step.writer(), counts, out, y.elem());
}

Window poolOf(const Node& node) { return graph::windowOf(node, node.intsAttr("kernel_shape")); }

} // namespace

void convRule(const Step& step) {
  const Term x = step.x(0);
  const Term w = step.x(1);
  const Window window = graph::windowOf(step.node, kernelOf(w));
  const int64_t group = step.node.intAttr("group");
  giveBias(step);
  if (step.y().count() == 0 || x.count() == 0) return; // nothing came of x and w
  step.give(0, [&] { return backToImages(step.dy(), w, window, group, spatialOf(x)); });
  step.give(1, [&] { return backToWeights(x, step.dy(), window, group); });
}

/// y leaves out what the pads say, or has more around, where they are below 0.
void convTransposeRule(const Step& step) {
  const Term x = step.x(0);
  const Term w = step.x(1);
  const size_t spatial = kernelOf(w).size();
  Window window;
  window.kernel = kernelOf(w);
  window.strides = step.node.intsAttr("strides", spatial, 1);
  window.dilations = step.node.intsAttr("dilations", spatial, 1);
  const std::vector<int64_t> pads = step.node.intsAttr("pads", 2 * spatial, 0);
  window.padsBegin.assign(pads.begin(), pads.begin() + static_cast<int64_t>(spatial));
  window.padsEnd.assign(pads.begin() + static_cast<int64_t>(spatial), pads.end());
  const int64_t group = step.node.intAttr("group");
  giveBias(step);
  if (step.y().count() == 0 || x.count() == 0) return; // nothing came of x and w
  step.give(0, [&] {
    const Padded back = padded(step.dy(), window.padsBegin, window.padsEnd);
    return make(OpKind::Conv, {back.x, w},
                {{"strides", window.strides},
                 {"dilations", window.dilations},
                 {"pads", back.pads},
                 {"group", group}});
  });
  step.give(1, [&] { return backToWeights(step.dy(), x, window, group); });
}

/// To the first maximum of each window; a window in the border has none.
void maxPoolRule(const Step& step) {
  if (step.x(0).count() == 0) return;
  step.give(0, [&] {
    const Term x = step.x(0);
    const Term dy = step.dy();
    Attrs attrs = step.node.attrs;
    attrs["storage_order"] = int64_t{0};
    const bool isByRows = step.node.intAttr("storage_order") == 0;
    const bool isThere = isByRows && step.node.results().size() > 1;
    Term places = dy;
    if (isThere)
      places = step.y(1);
    else if (isByRows)
      places = step.withResults(2)[1];
    else
      places = makeAll(OpKind::MaxPool, {x}, attrs, 2)[1];
    const Term zeros = full(step.writer(), 0, {1, x.count(), 1}, x.elem());
    return putAdd(zeros, places.reshape({dy.count()}), dy.reshape({1, dy.count(), 1}))
        .reshape(x.shape());
  });
}

/// A transposed convolution by ones, plane by plane.
void averagePoolRule(const Step& step) {
  step.give(0, [&] {
    const Term x = step.x(0);
    const Window window = poolOf(step.node);
    if (step.y().count() == 0 || x.count() == 0) return zerosLike(x);
    const Term each = step.dy() / windowCounts(step, window);
    Shape planes = each.shape();
    Shape kernel = window.kernel;
    planes[0] *= planes[1];
    planes[1] = 1;
    kernel.insert(kernel.begin(), 2, 1);
    const Term ones = full(step.writer(), 1, kernel, x.elem());
    return backToImages(each.reshape(planes), ones, window, 1, spatialOf(x)).reshape(x.shape());
  });
}

void globalAveragePoolRule(const Step& step) {
  step.give(0, [&] {
    const Term x = step.x(0);
    const int64_t places = x.count() / std::max<int64_t>(1, x.dim(0) * x.dim(1));
    return (step.dy() / static_cast<double>(places)).expand(x.shape());
  });
}

} // namespace candela::differentiate
