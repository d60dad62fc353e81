// Sum, Mean, Max, Min, Prod, Norm, L2Loss, LogSumExp and SumTo in float32. The order of operations: nn_f32.h.
#include "nn_f32.h"
#include "reduce_plan.h"
#include "strided_copy.h"

namespace rillet {
namespace {

enum class Finish : uint8_t { kNone, kDivide, kRoot, kHalve };

struct State {
  ReducePlan plan;
  const NnF32* loops;
  ColumnReduction columns;
  float (*row)(const float* x, int64_t n);
  Finish finish;
  bool by_columns;
};

// What the sum becomes at last. The mean divides once: nearer to the truth than a product with 1/n.
void Complete(const State& s, float* y, int64_t n) {
  const float count = static_cast<float>(s.plan.count);
  for (int64_t i = 0; i < n; ++i) {
    if (s.finish == Finish::kDivide) y[i] /= count;
    if (s.finish == Finish::kRoot) y[i] = __builtin_sqrtf(y[i]);
    if (s.finish == Finish::kHalve) y[i] *= 0.5f;
  }
}

Status Start(Prepare& ctx, Finish finish, State** state) {
  if (ctx.in(0).dtype != DType::kF32) return ctx.Fail("x: got %s, expected f32", NameOf(ctx.in(0).dtype));
  State* s = *state = ctx.NewState<State>();
  if (!s) return ctx.status();
  s->loops = &CurrentNnF32();
  s->finish = finish;
  return Status::kOk;
}

// After the plan: workspace, and whether columns are reduced side by side.
void Choose(Prepare& ctx, State* s, RowReduction row, ColumnReduction columns) {
  const ReducePlan& p = s->plan;
  s->row = s->loops->row[row];
  s->columns = columns;
  s->by_columns = p.layout == ReducePlan::Layout::kColumns && p.columns > 1;
  const int64_t gathered = p.layout == ReducePlan::Layout::kRows ? 0 : p.count * ctx.threads;
  const int64_t floats = s->by_columns ? ReduceColumnsWorkspace(p.columns) : gathered;
  ctx.NeedWorkspace(static_cast<size_t>(floats) * sizeof(float));
}

template <RowReduction row, ColumnReduction columns, Finish finish>
Status PrepareOver(Prepare& ctx) {
  State* s = nullptr;
  if (Start(ctx, finish, &s) != Status::kOk) return ctx.status();
  if (PrepareReduction(ctx, 0, DType::kF32, &s->plan) != Status::kOk) return ctx.status();
  Choose(ctx, s, row, columns);
  return Status::kOk;
}

Status PrepareL2Loss(Prepare& ctx) {
  State* s = nullptr;
  if (Start(ctx, Finish::kHalve, &s) != Status::kOk) return ctx.status();
  constexpr bool kAll[kMaxRank] = {true, true, true, true, true, true, true, true};
  PlanReduction(ctx.in(0), kAll, &s->plan);
  Choose(ctx, s, kRowSumSquares, kColumnSumSquares);
  return ctx.SetOutput(0, DType::kF32, 0, nullptr);
}

Status PrepareLogSumExp(Prepare& ctx) {
  State* s = nullptr;
  if (Start(ctx, Finish::kNone, &s) != Status::kOk) return ctx.status();
  if (PrepareReduction(ctx, 0, DType::kF32, &s->plan) != Status::kOk) return ctx.status();
  Choose(ctx, s, kRowSum, kColumnSum);
  s->row = s->loops->log_sum_exp;  // two passes over each run: no columns side by side
  s->by_columns = false;
  if (s->plan.layout != ReducePlan::Layout::kRows)
    ctx.NeedWorkspace(static_cast<size_t>(s->plan.count * ctx.threads) * sizeof(float));
  return Status::kOk;
}

Status PrepareSumTo(Prepare& ctx) {
  State* s = nullptr;
  if (Start(ctx, Finish::kNone, &s) != Status::kOk) return ctx.status();
  const Tensor& x = ctx.in(0);
  int64_t dims[kMaxRank];
  const int rank = ReadShape(ctx, 1, dims), lead = x.rank - rank;
  if (rank < 0) return ctx.status();
  if (lead < 0) return ctx.Fail("shape: got %d dimensions, expected at most %d", rank, x.rank);
  bool mask[kMaxRank] = {};
  for (int a = 0; a < lead; ++a) mask[a] = true;
  for (int a = 0; a < rank; ++a) {
    mask[lead + a] = dims[a] == 1 && x.dims[lead + a] != 1;
    if (!mask[lead + a] && dims[a] != x.dims[lead + a])
      return ctx.Fail("dimension %d of shape: got %lld, expected 1 or %lld", a, static_cast<long long>(dims[a]),
                      static_cast<long long>(x.dims[lead + a]));
  }
  PlanReduction(x, mask, &s->plan);
  Choose(ctx, s, kRowSum, kColumnSum);
  return ctx.SetOutput(0, DType::kF32, rank, dims);
}

void RunColumns(const Run& run, const State& s) {
  const ReducePlan& p = s.plan;
  const float* x = run.in(0).as<const float>();
  float* y = run.out(0).as<float>();
  const int64_t outer = p.outputs / p.columns, blocks = (p.columns + kColumnBlock - 1) / kColumnBlock;
  if (outer == 1) {
    ReduceColumns(run, *s.loops, s.columns, {x, nullptr, nullptr, nullptr, p.count, p.columns},
                  static_cast<float*>(run.workspace), y);
    return Complete(s, y, p.outputs);
  }
  const int64_t grain = 1 + 16384 / (p.count * kColumnBlock + 1);
  run.ParallelFor(outer * blocks, grain, [&](int64_t begin, int64_t end, int) {
    alignas(64) float acc[kReduceLanes * kColumnBlock];
    for (int64_t i = begin; i < end; ++i) {
      const int64_t o = i / blocks, first = i % blocks * kColumnBlock;
      const int64_t width = p.columns - first < kColumnBlock ? p.columns - first : kColumnBlock;
      const Columns m{x + o * p.count * p.columns, nullptr, nullptr, nullptr, p.count, p.columns};
      s.loops->columns[s.columns](m, first, width, 0, kReduceLanes, acc);
      float* to = y + o * p.columns + first;
      s.loops->join[s.columns](acc, width, to);
      Complete(s, to, width);
    }
  });
}

Status RunReduce(const Run& run) {
  const State& s = run.state<State>();
  const ReducePlan& p = s.plan;
  if (p.outputs == 0) return Status::kOk;
  if (s.by_columns) {
    RunColumns(run, s);
    return Status::kOk;
  }
  const float* x = run.in(0).as<const float>();
  float* y = run.out(0).as<float>();
  run.ParallelFor(p.outputs, 1 + 16384 / (p.count + 1), [&](int64_t begin, int64_t end, int thread) {
    const bool gather = p.layout != ReducePlan::Layout::kRows;
    float* gathered = gather ? static_cast<float*>(run.workspace) + thread * p.count : nullptr;
    for (int64_t o = begin; o < end; ++o) {
      const float* from = x + p.Start(o);
      if (gather) {
        float* to = gathered;
        p.ForEach([&](int64_t at) { *to++ = from[at]; });
        from = gathered;
      }
      y[o] = s.row(from, p.count);
    }
    Complete(s, y + begin, end - begin);
  });
  return Status::kOk;
}

}  // namespace

const Kernel sum_f32 = {PrepareOver<kRowSum, kColumnSum, Finish::kNone>, RunReduce};
const Kernel mean_f32 = {PrepareOver<kRowSum, kColumnSum, Finish::kDivide>, RunReduce};
const Kernel max_f32 = {PrepareOver<kRowMax, kColumnMax, Finish::kNone>, RunReduce};
const Kernel min_f32 = {PrepareOver<kRowMin, kColumnMin, Finish::kNone>, RunReduce};
const Kernel prod_f32 = {PrepareOver<kRowProduct, kColumnProduct, Finish::kNone>, RunReduce};
const Kernel norm_f32 = {PrepareOver<kRowSumSquares, kColumnSumSquares, Finish::kRoot>, RunReduce};
const Kernel l2_loss_f32 = {PrepareL2Loss, RunReduce};
const Kernel log_sum_exp_f32 = {PrepareLogSumExp, RunReduce};
const Kernel sum_to_f32 = {PrepareSumTo, RunReduce};

}  // namespace rillet
