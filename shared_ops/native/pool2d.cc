// MaxPool and AvgPool in float32 (NHWC). The taps of a window are taken row by row.
#include "pool2d.h"

namespace rillet {

Status PreparePool(Prepare& ctx, const int64_t* input_dims, PoolState* s) {
  WindowAttrs window;
  const Span<int64_t> ksize = ctx.Ints("ksize");
  if (ReadWindowAttrs(ctx, &window) != Status::kOk) return ctx.status();
  if (ksize.size != 2) return ctx.Fail("ksize: got %d numbers, expected 2", static_cast<int>(ksize.size));
  s->loops = &CurrentNnF32();
  s->batch = input_dims[0];
  s->channels = input_dims[3];
  for (int i = 0; i < 2; ++i) {
    if (ResolveWindow(ctx, window, i, input_dims[1 + i], ksize[i], &s->axis[i]) != Status::kOk) return ctx.status();
    const int64_t reach = s->axis[i].reach();
    if (window.pads[i][0] >= reach || window.pads[i][1] >= reach)
      return ctx.Fail("pads must be smaller than the window: expected below %lld", static_cast<long long>(reach));
  }
  return Status::kOk;
}

namespace {

Status Prepare2D(Prepare& ctx) {
  PoolState* s = ctx.NewState<PoolState>();
  if (!s) return ctx.status();
  const Tensor& x = ctx.in(0);
  if (x.rank != 4) return ctx.Fail("rank of x: got %d, expected 4 (NHWC)", x.rank);
  if (PreparePool(ctx, x.dims, s) != Status::kOk) return ctx.status();
  ctx.NeedWorkspace(static_cast<size_t>(s->most_taps() * ctx.threads) * sizeof(void*));
  const int64_t dims[4] = {s->batch, s->axis[0].output, s->axis[1].output, s->channels};
  return ctx.SetOutput(0, DType::kF32, 4, dims);
}

// Pointers to the elements of window (p, q) that lie inside the image.
int64_t Taps(const PoolState& s, const float* image, int64_t p, int64_t q, const float** taps) {
  const WindowAxis &rows = s.axis[0], &columns = s.axis[1];
  int64_t count = 0;
  for (int64_t i = rows.first_tap(p); i < rows.last_tap(p); ++i)
    for (int64_t j = columns.first_tap(q); j < columns.last_tap(q); ++j)
      taps[count++] = image + (rows.at(p, i) * columns.input + columns.at(q, j)) * s.channels;
  return count;
}

// Calls window(taps, count, y) for every window, rows of them spread over threads.
template <class Window>
void ForWindows(const Run& run, const PoolState& s, const Window& window) {
  const WindowAxis &rows = s.axis[0], &columns = s.axis[1];
  const float* x = run.in(0).as<const float>();
  float* y = run.out(0).as<float>();
  const int64_t work = columns.output * s.channels * s.most_taps();
  run.ParallelFor(s.batch * rows.output, 1 + 16384 / (work + 1), [&](int64_t begin, int64_t end, int thread) {
    const float** taps = static_cast<const float**>(run.workspace) + thread * s.most_taps();
    for (int64_t i = begin; i < end; ++i) {
      const float* image = x + i / rows.output * rows.input * columns.input * s.channels;
      for (int64_t q = 0; q < columns.output; ++q) {
        const int64_t count = Taps(s, image, i % rows.output, q, taps);
        window(taps, count, y + (i * columns.output + q) * s.channels);
      }
    }
  });
}

Status RunMax(const Run& run) {
  const PoolState& s = run.state<PoolState>();
  ForWindows(run, s,
             [&](const float* const* taps, int64_t count, float* y) { s.loops->max_taps(taps, count, s.channels, y); });
  return Status::kOk;
}

Status RunAverage(const Run& run) {
  const PoolState& s = run.state<PoolState>();
  ForWindows(run, s, [&](const float* const* taps, int64_t count, float* y) {
    s.loops->mean_taps(taps, count, s.channels, static_cast<float>(count), y);
  });
  return Status::kOk;
}

}  // namespace

const Kernel max_pool_f32 = {Prepare2D, RunMax};
const Kernel avg_pool_f32 = {Prepare2D, RunAverage};

}  // namespace rillet
