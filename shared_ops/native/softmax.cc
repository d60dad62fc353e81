// Softmax and LogSoftmax in float32 over any axis: a row that is not contiguous is gathered first.
#include "nn_f32.h"

namespace rillet {
namespace {

struct State {
  const NnF32* loops;
  int64_t outer, n, inner;  // the input is [outer, n, inner]
};

Status PrepareSoftmax(Prepare& ctx) {
  State* s = ctx.NewState<State>();
  if (!s) return ctx.status();
  const Tensor& x = ctx.in(0);
  int64_t axis = ctx.Int("axis");
  if (ctx.status() != Status::kOk) return ctx.status();
  if (axis < 0) axis += x.rank;
  if (axis < 0 || axis >= x.rank) return ctx.Fail("axis out of range for rank %d", x.rank);
  s->loops = &CurrentNnF32();
  s->outer = s->inner = 1;
  s->n = x.dims[axis];
  for (int a = 0; a < axis; ++a) s->outer *= x.dims[a];
  for (int a = static_cast<int>(axis) + 1; a < x.rank; ++a) s->inner *= x.dims[a];
  if (s->inner > 1) ctx.NeedWorkspace(static_cast<size_t>(s->n * ctx.threads) * sizeof(float));
  return ctx.SetOutputLike(0, x);
}

Status RunRows(const Run& run, const State& s, void (*row)(const float* x, int64_t n, float* y)) {
  const float* x = run.in(0).as<const float>();
  float* y = run.out(0).as<float>();
  if (s.n == 0) return Status::kOk;
  run.ParallelFor(s.outer * s.inner, 1 + 2048 / s.n, [&](int64_t begin, int64_t end, int thread) {
    float* gathered = s.inner > 1 ? static_cast<float*>(run.workspace) + thread * s.n : nullptr;
    for (int64_t i = begin; i < end; ++i) {
      if (s.inner == 1) {
        row(x + i * s.n, s.n, y + i * s.n);
        continue;
      }
      const int64_t at = i / s.inner * s.n * s.inner + i % s.inner;
      for (int64_t k = 0; k < s.n; ++k) gathered[k] = x[at + k * s.inner];
      row(gathered, s.n, gathered);
      for (int64_t k = 0; k < s.n; ++k) y[at + k * s.inner] = gathered[k];
    }
  });
  return Status::kOk;
}

Status RunSoftmax(const Run& run) {
  const State& s = run.state<State>();
  return RunRows(run, s, s.loops->softmax);
}

Status RunLogSoftmax(const Run& run) {
  const State& s = run.state<State>();
  return RunRows(run, s, s.loops->log_softmax);
}

}  // namespace

const Kernel softmax_f32 = {PrepareSoftmax, RunSoftmax};
const Kernel log_softmax_f32 = {PrepareSoftmax, RunLogSoftmax};

}  // namespace rillet
