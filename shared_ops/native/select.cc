// Select: moves elements of any size, so one kernel serves every dtype.
#include "broadcast.h"
#include "kernel.h"

namespace rillet {
namespace {

struct SelectState {
  BroadcastPlan<3> plan;
};

Status PrepareSelect(Prepare& ctx) {
  auto* state = ctx.NewState<SelectState>();
  if (!state) return ctx.status();
  if (ctx.inputs.size != 3) return ctx.Fail("got %lld inputs, expected 3", static_cast<long long>(ctx.inputs.size));
  for (int i = 0; i < 3; ++i)
    if (!ctx.Has(i)) return ctx.Fail("input %d is missing", i);
  if (ctx.in(0).dtype != DType::kBool)
    return ctx.Fail("dtype of condition: got %s, expected bool", NameOf(ctx.in(0).dtype));
  if (ctx.in(1).dtype != ctx.in(2).dtype)
    return ctx.Fail("dtypes of the inputs differ: got %s, expected %s", NameOf(ctx.in(2).dtype),
                    NameOf(ctx.in(1).dtype));
  return PrepareBroadcast(ctx, ctx.in(1).dtype, &state->plan);
}

template <class T>
void SelectAll(const Run& run) {
  const auto& plan = run.state<SelectState>().plan;
  const auto* condition = run.in(0).as<uint8_t>();
  const T *a = run.in(1).as<T>(), *b = run.in(2).as<T>();
  T* y = run.out(0).as<T>();
  const int64_t c_step = plan.Varies(0), a_step = plan.Varies(1), b_step = plan.Varies(2);
  run.ParallelFor(plan.size, 8192, [&](int64_t begin, int64_t end, int) {
    ForRows(plan, begin, end, [&](int64_t at, const int64_t (&from)[3], int64_t count) {
      const uint8_t* c = condition + from[0];
      const T *left = a + from[1], *right = b + from[2];
      T* to = y + at;
      if (c_step & a_step & b_step) {
#pragma GCC ivdep
        for (int64_t i = 0; i < count; ++i) {
          const T p = left[i], q = right[i];
          to[i] = c[i] ? p : q;
        }
      } else {
#pragma GCC ivdep
        for (int64_t i = 0; i < count; ++i) {
          const T p = left[i * a_step], q = right[i * b_step];
          to[i] = c[i * c_step] ? p : q;
        }
      }
    });
  });
}

Status RunSelect(const Run& run) {
  switch (SizeOf(run.in(1).dtype)) {
    case 1: SelectAll<uint8_t>(run); break;
    case 4: SelectAll<uint32_t>(run); break;
    default: SelectAll<uint64_t>(run); break;
  }
  return Status::kOk;
}

}  // namespace

const Kernel select_any = {PrepareSelect, RunSelect};

}  // namespace rillet
