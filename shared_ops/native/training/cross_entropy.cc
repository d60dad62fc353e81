// The cross entropies in float32: loss and gradient of a row in one pass over its exponentials.
#include "../nn_f32.h"

namespace rillet {
namespace {

struct State {
  const NnF32* loops;
  int64_t rows, classes;
};

// Logits [..., classes]: the first output has one element a row, the second is like the logits.
Status PrepareRows(Prepare& ctx, State** state) {
  State* s = *state = ctx.NewState<State>();
  if (!s) return ctx.status();
  const Tensor& x = ctx.in(0);
  if (x.rank < 1) return ctx.Fail("rank of logits: got 0, expected 1 or more, classes last");
  s->loops = &CurrentNnF32();
  s->classes = x.dims[x.rank - 1];
  s->rows = s->classes ? x.size() / s->classes : 0;
  if (s->classes == 0) return ctx.Fail("logits have no classes");
  if (ctx.SetOutput(0, DType::kF32, x.rank - 1, x.dims) != Status::kOk) return ctx.status();
  return ctx.SetOutputLike(1, x);
}

Status PrepareDense(Prepare& ctx) {
  State* s = nullptr;
  const Tensor &x = ctx.in(0), &labels = ctx.in(1);
  if (labels.dtype != DType::kF32 || labels.rank != x.rank) return ctx.Fail("labels must be like logits");
  for (int a = 0; a < x.rank; ++a)
    if (labels.dims[a] != x.dims[a]) return ctx.Fail("logits and labels: dimension %d differs", a);
  return PrepareRows(ctx, &s);
}

Status PrepareSparse(Prepare& ctx) {
  State* s = nullptr;
  const Tensor &x = ctx.in(0), &labels = ctx.in(1);
  if (labels.dtype != DType::kI32 && labels.dtype != DType::kI64)
    return ctx.Fail("dtype of labels: got %s, expected i32 or i64", NameOf(labels.dtype));
  if (labels.rank != x.rank - 1) return ctx.Fail("rank of labels: got %d, expected %d", labels.rank, x.rank - 1);
  for (int a = 0; a < labels.rank; ++a)
    if (labels.dims[a] != x.dims[a]) return ctx.Fail("logits and labels: dimension %d differs", a);
  return PrepareRows(ctx, &s);
}

Status RunDense(const Run& run) {
  const State& s = run.state<State>();
  const float *x = run.in(0).as<const float>(), *labels = run.in(1).as<const float>();
  float *loss = run.out(0).as<float>(), *backprop = run.out(1).as<float>();
  run.ParallelFor(s.rows, 1 + 2048 / s.classes, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t at = r * s.classes;
      loss[r] = s.loops->cross_entropy(x + at, labels + at, s.classes, backprop + at);
    }
  });
  return Status::kOk;
}

Status RunSparse(const Run& run) {
  const State& s = run.state<State>();
  const Tensor& given = run.in(1);
  const auto label = [&](int64_t r) -> int64_t {
    return given.dtype == DType::kI64 ? given.as<const int64_t>()[r] : given.as<const int32_t>()[r];
  };
  for (int64_t r = 0; r < s.rows; ++r)
    if (label(r) < 0 || label(r) >= s.classes)
      return run.Fail("label of row %lld: got %lld, expected a class from 0 to %lld", static_cast<long long>(r),
                      static_cast<long long>(label(r)), static_cast<long long>(s.classes - 1));
  const float* x = run.in(0).as<const float>();
  float *loss = run.out(0).as<float>(), *backprop = run.out(1).as<float>();
  run.ParallelFor(s.rows, 1 + 2048 / s.classes, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t at = r * s.classes;
      loss[r] = s.loops->sparse_cross_entropy(x + at, label(r), s.classes, backprop + at);
    }
  });
  return Status::kOk;
}

Status PrepareSigmoid(Prepare& ctx) {
  State* s = ctx.NewState<State>();
  if (!s) return ctx.status();
  const Tensor &x = ctx.in(0), &labels = ctx.in(1);
  s->loops = &CurrentNnF32();
  if (labels.dtype != DType::kF32 || labels.rank != x.rank) return ctx.Fail("labels must be like logits");
  for (int a = 0; a < x.rank; ++a)
    if (labels.dims[a] != x.dims[a]) return ctx.Fail("logits and labels: dimension %d differs", a);
  return ctx.SetOutputLike(0, x);
}

Status RunSigmoid(const Run& run) {
  const State& s = run.state<State>();
  const float *x = run.in(0).as<const float>(), *labels = run.in(1).as<const float>();
  float* loss = run.out(0).as<float>();
  run.ParallelFor(run.in(0).size(), 4096, [&](int64_t begin, int64_t end, int) {
    s.loops->sigmoid_cross_entropy(x + begin, labels + begin, end - begin, loss + begin);
  });
  return Status::kOk;
}

}  // namespace

const Kernel softmax_cross_entropy_f32 = {PrepareDense, RunDense};
const Kernel sparse_softmax_cross_entropy_f32 = {PrepareSparse, RunSparse};
const Kernel sigmoid_cross_entropy_f32 = {PrepareSigmoid, RunSigmoid};

}  // namespace rillet
