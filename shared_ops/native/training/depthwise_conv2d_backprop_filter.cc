// DepthwiseConv2DBackpropFilter(x, filter_shape, dy): every tap of a channel is a chain over batch, rows and columns of
// dy, in chunks of 8192 pixels. Vectorises over channels, split over threads by channel; up to nine chains run side by
// side.
#include <algorithm>

#include "../depthwise_f32.h"
#include "../image_strip.h"

namespace rillet {
namespace {

constexpr int64_t kChunk = 8192;  // pixels of a chain

struct State {
  Depthwise d;
  int64_t inner_begin = 0, inner_end = 0;  // columns whose windows lie inside the image
  int64_t chunk_floats = 0,
          thread_floats = 0;  // workspace: sums of a later chunk, per thread rows with repeated channels
};

Status PrepareBackpropFilter(Prepare& ctx) {
  int64_t filter[4];
  if (Status s = ReadShape4(ctx, 1, filter); s != Status::kOk) return s;
  const Tensor &x = ctx.in(0), &dy = ctx.in(2);
  if (dy.dtype != DType::kF32) return ctx.Fail("dtypes of the inputs differ: got %s, expected f32", NameOf(dy.dtype));
  if (x.rank != 4 || dy.rank != 4) return ctx.Fail("rank of x and dy: got %d and %d, expected 4", x.rank, dy.rank);
  State* s = ctx.NewState<State>();
  if (!s) return ctx.status();
  Depthwise& d = s->d;
  if (Status st = PrepareDepthwise(ctx, x.dims, filter, &d); st != Status::kOk) return st;
  const int64_t want[4] = {x.dims[0], d.rows.output, d.columns.output, d.wide()};
  for (int i = 0; i < 4; ++i)
    if (dy.dims[i] != want[i])
      return ctx.Fail("dy does not fit: dimension %d: got %lld, expected %lld", i, static_cast<long long>(dy.dims[i]),
                      static_cast<long long>(want[i]));
  if (Status st = ctx.SetOutput(0, DType::kF32, 4, filter); st != Status::kOk) return st;
  if (ctx.out(0).size() == 0) return Status::kOk;
  const WindowAxis& q = d.columns;
  s->inner_begin = std::min(q.output, (q.before + q.stride - 1) / q.stride);
  const int64_t room = q.input - q.reach() + q.before;
  s->inner_end = room < 0 ? s->inner_begin : std::max(s->inner_begin, std::min(q.output, room / q.stride + 1));
  if (Status st = AllocateZeros(ctx, (q.input + 1) * d.wide(), &d); st != Status::kOk) return st;
  s->chunk_floats = Aligned(d.taps() * d.wide());
  if (d.multiplier > 1) s->thread_floats = Aligned(d.rows.kernel * q.input * d.wide());
  ctx.NeedWorkspace(static_cast<size_t>(s->chunk_floats + s->thread_floats * ctx.threads) * sizeof(float));
  return Status::kOk;
}

// The walk of one range of channels over all pixels of dy.
class Walk {
 public:
  Walk(const State& s, float* dw, float* chunk, int64_t begin, int64_t end) : s_(s), dw_(dw), chunk_(chunk) {
    f_.begin = begin;
    f_.end = end;
    f_.acc_step = f_.dy_step = s.d.wide();
    f_.taps = s.d.taps();
    f_.step = s.d.columns.stride * s.d.wide();
    f_.tap = tap_;
  }

  // One row of dy; line[r] is the image row under kernel row r.
  void Row(const float* const* line, const float* dy) {
    for (int64_t c = 0; c < s_.inner_begin; ++c) Columns(line, dy, c, c + 1);
    Columns(line, dy, s_.inner_begin, s_.inner_end);
    for (int64_t c = s_.inner_end; c < s_.d.columns.output; ++c) Columns(line, dy, c, c + 1);
  }

  void End() {
    if (done_ > kChunk) AddChunk();
  }

 private:
  // Columns [begin, end) whose taps all lie inside, or one column; cut where a chunk ends.
  void Columns(const float* const* line, const float* dy, int64_t begin, int64_t end) {
    const Depthwise& d = s_.d;
    while (begin < end) {
      const int64_t n = std::min(end - begin, kChunk - done_ % kChunk);
      for (int64_t r = 0, t = 0; r < d.rows.kernel; ++r)
        for (int64_t c = 0; c < d.columns.kernel; ++c, ++t) {
          const int64_t at = d.columns.at(begin, c);
          const bool inside = line[r] != d.zeros && at >= 0 && at < d.columns.input;
          tap_[t] = inside ? line[r] + at * d.wide() : d.zeros;
        }
      const bool first = done_ % kChunk == 0;
      if (first && done_ > kChunk) AddChunk();
      f_.acc = done_ < kChunk ? dw_ : chunk_;
      f_.resume = !first;
      f_.dy = dy + begin * d.wide();
      f_.pixels = n;
      d.kernels->filter(f_);
      done_ += n;
      begin += n;
    }
  }

  void AddChunk() {
    for (int64_t t = 0; t < f_.taps; ++t)
      for (int64_t c = f_.begin; c < f_.end; ++c) dw_[t * f_.acc_step + c] += chunk_[t * f_.acc_step + c];
  }

  const State& s_;
  float *dw_, *chunk_;
  int64_t done_ = 0;  // pixels
  DepthwiseFilter f_ = {};
  const float* tap_[kMaxTaps];
};

Status RunBackpropFilter(const Run& run) {
  const State& s = run.state<State>();
  const Depthwise& d = s.d;
  if (run.out(0).size() == 0) return Status::kOk;
  const float *x = run.in(0).as<float>(), *dy = run.in(2).as<float>();
  float *dw = run.out(0).as<float>(), *workspace = static_cast<float*>(run.workspace);
  if (run.in(2).size() == 0) {
    memset(dw, 0, run.out(0).bytes());
    return Status::kOk;
  }
  const int64_t line_in = d.columns.input * d.channels, line_out = d.columns.output * d.wide();
  constexpr int64_t kPart = 16;  // channels: no thread works on part of a vector
  run.ParallelFor((d.wide() + kPart - 1) / kPart, 1, [&](int64_t begin, int64_t end, int thread) {
    Walk walk(s, dw, workspace, begin * kPart, std::min(end * kPart, d.wide()));
    const float* line[kMaxTaps];
    float* repeated = workspace + s.chunk_floats + thread * s.thread_floats;
    for (int64_t i = 0; i < d.images * d.rows.output; ++i) {
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
      walk.Row(line, dy + i * line_out);
    }
    walk.End();
  });
  return Status::kOk;
}

}  // namespace

const Kernel depthwise_conv2d_backprop_filter_f32 = {PrepareBackpropFilter, RunBackpropFilter};

}  // namespace rillet
