// DepthwiseConv2D: a row of the result at a time, straight from the image. Rows outside it are a row of zeros; pixels
// whose windows cross the left or right edge get a pointer a tap.
#include <algorithm>

#include "depthwise_f32.h"
#include "image_strip.h"

namespace rillet {
namespace {

struct State {
  Depthwise d;
  ActivationBounds bounds;
  const float* packed = nullptr;  // of a constant filter
  int64_t packed_floats = 0;  // workspace: packed filter unless constant, then per thread rows with repeated channels
  int64_t thread_floats = 0;
  int64_t inner_begin = 0, inner_end = 0;  // columns of the result whose windows lie inside the image
};

Status PrepareDepthwiseConv2D(Prepare& ctx) {
  const Tensor &x = ctx.in(0), &w = ctx.in(1);
  State* s = ctx.NewState<State>();
  if (!s) return ctx.status();
  Depthwise& d = s->d;
  if (Status st = ReadActivation(ctx, &s->bounds); st != Status::kOk) return st;
  if (x.rank != 4 || w.rank != 4)
    return ctx.Fail("rank of x and w: got %d and %d, expected 4 (NHWC, HWCM)", x.rank, w.rank);
  if (w.dtype != DType::kF32) return ctx.Fail("dtypes of the inputs differ: got %s, expected f32", NameOf(w.dtype));
  if (Status st = PrepareDepthwise(ctx, x.dims, w.dims, &d); st != Status::kOk) return st;
  const int64_t dims[4] = {x.dims[0], d.rows.output, d.columns.output, d.wide()};
  if (Status st = ctx.SetOutput(0, DType::kF32, 4, dims); st != Status::kOk) return st;
  if (ctx.Has(2) && (ctx.in(2).rank != 1 || ctx.in(2).dims[0] != d.wide() || ctx.in(2).dtype != DType::kF32))
    return ctx.Fail("length of the bias: got %lld, expected %lld", static_cast<long long>(ctx.in(2).size()),
                    static_cast<long long>(d.wide()));
  if (ctx.out(0).size() == 0) return Status::kOk;
  const WindowAxis& q = d.columns;
  s->inner_begin = std::min(q.output, (q.before + q.stride - 1) / q.stride);
  const int64_t room = q.input - q.reach() + q.before;
  s->inner_end = room < 0 ? s->inner_begin : std::max(s->inner_begin, std::min(q.output, room / q.stride + 1));
  if (Status st = AllocateZeros(ctx, d.columns.input * d.wide() + d.wide(), &d); st != Status::kOk) return st;
  s->packed_floats = Aligned(PackedFilterSize(d, d.taps(), d.wide()));
  if (w.constant) {
    float* packed = ctx.AllocateArray<float>(s->packed_floats);
    if (!packed) return ctx.status();
    PackDepthwiseFilter(d, w.as<float>(), d.taps(), d.wide(), d.wide(), 1, packed);
    s->packed = packed;
    s->packed_floats = 0;
  }
  if (d.multiplier > 1) s->thread_floats = Aligned(d.rows.kernel * d.columns.input * d.wide());
  ctx.NeedWorkspace(static_cast<size_t>(s->packed_floats + s->thread_floats * ctx.threads) * sizeof(float));
  return Status::kOk;
}

// One row of the result. line[r]: the image row under kernel row r, channels repeated.
void Row(const State& s, const float* const* line, DepthwisePixels& p, float* y) {
  const Depthwise& d = s.d;
  const WindowAxis& q = d.columns;
  const int64_t wide = d.wide();
  const float* tap[kMaxTaps];
  const auto one = [&](int64_t column) {
    for (int64_t r = 0, t = 0; r < d.rows.kernel; ++r)
      for (int64_t c = 0; c < q.kernel; ++c, ++t) {
        const int64_t at = q.at(column, c);
        tap[t] = at >= 0 && at < q.input ? line[r] + at * wide : d.zeros;
      }
    p.tap = tap;
    p.taps = d.taps();
    p.y = y + column * wide;
  };
  p.step = q.stride * wide;
  p.pixels = 1;
  for (int64_t column = 0; column < s.inner_begin; ++column) {
    one(column);
    d.kernels->pixels(p);
  }
  if (s.inner_end > s.inner_begin) {
    one(s.inner_begin);
    p.pixels = s.inner_end - s.inner_begin;
    if (q.kernel == 3 && q.dilation == 1 && q.stride <= 2) {
      for (int64_t r = 0; r < d.rows.kernel; ++r) tap[r] = tap[3 * r];
      p.taps = d.rows.kernel;
      p.step = wide;
      (q.stride == 1 ? d.kernels->three : d.kernels->three_strided)(p);
    } else {
      d.kernels->pixels(p);
    }
  }
  p.pixels = 1;
  for (int64_t column = s.inner_end; column < q.output; ++column) {
    one(column);
    d.kernels->pixels(p);
  }
}

Status RunDepthwiseConv2D(const Run& run) {
  const State& s = run.state<State>();
  const Depthwise& d = s.d;
  if (run.out(0).size() == 0) return Status::kOk;
  const float *x = run.in(0).as<float>(), *packed = s.packed;
  float *y = run.out(0).as<float>(), *workspace = static_cast<float*>(run.workspace);
  if (!packed) {
    PackDepthwiseFilter(d, run.in(1).as<float>(), d.taps(), d.wide(), d.wide(), 1, workspace);
    packed = workspace;
  }
  const int64_t line_out = d.columns.output * d.wide(), line_in = d.columns.input * d.channels;
  const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, line_out * d.taps()));
  run.ParallelFor(d.images * d.rows.output, grain, [&](int64_t begin, int64_t end, int thread) {
    DepthwisePixels p = {};
    p.channels = p.y_step = d.wide();
    p.w = packed;
    p.all_taps = d.taps();
    p.bias = run.Has(2) ? run.in(2).as<float>() : nullptr;
    p.clamp = s.bounds.clamp;
    p.low = s.bounds.low;
    p.high = s.bounds.high;
    const float* line[kMaxTaps];
    float* repeated = workspace + s.packed_floats + thread * s.thread_floats;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / d.rows.output, row = i % d.rows.output;
      for (int64_t r = 0; r < d.rows.kernel; ++r) {
        const int64_t at = d.rows.at(row, r);
        line[r] = at >= 0 && at < d.rows.input ? x + n * d.image_size() + at * line_in : d.zeros;
        if (d.multiplier > 1 && line[r] != d.zeros) {
          float* to = repeated + r * d.columns.input * d.wide();
          RepeatChannels(line[r], d.columns.input, d.channels, d.multiplier, to);
          line[r] = to;
        }
      }
      Row(s, line, p, y + i * line_out);
    }
  });
  return Status::kOk;
}

}  // namespace

const Kernel depthwise_conv2d_f32 = {PrepareDepthwiseConv2D, RunDepthwiseConv2D};

}  // namespace rillet
