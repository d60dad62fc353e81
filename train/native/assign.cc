// Reading and overwriting variables. The variable is input 0, written in place.
#include "kernel.h"

namespace rillet {
namespace {

Status PrepareAssign(Prepare& ctx) {
  if (ctx.NeedVariable(0) != Status::kOk) return ctx.status();
  const Tensor &var = ctx.in(0), &value = ctx.in(1);
  if (var.dtype != value.dtype) return ctx.Fail("value: got %s, expected %s", NameOf(value.dtype), NameOf(var.dtype));
  if (var.rank != value.rank) return ctx.Fail("rank of value: got %d, expected %d", value.rank, var.rank);
  for (int a = 0; a < var.rank; ++a)
    if (var.dims[a] != value.dims[a])
      return ctx.Fail("dimension %d of value: got %lld, expected %lld", a, static_cast<long long>(value.dims[a]),
                      static_cast<long long>(var.dims[a]));
  return Status::kOk;
}

Status PrepareRead(Prepare& ctx) { return ctx.SetOutputLike(0, ctx.in(0)); }

void Copy(const Run& run, const Tensor& from, void* to) {
  run.ParallelFor(static_cast<int64_t>(from.bytes()), 1 << 18, [&](int64_t begin, int64_t end, int) {
    std::memcpy(static_cast<char*>(to) + begin, from.as<const char>() + begin, static_cast<size_t>(end - begin));
  });
}

Status RunRead(const Run& run) {
  Copy(run, run.in(0), run.out(0).data);
  return Status::kOk;
}

Status RunAssign(const Run& run) {
  Copy(run, run.in(1), run.in(0).data);
  return Status::kOk;
}

// Integers wrap around, as unsigned arithmetic does.
template <class T>
T Sum(T a, T b) {
  return a + b;
}
template <>
int32_t Sum(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}
template <>
int64_t Sum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
template <class T>
T Difference(T a, T b) {
  return a - b;
}
template <>
int32_t Difference(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b));
}
template <>
int64_t Difference(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

template <class T, T (*update)(T, T)>
Status RunUpdate(const Run& run) {
  T* var = run.in(0).as<T>();
  const T* value = run.in(1).as<const T>();
  run.ParallelFor(run.in(0).size(), 1 << 15, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) var[i] = update(var[i], value[i]);
  });
  return Status::kOk;
}

struct MovingAverage {
  float share;  // of the new value
};

Status PrepareMovingAverage(Prepare& ctx) {
  MovingAverage* s = ctx.NewState<MovingAverage>();
  if (!s) return ctx.status();
  s->share = static_cast<float>(1 - ctx.Double("decay"));
  if (ctx.status() != Status::kOk) return ctx.status();
  return PrepareAssign(ctx);
}

Status RunMovingAverage(const Run& run) {
  const float share = run.state<MovingAverage>().share;
  float* var = run.in(0).as<float>();
  const float* value = run.in(1).as<const float>();
  run.ParallelFor(run.in(0).size(), 1 << 15, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) var[i] = var[i] - (var[i] - value[i]) * share;
  });
  return Status::kOk;
}

}  // namespace

const Kernel read_variable_any = {PrepareRead, RunRead};
const Kernel assign_any = {PrepareAssign, RunAssign};
const Kernel assign_add_f32 = {PrepareAssign, RunUpdate<float, Sum<float>>};
const Kernel assign_add_i32 = {PrepareAssign, RunUpdate<int32_t, Sum<int32_t>>};
const Kernel assign_add_i64 = {PrepareAssign, RunUpdate<int64_t, Sum<int64_t>>};
const Kernel assign_sub_f32 = {PrepareAssign, RunUpdate<float, Difference<float>>};
const Kernel assign_sub_i32 = {PrepareAssign, RunUpdate<int32_t, Difference<int32_t>>};
const Kernel assign_sub_i64 = {PrepareAssign, RunUpdate<int64_t, Difference<int64_t>>};
const Kernel assign_moving_average_f32 = {PrepareMovingAverage, RunMovingAverage};

}  // namespace rillet
