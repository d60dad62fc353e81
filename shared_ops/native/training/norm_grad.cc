// Gradients of LayerNorm and RMSNorm in float32: dx by rows; then, with each row's statistics, dscale and doffset by
// columns.
#include "../norm.h"

namespace rillet {
namespace {

int64_t Padded(int64_t n) { return (n + 15) / 16 * 16; }

template <bool centre>
Status PrepareGrad(Prepare& ctx) {
  NormState* s = ctx.NewState<NormState>();
  if (!s) return ctx.status();
  if (PrepareNorm(ctx, centre, s) != Status::kOk) return ctx.status();
  const Tensor &x = ctx.in(0), &dy = ctx.in(2);
  if (dy.rank != x.rank || dy.size() != x.size()) return ctx.Fail("dy must have the shape of x");
  const int64_t floats = 2 * Padded(s->rows) + ReduceColumnsWorkspace(s->n);
  ctx.NeedWorkspace(static_cast<size_t>(floats) * sizeof(float));
  for (int i = 1; i < (centre ? 3 : 2); ++i)
    if (ctx.SetOutputLike(i, ctx.in(1)) != Status::kOk) return ctx.status();
  return ctx.SetOutputLike(0, x);
}

Status RunGrad(const Run& run) {
  const NormState& s = run.state<NormState>();
  const RowNorm norm{s.n, s.epsilon, s.centre, run.in(1).as<const float>(), nullptr};
  const float *x = run.in(0).as<const float>(), *dy = run.in(2).as<const float>();
  float *dx = run.out(0).as<float>(), *mean = static_cast<float*>(run.workspace);
  float *inv = mean + Padded(s.rows), *lanes = inv + Padded(s.rows);
  run.ParallelFor(s.rows, 1 + 8192 / (s.n + 1), [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r)
      s.loops->norm_row_grad(norm, x + r * s.n, dy + r * s.n, dx + r * s.n, mean + r, inv + r);
  });
  ReduceColumns(run, *s.loops, kColumnRowDot, {x, dy, mean, inv, s.rows, s.n}, lanes, run.out(1).as<float>());
  if (s.centre)
    ReduceColumns(run, *s.loops, kColumnSum, {dy, nullptr, nullptr, nullptr, s.rows, s.n}, lanes,
                  run.out(2).as<float>());
  return Status::kOk;
}

}  // namespace

const Kernel layer_norm_grad_f32 = {PrepareGrad<true>, RunGrad};
const Kernel rms_norm_grad_f32 = {PrepareGrad<false>, RunGrad};

}  // namespace rillet
