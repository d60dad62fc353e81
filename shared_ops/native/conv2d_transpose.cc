// Conv2DTranspose: the input gradient of a convolution, with an output size rule, a bias and a clamp of its own.
#include <algorithm>

#include "conv_input_gradient.h"

namespace rillet {
namespace {

long long LL(int64_t v) { return static_cast<long long>(v); }

Status CheckShapes(Prepare& ctx, const Tensor& x, const Tensor& w, int64_t groups) {
  if (x.rank != 4 || w.rank != 4)
    return ctx.Fail("rank of x and w: got %d and %d, expected 4 (NHWC, HWOI)", x.rank, w.rank);
  if (w.dtype != DType::kF32) return ctx.Fail("dtypes of the inputs differ: got %s, expected f32", NameOf(w.dtype));
  if (x.dims[3] != w.dims[3])
    return ctx.Fail("input channels disagree: got %lld, expected %lld", LL(w.dims[3]), LL(x.dims[3]));
  if (groups < 1 || x.dims[3] % groups)
    return ctx.Fail("groups must divide the input channels: got %lld, expected a divisor of %lld", LL(groups),
                    LL(x.dims[3]));
  if (w.dims[2] > (int64_t{1} << 40) / groups) return ctx.Fail("groups: got %lld, too many for the filter", LL(groups));
  const int64_t channels = w.dims[2] * groups;
  if (ctx.Has(2) && (ctx.in(2).rank != 1 || ctx.in(2).dims[0] != channels || ctx.in(2).dtype != DType::kF32))
    return ctx.Fail("length of the bias: got %lld, expected %lld", LL(ctx.in(2).size()), LL(channels));
  return Status::kOk;
}

// The axis of the convolution that gives `size`: n * stride under SAME, else the smallest image that does, plus
// `extra`.
Status ResolveAxis(Prepare& ctx, const WindowAttrs& attrs, int axis, int64_t size, int64_t kernel, int64_t extra,
                   WindowAxis* out) {
  constexpr int64_t kLimit = int64_t{1} << 31;
  const int64_t stride = attrs.stride[axis];
  if (kernel < 1)
    return ctx.Fail("the window has no %s: got %lld, expected at least 1", axis ? "columns" : "rows", LL(kernel));
  if (size >= kLimit || kernel >= kLimit)
    return ctx.Fail("image or window too large: got %lld", LL(std::max(size, kernel)));
  if (extra && attrs.padding != Padding::kExplicit) return ctx.Fail("output_padding needs padding EXPLICIT");
  if (extra < 0 || extra >= stride)
    return ctx.Fail("output_padding: got %lld, expected 0 or more, below the stride %lld", LL(extra), LL(stride));
  WindowAxis w;
  w.kernel = kernel;
  w.stride = stride;
  w.dilation = attrs.dilation[axis];
  w.output = size;
  if (attrs.padding == Padding::kSame) {
    w.input = size * stride;
    const int64_t total = std::max<int64_t>(0, w.reach() - stride);
    w.before = total / 2;
    w.after = total - w.before;
  } else if (attrs.padding == Padding::kValid) {
    w.input = size * stride + std::max<int64_t>(0, w.reach() - stride);
  } else {
    w.before = attrs.pads[axis][0];
    w.after = attrs.pads[axis][1];
    w.input = (size - 1) * stride + w.reach() - w.before - w.after + extra;
  }
  if (size == 0) w.input = 0;
  if (w.input < 1 && size > 0)
    return ctx.Fail("pads leave no %s: got %lld, expected at least 1", axis ? "columns" : "rows", LL(w.input));
  *out = w;
  return Status::kOk;
}

Status PrepareConv2DTranspose(Prepare& ctx) {
  WindowAttrs attrs;
  ActivationBounds bounds;
  if (Status s = ReadWindowAttrs(ctx, &attrs); s != Status::kOk) return s;
  if (Status s = ReadActivation(ctx, &bounds); s != Status::kOk) return s;
  const int64_t groups = ctx.Int("groups");
  const Span<int64_t> extra = ctx.Ints("output_padding");
  if (ctx.status() != Status::kOk) return ctx.status();
  if (extra.size != 2) return ctx.Fail("output_padding: got %lld numbers, expected 2", LL(extra.size));
  const Tensor &x = ctx.in(0), &w = ctx.in(1);
  if (Status s = CheckShapes(ctx, x, w, groups); s != Status::kOk) return s;
  InputGradient* g = ctx.NewState<InputGradient>();
  if (!g) return ctx.status();
  if (Status s = ResolveAxis(ctx, attrs, 0, x.dims[1], w.dims[0], extra[0], &g->rows); s != Status::kOk) return s;
  if (Status s = ResolveAxis(ctx, attrs, 1, x.dims[2], w.dims[1], extra[1], &g->columns); s != Status::kOk) return s;
  g->images = x.dims[0];
  g->filters = x.dims[3];
  g->groups = groups;
  g->channels = w.dims[2] * groups;
  const int64_t dims[4] = {g->images, g->rows.input, g->columns.input, g->channels};
  if (Status s = ctx.SetOutput(0, DType::kF32, 4, dims); s != Status::kOk) return s;
  return ctx.out(0).size() == 0 ? Status::kOk : PrepareInputGradient(ctx, w, bounds, g);
}

Status RunConv2DTranspose(const Run& run) {
  if (run.out(0).size() == 0) return Status::kOk;
  RunInputGradient(run, run.state<InputGradient>(), run.in(1).as<float>(), run.in(0).as<float>(),
                   run.Has(2) ? run.in(2).as<float>() : nullptr, run.out(0).as<float>());
  return Status::kOk;
}

}  // namespace

const Kernel conv2d_transpose_f32 = {PrepareConv2DTranspose, RunConv2DTranspose};

}  // namespace rillet
