// DepthwiseConv2DBackpropInput(input_shape, w, dy). A pixel's taps are those whose window lands on a row and column of
// dy; with stride 1 and three columns the forward loop serves, its filter reversed. Channels of a multiplier are split
// into planes first, so that every loop runs over adjacent channels.
#include <algorithm>

#include "../depthwise_f32.h"
#include "../image_strip.h"

namespace rillet {
namespace {

struct State {
  Depthwise d;
  int64_t packed_floats = 0, thread_floats = 0;  // workspace: packed filter, then per thread rows of dy in planes
  int64_t inner_begin = 0, inner_end = 0;        // columns that the loop over three columns does
};

Status PrepareBackpropInput(Prepare& ctx) {
  int64_t image[4];
  if (Status s = ReadShape4(ctx, 0, image); s != Status::kOk) return s;
  const Tensor &w = ctx.in(1), &dy = ctx.in(2);
  if (w.dtype != DType::kF32 || dy.dtype != DType::kF32) return ctx.Fail("dtype of w and dy: expected f32");
  if (w.rank != 4 || dy.rank != 4) return ctx.Fail("rank of w and dy: got %d and %d, expected 4", w.rank, dy.rank);
  State* s = ctx.NewState<State>();
  if (!s) return ctx.status();
  Depthwise& d = s->d;
  if (Status st = PrepareDepthwise(ctx, image, w.dims, &d); st != Status::kOk) return st;
  const int64_t want[4] = {image[0], d.rows.output, d.columns.output, d.wide()};
  for (int i = 0; i < 4; ++i)
    if (dy.dims[i] != want[i])
      return ctx.Fail("dy does not fit: dimension %d: got %lld, expected %lld", i, static_cast<long long>(dy.dims[i]),
                      static_cast<long long>(want[i]));
  if (Status st = ctx.SetOutput(0, DType::kF32, 4, image); st != Status::kOk) return st;
  if (ctx.out(0).size() == 0) return Status::kOk;
  const WindowAxis& c = d.columns;
  if (c.kernel == 3 && c.dilation == 1 && c.stride == 1 && d.multiplier == 1) {
    s->inner_begin = std::min(c.input, std::max<int64_t>(0, 2 - c.before));
    s->inner_end = std::max(s->inner_begin, std::min(c.input, c.output - c.before));
  }
  if (Status st = AllocateZeros(ctx, (c.output + 1) * d.channels, &d); st != Status::kOk) return st;
  s->packed_floats = Aligned(PackedFilterSize(d, d.taps() * d.multiplier, d.channels));
  if (d.multiplier > 1) s->thread_floats = Aligned(d.rows.kernel * c.output * d.wide());
  ctx.NeedWorkspace(static_cast<size_t>(s->packed_floats + s->thread_floats * ctx.threads) * sizeof(float));
  return Status::kOk;
}

// packed[c / lanes][(t, m)][c % lanes] = w[t][c][m].
void PackFilter(const Depthwise& d, const float* w, float* packed) {
  const int64_t lanes = d.kernels->lanes;
  for (int64_t c = 0; c < d.channels; c += lanes)
    for (int64_t t = 0; t < d.taps(); ++t)
      for (int64_t m = 0; m < d.multiplier; ++m)
        for (int64_t j = 0; j < lanes; ++j)
          *packed++ = c + j < d.channels ? w[(t * d.channels + c + j) * d.multiplier + m] : 0.0f;
}

// [pixels][channels][multiplier] -> [multiplier][pixels][channels].
void SplitPlanes(const Depthwise& d, const float* from, float* to) {
  const int64_t n = d.columns.output * d.channels;
  for (int64_t m = 0; m < d.multiplier; ++m)
    for (int64_t i = 0; i < n; ++i) *to++ = from[i * d.multiplier + m];
}

// One pixel by its own list of taps. line[r]: planes of the row of dy under kernel row r, or null.
void Pixel(const State& s, const float* const* line, int64_t column, DepthwisePixels& p, float* dx) {
  const Depthwise& d = s.d;
  const WindowAxis& c = d.columns;
  const float* tap[kMaxTaps];
  int32_t index[kMaxTaps];
  int64_t n = 0;
  for (int64_t r = 0; r < d.rows.kernel; ++r)
    for (int64_t t = 0; line[r] && t < c.kernel; ++t) {
      const int64_t at = column + c.before - t * c.dilation;
      if (at < 0 || at % c.stride || at / c.stride >= c.output) continue;
      for (int64_t m = 0; m < d.multiplier; ++m) {
        index[n] = static_cast<int32_t>((r * c.kernel + t) * d.multiplier + m);
        tap[n++] = line[r] + (m * c.output + at / c.stride) * d.channels;
      }
    }
  p.tap = tap;
  p.index = index;
  p.taps = n;
  p.pixels = 1;
  p.y = dx + column * d.channels;
  d.kernels->pixels(p);
}

// The columns whose three taps all lie in dy, side by side.
void Inner(const State& s, const float* const* line, DepthwisePixels& p, float* dx) {
  const Depthwise& d = s.d;
  const float* tap[kMaxTaps];
  for (int64_t r = 0; r < d.rows.kernel; ++r)
    tap[r] = line[r] ? line[r] + (s.inner_begin + d.columns.before - 2) * d.channels : d.zeros;
  p.tap = tap;
  p.taps = d.rows.kernel;
  p.step = d.channels;
  p.pixels = s.inner_end - s.inner_begin;
  p.y = dx + s.inner_begin * d.channels;
  d.kernels->three_reversed(p);
}

Status RunBackpropInput(const Run& run) {
  const State& s = run.state<State>();
  const Depthwise& d = s.d;
  if (run.out(0).size() == 0) return Status::kOk;
  const float* dy = run.in(2).as<float>();
  float *dx = run.out(0).as<float>(), *workspace = static_cast<float*>(run.workspace);
  PackFilter(d, run.in(1).as<float>(), workspace);
  const int64_t line_in = d.columns.input * d.channels, line_out = d.columns.output * d.wide();
  const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, line_in * d.taps()));
  run.ParallelFor(d.images * d.rows.input, grain, [&](int64_t begin, int64_t end, int thread) {
    DepthwisePixels p = {};
    p.channels = p.y_step = d.channels;
    p.w = workspace;
    p.all_taps = d.taps() * d.multiplier;
    const float* line[kMaxTaps];
    float* planes = workspace + s.packed_floats + thread * s.thread_floats;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / d.rows.input, row = i % d.rows.input;
      for (int64_t r = 0; r < d.rows.kernel; ++r) {
        const int64_t at = row + d.rows.before - r * d.rows.dilation;
        const bool lands = at >= 0 && at % d.rows.stride == 0 && at / d.rows.stride < d.rows.output;
        line[r] = lands ? dy + n * d.result_size() + at / d.rows.stride * line_out : nullptr;
        if (lands && d.multiplier > 1) {
          SplitPlanes(d, line[r], planes + r * line_out);
          line[r] = planes + r * line_out;
        }
      }
      float* to = dx + i * line_in;
      for (int64_t c = 0; c < s.inner_begin; ++c) Pixel(s, line, c, p, to);
      if (s.inner_end > s.inner_begin) Inner(s, line, p, to);
      for (int64_t c = s.inner_end; c < d.columns.input; ++c) Pixel(s, line, c, p, to);
    }
  });
  return Status::kOk;
}

}  // namespace

const Kernel depthwise_conv2d_backprop_input_f32 = {PrepareBackpropInput, RunBackpropInput};

}  // namespace rillet
