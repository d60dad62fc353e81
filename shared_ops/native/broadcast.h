// NumPy's broadcasting for kernels: the shape of the result, the fewest axes that describe the walk over it, and the
// walk in rows along which each operand either advances by one or stands still.
#pragma once
#include <cstdint>

#include "kernel.h"

namespace rillet {

template <int N>
struct BroadcastPlan {
  int rank = 1;  // at least one axis; the last one is the row
  int64_t dims[kMaxRank] = {1};
  int64_t strides[N][kMaxRank] = {};  // in elements; 0 where the operand stands still
  int64_t size = 1;

  int64_t row() const { return dims[rank - 1]; }
  bool Varies(int operand) const { return strides[operand][rank - 1] != 0; }
};

// The shape that inputs [first, first + count) broadcast to, in dims[kMaxRank]; the rank in *rank.
Status BroadcastShape(Prepare& ctx, int first, int count, int* rank, int64_t* dims);

// Fills `plan` (arrays of BroadcastPlan<N>, N = count) for inputs [first, first + count) and a result of this shape.
// Returns the number of axes left, all elements in *size.
int PlanBroadcast(const Prepare& ctx, int first, int count, int rank, const int64_t* dims, int64_t* plan_dims,
                  int64_t (*strides)[kMaxRank], int64_t* size);

// Sets output 0 to the broadcast shape of all N inputs, with this dtype, and plans the walk.
template <int N>
Status PrepareBroadcast(Prepare& ctx, DType dtype, BroadcastPlan<N>* plan) {
  int rank = 0;
  int64_t dims[kMaxRank];
  if (Status s = BroadcastShape(ctx, 0, N, &rank, dims); s != Status::kOk) return s;
  if (Status s = ctx.SetOutput(0, dtype, rank, dims); s != Status::kOk) return s;
  plan->rank = PlanBroadcast(ctx, 0, N, rank, dims, plan->dims, plan->strides, &plan->size);
  return Status::kOk;
}

// Calls body(offset in the result, offsets of the operands, count) for each piece of a row in [begin, end) of the
// result.
template <int N, class Body>
void ForRows(const BroadcastPlan<N>& plan, int64_t begin, int64_t end, const Body& body) {
  const int last = plan.rank - 1;
  const int64_t row = plan.dims[last];
  int64_t index[kMaxRank] = {}, offsets[N] = {};
  int64_t rest = begin / row;
  for (int d = last - 1; d >= 0; --d) {
    index[d] = rest % plan.dims[d];
    rest /= plan.dims[d];
    for (int k = 0; k < N; ++k) offsets[k] += index[d] * plan.strides[k][d];
  }
  int64_t column = begin % row;
  for (int64_t at = begin; at < end; column = 0) {
    const int64_t count = end - at < row - column ? end - at : row - column;
    int64_t from[N];
    for (int k = 0; k < N; ++k) from[k] = offsets[k] + column * plan.strides[k][last];
    body(at, from, count);
    at += count;
    for (int d = last - 1; d >= 0; --d) {  // the next row
      for (int k = 0; k < N; ++k) offsets[k] += plan.strides[k][d];
      if (++index[d] < plan.dims[d]) break;
      for (int k = 0; k < N; ++k) offsets[k] -= plan.strides[k][d] * plan.dims[d];
      index[d] = 0;
    }
  }
}

}  // namespace rillet
