// MatMul on int8: constant weights b, one scale or one a column; BatchMatMul takes two activations, each with a zero
// point.
#include "products_s8.h"

namespace rillet {
namespace {

struct MatMulState {
  const GemmS8* isa;
  PackedS8 packed;
  int64_t m, k, workspace;  // workspace: bytes of RunRows; a transposed `a` is copied behind it
  bool transpose_a;
};

Status PrepareMatMul(Prepare& ctx) {
  const Tensor &a = ctx.in(0), &b = ctx.in(1);
  const bool ta = ctx.Bool("transpose_a"), tb = ctx.Bool("transpose_b");
  if (ctx.status() != Status::kOk) return ctx.status();
  if (a.rank != 2 || b.rank != 2) return ctx.Fail("factors: got ranks %d and %d, expected 2 and 2", a.rank, b.rank);
  const int64_t m = a.dims[ta], k = a.dims[!ta], n = b.dims[!tb];
  if (b.dims[tb] != k)
    return ctx.Fail("inner dimensions disagree: got %lld, expected %lld", static_cast<long long>(b.dims[tb]),
                    static_cast<long long>(k));
  TensorQuant x;
  OutputQuant y;
  ConstantsS8 c;
  const int64_t dims[2] = {m, n};
  if (Status s = ctx.SetOutput(0, DType::kI8, 2, dims); s != Status::kOk) return s;
  if (Status s = ReadQuant(ctx, a, "input 0", &x); s != Status::kOk) return s;
  if (Status s = ReadOutput(ctx, ctx.out(0), true, &y); s != Status::kOk) return s;
  if (Status s = ReadConstants(ctx, 1, tb ? 0 : 1, n, &c); s != Status::kOk) return s;
  auto* state = ctx.NewState<MatMulState>();
  if (!state) return Status::kOutOfMemory;
  state->isa = &CurrentGemmS8();
  state->m = m;
  state->k = k;
  state->transpose_a = ta;
  const WeightsS8 w = {c.weights, 1, k, n, tb ? 1 : n, tb ? k : 1, c.bias, c.scale, c.scale_count};
  if (Status s = PackGemm(ctx, *state->isa, w, x, y, &state->packed); s != Status::kOk) return s;
  state->workspace = WorkspaceOfRows(*state->isa, state->packed) * ctx.threads;
  ctx.NeedWorkspace(static_cast<size_t>(state->workspace + (ta ? m * k + 64 : 0)));
  return Status::kOk;
}

Status RunMatMul(const Run& ctx) {
  const auto& state = ctx.state<MatMulState>();
  if (ctx.out(0).size() == 0) return Status::kOk;
  const int8_t* a = ctx.in(0).as<int8_t>();
  if (state.transpose_a) {
    int8_t* rows = static_cast<int8_t*>(ctx.workspace) + state.workspace;
    for (int64_t m = 0; m < state.m; ++m)
      for (int64_t k = 0; k < state.k; ++k) rows[m * state.k + k] = a[k * state.m + m];
    a = rows;
  }
  RunRows(ctx, *state.isa, state.packed, a, state.m, ctx.out(0).as<int8_t>());
  return Status::kOk;
}

struct BatchState {
  int64_t batches, m, n, k;
  int64_t a_row, a_col, b_row, b_col;  // strides of a[m][k] and b[k][n]
  const int64_t* a_at;                 // offset of each batch's matrices
  const int64_t* b_at;
  TensorQuant a, b;
  OutputQuant y;
  float scale;
};

// Batch dimensions of the output, and where each batch's factors begin, broadcasting as NumPy does.
Status PrepareBatches(Prepare& ctx, const Tensor& a, const Tensor& b, int rank, int64_t* dims, BatchState* state) {
  state->batches = 1;
  auto dim = [&](const Tensor& t, int d) { return d < rank - t.rank ? int64_t{1} : t.dims[d - (rank - t.rank)]; };
  for (int d = 0; d < rank - 2; ++d) {
    const int64_t p = dim(a, d), q = dim(b, d);
    if (p != q && p != 1 && q != 1)
      return ctx.Fail("batch dimensions %lld and %lld do not broadcast", static_cast<long long>(p),
                      static_cast<long long>(q));
    dims[d] = p == 1 ? q : p;
    state->batches *= dims[d];
  }
  auto* a_at = ctx.AllocateArray<int64_t>(state->batches + 1);
  auto* b_at = ctx.AllocateArray<int64_t>(state->batches + 1);
  if (!a_at || !b_at) return Status::kOutOfMemory;
  for (int64_t i = 0; i < state->batches; ++i) {
    int64_t rest = i, a_step = state->m * state->k, b_step = state->k * state->n;
    for (int d = rank - 3; d >= 0; --d) {
      const int64_t index = rest % dims[d];
      rest /= dims[d];
      if (dim(a, d) != 1) a_at[i] += index * a_step;
      if (dim(b, d) != 1) b_at[i] += index * b_step;
      a_step *= dim(a, d);
      b_step *= dim(b, d);
    }
  }
  state->a_at = a_at;
  state->b_at = b_at;
  return Status::kOk;
}

Status PrepareBatchMatMul(Prepare& ctx) {
  const Tensor &a = ctx.in(0), &b = ctx.in(1);
  const bool ta = ctx.Bool("adj_x"), tb = ctx.Bool("adj_y");
  if (ctx.status() != Status::kOk) return ctx.status();
  if (a.rank < 2 || b.rank < 2) return ctx.Fail("factors: got ranks %d and %d, expected at least 2", a.rank, b.rank);
  auto* state = ctx.NewState<BatchState>();
  if (!state) return Status::kOutOfMemory;
  const int64_t *last_a = a.dims + a.rank - 2, *last_b = b.dims + b.rank - 2;
  state->m = last_a[ta];
  state->k = last_a[!ta];
  state->n = last_b[!tb];
  if (last_b[tb] != state->k)
    return ctx.Fail("inner dimensions disagree: got %lld, expected %lld", static_cast<long long>(last_b[tb]),
                    static_cast<long long>(state->k));
  state->a_row = ta ? 1 : state->k;
  state->a_col = ta ? state->m : 1;
  state->b_row = tb ? 1 : state->n;
  state->b_col = tb ? state->k : 1;
  const int rank = a.rank > b.rank ? a.rank : b.rank;
  int64_t dims[kMaxRank];
  if (Status s = PrepareBatches(ctx, a, b, rank, dims, state); s != Status::kOk) return s;
  dims[rank - 2] = state->m;
  dims[rank - 1] = state->n;
  if (Status s = ctx.SetOutput(0, DType::kI8, rank, dims); s != Status::kOk) return s;
  if (Status s = ReadQuant(ctx, a, "input 0", &state->a); s != Status::kOk) return s;
  if (Status s = ReadQuant(ctx, b, "input 1", &state->b); s != Status::kOk) return s;
  if (Status s = ReadOutput(ctx, ctx.out(0), false, &state->y); s != Status::kOk) return s;
  if (state->k * 256 * 255 >= (int64_t{1} << 31))
    return ctx.Fail("the sum of %lld int8 products may leave int32", static_cast<long long>(state->k));
  state->scale = RequantizeScale(state->a.scale, state->b.scale, state->y.scale);
  if (!(state->scale > 0 && state->scale < 256))
    return ctx.Fail("scale of inputs over scale of output: got %g, expected above 0 and below 256",
                    static_cast<double>(state->scale));
  return Status::kOk;
}

constexpr int kColumns = 16;

void MultiplyRow(const BatchState& s, const int8_t* a, const int8_t* b, int8_t* out) {
  for (int64_t first = 0; first < s.n; first += kColumns) {
    const int64_t width = s.n - first < kColumns ? s.n - first : kColumns;
    int32_t acc[kColumns] = {};
    for (int64_t k = 0; k < s.k; ++k) {
      const int32_t x = a[k * s.a_col] - s.a.zero_point;
      const int8_t* row = b + k * s.b_row + first * s.b_col;
      for (int64_t i = 0; i < width; ++i) acc[i] += x * (row[i * s.b_col] - s.b.zero_point);
    }
    for (int64_t i = 0; i < width; ++i) out[first + i] = Requantize(acc[i], s.scale, s.y.zero_point, s.y.low, s.y.high);
  }
}

Status RunBatchMatMul(const Run& ctx) {
  const auto& s = ctx.state<BatchState>();
  const int8_t *a = ctx.in(0).as<int8_t>(), *b = ctx.in(1).as<int8_t>();
  int8_t* out = ctx.out(0).as<int8_t>();
  ctx.ParallelFor(s.batches * s.m, 4, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i)
      MultiplyRow(s, a + s.a_at[i / s.m] + i % s.m * s.a_row, b + s.b_at[i / s.m], out + i * s.n);
  });
  return Status::kOk;
}

}  // namespace

const Kernel matmul_i8 = {PrepareMatMul, RunMatMul};
const Kernel batch_matmul_i8 = {PrepareBatchMatMul, RunBatchMatMul};

}  // namespace rillet
