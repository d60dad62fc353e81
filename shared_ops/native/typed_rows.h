// Rows of plain elements for the pointwise kernels that are exact on any CPU: integers, comparisons, logic, selection.
#pragma once
#include <cstdint>

#include "broadcast.h"
#include "kernel.h"

namespace rillet {

constexpr int64_t kTypedGrain = 16384;  // elements a thread

// y[i] = f(a[i], b[i]), a and b advancing or standing still. y may be a or b: no element depends on another one.
template <class In, class Out, class F>
void MapRow(bool a_varies, bool b_varies, const In* a, const In* b, Out* y, int64_t n, const F& f) {
  if (a_varies && b_varies) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
  } else if (a_varies) {
    const In right = *b;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = f(a[i], right);
  } else {
    const In left = *a;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = f(left, b[i]);
  }
}

struct TypedState {
  BroadcastPlan<2> plan;
};

// Two inputs of one dtype, broadcast; the result has dtype `result`.
template <class State>
Status PrepareTyped(Prepare& ctx, DType result) {
  auto* state = ctx.NewState<State>();
  if (!state) return ctx.status();
  if (ctx.inputs.size != 2) return ctx.Fail("got %lld inputs, expected 2", static_cast<long long>(ctx.inputs.size));
  if (ctx.Has(1) && ctx.in(1).dtype != ctx.in(0).dtype)
    return ctx.Fail("dtypes of the inputs differ: got %s, expected %s", NameOf(ctx.in(1).dtype),
                    NameOf(ctx.in(0).dtype));
  return PrepareBroadcast(ctx, result, &state->plan);
}

template <class In, class Out, class F>
void RunTyped(const Run& run, const BroadcastPlan<2>& plan, const F& f) {
  const In *a = run.in(0).as<In>(), *b = run.in(1).as<In>();
  Out* y = run.out(0).as<Out>();
  const bool b_varies = plan.Varies(1), a_varies = plan.Varies(0) || !b_varies;
  run.ParallelFor(plan.size, kTypedGrain, [&](int64_t begin, int64_t end, int) {
    ForRows(plan, begin, end, [&](int64_t at, const int64_t (&from)[2], int64_t count) {
      MapRow(a_varies, b_varies, a + from[0], b + from[1], y + at, count, f);
    });
  });
}

}  // namespace rillet
