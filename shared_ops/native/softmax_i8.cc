// Softmax and LogSoftmax on int8: exponentials of (q - max) from a table of 256, summed in float32 in index order.
#include <cmath>

#include "requantize.h"

namespace rillet {
namespace {

struct State {
  int64_t outer, n, inner;  // x[outer][n][inner], softmax over n
  double scale;
  float table[256];
};

Status PrepareSoftmaxLike(Prepare& ctx, float out_scale, int32_t out_zero_point) {
  const Tensor& x = ctx.in(0);
  TensorQuant q, y;
  int64_t axis = ctx.Int("axis");
  if (ctx.status() != Status::kOk) return ctx.status();
  if (axis < -x.rank || axis >= x.rank)
    return ctx.Fail("axis: got %lld, expected -%d to %d", static_cast<long long>(axis), x.rank, x.rank - 1);
  if (axis < 0) axis += x.rank;
  if (Status s = ctx.SetOutputLike(0, x); s != Status::kOk) return s;
  if (Status s = ReadQuant(ctx, x, "input 0", &q); s != Status::kOk) return s;
  if (Status s = ReadQuant(ctx, ctx.out(0), "output 0", &y); s != Status::kOk) return s;
  if (y.scale != out_scale || y.zero_point != out_zero_point)
    return ctx.Fail("output parameters: got scale %g, zero point %d, expected scale %g, zero point %d",
                    static_cast<double>(y.scale), y.zero_point, static_cast<double>(out_scale), out_zero_point);
  auto* state = ctx.NewState<State>();
  if (!state) return Status::kOutOfMemory;
  state->outer = state->inner = 1;
  for (int d = 0; d < axis; ++d) state->outer *= x.dims[d];
  for (int d = static_cast<int>(axis) + 1; d < x.rank; ++d) state->inner *= x.dims[d];
  state->n = x.dims[axis];
  state->scale = static_cast<double>(q.scale);
  ExpTable(q.scale, state->table);
  return Status::kOk;
}

Status PrepareSoftmax(Prepare& ctx) { return PrepareSoftmaxLike(ctx, 1.0f / 256.0f, -128); }
Status PrepareLogSoftmax(Prepare& ctx) { return PrepareSoftmaxLike(ctx, 16.0f / 256.0f, 127); }

int8_t Saturate(double q) { return static_cast<int8_t>(q < kQMin ? kQMin : q > kQMax ? kQMax : q); }

// write(row's maximum, its sum of exponentials, x, out) for every row; elements lie `inner` apart.
template <class Write>
void ForRows(const Run& ctx, const State& s, const Write& write) {
  const int8_t* x = ctx.in(0).as<int8_t>();
  int8_t* out = ctx.out(0).as<int8_t>();
  if (s.n == 0) return;
  ctx.ParallelFor(s.outer * s.inner, 8, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t at = r / s.inner * s.n * s.inner + r % s.inner;
      const int8_t* row = x + at;
      int32_t largest = kQMin;
      for (int64_t i = 0; i < s.n; ++i) largest = row[i * s.inner] > largest ? row[i * s.inner] : largest;
      float sum = 0;
      for (int64_t i = 0; i < s.n; ++i) sum += s.table[largest - row[i * s.inner]];
      write(largest, sum, row, out + at);
    }
  });
}

Status RunSoftmax(const Run& ctx) {
  const auto& s = ctx.state<State>();
  ForRows(ctx, s, [&](int32_t largest, float sum, const int8_t* row, int8_t* out) {
    const float inverse = 256.0f / sum;
    for (int64_t i = 0; i < s.n; ++i) {
      const float p = s.table[largest - row[i * s.inner]] * inverse;
      out[i * s.inner] = Saturate(std::floor(static_cast<double>(p) + 0.5) - 128.0);
    }
  });
  return Status::kOk;
}

Status RunLogSoftmax(const Run& ctx) {
  const auto& s = ctx.state<State>();
  ForRows(ctx, s, [&](int32_t largest, float sum, const int8_t* row, int8_t* out) {
    const double log_sum = Log64(static_cast<double>(sum));
    for (int64_t i = 0; i < s.n; ++i) {
      const double p = (-s.scale * (largest - row[i * s.inner]) - log_sum) * 16.0;  // never positive
      out[i * s.inner] = Saturate(127.0 - std::floor(-p + 0.5));
    }
  });
  return Status::kOk;
}

}  // namespace

const Kernel softmax_i8 = {PrepareSoftmax, RunSoftmax};
const Kernel log_softmax_i8 = {PrepareLogSoftmax, RunLogSoftmax};

}  // namespace rillet
