// The gradient of Prod in float32: dy times the product of all other factors, from both ends, so that zeros are right.
#include "../reduce_plan.h"

namespace rillet {
namespace {

Status PrepareProdGrad(Prepare& ctx) {
  ReducePlan* plan = ctx.NewState<ReducePlan>();
  if (!plan) return ctx.status();
  const Tensor &x = ctx.in(0), &dy = ctx.in(1);
  bool mask[kMaxRank] = {};
  if (ReadReducedAxes(ctx, mask) != Status::kOk) return ctx.status();
  if (dy.dtype != DType::kF32 || dy.rank != x.rank) return ctx.Fail("rank of dy: got %d, expected %d", dy.rank, x.rank);
  for (int a = 0; a < x.rank; ++a)
    if (dy.dims[a] != (mask[a] ? 1 : x.dims[a])) return ctx.Fail("dy: dimension %d is not that of the product", a);
  PlanReduction(x, mask, plan);
  return ctx.SetOutputLike(0, x);
}

Status RunProdGrad(const Run& run) {
  const ReducePlan& p = run.state<ReducePlan>();
  const float *x = run.in(0).as<const float>(), *dy = run.in(1).as<const float>();
  float* dx = run.out(0).as<float>();
  if (p.outputs == 0 || p.count == 0) return Status::kOk;
  run.ParallelFor(p.outputs, 1 + 4096 / p.count, [&](int64_t begin, int64_t end, int) {
    for (int64_t o = begin; o < end; ++o) {
      const int64_t start = p.Start(o);
      float before = 1.0f, after = 1.0f;
      p.ForEach([&](int64_t at) {
        dx[start + at] = before;
        before *= x[start + at];
      });
      p.ForEachBackwards([&](int64_t at) {
        dx[start + at] = dx[start + at] * after * dy[o];
        after *= x[start + at];
      });
    }
  });
  return Status::kOk;
}

}  // namespace

const Kernel prod_grad_f32 = {PrepareProdGrad, RunProdGrad};

}  // namespace rillet
