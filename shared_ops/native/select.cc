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

// One row; each operand advances along it or stands still.
template <class T, bool c_moves, bool a_moves, bool b_moves>
void SelectRow(const uint8_t* c, const T* a, const T* b, T* y, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const T p = a[a_moves ? i : 0], q = b[b_moves ? i : 0];
    y[i] = c[c_moves ? i : 0] ? p : q;
  }
}

template <class T>
void SelectAll(const Run& run) {
  using Row = void (*)(const uint8_t*, const T*, const T*, T*, int64_t);
  static constexpr Row kRows[8] = {SelectRow<T, false, false, false>, SelectRow<T, false, false, true>,
                                   SelectRow<T, false, true, false>,  SelectRow<T, false, true, true>,
                                   SelectRow<T, true, false, false>,  SelectRow<T, true, false, true>,
                                   SelectRow<T, true, true, false>,   SelectRow<T, true, true, true>};
  const auto& plan = run.state<SelectState>().plan;
  const Row row = kRows[plan.Varies(0) * 4 + plan.Varies(1) * 2 + plan.Varies(2)];
  const auto* condition = run.in(0).as<uint8_t>();
  const T *a = run.in(1).as<T>(), *b = run.in(2).as<T>();
  T* y = run.out(0).as<T>();
  run.ParallelFor(plan.size, 8192, [&](int64_t begin, int64_t end, int) {
    ForRows(plan, begin, end, [&](int64_t at, const int64_t (&from)[3], int64_t count) {
      row(condition + from[0], a + from[1], b + from[2], y + at, count);
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
