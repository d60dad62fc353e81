#include "reduce_plan.h"

namespace rillet {

void PlanReduction(const Tensor& x, const bool* mask, ReducePlan* plan) {
  int64_t stride = 1, last_kept = 1;
  int last = -1;  // what the axis behind was: 1 reduced, 0 kept; axes of size 1 are either
  int64_t dims[kMaxRank], strides[kMaxRank];
  bool reduced[kMaxRank];
  int count = 0;
  for (int a = x.rank - 1; a >= 0; --a) {
    if (x.dims[a] != 1) {
      if (last == static_cast<int>(mask[a])) {
        dims[count - 1] *= x.dims[a];
      } else {
        dims[count] = x.dims[a];
        strides[count] = stride;
        reduced[count++] = mask[a];
        last = mask[a];
      }
    }
    stride *= x.dims[a];
  }
  for (int i = count - 1; i >= 0; --i) {  // from the outermost on
    if (reduced[i]) {
      plan->count *= dims[i];
      plan->reduced_dims[plan->reduced] = dims[i];
      plan->reduced_strides[plan->reduced++] = strides[i];
    } else {
      plan->outputs *= dims[i];
      last_kept = dims[i];
      plan->kept_dims[plan->kept] = dims[i];
      plan->kept_strides[plan->kept++] = strides[i];
    }
  }
  if (plan->reduced == 0 || (plan->reduced == 1 && plan->reduced_strides[0] == 1)) {
    plan->layout = ReducePlan::Layout::kRows;
  } else if (plan->reduced == 1) {
    plan->layout = ReducePlan::Layout::kColumns;
    plan->columns = last_kept;
  } else {
    plan->layout = ReducePlan::Layout::kScattered;
  }
}

Status ReadReducedAxes(Prepare& ctx, bool* mask) {
  const int rank = ctx.in(0).rank;
  bool all = true;
  for (const Attr& a : ctx.attrs)
    if (a.name == "axes") all = a.kind == AttrKind::kNone;
  const Span<int64_t> axes = ctx.Ints("axes");
  if (ctx.status() != Status::kOk) return ctx.status();
  for (int a = 0; a < rank; ++a) mask[a] = all;
  for (const int64_t axis : axes) {
    const int64_t a = axis < 0 ? axis + rank : axis;
    if (a < 0 || a >= rank)
      return ctx.Fail("axis out of range: got %lld, expected below %d", static_cast<long long>(axis), rank);
    if (mask[a]) return ctx.Fail("axis %lld is named twice", static_cast<long long>(axis));
    mask[a] = true;
  }
  return Status::kOk;
}

Status PrepareReduction(Prepare& ctx, int out, DType dtype, ReducePlan* plan) {
  const Tensor& x = ctx.in(0);
  bool mask[kMaxRank] = {};
  const bool keepdims = ctx.Bool("keepdims");
  if (ReadReducedAxes(ctx, mask) != Status::kOk) return ctx.status();
  int64_t dims[kMaxRank];
  int rank = 0;
  for (int a = 0; a < x.rank; ++a)
    if (keepdims || !mask[a]) dims[rank++] = mask[a] ? 1 : x.dims[a];
  PlanReduction(x, mask, plan);
  return ctx.SetOutput(out, dtype, rank, dims);
}

}  // namespace rillet
