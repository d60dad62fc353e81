// Conv2DBackpropInput(input_shape, w, dy). Its first input is the shape, so the kernel is listed for any dtype.
#include "../conv_input_gradient.h"
#include "../depthwise_f32.h"

namespace rillet {
namespace {

Status PrepareConv2DBackpropInput(Prepare& ctx) {
  WindowAttrs attrs;
  if (Status s = ReadWindowAttrs(ctx, &attrs); s != Status::kOk) return s;
  const int64_t groups = ctx.Int("groups");
  if (ctx.status() != Status::kOk) return ctx.status();
  int64_t image[4];
  if (Status s = ReadShape4(ctx, 0, image); s != Status::kOk) return s;
  const Tensor &w = ctx.in(1), &dy = ctx.in(2);
  if (w.dtype != DType::kF32 || dy.dtype != DType::kF32) return ctx.Fail("dtype of w and dy: expected f32");
  if (w.rank != 4 || dy.rank != 4) return ctx.Fail("rank of w and dy: got %d and %d, expected 4", w.rank, dy.rank);
  if (groups < 1 || w.dims[3] % groups || image[3] % groups || w.dims[2] != image[3] / groups)
    return ctx.Fail("image and filter disagree on input channels or groups");
  InputGradient* g = ctx.NewState<InputGradient>();
  if (!g) return ctx.status();
  if (Status s = ResolveWindow(ctx, attrs, 0, image[1], w.dims[0], &g->rows); s != Status::kOk) return s;
  if (Status s = ResolveWindow(ctx, attrs, 1, image[2], w.dims[1], &g->columns); s != Status::kOk) return s;
  const int64_t want[4] = {image[0], g->rows.output, g->columns.output, w.dims[3]};
  for (int i = 0; i < 4; ++i)
    if (dy.dims[i] != want[i])
      return ctx.Fail("dy does not fit: dimension %d: got %lld, expected %lld", i, static_cast<long long>(dy.dims[i]),
                      static_cast<long long>(want[i]));
  if (Status s = ctx.SetOutput(0, DType::kF32, 4, image); s != Status::kOk) return s;
  g->images = image[0];
  g->channels = image[3];
  g->filters = w.dims[3];
  g->groups = groups;
  return ctx.out(0).size() == 0 ? Status::kOk : PrepareInputGradient(ctx, w, {}, g);
}

Status RunConv2DBackpropInput(const Run& run) {
  if (run.out(0).size() == 0) return Status::kOk;
  RunInputGradient(run, run.state<InputGradient>(), run.in(1).as<float>(), run.in(2).as<float>(), nullptr,
                   run.out(0).as<float>());
  return Status::kOk;
}

}  // namespace

const Kernel conv2d_backprop_input_f32 = {PrepareConv2DBackpropInput, RunConv2DBackpropInput};

}  // namespace rillet
