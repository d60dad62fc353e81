// LayerNorm, RMSNorm and L2Normalize in float32, one row at a time; BatchNorm, one channel at a time.
#include "norm.h"

#include "nn_f32.h"

namespace rillet {

Status PrepareNorm(Prepare& ctx, bool centre, NormState* s) {
  const Tensor &x = ctx.in(0), &scale = ctx.in(1);
  int64_t axis = ctx.Int("axis");
  s->epsilon = ctx.Float("epsilon");
  s->centre = centre;
  s->loops = &CurrentNnF32();
  if (ctx.status() != Status::kOk) return ctx.status();
  if (axis < 0) axis += x.rank;
  if (axis < 0 || axis >= x.rank) return ctx.Fail("axis out of range for rank %d", x.rank);
  s->rows = s->n = 1;
  for (int a = 0; a < x.rank; ++a) (a < axis ? s->rows : s->n) *= x.dims[a];
  for (int64_t i = 1; i < ctx.inputs.size; ++i)
    if (ctx.Has(static_cast<int>(i)) && ctx.inputs[i].dtype != DType::kF32) return ctx.Fail("all inputs must be f32");
  if (scale.rank != x.rank - axis)
    return ctx.Fail("rank of scale: got %d, expected %d", scale.rank, static_cast<int>(x.rank - axis));
  for (int a = 0; a < scale.rank; ++a)
    if (scale.dims[a] != x.dims[axis + a]) return ctx.Fail("x and scale: normalised dimension %d differs", a);
  return Status::kOk;
}

namespace {

template <bool centre>
Status PrepareRows(Prepare& ctx) {
  NormState* s = ctx.NewState<NormState>();
  if (!s) return ctx.status();
  if (PrepareNorm(ctx, centre, s) != Status::kOk) return ctx.status();
  if (ctx.Has(2) && ctx.in(2).size() != s->n) return ctx.Fail("offset must have the shape of scale");
  return ctx.SetOutputLike(0, ctx.in(0));
}

Status RunRows(const Run& run) {
  const NormState& s = run.state<NormState>();
  const RowNorm norm{s.n, s.epsilon, s.centre, run.in(1).as<const float>(),
                     run.Has(2) ? run.in(2).as<const float>() : nullptr};
  const float* x = run.in(0).as<const float>();
  float* y = run.out(0).as<float>();
  run.ParallelFor(s.rows, 1 + 8192 / (s.n + 1), [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) s.loops->norm_row(norm, x + r * s.n, y + r * s.n);
  });
  return Status::kOk;
}

struct L2State {
  const NnF32* loops;
  int64_t outer, n, inner;
  float epsilon;
};

Status PrepareL2(Prepare& ctx) {
  L2State* s = ctx.NewState<L2State>();
  if (!s) return ctx.status();
  const Tensor& x = ctx.in(0);
  int64_t axis = ctx.Int("axis");
  s->epsilon = ctx.Float("epsilon");
  s->loops = &CurrentNnF32();
  if (ctx.status() != Status::kOk) return ctx.status();
  if (axis < 0) axis += x.rank;
  if (axis < 0 || axis >= x.rank) return ctx.Fail("axis out of range for rank %d", x.rank);
  s->outer = s->inner = 1;
  s->n = x.dims[axis];
  for (int a = 0; a < x.rank; ++a)
    if (a != axis) (a < axis ? s->outer : s->inner) *= x.dims[a];
  if (s->inner > 1) ctx.NeedWorkspace(static_cast<size_t>(s->n * ctx.threads) * sizeof(float));
  return ctx.SetOutputLike(0, x);
}

Status RunL2(const Run& run) {
  const L2State& s = run.state<L2State>();
  const float* x = run.in(0).as<const float>();
  float* y = run.out(0).as<float>();
  run.ParallelFor(s.outer * s.inner, 1 + 8192 / (s.n + 1), [&](int64_t begin, int64_t end, int thread) {
    float* gathered = s.inner > 1 ? static_cast<float*>(run.workspace) + thread * s.n : nullptr;
    for (int64_t i = begin; i < end; ++i) {
      if (s.inner == 1) {
        s.loops->l2_normalize(x + i * s.n, s.n, s.epsilon, y + i * s.n);
        continue;
      }
      const int64_t at = i / s.inner * s.n * s.inner + i % s.inner;
      for (int64_t k = 0; k < s.n; ++k) gathered[k] = x[at + k * s.inner];
      s.loops->l2_normalize(gathered, s.n, s.epsilon, gathered);
      for (int64_t k = 0; k < s.n; ++k) y[at + k * s.inner] = gathered[k];
    }
  });
  return Status::kOk;
}

struct BatchNormState {
  const NnF32* loops;
  int64_t rows, channels;
  float epsilon;
};

Status PrepareBatchNorm(Prepare& ctx) {
  BatchNormState* s = ctx.NewState<BatchNormState>();
  if (!s) return ctx.status();
  const Tensor& x = ctx.in(0);
  s->epsilon = ctx.Float("epsilon");
  s->loops = &CurrentNnF32();
  if (ctx.status() != Status::kOk) return ctx.status();
  if (x.rank < 1) return ctx.Fail("rank of x: got 0, expected 1 or more, channels last");
  s->channels = x.dims[x.rank - 1];
  s->rows = s->channels ? x.size() / s->channels : 0;
  for (int i = 1; i < 5; ++i)
    if (ctx.in(i).dtype != DType::kF32 || ctx.in(i).rank != 1 || ctx.in(i).dims[0] != s->channels)
      return ctx.Fail("input %d: expected f32[%lld], one element a channel", i, static_cast<long long>(s->channels));
  ctx.NeedWorkspace(static_cast<size_t>(s->channels) * sizeof(float));
  return ctx.SetOutputLike(0, x);
}

Status RunBatchNorm(const Run& run) {
  const BatchNormState& s = run.state<BatchNormState>();
  const float *scale = run.in(1).as<const float>(), *variance = run.in(4).as<const float>();
  float* slope = static_cast<float*>(run.workspace);
  for (int64_t c = 0; c < s.channels; ++c) slope[c] = scale[c] / __builtin_sqrtf(variance[c] + s.epsilon);
  const ColumnAffine affine{run.in(3).as<const float>(), slope, run.in(2).as<const float>(), s.channels};
  const float* x = run.in(0).as<const float>();
  float* y = run.out(0).as<float>();
  run.ParallelFor(s.rows, 1 + 16384 / (s.channels + 1), [&](int64_t begin, int64_t end, int) {
    s.loops->column_affine(affine, x + begin * s.channels, end - begin, y + begin * s.channels);
  });
  return Status::kOk;
}

}  // namespace

const Kernel layer_norm_f32 = {PrepareRows<true>, RunRows};
const Kernel rms_norm_f32 = {PrepareRows<false>, RunRows};
const Kernel l2_normalize_f32 = {PrepareL2, RunL2};
const Kernel batch_norm_f32 = {PrepareBatchNorm, RunBatchNorm};

}  // namespace rillet
