// BatchMatMul: a product for each matrix of the broadcast batch.
#include <algorithm>

#include "gemm_f32.h"

namespace rillet {
namespace {

constexpr int64_t kZeroTap[1] = {0};

struct State {
  Gemm gemm;
  int64_t rows = 0, k = 0, lda = 0, ldb = 0, batch = 0;
  bool adj_y = false;
  int32_t rank = 0;                                      // of the batch
  int64_t dims[kMaxRank] = {};                           // of the batch
  int64_t x_step[kMaxRank] = {}, y_step[kMaxRank] = {};  // matrices to step along each batch axis; 0 where broadcast
  size_t per_thread = 0;                                 // floats of workspace: packed B, scratch
  size_t scratch = 0;
};

// The broadcast batch, with the steps of both operands.
Status Broadcast(Prepare& ctx, State* s) {
  const Tensor &x = ctx.in(0), &y = ctx.in(1);
  const int xr = x.rank - 2, yr = y.rank - 2;
  s->rank = std::max(xr, yr);
  s->batch = 1;
  int64_t x_size = 1, y_size = 1;
  for (int i = s->rank - 1; i >= 0; --i) {
    const int xi = i - (s->rank - xr), yi = i - (s->rank - yr);
    const int64_t a = xi >= 0 ? x.dims[xi] : 1, b = yi >= 0 ? y.dims[yi] : 1;
    if (a != b && a != 1 && b != 1)
      return ctx.Fail("shapes do not broadcast: got batch dimensions %lld and %lld, expected equal dimensions or 1",
                      static_cast<long long>(a), static_cast<long long>(b));
    s->dims[i] = a == 1 ? b : a;
    s->x_step[i] = a == 1 ? 0 : x_size;
    s->y_step[i] = b == 1 ? 0 : y_size;
    x_size *= a;
    y_size *= b;
    s->batch *= s->dims[i];
  }
  return Status::kOk;
}

Status PrepareBatchMatMul(Prepare& ctx) {
  const bool ax = ctx.Bool("adj_x"), ay = ctx.Bool("adj_y");
  if (ctx.status() != Status::kOk) return ctx.status();
  const Tensor &x = ctx.in(0), &y = ctx.in(1);
  if (x.rank < 2 || y.rank < 2) return ctx.Fail("rank: got %d and %d, expected at least 2", x.rank, y.rank);
  if (y.dtype != DType::kF32) return ctx.Fail("dtypes of the inputs differ: got %s, expected f32", NameOf(y.dtype));
  const int64_t *xd = x.dims + x.rank - 2, *yd = y.dims + y.rank - 2;
  if (xd[!ax] != yd[ay])
    return ctx.Fail("inner dimensions disagree: got %lld, expected %lld", static_cast<long long>(yd[ay]),
                    static_cast<long long>(xd[!ax]));
  State* s = ctx.NewState<State>();
  if (!s) return ctx.status();
  if (Status st = Broadcast(ctx, s); st != Status::kOk) return st;
  int64_t dims[kMaxRank];
  std::copy(s->dims, s->dims + s->rank, dims);
  dims[s->rank] = xd[ax];
  dims[s->rank + 1] = yd[!ay];
  if (Status st = ctx.SetOutput(0, DType::kF32, s->rank + 2, dims); st != Status::kOk) return st;

  s->rows = xd[ax];
  s->k = xd[!ax];
  s->lda = xd[1];
  s->ldb = yd[1];
  s->adj_y = ay;
  s->gemm.n = yd[!ay];
  s->gemm.kernels = &GemmFor(s->gemm.n, ax);
  s->gemm.transposed = ax;
  s->gemm.tap_a = kZeroTap;
  if (Status st = PlanK(ctx, 1, s->k, ax ? 256 : 512, s->k, nullptr, &s->gemm.plan); st != Status::kOk) return st;
  s->scratch = static_cast<size_t>(s->gemm.packed_size() + 15) / 16 * 16;
  s->per_thread = s->scratch + static_cast<size_t>(s->gemm.scratch_size(s->rows) + 15) / 16 * 16;
  ctx.NeedWorkspace(s->per_thread * sizeof(float) * static_cast<size_t>(ctx.threads));
  return Status::kOk;
}

Status RunBatchMatMul(const Run& run) {
  const State& s = run.state<State>();
  const float *x = run.in(0).as<float>(), *y = run.in(1).as<float>();
  float *z = run.out(0).as<float>(), *workspace = static_cast<float*>(run.workspace);
  // A few rows would not repay packing; a transposed B is always packed.
  const bool in_place = !s.adj_y && s.rows <= 2 * s.gemm.kernels->rows;
  const int64_t work = std::max<int64_t>(1, s.rows * s.k * s.gemm.n);
  run.ParallelFor(s.batch, std::max<int64_t>(1, 65536 / work), [&](int64_t begin, int64_t end, int thread) {
    float* mine = workspace + static_cast<size_t>(thread) * s.per_thread;
    int64_t packed_at = -1;  // the matrix of y that `mine` holds
    for (int64_t i = begin; i < end; ++i) {
      int64_t at_x = 0, at_y = 0, rest = i;
      for (int axis = s.rank - 1; axis >= 0; --axis) {
        at_x += rest % s.dims[axis] * s.x_step[axis];
        at_y += rest % s.dims[axis] * s.y_step[axis];
        rest /= s.dims[axis];
      }
      const float* b = y + at_y * s.k * s.gemm.n;
      if (at_y != packed_at) {
        if (in_place) PackTail(s.gemm, b, s.ldb, mine);
        else PackB(s.gemm, b, s.ldb, s.adj_y, 0, s.gemm.panels(), mine);
      }
      packed_at = at_y;
      const GemmB packed = in_place ? GemmB{mine, b, s.ldb} : GemmB{mine};
      GemmBlock(s.gemm, {x + at_x * s.rows * s.k, s.lda, nullptr}, packed, z + i * s.rows * s.gemm.n, s.gemm.n, nullptr,
                0, s.rows, 0, s.gemm.panels(), mine + s.scratch);
    }
  });
  return Status::kOk;
}

}  // namespace

const Kernel batch_matmul_f32 = {PrepareBatchMatMul, RunBatchMatMul};

}  // namespace rillet
