// BatchNormTraining and its gradient in float32: x is [rows, channels]. Mean, then variance around it (two passes: one
// pass cancels where the mean is large), then y. The statistics are spread over threads by channels and lanes, y by
// rows.
#include "nn_f32.h"

namespace rillet {
namespace {

struct State {
  const NnF32* loops;
  int64_t rows, channels, padded;
  float epsilon, share;  // of the new statistics in the moving ones
};

Status PrepareRows(Prepare& ctx, int first_vector, int last_vector, State** state) {
  State* s = *state = ctx.NewState<State>();
  if (!s) return ctx.status();
  const Tensor& x = ctx.in(0);
  if (x.rank < 2) return ctx.Fail("rank of x: got %d, expected 2 or more, channels last", x.rank);
  s->loops = &CurrentNnF32();
  s->channels = x.dims[x.rank - 1];
  s->rows = s->channels ? x.size() / s->channels : 0;
  s->padded = (s->channels + 15) / 16 * 16;
  for (int i = first_vector; i <= last_vector; ++i)
    if (ctx.in(i).dtype != DType::kF32 || ctx.in(i).rank != 1 || ctx.in(i).dims[0] != s->channels)
      return ctx.Fail("input %d: expected f32[%lld], one element a channel", i, static_cast<long long>(s->channels));
  const int64_t floats = 5 * s->padded + ReduceColumnsWorkspace(s->channels);
  ctx.NeedWorkspace(static_cast<size_t>(floats) * sizeof(float));
  for (int i = 1; i < 3; ++i)
    if (ctx.SetOutput(i, DType::kF32, 1, &s->channels) != Status::kOk) return ctx.status();
  return ctx.SetOutputLike(0, x);
}

Status PrepareTraining(Prepare& ctx) {
  State* s = nullptr;
  if (PrepareRows(ctx, 1, 4, &s) != Status::kOk) return ctx.status();
  for (int i = 3; i < 5; ++i)
    if (ctx.NeedVariable(i) != Status::kOk) return ctx.status();
  s->epsilon = ctx.Float("epsilon");
  s->share = static_cast<float>(1 - ctx.Double("momentum"));
  return ctx.status();
}

int64_t RowGrain(const State& s) { return 1 + 16384 / (s.channels + 1); }

Status RunTraining(const Run& run) {
  const State& s = run.state<State>();
  const float *x = run.in(0).as<const float>(), *scale = run.in(1).as<const float>();
  float *moving_mean = run.in(3).as<float>(), *moving_variance = run.in(4).as<float>();
  float *y = run.out(0).as<float>(), *batch_mean = run.out(1).as<float>(), *batch_inv = run.out(2).as<float>();
  float *mean = static_cast<float*>(run.workspace), *variance = mean + s.padded, *slope = variance + s.padded;
  float* lanes = slope + s.padded;
  const float n = static_cast<float>(s.rows);
  const float unbias =
      static_cast<float>(static_cast<double>(s.rows) / static_cast<double>(s.rows > 1 ? s.rows - 1 : 1));

  ReduceColumns(run, *s.loops, kColumnSum, {x, nullptr, nullptr, nullptr, s.rows, s.channels}, lanes, mean);
  for (int64_t c = 0; c < s.channels; ++c) mean[c] /= n;
  ReduceColumns(run, *s.loops, kColumnSquaredDifference, {x, nullptr, mean, nullptr, s.rows, s.channels}, lanes,
                variance);
  for (int64_t c = 0; c < s.channels; ++c) {
    variance[c] /= n;
    batch_mean[c] = mean[c];
    batch_inv[c] = 1.0f / __builtin_sqrtf(variance[c] + s.epsilon);
    slope[c] = scale[c] * batch_inv[c];
    moving_mean[c] += (mean[c] - moving_mean[c]) * s.share;
    moving_variance[c] += (variance[c] * unbias - moving_variance[c]) * s.share;
  }
  const ColumnAffine affine{mean, slope, run.in(2).as<const float>(), s.channels};
  run.ParallelFor(s.rows, RowGrain(s), [&](int64_t begin, int64_t end, int) {
    s.loops->column_affine(affine, x + begin * s.channels, end - begin, y + begin * s.channels);
  });
  return Status::kOk;
}

Status PrepareGrad(Prepare& ctx) {
  State* s = nullptr;
  if (PrepareRows(ctx, 1, 3, &s) != Status::kOk) return ctx.status();
  if (ctx.in(4).rank != ctx.in(0).rank || ctx.in(4).size() != ctx.in(0).size() || ctx.in(4).dtype != DType::kF32)
    return ctx.Fail("dy must have the shape of x");
  for (int i = 5; i < 7; ++i)
    if (ctx.Has(i) && (ctx.in(i).dtype != DType::kF32 || ctx.in(i).size() != s->channels))
      return ctx.Fail("input %d: expected f32, one element a channel", i);
  return Status::kOk;
}

Status RunGrad(const Run& run) {
  const State& s = run.state<State>();
  const float *x = run.in(0).as<const float>(), *scale = run.in(1).as<const float>(), *dy = run.in(4).as<const float>();
  const float* dmean = run.Has(5) ? run.in(5).as<const float>() : nullptr;
  const float* dinv = run.Has(6) ? run.in(6).as<const float>() : nullptr;
  float *dx = run.out(0).as<float>(), *dscale = run.out(1).as<float>(), *doffset = run.out(2).as<float>();
  float *mean = static_cast<float*>(run.workspace),
        *inv = mean + s.padded;  // padded copies, as the loops read whole vectors
  float *slope = inv + s.padded, *along = slope + s.padded, *shift = along + s.padded, *lanes = shift + s.padded;
  std::memcpy(mean, run.in(2).data, run.in(2).bytes());
  std::memcpy(inv, run.in(3).data, run.in(3).bytes());

  ReduceColumns(run, *s.loops, kColumnStandardizedDot, {x, dy, mean, inv, s.rows, s.channels}, lanes, dscale);
  ReduceColumns(run, *s.loops, kColumnSum, {dy, nullptr, nullptr, nullptr, s.rows, s.channels}, lanes, doffset);
  const float n = static_cast<float>(s.rows);
  for (int64_t c = 0; c < s.channels; ++c) {
    slope[c] = scale[c] * inv[c];
    along[c] = (slope[c] * dscale[c] + (dinv ? dinv[c] * inv[c] * inv[c] : 0.0f)) / n;
    shift[c] = (slope[c] * doffset[c] - (dmean ? dmean[c] : 0.0f)) / n;
  }
  const ColumnGrad grad{mean, inv, slope, along, shift, s.channels};
  run.ParallelFor(s.rows, RowGrain(s), [&](int64_t begin, int64_t end, int) {
    const int64_t at = begin * s.channels;
    s.loops->column_grad(grad, x + at, dy + at, end - begin, dx + at);
  });
  return Status::kOk;
}

}  // namespace

const Kernel batch_norm_training_f32 = {PrepareTraining, RunTraining};
const Kernel batch_norm_training_grad_f32 = {PrepareGrad, RunGrad};

}  // namespace rillet
