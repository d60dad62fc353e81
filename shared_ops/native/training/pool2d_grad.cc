// Gradients of the pools in float32 (NHWC). Windows may overlap, so images, not windows, are spread over threads;
// within an image the windows add to dx in order, row by row.
#include "../depthwise_f32.h"
#include "../pool2d.h"

namespace rillet {
namespace {

bool IsLike(const Tensor& t, const PoolState& s) {
  return t.dtype == DType::kF32 && t.rank == 4 && t.dims[0] == s.batch && t.dims[1] == s.axis[0].output &&
         t.dims[2] == s.axis[1].output && t.dims[3] == s.channels;
}

Status PrepareMax(Prepare& ctx) {
  PoolState* s = ctx.NewState<PoolState>();
  if (!s) return ctx.status();
  const Tensor& x = ctx.in(0);
  if (x.rank != 4) return ctx.Fail("rank of x: got %d, expected 4 (NHWC)", x.rank);
  if (PreparePool(ctx, x.dims, s) != Status::kOk) return ctx.status();
  if (!IsLike(ctx.in(1), *s) || !IsLike(ctx.in(2), *s))
    return ctx.Fail("y and dy must have the shape of the pool's result");
  ctx.NeedWorkspace(static_cast<size_t>(s->channels * ctx.threads) * sizeof(float));
  return ctx.SetOutputLike(0, x);
}

Status PrepareAverage(Prepare& ctx) {
  PoolState* s = ctx.NewState<PoolState>();
  if (!s) return ctx.status();
  int64_t dims[4];
  if (ReadShape4(ctx, 0, dims) != Status::kOk) return ctx.status();
  if (PreparePool(ctx, dims, s) != Status::kOk) return ctx.status();
  if (!IsLike(ctx.in(1), *s)) return ctx.Fail("dy must have the shape of the pool's result");
  ctx.NeedWorkspace(static_cast<size_t>(s->channels * ctx.threads) * sizeof(float));
  return ctx.SetOutput(0, DType::kF32, 4, dims);
}

// Calls window(image, p, q, thread) for every window of an image, on a dx that starts at zero.
template <class Window>
void ForImages(const Run& run, const PoolState& s, const Window& window) {
  const int64_t image = s.axis[0].input * s.axis[1].input * s.channels;
  float* dx = run.out(0).as<float>();
  run.ParallelFor(s.batch, 1 + 4096 / (image + 1), [&](int64_t begin, int64_t end, int thread) {
    for (int64_t n = begin; n < end; ++n) {
      std::memset(dx + n * image, 0, static_cast<size_t>(image) * sizeof(float));
      for (int64_t p = 0; p < s.axis[0].output; ++p)
        for (int64_t q = 0; q < s.axis[1].output; ++q) window(n, p, q, thread);
    }
  });
}

// Calls tap(offset into x) for each element of window (p, q) of image n that lies inside.
template <class Tap>
void ForTaps(const PoolState& s, int64_t n, int64_t p, int64_t q, const Tap& tap) {
  const WindowAxis &rows = s.axis[0], &columns = s.axis[1];
  for (int64_t i = rows.first_tap(p); i < rows.last_tap(p); ++i)
    for (int64_t j = columns.first_tap(q); j < columns.last_tap(q); ++j)
      tap(((n * rows.input + rows.at(p, i)) * columns.input + columns.at(q, j)) * s.channels);
}

int64_t WindowOffset(const PoolState& s, int64_t n, int64_t p, int64_t q) {
  return ((n * s.axis[0].output + p) * s.axis[1].output + q) * s.channels;
}

Status RunMax(const Run& run) {
  const PoolState& s = run.state<PoolState>();
  const float *x = run.in(0).as<const float>(), *y = run.in(1).as<const float>(), *dy = run.in(2).as<const float>();
  float* dx = run.out(0).as<float>();
  ForImages(run, s, [&](int64_t n, int64_t p, int64_t q, int thread) {
    float* free = static_cast<float*>(run.workspace) + thread * s.channels;
    for (int64_t c = 0; c < s.channels; ++c) free[c] = 1.0f;
    const int64_t at = WindowOffset(s, n, p, q);
    ForTaps(s, n, p, q,
            [&](int64_t from) { s.loops->max_tap_grad(x + from, y + at, dy + at, s.channels, dx + from, free); });
  });
  return Status::kOk;
}

Status RunAverage(const Run& run) {
  const PoolState& s = run.state<PoolState>();
  const float* dy = run.in(1).as<const float>();
  float* dx = run.out(0).as<float>();
  ForImages(run, s, [&](int64_t n, int64_t p, int64_t q, int thread) {
    float* share = static_cast<float*>(run.workspace) + thread * s.channels;
    const int64_t rows = s.axis[0].last_tap(p) - s.axis[0].first_tap(p);
    const int64_t columns = s.axis[1].last_tap(q) - s.axis[1].first_tap(q);
    const float count = static_cast<float>(rows * columns);
    for (int64_t c = 0; c < s.channels; ++c) share[c] = dy[WindowOffset(s, n, p, q) + c] / count;
    ForTaps(s, n, p, q, [&](int64_t to) {
      for (int64_t c = 0; c < s.channels; ++c) dx[to + c] += share[c];
    });
  });
  return Status::kOk;
}

}  // namespace

const Kernel max_pool_grad_f32 = {PrepareMax, RunMax};
const Kernel avg_pool_grad_f32 = {PrepareAverage, RunAverage};

}  // namespace rillet
