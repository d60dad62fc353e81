// BiasAddGrad: sums over all rows, channel by channel. Row i goes to lane i mod 16, in increasing i; then the lanes are
// added pairwise. Vectorises over channels.
#include <algorithm>

#include "kernel.h"

namespace rillet {
namespace {

constexpr int kLanes = 16;

struct State {
  int64_t rows = 0, channels = 0;
};

Status PrepareBiasAddGrad(Prepare& ctx) {
  const Tensor& dy = ctx.in(0);
  if (dy.rank < 1) return ctx.Fail("rank of dy: got 0, expected at least 1");
  State* s = ctx.NewState<State>();
  if (!s) return ctx.status();
  s->channels = dy.dims[dy.rank - 1];
  s->rows = 1;
  for (int i = 0; i + 1 < dy.rank; ++i) s->rows *= dy.dims[i];
  ctx.NeedWorkspace(static_cast<size_t>(s->channels) * kLanes * sizeof(float));
  return ctx.SetOutput(0, DType::kF32, 1, &s->channels);
}

// Channels [begin, end): lanes is [16][channels].
void Sum(const State& s, const float* dy, float* lanes, float* out, int64_t begin, int64_t end) {
  for (int l = 0; l < kLanes; ++l)
    for (int64_t c = begin; c < end; ++c) lanes[l * s.channels + c] = 0.0f;
  for (int64_t i = 0; i < s.rows; ++i) {
    float* lane = lanes + i % kLanes * s.channels;
    const float* row = dy + i * s.channels;
    for (int64_t c = begin; c < end; ++c) lane[c] += row[c];
  }
  for (int half = kLanes / 2; half >= 1; half /= 2)
    for (int l = 0; l < half; ++l)
      for (int64_t c = begin; c < end; ++c) lanes[l * s.channels + c] += lanes[(l + half) * s.channels + c];
  for (int64_t c = begin; c < end; ++c) out[c] = lanes[c];
}

Status RunBiasAddGrad(const Run& run) {
  const State& s = run.state<State>();
  const float* dy = run.in(0).as<float>();
  float *lanes = static_cast<float*>(run.workspace), *out = run.out(0).as<float>();
  const int64_t grain = std::max<int64_t>(16, 32768 / std::max<int64_t>(1, s.rows));
  run.ParallelFor(s.channels, grain, [&](int64_t begin, int64_t end, int) { Sum(s, dy, lanes, out, begin, end); });
  return Status::kOk;
}

}  // namespace

const Kernel bias_add_grad_f32 = {PrepareBiasAddGrad, RunBiasAddGrad};

}  // namespace rillet
