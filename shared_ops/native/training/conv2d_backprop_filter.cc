// Conv2DBackpropFilter(x, filter_shape, dy): A^T B, where A's rows are the pixels of the (padded) images, k runs over
// batch, rows and columns of dy, and a kernel row of adjacent columns is one block of dw's rows. dy is read in place.
#include <algorithm>

#include "../depthwise_f32.h"
#include "../gemm_f32.h"
#include "../image_strip.h"

namespace rillet {
namespace {

struct State {
  WindowAxis rows, columns;
  int64_t images = 0, channels = 0, filters = 0, groups = 1;
  bool padded = false, adjacent = false;
  int64_t height = 0, width = 0;  // of the image that windows walk over
  int64_t blocks = 0;             // kernel rows, or taps where columns are not adjacent
  int64_t block_rows = 0;         // rows of dw in each
  int64_t lda = 0;
  int64_t copy_floats = 0, tail_floats = 0;  // workspace: padded images, the partial panel of dy, scratch
  Gemm gemm;
};

Status PreparePlan(Prepare& ctx, State* s) {
  const bool whole = !s->padded && s->rows.kernel * s->columns.kernel == 1 && s->rows.stride * s->columns.stride == 1;
  const int64_t taps = whole ? 1 : s->images * s->rows.output;
  const int64_t pixels = s->images * s->rows.output * s->columns.output;
  int64_t* tap_a = ctx.AllocateArray<int64_t>(taps);
  if (!tap_a) return ctx.status();
  for (int64_t t = 0; t < taps; ++t)
    tap_a[t] = (t / s->rows.output * s->height + t % s->rows.output * s->rows.stride) * s->width * s->channels;
  s->gemm.tap_a = tap_a;
  s->gemm.row_block = s->block_rows;
  return PlanK(ctx, taps, whole ? pixels : s->columns.output, 256, pixels, nullptr, &s->gemm.plan);
}

Status PrepareConv2DBackpropFilter(Prepare& ctx) {
  WindowAttrs attrs;
  if (Status s = ReadWindowAttrs(ctx, &attrs); s != Status::kOk) return s;
  const int64_t groups = ctx.Int("groups");
  if (ctx.status() != Status::kOk) return ctx.status();
  int64_t filter[4];
  if (Status s = ReadShape4(ctx, 1, filter); s != Status::kOk) return s;
  const Tensor &x = ctx.in(0), &dy = ctx.in(2);
  if (dy.dtype != DType::kF32) return ctx.Fail("dtypes of the inputs differ: got %s, expected f32", NameOf(dy.dtype));
  if (x.rank != 4 || dy.rank != 4) return ctx.Fail("rank of x and dy: got %d and %d, expected 4", x.rank, dy.rank);
  if (groups < 1 || filter[3] % groups || x.dims[3] % groups || filter[2] != x.dims[3] / groups)
    return ctx.Fail("image and filter disagree on input channels or groups");
  State* s = ctx.NewState<State>();
  if (!s) return ctx.status();
  if (Status st = ResolveWindow(ctx, attrs, 0, x.dims[1], filter[0], &s->rows); st != Status::kOk) return st;
  if (Status st = ResolveWindow(ctx, attrs, 1, x.dims[2], filter[1], &s->columns); st != Status::kOk) return st;
  const int64_t want[4] = {x.dims[0], s->rows.output, s->columns.output, filter[3]};
  for (int i = 0; i < 4; ++i)
    if (dy.dims[i] != want[i])
      return ctx.Fail("dy does not fit: dimension %d: got %lld, expected %lld", i, static_cast<long long>(dy.dims[i]),
                      static_cast<long long>(want[i]));
  if (Status st = ctx.SetOutput(0, DType::kF32, 4, filter); st != Status::kOk) return st;
  if (ctx.out(0).size() == 0) return Status::kOk;
  s->images = x.dims[0];
  s->channels = x.dims[3];
  s->filters = filter[3];
  s->groups = groups;
  if (Status st = CheckPaddedSize(ctx, s->images, s->rows.padded(), s->columns.padded(), s->channels);
      st != Status::kOk)
    return st;
  s->padded = s->rows.before || s->rows.after || s->columns.before || s->columns.after;
  s->height = s->padded ? (s->rows.output - 1) * s->rows.stride + s->rows.reach() : s->rows.input;
  s->width = s->padded ? (s->columns.output - 1) * s->columns.stride + s->columns.reach() : s->columns.input;
  if (dy.size() == 0) s->padded = false, s->height = s->width = 0;
  s->adjacent = groups == 1 && s->columns.dilation == 1;
  s->blocks = s->adjacent ? s->rows.kernel : s->rows.kernel * s->columns.kernel;
  s->block_rows = s->adjacent ? s->columns.kernel * s->channels : s->channels / groups;
  s->lda = s->columns.stride * s->channels;
  s->gemm.n = s->filters / groups;
  s->gemm.kernels = &GemmFor(s->gemm.n, true);
  s->gemm.transposed = true;
  if (Status st = PreparePlan(ctx, s); st != Status::kOk) return st;
  if (s->padded) s->copy_floats = Aligned(s->images * s->height * s->width * s->channels);
  s->tail_floats = Aligned(s->gemm.tail_size());
  const int64_t scratch = s->gemm.scratch_size(s->block_rows) * ctx.threads;
  ctx.NeedWorkspace(static_cast<size_t>(s->copy_floats + s->tail_floats + scratch) * sizeof(float));
  return Status::kOk;
}

Status RunConv2DBackpropFilter(const Run& run) {
  const State& s = run.state<State>();
  if (run.out(0).size() == 0) return Status::kOk;
  const float *x = run.in(0).as<float>(), *dy = run.in(2).as<float>();
  float *dw = run.out(0).as<float>(), *workspace = static_cast<float*>(run.workspace);
  if (s.padded) {
    const int64_t image = s.rows.input * s.columns.input * s.channels, copy = s.height * s.width * s.channels;
    run.ParallelFor(s.images, std::max<int64_t>(1, 32768 / copy), [&](int64_t begin, int64_t end, int) {
      for (int64_t n = begin; n < end; ++n)
        CopyStrip(x + n * image, s.rows.input, s.columns.input, s.channels,
                  {-s.rows.before, -s.columns.before, s.height, s.width}, workspace + n * copy);
    });
    x = workspace;
  }
  float *tail = workspace + s.copy_floats, *scratch = tail + s.tail_floats;
  const int64_t columns = s.adjacent ? 1 : s.columns.kernel;
  for (int64_t g = 0; g < s.groups; ++g) {
    const float* b = dy + g * s.gemm.n;
    PackTail(s.gemm, b, s.filters, tail);
    for (int64_t t = 0; t < s.blocks; ++t) {
      const int64_t r = t / columns, c = t % columns;
      const int64_t at =
          (r * s.rows.dilation * s.width + c * s.columns.dilation) * s.channels + g * (s.channels / s.groups);
      RunGemm(run, s.gemm, s.block_rows, {x + at, s.lda, nullptr}, {tail, b, s.filters},
              dw + t * s.block_rows * s.filters + g * s.gemm.n, s.filters, nullptr, scratch);
    }
  }
  return Status::kOk;
}

}  // namespace

const Kernel conv2d_backprop_filter_f32 = {PrepareConv2DBackpropFilter, RunConv2DBackpropFilter};

}  // namespace rillet
