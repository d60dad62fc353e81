// AddN: the sum of any number of tensors of one shape, left to right, in pieces that stay in the cache.
#include "isa/isa.h"
#include "kernel.h"
#include "pointwise.h"

namespace rillet {
namespace {

constexpr int64_t kPiece = 4096;  // elements

struct AddNState {
  BinaryLoop add;  // of floats
};

Status PrepareAddN(Prepare& ctx) {
  auto* state = ctx.NewState<AddNState>();
  if (!state) return ctx.status();
  state->add = CurrentPointwiseLoops().binary[static_cast<int>(Binary::kAdd)][kBothVary];
  if (ctx.inputs.size == 0) return ctx.Fail("no inputs: got 0, expected at least one");
  for (int k = 0; k < ctx.inputs.size; ++k) {
    if (!ctx.Has(k)) return ctx.Fail("input %d is missing", k);
    const Tensor &t = ctx.in(k), &first = ctx.in(0);
    bool same = t.dtype == first.dtype && t.rank == first.rank;
    for (int d = 0; same && d < t.rank; ++d) same = t.dims[d] == first.dims[d];
    if (!same) return ctx.Fail("input %d differs from input 0 in shape or dtype", k);
  }
  return ctx.SetOutputLike(0, ctx.in(0));
}

void Add(const AddNState& state, const float* a, const float* b, float* y, int64_t n) {
  state.add(a, b, y, n, nullptr);
}
template <class T>
void Add(const AddNState&, const T* a, const T* b, T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i)  // wraps
    y[i] = static_cast<T>(static_cast<uint64_t>(a[i]) + static_cast<uint64_t>(b[i]));
}

template <class T>
Status RunAddN(const Run& run) {
  const auto& state = run.state<AddNState>();
  T* y = run.out(0).as<T>();
  run.ParallelFor(run.out(0).size(), 4 * kPiece, [&](int64_t begin, int64_t end, int) {
    for (int64_t at = begin; at < end; at += kPiece) {
      const int64_t count = end - at < kPiece ? end - at : kPiece;
      if (run.inputs.size == 1) std::memcpy(y + at, run.in(0).as<T>() + at, static_cast<size_t>(count) * sizeof(T));
      for (int k = 1; k < run.inputs.size; ++k)
        Add(state, (k == 1 ? run.in(0).as<T>() : y) + at, run.in(k).as<T>() + at, y + at, count);
    }
  });
  return Status::kOk;
}

}  // namespace

const Kernel add_n_f32 = {PrepareAddN, RunAddN<float>};
const Kernel add_n_i32 = {PrepareAddN, RunAddN<int32_t>};
const Kernel add_n_i64 = {PrepareAddN, RunAddN<int64_t>};

}  // namespace rillet
