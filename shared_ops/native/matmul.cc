// MatMul: C = A B, either factor transposed, plus an optional bias and a clamp.
#include <algorithm>

#include "gemm_f32.h"

namespace rillet {
namespace {

constexpr int64_t kZeroTap[1] = {0};

struct State {
  Gemm gemm;
  int64_t rows = 0, lda = 0, ldb = 0;
  bool transpose_b = false;
  const float* packed = nullptr;  // of a constant B
  bool in_place = false;          // B is read where it lies: few rows would not repay packing it
  size_t scratch = 0;             // offset of scratch in the workspace, in floats
};

// B: packed once if constant; read in place for few rows; else packed in every run.
Status PrepareB(Prepare& ctx, State* s) {
  const Tensor& b = ctx.in(1);
  int64_t workspace = 0;
  if (b.constant) {
    float* packed = ctx.AllocateArray<float>(s->gemm.packed_size());
    if (!packed) return ctx.status();
    PackB(s->gemm, b.as<float>(), s->ldb, s->transpose_b, 0, s->gemm.panels(), packed);
    s->packed = packed;
  } else {
    s->in_place = !s->transpose_b && s->rows <= 2 * s->gemm.kernels->rows;
    workspace = s->in_place ? s->gemm.tail_size() : s->gemm.packed_size();
  }
  s->scratch = static_cast<size_t>(workspace + 15) / 16 * 16;
  const size_t chunks = static_cast<size_t>(s->gemm.scratch_size(s->rows)) * static_cast<size_t>(ctx.threads);
  ctx.NeedWorkspace((s->scratch + chunks) * sizeof(float));
  return Status::kOk;
}

Status PrepareMatMul(Prepare& ctx) {
  const bool ta = ctx.Bool("transpose_a"), tb = ctx.Bool("transpose_b");
  ActivationBounds bounds;
  if (Status s = ReadActivation(ctx, &bounds); s != Status::kOk) return s;
  const Tensor &a = ctx.in(0), &b = ctx.in(1);
  if (a.rank != 2 || b.rank != 2) return ctx.Fail("rank of a and b: got %d and %d, expected 2", a.rank, b.rank);
  if (b.dtype != DType::kF32) return ctx.Fail("dtypes of the inputs differ: got %s, expected f32", NameOf(b.dtype));
  const int64_t m = a.dims[ta], k = a.dims[!ta], n = b.dims[!tb];
  if (b.dims[tb] != k)
    return ctx.Fail("inner dimensions disagree: got %lld, expected %lld", static_cast<long long>(b.dims[tb]),
                    static_cast<long long>(k));
  if (ctx.Has(2) && (ctx.in(2).rank != 1 || ctx.in(2).dims[0] != n || ctx.in(2).dtype != DType::kF32))
    return ctx.Fail("length of the bias: got %lld, expected %lld", static_cast<long long>(ctx.in(2).size()),
                    static_cast<long long>(n));
  const int64_t dims[2] = {m, n};
  if (Status s = ctx.SetOutput(0, DType::kF32, 2, dims); s != Status::kOk) return s;

  State* s = ctx.NewState<State>();
  if (!s) return ctx.status();
  s->rows = m;
  s->lda = a.dims[1];
  s->ldb = b.dims[1];
  s->transpose_b = tb;
  s->gemm.kernels = &GemmFor(n, ta);
  s->gemm.n = n;
  s->gemm.transposed = ta;
  s->gemm.tap_a = kZeroTap;
  s->gemm.bounds = bounds;
  if (ta) s->gemm.row_block = 384;
  if (Status st = PlanK(ctx, 1, k, ta ? 256 : 512, k, nullptr, &s->gemm.plan); st != Status::kOk) return st;
  return PrepareB(ctx, s);
}

Status RunMatMul(const Run& run) {
  const State& s = run.state<State>();
  const Gemm& g = s.gemm;
  float* workspace = static_cast<float*>(run.workspace);
  const float* b = run.in(1).as<float>();
  GemmB packed = {s.packed};
  if (s.in_place) {
    PackTail(g, b, s.ldb, workspace);
    packed = {workspace, b, s.ldb};
  } else if (!s.packed) {
    packed = {workspace};
    run.ParallelFor(g.panels(), std::max<int64_t>(1, 65536 / std::max<int64_t>(1, g.plan.k * g.columns())),
                    [&](int64_t begin, int64_t end, int) { PackB(g, b, s.ldb, s.transpose_b, begin, end, workspace); });
  }
  const GemmA a = {run.in(0).as<float>(), s.lda, nullptr};
  RunGemm(run, g, s.rows, a, packed, run.out(0).as<float>(), g.n, run.Has(2) ? run.in(2).as<float>() : nullptr,
          workspace + s.scratch);
  return Status::kOk;
}

}  // namespace

const Kernel matmul_f32 = {PrepareMatMul, RunMatMul};

}  // namespace rillet
